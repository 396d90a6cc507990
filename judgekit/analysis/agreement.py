"""Agreement between any two labelings, pair by pair: do they label the same documents alike?

All coefficients come from sums over the pairs that both labelings labelled, so that a bootstrap over queries (pairs of
one query stay together) needs only the sums of the queries. Two raters, no missing values: Cohen (1960), Krippendorff
(2011), Gwet (2008, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import within_query_interval
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.analysis.wording import UNKNOWN, Ranged
from judgekit.data.labelings import Labeling
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError, not_among

if TYPE_CHECKING:
    from judgekit.metrics import Evaluation

_MAX_VALUES: Final = 50
"""With more distinct labels hardly any two are equal, so only their distance counts."""

_PAIR: Final = ["first", "second"]
_TABLE: Final = [
    *_PAIR,
    *("on", "coefficient", "value", "ci_low", "ci_high", "pairs", "queries", "undefined_reason"),
]
_SYSTEM: Final = [*_PAIR, "measure", "coefficient", "value", "runs", "queries", "undefined_reason"]


@dataclass(frozen=True)
class Agreement:
    """Agreement of labelings.

    Attributes:
        table: rows ``first, second, on, coefficient, value, ci_low, ci_high, pairs, queries, undefined_reason``; none
            for labelings without a coefficient in common. Taken ``on`` the labels if both labelings share a scale other
            than binary, and ``on`` relevance (from each labeling's own smallest relevant label on) if both say what is
            relevant: ``agreement``, the share of pairs with the same label; Cohen's ``kappa``; Krippendorff's ``alpha``
            for interval data, in which a difference counts as its square; Gwet's ``ac1``, whose chance agreement counts
            every label of the scale, even if it does not occur; ``mean_difference``, first minus second; and on
            relevance, if people made the second labeling, ``precision`` and ``recall`` of the first.
        confusion: rows ``first, second, first_label, second_label, pairs``.
        coverage: rows ``first, second, both, only_first, only_second``: pairs that have both labels or one.
        system: with runs, rows ``first, second, measure, coefficient, value, runs, queries, undefined_reason``: how
            similarly both order the runs by mean score.
    """

    table: pd.DataFrame
    confusion: pd.DataFrame
    coverage: pd.DataFrame
    system: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_SYSTEM))


@one_thread
def agreement(
    labelings: Sequence[Labeling],
    *,
    people: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
) -> Agreement:
    """Return the agreement of every two labelings on the pairs that both labelled."""
    names = [labeling.name for labeling in labelings]
    for name in people:
        if name not in names:
            raise UsageError(not_among("labeling", name, names))
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two labelings are named {name!r}: rename one of them")
    # Precision and recall are of the first against the second.
    ordered = sorted(labelings, key=lambda labeling: labeling.name in people)
    table: list[tuple[object, ...]] = []
    confusion: list[tuple[object, ...]] = []
    coverage: list[tuple[object, ...]] = []
    for first, second in combinations(ordered, 2):
        pair = (first.name, second.name)
        ours = _obtained(first)
        theirs = _obtained(second)
        both = ours.merge(theirs, on=["query_id", "doc_id"], suffixes=("_1", "_2"))
        coverage.append((*pair, len(both), len(ours) - len(both), len(theirs) - len(both)))
        counts = both.groupby(["relevance_1", "relevance_2"], as_index=False).size()
        confusion += [(*pair, *row) for row in counts.itertuples(index=False)]
        query, queries = pd.factorize(both["query_id"], sort=True)
        labels = PairedLabels(
            first=both["relevance_1"].to_numpy(),
            second=both["relevance_2"].to_numpy(),
            query=query,
            weights=resample_matrix(max(len(queries), 1), resamples, seed),
        )
        # Neither of two labelings by people is the truth for the other.
        by_people = second.name in people and first.name not in people
        for on, taken, coefficients in _looks(labels, first, second, by_people=by_people):
            for name in coefficients:
                ranged = taken.coefficient(name, confidence)
                reason = "" if np.isfinite(ranged.value) else _why_undefined(name, len(both))
                table.append((*pair, on, name, *ranged, len(both), len(queries), reason))
    # Without anything to compare, the tables have their columns but no row.
    return Agreement(
        pd.DataFrame(table, columns=_TABLE),
        pd.DataFrame(confusion, columns=[*_PAIR, "first_label", "second_label", "pairs"]),
        pd.DataFrame(coverage, columns=[*_PAIR, "both", "only_first", "only_second"]),
    )


@one_thread
def system_agreement(evaluation: Evaluation) -> pd.DataFrame:
    """Return how similarly every two labelings order the runs by mean score, as rows of `Agreement.system`.

    They have no intervals: means of few runs carry the noise of the queries, and no interval that was tried had its
    coverage.
    """
    rows: list[tuple[object, ...]] = []
    no_resamples = Resamples(np.ones((1, len(evaluation.query_ids)), np.int64))
    for measure, scores in zip(evaluation.measures, evaluation.values, strict=True):
        for first, second in combinations(range(len(scores)), 2):
            pair = (evaluation.labelings[first], evaluation.labelings[second])
            panel = Panel(
                measure=str(measure),
                depth=0,
                metric=pair[1],
                model="",
                labelings=(pair[0],),
                runs=tuple(evaluation.runs),
                queries=tuple(evaluation.query_ids),
                scores=scores[[first]],
                quality=scores[second],
                asked=np.isfinite(scores[second]),
            )
            (found,) = estimates(panel, "system", no_resamples)
            for name in ("concordance", "tau_b", "rho"):
                value = found.value(name)
                rows.append((*pair, str(measure), name, value, len(panel.runs), found.queries, found.reason))
    return pd.DataFrame(rows, columns=_SYSTEM)


def _obtained(labeling: Labeling) -> pd.DataFrame:
    table = labeling.table
    return table.loc[table["status"] == Status.OK.value, ["query_id", "doc_id", "relevance"]]


@dataclass(frozen=True)
class PairedLabels:
    """The labels of two labelings for the same N pairs.

    Attributes:
        first, second: their labels, shape (N,).
        query: the number of each pair's query, shape (N,).
        weights: how often each query is in each resample, shape (Q, B).
        values: all labels that occur, ascending; by default those of either labeling.
        categories: number of labels on the scale; 0 to count those that occur.
    """

    first: Floats
    second: Floats
    query: Ints
    weights: Floats
    values: Floats = field(default_factory=lambda: np.empty(0))
    categories: int = 0

    def __post_init__(self) -> None:
        if not len(self.values):
            object.__setattr__(self, "values", np.unique(np.concatenate([self.first, self.second])))

    def coefficient(self, name: str, confidence: float) -> Ranged:
        """Return one of `FORMULAS` with its interval; without an interval if the labels differ on too few queries."""
        if not len(self.first):
            return UNKNOWN
        formula, sums = FORMULAS[name], self._sums(name)
        if name == "ac1":
            formula = partial(_ac1, categories=self.categories)
        value = float(formula(sums.sum(axis=-1, keepdims=True))[0])
        if not np.isfinite(value):
            return UNKNOWN
        # Shares of pairs have Wilson's interval.
        apart = self.first != self.second
        if name in _SHARES:
            counted = _SHARES[name](self)
            hits = (~apart[counted]).astype(np.float64)
            return Ranged(value, *within_query_interval(hits, confidence, self.query[counted]))
        # Labels that differ on two queries give too many equal resamples for an interval.
        if len(np.unique(self.query[apart])) < MIN_TELLING:
            return Ranged(value)
        ends = interval(value, formula(sums @ self.weights), confidence, "percentile", len(self.weights))
        return Ranged(value, ends.low, ends.high)

    def _sums(self, name: str) -> Floats:
        """Return the sums of each query that a coefficient needs, shape (..., Q); they add up over queries."""
        a, b, queries = self.first, self.second, len(self.weights)
        # Five sums instead of a table of up to 50 x 50 labels for each query.
        if name in _OF_DISTANCES:
            apart = a - b
            parts = (np.ones(len(a)), a + b, a**2 + b**2, apart, apart**2)
            return np.stack([np.bincount(self.query, part, minlength=queries) for part in parts])
        size = len(self.values)
        row, column = np.searchsorted(self.values, a), np.searchsorted(self.values, b)
        cell = (row * size + column) * queries + self.query
        counts = np.bincount(cell, minlength=size * size * queries)
        return counts.reshape(size, size, queries).astype(np.float64)


_SHARES: Final[Mapping[str, Callable[[PairedLabels], Bools]]] = {
    "agreement": lambda labels: np.ones(len(labels.first), np.bool_),
    "precision": lambda labels: labels.first == 1,
    "recall": lambda labels: labels.second == 1,
}
"""The pairs of which a coefficient is a share."""


def _looks(
    labels: PairedLabels, first: Labeling, second: Labeling, *, by_people: bool
) -> Iterator[tuple[str, PairedLabels, tuple[str, ...]]]:
    """Yield what two labelings are compared on, their labels for it, and its coefficients."""
    if first.scale == second.scale and first.scale.kind != "binary":
        few = len(labels.values) <= _MAX_VALUES
        scale = first.scale
        # Chance could also give a grade that nobody gave.
        categories = scale.high - scale.low + 1 if scale.integral else 0
        yield "labels", replace(labels, categories=categories), ON_LABELS if few else _OF_DISTANCES
    least, other_least = first.scale.min_rel, second.scale.min_rel
    if least is not None and other_least is not None:
        ours = (labels.first >= least).astype(np.float64)
        theirs = (labels.second >= other_least).astype(np.float64)
        relevant = replace(labels, first=ours, second=theirs, values=np.array([0.0, 1.0]))
        yield "relevance", relevant, ON_RELEVANCE
        if by_people:
            yield "relevance", relevant, AGAINST_PEOPLE


def _why_undefined(name: str, pairs: int) -> str:
    if not pairs:
        return "no pair has both labels"
    return _NO_SUCH_LABEL.get(name, "both labelings are constant")


def _margins(table: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the share of equal labels (B,), all shares, and each side's (G, B), of confusion tables (G, G, B)."""
    shares = table / table.sum(axis=(0, 1))
    return np.einsum("iib->b", shares), shares, shares.sum(axis=1), shares.sum(axis=0)


def _kappa(table: Floats) -> Floats:
    """Return Cohen's kappa."""
    _, shares, first, second = _margins(table)
    apart = 1 - np.eye(len(table))
    observed = np.einsum("ij,ijb->b", apart, shares)
    expected = np.einsum("ij,ib,jb->b", apart, first, second)
    return _one_minus(observed, expected)


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def _alpha(sums: Floats) -> Floats:
    """Return Krippendorff's alpha for interval data; with two labels it equals that for nominal data."""
    pairs, added, squared, _, apart = sums
    number = 2 * pairs
    variance = (squared - added**2 / number) / (number - 1)
    return _one_minus(apart / pairs, 2 * variance)


def _ac1(table: Floats, categories: int = 0) -> Floats:
    """Return Gwet's AC1 for a scale of this many labels; 0 for those of the table."""
    equal, _, first, second = _margins(table)
    mean = (first + second) / 2
    chance = (mean * (1 - mean)).sum(axis=0) / max((categories or len(table)) - 1, 1)
    return np.asarray((equal - chance) / (1 - chance))


def _precision(table: Floats) -> Floats:
    _, shares, first, _ = _margins(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(shares[1, 1] / first[1])


def _recall(table: Floats) -> Floats:
    return _precision(np.swapaxes(table, 0, 1))


FORMULAS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "agreement": lambda table: _margins(table)[0],
    "kappa": _kappa,
    "alpha": _alpha,
    "ac1": _ac1,
    "precision": _precision,
    "recall": _recall,
    "mean_difference": lambda sums: sums[3] / sums[0],
}
"""Computes the coefficient, shape (B,), from sums over queries, shape (..., B)."""
_OF_DISTANCES: Final = ("alpha", "mean_difference")
AGAINST_PEOPLE: Final = ("precision", "recall")
_NO_SUCH_LABEL: Final = {
    "precision": "no label says relevant",
    "recall": "people call nothing relevant",
}
ON_RELEVANCE: Final = ("agreement", "kappa", "alpha", "ac1")
ON_LABELS: Final = (*ON_RELEVANCE, "mean_difference")
