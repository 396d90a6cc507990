"""Intervals of the concordance that hold even if few answers are right, and claims that one labeling is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Bools, Floats, Ints, favours
from judgekit.analysis.resampling import max_t, t_quantile

MIN_DIFFERING: Final = 20
"""Nothing is claimed about two labelings that differ on fewer queries."""
MIN_EACH_SIDE: Final = 5
"""Nor if one of the two is ahead on fewer queries: rare large wins and frequent small losses look alike."""

_FEW_LEVELS: Final = 16
"""Up to so many values of quality, pairs of queries are counted by a table of quality and score."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The components of the variance of one run's concordance.

    Most pairs of labelings only need the rarer outcome, so the rest is computed on demand.

    Attributes:
        scores: shape (n,).
        quality: shape (n,), not constant.
    """

    scores: Floats
    quality: Floats

    @property
    def size(self) -> int:
        """Queries, those with a right and those with a wrong answer together."""
        return len(self.scores)

    @cached_property
    def _levels(self) -> tuple[Ints, Ints]:
        """The number of each query's quality among the different ones, ascending, and how many queries have each."""
        _, level, alike = np.unique(self.quality, return_inverse=True, return_counts=True)
        return level, alike

    @cached_property
    def _untied(self) -> Floats:
        """The number of queries with another quality, by query, shape (n,)."""
        level, alike = self._levels
        return np.asarray(self.size - alike[level])

    @cached_property
    def pairs(self) -> float:
        """Pairs of queries whose answers differ in quality."""
        return float(self._untied.sum()) / 2

    @cached_property
    def minority(self) -> float:
        """Queries of the rarer outcome; for graded quality the number that gives as many pairs."""
        # n1 + n0 = n and n1 n0 = pairs: for graded quality the sizes that would give as many pairs.
        n = self.size
        return (n - math.sqrt(max(n * n - 4 * self.pairs, 0.0))) / 2

    @cached_property
    def _agreement(self) -> Floats:
        """The number of queries ordered correctly against each query; ties in score count half."""
        level, alike = self._levels
        if len(alike) > _FEW_LEVELS:
            order = np.argsort(self.scores, kind="stable")
            favour: Floats = np.empty(self.size)
            ordered = favours(self.scores[order], self.quality[order], np.ones((self.size, 1)))
            favour[order] = ordered[:, 0]
        else:
            favour = self._counted(level, len(alike))
        return np.asarray((favour + self._untied) / 2)

    def _counted(self, level: Ints, levels: int) -> Floats:
        """Return by query how many queries score and quality order alike with it, less those that they do not."""
        _, place, often = np.unique(self.scores, return_inverse=True, return_counts=True)
        size = len(often)
        table = np.bincount(level * size + place, minlength=levels * size).reshape(levels, size)
        up_to = np.cumsum(table, axis=1)
        # By quality and score, how many queries of this quality score lower, less how many score higher.
        lean = 2 * up_to - table - up_to[:, -1:]
        below = np.cumsum(lean, axis=0)
        favour = 2 * below - lean - below[-1]
        return np.asarray(favour[level, place], dtype=np.float64)

    @cached_property
    def concordance(self) -> float:
        """Its value."""
        return float(self._agreement.sum()) / (2 * self.pairs)

    @cached_property
    def influence(self) -> Floats:
        """Each query's share in its error, shape (n,) (DeLong's components; 0 for a query in no pair)."""
        return np.asarray((self._agreement - self.concordance * self._untied) / self.pairs)


@dataclass(frozen=True)
class _Variance:
    """The mean over runs of a concordance's variance (Newcombe 2006, method 5).

    Attributes:
        alone: the part of single pairs of queries.
        shared: the part of pairs that have a query in common.
    """

    alone: float
    shared: float

    def at(self, value: float) -> float:
        """Return the variance of a concordance of this value."""
        both_sides = (1 - value) / (2 - value) + value / (1 + value)
        return value * (1 - value) * (self.alone + self.shared * both_sides)


def mean_concordance_interval(
    runs: Sequence[tuple[Margins, Ints]], confidence: float, groups: Ints | None = None
) -> tuple[float, float]:
    """Return the interval of the mean over runs of the concordance over queries.

    Args:
        runs: each run's margins, and the positions of its queries.
        confidence: of the interval.
        groups: the group of each query, shape (Q,), if queries are grouped.
    """
    from scipy.special import ndtri

    two_sided = (1 + confidence) / 2
    z = float(ndtri(two_sided))
    parts, places = zip(*runs, strict=True)
    value = float(np.mean([part.concordance for part in parts]))
    variance = _variance(parts)
    inflation = 1.0
    if len(parts) > 1 or groups is not None:
        shares, rows_per_unit = _shares_of_queries(runs), 1.0
        if groups is not None:
            queries = np.unique(np.concatenate(places))
            _, of_queries = np.unique(groups[queries], return_inverse=True)
            z = t_quantile(two_sided, int(of_queries.max()) + 1)
            alone = float((shares**2).sum(axis=1).mean())
            shares = np.stack([np.bincount(of_queries, row[queries]) for row in shares])
            weight = _at_the_edge(variance, parts, value)
            # If no query has a share in the error, all queries of a group may fail together.
            same = float((np.bincount(of_queries) ** 2).sum()) / len(queries)
            design_effect = (float((shares**2).sum(axis=1).mean()) + same * weight) / (alone + weight)
            rows_per_unit = max(design_effect, 1.0)
            variance = _variance(parts, rows_per_unit)
        apart = float((shares**2).sum(axis=1).mean())
        together = float((shares.mean(axis=0) ** 2).sum())
        weight = _at_the_edge(variance, parts, value, rows_per_unit)
        ratio = (together + weight) / (apart + weight)
        inflation = float(np.clip(ratio, 1 / len(parts), 1.0))

    def outside(limit: float) -> bool:
        return abs(value - limit) > z * math.sqrt(inflation * variance.at(limit))

    return _edge(outside, value, 0.0), _edge(outside, value, 1.0)


def _variance(parts: Sequence[Margins], rows_per_unit: float = 1.0) -> _Variance:
    """Return the variance of the mean over runs if this many rows are worth one question."""
    alone = [rows_per_unit**2 / part.pairs for part in parts]
    shared = [(part.size / rows_per_unit / 2 - 1) * rows_per_unit**2 / part.pairs for part in parts]
    return _Variance(sum(alone) / len(parts), sum(shared) / len(parts))


def _at_the_edge(variance: _Variance, parts: Sequence[Margins], value: float, rows_per_unit: float = 1.0) -> float:
    """Return a question's weight in the error if all pairs are ordered correctly, so that none has a share."""
    size = float(np.mean([part.size for part in parts])) / rows_per_unit
    minority = float(np.mean([part.minority for part in parts])) / rows_per_unit
    # As if half a question were ordered wrongly.
    inner = float(np.clip(value, min(0.5 / size, 0.5), max(1 - 0.5 / size, 0.5)))
    return 2 * variance.at(inner) / minority


def _shares_of_queries(runs: Sequence[tuple[Margins, Ints]]) -> Floats:
    """Return each query's share in the error of each run, shape (R, Q); 0 if a run returns nothing for it."""
    last = max(int(where.max()) for _, where in runs)
    shares = np.zeros((len(runs), 1 + last))
    for row, (part, where) in zip(shares, runs, strict=True):
        row[where] = part.influence
    return shares


def _edge(outside: Callable[[float], bool], inside: float, end: float) -> float:
    """Return the point between ``inside`` and ``end`` at which values leave the interval."""
    near, far = inside, end
    # Fifty halvings reach the last digit of a 64-bit float.
    for _ in range(50):
        middle = (near + far) / 2
        if outside(middle):
            far = middle
        else:
            near = middle
    return near


def within_query_interval(values: Floats, confidence: float, groups: Ints | None = None) -> tuple[float, float]:
    """Return the interval of a mean over queries of values in [0, 1], never of zero width."""
    # Wilson's interval, with as many queries as a yes-or-no value would need for the same spread, and Student's t
    # instead of z. The spread includes one extra 0 and one extra 1.
    n = units = len(values)
    share, together = float(values.mean()), 1.0
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        errors = values - share
        of_groups = np.bincount(group, errors)
        apart = float((errors**2).sum())
        units = len(of_groups)
        # If all queries agree, all of a group may fail together.
        together = float((np.bincount(group) ** 2).sum()) / n
        if apart > 0:
            together = max(float((of_groups**2).sum()) / apart, 1.0)
    # The 0 and the 1 weigh as much as an independent unit does.
    weight = n / units
    middle = (float(values.sum()) + weight) / (n + 2 * weight)
    spread = float(((values - middle) ** 2).sum())
    spread += weight * (middle**2 + (1 - middle) ** 2)
    yes_or_no = middle * (1 - middle)
    design_effect = together * min(spread / (n + weight) / yes_or_no, 1.0)
    size = n / design_effect
    t = t_quantile((1 + confidence) / 2, units)
    shrink = 1 + t * t / size
    centre = (share + t * t / (2 * size)) / shrink
    variance = share * (1 - share) / size
    variance += t * t / (4 * size * size)
    half = t * math.sqrt(variance) / shrink
    # At 0 and 1, one end is the value itself, up to rounding.
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


def least_leads(
    values: Floats,
    draws: Floats,
    *,
    confidence: float,
    n: int,
    freedom: npt.NDArray[np.int64],
    enough: Bools,
    best: tuple[Floats, Floats] | None = None,
    apart: Mapping[tuple[int, int], tuple[float, Floats]] | None = None,
) -> Floats:
    """Return the smallest lead of each labeling over each other: one bound for all pairs, from the largest t (max-t).

    ``best`` holds the values and draws of the second of a pair if they differ, ``apart`` the lead and draws of pairs
    that are compared on other cases. NaN for pairs with too few data; ``leads[a, b] > 0`` shows that a is better than
    b.
    """
    first, second = np.nonzero(~np.eye(len(values), dtype=np.bool_))
    rivals, moved_rivals = best or (values, draws)
    gap = values[first] - rivals[second]
    moved = draws[first] - moved_rivals[second]
    for place, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if apart is not None and pair in apart:
            gap[place], moved[place] = apart[pair]
    moved = moved[:, np.isfinite(moved).all(axis=0)]
    leads = np.full(enough.shape, np.nan)
    if not moved.size:
        return leads
    error = moved.std(axis=1, ddof=1)
    # Labelings with the same decisions in every resample cannot be told apart, and take no part in the other bounds.
    differ = error > 1e-12
    first, second, gap = first[differ], second[differ], gap[differ]
    moved, error = moved[differ], error[differ]
    if len(first):
        bound = max_t(moved - gap[:, None], error, confidence, freedom[first, second])
        wider = np.sqrt(n / (n - 1))
        leads[first, second] = gap - bound * error * wider
    return np.where(enough, leads, np.nan)
