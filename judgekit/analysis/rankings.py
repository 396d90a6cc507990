"""Coefficients over few runs: the four of the query level, and two that care most about the best runs.

Everything is worked out for many pairs of series at once, shape (..., R): the data are one, the resamples many.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats

__all__ = ["RBO_PERSISTENCE", "TOP_HEAVY", "over_runs", "rbo", "signs", "tau_ap", "within_queries"]

TOP_HEAVY: Final = ("tau_ap", "rbo")
"""The coefficients that join at system level from `TOP_HEAVY_RUNS` runs on."""
RBO_PERSISTENCE: Final = 0.9
_TIE: Final = 1e-11


def signs(values: Floats) -> Floats:
    """Return the sign of values[i] - values[j] for all i < j: shape (..., R (R - 1) / 2).

    Means that are equal but for rounding (relative 1e-11) are tied.
    """
    i, j = np.triu_indices(values.shape[-1], 1)
    gaps = values[..., i] - values[..., j]
    scale = np.abs(values).max(axis=-1, keepdims=True, initial=0)
    return np.asarray(np.where(np.abs(gaps) <= _TIE * scale, 0.0, np.sign(gaps)))


def _ranks(pair_signs: Floats, size: int) -> Floats:
    """Return centred mid-ranks from the signs of pairs, shape (..., R)."""
    i, j = np.triu_indices(size, 1)
    spread = np.zeros((len(i), size))
    spread[np.arange(len(i)), i] = 0.5
    spread[np.arange(len(i)), j] = -0.5
    return np.asarray(pair_signs @ spread)


def _pearson(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    norms = np.sqrt((x * x).sum(axis=-1)) * np.sqrt((y * y).sum(axis=-1))
    return np.asarray(np.clip((x * y).sum(axis=-1) / norms, -1, 1))


def over_runs(scores: Floats, quality: Floats) -> Floats:
    """Return concordance, tau_b, rho and r of series over runs, shape (4, ...); NaN where one is constant.

    Args:
        scores: shape (..., R).
        quality: likewise.
    """
    sx, sy = signs(scores), signs(quality)
    balance = np.einsum("...p,...p->...", sx, sy)
    untied_x, untied_y = np.abs(sx).sum(axis=-1), np.abs(sy).sum(axis=-1)
    size = scores.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.stack(
            [
                (balance / untied_y + 1) / 2,
                balance / np.sqrt(untied_x * untied_y),
                _pearson(_ranks(sx, size), _ranks(sy, size)),
                _pearson(scores, quality),
            ]
        )
    return np.where((untied_x > 0) & (untied_y > 0), out, np.nan)


def within_queries(scores: Floats, quality: Floats) -> Floats:
    """Return, per query, the coefficients over runs: shape (4, Q).

    NaN on a query whose quality is constant over the runs. Where only the scores are constant they say nothing:
    concordance .5, the others 0.

    Args:
        scores: shape (R, Q).
        quality: likewise.
    """
    out = over_runs(scores.T, quality.T)
    silent = np.isnan(out[0]) & (np.abs(signs(quality.T)).sum(axis=-1) > 0)
    out[:, silent] = np.array([0.5, 0, 0, 0])[:, None]
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
    size = scores.shape[-1]
    higher, equal = _relation(scores)
    better, same = _relation(quality)
    above = higher.sum(axis=-1)
    right = (higher * (better + same / 2)).sum(axis=-1)
    ties = equal.sum(axis=-1) + 1
    total = np.zeros(scores.shape[:-1])
    for place in range(int(ties.max(initial=1))):
        # within its tied group a run has 0, 1, ... others of the group above it, each right with probability 1/2
        fits = (place < ties) & (above + place > 0)
        share = np.where(fits, (right + place / 2) / np.maximum(above + place, 1) / ties, 0)
        total += share.sum(axis=-1)
    return np.asarray(2 * total / (size - 1) - 1)


def rbo(scores: Floats, quality: Floats, persistence: float = RBO_PERSISTENCE) -> Floats:
    """Return the extrapolated rank-biased overlap (Webber, Moffat and Zobel, 2010) of the orders by score and quality.

    Both orders hold the same runs to the end. A run of a tied group that straddles a depth is in the top with the
    probability that it has in a random order of the group (the variant RBO^a of Corsi and Urbano, 2024).

    Args:
        scores: shape (..., R).
        quality: likewise.
        persistence: the weight of each further depth, in (0, 1).

    Returns:
        Shape (...), in [0, 1].
    """
    size = scores.shape[-1]
    depths = np.arange(1, size + 1)

    def in_top(values: Floats) -> Floats:
        higher, equal = _relation(values)
        above = higher.sum(axis=-1)[..., None]
        ties = equal.sum(axis=-1)[..., None] + 1
        return np.asarray(np.clip((depths - above) / ties, 0, 1))

    agreement = (in_top(scores) * in_top(quality)).sum(axis=-2) / depths
    weights = persistence**depths
    extrapolated = agreement @ weights * (1 - persistence) / persistence + agreement[..., -1] * weights[-1]
    return np.asarray(extrapolated)


def _relation(values: Floats) -> tuple[Floats, Floats]:
    """Return, for runs i and others j, whether j is higher and whether it is equal: both (..., R, R)."""
    size = values.shape[-1]
    i, j = np.triu_indices(size, 1)
    pair = signs(values)
    higher = np.zeros((*values.shape, size))
    higher[..., i, j] = pair < 0
    higher[..., j, i] = pair > 0
    equal = np.zeros_like(higher)
    equal[..., i, j] = equal[..., j, i] = pair == 0
    return higher, equal
