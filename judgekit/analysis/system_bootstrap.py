"""Draws of the true means over queries of each run, for the system level.

At system level a bootstrap of the queries does not do: the means already carry the noise of n queries, a resample
adds as much again, and what is resampled is a coefficient that both have pulled towards 0. Its percentile interval
covered 5 to 95 % where it promises 95.

Here the noise is taken out before it is put back. Runs are seen as drawn from a population with a covariance T
between their true mean scores and true mean quality; the means z of the runs around their common mean have the
covariance M = T + N, where N, the noise, is known from the resamples. Given T, what is known of the true means is
normal with mean K z and covariance K N, where K = T M^-1 (shrinkage). So each resample's deviation e gives the draw

    K z + (K N)^(1/2) N^(-1/2) e

which keeps the resamples shared by all labelings. M itself is known from few runs only: it is drawn anew for every
resample from its inverse-Wishart posterior under a prior like Jeffreys'; T is M - N, kept positive. With many queries
the draws become those of the plain bootstrap.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats

__all__ = ["shrunken_draws"]

_LEAST_SIGNAL: Final = 0.02
"""The least share that the runs' own variance is given, relative to the noise, where none can be seen."""


def shrunken_draws(means: Floats, deviations: Floats, queries: int, rng: np.random.Generator) -> Floats:
    """Return draws of the true means of the runs, around their common mean.

    Args:
        means: mean over queries per run and variable (scores of one or more labelings, quality), shape (R, V).
        deviations: resampled means minus means, shape (B, R, V); NaN where a resample has none.
        queries: n, the number of queries.
        rng: draws the covariances.

    Returns:
        Shape (B, R, V); NaN for resamples without means.
    """
    there = np.isfinite(deviations).all(axis=(1, 2))
    if not there.all():
        out = np.full(deviations.shape, np.nan)
        if there.any():
            out[there] = shrunken_draws(means, deviations[there], queries, rng)
        return out
    size, draws = len(means), len(deviations)
    means = means - means.mean(axis=0)
    deviations = deviations - deviations.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.mean(means**2, axis=0) + np.mean(deviations**2, axis=(0, 1)))
    spread[spread == 0] = 1
    means, deviations = means / spread, deviations / spread * np.sqrt(queries / max(queries - 1, 1))
    noise = np.einsum("brv,brw->vw", deviations, deviations) / (draws * (size - 1))
    root, inverse = _root(noise)
    whitened = means @ inverse
    # A prior |M|^-p and the likelihood of R centred rows, |M|^(-(R - 1)/2), give R - 2 + 2p - V degrees of freedom:
    # R - 1 by Jeffreys' p = (V + 1)/2, R - 2 by p = V/2, whose heavier tails cover r of five runs in .93 instead of
    # .90 of 600 simulated experiments (200 queries), tau of ten in .97 instead of .95 (50 queries), at equal widths.
    total = _inverse_wishart(whitened.T @ whitened, size - 2, draws, rng)
    freedom = max(queries - 1, 1)
    scale = freedom / rng.chisquare(freedom, draws)
    values, vectors = np.linalg.eigh(total)
    signal = np.maximum(values - scale[:, None], _LEAST_SIGNAL * scale[:, None])
    keep = signal / (signal + scale[:, None])
    deviations = deviations * np.sqrt(scale)[:, None, None]
    turn = np.swapaxes(vectors, -1, -2)
    shrink = (vectors * keep[:, None, :]) @ turn
    soften = (vectors * np.sqrt(keep)[:, None, :]) @ turn
    moved = np.einsum("bvw,rw->brv", shrink, whitened) + np.einsum("bvw,brw->brv", soften, deviations @ inverse)
    return np.asarray(moved @ root * spread)


def _root(noise: Floats) -> tuple[Floats, Floats]:
    """Return the symmetric square root of the noise covariance and its inverse; no variable is free of noise."""
    values, vectors = np.linalg.eigh(noise)
    # Means that vary in no resample (one query, or the same value on all) have no noise to speak of.
    roots = np.sqrt(np.maximum(values, 1e-12 * max(float(values[-1]), 1e-9)))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


def _inverse_wishart(scatter: Floats, freedom: int, draws: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return draws of a covariance given a scatter matrix with so many degrees of freedom, shape (draws, V, V).

    The degrees of freedom are raised to the number of variables where there are fewer: a proper distribution needs
    that many.
    """
    variables = len(scatter)
    values, vectors = np.linalg.eigh(scatter)
    half = (vectors * np.sqrt(np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300)))) @ vectors.T
    normal = rng.standard_normal((draws, variables, max(freedom, variables)))
    precision = normal @ np.swapaxes(normal, -1, -2)
    return np.asarray(half @ np.linalg.inv(precision) @ half)
