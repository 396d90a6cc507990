"""Differences between labelings in the same coefficient, on the same queries and the same resamples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.levels import Estimate, Resamples, paired_draws
from judgekit.analysis.resampling import interval, p_from_draws, spread

__all__ = ["DIFFERENCE_COLUMNS", "Difference", "difference", "differences", "holm", "steiger", "williams"]

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


def differences(
    first: Estimate, second: Estimate, level: str, confidence: float, resamples: Resamples | None
) -> dict[str, Difference]:
    """Return the difference of two estimates at a level, in each coefficient that both have.

    With ``resamples`` both are held against the same answers, and share draws of these.
    """
    both = second.names if len(second.names) < len(first.names) else first.names
    size, n = len(both), min(first.units, second.units)
    draws = first.draws[:size] - second.draws[:size] if resamples is None else paired_draws(first, second, resamples)
    values = first.values[:size] - second.values[:size]
    return {
        name: difference(float(value), drawn, confidence, n, level)
        for name, value, drawn in zip(both, values, draws, strict=True)
    }


def difference(value: float, draws: Floats, confidence: float, n: int, level: str) -> Difference:
    """Return what the paired resampled differences ``draws``, shape (B,), say of a difference over n queries.

    At system level the percentiles of the draws are taken, elsewhere their standard error with Student's t.
    """
    from scipy.special import stdtr

    ends = interval(value, draws, confidence, "shrunken-percentile" if level == "system" else "t", n)
    defined = draws[np.isfinite(draws)]
    if not ends.method:
        p = math.nan
    elif level == "system":
        p = p_from_draws(defined)
    elif (error := spread(defined, n)) == 0:
        p = float(value == 0)
    else:
        p = 2 * float(stdtr(max(n - 1, 1), -abs(value) / error))
    return Difference(value, ends.low, ends.high, p, ends.method)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return Holm's adjusted p-values, the first axis being the family; NaN stays NaN and is not counted in it."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, axis=0, kind="stable")
    left = np.isfinite(p).sum(axis=0) - np.arange(len(p)).reshape(-1, *[1] * (p.ndim - 1))
    steps = np.take_along_axis(p, order, axis=0) * left
    out = np.empty_like(p)
    np.put_along_axis(out, order, np.minimum(np.maximum.accumulate(steps, axis=0), 1), axis=0)
    return out


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
