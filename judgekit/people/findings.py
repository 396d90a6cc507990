"""Sentences about final labels: which are relevant, what they count, how often people agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.agreement import AGAINST_PEOPLE
from judgekit.analysis.wording import correlation, plural
from judgekit.data.columns import Floats
from judgekit.data.labelings import Labeling, Scale
from judgekit.people.mapping import Rule, columns_of
from judgekit.people.reading import People

_FAR: Final = 2.0
_ENOUGH: Final = 25
"""From this many judged questions on, the ratio of two shares is reported: its standard error is then a fifth."""


@dataclass(frozen=True)
class Filled:
    """The numbers of questions with a relevant document.

    Attributes:
        questions: all of them.
        declared: those by the labeling's own declaration, without people.
        final: those by the final labels.
        judged: questions whose whole pool people judged.
        by_people: those among the judged, by people.
        found: questions on which people call a passage relevant that the labeling also labelled.
        kept: those among the found, by the labeling's mapped labels alone.
    """

    questions: int
    declared: int
    final: int
    judged: int
    by_people: int
    found: int
    kept: int

    @property
    def emptied(self) -> bool:
        """Whether the labeling finds no relevant document on over half of the questions on which people do."""
        return 2 * self.kept < self.found

    def refusal(self, name: str) -> str:
        """Return why these final labels are not written, and what to do."""
        return (
            f"No relevant document is left in {self.questions - self.final:,} of {plural(self.questions, 'question')}:"
            f" {name} finds none on {self.found - self.kept:,} of the {self.found:,} questions on which people found"
            " one. Build with another labeling, have people judge more, or write these labels anyway with"
            " --accept-empty (accept_empty=True)"
        )

    def __str__(self) -> str:
        text = f"{self.final:,} of {plural(self.questions, 'question')} have a relevant document"
        if self.judged:
            text += f"; of people's {self.judged:,}, {self.by_people:,}"
        return f"{text}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _calls(scale: Scale, cut: float) -> str:
    """Return the smallest relevant value of a labeling."""
    return "1" if scale.kind == "binary" else f"{cut:.3g} or more"


def relevance(machine: Labeling, rule: Rule, counted: pd.DataFrame, scale: Scale) -> str:
    """Return which labels are relevant, and why."""
    name, calls = machine.name, _calls(machine.scale, rule.cut)
    values, people, weight = columns_of(counted)
    relevant = people >= scale.threshold
    if relevant.any() and not relevant.all():
        theirs, ours = (_percent(weight[side].sum() / weight.sum()) for side in (relevant, values >= rule.cut))
        called = f"people call {theirs} of the judged passages relevant, {name} {ours}"
        return f"Relevant is what {name} calls {calls}: {called}."
    why = "people judged no question's passages as a whole, so their share of relevant ones is not known"
    if len(counted):
        how_many = "all" if relevant.any() else "none"
        why = f"people call {how_many} of the {len(counted):,} judged passages relevant"
    return f"Relevant is what {name} declares, {calls}: {why}."


def gains(name: str, rule: Rule, both: pd.DataFrame) -> Iterator[str]:
    """Yield what labels count, unless they are just relevant or not."""
    if rule.scale.kind == "binary":
        return
    values, people, _ = columns_of(both)
    upper, relevant = values >= rule.cut, people >= rule.scale.threshold
    if len(rule.values) == 2:
        below, above = (f"{gain:.2g}" for gain in rule.gains)
        yield f"A relevant label counts {above}, another {below}: people's mean among them."
    else:
        shown = sorted({round(at) for at in np.linspace(0, len(rule.values) - 1, 5)})
        counts = ", ".join(f"{rule.values[at]:.2g} counts {rule.gains[at]:.2g}" for at in shown)
        yield f"Of {name}'s labels {counts}: people's mean where both say relevant, or both not."
    if not (upper & relevant).any():
        yield (
            f"People and {name} agree on no relevant passage: {name}'s relevant labels count"
            f" {rule.scale.threshold:g}, people's least relevant grade."
        )


def agreeing(name: str, agreed: pd.DataFrame) -> Iterator[str]:
    """Yield a labeling's agreement with people on relevance."""
    if not len(agreed):
        return
    rows = agreed[agreed["on"] == "relevance"]
    columns = [rows[column].tolist() for column in ("coefficient", "value", "ci_low", "ci_high", "undefined_reason")]
    said = []
    for coefficient, value, low, high, reason in zip(*columns, strict=True):
        if coefficient not in ("kappa", *AGAINST_PEOPLE):
            continue
        if np.isnan(value):
            said.append(f"{coefficient} is undefined ({reason})")
        elif coefficient == "kappa" and not np.isnan(low):
            said.append(f"kappa {correlation(value)} ({correlation(low)} to {correlation(high)})")
        else:
            said.append(f"{coefficient} {correlation(value)}")
    yield f"{name} agrees with people: {', '.join(said)}."


def of_existing(people: People) -> Iterator[str]:
    """Yield the caveats of judgments that were not drawn at random."""
    if people.design:
        return
    name = people.labeling.name
    yield f"the judgments of {name} were not drawn at random: agreement holds only for what they judge"
    if people.left_out:
        yield f"{people.left_out:,} judgments of {name} are left out: they are about other questions or passages"


def misfits(name: str, known: pd.DataFrame, mapped: Floats, scale: Scale) -> Iterator[str]:
    """Yield what is wrong with mapped labels compared with people's."""
    if not len(known):
        yield "people judged too few queries to hold any out, so the accuracy of the final labels is unknown"
        return
    if not scale.integral:
        return
    commonest = known["people"].value_counts(normalize=True).iloc[0]
    if (known["held"] == known["people"]).mean() <= commonest:
        yield f"on held-out queries {name} is right no more often than always guessing people's commonest label"
    never = sorted(set(known["people"]) - set(mapped[~np.isnan(mapped)].tolist()))
    if never:
        grades = ", ".join(f"{grade:g}" for grade in never)
        yield f"people gave the grade{'s' if never[1:] else ''} {grades}, to which no label of {name} is mapped"


def apart(name: str, rule: Rule, judged: pd.DataFrame, scale: Scale) -> Iterator[str]:
    """Yield a note if a labeling calls far more or far fewer documents relevant than people, on complete questions."""
    ours = (judged["machine"] >= rule.cut).mean()
    theirs = (judged["people"] >= scale.threshold).mean()
    if judged["query_id"].nunique() < _ENOUGH or not theirs or theirs / _FAR <= ours <= _FAR * theirs:
        return
    yield f"{name} calls {ours / theirs:.2g} times as many passages relevant as people do: {TRUST}"


TRUST: Final = (
    "such labels order runs about as people do (tau .8 to .9 on TREC DL21), but not runs that are nearly equal, and not"
    " runs that the same model reranked; for scores use `judgekit annotate correct`"
)
"""Whether to trust the order of runs by a machine's labels."""
