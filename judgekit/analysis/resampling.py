"""The resample matrix, and the intervals made with it.

Every statistic of a comparison is worked out on the same resamples of the queries, so that differences between
labelings, measures and models are paired. Methods were chosen by measured coverage, see `judgekit.analysis.levels`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats, Ints
from judgekit.errors import UsageError

_EQUAL: Final = 1e-9

UNDEFINED_SHARE: Final = 0.05
"""If a coefficient is undefined on a larger share of resamples, its interval is undefined, too."""


def percent(confidence: float) -> str:
    """Return a confidence in words."""
    return f"{100 * confidence:.10g} %"


def resample_matrix(queries: int, resamples: int, seed: int, groups: Ints | None = None) -> Floats:
    """Return how often each query is in each bootstrap resample, shape (queries, resamples)."""
    # Row i belongs to the i-th query by id, so the result depends only on the seed and the set of queries.
    if resamples < 100:
        raise UsageError(f"resamples must be at least 100, for an interval, not {resamples}")
    if groups is not None:
        present, group = np.unique(groups, return_inverse=True)
        of_groups = resample_matrix(len(present), resamples, seed)
        return np.ascontiguousarray(of_groups[group])
    random = np.random.default_rng(seed)
    draws = random.integers(0, queries, size=(resamples, queries))
    cells = draws + np.arange(resamples)[:, None] * queries
    counts = np.bincount(cells.ravel(), minlength=resamples * queries)
    by_resample = counts.reshape(resamples, queries)
    return np.ascontiguousarray(by_resample.T, dtype=np.float64)


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
    """Return what unseen units add to the variance of a mean over this many.

    ``reach`` is how far from the mean a unit may lie.
    """
    # If a difference occurs in 2 of n units, one sample of seven shows none, with a spread of 0. With one unseen unit,
    # coverage falls to .86 (one-sided bounds: .82); with these it stays above .93.
    return (4 if one_sided else 2) * (reach / units) ** 2


def t_quantile(probability: float, n: int) -> float:
    """Return the quantile of Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), probability))


def spread(draws: Floats, n: int) -> Floats:
    """Return the standard deviation over the last axis, with the factor that makes it unbiased for a mean."""
    unbiased = np.sqrt(n / max(n - 1, 1))
    return np.asarray(np.std(draws, axis=-1, ddof=1) * unbiased)


def max_t(moved: Floats, error: Floats, confidence: float, freedom: int | npt.NDArray[np.int64]) -> Floats:
    """Return how many standard errors statistics may lie from the truth, so that all do at a confidence.

    ``moved`` is how far each moved in every resample, shape (S, B). The largest distance is widened from the normal
    distribution to Student's t.
    """
    from scipy.special import ndtr, stdtrit

    largest = (np.abs(moved) / error[:, None]).max(axis=0)
    reach = float(np.quantile(largest, confidence))
    probability = ndtr(reach)
    return np.asarray(stdtrit(np.maximum(freedom, 1), probability))


def interval(value: float, draws: Floats, level: float, method: str, n: int) -> Interval:
    """Return the interval of an estimate over n queries from its resampled values, shape (B,), NaN where undefined.

    The methods are ``percentile``, the central quantiles of the draws, and two that use the bootstrap standard error on
    a scale with even spread: ``t``, as it is, and ``fisher-t``, Fisher's z for coefficients in [-1, 1], with +-1 cut at
    1 - 1/n^2. All are widened to hold the value. If all resamples are equal, the queries show no spread: a coefficient
    keeps that of unseen queries with the opposite value, and anything else has no interval.
    """
    defined = draws[np.isfinite(draws)]
    differ = not len(defined) or np.ptp(defined) > _EQUAL
    known = np.isfinite(value) and len(defined) >= (1 - UNDEFINED_SHARE) * len(draws)
    if not known or not (differ or method == "fisher-t"):
        return Interval(np.nan, np.nan, "")
    upper = (1 + level) / 2
    if not differ:
        opposite = t_quantile(upper, n) * math.sqrt(unseen(max(n, 1), 2.0))
        low, high = max(value - opposite, -1.0), min(value + opposite, 1.0)
    elif method == "percentile":
        low, high = np.quantile(defined, [(1 - level) / 2, upper]).tolist()
    elif method == "t":
        half = t_quantile(upper, n) * float(spread(defined, n))
        low, high = value - half, value + half
    else:
        # Where all coefficients are 1 their z would be infinite.
        edge = 1 - 1 / max(n, 2) ** 2
        z = np.arctanh(np.clip(np.append(defined, value), -edge, edge))
        half = t_quantile(upper, n) * float(spread(z[:-1], n))
        low, high = np.tanh([z[-1] - half, z[-1] + half]).tolist()
    return Interval(min(low, value), max(high, value), method)
