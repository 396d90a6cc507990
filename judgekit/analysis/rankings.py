"""Coefficients over few runs: the four of the query level, and two that care most about the best runs.

The four are worked out for many queries at once, series of shape (Q, R); the other two for one pair of series.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Floats

TOP_HEAVY: Final = ("tau_ap", "rbo")
"""The coefficients that join the four at system level where there are enough runs."""
RBO_PERSISTENCE: Final = 0.9
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


class _Order:
    """The order of the runs by series of shape (..., R).

    Attributes:
        signs: of values[i] - values[j] for all i < j, shape (..., R (R - 1) / 2).
        untied: pairs of runs of different value, shape (...).
        ahead: runs that each one is above, less those above it: twice its centred mid-rank, shape (..., R).
    """

    def __init__(self, values: Floats) -> None:
        self.signs = signs(values)
        self.untied = np.count_nonzero(self.signs, axis=-1).astype(np.float64)
        size = np.arange(values.shape[-1])
        self.first, self.second = ((each[:, None] == size).astype(np.float32) for each in pairs(len(size)))
        self.ahead: Floats = np.asarray(self.signs @ (self.first - self.second), dtype=np.float64)

    def groups(self) -> tuple[Floats, Floats]:
        """Return how many runs are above each run, and how many in its tied group, itself included."""
        ties = np.asarray((self.signs == 0) @ (self.first + self.second) + 1, dtype=np.float64)
        return (ties.shape[-1] - ties - self.ahead) / 2, ties


def over_runs(scores: Floats, quality: Floats, names: Sequence[str] = COEFFICIENTS) -> Floats:
    """Return the named coefficients of series over runs, shape (C, ...); NaN where a series is constant."""
    x, y = _Order(scores), _Order(quality)
    balance = np.einsum("...p,...p->...", x.signs, y.signs).astype(np.float64)
    out: list[Floats] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for name in names:
            if name == "concordance":
                out.append((balance / y.untied + 1) / 2)
            elif name == "tau_b":
                out.append(balance / np.sqrt(x.untied * y.untied))
            elif name == "rho":
                out.append(_pearson(x.ahead / 2, y.ahead / 2))
            elif name == "r":
                out.append(_pearson(scores, quality))
            else:
                out.append(np.asarray((_tau_ap if name == "tau_ap" else _rbo)(x, y)))
    return np.where((x.untied > 0) & (y.untied > 0), np.stack(out), np.nan)


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


def _tau_ap(x: _Order, y: _Order) -> float:
    """Return tau_AP (Yilmaz, Aslam and Robertson, SIGIR 2008) of the order by score against that by quality."""
    above, ties = x.groups()
    # Of a pair with different scores the lower run has one more above it, rightly so if that one is better too.
    rightly = (1 + x.signs * y.signs) / 2
    right = (rightly * (x.signs > 0)) @ x.second + (rightly * (x.signs < 0)) @ x.first
    # Within its tied group a run has 0, 1, ... others of the group above it, each right with probability 1/2.
    place = np.arange(len(ties))[:, None]
    fits = (place < ties) & (above + place > 0)
    shares = np.where(fits, (right + place / 2) / np.maximum(above + place, 1) / ties, 0)
    return float(2 * shares.sum() / (len(ties) - 1) - 1)


def _rbo(x: _Order, y: _Order) -> float:
    """Return the extrapolated rank-biased overlap (Webber, Moffat and Zobel, 2010) of the orders by score and quality.

    Persistence .9; both orders hold the same runs to the end. A run of a tied group that straddles a depth is in
    the top with the probability that it has in a random order of the group (RBO^a of Corsi and Urbano, 2024).
    """
    depths = np.arange(1.0, len(x.ahead) + 1)[:, None]
    weights = RBO_PERSISTENCE**depths * (1 - RBO_PERSISTENCE) / RBO_PERSISTENCE
    weights[-1] += RBO_PERSISTENCE ** len(depths)
    tops = [np.clip((depths - above) / ties, 0, 1) for above, ties in (x.groups(), y.groups())]
    return float((weights / depths * tops[0] * tops[1]).sum())
