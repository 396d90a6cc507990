"""Agreement between any two labelings, pair by pair: how far do they say the same of the same documents?

All coefficients come from the confusion table of the pairs that both labelings labelled, so that a bootstrap over
queries (pairs of one query stay together) needs only the tables of the queries. Two raters, no missing values:
Cohen (1960, 1968), Krippendorff (2011), Gwet (2008, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.resampling import UNDEFINED_SHARE, resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.data.labelings import Labeling
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
    tables: list[dict[str, object]] = []
    confusion: list[tuple[object, ...]] = []
    coverage: list[tuple[object, ...]] = []
    for first, second in combinations(ordered, 2):
        pair = {"first": first.name, "second": second.name}
        one, other = _obtained(first), _obtained(second)
        both = one.merge(other, on=["query_id", "doc_id"], suffixes=("_1", "_2"))
        coverage.append((*pair.values(), len(both), len(one) - len(both), len(other) - len(both)))
        counts = both.groupby(["relevance_1", "relevance_2"], as_index=False).size()
        confusion += [(*pair.values(), *row) for row in counts.itertuples(index=False)]
        against_people = second.name in people and first.name not in people
        found = _coefficients(both, first, second, against_people, resamples, seed, confidence)
        tables += [{**pair, **row} for row in found]
    return Agreement(
        # With one labeling, or where nothing can be compared, there is no row, and the columns are there all the same.
        pd.DataFrame(tables, columns=[*_PAIR, *_TABLE]),
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


def _coefficients(
    both: pd.DataFrame,
    first: Labeling,
    second: Labeling,
    against_people: bool,
    resamples: int,
    seed: int,
    confidence: float,
) -> Iterator[dict[str, object]]:
    """Yield the rows of one pair of labelings."""
    queries, codes = np.unique(both["query_id"].to_numpy(dtype=object), return_inverse=True)
    a, b = both["relevance_1"].to_numpy(), both["relevance_2"].to_numpy()
    weights = resample_matrix(max(len(queries), 1), resamples, seed)
    cuts = first.scale.min_rel, second.scale.min_rel
    looks: list[tuple[str, dict[str, Formula], Floats, Floats]] = []
    if first.scale == second.scale and first.scale.kind != "binary":
        values = np.unique(np.concatenate([a, b]))
        formulas = {name: formula for name, (on, formula) in _FORMULAS.items() if _LABELS in on}
        if against_people and len(values) <= _MAX_GRADES:
            formulas |= {f"{n}={g:g}": _of_grade(n, g) for g in values.tolist() for n in ("precision", "recall")}
        many = len(values) > _MAX_VALUES
        looks.append((_LABELS, {"alpha_interval": _alpha_interval} if many else formulas, a, b))
    if cuts[0] is not None and cuts[1] is not None:
        asked = [_BOTH, _RELEVANCE, *([_PEOPLE] if against_people else [])]
        formulas = {name: formula for name, (on, formula) in _FORMULAS.items() if on in asked}
        looks.append((_RELEVANCE, formulas, (a >= cuts[0]).astype(np.float64), (b >= cuts[1]).astype(np.float64)))
    for on, formulas, one, other in looks:
        for name, formula in formulas.items():
            row = {"on": on, "coefficient": name, "value": np.nan, "ci_low": np.nan, "ci_high": np.nan}
            row |= {"pairs": len(both), "queries": len(queries), "undefined_reason": ""}
            if not len(both):
                yield {**row, "undefined_reason": "no pair has both labels"}
                continue
            values = np.array([0.0, 1.0]) if on == _RELEVANCE else np.unique(np.concatenate([one, other]))
            per_query = _per_query(name, one, other, codes, len(queries), values)
            value = float(formula(per_query.sum(axis=1, keepdims=True), values)[0])
            draws = formula(per_query @ weights, values)
            defined = draws[np.isfinite(draws)]
            if not np.isfinite(value):
                of_people = name.startswith(("precision", "recall"))
                row["undefined_reason"] = "no such pair" if of_people else "both labelings are constant"
            elif len(defined) >= (1 - UNDEFINED_SHARE) * len(draws):
                low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
                row |= {"ci_low": float(low), "ci_high": float(high)}
            yield {**row, "value": value}


def _per_query(name: str, a: Floats, b: Floats, codes: npt.NDArray[np.intp], queries: int, values: Floats) -> Floats:
    """Return what a coefficient needs of every query, to be added up over queries: shape (S, queries)."""
    if name == "alpha_interval":
        parts = (np.ones(len(a)), a + b, a**2 + b**2, (a - b) ** 2)
        return np.stack([np.bincount(codes, part, minlength=queries) for part in parts])
    size = len(values)
    cells = np.searchsorted(values, a) * size + np.searchsorted(values, b)
    flat = np.bincount(cells * queries + codes, minlength=size * size * queries)
    return flat.reshape(size * size, queries).astype(np.float64)


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


_FORMULAS: Final[Mapping[str, tuple[str, Formula]]] = {
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
