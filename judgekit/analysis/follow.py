"""Which labeling follows the answers, question by question, and where its scores lean.

Plain arrays in, plain arrays out: scores and quality are of shape (R, n), runs by queries, all finite; ``weights`` says
how often each query is in each resample, shape (n, B). What a question is like, easy or hard, is taken off first: only
what differs between the runs on one question is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.rankings import gaps, pairs
from judgekit.analysis.resampling import max_t, spread, t_quantile

MIN_TELLING: Final = 5
"""Below so many queries on which answers and scores differ, the correlation has no interval and bears no claim."""
_EQUAL: Final = 1e-9
_FULL: Final = 200
"""Queries from which on a bias by run needs stronger evidence: noise in the labels looks like one in the end."""


@dataclass(frozen=True)
class Pooled:
    """The correlation of score and quality over all (run, query), each less its query's mean over the runs.

    Attributes:
        value: 0 where one of them is the same for all runs on every query.
        draws: on every resample, shape (B,).
        telling: on which queries the runs differ in quality and in score, shape (n,).
    """

    value: float
    draws: Floats
    telling: npt.NDArray[np.bool_]


def within_query(values: Floats) -> Floats:
    """Return values less each query's mean over the runs; what differs by rounding alone is equal."""
    centred = values - values.mean(axis=0)
    return np.where(np.abs(centred) > _EQUAL * np.abs(values).max(initial=0), centred, 0.0)


def pooled_correlation(scores: Floats, quality: Floats, weights: Floats) -> Pooled:
    """Return the pooled within-question correlation."""
    parts = _products(within_query(scores), within_query(quality))
    both, own, answers = np.column_stack([parts.sum(axis=1), parts @ weights])
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.where((own > 0) & (answers > 0), both / np.sqrt(own * answers), 0.0)
    return Pooled(float(r[0]), r[1:], (parts[1] > 0) & (parts[2] > 0))


def _products(x: Floats, y: Floats) -> Floats:
    """Return the sums over the runs of xy, xx and yy, shape (3, n)."""
    return np.stack([(a * b).sum(axis=0) for a, b in ((x, y), (x, x), (y, y))])


def slanted(scores: Floats, quality: Floats, weights: Floats, units: int, confidence: float) -> dict[int, bool]:
    """Return the runs whose scores are shown to be too high (True) or too low (False) for their answers, by index."""
    x, y = within_query(scores), within_query(quality)
    sums = _products(x, y)
    both, own, answers = np.column_stack([sums.sum(axis=1), sums @ weights])
    if units < MIN_TELLING or not (own > 0).all() or not (answers > 0).all():
        return {}
    size = np.append(x.shape[1], weights.sum(axis=0))
    mean_x, mean_y = (np.column_stack([each.sum(axis=1), each @ weights]) / size for each in (x, y))
    slopes = both / own
    if np.quantile(slopes[1:], (1 - confidence) / 2) <= 0:
        return {}
    # With more queries even the slight bend that noise gives a slope is significant: ask for more confidence.
    level = 1 - (1 - confidence) * min(1.0, _FULL / x.shape[1])
    under = _shown(mean_y - slopes * mean_x, units, level)
    over = _shown(mean_x - both / answers * mean_y, units, level)
    above = [np.sign(each[:, None] - each) for each in (mean_x[:, 0], mean_y[:, 0])]
    moved = ((above[0] - above[1]) * over[:, None] > 1).any(axis=1)
    return {run: bool(over[run] > 0) for run in range(len(x)) if under[run] * over[run] < 0 and moved[run]}


def _shown(draws: Floats, units: int, confidence: float) -> npt.NDArray[np.int64]:
    """Return the signs of the values that are shown to differ from 0 together; draws (R, 1 + B), the data first."""
    value, moved = draws[:, 0], draws[:, 1:] - draws[:, :1]
    error = spread(moved, units)
    there = error > 1e-12
    if not there.any():
        return np.zeros(len(value), np.int64)
    bound = max_t(moved[there], error[there], confidence, units - 1)
    return np.where(there & (np.abs(value) > bound * error), np.sign(value), 0).astype(np.int64)


def misordered(
    scores: Floats, quality: Floats, weights: Floats, units: int, confidence: float
) -> Iterator[tuple[int, int]]:
    """Yield the pairs (i, j) of runs of which i scores higher and j answers better, both shown."""
    first, second = pairs(len(scores))
    signs = []
    for values in (scores, quality):
        gap = gaps(values)
        error = spread(gap @ weights / np.maximum(weights.sum(axis=0), 1), units)
        bound = t_quantile(1 - (1 - confidence) / 2 / len(first), units)
        signs.append(
            np.where(np.abs(gap.mean(axis=1)) > np.maximum(bound * error, 1e-12), np.sign(gap.mean(axis=1)), 0)
        )
    for pair in np.flatnonzero(signs[0] * signs[1] < 0).tolist():
        i, j = int(first[pair]), int(second[pair])
        yield (i, j) if signs[0][pair] > 0 else (j, i)
