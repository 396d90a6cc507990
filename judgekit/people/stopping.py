"""When to stop: looks at whole queries that keep their error rate.

Five looks with the boundaries of O'Brien and Fleming (1979) for a set of queries that is fixed in advance. Who stops by
them states their intervals, not those of a single look, which would be too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from judgekit.errors import UsageError

__all__ = ["LOOKS", "Stop", "boundaries", "decide"]

Floats = npt.NDArray[np.float64]

LOOKS: Final = 5
_GRID: Final = 801


@cache
def boundaries(looks: int = LOOKS, alpha: float = 0.05) -> tuple[float, ...]:
    """Return the z beyond which a difference is decided at each of some equally spaced looks, two-sided."""
    # c sqrt(K / k) at look k of K, with c such that the chance of ever crossing is alpha where nothing differs; found
    # by integrating the density of the sums that have not crossed yet, look by look (Armitage et al., 1969).

    def crossed(c: float) -> float:
        # Sums of standard normal increments; the boundary of the sum is c sqrt(K) at every look.
        edge = c * np.sqrt(looks)
        x, weight = np.polynomial.legendre.leggauss(_GRID // 5)
        x, weight = x * edge, weight * edge
        density = stats.norm.pdf(x)
        out = 2 * float(stats.norm.sf(edge))
        for _ in range(looks - 1):
            out += float(weight @ (density * (stats.norm.sf(edge - x) + stats.norm.cdf(-edge - x))))
            density = stats.norm.pdf(x[:, None] - x) @ (weight * density)
        return out

    c = optimize.brentq(lambda value: crossed(value) - alpha, 0.5, 6.0)
    return tuple(float(c * np.sqrt(looks / k)) for k in range(1, looks + 1))


@dataclass(frozen=True, slots=True)
class Stop:
    """What the looks so far say.

    Attributes:
        decided: whether the interval leaves 0 out.
        used: after how many queries that was, else how many there are.
        looks: how many looks were taken.
        value, low, high: the mean difference there, with the interval that holds for all looks.
    """

    decided: bool
    used: int
    looks: int
    value: float
    low: float
    high: float


def decide(
    differences: Sequence[float] | Floats,
    planned: int,
    *,
    looks: int = LOOKS,
    alpha: float = 0.05,
) -> Stop:
    """Return whether a mean difference is decided yet."""
    d = np.asarray(differences, np.float64)
    if not 1 <= looks <= planned or len(d) > planned:
        raise UsageError(f"{len(d)} queries, {planned} planned and {looks} looks do not go together")
    ends, taken, n = (-np.inf, np.inf), 0, 0
    value, worst = 0.0, max(1.0, float(np.abs(d).max(initial=0.0)))
    for number, z in enumerate(boundaries(looks, alpha), 1):
        at = -(-planned * number // looks)
        if at > len(d):
            break
        taken, n, value = number, at, float(d[:at].mean())
        # As far out on Student's t as z is on the normal distribution: the spread is estimated, and by no more than
        # the queries that differ.
        edge = float(stats.t.isf(float(stats.norm.sf(z)), max(int(np.count_nonzero(d[:at])) - 1, 1)))
        # Each end with one more query against it: where differences are rare and skewed, the next one may be the first.
        low, high = (np.append(d[:at], sign * worst) for sign in (-1.0, 1.0))
        reach = edge / (at + 1) ** 0.5
        ends = float(low.mean() - reach * low.std(ddof=1)), float(high.mean() + reach * high.std(ddof=1))
        if ends[0] > 0 or ends[1] < 0:
            return Stop(True, n, taken, value, *ends)
    return Stop(False, n, taken, value, *ends)
