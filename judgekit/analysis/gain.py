"""Decision gain: what is won when a labeling, rather than a coin flip, picks one of two runs.

From a random half of the queries the labeling picks, of two runs, the one with the higher mean score; the other half
says how much better its answers are than those of the other run. A coin flip wins half of that difference less. The
gain is the mean over all halves and all pairs of runs, in the unit of quality.

The sum over all halves has a closed form, since both halves' means are nearly normal with known moments: with
D = s_i - s_j and delta = q_i - q_j per query, variance s^2 of D, covariance c of D and delta (both with n - 1) and
z = sqrt(n) mean(D) / s, a pair's gain is 1/2 [mean(delta) (2 Phi(z) - 1) - 2 phi(z) c / (s sqrt(n))].
Where D differs from 0 on few queries, all ways in which a half may hold them are counted instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.rankings import gaps, pairs
from judgekit.analysis.resampling import t_quantile

_FEW: Final = 10
"""On fewer differing queries the means over halves are not normal, and all of their splits are counted."""
_TIE: Final = 1e-11


@dataclass(frozen=True)
class Gain:
    """The decision gain of one labeling, in the unit of quality (0.01 is one point).

    Attributes:
        value: mean over pairs of runs; NaN for fewer than two runs.
        draws: the same in every resample, spread around ``value``, shape (B,).
        units: on how many queries (or groups of them) any two runs differ in quality.
        telling: on how many any two runs differ in score.
        ends: the gain with the missing labels at their worst and at their best; empty where none are missing.
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
        """Return the interval, widened to hold the value and all that labels may be.

        ``level`` is its upper percentile where several gains hold together; see `common_level`. NaN where runs differ
        on too few queries: what labels pick and win there is a matter of the next few.
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
        # Of B draws the k-th lies at k / (B + 1), as the common level counts: else the ends of 300 lie too far in.
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
        groups: the group of each query, where queries belong together, shape (n,).
        other: the scores of the run of a pair whose answers are worse so far, where missing labels are at their worst
            or best, shape (R, n); by default ``scores``.
    """
    first, second = pairs(len(scores))
    gap = gaps(scores)
    delta = gaps(quality)
    if other is not None:
        ahead = delta.mean(axis=1, keepdims=True) > 0
        leading = scores[first] - other[second]
        trailing = other[first] - scores[second]
        gap = np.where(ahead, leading, trailing)
    rounding = _TIE * np.abs(scores).max(initial=0)
    gap = np.where(np.abs(gap) > rounding, gap, 0.0)
    if not len(first):
        return Gain(np.nan, np.full(weights.shape[1], np.nan), 0, 0)
    size = np.ones(scores.shape[1])
    differs, scored = delta != 0, gap != 0
    few: list[int] = []
    if groups is None:
        few = np.flatnonzero(scored.sum(axis=1) < _FEW).tolist()
    exact = [_counted(gap[pair], delta[pair]) for pair in few]
    if groups is not None:
        _, place, group = np.unique(groups, return_index=True, return_inverse=True)
        weights = weights[place]
        size = np.bincount(group).astype(np.float64)
        gap = _group_sums(gap, group)
        delta = _group_sums(delta, group)
        differs = _group_sums(differs, group) > 0
        scored = _group_sums(scored, group) > 0
    n = len(size)
    once = np.ones((n, 1))
    values = _closed_form(gap, delta, size, once)[:, 0]
    moved = _closed_form(gap, delta, size, weights)
    moved -= values[:, None]
    values[few] = exact
    # A resample spreads as n - 1 independent queries would; see `judgekit.analysis.resampling.spread`.
    wider = np.sqrt(n / max(n - 1, 1))
    draws = values[:, None] + moved * wider
    units = int(differs.any(axis=0).sum())
    telling = int(scored.any(axis=0).sum())
    return Gain(float(values.mean()), draws.mean(axis=0), units, telling)


def _group_sums(rows: Floats | Bools, group: Ints) -> Floats:
    """Return the sums by group of each row."""
    return np.stack([np.bincount(group, row) for row in rows]).astype(np.float64)


def _closed_form(gap: Floats, delta: Floats, size: Floats, weights: Floats) -> Floats:
    """Return each pair's gain in every resample, shape (P, B); a resample without any query gains nothing."""
    from scipy.special import ndtr

    units = np.maximum(weights.sum(axis=0), 1)
    queries = np.maximum(size @ weights, 1)
    # Around the means over all, so that little is lost to cancelling.
    centre = gap.sum(axis=1, keepdims=True) / size.sum()
    middle = delta.sum(axis=1, keepdims=True) / size.sum()
    x = gap - centre * size
    y = delta - middle * size
    x_size, y_size, square = x @ weights, y @ weights, size @ weights
    mean_x, mean_y = x_size / queries, y_size / queries
    bessel = 1 / np.maximum(units - 1, 1)
    # Three products of large tables that say nothing new where each question stands alone.
    if (size != 1).any():
        square = (size**2) @ weights
        x_size = (x * size) @ weights
        y_size = (y * size) @ weights
    x_squares = (x**2) @ weights
    variance = x_squares - 2 * mean_x * x_size + mean_x**2 * square
    variance *= bessel
    products = (x * y) @ weights
    covariance = products - mean_x * y_size - mean_y * x_size + mean_x * mean_y * square
    covariance *= bessel
    mean = mean_x + centre
    mean_delta = mean_y + middle
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
    """Return a pair's gain by counting which of the few queries with D != 0 a half may hold."""
    n = len(gap)
    where = np.flatnonzero(gap)
    half, still = n // 2, n - len(where)
    # Each row says which of these queries the half holds.
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
    """Return the upper percentile at which the intervals of several gains hold together, the lower being 1 less it."""
    from scipy.special import ndtr, ndtri

    size = draws.shape[1]
    order = np.argsort(draws, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1) + 1
    outermost = np.maximum(ranks, size + 1 - ranks).max(axis=0)
    extreme = float(np.quantile(outermost / (size + 1), confidence))
    two_sided = (1 + confidence) / 2
    # As much further out as Student's t is than the normal distribution, on so few units.
    reach = ndtri(extreme) * t_quantile(two_sided, units) / ndtri(two_sided)
    return min(float(ndtr(reach)), 1.0)
