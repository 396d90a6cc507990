"""The one resample matrix, and the intervals made from what it yields.

Every statistic of a comparison is worked out on the same resamples of the queries, so that differences between
labelings, measures and models are paired. Which method is used where was chosen by measured coverage, see
`judgekit.analysis.levels`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.errors import UsageError

_EQUAL: Final = 1e-9

UNDEFINED_SHARE: Final = 0.05
"""With a larger share of resamples on which a coefficient is undefined, its interval is undefined too."""


def percent(confidence: float) -> str:
    """Return a confidence in words."""
    return f"{100 * confidence:.10g} %"


def resample_matrix(queries: int, resamples: int, seed: int, groups: npt.NDArray[np.intp] | None = None) -> Floats:
    """Return how often each query is in each bootstrap resample, shape (queries, resamples)."""
    # Row i belongs to the i-th query in ascending order of id, so the result depends on the seed and the set of queries
    # only.
    if resamples < 100:
        raise UsageError(f"resamples must be at least 100, for an interval, not {resamples}")
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        return np.ascontiguousarray(resample_matrix(int(group.max(initial=-1)) + 1, resamples, seed)[group])
    draws = np.random.default_rng(seed).integers(0, queries, size=(resamples, queries))
    cells = draws + np.arange(resamples)[:, None] * queries
    counts = np.bincount(cells.ravel(), minlength=resamples * queries).reshape(resamples, queries)
    return np.ascontiguousarray(counts.T, dtype=np.float64)


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low, high: its ends, NaN where it is undefined.
        method: the name of the function that made it, "" where it is undefined.
    """

    low: float
    high: float
    method: str


def unseen(units: float, reach: float = 1.0, *, one_sided: bool = False) -> float:
    """Return what units that nobody has seen add to the variance of a mean over so many.

    ``reach`` is how far from the mean a unit may lie.
    """
    # Where a difference occurs in 2 of n units, all n are equal in one sample of seven, and their spread is 0. With the
    # square of one unseen unit coverage falls to .86 (one-sided bounds: .82), with these it stays above .93.
    return (4 if one_sided else 2) * (reach / units) ** 2


def t_quantile(probability: float, n: int) -> float:
    """Return the quantile of Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), probability))


def spread(draws: Floats, n: int) -> Floats:
    """Return the standard deviation over the last axis, with the factor that makes it unbiased for a mean."""
    return np.asarray(np.std(draws, axis=-1, ddof=1) * np.sqrt(n / max(n - 1, 1)))


def max_t(moved: Floats, error: Floats, confidence: float, freedom: int | npt.NDArray[np.int64]) -> Floats:
    """Return how many standard errors statistics may lie from their truth, for all of them to do so at a confidence.

    ``moved`` says how far each lies from its value in every resample, shape (S, B). The bound is as far out on
    Student's t as the largest of their distances is on the normal distribution.
    """
    from scipy.special import ndtr, stdtrit

    reach = float(np.quantile((np.abs(moved) / error[:, None]).max(axis=0), confidence))
    return np.asarray(stdtrit(np.maximum(freedom, 1), ndtr(reach)))


def interval(value: float, draws: Floats, level: float, method: str, n: int) -> Interval:
    """Return the interval of an estimate over n queries from its resampled values, shape (B,), NaN where undefined.

    The methods are ``percentile``, the central quantiles of the draws, and two that are made of the bootstrap standard
    error on a scale on which estimates spread evenly: ``t``, as it is, and ``fisher-t``, Fisher's z for coefficients in
    [-1, 1], where +-1 is cut at 1 - 1/n^2. All are widened to hold the value.

    Where all resamples say the same the queries show no spread: a coefficient keeps that of unseen queries, on which it
    is the opposite, and anything else has no interval.
    """
    defined = draws[np.isfinite(draws)]
    if not np.isfinite(value) or len(defined) < (1 - UNDEFINED_SHARE) * len(draws):
        return Interval(np.nan, np.nan, "")
    if np.ptp(defined) <= _EQUAL:
        if method != "fisher-t":
            return Interval(np.nan, np.nan, "")
        opposite = t_quantile((1 + level) / 2, n) * math.sqrt(unseen(max(n, 1), 2.0))
        ends = np.array([max(value - opposite, -1.0), min(value + opposite, 1.0)])
    elif method == "percentile":
        ends = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    else:
        edge, moved = 1 - 1 / max(n, 2) ** 2, np.append(defined, value)
        moved = np.arctanh(np.clip(moved, -edge, edge)) if method == "fisher-t" else moved
        half = t_quantile((1 + level) / 2, n) * spread(moved[:-1], n)
        ends = moved[-1] + half * np.array([-1, 1])
        ends = np.tanh(ends) if method == "fisher-t" else ends
    return Interval(min(float(ends[0]), value), max(float(ends[1]), value), method)
