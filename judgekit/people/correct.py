"""Many machine labels corrected by few human ones: means of measures, and differences of runs, with honest intervals.

Prediction-powered inference (Angelopoulos et al., 2023; PPI++, 2024) where the queries that people judged are among
those that the machine labelled. With whole queries: F is the score under the machine's labels on all N queries, Y the
one under people's on n of them, drawn at random:

    estimate = mean_i [ Y_i - l_-i (F_i - mean F) ],   l_-i = Cov(Y, F) / Var F without query i, at least 0
    variance = (1/n - 1/N) s2_resid + s2_Y / N,        t with n - 1 degrees of freedom

With single pairs, drawn with known probabilities p, a measure has to be a sum over pairs (P, DCG): per query

    z = sum_all l f c + sum_judged (y - l f) c / p,    mean z +- t with N - 1 degrees of freedom

c is what the pair counts in the measure, and l is fitted on other queries than it is used on. Whatever the machine's
labels are worth, both are unbiased: a poor machine only makes them as wide as people's labels alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from judgekit.analysis.differences import holm
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import QUALITY, Status
from judgekit.errors import UsageError
from judgekit.metrics import Measure, evaluate, parse_measures
from judgekit.people.reading import People
from judgekit.stages import Collection

__all__ = [
    "CORRECTED",
    "Corrected",
    "as_quality",
    "by_queries",
    "correct",
    "corrected_mean",
    "corrected_sum",
    "whole_queries",
]

Floats = npt.NDArray[np.float64]

CORRECTED: Final = (
    "labeling", "measure", "run", "other", "value", "ci_low", "ci_high", "people", "people_low", "people_high",
    "machine", "bias", "weight", "worth", "judged", "queries", "p", "p_holm",
)  # fmt: skip
"""Columns of the table of corrected values: ``other`` is "" for a run's mean, else what it is compared with; ``bias``
is the machine's value less the corrected one; ``weight`` is l; ``worth`` is how many times as many human labels people
alone would need for the same width; p is two-sided, of differences, ``p_holm`` over all pairs of runs of a measure."""

_FOLDS: Final = 5
_FEW: Final = 25
_SUMS: Final = ("P", "DCG")
_ONE_OR_NOTHING: Final = ("Success", "RR", "R")
_USELESS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected mean.

    Attributes:
        value, low, high: the estimate and its interval.
        error: its standard error.
        freedom: degrees of freedom.
        weight: l, averaged: 0 where the machine's labels are not worth using.
        sampled: the part of the variance that goes with 1 / n - 1 / N, times that: what more labels would lessen.
        fixed: the rest.
    """

    value: float
    low: float
    high: float
    error: float
    freedom: int
    weight: float
    sampled: float = 0.0
    fixed: float = 0.0

    @property
    def p(self) -> float:
        """Two-sided p of no difference; 1 where nothing varies."""
        if self.error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.freedom))


def _interval(
    value: float, variance: float, freedom: int, confidence: float, weight: float, *parts: float
) -> Corrected:
    error = float(np.sqrt(max(variance, 0.0)))
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    return Corrected(value, value - reach, value + reach, error, freedom, weight, *parts)


def corrected_mean(people: Floats, machine: Floats, every: Floats, confidence: float = 0.95) -> Corrected:
    """Return the mean over all queries by people's labels, from some of them.

    Args:
        people: values under people's labels on the queries that they judged, shape (n,).
        machine: values under the machine's labels on the same queries, shape (n,).
        every: values under the machine's labels on all N queries, those included, shape (N,).
        confidence: of the interval.

    Raises:
        UsageError: people judged fewer than three queries.
    """
    n, total = len(people), len(every)
    if n < 3:
        raise UsageError(f"people judged {n} queries: a corrected mean needs at least three")
    y, f = people - people.mean(), machine - machine.mean()
    # Sums of products without each query: leaving a point out takes n / (n - 1) of its product away.
    cross = (y * f).sum() - n / (n - 1) * y * f
    square = (f * f).sum() - n / (n - 1) * f * f
    weight = np.maximum(np.divide(cross, square, out=np.zeros(n), where=square > 1e-12), 0.0)
    residual = people - weight * (machine - every.mean())
    sampled, fixed = float(residual.var(ddof=1)), float(people.var(ddof=1)) / total
    variance = (1 / n - 1 / total) * sampled + fixed
    return _interval(float(residual.mean()), variance, n - 1, confidence, float(weight.mean()), sampled, fixed)


def corrected_sum(
    people: Floats, machine: Floats, counts: Floats, probability: Floats, query: npt.NDArray[np.intp], queries: int,
    confidence: float = 0.95,
) -> Corrected:  # fmt: skip
    """Return the mean over queries of a sum over pairs by people's labels, from some of the pairs.

    Args:
        people: what each pair is worth by people's label, NaN for pairs that they did not judge, shape (P,).
        machine: what it is worth by the machine's, shape (P,).
        counts: what each pair counts in the sum, shape (P,).
        probability: with which each pair was drawn, > 0 where people judged it, shape (P,).
        query: each pair's query, 0 to ``queries`` - 1, shape (P,).
        queries: how many queries there are.
        confidence: of the interval.

    Raises:
        UsageError: there are fewer than three queries, or nothing was judged.
    """
    judged = np.isfinite(people)
    if queries < 3 or not judged.any():
        raise UsageError(f"{int(judged.sum())} pairs of {queries} queries are judged: a corrected sum needs more")
    drawn = np.where(judged, probability, 1.0)
    spread = np.where(judged, counts**2 * (1 - drawn) / drawn**2, 0.0)
    y = np.where(judged, people, 0.0)
    fold = query % _FOLDS
    cross, square = (
        np.bincount(fold, spread * machine * other, minlength=_FOLDS).astype(np.float64) for other in (y, machine)
    )
    cross, square = cross.sum() - cross, square.sum() - square
    weight = np.maximum(np.divide(cross, square, out=np.zeros(_FOLDS), where=square > 1e-12), 0.0)[fold]
    each = weight * machine * counts + np.where(judged, (y - weight * machine) * counts / drawn, 0.0)
    z = np.bincount(query, each, minlength=queries)
    variance = float(z.var(ddof=1)) / queries
    return _interval(float(z.mean()), variance, queries - 1, confidence, float(weight[judged].mean()))


@dataclass(frozen=True)
class Correction:
    """Corrected values of runs.

    Attributes:
        table: rows with the columns `CORRECTED`.
        notes: what a reader has to know, as sentences.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


def correct(
    collection: Collection,
    people: People,
    labelings: Mapping[str, Labeling],
    measures: str | Sequence[object],
    *,
    confidence: float = 0.95,
) -> Correction:
    """Correct machine labelings by human labels of a sample.

    Args:
        collection: queries, documents and runs that were sampled from.
        people: what people said, with the probabilities of the sample.
        labelings: the machine's, by name; each is corrected by itself.
        measures: as `parse_measures` takes them; with a sample of single pairs only P and DCG.
        confidence: of the intervals.

    Raises:
        UsageError: a measure is not a sum over pairs and queries were judged in part, or too little was judged.
        DataError: the texts are not those that people judged.
    """
    parsed = parse_measures(measures)
    if not parsed:
        raise UsageError("name a measure, e.g. nDCG@5")
    notes: list[str] = []
    asked = people.asked[people.asked["query_id"].isin(set(collection.queries))]
    judged = asked[asked["status"] == "ok"]
    whole = whole_queries(collection, asked)
    if not whole:
        sums = [m for m in parsed if m.name not in _SUMS or m.cutoff is None]
        if sums:
            raise UsageError(
                f"{sums[0]} is not a sum over pairs, and people judged only some of the pairs of a query: use P@k or"
                " DCG@k, or sample whole queries (--design queries)"
            )
    if len(judged) < len(asked):
        notes.append(
            f"{len(asked) - len(judged):,} of {len(asked):,} pairs have no human label (skipped, undecided or not"
            " reached); the estimates hold only if that is unrelated to their relevance"
        )
    rows: list[Row] = []
    for name, labeling in labelings.items():
        for measure in parsed:
            estimates, n, total = (
                by_queries(collection, people, labeling, measure, confidence)
                if whole
                else _by_pairs(collection, judged, people.labeling, labeling, measure, confidence)
            )
            found = _rows(estimates, n, total)
            rows += [{"labeling": name, "measure": str(measure), **row} for row in found]
            shown = asked["query_id"].nunique()
            if whole and n < shown:
                notes.append(
                    f"{measure} rests on {n:,} of the {shown:,} queries that people were asked about; the others are"
                    " excluded, since some of their pairs have no label. Have these judged or adjudicated first"
                )
            if np.mean([row["weight"] for row in found]) < _USELESS:
                notes.append(f"{name} tells next to nothing about people's {measure}: its labels are not worth using")
            if whole and n < _FEW and measure.name in _ONE_OR_NOTHING:
                notes.append(f"{measure} is nearly all or nothing and queries are few: judge {_FEW} or more")
    return Correction(pd.DataFrame(rows, columns=list(CORRECTED)), tuple(dict.fromkeys(notes)))


def whole_queries(collection: Collection, asked: pd.DataFrame) -> bool:
    """Return whether people were asked about all pooled documents of every query that they saw."""
    sizes = asked.groupby("query_id")["doc_id"].nunique()
    return bool(len(sizes)) and all(count == len(collection.pairs[str(query)]) for query, count in sizes.items())


Row = dict[str, Any]
Estimates = dict[tuple[str, str], tuple[Corrected, Corrected, float]]
"""By run and what it is compared with ("" for its mean): corrected, people's alone, the machine's."""


def _contrasts(collection: Collection, values: npt.NDArray[np.float64]) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Yield the values of each run, with "" behind its name, and the difference of every two, under both names."""
    of = list(zip((run.name for run in collection.runs), values, strict=True))
    yield from (((name, ""), row) for name, row in of)
    yield from (((a, b), x - y) for (a, x), (b, y) in combinations(of, 2))


def _rows(estimates: Estimates, n: int, total: int) -> list[Row]:
    """Return a row for each estimate, with people's alone and the machine's; differences are tested together."""
    pairs = [key for key in estimates if key[1]]
    adjusted = dict(zip(pairs, holm([estimates[key][0].p for key in pairs]).tolist(), strict=True))
    out = []
    for (run, other), (made, alone, machine) in estimates.items():
        row: Row = {"run": run, "other": other, "value": made.value, "ci_low": made.low, "ci_high": made.high}
        row |= {"people": alone.value, "people_low": alone.low, "people_high": alone.high}
        row |= {"machine": machine, "bias": machine - made.value, "weight": made.weight, "judged": n, "queries": total}
        row["worth"] = np.nan if made.error == 0 else (alone.error / made.error) ** 2
        out.append(row | ({"p": made.p, "p_holm": adjusted[run, other]} if other else {}))
    return out


def by_queries(
    collection: Collection, people: People, machine: Labeling, measure: Measure, confidence: float = 0.95
) -> tuple[Estimates, int, int]:
    """Return corrected means and differences from whole queries, how many were judged, and of how many.

    Raises:
        UsageError: people judged fewer than three.
    """
    every = list(collection.queries)
    options = {"query_ids": every, "depth": collection.depth}
    scored = evaluate(list(collection.runs), [machine], [measure], **options)  # type: ignore[arg-type]  # as declared
    asked = sorted(set(people.asked["query_id"]) & set(every))
    human = evaluate(list(collection.runs), [people.labeling], [measure], query_ids=asked, depth=collection.depth)
    order = {query: at for at, query in enumerate(scored.query_ids)}
    f = scored.values[0][0]
    y = np.full_like(f, np.nan)
    y[:, [order[query] for query in human.query_ids]] = human.values[0][0]
    there = np.isfinite(f).all(axis=0)
    judged = np.isfinite(y).all(axis=0)[there]
    n = int(judged.sum())
    estimates: Estimates = {}
    for key, (a, b) in _contrasts(collection, np.stack([y, f], axis=1)[..., there]):
        alone = a[judged]
        interval = _interval(float(alone.mean()), float(alone.var(ddof=1)) / n, n - 1, confidence, 0.0)
        estimates[key] = corrected_mean(alone, b[judged], b, confidence), interval, float(b.mean())
    return estimates, n, int(there.sum())


def _worth(labels: Floats, scale: Scale, measure: Measure) -> Floats:
    """Return what a label is worth in a measure that is a sum over pairs."""
    if measure.name == "DCG":
        return np.maximum(labels, 0.0)
    least = measure.rel if measure.rel is not None else scale.min_rel
    return labels if least is None else (labels >= least).astype(np.float64)


def _by_pairs(
    collection: Collection, judged: pd.DataFrame, people: Labeling, machine: Labeling, measure: Measure,
    confidence: float,
) -> tuple[Estimates, int, int]:  # fmt: skip
    """Return corrected sums and differences from single pairs, how many were judged, and of how many queries."""
    places = {query: at for at, query in enumerate(collection.queries)}
    pairs = [(query, doc) for query, docs in collection.pairs.items() for doc in docs]
    row = {pair: at for at, pair in enumerate(pairs)}
    query, n = np.array([places[q] for q, _ in pairs]), len(places)
    probability = np.zeros(len(pairs))
    probability[[row[pair] for pair in zip(judged["query_id"], judged["doc_id"], strict=True)]] = judged["probability"]
    y, f = (_worth(labeling.at(pairs), labeling.scale, measure) for labeling in (people, machine))
    y[probability == 0] = np.nan
    f = np.where(np.isfinite(f), f, np.nanmean(f) if np.isfinite(f).any() else 0.0)
    cutoff = measure.cutoff or collection.depth
    counts = np.zeros((len(collection.runs), len(pairs)))
    for at, run in enumerate(collection.runs):
        for q in collection.queries:
            for rank, doc in enumerate(run.top(q, cutoff)):
                counts[at, row[q, doc]] = 1 / cutoff if measure.name == "P" else 1 / np.log2(rank + 2)
    estimates: Estimates = {}
    for key, c in _contrasts(collection, counts):
        made, alone = (corrected_sum(y, of, c, probability, query, n, confidence) for of in (f, np.zeros(len(f))))
        estimates[key] = made, alone, float(np.bincount(query, f * c, minlength=n).mean())
    return estimates, len(judged), n


def as_quality(collection: Collection, people: People, measures: str | Sequence[object]) -> pd.DataFrame:
    """Return the scores under people's labels as the quality that machine labelings are compared with.

    Returns:
        A quality table of the judged queries: ``metric`` is the measure, ``depth`` its cutoff, ``model`` people.

    Raises:
        UsageError: people judged single pairs, or a measure has no cutoff.
    """
    if not whole_queries(collection, people.asked):
        raise UsageError("queries cannot be scored by single pairs: sample whole queries (--design queries)")
    parsed = parse_measures(measures)
    bare = next((measure for measure in parsed if measure.cutoff is None), None)
    if bare is not None:
        raise UsageError(f"{bare} needs a cutoff here, e.g. {bare}@{collection.depth}")
    asked = sorted(set(people.asked["query_id"]) & set(collection.queries))
    scored = evaluate(list(collection.runs), [people.labeling], parsed, query_ids=asked, depth=collection.depth)
    table = scored.scores().rename(columns={"measure": "metric"}).drop(columns="labeling")
    depth = {str(measure): measure.cutoff for measure in parsed}
    table = table.assign(depth=table["metric"].map(depth), model="people", answer="")
    status = np.where(table["value"].notna(), Status.OK.value, Status.UNASKED.value)
    return QUALITY.check(table.assign(status=status))
