"""Concordance, Kendall's tau-b, Spearman's rho and Pearson's r of scores with quality, on weighted queries.

A bootstrap resample of n queries is a vector of n counts, so a coefficient on a resample is the same coefficient on
weighted points. Points with the same (score, quality) are merged first, their weights added (exact, they are whole
numbers), and all resamples are then worked out at once from the table of weights. Nothing is approximated: the
values are those of ``scipy.stats`` (``somersd``, ``kendalltau``, ``spearmanr``, ``pearsonr``) on the repeated points.

With the centred mid-rank of a point being half the sum of the signs of its differences to all others,

* C - D, concordant minus discordant pairs, is half the quadratic form of the weights in the matrix of
  sign(score difference) * sign(quality difference);
* tied pairs follow from the sums of squares, variances of ranks from the sums of cubes, of the weights per value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.floating[Any]]

COEFFICIENTS: Final = ("concordance", "tau_b", "rho", "r")
"""The coefficients of the query level, in the order of the first axis of `Target.coefficients`."""

_EXACT_IN_FLOAT32: Final = 4096
"""Sums over pairs of up to so many points stay below 2**24, so 32-bit floats hold them exactly."""


_CANCELLED: Final = 1e-3
_LEAF: Final = 512
"""Up to so many distinct points the pairs are looked at one by one."""


def _sums(codes: npt.NDArray[np.intp], groups: int, rows: Weights) -> Weights:
    """Return the sums of ``rows`` (n, B) per group, shape (groups, B)."""
    from scipy.sparse import csr_array

    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(groups + 1))
    picks = csr_array((np.ones(len(codes), rows.dtype), order, starts), shape=(groups, len(codes)))
    return np.asarray(picks @ rows)


def _columns(product_of: Weights, *others: Weights) -> Floats:
    """Return the sums over the first axis of an elementwise product, as 64-bit floats, shape (B,)."""
    letters = ",".join(["ij"] * (1 + len(others)))
    return np.asarray(np.einsum(f"{letters}->j", product_of, *others), dtype=np.float64)


def favours(x: npt.NDArray[Any], y: npt.NDArray[Any], weights: Weights) -> Weights:
    """Return per point, sorted by x, the weight of those that x and y order alike, less that of those they do not.

    ``weights`` and the result are of shape (n, B).
    """
    if len(x) <= _LEAF or x[0] == x[-1]:
        signs = np.sign(x[:, None] - x).astype(weights.dtype)
        signs *= np.sign(y[:, None] - y)
        return np.asarray(signs @ weights)
    cut = int(np.searchsorted(x, x[len(x) // 2])) or int(np.searchsorted(x, x[0], side="right"))
    halves = (slice(0, cut), slice(cut, None))
    out = np.concatenate([favours(x[half], y[half], weights[half]) for half in halves])
    for mine, other, sign in ((halves[1], halves[0], 1), (halves[0], halves[1], -1)):
        order = np.argsort(y[other], kind="stable")
        sums = np.concatenate([np.zeros_like(weights[:1]), np.cumsum(weights[other][order], axis=0)])
        below, not_above = (np.searchsorted(y[other][order], y[mine], side=side) for side in ("left", "right"))
        out[mine] += sign * (sums[below] + sums[not_above] - sums[-1])
    return out


class Target:
    """One series of quality values with its resamples, against which any number of score series are measured.

    Args:
        quality: quality per query, shape (n,), finite.
        weights: how often each query is in each resample, shape (n, B), whole numbers.
        once: whether the data as they are come first, before the resamples.
    """

    def __init__(self, quality: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, once: bool = False) -> None:
        self.quality: Floats = np.asarray(quality, dtype=np.float64)
        n = len(self.quality)
        self._parts: list[Floats] = [np.ones((n, 1))] if once or weights is None else []
        self._parts += [] if weights is None else [np.asarray(weights, dtype=np.float64)]
        exact = np.hstack(self._parts)
        self.total: Floats = exact.sum(axis=0)
        small = self.total.max(initial=0) <= _EXACT_IN_FLOAT32
        self._weights: Weights = exact.astype(np.float32) if small else exact
        levels, self._codes = np.unique(self.quality, return_inverse=True)
        self.levels = len(levels)
        groups = _sums(self._codes, self.levels, self._weights).astype(np.float64)
        self.untied = self._untied(groups)
        self.rank_variation = self._rank_variation(groups)
        self._ranked: Floats | None = None
        if self.levels > 2:
            ranks = np.cumsum(groups, axis=0) - groups / 2 - self.total / 2
            self._ranked = np.asarray(exact * ranks[self._codes])
        self._centred = self.quality - self.quality.mean() if n else self.quality
        self._moments = [(self._centred @ part, (self._centred**2) @ part) for part in self._parts]

    def _untied(self, groups: Weights) -> Floats:
        """Return how many ordered pairs are not tied, given the weight per value."""
        return np.asarray(self.total**2 - _columns(groups, groups))

    def _rank_variation(self, groups: Weights) -> Floats:
        """Return twelve times the sum of squared centred mid-ranks, given the weight per value."""
        wide = groups.astype(np.float64)
        return np.asarray(self.total**3 - _columns(wide, wide, wide))

    def coefficients(self, scores: npt.ArrayLike, names: Sequence[str] = COEFFICIENTS) -> Floats:
        """Return coefficients of one score series: shape (C, B); ``names`` are the first C of `COEFFICIENTS`."""
        score = np.asarray(scores, dtype=np.float64)
        if not len(score):
            return np.full((len(names), len(self.total)), np.nan)
        values, codes = np.unique(score, return_inverse=True)
        balance, untied, variation, covariation = self._counted(codes, len(values), ranks=len(names) > 1)
        fine = (untied > 0) & (self.untied > 0)
        out = np.full((len(names), len(self.total)), np.nan)
        x, y = untied[fine], self.untied[fine]
        out[0, fine] = (balance[fine] / y + 1) / 2
        if len(names) == 1:
            return out
        out[1, fine] = balance[fine] / np.sqrt(x) / np.sqrt(y)
        out[2, fine] = 12 * covariation[fine] / np.sqrt(variation[fine]) / np.sqrt(self.rank_variation[fine])
        out[3, fine] = self._pearson(score)[fine]
        out[1:] = np.clip(out[1:], -1, 1)
        return out

    def _counted(self, codes: npt.NDArray[np.intp], values: int, *, ranks: bool) -> Floats:
        """Return C - D and untied ordered pairs, rank variation and rank covariation, given codes, shape (4, B)."""
        groups = _sums(codes, values, self._weights)
        balance, untied = self._balance(codes, groups), self._untied(groups)
        variation = self._rank_variation(groups) if ranks else untied
        covariation = balance * self.total / 8
        if ranks and self._ranked is not None:
            middle = np.cumsum(groups.astype(np.float64), axis=0) - groups / 2 - self.total / 2
            covariation = _columns(middle, _sums(codes, values, self._ranked))
        return np.stack([balance, untied, variation, covariation])

    def _balance(self, codes: npt.NDArray[np.intp], groups: Weights) -> Floats:
        """Return concordant minus discordant ordered pairs per resample, shape (B,)."""
        if self.levels < 2 or len(groups) < 2:
            return np.zeros_like(self.total)
        if self.levels == 2:
            high = np.flatnonzero(self._codes == 1)
            better = _sums(codes[high], len(groups), self._weights[high])
            worse = groups - better
            below = np.cumsum(worse, axis=0)
            favour = 2 * below - worse - below[-1]
            return 2 * _columns(better, favour)
        cells, where = np.unique(codes * self.levels + self._codes, return_inverse=True)
        x, y = np.divmod(cells, self.levels)
        weights = _sums(where, len(cells), self._weights)
        return _columns(favours(x, y, weights), weights)

    def _pearson(self, score: Floats) -> Floats:
        x = score - score.mean()
        sums = np.stack([x, x**2, x * self._centred])
        return np.concatenate([self._pearson_of(x, sums @ self._parts[i], i) for i in range(len(self._parts))])

    def _pearson_of(self, x: Floats, sums: Floats, part: int) -> Floats:
        y, weights, (y_sum, energy) = self._centred, self._parts[part], self._moments[part]
        total = weights.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variation, y_variation = sums[1] - sums[0] ** 2 / total, energy - y_sum**2 / np.maximum(total, 1)
            out = (sums[2] - sums[0] * y_sum / total) / np.sqrt(variation) / np.sqrt(y_variation)
            # where a resample lacks the values far out, little is left of the large sums: once more, more exactly
            lost = (variation < _CANCELLED * sums[1]) | (y_variation < _CANCELLED * energy)
            rows = weights[:, lost]
            x = x[:, None] - sums[0][lost] / total[lost]
            y = y[:, None] - y_sum[lost] / total[lost]
            norms = np.sqrt(_columns(rows, x, x)) * np.sqrt(_columns(rows, y, y))
            out[lost] = _columns(rows, x, y) / norms
        return np.asarray(out)


def coefficients(scores: npt.ArrayLike, quality: npt.ArrayLike) -> dict[str, float]:
    """Return the coefficients of scores with quality, both of shape (n,) and finite."""
    values = Target(quality).coefficients(scores)[:, 0]
    return {name: float(value) for name, value in zip(COEFFICIENTS, values, strict=True)}


def attainable_tau_b(scores: npt.ArrayLike, quality: npt.ArrayLike) -> float:
    """Return the largest tau-b that these values could reach if they were paired anew; NaN for a constant series."""
    # Pairing both in ascending order leaves no discordant pair and the fewest ties in one series only.
    return coefficients(np.sort(scores), np.sort(quality))["tau_b"]
