"""The one resample matrix, and the intervals made from what it yields.

Every statistic of a comparison is worked out on the same resamples of the queries, so that differences between
labelings, measures and models are paired. Which method is used where was chosen by measured coverage, see
`judgekit.analysis.coverage`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.errors import UsageError

__all__ = [
    "METHODS",
    "SCALES",
    "UNDEFINED_SHARE",
    "Interval",
    "interval",
    "p_from_draws",
    "percent",
    "resample_matrix",
    "spread",
    "t_quantile",
]

UNDEFINED_SHARE: Final = 0.05
"""With a larger share of resamples on which a coefficient is undefined, its interval is undefined too."""


def percent(confidence: float) -> str:
    """Return a confidence in words.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * confidence:.10g} %"


def resample_matrix(queries: int, resamples: int, seed: int, groups: npt.NDArray[np.intp] | None = None) -> Floats:
    """Return how often each query is in each bootstrap resample, shape (queries, resamples).

    With ``groups``, the group of each query, whole groups are drawn.

    Row i belongs to the i-th query in ascending order of id, so the result depends on the seed and the set of
    queries only.

    Raises:
        UsageError: fewer than 100 resamples, too few for an interval.
    """
    if resamples < 100:
        raise UsageError(f"resamples: at least 100 are needed for an interval, not {resamples}")
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        return np.ascontiguousarray(resample_matrix(int(group.max(initial=-1)) + 1, resamples, seed)[group])
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


def t_quantile(probability: float, n: int) -> float:
    """Return the quantile of Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), probability))


def spread(draws: Floats, n: int) -> float:
    """Return the standard error: the draws' standard deviation, with the factor that makes it unbiased for a mean."""
    return float(np.std(draws, ddof=1) * np.sqrt(n / max(n - 1, 1)))


class Scale(NamedTuple):
    """A scale on which a coefficient's estimates spread evenly: ``to(values, n)`` and back."""

    to: Callable[[Floats, int], Floats]
    back: Callable[[Floats], Floats]


def _as_it_is(values: Floats, n: int) -> Floats:
    return values


def _fisher_z(values: Floats, n: int) -> Floats:
    edge = 1 - 1 / max(n, 2) ** 2
    return np.asarray(np.arctanh(np.clip(values, -edge, edge)))


def _angle(values: Floats, n: int) -> Floats:
    return np.asarray(np.arcsin(np.clip(2 * values - 1, -1, 1)))


def _from_angle(angles: Floats) -> Floats:
    return np.asarray((np.sin(np.clip(angles, -np.pi / 2, np.pi / 2)) + 1) / 2)


SCALES: Final[dict[str, Scale]] = {
    "t": Scale(_as_it_is, lambda values: values),
    "fisher-t": Scale(_fisher_z, lambda values: np.asarray(np.tanh(values))),
    "arcsine-t": Scale(_angle, _from_angle),
}
"""The scales of the t intervals: as it is; Fisher's z for coefficients in [-1, 1], where +-1 is cut at 1 - 1/n^2; the
arcsine for proportions in [0, 1]."""


def _student(value: float, draws: Floats, level: float, n: int) -> tuple[float, float]:
    """Return value +- t times the bootstrap standard error."""
    half = t_quantile((1 + level) / 2, n) * spread(draws, n)
    return value - half, value + half


def _on_scale(name: str) -> Callable[[float, Floats, float, int], tuple[float, float]]:
    """Return the t interval on a scale."""
    scale = SCALES[name]

    def method(value: float, draws: Floats, level: float, n: int) -> tuple[float, float]:
        moved = scale.to(np.append(draws, value), n)
        low, high = scale.back(np.array(_student(float(moved[-1]), moved[:-1], level, n)))
        return min(float(low), value), max(float(high), value)

    return method


def percentile(value: float, draws: Floats, level: float, n: int) -> tuple[float, float]:
    """Return the central quantiles of the draws, widened to hold the value."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), value), max(float(high), value)


METHODS: Final[dict[str, Callable[[float, Floats, float, int], tuple[float, float]]]] = {
    **{name: _on_scale(name) for name in SCALES},
    "percentile": percentile,
    "shrunken-percentile": percentile,
}
"""The interval methods by the name that the comparison table gives. ``shrunken-percentile`` is the percentile
interval of the draws of `judgekit.analysis.shrinkage`."""


def interval(value: float, draws: Floats, level: float, method: str, n: int) -> Interval:
    """Return the interval of an estimate over n queries from its resampled values, shape (B,), NaN where undefined."""
    defined = draws[np.isfinite(draws)]
    undefined = 1 - len(defined) / max(len(draws), 1)
    if not np.isfinite(value) or undefined > UNDEFINED_SHARE:
        return Interval(np.nan, np.nan, "", undefined)
    low, high = METHODS[method](value, defined, level, n)
    return Interval(low, high, method, undefined)


def p_from_draws(draws: Floats) -> float:
    """Return the two-sided p-value of no difference from draws of a difference; draws of exactly 0 speak for it."""
    below, above = float(np.mean(draws <= 0)), float(np.mean(draws >= 0))
    floor = 1 / (len(draws) + 1)
    return min(1.0, 2 * max(min(below, above), floor))
