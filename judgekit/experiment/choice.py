"""What a choice of run says: claims, a table of its blocks, and the page with the intervals that narrow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.claims import Claim, further, lines_of, plain, wrapped
from judgekit.analysis.race import Choice, Look, RaceRules, Replay
from judgekit.client.budget import Amount
from judgekit.data.files import write_table
from judgekit.data.streams import write_atomic
from judgekit.report.drawing import Chart, Dot, Panel, Value
from judgekit.report.page import generic, shell
from judgekit.report.svg import Figure

_INTERVALS: Final = 40
"""The most intervals of a run in the picture."""


def points(quality: float) -> str:
    """Return quality in points."""
    return f"{100 * quality:.1f}".replace("-0.0", "0.0").replace("-", "−")


def at_most(bound: float) -> str:
    """Return a bound in points, rounded up."""
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f}"


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return names as one reads them: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


@dataclass(frozen=True)
class Spent:
    """What a choice took, whoever paid for it and when.

    Attributes:
        requests: how many were needed.
        money: their price; None where no price is known.
        everything: how many times as much asking everything takes, by the number of different lists.
        limit: the most money that may be spent, or None.
        currency: of the money.
    """

    requests: int
    money: float | None
    everything: float
    limit: float | None = None
    currency: str = ""

    def claim(self) -> Claim:
        """Say what was spent, and what asking everything takes."""
        if not self.requests:
            return Claim("spent", "No model was asked.", shown=True, line="Cost")
        if self.money:
            spent, took, every = self.money, f"{self.money:,.2f}", f"{self.money * self.everything:,.2f}"
            if self.limit is not None:
                took += f" of {self.limit:,.10g}"
            if self.currency:
                took += f" {self.currency}"
        else:
            spent, took = float(self.requests), number_of(self.requests, "request")
            every = f"{self.requests * self.everything:,.0f}"
        more = f"Asking everything takes about {every}." if self.everything > 1 else "Everything was asked."
        return Claim("spent", f"The choice took {took}. {more}", value=spent, shown=True, line="Cost")


@dataclass(frozen=True)
class Chosen:
    """The run that was chosen, what choosing it may lose, and what was asked for that.

    Attributes:
        run: its name.
        bound: the most points that it may lose against any run; NaN where too little was asked to say.
        claims: everything that is said.
        choice: the race, with runs by number.
        blocks: a row for each block and run asked: its mean, how far it lies behind the leader with the limits of it,
            and the leader's bound, in points (NaN: not known yet); requests and money are sums up to the block.
        runs: their names.
        questions: how many there are to ask.
        rules: the margin and the confidence.
        spent: what it took.
        missing: answers that are missing.
        outcome: what the answers are rated by, in words.
        caution: what that is not, as a sentence, or "".
        out_of_money: whether the budget ended it.
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
    blocks: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)

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
        """Everything that is said of the choice."""
        return (*self._chosen(), self.spent.claim(), *self._next(), *self._others())

    def __str__(self) -> str:
        said = self.claims
        return "\n".join([wrapped(lines_of(said)), "", *further(said)])

    def _repr_html_(self) -> str:
        drawn = figure(self)
        return f"<pre>{escape(str(self))}</pre>" + ("" if drawn is None else drawn._repr_html_())

    def _chosen(self) -> Iterator[Claim]:
        """Say which run, what it may lose, why asking ended, and how sure all of it is."""
        if self.caution:
            yield Claim("outcome", self.caution, shown=True, line="Choose", rank=-1)
        choice, runs, margin = self.choice, len(self.runs), 100 * self.rules.margin
        alone = choice.may_be_best.sum() == 1
        enough = choice.bound <= self.rules.margin
        if math.isnan(choice.bound):
            text = f"{self.run} answers best so far. Too few questions were asked to say what choosing it may lose."
        elif choice.bound == 0 and alone:
            text = f"Ship {self.run}. It is shown to be the best of all {runs} runs."
        else:
            verb = f"Ship {self.run}." if enough else f"{self.run} answers best so far."
            text = f"{verb} It is at most {at_most(choice.bound)} points below the best of all {runs} runs."
        yield Claim("choose", text, self.run, value=self.bound, high=self.bound, shown=enough, line="Choose")
        asked = f"after {choice.last.questions:,} of {number_of(self.questions, 'question')}"
        if choice.stopped:
            end = f"Asking stopped {asked}: that is within the margin of {margin:g} points."
        elif self.out_of_money:
            end = f"The budget ended {asked}."
        else:
            end = f"All {number_of(self.questions, 'question')} are asked."
        key = f"choose: {self.run}"
        yield Claim("end", end, value=choice.last.questions, shown=True, qualifies=key, rank=1)
        if not choice.stopped and np.isfinite(choice.bound):
            names = [self.runs[run] for run in np.flatnonzero(choice.may_be_best)]
            may = f"Only {names[0]} may" if alone else f"{listed(names)} may"
            yield Claim("may be best", f"{may} be the best.", value=len(names), shown=True, qualifies=key, rank=2)
        if self.missing:
            are = "is" if self.missing == 1 else "are"
            text = f"{number_of(self.missing, 'answer')} {are} missing; these limits hold whatever they are."
            yield Claim("missing", text, value=self.missing, shown=True, qualifies=key, rank=3)
        sure = f"{100 * self.rules.confidence:g} of 100 choices"
        text = f"Quality is {self.outcome}. All limits hold together in {sure}, for questions like these."
        yield Claim("confidence", text, shown=True, qualifies=key, rank=4)

    def _next(self) -> Iterator[Claim]:
        """Say how many questions it would take."""
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
        """Say of each other run after how many questions it is how far behind."""
        last = self.choice.last
        for run, gone in self.choice.dropped.items():
            better = self.runs[gone.better]
            text = (
                f"{self.runs[run]}: dropped after {gone.questions:,} questions, {points(gone.behind)} points behind"
                f" {better} ({points(gone.low)} to {points(gone.high)})."
            )
            yield Claim(
                "dropped",
                text,
                self.runs[run],
                better,
                value=100 * gone.behind,
                low=100 * gone.low,
                high=100 * gone.high,
                shown=True,
            )
        for run in np.flatnonzero(last.left).tolist():
            if run == self.choice.chosen:
                continue
            low, high = float(self.choice.low[run]), float(self.choice.high[run])
            text = f"{self.runs[run]}: {points(last.behind[run])} points behind {self.run}"
            if np.isfinite(high):
                text += f" ({points(low)} to {points(high)})"
            text += f" after {last.questions:,} questions."
            if not self.choice.may_be_best[run]:
                text += " It is shown not to be the best."
            behind = 100 * float(last.behind[run])
            yield Claim("behind", text, self.runs[run], self.run, value=behind, low=100 * low, high=100 * high)

    def write(self, folder: Path, about: dict[str, object]) -> None:
        """Write claims, blocks and page into a folder; ``about`` says which choice it is."""
        said = {"choice": about, "run": self.run, "claims": list(plain(self.claims))}
        write_atomic(folder / "choice.json", json.dumps(said, indent=1, ensure_ascii=False) + "\n")
        write_table(self.blocks, folder / "blocks.csv")
        write_atomic(folder / "choice.html", page(self))


def block_line(number: int, shown: Look, runs: Sequence[str], spent: str) -> str:
    """Return what a block showed, in a line."""
    parts = [f"block {number}: {shown.questions:,} questions, {number_of(int(shown.raced.sum()), 'run')}"]
    lead = f"{runs[shown.leader]} leads"
    if np.isfinite(shown.bound):
        lead += f", at most {at_most(shown.bound)} points below the best"
    parts.append(lead)
    if shown.dropped:
        parts.append(f"{listed([runs[gone.run] for gone in shown.dropped])} dropped")
    return "; ".join([*parts, spent])


def block_rows(
    number: int, shown: Look, runs: Sequence[str], means: Sequence[float], taken: Amount
) -> list[dict[str, object]]:
    """Return the rows of a block in the table of blocks."""

    def known(value: float) -> float:
        return round(100 * value, 4) if np.isfinite(value) else math.nan

    rows: list[dict[str, object]] = []
    for run in np.flatnonzero(shown.raced).tolist():
        rows.append(
            {
                "block": number,
                "questions": shown.questions,
                "requests": taken.requests,
                "money": math.nan if taken.money is None else round(taken.money, 6),
                "run": runs[run],
                "left": int(shown.left[run]),
                "mean": known(means[run]),
                "behind": known(shown.behind[run]),
                "behind_low": known(shown.low[run]),
                "behind_high": known(shown.high[run]),
                "bound": known(shown.bound),
            }
        )
    return rows


def figure(chosen: Chosen) -> Figure | None:
    """Return the picture of a choice: how the interval of each run narrows over questions; None before a first look."""
    looks = [shown for shown in chosen.choice.looks if np.isfinite(shown.bound)]
    if not looks:
        return None
    every = range(0, len(looks), math.ceil(len(looks) / _INTERVALS))
    thinned = [looks[at] for at in sorted({*every, len(looks) - 1})]
    value = Value("points behind the leader", held=(0.0, 100 * chosen.rules.margin))
    panels = {}
    for run, name in enumerate(chosen.runs):
        if run == chosen.choice.chosen:
            title = f"{name} (chosen): at most so far below the best"
            dots = [
                Dot(name, at=seen.questions, value=100 * seen.bound, digits=1) for seen in thinned if seen.leader == run
            ]
        else:
            title = name
            dots = [_behind(name, run, seen) for seen in thinned if seen.raced[run]]
        if dots:
            panels[title] = Panel(value, dots)
    return Chart(
        "race",
        "How far each run lies behind the leader, block by block",
        f"Intervals hold together at {100 * chosen.rules.confidence:g} %, however often one looks. A run whose interval"
        " lies above 0 drops out.",
        panels,
        {name: place for place, name in enumerate(chosen.runs)},
        across="questions",
        straight=True,
        high=150,
    ).lines()


def _behind(name: str, run: int, seen: Look) -> Dot:
    """Return how far a run lies behind the leader after a block."""
    return Dot(
        series=name,
        at=seen.questions,
        value=100 * float(seen.behind[run]),
        low=100 * float(seen.low[run]),
        high=100 * float(seen.high[run]),
        digits=1,
    )


def page(chosen: Chosen) -> str:
    """Return the page of a choice."""
    said = chosen.claims
    return shell(
        "choice.html",
        lines=lines_of(said),
        further=further(said),
        figure=figure(chosen),
        blocks=chosen.blocks,
        run=chosen.run,
        generic=partial(generic, confidence=chosen.rules.confidence),
    )


def replayed(played: Replay, runs: Sequence[str], rules: RaceRules) -> tuple[Claim, ...]:
    """Return what playing the race on answers that exist says."""
    choice, margin = played.choice, f"{100 * rules.margin:g} points"
    chosen, best = runs[choice.chosen], runs[played.best]
    asked = f"{choice.last.questions:,} of {played.questions:,} questions"
    if choice.stopped:
        first = f"It would have stopped after {asked} with {chosen}"
    else:
        first = f"It would have asked all {played.questions:,} questions and chosen {chosen}"
    bound = "" if math.isnan(choice.bound) else f", at most {at_most(choice.bound)} points below the best"
    yes = Claim(
        "replay",
        f"{first}{bound}. Asking everything says {best}.",
        chosen,
        value=choice.last.questions,
        shown=True,
        line="Choose",
    )
    low, middle, high = (100 * float(np.quantile(played.answers, at)) for at in (0.05, 0.5, 0.95))
    broken = "none" if not played.broken else f"{played.broken:,}"
    text = (
        f"In {played.orders:,} random orders {played.within:,} chose a run within {margin}, {played.stopped:,} stopped"
        f" early, {broken} broke its bound."
    )
    orders = Claim("orders", text, value=played.within, shown=True, line="Choose", rank=1)
    cost = f"It asks for {middle:.0f} % of the answers (median of these orders; 9 of 10: {low:.0f} to {high:.0f} %)."
    return yes, orders, Claim("answers", cost, value=middle, low=low, high=high, shown=True, line="Cost")
