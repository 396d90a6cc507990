"""Decision gain: what a labeling wins over a coin flip when it picks one of two runs.

On a random half of the queries, the labeling picks the run with the higher mean score; the other half says how much
better its answers are. A coin flip wins nothing on average. The gain is the mean over all halves and all pairs of runs,
in the unit of quality.

The sum over all halves has a closed form, since both halves' means are nearly normal with known moments: with D = s_i -
s_j and delta = q_i - q_j per query, variance s^2 of D, covariance c of D and delta (both with n - 1) and z = sqrt(n)
mean(D) / s, a pair's gain is 1/2 [mean(delta) (2 Phi(z) - 1) - 2 phi(z) c / (s sqrt(n))]. If D differs from 0 on few
queries, all splits of these queries are counted instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.rankings import pairs
from judgekit.analysis.resampling import t_quantile

_FEW: Final = 10
"""With fewer differing queries, means over halves are not normal, so all splits are counted."""
_TIE: Final = 1e-11
_PAIRS: Final = 96
"""Pairs of runs that are worked out at a time, so that what is made of them stays small."""


@dataclass(frozen=True)
class Gain:
    """The decision gain of one labeling, in the unit of quality (0.01 is one point).

    Attributes:
        value: mean over pairs of runs; NaN for fewer than two runs.
        draws: the same in every resample, spread around ``value``, shape (B,).
        units: the number of queries (or groups) on which any two runs differ in quality.
        telling: the number on which any two runs differ in score.
        ends: the gain with the missing labels at their worst and at their best; empty if none are missing.
    """

    value: float
    draws: Floats
    units: int
    telling: int
    ends: tuple[Gain, ...] = ()

    def within(self, worst: Gain, best: Gain) -> Gain:
        """Return the gain with the missing labels at their worst and at their best."""
        return replace(self, ends=(worst, best))

    def interval(self, confidence: float, level: float | None = None) -> tuple[float, float]:
        """Return the interval, widened to hold the value and all values of the missing labels.

        ``level`` is its upper percentile if several gains hold together; see `common_level`. NaN if runs differ on too
        few queries, where a few more could change the pick.
        """
        worst, best = self.ends or (self, self)
        if min(worst.units, worst.telling, best.units, best.telling) < MIN_TELLING:
            return np.nan, np.nan
        low, _ = worst._percentiles(confidence, level)
        _, high = best._percentiles(confidence, level)
        return min(low, self.value), max(high, self.value)

    def _percentiles(self, confidence: float, level: float | None) -> tuple[float, float]:
        """Return the central percentiles of the draws, widened to hold the value."""
        from scipy.special import ndtr

        if not np.isfinite(self.value):
            return np.nan, np.nan
        if level is None:
            level = float(ndtr(t_quantile((1 + confidence) / 2, self.units)))
        # The k-th of B draws lies at k / (B + 1), as in the common level; otherwise the ends of 300 lie too far in.
        low, high = np.quantile(self.draws, [1 - level, level], method="weibull").tolist()
        return min(low, self.value), max(high, self.value)


def decision_gain(
    scores: Floats,
    quality: Floats,
    weights: Floats,
    groups: Ints | None = None,
    *,
    other: Floats | None = None,
) -> Gain:
    """Return the decision gain of one labeling over some runs.

    Args:
        scores: shape (R, n).
        quality: shape (R, n).
        weights: how often each query is in each resample, shape (n, B).
        groups: the group of each query, if queries are grouped, shape (n,).
        other: the scores of the worse run of a pair, with missing labels at their worst or best, shape (R, n); by
            default ``scores``.
    """
    return decision_gains([(scores, scores if other is None else other)], quality, weights, groups)[0]


def decision_gains(
    labelings: Sequence[tuple[Floats, Floats]], quality: Floats, weights: Floats, groups: Ints | None = None
) -> list[Gain]:
    """Return the decision gains of several labelings over the same runs and queries.

    Each labeling has two arrays of scores, as `decision_gain` takes them; the other arguments are those of it.
    """
    if not len(pairs(len(quality))[0]):
        return [Gain(np.nan, np.full(weights.shape[1], np.nan), 0, 0) for _ in labelings]
    sample = _Sample(quality.shape[1], weights, groups)
    sums = [_Sum(*scores) for scores in labelings]
    # What the answers say of some pairs of runs serves all labelings.
    for first, second in _blocks(len(quality)):
        delta = quality[first] - quality[second]
        answers = _AnswerSide(delta, sample)
        for of_labeling in sums:
            of_labeling.add(first, second, answers, sample)
    return [of_labeling.gain() for of_labeling in sums]


def _blocks(runs: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the first and the second of every two runs, some of the pairs at a time."""
    first, second = pairs(runs)
    last = len(first)
    # A small remainder would be worked out by another kernel of the matrix product, with other last digits.
    starts = [*range(0, last - _PAIRS + 1, _PAIRS)] or [0]
    for start, end in pairwise([*starts, last]):
        yield first[start:end], second[start:end]


class _Sample:
    """The units that are resampled: queries, or groups of them.

    Args:
        queries: how many there are.
        weights: how often each query is in each resample, shape (queries, B).
        groups: the group of each query; None where each stands alone.

    Attributes:
        size: queries in each unit, shape (n,).
        whole, drawn: the units once, and in each resample.
    """

    def __init__(self, queries: int, weights: Floats, groups: Ints | None) -> None:
        self._group: Ints | None = None
        self.size = np.ones(queries)
        if groups is not None:
            _, place, self._group = np.unique(groups, return_index=True, return_inverse=True)
            weights = weights[place]
            self.size = np.bincount(self._group).astype(np.float64)
        self.whole = _Draws(self.size, np.ones((len(self.size), 1)))
        self.drawn = _Draws(self.size, weights)

    @property
    def grouped(self) -> bool:
        """Whether queries belong together."""
        return self._group is not None

    def sums(self, rows: Floats | Bools) -> Floats:
        """Return the sums by unit of each row."""
        if self._group is None:
            return rows.astype(np.float64)
        return np.stack([np.bincount(self._group, row) for row in rows]).astype(np.float64)


class _Draws:
    """How often each unit is in each resample.

    Attributes:
        size: queries in each unit, shape (n,).
        weights: shape (n, B).
        units, queries: how many are in each resample, shape (B,).
        squares: the sum of the squared sizes, shape (B,).
        uneven: whether some units hold several queries.
    """

    def __init__(self, size: Floats, weights: Floats) -> None:
        self.size, self.weights = size, weights
        self.units = np.maximum(weights.sum(axis=0), 1)
        self.queries = np.maximum(size @ weights, 1)
        self.uneven = bool((size != 1).any())
        self.squares = (size**2 if self.uneven else size) @ weights

    def sums(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the sums of some rows, shape (P, n), and those of their products with the sizes, shape (P, B) each."""
        sums = rows @ self.weights
        # A product of large tables that says nothing new where each question stands alone.
        return sums, (rows * self.size) @ self.weights if self.uneven else sums


class _AnswerSide:
    """What the answers say of some pairs of runs.

    Args:
        delta: by how much the answer of the first is better, shape (P, queries).
        sample: the units.
    """

    def __init__(self, delta: Floats, sample: _Sample) -> None:
        self.delta = delta
        self.ahead = delta.mean(axis=1, keepdims=True) > 0
        self.differs = np.asarray((sample.sums(delta != 0) > 0).any(axis=0))
        self.of_units = sample.sums(delta)
        self.whole = _Moved(self.of_units, sample.whole)
        self.drawn = _Moved(self.of_units, sample.drawn)


class _Sum:
    """The gain of one labeling, pairs of runs after pairs of runs.

    Args:
        scores, other: those of the leading and of the trailing run of a pair, shape (R, queries).
    """

    def __init__(self, scores: Floats, other: Floats) -> None:
        self._scores, self._other = scores, other
        self._rounding = _TIE * np.abs(scores).max(initial=0)
        self._values: list[Floats] = []
        self._drawn: Floats | None = None
        self._differs: list[Bools] = []
        self._scored: list[Bools] = []

    def add(self, first: Ints, second: Ints, answers: _AnswerSide, sample: _Sample) -> None:
        """Add what some pairs of runs gain."""
        leading = self._scores[first] - self._other[second]
        trailing = self._other[first] - self._scores[second]
        gap = np.where(answers.ahead, leading, trailing)
        gap = np.where(np.abs(gap) > self._rounding, gap, 0.0)
        scored = gap != 0
        few: list[int] = []
        if not sample.grouped:
            few = np.flatnonzero(scored.sum(axis=1) < _FEW).tolist()
        exact = [_counted(gap[pair], answers.delta[pair]) for pair in few]
        of_units = sample.sums(gap)
        values = answers.whole.closed_form(of_units)[:, 0]
        moved = answers.drawn.closed_form(of_units)
        moved -= values[:, None]
        values[few] = exact
        # A resample spreads as n - 1 independent queries would; see `judgekit.analysis.resampling.spread`.
        n = len(sample.size)
        wider = np.sqrt(n / max(n - 1, 1))
        draws = values[:, None] + moved * wider
        # One pair after the other, so that the sum does not depend on how many are taken at a time.
        before = draws[:0] if self._drawn is None else self._drawn[None]
        self._drawn = np.concatenate([before, draws]).sum(axis=0)
        self._values.append(values)
        self._differs.append(answers.differs)
        self._scored.append(np.asarray((sample.sums(scored) > 0).any(axis=0)))

    def gain(self) -> Gain:
        """Return the gain over all pairs that were added."""
        values = np.concatenate(self._values)
        assert self._drawn is not None
        units, telling = (int(np.any(some, axis=0).sum()) for some in (self._differs, self._scored))
        return Gain(float(values.mean()), self._drawn / len(values), units, telling)


class _Moved:
    """The answers of some pairs of runs in every resample.

    Args:
        delta: by how much the first is better, by unit, shape (P, n).
        draws: the resamples.
    """

    def __init__(self, delta: Floats, draws: _Draws) -> None:
        self._draws = draws
        # Centred on the overall means, to avoid cancellation.
        self._middle = delta.sum(axis=1, keepdims=True) / draws.size.sum()
        self._y = delta - self._middle * draws.size
        self._y_size, self._y_sized = draws.sums(self._y)

    def closed_form(self, gap: Floats) -> Floats:
        """Return each pair's gain in every resample, shape (P, B); a resample without any query gains nothing."""
        from scipy.special import ndtr

        draws = self._draws
        weights, units, queries = draws.weights, draws.units, draws.queries
        centre = gap.sum(axis=1, keepdims=True) / draws.size.sum()
        x = gap - centre * draws.size
        x_size, x_sized = draws.sums(x)
        mean_x, mean_y = x_size / queries, self._y_size / queries
        bessel = 1 / np.maximum(units - 1, 1)
        x_squares = (x**2) @ weights
        variance = x_squares - 2 * mean_x * x_sized + mean_x**2 * draws.squares
        variance *= bessel
        products = (x * self._y) @ weights
        covariance = products - mean_x * self._y_sized - mean_y * x_sized + mean_x * mean_y * draws.squares
        covariance *= bessel
        mean = mean_x + centre
        mean_delta = mean_y + self._middle
        # Units of equal differences leave a variance of rounding errors.
        largest = (gap**2).max(axis=1, keepdims=True, initial=0)
        still = variance <= 1e-14 * np.maximum(largest, 1e-300)
        variance[still] = 1
        error = np.sqrt(variance * units) / queries
        z = mean / error
        normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        picked = mean_delta * (2 * ndtr(z) - 1)
        given_away = 2 * normal * covariance * units / (error * queries**2)
        chosen = picked - given_away
        side = np.sign(np.where(np.abs(mean) > 1e-12, mean, 0))
        return np.asarray(np.where(still, side * mean_delta, chosen) / 2)


def _counted(gap: Floats, delta: Floats) -> float:
    """Return a pair's gain by counting all splits of the few queries with D != 0."""
    n = len(gap)
    where = np.flatnonzero(gap)
    half, still = n // 2, n - len(where)
    # Each row marks the queries in the half.
    subsets = np.arange(1 << len(where))[:, None]
    held = subsets >> np.arange(len(where)) & 1
    others = half - held.sum(axis=1)
    halves = comb(n, half)
    ways = np.zeros(len(held))
    for row, count in enumerate(others.tolist()):
        if count >= 0:
            ways[row] = comb(still, count) / halves
    inside = held @ gap[where]
    choice = np.sign(np.where(np.abs(inside) <= 1e-12, 0, inside))
    left = (1 - held) @ delta[where]
    if still:
        left += (still - others) * float(delta[gap == 0].mean())
    won = float((ways * choice * left).sum())
    return won / (n - half) / 2


def common_level(draws: Floats, units: int, confidence: float) -> float:
    """Return the upper percentile at which the intervals of several gains hold together; the lower is 1 minus it."""
    from scipy.special import ndtr, ndtri

    size = draws.shape[1]
    order = np.argsort(draws, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1) + 1
    outermost = np.maximum(ranks, size + 1 - ranks).max(axis=0)
    extreme = float(np.quantile(outermost / (size + 1), confidence))
    two_sided = (1 + confidence) / 2
    # Widened as Student's t is against the normal distribution, on this few units.
    reach = ndtri(extreme) * t_quantile(two_sided, units) / ndtri(two_sided)
    return min(float(ndtr(reach)), 1.0)
