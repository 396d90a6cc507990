"""The four coefficients over few runs, for many queries at once: series of shape (Q, R); and tau_AP over many runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Floats

_TIE: Final = 1e-11

Signs = npt.NDArray[np.float32]


@cache
def pairs(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first and the second of every two things, shape (P,) each."""
    i, j = np.triu_indices(size, 1)
    return i, j


def gaps(values: Floats) -> Floats:
    """Return values[i] - values[j] for every two runs, i < j: shape (R, n) becomes (R (R - 1) / 2, n)."""
    i, j = pairs(len(values))
    return np.asarray(values[i] - values[j])


def signs(values: Floats) -> Signs:
    """Return the sign of values[i] - values[j] for all i < j: shape (..., R (R - 1) / 2)."""
    i, j = pairs(values.shape[-1])
    apart = values[..., i] - values[..., j]
    edge = _TIE * np.abs(values).max(axis=-1, keepdims=True, initial=0)
    return np.asarray(np.subtract(apart > edge, apart < -edge, dtype=np.float32))


def over_runs(scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS) -> Floats:
    """Return coefficients of series over runs, shape (C, ...), NaN where a series is constant.

    ``names`` are the first C of `COEFFICIENTS`.
    """
    x, y = signs(scores), signs(quality)
    balance = np.einsum("...p,...p->...", x, y).astype(np.float64)
    untied_x, untied_y = (np.count_nonzero(series, axis=-1).astype(np.float64) for series in (x, y))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [(balance / untied_y + 1) / 2]
        if len(names) > 1:
            found.append(balance / np.sqrt(untied_x * untied_y))
            found.append(_pearson(_mid_ranks(x, scores.shape[-1]), _mid_ranks(y, scores.shape[-1])))
            found.append(_pearson(scores, quality))
    return np.where((untied_x > 0) & (untied_y > 0), np.stack(found), np.nan)


def tau_ap(scores: Floats, quality: Floats) -> float:
    """Return tau_AP (Yilmaz, Aslam and Robertson, SIGIR 2008) of the order by score against that by quality.

    A run of equal score stands in each place of its group as often, with half of the others of the group rightly above
    it; a run of equal quality above another one is half right.
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
    """Return, by run, which runs have a higher value (1), an equal (0) or a lower one (-1): shape (R, R)."""
    apart = values - values[:, None]
    edge = _TIE * np.abs(values).max(initial=0)
    return np.asarray(np.subtract(apart > edge, apart < -edge, dtype=np.float64))


def _mid_ranks(apart: Signs, size: int) -> Floats:
    """Return the centred mid-rank of each run: half of how many it is above, less how many it is below."""
    first, second = (np.eye(size, dtype=np.float32)[end] for end in pairs(size))
    return np.asarray(apart @ (first - second), dtype=np.float64) / 2


def within_queries(scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS) -> Floats:
    """Return, per query, the coefficients over runs: shape (C, Q)."""
    out = over_runs(scores.T, quality.T, names)
    silent = np.isnan(out[0]) & signs(quality.T).any(axis=-1)
    out[:, silent] = np.array([0.5, 0, 0, 0])[: len(names), None]
    return out


def _pearson(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    norms = np.sqrt(np.einsum("...r,...r->...", x, x) * np.einsum("...r,...r->...", y, y))
    return np.asarray(np.clip(np.einsum("...r,...r->...", x, y) / norms, -1, 1))
