"""The decision: the list of claims on one case, and its views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pandas as pd

from judgekit.analysis.case import Case
from judgekit.analysis.claims import BASED_ON, Claim, about_all, claims_table, further, lines_of, recorded, wrapped
from judgekit.analysis.controls import controls
from judgekit.analysis.costs import ON_COSTS
from judgekit.analysis.failing import ON_QUESTIONS_THAT_FAIL
from judgekit.analysis.graded import claims as graded_claims
from judgekit.analysis.keeping import BIASES, KEEP, ON_EACH_LABELING, ON_THE_LABELS_TO_KEEP, about_labels
from judgekit.analysis.nesting import nested
from judgekit.analysis.partly_rated import claims as partly_claims
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, Primary
from judgekit.analysis.resampling import percent
from judgekit.analysis.samples import Sampled, claims as sample_claims
from judgekit.analysis.shipping import (
    CHOICE,
    ON_EACH_RUN,
    ON_THE_CHOICE,
    all_alike,
    drawn_questions,
    each_run,
    shipping,
)
from judgekit.analysis.two_levels import ON_BOTH_LEVELS
from judgekit.analysis.unpaired import claims as unpaired_claims
from judgekit.analysis.without_references import ON_REFERENCES
from judgekit.analysis.wording import correlation, plural
from judgekit.answers.direction import by_name
from judgekit.data.questions import UNKNOWN
from judgekit.notebook import NotebookRepr

NO_DECISION: Final = "no decision"
_FIRST: Final = -9
_LAST: Final = 9
"""The ranks of claims at the beginning and at the end of a line."""
ClaimMaker = Callable[[Case], Iterable[Claim]]

ON_RUNS: Final[tuple[ClaimMaker, ...]] = (
    *ON_THE_CHOICE,
    *ON_THE_LABELS_TO_KEEP,
    *ON_REFERENCES,
    nested,
    partial(controls, use=CHOOSE_RUNS),
    *ON_EACH_RUN,
    *ON_EACH_LABELING,
    *ON_BOTH_LEVELS,
)
ON_ALL: Final[tuple[ClaimMaker, ...]] = (
    *ON_QUESTIONS_THAT_FAIL,
    partial(controls, use=FIND_QUESTIONS),
    about_labels,
    *ON_COSTS,
)
"""The functions that make claims. Each module lists its findings at its end, so that a new one changes that file
only."""


@dataclass(frozen=True, repr=False)
class Decision(NotebookRepr):
    """What to do, why, at what cost, and what could overturn it.

    Attributes:
        primary: the cell that it is about.
        claims: all claims, see `judgekit.analysis.claims`.
    """

    primary: Primary
    claims: tuple[Claim, ...]

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines: a title and its sentences each."""
        return lines_of(self.claims)

    @property
    def text(self) -> str:
        """The lines, wrapped to 100 characters."""
        return wrapped(self.lines)

    @property
    def details(self) -> tuple[str, ...]:
        """The sentences of further claims."""
        return tuple(further(self.claims))

    def _first(self, kind: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.kind == kind), None)

    @property
    def kept(self) -> str:
        """The labeling to keep for later runs; "" if none is shown to be useful."""
        keep = self._first(KEEP)
        return "" if keep is None else keep.subject

    @property
    def withheld(self) -> str:
        """Why there is no decision; "" where there is one."""
        nothing = self._first(NO_DECISION)
        return "" if nothing is None else nothing.against

    @property
    def leader(self) -> str:
        """The run to ship so far; "" if the decision is not about runs."""
        choice = self._first(CHOICE)
        return "" if choice is None else choice.subject

    @property
    def table(self) -> pd.DataFrame:
        """A row for each claim."""
        return claims_table(self.claims)

    @property
    def markdown(self) -> str:
        """The lines as a table of Markdown, with further claims folded away below it."""
        # A pipe in a name would begin a new cell.
        rows = [f"| **{title}** | {text.replace('|', chr(92) + '|')} |" for title, text in self.lines]
        folded = ["<details><summary>What was found</summary>", *self.details, "</details>"]
        return "\n".join(["| | |", "| --- | --- |", *rows]) + "\n\n" + "\n\n".join(folded)

    def of(self, kind: str) -> pd.DataFrame:
        """Return the claims of a kind as a table."""
        table = self.table
        return table[table["kind"] == kind].reset_index(drop=True)

    def record(self) -> dict[str, Any]:
        """Return the decision as plain values, for JSON."""
        return recorded(self.claims)

    def __repr__(self) -> str:
        return self.text


def decide_on(case: Case) -> Decision:
    """Return the decision on a case."""
    return Decision(case.primary, tuple(_claims(case)))


def no_decision(primary: Primary, why: str) -> Decision:
    """Return that there is no decision, and why."""
    line = "Choose" if primary.use == CHOOSE_RUNS else "Failing"
    claim = Claim(NO_DECISION, f"There is no decision. {why}", against=why, line=line)
    return Decision(primary, (claim, about(primary)))


def about(primary: Primary) -> Claim:
    """Return what a decision is about."""
    return Claim("about", f"This is about {primary}.")


def based_on(case: Case) -> Claim:
    """Return what was compared, and the meaning of the decision's units."""
    primary, panel = case.primary, case.panel
    metric = "exact match (em)" if primary.metric == "em" else primary.metric
    quality = case.background.quality or f"the {metric} of {primary.rated}"
    said = f"{plural(case.questions, 'question')}, {plural(len(panel.runs), 'run')}. Quality is {quality}"
    if not case.declared.point and len(panel.runs) > 1:
        said += " (1 point = .01)"
    said += "."
    if case.eligible:
        said += (
            f" r correlates a run's score by the labels ({primary.measure}) with quality, within each question (0 none,"
            " 1 perfect)."
        )
    said += f" Ranges are {percent(case.rules.confidence)} intervals."
    return Claim("about", said, line=BASED_ON, rank=_FIRST)


def biases(claims: Iterable[Claim]) -> dict[str, tuple[str, ...]]:
    """Return by labeling the sentences that say how its labels are biased."""
    by_name: dict[str, list[str]] = {}
    for claim in claims:
        if claim.kind in BIASES:
            by_name.setdefault(claim.subject, []).append(claim.sentence)
    return {name: tuple(dict.fromkeys(sentences)) for name, sentences in by_name.items()}


def _claims(case: Case) -> Iterator[Claim]:
    yield from _on_the_outcome(case)
    several = len(case.panel.runs) > 1
    if several and case.constant is not None:
        yield from all_alike(case, case.constant)
    # Ratings about one run each do not compare runs on a question, so no labeling can follow them.
    elif case.unpaired is not None:
        yield from unpaired_claims(case.unpaired, CHOICE, "Choose")
        if case.unpaired.claimable:
            yield from shipping(case)
            yield from drawn_questions(case)
            yield from each_run(case)
    elif several and case.resamples.units(case.answered) < 2:
        yield Claim(CHOICE, "No run is chosen: a single question says nothing of others.", line="Choose")
    elif several:
        for make in ON_RUNS:
            yield from make(case)
    for make in ON_ALL:
        yield from make(case)
    if case.unchecked:
        said = "Answers do not say which documents they were made from, so their contexts are not checked."
        yield Claim("unchecked", said, qualifies=KEEP)
    yield based_on(case)


def _on_the_outcome(case: Case) -> Iterator[Claim]:
    """Yield what quality is and is not; it comes first."""
    first = "Choose" if len(case.panel.runs) > 1 else "Failing"
    checked = case.graded is not None and case.graded.decides
    if case.graded is not None:
        yield from graded_claims(case.graded, case.primary.metric, CHOICE)
    if case.partly is not None:
        yield from partly_claims(case.partly, case.by_answers, CHOICE)
    # People's grades settle what an LLM's rating leaves open.
    if case.declared.caution and not checked:
        yield Claim("caution", case.declared.caution, line=first, rank=-2)
    if case.background.quality:
        said = f"Quality means {case.background.quality}, not answers: nothing here says which run answers better."
        yield Claim("quality", said, line=first, rank=-1)
    if case.declared.point:
        yield Claim("point", f"{case.declared.point}.", line=BASED_ON)
    yield from case.background.outcome
    yield from counted_questions(case)
    if case.sampled is not None:
        yield from sample_claims(case.sampled, BASED_ON, _LAST)
        yield from of_single_answers(case, case.sampled)
    yield from reversed_scores(case)


def counted_questions(case: Case) -> Iterator[Claim]:
    """Yield that questions are counted instead of rows, if some repeat; or that this is unknown."""
    counted = Claim("questions", "", line=BASED_ON, rank=_LAST)
    repeats = case.repeats
    if repeats is not None:
        if repeats.any:
            said = " ".join(filter(None, [repeats.sentence, repeats.contradiction]))
            yield replace(counted, sentence=said, value=repeats.questions, shown=True)
    # Declared groups decide what belongs together, and ratings of live traffic count one by one.
    elif case.resamples.groups is None and case.unpaired is None and case.constant is None:
        yield replace(counted, sentence=UNKNOWN)


def reversed_scores(case: Case) -> Iterator[Claim]:
    """Yield that these data do not test a labeling that was reversed because of them."""
    for name in case.panel.labelings:
        if name in case.directions.reverse and case.background.needs.get(name) is None and by_name(name) != "lower":
            said = f"You reversed {name}. If these data were the reason, only other questions can say how it follows."
            yield Claim("reversed", said, name, qualifies=about_all(name))


def of_single_answers(case: Case, found: Sampled) -> Iterator[Claim]:
    """Yield the r of single answers: r depends on the number of answers, which differs between experiments."""
    kept = case.kept
    if kept is None or math.isnan(found.share.value):
        return
    single = kept.r.value * math.sqrt(max(found.narrowing, 0.0))
    said = f"r {correlation(kept.r.value)} holds for means of these answers; of single answers it would be about"
    yield Claim("single answers", f"{said} {correlation(single)}.", kept.name, value=single)
