"""Intervals of the concordance that hold where few answers are right, and claims that one labeling is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats, favours
from judgekit.analysis.resampling import max_t, t_quantile

Ints = npt.NDArray[np.intp]

MIN_DIFFERING: Final = 20
"""Below so many queries on which two labelings differ nothing is claimed of them."""
MIN_EACH_SIDE: Final = 5
"""Nor where one of the two is ahead on fewer queries: rare large wins against frequent small losses look alike."""


@dataclass(frozen=True, slots=True)
class Margins:
    """What the variance of one run's concordance is made of.

    Attributes:
        concordance: its value.
        influence: each query's share in its error, shape (n,) (DeLong's components; 0 where it is in no pair).
        size: queries, those with a right and those with a wrong answer together.
        pairs: pairs of queries whose answers differ in quality.
        minority: queries of the rarer outcome; for graded quality what gives as many pairs.
    """

    concordance: float
    influence: Floats
    size: int
    pairs: float
    minority: float


def _variance(runs: Sequence[Margins]) -> Callable[[float], float]:
    """Return the mean over runs of the variance that a concordance would have, by its value."""
    alone = sum(1 / each.pairs for each in runs) / len(runs)
    shared = sum((each.size / 2 - 1) / each.pairs for each in runs) / len(runs)

    def at(value: float) -> float:
        return value * (1 - value) * (alone + shared * ((1 - value) / (2 - value) + value / (1 + value)))

    return at


def margins(scores: Floats, quality: Floats) -> Margins:
    """Return the margins of the concordance of scores with quality, both of shape (n,), quality not constant."""
    n = len(scores)
    _, level, alike = np.unique(quality, return_inverse=True, return_counts=True)
    untied = n - alike[level]
    order = np.argsort(scores, kind="stable")
    favour = np.empty(n)
    favour[order] = favours(scores[order], quality[order], np.ones((n, 1)))[:, 0]
    # Of the queries with another quality, those on the right side, ties in score half.
    agreement = (favour + untied) / 2
    pairs = float(untied.sum()) / 2
    value = float(agreement.sum()) / (2 * pairs)
    # n1 + n0 = n and n1 n0 = pairs: for graded quality the sizes that would give as many pairs.
    minority = (n - np.sqrt(max(n * n - 4 * pairs, 0.0))) / 2
    return Margins(value, (agreement - value * untied) / pairs, n, pairs, float(minority))


def mean_concordance_interval(
    runs: Sequence[tuple[Margins, npt.NDArray[np.intp]]], confidence: float, groups: Ints | None = None
) -> tuple[float, float]:
    """Return the interval of the mean over runs of the concordance over queries."""
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    found = [each for each, _ in runs]
    value = float(np.mean([each.concordance for each in found]))
    variance = _variance(found)
    f = 1.0
    if len(found) > 1 or groups is not None:
        queries = 1 + max(int(where.max()) for _, where in runs)
        influence = np.zeros((len(runs), queries))
        for row, (each, where) in zip(influence, runs, strict=True):
            row[where] = each.influence
        alone = float((influence**2).sum(axis=1).mean())
        together = influence.mean(axis=0)
        most = 1.0
        if groups is not None:
            there = np.unique(groups[np.unique(np.concatenate([where for _, where in runs]))])
            z, most = t_quantile((1 + confidence) / 2, len(there)), np.inf
            together = np.bincount(groups[:queries], together)
        shared = float((together**2).sum())
        n = float(np.mean([each.size for each in found]))
        weight = (
            2
            * variance(float(np.clip(value, 0.5 / n, 1 - 0.5 / n)))
            / float(np.mean([each.minority for each in found]))
        )
        f = float(np.clip((shared + weight) / (alone + weight), 1 / len(found), most))

    def outside(at: float) -> bool:
        return abs(value - at) > z * math.sqrt(f * variance(at))

    return _edge(outside, value, 0.0), _edge(outside, value, 1.0)


def _edge(outside: Callable[[float], bool], inside: float, end: float) -> float:
    """Return where, from ``inside`` towards ``end``, values begin to lie outside."""
    near, far = inside, end
    for _ in range(50):
        middle = (near + far) / 2
        if outside(middle):
            far = middle
        else:
            near = middle
    return near


def within_query_interval(values: Floats, confidence: float, groups: Ints | None = None) -> tuple[float, float]:
    """Return the interval of a mean over queries of values in [0, 1], never of zero width."""
    # Wilson's with as many queries as a yes-or-no value would need for the same spread, Student's t in place of z; the
    # spread is that of the values and of one 0 and one 1 beside them.
    n = units = len(values)
    share, together = float(values.mean()), 1.0
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        apart, alone = np.bincount(group, values - share), float(((values - share) ** 2).sum())
        units = len(apart)
        together = max(float((apart**2).sum()) / alone, 1.0) if alone > 0 else n / units
    # The 0 and the 1 weigh as much as an independent unit does.
    weight = n / units
    middle = (float(values.sum()) + weight) / (n + 2 * weight)
    spread = float(((values - middle) ** 2).sum()) + weight * (middle**2 + (1 - middle) ** 2)
    f = together * min(spread / (n + weight) / (middle * (1 - middle)), 1.0)
    size, t = n / f, t_quantile((1 + confidence) / 2, units)
    centre = (share + t * t / (2 * size)) / (1 + t * t / size)
    half = t * np.sqrt(share * (1 - share) / size + t * t / (4 * size * size)) / (1 + t * t / size)
    # At 0 and 1 one end is the value itself, but for rounding.
    return float(np.clip(centre - half, 0, share)), float(np.clip(centre + half, share, 1))


def least_leads(
    values: Floats,
    draws: Floats,
    *,
    confidence: float,
    n: int,
    freedom: npt.NDArray[np.int64],
    enough: npt.NDArray[np.bool_],
    best: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Return by how much each labeling leads each other at least: one bound for all pairs, from the largest t (max-t).

    NaN where too little is known of a pair; ``leads[a, b] > 0`` shows that a is better than b.
    """
    first, second = np.nonzero(~np.eye(len(values), dtype=np.bool_))
    rivals, moved_rivals = best or (values, draws)
    gap, moved = values[first] - rivals[second], draws[first] - moved_rivals[second]
    moved = moved[:, np.isfinite(moved).all(axis=0)]
    leads = np.full(enough.shape, np.nan)
    if not moved.size:
        return leads
    error = moved.std(axis=1, ddof=1)
    # Two that make the same decisions in every resample are not told apart, and no other pair's bound is about them.
    first, second, gap, moved, error = (each[error > 1e-12] for each in (first, second, gap, moved, error))
    if len(first):
        bound = max_t(moved - gap[:, None], error, confidence, freedom[first, second])
        leads[first, second] = gap - bound * error * np.sqrt(n / (n - 1))
    return np.where(enough, leads, np.nan)
