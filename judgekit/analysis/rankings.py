"""The four coefficients over few runs, for many queries at once: series of shape (Q, R); and tau_AP over many runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Bools, Floats, Ints

_TIE: Final = 1e-11
_DIFFERENCES: Final = 200_000
"""Differences between runs that are worked out at a time, so that they stay in the processor's cache."""

Signs = npt.NDArray[np.float32]


@cache
def pairs(size: int) -> tuple[Ints, Ints]:
    """Return the first and the second of every two things, shape (P,) each."""
    i, j = np.triu_indices(size, 1)
    return i, j


def signs(values: Floats) -> Signs:
    """Return the sign of values[i] - values[j] for all i < j: shape (..., R (R - 1) / 2)."""
    i, j = pairs(values.shape[-1])
    apart = values[..., i] - values[..., j]
    # Means over queries of equal runs differ in their last digits.
    edge = _TIE * np.abs(values).max(axis=-1, keepdims=True, initial=0)
    return np.asarray(np.subtract(apart > edge, apart < -edge, dtype=np.float32))


def over_runs(
    scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS, there: Bools | None = None
) -> Floats:
    """Return coefficients of series over runs, shape (C, ...), NaN where a series is constant.

    ``names`` are the first C of `COEFFICIENTS`. Runs with ``there`` False are left out; both series then hold the mean
    of their other runs, see `over_present`.
    """
    return _over_runs(scores, quality, _signs_of(scores, there), _signs_of(quality, there), names)


def _over_runs(scores: Floats, quality: Floats, x: Signs, y: Signs, names: Sequence[str]) -> Floats:
    """Return coefficients over runs, given the signs of the differences in score and in quality too."""
    balance = np.einsum("...p,...p->...", x, y).astype(np.float64)
    untied_x = np.count_nonzero(x, axis=-1).astype(np.float64)
    untied_y = np.count_nonzero(y, axis=-1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [(balance / untied_y + 1) / 2]
        if len(names) > 1:
            runs = scores.shape[-1]
            found.append(balance / np.sqrt(untied_x * untied_y))
            found.append(_pearson(_mid_ranks(x, runs), _mid_ranks(y, runs)))
            found.append(_pearson(scores, quality))
    defined = (untied_x > 0) & (untied_y > 0)
    return np.where(defined, np.stack(found), np.nan)


def over_present(values: Floats, there: Bools) -> Floats:
    """Return values of shape (R, n) with absent ones replaced by the mean of the query's others.

    If scores and quality are both treated so, an absent run does not deviate from the mean in either and adds nothing
    to sums of products: the other runs are compared as if it did not exist.
    """
    present = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, values, 0).sum(axis=0) / present
    return np.where(there, values, mean)


def _signs_of(values: Floats, there: Bools | None) -> Signs:
    apart = signs(values)
    if there is not None:
        i, j = pairs(values.shape[-1])
        apart *= there[..., i] & there[..., j]
    return apart


def tau_ap(scores: Floats, quality: Floats) -> float:
    """Return tau_AP (Yilmaz, Aslam and Robertson, SIGIR 2008) of the order by score against that by quality.

    Runs of equal score share the places of their group equally, with half of the group above each; a run above one of
    equal quality counts as half right.
    """
    better = _compared(quality)
    higher = _compared(scores)
    total = 0.0
    for run in range(len(scores)):
        above = higher[run] > 0
        rightly = float((1 + better[run][above]).sum()) / 2
        group = int(np.count_nonzero(higher[run] == 0))
        for others in range(group):
            place = int(above.sum()) + others
            if place > 0:
                total += (rightly + others / 2) / place / group
    return 2 * total / (len(scores) - 1) - 1


def _compared(values: Floats) -> Floats:
    """Return which runs have a higher (1), equal (0) or lower (-1) value than each run, shape (R, R)."""
    apart = values - values[:, None]
    edge = _TIE * np.abs(values).max(initial=0)
    return np.asarray(np.subtract(apart > edge, apart < -edge, dtype=np.float64))


def _mid_ranks(apart: Signs, size: int) -> Floats:
    """Return each run's centred mid-rank: half of (the number of runs below it minus the number above it)."""
    first, second = pairs(size)
    each = np.eye(size, dtype=np.float32)
    return np.asarray(apart @ (each[first] - each[second]), dtype=np.float64) / 2


def within_queries(
    scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS, there: Bools | None = None
) -> Floats:
    """Return the coefficients over (present) runs per query, shape (C, Q)."""
    queries = scores.shape[1]
    # As many queries at a time as keep the differences of all pairs of runs small.
    blocks = max(queries * len(pairs(len(scores))[0]) // _DIFFERENCES, 1)
    found: list[Floats] = []
    for first, last in pairwise(np.linspace(0, queries, min(blocks, max(queries // 2, 1)) + 1).astype(int).tolist()):
        part = slice(first, last)
        present = None if there is None else there[:, part].T
        found.append(_within_queries(scores[:, part].T, quality[:, part].T, names, present))
    return np.concatenate(found, axis=1)


def _within_queries(scores: Floats, quality: Floats, names: Sequence[str], there: Bools | None) -> Floats:
    """Return the coefficients over runs of some queries, whose scores and quality are of shape (Q, R)."""
    answers = _signs_of(quality, there)
    out = _over_runs(scores, quality, _signs_of(scores, there), answers, names)
    # If answers differ and scores do not, the scores are a coin flip.
    silent = np.isnan(out[0]) & answers.any(axis=-1)
    out[0, silent] = 0.5
    out[1:, silent] = 0
    return out


def _pearson(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    product_sum = "...r,...r->..."
    squares = np.einsum(product_sum, x, x) * np.einsum(product_sum, y, y)
    r = np.einsum(product_sum, x, y) / np.sqrt(squares)
    return np.asarray(np.clip(r, -1, 1))
