"""The verdict: one paragraph in plain words about one cell that was fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import Difference, difference, holm

__all__ = ["Candidate", "Primary", "Verdict", "decide"]

ALPHA: Final = 0.05
POWER: Final = 0.8


@dataclass(frozen=True, slots=True)
class Primary:
    """The one cell that the verdict is about.

    Attributes:
        measure: None means the best measure of each labeling, chosen anew inside every resample.
    """

    measure: str | None
    metric: str
    model: str
    depth: int
    level: str
    run: str

    def __str__(self) -> str:
        measure = self.measure or "the best measure of each labeling"
        return (
            f"{measure} against {self.metric} of {self.model}'s answers from {self.depth} documents, {self.level} level"
        )


@dataclass(frozen=True)
class Candidate:
    """A labeling that takes part in the verdict.

    Attributes:
        value: its concordance; draws: the same on every resample, shape (B,).
        tau_b: its tau-b; order: position by cost, the cheapest first, None where the cost is unknown.
    """

    labeling: str
    value: float
    draws: Floats
    tau_b: float
    order: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What can be said.

    Attributes:
        sentences: the paragraph, the sentence that matters most first.
        primary: the cell that it is about.
        best: the labeling with the highest concordance; None where no statement is possible.
        winner: ``best`` where it is better than every other labeling beyond chance, else None.
        ranking: labelings by concordance, the best first.
        worse: labelings that the best is told apart from (Holm over the comparisons with the best).
        not_told_apart: the others.
        tau_order_differs: whether tau-b would put another labeling first.
        cheapest: the cheapest labeling that is not worse than the best by more than the margin, if costs are known.
        margin: that margin, in concordance.
        queries_now: queries that the statement rests on.
        queries_needed: per labeling that the best is not told apart from, how many queries would tell them apart
            with power .8 if the difference seen is the true one; None where it would take more than a hundred
            times as many as there are.
        excluded: labelings that do not take part, with the reason.
    """

    sentences: tuple[str, ...]
    primary: Primary
    best: str | None
    winner: str | None
    ranking: tuple[str, ...]
    worse: tuple[str, ...]
    not_told_apart: tuple[str, ...]
    tau_order_differs: bool
    cheapest: str | None
    margin: float
    queries_now: int
    queries_needed: Mapping[str, int | None]
    excluded: Mapping[str, str]

    @property
    def text(self) -> str:
        """The paragraph."""
        return " ".join(self.sentences)

    def __str__(self) -> str:
        return self.text


def decide(
    candidates: Sequence[Candidate],
    primary: Primary,
    *,
    margin: float,
    queries: int,
    level: float,
    excluded: Mapping[str, str],
) -> Verdict:
    """Return the verdict over the labelings that take part."""
    ranked = sorted(candidates, key=lambda c: (-c.value, c.labeling))
    if not ranked:
        return _nothing(primary, margin, queries, excluded, "No labeling has a concordance in this cell.")
    best, others = ranked[0], ranked[1:]
    gaps = {o.labeling: difference(best.value, o.value, best.draws - o.draws, level) for o in others}
    adjusted = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    clear = bool(others) and all(gap.p <= ALPHA and gap.value > 0 for gap in gaps.values())
    worse = tuple(gaps) if clear else tuple(name for name, p in adjusted.items() if p <= ALPHA)
    open_ = tuple(name for name in gaps if name not in worse)
    needed = {name: _needed(gaps[name], queries) for name in open_}
    cheapest = _cheapest(ranked, gaps, margin)
    tau_first = max(ranked, key=lambda c: (c.tau_b if math.isfinite(c.tau_b) else -2.0, c.value))
    verdict = Verdict(
        (), primary, best.labeling, best.labeling if clear else None, tuple(c.labeling for c in ranked), worse, open_,
        tau_first is not best, cheapest, margin, queries, needed, dict(excluded),
    )  # fmt: skip
    return replace(verdict, sentences=_words(verdict, ranked, gaps, tau_first))


def _nothing(primary: Primary, margin: float, queries: int, excluded: Mapping[str, str], why: str) -> Verdict:
    sentences = (f"No verdict on {primary}.", why, *_left_out(excluded))
    return Verdict(sentences, primary, None, None, (), (), (), False, None, margin, queries, {}, dict(excluded))


def _needed(gap: Difference, queries: int) -> int | None:
    """Return the number of queries that detects the difference seen with `POWER`, if it is the true one."""
    from scipy.special import ndtri

    if not (gap.se > 0 and gap.value > 0):
        return None
    times = ((float(ndtri(1 - ALPHA / 2)) + float(ndtri(POWER))) * gap.se / gap.value) ** 2
    return math.ceil(queries * times) if times <= 100 else None


def _cheapest(ranked: Sequence[Candidate], gaps: Mapping[str, Difference], margin: float) -> str | None:
    known = sorted((c for c in ranked if c.order is not None), key=lambda c: (c.order, -c.value))
    for candidate in known:
        if candidate is ranked[0] or gaps[candidate.labeling].upper <= margin:
            return candidate.labeling
    return None


def _words(
    verdict: Verdict, ranked: Sequence[Candidate], gaps: Mapping[str, Difference], tau_first: Candidate
) -> tuple[str, ...]:
    best = ranked[0]
    chance = np.round(100 * best.value)
    parts = [
        f"On {verdict.queries_now} queries ({verdict.primary}), the scores of {best.labeling!r} follow answer quality"
        f" best: of two cases whose answers differ in quality they favour the better one in {chance:.0f} of 100"
        f" (concordance {best.value:.3f}; chance is 50)."
    ]
    if verdict.winner:
        worse = ", ".join(repr(name) for name in verdict.worse)
        parts.append(f"It is better than {worse} beyond chance.")
    elif gaps:
        parts.append("That is no proof that it is the best.")
        parts.append(f"It cannot be told apart from {', '.join(map(repr, verdict.not_told_apart))}.")
        if verdict.worse:
            parts.append(f"It is better than {', '.join(map(repr, verdict.worse))} beyond chance.")
    else:
        parts.append("There is nothing to compare it with.")
    if verdict.tau_order_differs:
        parts.append(f"Kendall's tau-b would put {tau_first.labeling!r} first.")
    if verdict.cheapest and verdict.cheapest != best.labeling:
        parts.append(
            f"The cheapest that is not worse by more than {verdict.margin:g} in concordance is {verdict.cheapest!r}."
        )
    for name, needed in verdict.queries_needed.items():
        if needed is not None:
            parts.append(f"About {needed:,} queries would settle it against {name!r} if the difference is as it looks.")
    return (*parts, *_left_out(verdict.excluded))


def _left_out(excluded: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name!r} takes no part: {why}." for name, why in excluded.items())
