"""What labels are wanted for, and what each labeling is shown to be worth for it.

Two uses, never mixed. *Choose between retrievers*: on the same question, does the run with the higher score get the
better answer, and what is won by choosing so? *Find the questions that fail*: of two questions of one run, does the one
with the higher score get the better answer? A labeling that tells easy questions from hard ones wins the second, and
may be worth nothing for the first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.controls import TWIN
from judgekit.analysis.gain import Cheapest, Gain, attainable_gain, cheapest, decision_gain
from judgekit.analysis.inputs import Bools, Panel
from judgekit.analysis.intervals import MIN_DIFFERING, MIN_EACH_SIDE, Outranked, better_than
from judgekit.analysis.levels import Estimate, Resamples
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS
from judgekit.analysis.unknown import lowest_highest, unknown_queries

__all__ = ["Found", "Gains", "Series", "Standing", "choose_runs", "find_questions"]

CHANCE: Final = 0.5
POWER: Final = 0.8
_RANGE: Final = 0.8
"""Confidence of the range of a number of queries."""
_FAR: Final = 20
"""A number of queries more than so many times those at hand is as good as none."""


@dataclass(frozen=True)
class Standing:
    """What one labeling is shown to be worth for one use.

    Attributes:
        labeling: its name.
        concordance, low, high: with its interval.
        tau_b: Kendall's tau-b in the same cell.
        gain: the decision gain (choose-runs only).
        order: its place by cost, the cheapest 1; None where the cost is unknown.
        beats: by control, whether it is shown to do better than it.
    """

    labeling: str
    concordance: float
    low: float
    high: float
    tau_b: float
    gain: Gain | None = field(default=None, compare=False)
    order: int | None = None
    beats: Mapping[str, bool] = field(default_factory=dict)

    @property
    def guides(self) -> bool:
        """Whether it is shown to do better than chance."""
        return self.low > CHANCE


@dataclass(frozen=True)
class Gains:
    """What choosing between the runs is worth, in the unit of quality.

    Attributes:
        by_answers: what picking by the answers themselves wins over a coin flip, from half of the queries.
        attainable: the most that any choice could win.
        confidence: of the intervals.
        cheapest: the cheapest labeling that will do, by name; "" where no labels are needed, None where it cannot be
            told.
        loss: the most that it may lose against the best.
    """

    by_answers: float
    attainable: float
    confidence: float
    cheapest: str | None = None
    loss: float = float("nan")


@dataclass(frozen=True)
class Found:
    """What was found for one use in one cell.

    Attributes:
        use: which.
        queries: queries that went in.
        differing: queries on which runs differ in quality (choose-runs), else ``queries``.
        runs: the runs that it is about.
        standings: the labelings that take part, the best first.
        better: ``(a, b)`` for every labeling a that is shown to be better than b; all claims hold together.
        same: pairs that decide alike in every resample.
        needed: for labelings that the best is not told apart from, how many queries would do it with power .8 if the
            difference seen is the true one, as a range; None where the range has no end.
        gains: what choosing is worth (choose-runs only).
        controls: concordance of each control, with its interval.
        unknown: by labeling, on how many queries labels are missing that leave its scores open.
    """

    use: str
    queries: int
    differing: int
    runs: tuple[str, ...]
    standings: tuple[Standing, ...]
    better: frozenset[tuple[str, str]] = frozenset()
    same: frozenset[tuple[str, str]] = frozenset()
    needed: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    gains: Gains | None = None
    controls: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def winner(self) -> str | None:
        """The labeling that is shown to be better than chance and than every other one."""
        if not self.standings or not self.standings[0].guides or len(self.standings) < 2:
            return None
        first, *others = self.standings
        return first.labeling if all((first.labeling, x.labeling) in self.better for x in others) else None


@dataclass(frozen=True)
class Series:
    """A labeling's or a control's concordance with all that a claim about it needs.

    Attributes:
        name: of the labeling or the control.
        estimate: its coefficients with their draws.
        low, high: the interval of the concordance.
        ends: the estimate with the missing labels at their worst and at their best; None where none are missing.
    """

    name: str
    estimate: Estimate
    low: float
    high: float
    ends: tuple[Estimate, Estimate] | None = None

    @property
    def worst(self) -> Estimate:
        """The estimate with the missing labels at their worst."""
        return self.ends[0] if self.ends else self.estimate

    @property
    def best(self) -> Estimate:
        """The estimate with the missing labels at their best."""
        return self.ends[1] if self.ends else self.estimate


def _claims(series: Sequence[Series], confidence: float, minority: int | None) -> Outranked:
    """Say which series is better than which, from the draws of their concordance."""
    size = len(series)
    n = min(one.worst.units for one in series)
    grouped = n < min(one.worst.n for one in series)
    freedom, enough = np.full((size, size), n - 1), np.full((size, size), not grouped or n >= MIN_DIFFERING)
    if minority is not None:
        freedom[:] = min(max(minority, 2), n) - 1
        enough &= minority >= MIN_EACH_SIDE
    else:
        for a in range(size):
            for b in range(size):
                one, other = series[a].worst.each, series[b].best.each
                gap = (one[0] if one else np.empty(0)) - (other[0] if other else np.empty(0))
                ahead, behind = int((gap > 1e-9).sum()), int((gap < -1e-9).sum())
                freedom[a, b] = min(ahead + behind, n) - 1
                enough[a, b] &= ahead + behind >= MIN_DIFFERING and min(ahead, behind) >= MIN_EACH_SIDE
    worst, best = (
        (np.array([each.values[0] for each in side]), np.stack([each.draws[0] for each in side]))
        for side in ([one.worst for one in series], [one.best for one in series])
    )
    return better_than(*worst, confidence=confidence, n=n, freedom=freedom, enough=enough, best=best)


def _beats(one: Series, control: Series, confidence: float, minority: int | None) -> bool:
    return bool(_claims([one, control], confidence, minority).better[0, 1])


def _needed(best: Series, other: Series, queries: int, confidence: float) -> tuple[int, int] | None:
    """Return how many queries of the experiment would tell two labelings apart; None where that has no upper end."""
    from scipy.special import ndtri

    gap = float(best.estimate.values[0] - other.estimate.values[0])
    draws = best.estimate.draws[0] - other.estimate.draws[0]
    error = float(np.std(draws[np.isfinite(draws)], ddof=1)) if np.isfinite(draws).any() else 0.0
    reach = float(ndtri((1 + _RANGE) / 2)) * error
    if not gap - reach > 0 or not error > 0:
        return None
    wanted = (float(ndtri((1 + confidence) / 2)) + float(ndtri(POWER))) * error
    few, many = (int(np.ceil(queries * (wanted / edge) ** 2)) for edge in (gap + reach, gap - reach))
    return (max(few, queries + 1), max(many, queries + 1)) if many <= _FAR * queries else None


def _found(
    use: str,
    panel: Panel,
    series: Sequence[Series],
    controls: Sequence[Series],
    order: Mapping[str, int],
    confidence: float,
    *,
    queries: int,
    differing: int,
    minority: int | None,
    gains: Mapping[str, Gain],
    worth: Gains | None,
) -> Found:
    ranked = sorted(series, key=lambda x: (-float(x.estimate.values[0]), x.name))
    claims = _claims(ranked, confidence, minority) if len(ranked) > 1 else None
    pairs = [(a, b) for a in range(len(ranked)) for b in range(len(ranked)) if a != b]
    better = frozenset((ranked[a].name, ranked[b].name) for a, b in pairs if claims and claims.better[a, b])
    return Found(
        use,
        queries,
        differing,
        panel.runs,
        tuple(
            Standing(
                one.name,
                float(one.estimate.values[0]),
                one.low,
                one.high,
                one.estimate.value("tau_b"),
                gains.get(one.name),
                order.get(one.name),
                {
                    control.name: _beats(one, control, confidence, minority)
                    for control in controls
                    if _for(control, one)
                },
            )
            for one in ranked
        ),
        better,
        frozenset((ranked[a].name, ranked[b].name) for a, b in pairs if claims and claims.same[a, b]),
        {
            other.name: _needed(ranked[0], other, queries, confidence)
            for other in ranked[1:]
            if (ranked[0].name, other.name) not in better
        },
        worth,
        {c.name: (float(c.estimate.values[0]), c.low, c.high) for c in controls},
        unknown_queries(panel),
    )


def _for(control: Series, one: Series) -> bool:
    """Return whether a control is beside a labeling: all are, but another labeling's twin."""
    return not control.name.startswith(TWIN) or control.name == TWIN + one.name


def choose_runs(
    panel: Panel,
    series: Sequence[Series],
    controls: Sequence[Series],
    resamples: Resamples,
    order: Mapping[str, int],
    confidence: float,
    *,
    keep: float,
    margin: float | None,
) -> Found:
    """Return what the labelings are worth to choose between the runs of a panel.

    Args:
        panel: the scores and the quality of the cell.
        series: the labelings that take part, at the within-query level.
        controls: the same for the controls.
        resamples: of the queries.
        order: place of each labeling by cost, where it is known.
        confidence: of everything.
        keep: the share of the best's gain that a cheaper labeling must keep.
        margin: what it may lose instead, in the unit of quality.
    """
    where = np.all([panel.defined(one.estimate.labeling).all(axis=0) for one in series], axis=0)
    quality, weights = panel.quality[:, where], resamples.weights[where]
    queries = int(where.sum())
    gains = {one.name: _gain(panel, one.estimate.labeling, where, resamples) for one in series}
    groups = None if resamples.groups is None else resamples.groups[where]
    by_answers = decision_gain(quality, quality, weights, groups).value
    worth = Gains(by_answers, attainable_gain(quality, weights), confidence)
    known = sorted((o, -gains[name].value, name) for name, o in order.items() if name in gains)
    if known:
        names = [name for _, _, name in known]
        chosen: Cheapest = cheapest(
            [gains[name] for name in names], resamples.units(where), keep=keep, margin=margin, confidence=confidence
        )
        name = None if chosen.labeling is None else "" if chosen.labeling < 0 else names[chosen.labeling]
        worth = replace(worth, cheapest=name, loss=chosen.loss)
    return _found(
        CHOOSE_RUNS,
        panel,
        series,
        controls,
        order,
        confidence,
        queries=queries,
        differing=min(one.estimate.n for one in series),
        minority=None,
        gains=gains,
        worth=worth,
    )


def _gain(panel: Panel, labeling: int, where: Bools, resamples: Resamples) -> Gain:
    """Return the decision gain of a labeling, with its worst and best case where labels are missing."""

    def of(scores: Floats, where: Bools, other: Floats | None = None) -> Gain:
        groups = None if resamples.groups is None else resamples.groups[where]
        rest = None if other is None else other[labeling][:, where]
        given = scores[labeling][:, where], panel.quality[:, where], resamples.weights[where]
        return decision_gain(*given, groups, other=rest)

    found, bounds = of(panel.scores, where), lowest_highest(panel)
    if bounds is None:
        return found
    low, high = bounds
    there = np.asarray((panel.asked & np.isfinite(low[list(panel.joint)]).all(axis=0)).all(axis=0))
    return replace(found, ends=(of(low, there, high), of(high, there, low)))


def find_questions(
    panel: Panel, series: Sequence[Series], controls: Sequence[Series], order: Mapping[str, int], confidence: float
) -> Found:
    """Return what the labelings are worth to find the questions that fail; arguments as for `choose_runs`."""
    queries = min(one.estimate.n for one in series)
    return _found(
        FIND_QUESTIONS,
        panel,
        series,
        controls,
        order,
        confidence,
        queries=queries,
        differing=queries,
        minority=_minority(panel, [one.estimate.labeling for one in series]),
        gains={},
        worth=None,
    )


def _minority(panel: Panel, labelings: Collection[int]) -> int:
    """Return how many queries have the rarer outcome, in the mean over runs; for graded quality, half of them."""
    where = np.all([panel.defined(index) for index in labelings], axis=0)
    rare = []
    for quality, there in zip(panel.quality, where, strict=True):
        _, counts = np.unique(quality[there], return_counts=True)
        if len(counts) > 1:
            n = int(counts.sum())
            pairs = (n * n - int((counts**2).sum())) / 2
            rare.append((n - np.sqrt(max(n * n - 4 * pairs, 0))) / 2)
    return int(np.mean(rare)) if rare else 0
