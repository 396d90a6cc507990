"""The result of choosing a run: its claims, and a line per block."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from judgekit.analysis.claims import Claim, further, lines_of, plain, wrapped
from judgekit.analysis.race import Choice, Look, RaceRules, Replay
from judgekit.data.questions import Repeats
from judgekit.data.streams import write_atomic

_TIE: Final = 1e-12
"""Equal means may differ by the rounding of their sums."""


def points(quality: float) -> str:
    """Return quality in points."""
    # A zero difference must not look like a small loss.
    return f"{100 * quality:.1f}".replace("-0.0", "0.0").replace("-", "−")


def at_most(bound: float) -> str:
    """Return a bound in points, rounded up."""
    # Rounded up, so that the printed bound holds.
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f}"


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in prose: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


@dataclass(frozen=True)
class Spent:
    """The cost of a choice, no matter when it was paid.

    Attributes:
        requests: number of needed requests.
        money: their price; None if unknown.
        uncounted: whether servers left some tokens uncounted, so that the money is an upper bound.
        everything: the factor by which asking everything costs more, by the number of different lists.
        limit: the budget, or None.
        currency: the currency.
    """

    requests: int
    money: float | None
    everything: float
    limit: float | None = None
    currency: str = ""
    uncounted: bool = False

    def claim(self) -> Claim:
        """Return sentences on the cost, and on the cost of asking everything."""
        spent = self.money or float(self.requests)
        if self.money:
            took, whole = f"{self.money:,.2f}", f"{spent * self.everything:,.2f}"
            if self.uncounted:
                took = f"at most about {took}"
            if self.limit is not None:
                took += f" of {self.limit:,.10g}"
            if self.currency:
                took += f" {self.currency}"
        else:
            took, whole = number_of(self.requests, "request"), f"{spent * self.everything:,.0f}"
        more = f"Asking everything takes about {whole}." if self.everything > 1 else "Everything was asked."
        return Claim("spent", f"The choice took {took}. {more}", value=spent, shown=True, line="Cost")


@dataclass(frozen=True)
class ChoiceResult:
    """The chosen run, its largest possible loss, and the cost of the choice.

    Attributes:
        run: its name.
        bound: the most points that it may lose against any run; NaN if too few questions were asked.
        claims: all claims about the choice.
        choice: the race, with runs by number.
        runs: their names.
        questions: the number of questions available.
        rules: the margin and the confidence.
        spent: the cost.
        missing: the number of missing answers.
        outcome: what rates the answers, in words.
        caution: what the outcome is not, as a sentence, or "".
        out_of_money: whether the budget ended the choice.
        repeats: the numbers of rows and questions.
    """

    runs: tuple[str, ...]
    choice: Choice = field(repr=False)
    questions: int
    rules: RaceRules
    spent: Spent
    missing: int = 0
    outcome: str = ""
    caution: str = ""
    out_of_money: bool = False
    repeats: Repeats = field(default_factory=Repeats)

    @property
    def run(self) -> str:
        """The name of the chosen run."""
        return self.runs[self.choice.chosen]

    @property
    def bound(self) -> float:
        """The most points that the chosen run may lose against any run."""
        return 100 * self.choice.bound

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims about the choice."""
        return (*self._chosen(), self.spent.claim(), *self._next(), *self._others())

    def __str__(self) -> str:
        said = self.claims
        return "\n".join([wrapped(lines_of(said)), "", *further(said)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _chosen(self) -> Iterator[Claim]:
        """Yield the chosen run, its largest possible loss, why asking ended, and the confidence."""
        if self.caution:
            yield Claim("outcome", self.caution, shown=True, line="Choose", rank=-1)
        choice, margin = self.choice, self.rules.margin
        names = [self.runs[run] for run in np.flatnonzero(choice.may_be_best)]
        # A choice that ran out of budget may lack a bound, so promise nothing.
        enough, known = choice.bound <= margin, math.isfinite(choice.bound)
        alike = [self.runs[run] for run in np.flatnonzero(choice.last.left & (np.abs(choice.last.behind) < _TIE))]
        text = f"{self.run} answers best so far."
        if enough:
            text = f"Ship {self.run}."
        elif len(alike) > 1:
            text = f"{listed(alike)} answer alike so far; take {self.run}."
        if not known:
            text += " Too few questions were asked to say what choosing it may lose."
        # With a bound of 0, other runs that may be the best are tied: this run is not shown to be the best.
        elif choice.bound == 0 and len(names) == 1:
            text += f" It is shown to be the best of all {len(self.runs)} runs."
        else:
            text += f" It is at most {at_most(choice.bound)} points below the best of all {len(self.runs)} runs."
        yield Claim("choose", text, self.run, value=self.bound, high=self.bound, shown=enough, line="Choose")
        questions = number_of(self.questions, "question")
        asked = f"after {choice.last.questions:,} of {questions}"
        if choice.stopped:
            text = f"Asking stopped {asked}: that is within the margin of {100 * margin:g} points."
        elif self.out_of_money:
            text = f"The budget ended {asked}."
        else:
            text = f"All {questions} are asked."
        yield self._qualifying("end", text, 1, value=choice.last.questions)
        if not choice.stopped and known:
            may = f"Only {names[0]}" if len(names) == 1 else listed(names)
            yield self._qualifying("may be best", f"{may} may be the best.", 2, value=len(names))
        if self.missing:
            are = "is" if self.missing == 1 else "are"
            text = f"{number_of(self.missing, 'answer')} {are} missing; these limits hold whatever they are."
            yield self._qualifying("missing", text, 3, value=self.missing)
        sure = f"{100 * self.rules.confidence:g} of 100 choices"
        text = f"Quality is {self.outcome}. All limits hold together in {sure}, for questions like these."
        yield self._qualifying("confidence", text, 4)
        if self.repeats.any:
            said = " ".join(filter(None, [self.repeats.sentence, self.repeats.contradiction]))
            yield self._qualifying("questions", said, 5, value=self.repeats.questions)

    def _qualifying(self, kind: str, text: str, rank: int, value: float = math.nan) -> Claim:
        """Return a claim that qualifies the one about the chosen run."""
        return Claim(kind, text, value=value, shown=True, qualifies=f"choose: {self.run}", rank=rank)

    def _next(self) -> Iterator[Claim]:
        """Yield the number of questions needed to come within the margin."""
        last = self.choice.last
        if self.choice.stopped or self.choice.bound <= self.rules.margin:
            return
        text = (
            f"To come within {100 * self.rules.margin:g} points takes about {last.needed:,} questions in all if"
            f" differences stay as they are, {last.needed_if_equal:,} if the runs left are equally good."
        )
        if last.needed <= self.questions and self.out_of_money:
            text += " Raise the budget to go on: what is answered is not paid again."
        yield Claim("needed", text, value=last.needed, high=last.needed_if_equal, line="Next")

    def _others(self) -> Iterator[Claim]:
        """Yield how far each other run is behind, and after how many questions."""
        choice, last = self.choice, self.choice.last
        for run, gone in choice.dropped.items():
            reach = gone.behind, gone.low, gone.high
            claim = self._behind(f"dropped after {gone.questions:,} questions, ", run, gone.better, reach, "")
            yield replace(claim, kind="dropped", shown=True)
        for run in np.flatnonzero(last.left).tolist():
            if run == choice.chosen:
                continue
            reach = float(last.behind[run]), float(choice.low[run]), float(choice.high[run])
            end = f" after {last.questions:,} questions"
            claim = self._behind("", run, choice.chosen, reach, end)
            if not choice.may_be_best[run]:
                claim = replace(claim, sentence=f"{claim.sentence} It is shown not to be the best.")
            yield claim

    def _behind(self, begin: str, run: int, better: int, reach: tuple[float, float, float], end: str) -> Claim:
        """Return how far one run is behind another, with limits if they are known."""
        behind, low, high = reach
        limits = f" ({points(low)} to {points(high)})" if np.isfinite(high) else ""
        text = f"{self.runs[run]}: {begin}{points(behind)} points behind {self.runs[better]}{limits}{end}."
        return Claim(
            "behind",
            text,
            self.runs[run],
            self.runs[better],
            value=100 * behind,
            low=100 * low,
            high=100 * high,
        )

    def write(self, folder: Path, about: dict[str, object]) -> None:
        """Write the claims into a folder; ``about`` identifies the choice."""
        # Identify the choice in the file, so that one with another margin cannot take over this folder.
        said = {"choice": about, "run": self.run, "claims": list(plain(self.claims))}
        write_atomic(folder / "choice.json", json.dumps(said, indent=1, ensure_ascii=False) + "\n")


def block_line(number: int, shown: Look, runs: Sequence[str], spent: str) -> str:
    """Return a line on the result of a block."""
    line = f"block {number}: {shown.questions:,} questions, {number_of(int(shown.raced.sum()), 'run')}"
    line += f"; {runs[shown.leader]} leads"
    if np.isfinite(shown.bound):
        line += f", at most {at_most(shown.bound)} points below the best"
    if shown.dropped:
        line += f"; {listed([runs[gone.run] for gone in shown.dropped])} dropped"
    return f"{line}; {spent}"


def replayed(played: Replay, runs: Sequence[str], rules: RaceRules) -> tuple[Claim, ...]:
    """Return the claims from replaying the race on existing answers."""
    choice, chosen = played.choice, runs[played.choice.chosen]
    questions = f"{played.questions:,} questions"
    if choice.stopped:
        text = f"It would have stopped after {choice.last.questions:,} of {questions} with {chosen}"
    else:
        text = f"It would have asked all {questions} and chosen {chosen}"
    if np.isfinite(choice.bound):
        text += f", at most {at_most(choice.bound)} points below the best"
    text += f". Asking everything says {runs[played.best]}."
    once = Claim("replay", text, chosen, value=choice.last.questions, shown=True, line="Choose")
    text = (
        f"In {played.orders:,} random orders {played.within:,} chose a run within {100 * rules.margin:g} points,"
        f" {played.stopped:,} stopped early, {played.broken or 'none'} broke its bound."
    )
    orders = Claim("orders", text, value=played.within, shown=True, line="Choose", rank=1)
    low, middle, high = (100 * np.quantile(played.answers, (0.05, 0.5, 0.95))).tolist()
    cost = f"It asks for {middle:.0f} % of the answers (median of these orders; 9 of 10: {low:.0f} to {high:.0f} %)."
    return once, orders, Claim("answers", cost, value=middle, low=low, high=high, shown=True, line="Cost")
