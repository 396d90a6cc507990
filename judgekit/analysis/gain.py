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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.rankings import gaps
from judgekit.analysis.resampling import t_quantile

__all__ = ["Enough", "Gain", "attainable_gain", "cheapest", "decision_gain", "percentiles", "simultaneous_upper"]

_FEW: Final = 10
"""On fewer differing queries the means over halves are not normal, and all of their splits are counted."""
_TIE: Final = 1e-11


@dataclass(frozen=True)
class Gain:
    """The decision gain of one labeling, in the unit of quality (0.01 is one point).

    Attributes:
        value: mean over pairs of runs.
        draws: the same in every resample, spread around ``value``, shape (B,).
        without: by run, the gain among the other runs, shape (R,); NaN where fewer than two are left.
        without_draws: likewise in every resample, shape (R, B).
        differing: on how many queries (or groups of them) any two runs differ in quality, then for each run how many
            there are without it, shape (1 + R,).
        ends: the gain with the missing labels at their worst and at their best; None where none are missing.
    """

    value: float
    draws: Floats
    without: Floats
    without_draws: Floats
    differing: npt.NDArray[np.int64]
    ends: tuple[Gain, Gain] | None = None

    @property
    def worst(self) -> Gain:
        """The gain with the missing labels at their worst."""
        return self.ends[0] if self.ends else self

    @property
    def best(self) -> Gain:
        """The gain with the missing labels at their best."""
        return self.ends[1] if self.ends else self

    def interval(self, confidence: float, without: int | None = None) -> tuple[float, float]:
        """Return the interval, or that among the runs but one, widened to hold the value and all that labels may be."""
        value, *_ = self._seen(without)
        low, _ = percentiles(*self.worst._seen(without), confidence)
        _, high = percentiles(*self.best._seen(without), confidence)
        return min(low, value), max(high, value)

    def _seen(self, without: int | None) -> tuple[float, Floats, int]:
        """Return the gain among all runs or all but one, its draws, and the queries on which these runs differ."""
        if without is None:
            return self.value, self.draws, int(self.differing[0])
        return float(self.without[without]), self.without_draws[without], int(self.differing[1 + without])


@dataclass(frozen=True, slots=True)
class Enough:
    """How much a cheaper labeling must keep of what the best one wins.

    Attributes:
        keep: a share of it.
        margin: what may be lost instead, in the unit of quality.
    """

    keep: float = 0.5
    margin: float | None = None

    def __str__(self) -> str:
        if self.margin is None:
            return f"keeps at least {self.keep:.0%} of what the best wins"
        return f"is within {100 * self.margin:g} points of the best"


def percentiles(value: float, draws: Floats, units: int, confidence: float) -> tuple[float, float]:
    """Return the interval of a gain, or of a difference of two, from its draws.

    Few queries tell: the percentiles lie as far out as Student's t does beyond the normal, with as many degrees of
    freedom as there are queries (or groups of them) on which runs differ, ``units``, less one.
    """
    from scipy.special import ndtr

    if not np.isfinite(value):
        return np.nan, np.nan
    level = float(ndtr(t_quantile((1 + confidence) / 2, units)))
    low, high = np.quantile(draws, [1 - level, level])
    return min(float(low), value), max(float(high), value)


def decision_gain(
    scores: Floats,
    quality: Floats,
    weights: Floats,
    groups: npt.NDArray[np.intp] | None = None,
    *,
    other: Floats | None = None,
) -> Gain:
    """Return the decision gain of one labeling over some runs.

    Args:
        scores: shape (R, n), finite, R at least 2 and n at least 2.
        quality: likewise.
        weights: how often each query is in each resample, shape (n, B).
        groups: the group of each query, shape (n,), where groups are halved rather than queries.
        other: scores of a pair's worse run, ``scores`` being those of its better one, where missing labels leave them
            open: of the lowest and the highest that they may be, one gives the worst case and the reverse the best.
    """
    runs, n = scores.shape
    first, second = np.triu_indices(runs, 1)
    gap, delta = gaps(scores), gaps(quality)
    if other is not None:
        ahead = delta.mean(axis=1, keepdims=True) > 0
        gap = np.where(ahead, scores[first] - other[second], other[first] - scores[second])
    gap = np.where(np.abs(gap) > _TIE * np.abs(scores).max(initial=0), gap, 0.0)
    few = np.flatnonzero(np.count_nonzero(gap, axis=1) < _FEW).tolist() if groups is None else []
    exact = [_counted(gap[pair], delta[pair]) for pair in few]
    size, differs = np.ones(n), delta != 0
    if groups is not None:
        _, place, group = np.unique(groups, return_index=True, return_inverse=True)
        n, weights = len(place), weights[place]
        size = np.asarray(np.bincount(group, size), np.float64)
        gap, delta, count = (
            np.stack([np.bincount(group, row) for row in each]).astype(float) for each in (gap, delta, differs)
        )
        differs = count > 0
    values = _closed_form(gap, delta, size, np.ones((n, 1)))[:, 0]
    often = _closed_form(gap, delta, size, weights) - values[:, None]
    values[few] = exact
    draws = values[:, None] + often * np.sqrt(n / max(n - 1, 1))
    # Each run's pairs leave with it.
    holds = np.zeros((runs, len(first)))
    holds[first, np.arange(len(first))] = holds[second, np.arange(len(first))] = 1
    left = len(first) - (runs - 1)
    both = np.column_stack([values, draws])
    without = (1 - holds) @ both / left if left else np.full((runs, both.shape[1]), np.nan)
    differing = (np.vstack([np.ones(len(first)), 1 - holds]) @ differs > 0).sum(axis=1)
    return Gain(float(values.mean()), draws.mean(axis=0), without[:, 0], without[:, 1:], differing)


def _closed_form(gap: Floats, delta: Floats, size: Floats, weights: Floats) -> Floats:
    """Return each pair's gain in every resample, shape (P, B); a resample without any query gains nothing.

    Args:
        gap: sum of D per unit (a query, or a group of them), shape (P, n).
        delta: sum of delta, likewise.
        size: queries per unit, shape (n,).
        weights: how often each unit is in each resample, shape (n, B).
    """
    from scipy.special import ndtr

    units = np.maximum(weights.sum(axis=0), 1)
    queries = np.maximum(size @ weights, 1)
    # Around the means over all, so that little is lost to cancelling.
    centre, middle = (each.sum(axis=1, keepdims=True) / size.sum() for each in (gap, delta))
    x, y = gap - centre * size, delta - middle * size
    mean_x, mean_y = x @ weights / queries, y @ weights / queries
    bessel = 1 / np.maximum(units - 1, 1)
    square = (size**2) @ weights
    x_size, y_size = (x * size) @ weights, (y * size) @ weights
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
    n = len(gap)
    half = n // 2
    where = np.flatnonzero(gap)
    some, mean_rest = len(where), float(delta[gap == 0].mean()) if len(where) < n else 0.0
    gain = 0.0
    for subset in range(1 << some):
        held = np.array([subset >> bit & 1 for bit in range(some)], dtype=np.bool_)
        others = half - int(held.sum())
        if not 0 <= others <= n - some:
            continue
        inside = float(gap[where[held]].sum())
        choice = 0.0 if abs(inside) <= 1e-12 else np.sign(inside)
        left = float(delta[where[~held]].sum()) + (n - some - others) * mean_rest
        gain += comb(n - some, others) / comb(n, half) * choice * left / (n - half)
    return gain / 2


def attainable_gain(quality: Floats, weights: Floats) -> float:
    """Return the most that any choice could win over a coin flip: half the mean absolute difference of two runs.

    The absolute differences of means hold noise, which a resample adds once more: twice the value less the mean over
    the resamples takes it out.

    Args:
        quality: shape (R, n).
        weights: how often each query is in each resample, shape (n, B).
    """
    delta = gaps(quality)
    seen = np.abs(delta.mean(axis=1)).mean() / 2
    again = np.abs(delta @ weights / np.maximum(weights.sum(axis=0), 1)).mean() / 2
    return max(float(2 * seen - again), 0.0)


def simultaneous_upper(values: Floats, draws: Floats, confidence: float, n: int) -> Floats:
    """Return upper bounds that all hold together, from paired draws: the same percentile of each.

    The percentile is the quantile of each draw's largest rank, widened as Student's t is against the normal.

    Args:
        values: the estimates, shape (C,).
        draws: in every resample, shape (C, B).
        confidence: one-sided, of all bounds together.
        n: the number of queries.

    Returns:
        Shape (C,); at least the estimates.
    """
    from scipy.special import ndtr, ndtri

    size = draws.shape[1]
    ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1) + 1
    level = float(np.quantile(ranks.max(axis=0) / (size + 1), confidence))
    level = float(ndtr(ndtri(level) * t_quantile(confidence, n) / ndtri(confidence)))
    return np.maximum(np.quantile(draws, min(level, 1.0), axis=1), values)


def cheapest(gains: Mapping[str, Gain], n: int, enough: Enough, confidence: float = 0.95) -> tuple[str | None, float]:
    """Return the first labeling by cost that is shown to keep enough of what the best would win.

    One-sided multiple comparisons with the best: each labeling in turn is taken for the best, so that a false claim
    needs a bound of the true best to fail. No labels at all, a coin flip that gains 0, are the first candidate.

    Args:
        gains: of the labelings, the cheapest first.
        n: the number of queries.
        enough: what has to be kept.
        confidence: one-sided, of the claim.

    Returns:
        Its name, "" where no labels are needed, None where it cannot be told; and the most that it may lose against
        the best, in the unit of quality, NaN where none is named.
    """
    if not gains:
        return None, np.nan

    def stacked(gains: Sequence[Gain]) -> tuple[Floats, Floats]:
        values = np.array([0.0, *(gain.value for gain in gains)])
        return values, np.stack([np.zeros_like(gains[0].draws), *(gain.draws for gain in gains)])

    # A candidate's missing labels are at their worst, those of what may be the best at their best.
    values, draws = stacked([gain.worst for gain in gains.values()])
    tops, top_draws = stacked([gain.best for gain in gains.values()])
    share, limit = (enough.keep, 0.0) if enough.margin is None else (1.0, enough.margin)

    def worst(share: float) -> Floats:
        """Return for each candidate the largest of its bounds against all that may be the best."""
        out = np.full(len(values), -np.inf)
        for best in range(1, len(values)):
            others = [c for c in range(len(values)) if c != best]
            losses = share * top_draws[best] - draws[others]
            bound = simultaneous_upper(share * tops[best] - values[others], losses, confidence, n)
            out[others] = np.maximum(out[others], bound)
        return out

    lost = worst(share)
    least = -simultaneous_upper(-values[1:], -draws[1:], confidence, n)
    if lost[0] <= limit:
        return "", max(float(lost[0]), 0.0)
    if (least > (enough.margin or 0.0)).any():
        for candidate, name in enumerate(gains, 1):
            if lost[candidate] <= limit and least[candidate - 1] > 0:
                return name, max(float(worst(1.0)[candidate]), 0.0)
    return None, np.nan
