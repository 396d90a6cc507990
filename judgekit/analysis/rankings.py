"""Coefficients over few runs: the four of the query level, and two that care most about the best runs.

Everything is worked out for many pairs of series at once, shape (..., R): the data are one, the resamples many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Floats

__all__ = ["RBO_PERSISTENCE", "TOP_HEAVY", "over_runs", "rbo", "signs", "tau_ap", "within_queries"]

TOP_HEAVY: Final = ("tau_ap", "rbo")
"""The coefficients that join the four at system level where there are enough runs."""
RBO_PERSISTENCE: Final = 0.9
_TIE: Final = 1e-11

Signs = npt.NDArray[np.float32]


def signs(values: Floats) -> Signs:
    """Return the sign of values[i] - values[j] for all i < j: shape (..., R (R - 1) / 2).

    Means that are equal but for rounding (relative 1e-11) are tied.
    """
    i, j = np.triu_indices(values.shape[-1], 1)
    gaps = values[..., i] - values[..., j]
    edge = _TIE * np.abs(values).max(axis=-1, keepdims=True, initial=0)
    return np.asarray(np.subtract(gaps > edge, gaps < -edge, dtype=np.float32))


def over_runs(scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS) -> Floats:
    """Return the named coefficients of series over runs, shape (C, ...); NaN where a series is constant.

    Args:
        scores: shape (..., R).
        quality: likewise.
        names: of concordance, tau_b, rho, r, tau_ap, rbo.
    """
    sx, sy = signs(scores), signs(quality)
    size = scores.shape[-1]
    balance = np.einsum("...p,...p->...", sx, sy).astype(np.float64)
    untied = [np.count_nonzero(s, axis=-1).astype(np.float64) for s in (sx, sy)]
    out: list[Floats] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for name in names:
            if name == "concordance":
                out.append((balance / untied[1] + 1) / 2)
            elif name == "tau_b":
                out.append(balance / np.sqrt(untied[0] * untied[1]))
            elif name == "rho":
                out.append(_pearson(_ranks(sx, size), _ranks(sy, size)))
            elif name == "r":
                out.append(_pearson(scores, quality))
            else:
                out.append((_tau_ap if name == "tau_ap" else _rbo)(sx, sy, size))
    return np.where((untied[0] > 0) & (untied[1] > 0), np.stack(out), np.nan)


def within_queries(scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS) -> Floats:
    """Return, per query, the coefficients over runs: shape (C, Q).

    NaN on a query whose quality is constant over the runs. Where only the scores are constant they say nothing:
    concordance .5, the others 0.

    Args:
        scores: shape (R, Q).
        quality: likewise.
        names: the first so many of `COEFFICIENTS`.
    """
    out = over_runs(scores.T, quality.T, names)
    silent = np.isnan(out[0]) & signs(quality.T).any(axis=-1)
    out[:, silent] = np.array([0.5, 0, 0, 0])[: len(names), None]
    return out


def tau_ap(scores: Floats, quality: Floats) -> Floats:
    """Return tau_AP (Yilmaz, Aslam and Robertson, SIGIR 2008) of the order by score against that by quality.

    For each run but the first, in the order by score, the share of the runs above it that are really better; a
    swap near the top costs more. Runs with equal scores count in the mean over all their orders, pairs with equal
    quality half.

    Args:
        scores: shape (..., R).
        quality: likewise.

    Returns:
        Shape (...), in [-1, 1].
    """
    return _tau_ap(signs(scores), signs(quality), scores.shape[-1])


def rbo(scores: Floats, quality: Floats) -> Floats:
    """Return the extrapolated rank-biased overlap (Webber, Moffat and Zobel, 2010) of the orders by score and quality.

    Persistence .9; both orders hold the same runs to the end. A run of a tied group that straddles a depth is in
    the top with the probability that it has in a random order of the group (RBO^a of Corsi and Urbano, 2024).

    Args:
        scores: shape (..., R).
        quality: likewise.

    Returns:
        Shape (...), in [0, 1].
    """
    return _rbo(signs(scores), signs(quality), scores.shape[-1])


def _ends(size: int) -> tuple[Signs, Signs]:
    """Return indicators of the first and second run of each pair, shape (R (R - 1) / 2, R) each."""
    i, j = np.triu_indices(size, 1)
    runs = np.arange(size)
    return (i[:, None] == runs).astype(np.float32), (j[:, None] == runs).astype(np.float32)


def _ranks(pair_signs: Signs, size: int) -> Floats:
    """Return centred mid-ranks, shape (..., R)."""
    first, second = _ends(size)
    return np.asarray(pair_signs @ (first - second) / 2, dtype=np.float64)


def _above(pair_signs: Signs, size: int) -> tuple[Floats, Floats]:
    """Return how many runs are above each one, and how many are in its tied group, itself included."""
    first, second = _ends(size)
    above = (pair_signs > 0).astype(np.float32) @ second + (pair_signs < 0).astype(np.float32) @ first
    ties = (pair_signs == 0).astype(np.float32) @ (first + second) + 1
    return above.astype(np.float64), ties.astype(np.float64)


def _pearson(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    norms = np.sqrt(np.einsum("...r,...r->...", x, x) * np.einsum("...r,...r->...", y, y))
    return np.asarray(np.clip(np.einsum("...r,...r->...", x, y) / norms, -1, 1))


def _tau_ap(sx: Signs, sy: Signs, size: int) -> Floats:
    first, second = _ends(size)
    above, ties = _above(sx, size)
    # of a pair with different scores the lower run has one more above it, rightly so if that one is better too
    rightly = (1 + sx * sy) / 2
    right = ((rightly * (sx > 0)) @ second + (rightly * (sx < 0)) @ first).astype(np.float64)
    total = np.zeros(sx.shape[:-1])
    for place in range(int(ties.max(initial=1))):
        # within its tied group a run has 0, 1, ... others of the group above it, each right with probability 1/2
        fits = (place < ties) & (above + place > 0)
        total += np.where(fits, (right + place / 2) / np.maximum(above + place, 1) / ties, 0).sum(axis=-1)
    return np.asarray(2 * total / (size - 1) - 1)


def _rbo(sx: Signs, sy: Signs, size: int) -> Floats:
    depths = np.arange(1.0, size + 1)
    weights = RBO_PERSISTENCE**depths * (1 - RBO_PERSISTENCE) / RBO_PERSISTENCE
    weights[-1] += RBO_PERSISTENCE**size
    weights /= depths
    above, ties = zip(*(_above(pair_signs, size) for pair_signs in (sx, sy)), strict=True)
    if max(float(t.max(initial=1)) for t in ties) == 1:
        # without ties a run is in both tops from the later of its two places on
        from_place = np.cumsum(weights[::-1])[::-1]
        return np.asarray(from_place[np.maximum(*above).astype(np.intp)].sum(axis=-1))
    tops = [np.clip((depths - a[..., None]) / t[..., None], 0, 1) for a, t in zip(above, ties, strict=True)]
    return np.asarray(np.einsum("...rd,...rd->...d", *tops) @ weights)
