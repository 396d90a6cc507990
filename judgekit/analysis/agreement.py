"""Agreement between any two labelings, pair by pair: how far do they say the same of the same documents?

All coefficients come from the confusion table of the pairs that both labelings labelled, so that a bootstrap over
queries (pairs of one query stay together) needs only the tables of the queries. Two raters, no missing values:
Cohen (1960, 1968), Krippendorff (2011), Gwet (2008, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import within_query_interval
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.analysis.wording import UNKNOWN, Ranged
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError, not_among

if TYPE_CHECKING:
    from judgekit.metrics import Evaluation

_MAX_VALUES: Final = 50
"""With more distinct labels only alpha_interval is worked out on the labels."""

_MAX_GRADES: Final = 10
"""With more distinct labels there are no precision and recall of each."""

_SYSTEM: Final = ("first", "second", "measure", "coefficient", "value", "ci_low", "ci_high", "runs", "queries",
                  "undefined_reason")  # fmt: skip
_PAIR: Final = ["first", "second"]
_TABLE: Final = ["on", "coefficient", "value", "ci_low", "ci_high", "pairs", "queries", "undefined_reason"]

_SHARES: Final = ("agreement", "precision", "recall")
"""Coefficients that are shares of pairs, whose interval is Wilson's."""

_LABELS: Final = "labels"
_RELEVANCE: Final = "relevance"
_BOTH: Final = "labels and relevance"
_PEOPLE: Final = "relevance, where people made the second labeling"

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
            pairs with the same label; Cohen's ``kappa``, with linear and quadratic weights, too; Krippendorff's
            ``alpha_nominal``, ``_ordinal``, ``_interval``; Gwet's ``ac1``; ``mean_difference``, first minus second;
            the indices ``prevalence`` (both relevant minus neither, per pair) and ``bias`` (only the first relevant
            minus only the second); and where people made the second, ``precision`` and ``recall`` of the first, with
            few distinct labels of each label G, too (``precision=G``).
        confusion: rows ``first, second, first_label, second_label, pairs``.
        coverage: rows ``first, second, both, only_first, only_second``: pairs that have both labels or one.
        system: with runs, rows ``first, second, measure, coefficient, value, ci_low, ci_high, runs, queries,
            undefined_reason``: do the two order the runs alike, by their mean scores?
    """

    table: pd.DataFrame
    confusion: pd.DataFrame
    coverage: pd.DataFrame
    system: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_SYSTEM)))


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
    table: list[dict[str, object]] = []
    confusion: list[tuple[object, ...]] = []
    coverage: list[tuple[object, ...]] = []
    for first, second in combinations(ordered, 2):
        pair = (first.name, second.name)
        one, other = _obtained(first), _obtained(second)
        both = one.merge(other, on=["query_id", "doc_id"], suffixes=("_1", "_2"))
        coverage.append((*pair, len(both), len(one) - len(both), len(other) - len(both)))
        counts = both.groupby(["relevance_1", "relevance_2"], as_index=False).size()
        confusion += [(*pair, *row) for row in counts.itertuples(index=False)]
        queries, query = np.unique(both["query_id"].to_numpy(dtype=object), return_inverse=True)
        labels = PairedLabels(
            first=both["relevance_1"].to_numpy(),
            second=both["relevance_2"].to_numpy(),
            query=query,
            weights=resample_matrix(max(len(queries), 1), resamples, seed),
        )
        by_people = second.name in people and first.name not in people
        for on, taken, formulas in _looks(labels, first.scale, second.scale, by_people):
            for name, formula in formulas.items():
                found = taken.coefficient(name, formula, confidence)
                table.append(
                    {
                        "first": first.name,
                        "second": second.name,
                        "on": on,
                        "coefficient": name,
                        "value": found.value,
                        "ci_low": found.low,
                        "ci_high": found.high,
                        "pairs": len(both),
                        "queries": len(queries),
                        "undefined_reason": "" if np.isfinite(found.value) else _why_undefined(name, len(both)),
                    }
                )
    return Agreement(
        # With one labeling, or where nothing can be compared, there is no row, and the columns are there all the same.
        pd.DataFrame(table, columns=[*_PAIR, *_TABLE]),
        pd.DataFrame(confusion, columns=[*_PAIR, "first_label", "second_label", "pairs"]),
        pd.DataFrame(coverage, columns=[*_PAIR, "both", "only_first", "only_second"]),
    )


@one_thread
def system_agreement(
    evaluation: Evaluation, *, resamples: int = 1000, seed: int = 1, confidence: float = 0.95
) -> pd.DataFrame:
    """Return how far every two labelings order the runs alike by their mean scores, the rows of `Agreement.system`."""
    rows: list[tuple[object, ...]] = []
    weights = Resamples(resample_matrix(len(evaluation.query_ids), resamples, seed))
    for measure, values in zip(evaluation.measures, evaluation.values, strict=True):
        for first, second in combinations(range(len(values)), 2):
            pair = tuple(evaluation.labelings[each] for each in (first, second))
            there = np.isfinite(values[second])
            names = (pair[0],), tuple(evaluation.runs), tuple(evaluation.query_ids)
            panel = Panel(str(measure), 0, pair[1], "", *names, values[[first]], values[second], there)
            (found,) = estimates(panel, "system", weights)
            for name in ("concordance", "tau_b", "rho"):
                ends = found.interval(name, confidence, weights)[:2]
                value = (name, found.value(name), *ends)
                rows.append((*pair, str(measure), *value, len(evaluation.runs), found.queries, found.reason))
    return pd.DataFrame(rows, columns=list(_SYSTEM))


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

    def coefficient(self, name: str, formula: Formula, confidence: float) -> Ranged:
        """Return a coefficient with its interval; without one if the labels differ on too few queries."""
        if not len(self.first):
            return UNKNOWN
        sums = self._sums(name)
        value = float(formula(sums.sum(axis=1, keepdims=True), self.values)[0])
        if not np.isfinite(value):
            return UNKNOWN
        if name.startswith(_SHARES):
            hits, query = self._hits(name)
            return Ranged(value, *within_query_interval(hits, confidence, query))
        if len(np.unique(self.query[self.first != self.second])) < MIN_TELLING:
            return Ranged(value)
        ends = interval(value, formula(sums @ self.weights, self.values), confidence, "percentile", len(self.weights))
        return Ranged(value, ends.low, ends.high)

    def _hits(self, name: str) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return of which pairs a coefficient is the share, as 1 or 0, and their queries."""
        kind, _, label = name.partition("=")
        same = (self.first == self.second).astype(np.float64)
        if kind == "agreement":
            return same, self.query
        # The name holds the label with six digits only.
        nearest = self.values[np.argmin(np.abs(self.values - float(label or 1)))]
        where = (self.first if kind == "precision" else self.second) == nearest
        return same[where], self.query[where]

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


def _looks(
    labels: PairedLabels, first: Scale, second: Scale, by_people: bool
) -> Iterator[tuple[str, PairedLabels, dict[str, Formula]]]:
    """Yield on what two labelings are compared, their labels in this look, and its coefficients."""
    if first == second and first.kind != "binary":
        formulas = {name: formula for name, (on, formula) in FORMULAS.items() if _LABELS in on}
        if by_people and len(labels.values) <= _MAX_GRADES:
            for label in labels.values.tolist():
                formulas |= {f"{name}={label:g}": _of_grade(name, label) for name in ("precision", "recall")}
        if len(labels.values) > _MAX_VALUES:
            formulas = {"alpha_interval": _alpha_interval}
        yield _LABELS, labels, formulas
    if first.min_rel is not None and second.min_rel is not None:
        looks = [_BOTH, _RELEVANCE, *([_PEOPLE] if by_people else [])]
        relevant = replace(
            labels,
            first=(labels.first >= first.min_rel).astype(np.float64),
            second=(labels.second >= second.min_rel).astype(np.float64),
            values=np.array([0.0, 1.0]),
        )
        yield _RELEVANCE, relevant, {name: formula for name, (on, formula) in FORMULAS.items() if on in looks}


def _why_undefined(name: str, pairs: int) -> str:
    if not pairs:
        return "no pair has both labels"
    return "no such pair" if name.startswith(("precision", "recall")) else "both labelings are constant"


def _shares(sums: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Return the confusion tables as shares, (G, G, B), and their margins (G, B) of the first and the second."""
    table = sums.reshape(size, size, -1)
    shares = table / table.sum(axis=(0, 1))
    return shares, shares.sum(axis=1), shares.sum(axis=0)


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def _kappa(power: int) -> Formula:
    """Return Cohen's kappa that counts a difference of two labels as |a - b|^power, or as 1 for power 0."""

    def kappa(sums: Floats, values: Floats) -> Floats:
        shares, first, second = _shares(sums, len(values))
        distance = np.abs(values[:, None] - values)
        cost = (distance > 0).astype(np.float64) if power == 0 else distance**power
        return _one_minus(np.einsum("ij,ijb->b", cost, shares), np.einsum("ij,ib,jb->b", cost, first, second))

    return kappa


def _alpha_of_tables(ordinal: bool) -> Formula:
    """Return Krippendorff's alpha of two raters without missing values."""

    def alpha(sums: Floats, values: Floats) -> Floats:
        table = sums.reshape(len(values), len(values), -1)
        together = table + np.swapaxes(table, 0, 1)
        counts = together.sum(axis=1)
        total = counts.sum(axis=0)
        middle = np.cumsum(counts, axis=0) - counts / 2
        differ = (values[:, None] != values).astype(np.float64)[:, :, None]
        distance = (middle[:, None] - middle[None]) ** 2 if ordinal else differ
        observed = (together * distance).sum(axis=(0, 1)) / total
        expected = (counts[:, None] * counts[None] * distance).sum(axis=(0, 1)) / (total * (total - 1))
        return _one_minus(observed, expected)

    return alpha


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


def _of_grade(name: str, grade: float) -> Formula:
    """Return precision or recall of one label."""

    def share(sums: Floats, values: Floats) -> Floats:
        at = int(np.argmin(np.abs(values - grade)))
        table = sums.reshape(len(values), len(values), -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(table[at, at] / table.take(at, axis=0 if name == "precision" else 1).sum(axis=0))

    return share


def _prevalence(sums: Floats, values: Floats) -> Floats:
    shares, _, _ = _shares(sums, len(values))
    return np.asarray(shares[1, 1] - shares[0, 0])


FORMULAS: Final[Mapping[str, tuple[str, Formula]]] = {
    "agreement": (_BOTH, _same),
    "kappa": (_BOTH, _kappa(0)),
    "kappa_linear": (_LABELS, _kappa(1)),
    "kappa_quadratic": (_LABELS, _kappa(2)),
    "alpha_nominal": (_BOTH, _alpha_of_tables(ordinal=False)),
    "alpha_ordinal": (_LABELS, _alpha_of_tables(ordinal=True)),
    "alpha_interval": (_LABELS, _alpha_interval),
    "ac1": (_BOTH, _ac1),
    "prevalence": (_RELEVANCE, _prevalence),
    "bias": (_RELEVANCE, _mean_difference),
    "precision": (_PEOPLE, _of_grade("precision", 1)),
    "recall": (_PEOPLE, _of_grade("recall", 1)),
    "mean_difference": (_LABELS, _mean_difference),
}
"""The coefficients, each with what it is taken on."""
