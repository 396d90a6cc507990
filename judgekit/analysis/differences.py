"""Differences between labelings in the same coefficient, on the same queries and the same resamples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import UNDEFINED_SHARE, interval, p_from_draws, spread, t_quantile

__all__ = ["DIFFERENCE_COLUMNS", "Difference", "difference", "holm", "steiger", "williams"]

DIFFERENCE_COLUMNS: Final[dict[str, str]] = {
    **dict.fromkeys(("first", "second", "measure", "run", "level"), "str"),
    "depth": "int",
    **dict.fromkeys(("quality_metric", "model", "coefficient"), "str"),
    **dict.fromkeys(("difference", "ci_low", "ci_high"), "float"),
    "ci_method": "str",
    **dict.fromkeys(("p", "p_holm", "williams_t", "williams_p", "steiger_z", "steiger_p"), "float"),
    "n": "int",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two estimates with what the resamples say of it.

    Attributes:
        value: first minus second.
        low, high: two-sided interval, NaN where undefined.
        p: two-sided p-value of no difference, NaN where undefined.
        method: how the interval was made, "" where undefined.
    """

    value: float
    low: float
    high: float
    p: float
    method: str


def difference(value: float, draws: Floats, confidence: float, n: int, level: str) -> Difference:
    """Return what the paired resampled differences ``draws``, shape (B,), say of a difference.

    At system level the percentiles of the draws are taken, elsewhere their standard error with Student's t.

    Args:
        value: the difference of the estimates.
        draws: the difference on every resample, NaN where undefined.
        confidence: of the interval.
        n: how many queries the estimates are over.
        level: ``query``, ``within-query`` or ``system``.
    """
    from scipy.special import stdtr

    defined = draws[np.isfinite(draws)]
    if not np.isfinite(value) or len(defined) < (1 - UNDEFINED_SHARE) * len(draws):
        return Difference(value, np.nan, np.nan, np.nan, "")
    if level == "system":
        ends = interval(value, defined, confidence, "shrunken-percentile", n)
        return Difference(value, ends.low, ends.high, p_from_draws(defined), ends.method)
    se = spread(defined, n)
    if se == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0, "t")
    half = t_quantile((1 + confidence) / 2, n) * se
    return Difference(value, value - half, value + half, 2 * float(stdtr(max(n - 1, 1), -abs(value) / se)), "t")


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values in the order given; NaN stays NaN and is not counted in the family."""
    p = np.asarray(p_values, dtype=np.float64)
    out = np.full(len(p), np.nan)
    family = np.flatnonzero(np.isfinite(p))
    order = family[np.argsort(p[family], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(value) for value in out]


def williams(r_jk: float, r_jh: float, r_kh: float, n: int) -> tuple[float, float]:
    """Return Williams' t and its two-sided p for two correlations that share the variable j (Steiger, 1980, eq. 7).

    Args:
        r_jk: correlation of the outcome with the first labeling.
        r_jh: correlation of the outcome with the second.
        r_kh: correlation of the two labelings.
        n: number of cases.

    Returns:
        (t, p); NaN where a correlation is or n < 4.

    >>> round(williams(0.2, 0.5, 0.1, 315)[0], 5)
    -4.49499
    """
    from scipy.special import stdtr

    determinant = 1 - r_jk**2 - r_jh**2 - r_kh**2 + 2 * r_jk * r_jh * r_kh
    mean = (r_jk + r_jh) / 2
    if n < 4 or not math.isfinite(determinant):
        return math.nan, math.nan
    below = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + mean**2 * (1 - r_kh) ** 3
    if below <= 0:
        return math.nan, math.nan
    t = (r_jk - r_jh) * math.sqrt((n - 1) * (1 + r_kh) / below)
    return t, 2 * float(stdtr(n - 3, -abs(t)))


def steiger(r_jk: float, r_jh: float, r_kh: float, n: int) -> tuple[float, float]:
    """Return Steiger's z (1980, eq. 14: Fisher's z with the mean correlation in the covariance) and its two-sided p.

    Args:
        r_jk: correlation of the outcome with the first labeling.
        r_jh: correlation of the outcome with the second.
        r_kh: correlation of the two labelings.
        n: number of cases.

    Returns:
        (z, p); NaN where a correlation is, or is 1, or n < 4.

    >>> round(steiger(0.2, 0.5, 0.1, 315)[0], 5)
    -4.41518
    """
    from scipy.special import ndtr

    if n < 4 or not max(abs(r_jk), abs(r_jh)) < 1 or not math.isfinite(r_kh):
        return math.nan, math.nan
    mean = (r_jk + r_jh) / 2
    psi = r_kh * (1 - 2 * mean**2) - mean**2 / 2 * (1 - 2 * mean**2 - r_kh**2)
    shared = psi / (1 - mean**2) ** 2
    if not shared < 1:
        return math.nan, math.nan
    z = (math.atanh(r_jk) - math.atanh(r_jh)) * math.sqrt((n - 3) / (2 - 2 * shared))
    return z, 2 * float(ndtr(-abs(z)))
