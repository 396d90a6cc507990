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
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
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

        NaN where runs differ on too few queries: what labels pick and win there is a matter of the next few.
        """
        if any(min(each.units, each.telling) < MIN_TELLING for each in self.ends or (self,)):
            return np.nan, np.nan
        ends = [percentiles(each.value, each.draws, each.units, confidence, level) for each in self.ends or (self,)]
        return min(ends[0][0], self.value), max(ends[-1][1], self.value)


def percentiles(
    value: float, draws: Floats, units: int, confidence: float, level: float | None = None
) -> tuple[float, float]:
    """Return the interval of a gain, or of a difference of two, from its draws."""
    from scipy.special import ndtr

    if not np.isfinite(value):
        return np.nan, np.nan
    level = float(ndtr(t_quantile((1 + confidence) / 2, units))) if level is None else level
    # Of B draws the k-th lies at k / (B + 1), as the common level counts: else the ends of 300 lie too far in.
    low, high = np.quantile(draws, [1 - level, level], method="weibull")
    return min(float(low), value), max(float(high), value)


def decision_gain(
    scores: Floats,
    quality: Floats,
    weights: Floats,
    groups: npt.NDArray[np.intp] | None = None,
    *,
    other: Floats | None = None,
) -> Gain:
    """Return the decision gain of one labeling over some runs."""
    runs, n = scores.shape
    first, second = pairs(runs)
    gap, delta = gaps(scores), gaps(quality)
    if other is not None:
        ahead = delta.mean(axis=1, keepdims=True) > 0
        gap = np.where(ahead, scores[first] - other[second], other[first] - scores[second])
    gap = np.where(np.abs(gap) > _TIE * np.abs(scores).max(initial=0), gap, 0.0)
    few = np.flatnonzero(np.count_nonzero(gap, axis=1) < _FEW).tolist() if groups is None else []
    exact = [_counted(gap[pair], delta[pair]) for pair in few]
    size, differs, scored = np.ones(n), delta != 0, gap != 0
    if groups is not None:
        _, place, group = np.unique(groups, return_index=True, return_inverse=True)
        n, weights = len(place), weights[place]
        size = np.asarray(np.bincount(group, size), np.float64)
        gap, delta, differs, scored = (
            np.stack([np.bincount(group, row) for row in rows]).astype(float) for rows in (gap, delta, differs, scored)
        )
    values = _closed_form(gap, delta, size, np.ones((n, 1)))[:, 0]
    often = _closed_form(gap, delta, size, weights) - values[:, None]
    values[few] = exact
    draws = values[:, None] + often * np.sqrt(n / max(n - 1, 1))
    units, telling = int(differs.any(axis=0).sum()), int(scored.any(axis=0).sum())
    if not len(first):
        return Gain(np.nan, np.full(draws.shape[1], np.nan), units, telling)
    return Gain(float(values.mean()), draws.mean(axis=0), units, telling)


def _closed_form(gap: Floats, delta: Floats, size: Floats, weights: Floats) -> Floats:
    """Return each pair's gain in every resample, shape (P, B); a resample without any query gains nothing."""
    from scipy.special import ndtr

    units = np.maximum(weights.sum(axis=0), 1)
    queries = np.maximum(size @ weights, 1)
    # Around the means over all, so that little is lost to cancelling.
    centre, middle = (each.sum(axis=1, keepdims=True) / size.sum() for each in (gap, delta))
    x, y = gap - centre * size, delta - middle * size
    x_size, y_size = x @ weights, y @ weights
    mean_x, mean_y, square = x_size / queries, y_size / queries, size @ weights
    bessel = 1 / np.maximum(units - 1, 1)
    if (size != 1).any():
        square, x_size, y_size = (size**2) @ weights, (x * size) @ weights, (y * size) @ weights
    variance = ((x**2) @ weights - 2 * mean_x * x_size + mean_x**2 * square) * bessel
    covariance = ((x * y) @ weights - mean_x * y_size - mean_y * x_size + mean_x * mean_y * square) * bessel
    mean, mean_delta = mean_x + centre, mean_y + middle
    # Units of equal differences leave a variance of rounding errors.
    still = variance <= 1e-14 * np.maximum((gap**2).max(axis=1, keepdims=True, initial=0), 1e-300)
    error = np.sqrt(np.where(still, 1, variance) * units) / queries
    z = mean / error
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    chosen = mean_delta * (2 * ndtr(z) - 1) - 2 * normal * covariance * units / (error * queries**2)
    settled = np.sign(np.where(np.abs(mean) > 1e-12, mean, 0)) * mean_delta
    return np.asarray(np.where(still, settled, chosen) / 2)


def _counted(gap: Floats, delta: Floats) -> float:
    """Return a pair's gain by counting which of the few queries with D != 0 a half may hold."""
    n, where = len(gap), np.flatnonzero(gap)
    half, still = n // 2, n - len(where)
    held = np.arange(1 << len(where))[:, None] >> np.arange(len(where)) & 1
    others = half - held.sum(axis=1)
    ways = np.array([comb(still, k) / comb(n, half) if k >= 0 else 0.0 for k in others.tolist()])
    inside = held @ gap[where]
    choice = np.sign(np.where(np.abs(inside) <= 1e-12, 0, inside))
    mean_still = float(delta[gap == 0].mean()) if still else 0.0
    left = (1 - held) @ delta[where] + (still - others) * mean_still
    return float((ways * choice * left).sum()) / (n - half) / 2


def common_level(draws: Floats, units: int, confidence: float) -> float:
    """Return the upper percentile at which the intervals of several gains hold together, the lower being 1 less it."""
    from scipy.special import ndtr, ndtri

    size = draws.shape[1]
    ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1) + 1
    extreme = float(np.quantile(np.maximum(ranks, size + 1 - ranks).max(axis=0) / (size + 1), confidence))
    two_sided = (1 + confidence) / 2
    return min(float(ndtr(ndtri(extreme) * t_quantile(two_sided, units) / ndtri(two_sided))), 1.0)
