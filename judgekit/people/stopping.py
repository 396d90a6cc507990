"""How many more labels, and when to stop: planning from a pilot, and looks at the data that keep their error rate.

Five looks with the boundaries of O'Brien and Fleming (1979) for a set of queries that is fixed in advance; for an
open-ended stream a confidence sequence (Waudby-Smith et al., 2024, asymptotic), whose intervals hold at every time at
once. Who stops by them states their intervals, not those of a single look, which would be too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, stats

from judgekit.data.labelings import Labeling
from judgekit.errors import UsageError
from judgekit.metrics import parse_measures
from judgekit.people.correct import Corrected, by_queries, whole_queries
from judgekit.people.reading import People
from judgekit.stages import Collection

__all__ = ["LOOKS", "Decision", "boundaries", "confidence_sequence", "decide", "expected", "plan"]

Floats = npt.NDArray[np.float64]

LOOKS: Final = 5
_FIRST: Final = 50
"""A confidence sequence is infinitely wide before this number of queries."""
_GRID: Final = 801


@cache
def boundaries(looks: int = LOOKS, alpha: float = 0.05) -> tuple[float, ...]:
    """Return the z beyond which a difference is decided at each of some equally spaced looks, two-sided.

    c sqrt(K / k) at look k of K, with c such that the chance of ever crossing is alpha where nothing differs; found
    by integrating the density of the sums that have not crossed yet, look by look (Armitage et al., 1969).
    """

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


def confidence_sequence(differences: Floats, planned: int, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """Return the ends of intervals of the mean that hold at every number of queries at once, shape (n,) each.

    D_t +- s_t sqrt(2 (t r2 + 1) / (t2 r2) ln(sqrt(t r2 + 1) / alpha)), narrowest near the planned number; the
    variance has two pseudo-observations of 1, (sum D2 + 2) / (t + 2) - D_t2, since the plain one ends falsely where
    few queries differ. Infinite before 50 queries.

    Args:
        differences: one per query, in random order, shape (n,), in [-1, 1].
        planned: the number of queries at which it should be narrowest.
        alpha: the chance that it ever leaves the mean out; divide it by the number of comparisons.
    """
    t = np.arange(1, len(differences) + 1)
    mean = np.cumsum(differences) / t
    variance = (np.cumsum(differences**2) + 2) / (t + 2) - mean**2
    wide = -2 * np.log(alpha)
    r2 = (wide + np.log(wide) + 1) / planned
    reach = np.sqrt(variance * 2 * (t * r2 + 1) / (t**2 * r2) * np.log(np.sqrt(t * r2 + 1) / alpha))
    reach[t < _FIRST] = np.inf
    return mean - reach, mean + reach


@dataclass(frozen=True, slots=True)
class Decision:
    """What the looks so far say.

    Attributes:
        decided: whether the interval leaves 0 out.
        used: after how many queries that was, else how many there are.
        looks: how many looks were taken, 0 for a stream.
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
    method: Literal["looks", "stream"] = "looks",
    looks: int = LOOKS,
    alpha: float = 0.05,
) -> Decision:
    """Return whether a mean difference is decided yet.

    Args:
        differences: one per query so far, in the random order in which the queries were labelled.
        planned: how many queries there will be at most.
        method: ``looks``: at each ``planned / looks`` queries; ``stream``: after every query.
        looks: how many.
        alpha: two-sided error over all looks; divide it by the number of comparisons.

    Raises:
        UsageError: there are more queries than planned, or fewer looks or queries than make sense.
    """
    d = np.asarray(differences, np.float64)
    if not 1 <= looks <= planned or (len(d) > planned and method == "looks"):
        raise UsageError(f"{len(d)} queries, {planned} planned and {looks} looks do not go together")
    if method == "stream":
        low, high = confidence_sequence(d, planned, alpha)
        out = np.flatnonzero((low > 0) | (high < 0))
        at = int(out[0]) if len(out) else len(d) - 1
        value = float(d[: at + 1].mean()) if len(d) else 0.0
        ends = (float(low[at]), float(high[at])) if len(d) else (-np.inf, np.inf)
        return Decision(bool(len(out)), at + 1, 0, value, *ends)
    ends, taken, n = (-np.inf, np.inf), 0, 0
    value = 0.0
    for number, z in enumerate(boundaries(looks, alpha), 1):
        at = -(-planned * number // looks)
        if at > len(d):
            break
        taken, n, value = number, at, float(d[:at].mean())
        # As far out on Student's t as z is on the normal distribution: the spread is estimated, and by no more than
        # the queries that differ.
        edge = float(stats.t.isf(float(stats.norm.sf(z)), max(int(np.count_nonzero(d[:at])) - 1, 1)))
        reach = edge * float(d[:at].std(ddof=1)) / at**0.5 if at > 1 else np.inf
        ends = value - reach, value + reach
        if reach and (ends[0] > 0 or ends[1] < 0):
            return Decision(True, n, taken, value, *ends)
    return Decision(False, n, taken, value, *ends)


def expected(
    estimate: Corrected, judged: int, queries: int, more: Sequence[int], confidence: float = 0.95
) -> pd.DataFrame:
    """Return what further labels would bring to a corrected mean or difference of whole queries.

    Args:
        estimate: from the labels so far.
        judged: queries that people judged so far.
        queries: all queries.
        more: further queries to judge.
        confidence: of the intervals.

    Returns:
        Rows ``more, judged, half_width, power``: power is about the chance (by the normal distribution) to show a
        difference as large as the estimate.
    """
    rows = []
    for extra in more:
        n = min(judged + extra, queries)
        error = float(np.sqrt(max((1 / n - 1 / queries) * estimate.sampled + estimate.fixed, 0.0)))
        edge = float(stats.t.ppf((1 + confidence) / 2, n - 1))
        away = abs(estimate.value) / error if error else np.inf
        power = float(stats.norm.cdf(away - edge) + stats.norm.cdf(-away - edge))
        rows.append((extra, n, edge * error, power))
    return pd.DataFrame(rows, columns=["more", "judged", "half_width", "power"])


def plan(
    collection: Collection,
    people: People,
    labelings: Mapping[str, Labeling],
    measures: str | Sequence[object],
    more: Sequence[int],
) -> pd.DataFrame:
    """Return what further queries by people would bring to each run's mean and to each difference of two runs.

    Returns:
        Rows ``labeling, measure, run, other, value, more, judged, half_width, power``.

    Raises:
        UsageError: people judged single pairs, or fewer than three queries.
    """
    if not whole_queries(collection, people.asked):
        raise UsageError("planning counts whole queries, and people judged single pairs: sample with --design queries")
    parts = []
    for name, labeling in labelings.items():
        for measure in parse_measures(measures):
            estimates, n, total = by_queries(collection, people, labeling, measure)
            for (run, other), (made, _, _) in estimates.items():
                key = {"labeling": name, "measure": str(measure), "run": run, "other": other, "value": made.value}
                table = expected(made, n, total, more)
                parts.append(pd.DataFrame(key, table.index).join(table))
    return pd.concat(parts, ignore_index=True)
