"""Agreement between any two labelings, pair by pair: how far do they say the same of the same documents?

All coefficients come from the confusion table of the pairs that both labelings labelled, so that a bootstrap over
queries (pairs of one query stay together) needs only the tables of the queries. Two raters, no missing values:
Cohen (1960, 1968), Krippendorff (2011), Gwet (2008, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.intervals import within_query_interval
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.analysis.wording import UNKNOWN, Ranged
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError, not_among

_MAX_VALUES: Final = 50
"""With more distinct labels only alpha_interval is worked out on the labels."""

_PAIR: Final = ["first", "second"]
_ENDS: Final = ["coefficient", "value", "ci_low", "ci_high"]
_TABLE: Final = [*_PAIR, "on", *_ENDS, "pairs", "queries", "undefined_reason"]

Bools = npt.NDArray[np.bool_]
Formula = Callable[[Floats, Floats], Floats]
"""From sums over queries, shape (S, B), and the distinct labels, shape (G,), to the coefficient, shape (B,)."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of labelings.

    Attributes:
        table: rows ``first, second, on, coefficient, value, ci_low, ci_high, pairs, queries,
            undefined_reason``; none for labelings without a coefficient in common. They are taken ``on`` the labels
            where both labelings have the same scale, other than binary, and ``on`` relevance (relevant or not, from
            each labeling's own least relevant label on) where both say what is relevant: ``agreement``, the share of
            pairs with the same label; Cohen's ``kappa``, with quadratic weights, too; Krippendorff's
            ``alpha_nominal``, ``_ordinal``, ``_interval``; Gwet's ``ac1``; ``mean_difference``, first minus second;
            and on relevance, where people made the second, ``precision`` and ``recall`` of the first.
        confusion: rows ``first, second, first_label, second_label, pairs``.
        coverage: rows ``first, second, both, only_first, only_second``: pairs that have both labels or one.
    """

    table: pd.DataFrame
    confusion: pd.DataFrame
    coverage: pd.DataFrame


@one_thread
def agreement(
    labelings: Sequence[Labeling],
    *,
    people: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
) -> Agreement:
    """Return how far every two labelings agree on the pairs that both labelled."""
    names = [labeling.name for labeling in labelings]
    unknown = next((name for name in people if name not in names), None)
    if unknown is not None:
        raise UsageError(not_among("labeling", unknown, names))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two labelings are named {twice!r}: rename one of them")
    ordered = sorted(labelings, key=lambda x: x.name in people)
    table: list[tuple[object, ...]] = []
    confusion: list[tuple[object, ...]] = []
    coverage: list[tuple[object, ...]] = []
    for first, second in combinations(ordered, 2):
        pair = (first.name, second.name)
        one, other = _obtained(first), _obtained(second)
        both = one.merge(other, on=["query_id", "doc_id"], suffixes=("_1", "_2"))
        coverage.append((*pair, len(both), len(one) - len(both), len(other) - len(both)))
        counts = both.groupby(["relevance_1", "relevance_2"], as_index=False).size()
        confusion += [(*pair, *row) for row in counts.itertuples(index=False)]
        query, queries = pd.factorize(both["query_id"], sort=True)
        labels = PairedLabels(
            first=both["relevance_1"].to_numpy(),
            second=both["relevance_2"].to_numpy(),
            query=query,
            weights=resample_matrix(max(len(queries), 1), resamples, seed),
        )
        by_people = second.name in people and first.name not in people
        for on, taken, formulas in _looks(labels, first.scale, second.scale, by_people):
            for name in formulas:
                ranged = taken.coefficient(name, confidence)
                reason = "" if np.isfinite(ranged.value) else _why_undefined(name, len(both))
                table.append((*pair, on, name, *ranged, len(both), len(queries), reason))
    # With one labeling, or where nothing can be compared, there is no row, and the columns are there all the same.
    return Agreement(
        pd.DataFrame(table, columns=_TABLE),
        pd.DataFrame(confusion, columns=[*_PAIR, "first_label", "second_label", "pairs"]),
        pd.DataFrame(coverage, columns=[*_PAIR, "both", "only_first", "only_second"]),
    )


@one_thread
def _obtained(labeling: Labeling) -> pd.DataFrame:
    table = labeling.table
    return table.loc[table["status"] == Status.OK.value, ["query_id", "doc_id", "relevance"]]


@dataclass(frozen=True)
class PairedLabels:
    """What two labelings say of the same N pairs.

    Attributes:
        first, second: their labels, shape (N,).
        query: the number of each pair's query, shape (N,).
        weights: how often each query is in each resample, shape (Q, B).
        values: all labels that there may be, ascending; those that either gives where they are not told.
    """

    first: Floats
    second: Floats
    query: npt.NDArray[np.intp]
    weights: Floats
    values: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not len(self.values):
            object.__setattr__(self, "values", np.unique(np.concatenate([self.first, self.second])))

    def coefficient(self, name: str, confidence: float) -> Ranged:
        """Return one of `FORMULAS` with its interval; without one if the labels differ on too few queries."""
        if not len(self.first):
            return UNKNOWN
        formula, sums = FORMULAS[name], self._sums(name)
        value = float(formula(sums.sum(axis=1, keepdims=True), self.values)[0])
        if not np.isfinite(value):
            return UNKNOWN
        if name in _SHARES:
            of = _SHARES[name](self)
            hits = (self.first == self.second)[of].astype(np.float64)
            return Ranged(value, *within_query_interval(hits, confidence, self.query[of]))
        if len(np.unique(self.query[self.first != self.second])) < MIN_TELLING:
            return Ranged(value)
        ends = interval(value, formula(sums @ self.weights, self.values), confidence, "percentile", len(self.weights))
        return Ranged(value, ends.low, ends.high)

    def _sums(self, name: str) -> Floats:
        """Return what a coefficient needs of every query, to be added up over queries: shape (S, Q)."""
        a, b, queries = self.first, self.second, len(self.weights)
        if name == "alpha_interval":
            parts = (np.ones(len(a)), a + b, a**2 + b**2, (a - b) ** 2)
            return np.stack([np.bincount(self.query, part, minlength=queries) for part in parts])
        size = len(self.values)
        cells = np.searchsorted(self.values, a) * size + np.searchsorted(self.values, b)
        counts = np.bincount(cells * queries + self.query, minlength=size * size * queries)
        return counts.reshape(size * size, queries).astype(np.float64)


_SHARES: Final[Mapping[str, Callable[[PairedLabels], Bools]]] = {
    "agreement": lambda labels: np.ones(len(labels.first), np.bool_),
    "precision": lambda labels: labels.first == 1,
    "recall": lambda labels: labels.second == 1,
}
"""Coefficients that are shares of some pairs, whose interval is Wilson's."""


def _looks(
    labels: PairedLabels, first: Scale, second: Scale, by_people: bool
) -> Iterator[tuple[str, PairedLabels, tuple[str, ...]]]:
    """Yield on what two labelings are compared, their labels in this look, and its coefficients."""
    if first == second and first.kind != "binary":
        yield "labels", labels, ON_LABELS if len(labels.values) <= _MAX_VALUES else ("alpha_interval",)
    if first.min_rel is not None and second.min_rel is not None:
        relevant = replace(
            labels,
            first=(labels.first >= first.min_rel).astype(np.float64),
            second=(labels.second >= second.min_rel).astype(np.float64),
            values=np.array([0.0, 1.0]),
        )
        yield "relevance", relevant, (*ON_RELEVANCE, *(AGAINST_PEOPLE if by_people else ()))


def _why_undefined(name: str, pairs: int) -> str:
    if not pairs:
        return "no pair has both labels"
    return "no such pair" if name in AGAINST_PEOPLE else "both labelings are constant"


def _shares(sums: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Return the confusion tables as shares, (G, G, B), and their margins (G, B) of the first and the second."""
    table = sums.reshape(size, size, -1)
    shares = table / table.sum(axis=(0, 1))
    return shares, shares.sum(axis=1), shares.sum(axis=0)


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def _kappa(sums: Floats, values: Floats, *, weighted: bool = False) -> Floats:
    """Return Cohen's kappa, where a difference of two labels counts as 1, or as its square if it is weighted."""
    shares, first, second = _shares(sums, len(values))
    distance = values[:, None] - values
    cost = distance**2 if weighted else (distance != 0).astype(np.float64)
    return _one_minus(np.einsum("ij,ijb->b", cost, shares), np.einsum("ij,ib,jb->b", cost, first, second))


def _alpha(sums: Floats, values: Floats, *, ordinal: bool) -> Floats:
    """Return Krippendorff's alpha of two raters without missing values."""
    table = sums.reshape(len(values), len(values), -1)
    together = table + np.swapaxes(table, 0, 1)
    counts = together.sum(axis=1)
    total = counts.sum(axis=0)
    distance = (values[:, None] != values).astype(np.float64)[:, :, None]
    if ordinal:
        middle = np.cumsum(counts, axis=0) - counts / 2
        distance = (middle[:, None] - middle[None]) ** 2
    observed = (together * distance).sum(axis=(0, 1)) / total
    expected = (counts[:, None] * counts[None] * distance).sum(axis=(0, 1)) / (total * (total - 1))
    return _one_minus(observed, expected)


def _alpha_interval(sums: Floats, values: Floats) -> Floats:
    pairs, added, squared, apart = sums
    number = 2 * pairs
    return _one_minus(apart / pairs, 2 * (squared - added**2 / number) / (number - 1))


def _ac1(sums: Floats, values: Floats) -> Floats:
    shares, first, second = _shares(sums, len(values))
    mean = (first + second) / 2
    chance = (mean * (1 - mean)).sum(axis=0) / max(len(values) - 1, 1)
    return np.asarray((np.einsum("iib->b", shares) - chance) / (1 - chance))


def _same(sums: Floats, values: Floats) -> Floats:
    return np.asarray(np.einsum("iib->b", _shares(sums, len(values))[0]))


def _mean_difference(sums: Floats, values: Floats) -> Floats:
    shares, _, _ = _shares(sums, len(values))
    return np.asarray(np.einsum("ij,ijb->b", values[:, None] - values, shares))


def _of_relevant(sums: Floats, values: Floats, *, side: int) -> Floats:
    """Return the share of both relevant among those that one side calls relevant."""
    shares = _shares(sums, len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(shares[0][1, 1] / shares[side][1])


FORMULAS: Final[Mapping[str, Formula]] = {
    "agreement": _same,
    "kappa": _kappa,
    "kappa_quadratic": partial(_kappa, weighted=True),
    "alpha_nominal": partial(_alpha, ordinal=False),
    "alpha_ordinal": partial(_alpha, ordinal=True),
    "alpha_interval": _alpha_interval,
    "ac1": _ac1,
    "precision": partial(_of_relevant, side=1),
    "recall": partial(_of_relevant, side=2),
    "mean_difference": _mean_difference,
}
AGAINST_PEOPLE: Final = ("precision", "recall")
ON_RELEVANCE: Final = ("agreement", "kappa", "alpha_nominal", "ac1")
ON_LABELS: Final = tuple(name for name in FORMULAS if name not in AGAINST_PEOPLE)
