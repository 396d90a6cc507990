"""The one resample matrix, and the intervals and tests made from what it yields.

Every statistic of a comparison is worked out on the same resamples of the queries, so that differences between
labelings, measures and models are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.errors import UsageError

__all__ = ["METHODS", "UNDEFINED_SHARE", "Interval", "interval", "resample_matrix"]

UNDEFINED_SHARE: Final = 0.05
"""With a larger share of resamples on which a coefficient is undefined, its interval is undefined too."""


def resample_matrix(queries: int, resamples: int, seed: int) -> Floats:
    """Return how often each query is in each bootstrap resample, shape (queries, resamples).

    Row i belongs to the i-th query in ascending order of id, so the result depends on the seed and the set of
    queries only.

    Raises:
        UsageError: fewer than 100 resamples, too few for an interval.
    """
    if resamples < 100:
        raise UsageError(f"resamples: at least 100 are needed for an interval, not {resamples}")
    draws = np.random.default_rng(seed).integers(0, queries, size=(resamples, queries))
    cells = draws + np.arange(resamples)[:, None] * queries
    counts = np.bincount(cells.ravel(), minlength=resamples * queries).reshape(resamples, queries)
    return np.ascontiguousarray(counts.T, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Attributes:
        low, high: its ends, NaN where it is undefined.
        method: the name of the function that made it, "" where it is undefined.
        undefined: share of resamples on which the coefficient is undefined.
    """

    low: float
    high: float
    method: str
    undefined: float


def percentile(value: float, draws: Floats, level: float) -> tuple[float, float]:
    """Return the central quantiles of the draws."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


METHODS: Final[dict[str, Callable[[float, Floats, float], tuple[float, float]]]] = {"percentile": percentile}


def interval(value: float, draws: Floats, level: float, method: str) -> Interval:
    """Return the interval of an estimate from its resampled values, shape (B,), NaN where undefined."""
    defined = draws[np.isfinite(draws)]
    undefined = 1 - len(defined) / max(len(draws), 1)
    if not np.isfinite(value) or undefined > UNDEFINED_SHARE:
        return Interval(np.nan, np.nan, "", undefined)
    low, high = METHODS[method](value, defined, level)
    return Interval(low, high, method, undefined)
