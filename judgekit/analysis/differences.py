"""Differences between labelings in the same coefficient, on the same queries and the same resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import UNDEFINED_SHARE

__all__ = ["Difference", "difference", "holm"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two estimates with what the resamples say of it.

    Attributes:
        value: first minus second.
        low, high: two-sided interval, NaN where undefined.
        p: two-sided p-value of no difference, NaN where undefined.
        se: standard error.
        upper: one-sided 95 % upper bound.
    """

    value: float
    low: float
    high: float
    p: float
    se: float
    upper: float


def difference(first: float, second: float, draws: Floats, level: float) -> Difference:
    """Return the difference of two estimates whose paired resampled differences are ``draws``, shape (B,)."""
    from scipy.special import ndtr, ndtri

    value = first - second
    defined = draws[np.isfinite(draws)]
    if not np.isfinite(value) or len(defined) < (1 - UNDEFINED_SHARE) * len(draws):
        return Difference(value, np.nan, np.nan, np.nan, np.nan, np.nan)
    se = float(np.std(defined, ddof=1))
    if se == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0, 0.0, value)
    half = float(ndtri((1 + level) / 2)) * se
    p = 2 * float(ndtr(-abs(value) / se))
    return Difference(value, value - half, value + half, p, se, value + float(ndtri(0.95)) * se)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values in the order given; NaN stays NaN and is not counted in the family."""
    p = np.asarray(p_values, dtype=np.float64)
    out = np.full(len(p), np.nan)
    family = np.flatnonzero(np.isfinite(p))
    order = family[np.argsort(p[family], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(value) for value in out]
