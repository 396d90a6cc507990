"""Concordance, Kendall's tau-b, Spearman's rho and Pearson's r of scores with quality, on weighted queries.

A bootstrap resample of n queries is a vector of n counts, so a coefficient on a resample is the same coefficient on
weighted points. Points with the same (score, quality) are merged first, their weights added (exact, they are whole
numbers), and all resamples are then worked out at once from the table of weights. Nothing is approximated: the values
equal those of ``scipy.stats`` (``somersd``, ``kendalltau``, ``spearmanr``, ``pearsonr``) on the repeated points.

With the centred mid-rank of a point being half the sum of the signs of its differences to all others,

* C - D, concordant minus discordant pairs, is half the quadratic form of the weights in the matrix of
  sign(score difference) * sign(quality difference);
* tied pairs follow from the sums of squares, variances of ranks from the sums of cubes, of the weights per value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.floating[Any]]
Values = npt.NDArray[Any]

COEFFICIENTS: Final = ("concordance", "tau_b", "rho", "r")
"""The coefficients of the query level, in the order of the first axis of `Target.coefficients`."""

_EXACT_IN_FLOAT32: Final = 4096
"""Sums over pairs of at most this many points stay below 2**24, so 32-bit floats hold them exactly."""
_CANCELLED: Final = 1e-3
_WIDE: Final = 64
"""From this many columns on, adding row by row is faster."""
_LEAF: Final = 512
_NARROW_LEAF: Final = 64
"""Up to this many distinct points, pairs are compared one by one (for many or for few resamples)."""


def _sums(codes: Ints, groups: int, rows: Weights) -> Weights:
    """Return the sums of ``rows`` (n, B) per group, shape (groups, B)."""
    from scipy.sparse import csr_array

    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(groups + 1))
    # A sparse product adds rows several times as fast as numpy.add.at, and in the same order.
    ones = np.ones(len(codes), rows.dtype)
    picks = csr_array((ones, order, starts), shape=(groups, len(codes)))
    return np.asarray(picks @ rows)


def _running_sums(rows: Weights) -> Weights:
    """Return the cumulative sums of rows, shape (n, B)."""
    if rows.shape[1] < _WIDE:
        return np.cumsum(rows, axis=0)
    # numpy adds one column after the other; whole rows take a tenth of the time, in the same order of sums.
    sums = rows.copy()
    for above, row in pairwise(sums):
        row += above
    return sums


def _product_sums(first: Weights, *others: Weights) -> Floats:
    """Return the sums over the first axis of an elementwise product, as 64-bit floats, shape (B,)."""
    letters = ",".join(["ij"] * (1 + len(others)))
    return np.asarray(np.einsum(f"{letters}->j", first, *others), dtype=np.float64)


def favours(x: Values, y: Values, weights: Weights) -> Weights:
    """Return per point, sorted by x, the weight of concordant points less that of discordant ones.

    ``weights`` and the result are of shape (n, B).
    """
    leaf = _LEAF if weights.shape[1] >= _WIDE else _NARROW_LEAF
    if len(x) <= leaf or x[0] == x[-1]:
        signs = np.sign(x[:, None] - x).astype(weights.dtype)
        signs *= np.sign(y[:, None] - y)
        return np.asarray(signs @ weights)
    # Equal x stay in one half, so that between the halves only y has to be compared.
    middle = x[len(x) // 2]
    cut = int(np.searchsorted(x, middle))
    if not cut:
        cut = int(np.searchsorted(x, middle, side="right"))
    low_y, high_y = y[:cut], y[cut:]
    low_weights, high_weights = weights[:cut], weights[cut:]
    low = favours(x[:cut], low_y, low_weights)
    low -= _lean(low_y, high_y, high_weights)
    high = favours(x[cut:], high_y, high_weights)
    high += _lean(high_y, low_y, low_weights)
    return np.concatenate([low, high])


def _lean(values: Values, others: Values, weights: Weights) -> Weights:
    """Return per value the weight of the others below it, less that of the others above it."""
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    nothing = np.zeros_like(weights[:1])
    sums = np.concatenate([nothing, _running_sums(weights[order])])
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    return np.asarray(sums[below] + sums[not_above] - sums[-1])


class Drawn:
    """How often each query is in the data, once, and in each resample; any number of series are measured on them.

    Args:
        weights: how often each query is in each resample, shape (n, B), whole numbers; None for the data alone.
        n: how many queries there are.

    Attributes:
        parts: the weights of the data, shape (n, 1), and those of the resamples.
        totals: the sum of each part over the queries.
        total: both, the data first, shape (1 + B,).
        whole: the weights of both, shape (n, 1 + B), in 32 bits where sums over pairs are exact in them.
    """

    def __init__(self, weights: npt.ArrayLike | None, n: int) -> None:
        self.parts: list[Floats] = [np.ones((n, 1))]
        if weights is not None:
            self.parts.append(np.asarray(weights, dtype=np.float64))
        self.totals = [part.sum(axis=0) for part in self.parts]
        self.total: Floats = np.concatenate(self.totals)
        small = self.total.max(initial=0) <= _EXACT_IN_FLOAT32
        self.whole: Weights = np.hstack([part.astype(np.float32) for part in self.parts] if small else self.parts)

    @property
    def size(self) -> int:
        """The bytes of its tables."""
        return self.whole.nbytes + sum(part.nbytes for part in self.parts)


@dataclass(frozen=True)
class _Moments:
    """What Pearson's r needs of the quality on some resamples.

    Attributes:
        total: the sum of the sums.
        error: the root of the sum of squared deviations.
        lost: where little is left of the sum of squares.
    """

    total: Floats
    error: Floats
    lost: Bools


class Target:
    """One series of quality values with its resamples, to compare any number of score series with.

    Args:
        quality: quality per query, shape (n,), finite.
        weights: how often each query is in each resample, shape (n, B), whole numbers, or what is made of them. In all
            results the data come first, then the resamples, shape (1 + B,).
    """

    def __init__(self, quality: npt.ArrayLike, weights: Drawn | npt.ArrayLike | None = None) -> None:
        self.quality: Floats = np.asarray(quality, dtype=np.float64)
        n = len(self.quality)
        self._drawn = weights if isinstance(weights, Drawn) else Drawn(weights, n)
        self.total = self._drawn.total
        levels, self._codes = np.unique(self.quality, return_inverse=True)
        self.levels = len(levels)
        groups = _sums(self._codes, self.levels, self._drawn.whole)
        self.untied = self._untied(groups)
        self.rank_variation = self._rank_variation(groups)
        self._groups = groups
        # Of two levels rho follows from C - D.
        self._ranks = self._mid_ranks(groups) if self.levels > 2 else None
        self._centred = self.quality
        if n:
            self._centred = self.quality - self.quality.mean()
        squared = self._centred**2
        self._moments: list[_Moments] = []
        for part, total in zip(self._drawn.parts, self._drawn.totals, strict=True):
            y_sum, y_square = self._centred @ part, squared @ part
            variation = y_square - y_sum**2 / np.maximum(total, 1)
            with np.errstate(invalid="ignore"):
                self._moments.append(_Moments(y_sum, np.sqrt(variation), variation < _CANCELLED * y_square))

    @property
    def ranks(self) -> Floats:
        """The rank of each quality value among the different ones, from 0 on, shape (n,)."""
        return self._codes.astype(np.float64)

    @property
    def size(self) -> int:
        """The bytes of its larger arrays, but for the weights."""
        return self._groups.nbytes + (0 if self._ranks is None else self._ranks.nbytes)

    def _untied(self, groups: Weights) -> Floats:
        """Return how many ordered pairs are not tied, given the weight per value."""
        return np.asarray(self.total**2 - _product_sums(groups, groups))

    def _rank_variation(self, groups: Weights) -> Floats:
        """Return twelve times the sum of squared centred mid-ranks, given the weight per value."""
        wide = groups.astype(np.float64)
        return np.asarray(self.total**3 - _product_sums(wide, wide, wide))

    def _mid_ranks(self, groups: Weights) -> Floats:
        """Return the centred mid-rank of each value, given the weight per value."""
        wide = groups.astype(np.float64)
        up_to = _running_sums(wide)
        return np.asarray(up_to - wide / 2 - self.total / 2)

    def coefficients(self, scores: npt.ArrayLike, names: Sequence[str] = COEFFICIENTS) -> Floats:
        """Return coefficients of one score series: shape (C, 1 + B); ``names`` are the first C of `COEFFICIENTS`."""
        score = np.asarray(scores, dtype=np.float64)
        out = np.full((len(names), len(self.total)), np.nan)
        if not len(score):
            return out
        values, codes = np.unique(score, return_inverse=True)
        groups, balance, covariation = self._pairs(codes, len(values), ranked=len(names) > 1)
        untied = self._untied(groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[0] = (balance / self.untied + 1) / 2
            if len(names) > 1:
                out[1] = balance / np.sqrt(untied) / np.sqrt(self.untied)
                out[2] = 12 * covariation / np.sqrt(self._rank_variation(groups)) / np.sqrt(self.rank_variation)
                out[3] = self._pearson(score)
                np.clip(out[1:], -1, 1, out=out[1:])
        out[:, (untied <= 0) | (self.untied <= 0)] = np.nan
        return out

    def _pairs(self, codes: Ints, size: int, *, ranked: bool) -> tuple[Weights, Floats, Floats]:
        """Return what is made of the pairs of a score and a quality, given the number of each query's score.

        They are the weight per score, shape (size, 1 + B), concordant minus discordant ordered pairs, and, if they are
        ``ranked``, the sum of products of centred mid-ranks, both of shape (1 + B,).
        """
        whole, nothing = self._drawn.whole, np.zeros_like(self.total)
        if self.levels < 2 or size < 2:
            return _sums(codes, size, whole), nothing, nothing
        # The commonest quality is right or wrong, which takes one pass over the score values.
        if self.levels == 2:
            worse, better = np.split(_sums(codes + size * self._codes, 2 * size, whole), 2)
            all_worse, all_better = self._groups.astype(np.float64)
            above = 2 * _product_sums(better, _running_sums(worse)) - _product_sums(better, worse)
            balance = 2 * (above - all_worse * all_better)
            return worse + better, balance, balance * self.total / 8
        cells, where = np.unique(codes * self.levels + self._codes, return_inverse=True)
        x, y = np.divmod(cells, self.levels)
        weights = _sums(where, len(cells), whole)
        groups = _sums(x, size, weights)
        balance = _product_sums(favours(x, y, weights), weights)
        if not ranked or self._ranks is None:
            return groups, balance, nothing
        of_quality = _sums(x, size, weights * self._ranks[y])
        return groups, balance, _product_sums(self._mid_ranks(groups), of_quality)

    def _pearson(self, score: Floats) -> Floats:
        """Return Pearson's r per resample, shape (1 + B,)."""
        x = score - score.mean()
        products = np.stack([x, x**2, x * self._centred])
        parts = []
        for weights, total, y in zip(self._drawn.parts, self._drawn.totals, self._moments, strict=True):
            x_sum, x_square, both = products @ weights
            with np.errstate(divide="ignore", invalid="ignore"):
                variation = x_square - x_sum**2 / total
                covariation = both - x_sum * y.total / total
                part = covariation / np.sqrt(variation) / y.error
                # If a resample lacks the outliers, large sums cancel to little.
                lost = y.lost | (variation < _CANCELLED * x_square)
                if lost.any():
                    part[lost] = self._around_means(x, weights[:, lost])
            parts.append(part)
        return np.concatenate(parts)

    def _around_means(self, x: Floats, weights: Weights) -> Floats:
        """Return Pearson's r per resample from the deviations from its means, shape (B,)."""
        total = weights.sum(axis=0)
        moved_x = x[:, None] - x @ weights / total
        moved_y = self._centred[:, None] - self._centred @ weights / total
        norms = np.sqrt(_product_sums(weights, moved_x, moved_x))
        norms *= np.sqrt(_product_sums(weights, moved_y, moved_y))
        return _product_sums(weights, moved_x, moved_y) / norms


def coefficients(scores: npt.ArrayLike, quality: npt.ArrayLike) -> dict[str, float]:
    """Return the coefficients of scores with quality, both of shape (n,) and finite."""
    values = Target(quality).coefficients(scores)[:, 0].tolist()
    return dict(zip(COEFFICIENTS, values, strict=True))


def attainable_tau_b(scores: npt.ArrayLike, quality: npt.ArrayLike) -> float:
    """Return the largest tau-b of any pairing of these values; NaN for a constant series."""
    # Pairing both in ascending order leaves no discordant pair and the fewest ties in one series only.
    new_x, new_y = _changes(scores), _changes(quality)
    untied_x, untied_y = _untied_pairs(new_x), _untied_pairs(new_y)
    if not untied_x or not untied_y:
        return float("nan")
    concordant = untied_x + untied_y - _untied_pairs(new_x | new_y)
    return min(float(concordant / np.sqrt(untied_x) / np.sqrt(untied_y)), 1.0)


def _changes(values: npt.ArrayLike) -> Bools:
    """Return the places in ascending order at which a new value begins."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new


def _untied_pairs(new: Bools) -> int:
    """Return how many ordered pairs are in different groups, given where each of them begins."""
    sizes = np.diff(np.append(np.flatnonzero(new), len(new)))
    return len(new) ** 2 - int(sizes @ sizes)
