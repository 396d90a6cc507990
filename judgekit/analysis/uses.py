"""What labels are wanted for, and what each labeling is shown to be worth for it.

Two uses, never mixed. *Choose between retrievers*: on the same question, does the run with the higher score get the
better answer, and what is won by choosing so? *Find the questions that fail*: of two questions of one run, does the one
with the higher score get the better answer? A labeling that tells easy questions from hard ones wins the second, and
may be worth nothing for the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.controls import TWIN
from judgekit.analysis.gain import Enough, Gain, attainable_gain, cheapest, decision_gain
from judgekit.analysis.inputs import Bools, Panel
from judgekit.analysis.intervals import MIN_DIFFERING, MIN_EACH_SIDE, better_than
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.analysis.resampling import t_quantile

__all__ = ["Found", "Gains", "Series", "Standing", "find", "series_of"]

CHANCE: Final = 0.5
POWER: Final = 0.8
_RANGE: Final = 0.8
"""Confidence of the range of a number of queries."""
_FAR: Final = 20
"""A number of queries more than so many times those at hand is as good as infinite."""


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
        enough: what a cheaper labeling must keep.
        cheapest: the cheapest labeling that will do, by name; "" where no labels are needed, None where it cannot be
            told.
        loss: the most that it may lose against the best.
    """

    by_answers: float
    attainable: float
    confidence: float
    enough: Enough
    cheapest: str | None
    loss: float


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
    needed: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    gains: Gains | None = None
    controls: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The best labeling and those that cannot be told apart from it; empty where none is shown to beat chance."""
        if not any(one.guides for one in self.standings):
            return ()
        best, *others = (one.labeling for one in self.standings)
        return (best, *(name for name in others if (best, name) not in self.better))

    @property
    def winner(self) -> str | None:
        """The labeling that is shown to be better than chance and than every other one."""
        alone = len(self.standings) > 1 and self.standings[0].guides and len(self.leaders) == 1
        return self.leaders[0] if alone else None


@dataclass(frozen=True)
class Series:
    """A labeling's or a control's concordance with all that a claim about it needs.

    Attributes:
        name: of the labeling or the control.
        estimate: its coefficients with their draws.
        low, high: the interval of the concordance.
        worst, best: the estimate with the missing labels at their worst and at their best.
    """

    name: str
    estimate: Estimate
    low: float
    high: float
    worst: Estimate
    best: Estimate


def _claims(series: Sequence[Series], confidence: float) -> Bools:
    """Say which series is better than which, from the draws of their concordance."""
    size = len(series)
    n = min(one.worst.units for one in series)
    grouped = n < min(one.worst.n for one in series)
    freedom, enough = np.full((size, size), n - 1), np.full((size, size), not grouped or n >= MIN_DIFFERING)
    if series[0].estimate.margins:
        # The queries of the rarer outcome tell, and all series have the same ones.
        minority = int(np.mean([each.minority for each, _ in series[0].estimate.margins]))
        freedom[:] = min(max(minority, 2), n) - 1
        enough &= minority >= MIN_EACH_SIDE
    else:
        each = 1 - (1 - confidence) / max(size * (size - 1), 1)
        for a in range(size):
            for b in range(size):
                one, other = series[a].worst.each, series[b].best.each
                gap = (one[0] if one else np.empty(0)) - (other[0] if other else np.empty(0))
                ahead, behind = int((gap > 1e-9).sum()), int((gap < -1e-9).sum())
                freedom[a, b] = min(ahead + behind, n) - 1
                several = min(ahead, behind) >= MIN_EACH_SIDE or (not grouped and _outweighs(gap, freedom[a, b], each))
                enough[a, b] &= ahead + behind >= MIN_DIFFERING and several
    worst, best = (
        (np.array([each.values[0] for each in side]), np.stack([each.draws[0] for each in side]))
        for side in ([one.worst for one in series], [one.best for one in series])
    )
    return better_than(*worst, confidence=confidence, n=n, freedom=freedom, enough=enough, best=best)


def _outweighs(gap: Floats, freedom: int, confidence: float) -> bool:
    """Return whether one labeling is ahead of another also with two more queries on which it loses all there is.

    Where hardly any query favours the other, the spread of those at hand does not show how much may be lost. (With one
    more query, false claims rise from 5 to 7 % of experiments in which 7 % of 150 queries favour the other by far; with
    two they do not.)

    Args:
        gap: concordance of the first less that of the second, per query, shape (n,).
        freedom: degrees of freedom.
        confidence: one-sided, of this claim alone.
    """
    more = np.append(gap, (-1.0, -1.0))
    return bool(more.mean() > t_quantile(confidence, freedom + 1) * more.std(ddof=1) / np.sqrt(len(more)))


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
    # What these queries would show already is not a matter of their number.
    return (max(few, queries + 1), many) if queries < many <= _FAR * queries else None


def series_of(
    found: Iterable[Estimate],
    panel: Panel,
    level: str,
    confidence: float,
    resamples: Resamples,
    filled: tuple[Panel, Panel] | None,
) -> Iterator[Series]:
    """Yield the series of a panel's estimates of one run, or of the mean over runs.

    Each has its interval over all that missing labels may be: ``filled`` is the panel with them at their worst and at
    their best, None where none are missing.
    """
    found = list(found)
    ends: list[dict[str, Estimate]] = [
        {p.labelings[e.labeling]: e for e in estimates(p, level, resamples, ("concordance",)) if e.run == found[0].run}
        for p in filled or ()
        if found
    ]
    for one in found:
        name, value = panel.labelings[one.labeling], float(one.values[0])
        worst, best = (end.get(name, one) for end in ends) if ends else (one, one)
        low, high = (each.interval("concordance", level, confidence, resamples) for each in (worst, best))
        yield Series(name, one, min(low.low, value), max(high.high, value), worst, best)


def find(
    use: str,
    panel: Panel,
    series: Sequence[Series],
    controls: Sequence[Series],
    resamples: Resamples,
    order: Mapping[str, int],
    confidence: float,
    enough: Enough,
) -> Found:
    """Return what labelings are worth for a use, given their series and those of controls at its level.

    ``order`` is the place of each labeling by cost, where it is known.
    """
    ranked = sorted(series, key=lambda x: (-float(x.estimate.values[0]), x.name))
    differing = queries = min(one.estimate.n for one in series)
    gains, worth = dict[str, Gain](), None
    if use == CHOOSE_RUNS:
        where = panel.complete(ranked[0].estimate.labeling)
        queries = int(where.sum())
        gains = {one.name: _gain(panel, one.estimate.labeling, where, resamples) for one in series}
        quality, weights = panel.quality[:, where], resamples.weights[where]
        by_answers = decision_gain(quality, quality, weights, resamples.groups_of(where)).value
        places = sorted((place, -gains[name].value, name) for name, place in order.items() if name in gains)
        chosen = cheapest({name: gains[name] for *_, name in places}, resamples.units(where), enough, confidence)
        worth = Gains(by_answers, attainable_gain(quality, weights), confidence, enough, *chosen)
    claims = np.argwhere(_claims(ranked, confidence))
    better = frozenset((ranked[a].name, ranked[b].name) for a, b in claims)
    standings = []
    for one in ranked:
        # All controls are beside a labeling, but another labeling's twin.
        mine = [c for c in controls if not c.name.startswith(TWIN) or c.name == TWIN + one.name]
        beats = {c.name: bool(_claims([one, c], confidence)[0, 1]) for c in mine}
        value, place = float(one.estimate.values[0]), order.get(one.name)
        tau_b, gain = one.estimate.value("tau_b"), gains.get(one.name)
        standings.append(Standing(one.name, value, one.low, one.high, tau_b, gain, place, beats))
    open_ = [other for other in ranked[1:] if (ranked[0].name, other.name) not in better]
    return Found(
        use,
        queries,
        differing,
        panel.runs,
        tuple(standings),
        better,
        needed={other.name: _needed(ranked[0], other, queries, confidence) for other in open_},
        gains=worth,
        controls={c.name: (float(c.estimate.values[0]), c.low, c.high) for c in controls},
        unknown=panel.unknown,
    )


def _gain(panel: Panel, labeling: int, where: Bools, resamples: Resamples) -> Gain:
    """Return the decision gain of a labeling, with its worst and best case where labels are missing."""

    def of(scores: Floats, where: Bools, other: Floats | None = None) -> Gain:
        rest = None if other is None else other[labeling][:, where]
        given = scores[labeling][:, where], panel.quality[:, where], resamples.weights[where]
        return decision_gain(*given, resamples.groups_of(where), other=rest)

    found, bounds = of(panel.scores, where), panel.bounds
    if bounds is None:
        return found
    low, high = bounds
    there = np.asarray((panel.asked & np.isfinite(low[list(panel.joint)]).all(axis=0)).all(axis=0))
    return replace(found, ends=(of(low, there, high), of(high, there, low)))
