"""Many machine labels corrected by few human ones: means of measures, and differences of runs, with honest intervals.

Prediction-powered inference (Angelopoulos et al., 2023; PPI++, 2024) where the queries that people judged are among
those that the machine labelled. With whole queries: F is the score under the machine's labels on all N queries, Y the
one under people's on n of them, drawn at random:

    estimate = mean_i [ Y_i - l_-i (F_i - mean F) ],   l_-i = Cov(Y, F) / Var F without query i, at least 0
    variance = (1/n - 1/N) s2_resid + s2_Y / N + 2 (range / n)^2,        t with n - 1 degrees of freedom

The difference of two runs is 0 where their lists are the same: it is estimated on the N_d queries where they differ and
multiplied by N_d / N, without an interval below eight judged ones. The judged ones may all have missed a rare large
win, or the only queries on which a run fails: the last term stands for unseen ones (`judgekit.analysis.resampling`).

With single pairs, drawn with known probabilities p, a measure has to be a sum over pairs (P, DCG): per query

    z = sum_all l f c + sum_judged (y - l f) c / p,    mean z +- t with N - 1 degrees of freedom

c is what the pair counts in the measure, and l is fitted on other queries than it is used on. Whatever the machine's
labels are worth, both are unbiased: a poor machine only makes them as wide as people's labels alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from judgekit.analysis.differences import holm
from judgekit.analysis.measures import reach_of
from judgekit.analysis.resampling import unseen
from judgekit.collection import Collection
from judgekit.data.columns import Bools, Floats
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError
from judgekit.metrics import Evaluation, Measure, evaluate, parse_measures
from judgekit.people.reading import People

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
_LEAST: Final = 8
"""Judged queries with different lists below which a difference has no interval: its spread is not known."""
_POSITIVE: Final = 10
"""Judged relevant pairs below which pairs that were drawn with unequal probabilities give no interval."""


@dataclass(frozen=True)
class Corrected:
    """A corrected mean.

    Attributes:
        value, low, high: the estimate and its interval.
        error: its standard error.
        freedom: degrees of freedom.
        weight: l, averaged: 0 where the machine's labels are not worth using.
    """

    value: float
    low: float
    high: float
    error: float
    freedom: int
    weight: float

    @property
    def p(self) -> float:
        """Two-sided p of no difference; 1 where the lists are the same."""
        if self.error == 0:
            return 1.0
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.freedom))


def _interval(value: float, variance: float, freedom: int, confidence: float, *, weight: float = 0.0) -> Corrected:
    error = math.sqrt(variance)
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    return Corrected(value, value - reach, value + reach, error=error, freedom=freedom, weight=weight)


def corrected_mean(
    people: Floats, machine: Floats, every: Floats, confidence: float = 0.95, reach: float = 1.0
) -> Corrected:
    """Return the mean over all queries by people's labels, from some of them.

    ``reach`` is how far from the mean the value of a query may lie.
    """
    n, total = len(people), len(every)
    if n < 3:
        raise UsageError(f"people judged {n} queries: a corrected mean needs at least three")
    y, f = people - people.mean(), machine - machine.mean()
    # Sums of products without each query: leaving a point out takes n / (n - 1) of its product away.
    cross = (y * f).sum() - n / (n - 1) * y * f
    square = (f * f).sum() - n / (n - 1) * f * f
    weight = _weight(cross, square)
    residual = people - weight * (machine - every.mean())
    variance = (1 / n - 1 / total) * float(residual.var(ddof=1)) + float(people.var(ddof=1)) / total
    variance += unseen(n, reach)
    return _interval(float(residual.mean()), variance, n - 1, confidence, weight=float(weight.mean()))


def _weight(cross: Floats, square: Floats) -> Floats:
    """Return l: 0 where the machine's labels are alike, or point the wrong way."""
    return np.maximum(np.divide(cross, square, out=np.zeros(len(cross)), where=square > 1e-12), 0.0)


def corrected_sum(
    people: Floats, machine: Floats, counts: Floats, probability: Floats, query: npt.NDArray[np.intp], queries: int,
    confidence: float,
) -> Corrected:  # fmt: skip
    """Return the mean over queries of a sum over pairs by people's labels, from some of the pairs."""
    judged = np.isfinite(people)
    if queries < 3 or not judged.any():
        raise UsageError(f"{int(judged.sum())} pairs of {queries} queries are judged: a corrected sum needs more")
    y, f, c, p = people[judged], machine[judged], counts[judged], probability[judged]
    fold, spread = query % _FOLDS, c**2 * (1 - p) / p**2
    cross = np.bincount(fold[judged], spread * f * y, minlength=_FOLDS)
    square = np.bincount(fold[judged], spread * f * f, minlength=_FOLDS)
    weight = _weight(cross.sum() - cross, square.sum() - square)[fold]
    terms = weight * machine * counts
    terms[judged] += (y - weight[judged] * f) * c / p
    z = np.bincount(query, terms, minlength=queries)
    # What one judged pair adds to the mean, were its label another one.
    worth_of_pair = float(np.sqrt(np.mean((c / p) ** 2))) / queries
    variance = float(z.var(ddof=1)) / queries + unseen(1, worth_of_pair)
    return _interval(float(z.mean()), variance, queries - 1, confidence, weight=float(weight[judged].mean()))


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
    """Correct machine labelings by human labels of a sample."""
    parsed = parse_measures(measures)
    if not parsed:
        raise UsageError("name a measure, e.g. nDCG@5")
    notes: list[str] = []
    asked = people.asked[people.asked["query_id"].isin(set(collection.queries))]
    judged = asked[asked["status"] == "ok"]
    whole = _whole_queries(collection, asked)
    if not whole:
        for measure in parsed:
            if measure.name not in _SUMS or measure.cutoff is None:
                raise UsageError(
                    f"{measure} is not a sum over pairs, and people judged only some of the pairs of a query: use P@k"
                    " or DCG@k, or sample whole queries (--design queries)"
                )
    if len(judged) < len(asked):
        notes.append(
            f"{len(asked) - len(judged):,} of {len(asked):,} pairs have no human label (skipped, undecided or not"
            " reached); the estimates hold only if that is unrelated to their relevance"
        )
    shown = asked["query_id"].nunique() if whole else 0
    rows: list[Row] = []
    for name, labeling in labelings.items():
        for measure in parsed:
            if whole:
                estimates = _by_queries(collection, people, labeling, measure, confidence)
            else:
                sides = people.labeling, labeling
                estimates = _by_pairs(collection, judged, sides, measure, confidence)
            found = _rows(estimates)
            rows += ({"labeling": name, "measure": str(measure), **row} for row in found)
            notes += _notes(name, measure, found, shown)
    return Correction(pd.DataFrame(rows, columns=list(CORRECTED)), tuple(dict.fromkeys(notes)))


def _notes(name: str, measure: Measure, rows: Sequence[Row], shown: int) -> Iterator[str]:
    """Yield what limits the estimates of a measure; people saw ``shown`` whole queries, 0 where they saw pairs."""
    n = rows[0]["judged"]
    if n < shown:
        yield (
            f"{measure} rests on {n:,} of the {shown:,} queries that people were asked about; the others are"
            " excluded, since some of their pairs have no label. Have these judged or adjudicated first"
        )
    lacking = sum(bool(np.isnan(row["ci_low"])) for row in rows)
    if lacking:
        why = f"have different lists on fewer than {_LEAST} judged queries" if shown else "rest on too few positives"
        yield f"{lacking:,} values of {measure} have no interval: they {why}"
    if shown and any(row["other"] for row in rows):
        yield f"{measure}: a rare large win may be unseen; intervals of differences allow for one"
    if np.mean([row["weight"] for row in rows]) < _USELESS:
        yield f"{name} says almost nothing about people's {measure}: do not use its labels"
    if shown and n < _FEW and measure.name in _ONE_OR_NOTHING:
        yield f"{measure} is nearly always 0 or 1, and there are few queries: judge {_FEW} or more"


def scored(collection: Collection, people: People, measure: Measure) -> Evaluation:
    """Return what each run scores by people's labels on the questions that they judged as a whole."""
    if not _whole_queries(collection, people.asked):
        raise UsageError(
            "people judged only some of the passages of a question, which gives no run a score of its own there: sample"
            " whole queries (--design queries)"
        )
    asked = sorted(set(people.asked["query_id"]))
    return evaluate(list(collection.runs), [people.labeling], [measure], query_ids=asked, depth=collection.depth)


def _whole_queries(collection: Collection, asked: pd.DataFrame) -> bool:
    """Return whether people were asked about all pooled documents of every query that they saw."""
    sizes = asked.groupby("query_id")["doc_id"].nunique()
    return bool(len(sizes)) and all(count == len(collection.pairs[str(query)]) for query, count in sizes.items())


Row = dict[str, Any]


@dataclass(frozen=True)
class _Estimates:
    """What is estimated of a measure.

    Attributes:
        values: by run and what it is compared with ("" for its mean): corrected, people's alone, the machine's.
        judged: how many queries, or pairs, people judged.
        queries: of how many queries.
    """

    values: Mapping[tuple[str, str], tuple[Corrected, Corrected, float]]
    judged: int
    queries: int


def _contrasts(collection: Collection, values: Floats) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Yield the values of each run, with "" behind its name, and the difference of every two, under both names."""
    by_run = {run.name: row for run, row in zip(collection.runs, values, strict=True)}
    for name, row in by_run.items():
        yield (name, ""), row
    for first, second in combinations(by_run, 2):
        yield (first, second), by_run[first] - by_run[second]


def _rows(estimates: _Estimates) -> list[Row]:
    """Return a row for each estimate, with people's alone and the machine's; differences are tested together."""
    p = {key: made.p for key, (made, _, _) in estimates.values.items() if key[1] and np.isfinite(made.p)}
    adjusted = dict(zip(p, holm(list(p.values())).tolist(), strict=True))
    rows = []
    for key, (made, alone, machine) in estimates.values.items():
        run, other = key
        row: Row = {
            "run": run,
            "other": other,
            "value": made.value,
            "ci_low": made.low,
            "ci_high": made.high,
            "people": alone.value,
            "people_low": alone.low,
            "people_high": alone.high,
            "machine": machine,
            "bias": machine - made.value,
            "weight": made.weight,
            "judged": estimates.judged,
            "queries": estimates.queries,
            "worth": np.nan if made.error == 0 else (alone.error / made.error) ** 2,
        }
        if other:
            row |= {"p": made.p, "p_holm": adjusted.get(key, np.nan)}
        rows.append(row)
    return rows


def _by_queries(
    collection: Collection, people: People, machine: Labeling, measure: Measure, confidence: float
) -> _Estimates:
    """Return corrected means and differences from whole queries."""
    runs, queries = list(collection.runs), list(collection.queries)
    made = evaluate(runs, [machine], [measure], query_ids=queries, depth=collection.depth)
    human = scored(collection, people, measure)
    ((f,),), ((scores,),) = made.values, human.values
    place = {query_id: at for at, query_id in enumerate(made.query_ids)}
    y = np.full_like(f, np.nan)
    y[:, [place[query_id] for query_id in human.query_ids]] = scores
    labelled = np.isfinite(f).all(axis=0)
    judged = np.isfinite(y).all(axis=0)[labelled]
    n = int(judged.sum())
    if n < 3:
        raise UsageError(
            f"{n:,} of {len(human.query_ids):,} queries that people were asked about have a label of every passage, and"
            " corrected means need at least three: have the waiting pairs judged (`annotate read` writes"
            " their page), then read all files again"
        )
    reach = reach_of(measure, f)
    values: dict[tuple[str, str], tuple[Corrected, Corrected, float]] = {}
    for (run, other), (a, b) in _contrasts(collection, np.stack([y, f], axis=1)[..., labelled]):
        if other:
            differ = _differ(collection, run, other, measure.cutoff)[labelled]
            corrected, alone = corrected_difference(a, b, judged, differ, confidence, reach=reach)
        else:
            corrected = corrected_mean(a[judged], b[judged], b, confidence, reach)
            alone = _alone(a[judged], confidence, reach)
        values[run, other] = corrected, alone, float(b.mean())
    return _Estimates(values, n, int(labelled.sum()))


def _differ(collection: Collection, first: str, second: str, cutoff: int | None) -> Bools:
    """Return on which queries two runs show different lists."""
    runs = {run.name: run for run in collection.runs}
    depth = cutoff or collection.depth
    return np.array([runs[first].top(query, depth) != runs[second].top(query, depth) for query in collection.queries])


def corrected_difference(
    people: Floats,
    machine: Floats,
    judged: Bools,
    differ: Bools,
    confidence: float,
    reach: float = 1.0,
) -> tuple[Corrected, Corrected]:
    """Return the mean over all queries, corrected and by people alone, where it is known to be 0 on some of them.

    ``reach`` is the largest difference that a query can make.
    """
    share, taken = float(differ.mean()), judged & differ
    y, n = people[taken], int(taken.sum())
    if share == 0:
        nothing = Corrected(0.0, 0.0, 0.0, error=0.0, freedom=0, weight=0.0)
        return nothing, nothing
    if n < _LEAST:
        value = share * float(y.mean()) if n else np.nan
        unknown = Corrected(value, np.nan, np.nan, error=np.nan, freedom=0, weight=0.0)
        return unknown, unknown
    reach += abs(float(y.mean()))
    corrected = corrected_mean(y, machine[taken], machine[differ], confidence, reach)
    return _times(corrected, share), _times(_alone(y, confidence, reach), share)


def _alone(people: Floats, confidence: float, reach: float) -> Corrected:
    """Return the mean by people's labels alone."""
    n = len(people)
    return _interval(float(people.mean()), float(people.var(ddof=1)) / n + unseen(n, reach), n - 1, confidence)


def _times(estimate: Corrected, by: float) -> Corrected:
    return replace(
        estimate,
        value=estimate.value * by,
        low=estimate.low * by,
        high=estimate.high * by,
        error=estimate.error * by,
    )


def worth(labels: Floats, scale: Scale, measure: Measure) -> Floats:
    """Return what labels add to a measure that is a sum over pairs; NaN where there is none."""
    if measure.name == "DCG":
        return np.maximum(labels, 0.0)
    least = scale.min_rel if measure.rel is None else measure.rel
    return labels if least is None else np.where(np.isnan(labels), np.nan, labels >= least)


def gained(measure: Measure, cutoff: int) -> Floats:
    """Return what a label of 1 counts at each rank in a measure that is a sum over pairs."""
    return np.full(cutoff, 1 / cutoff) if measure.name == "P" else 1 / np.log2(np.arange(cutoff) + 2)


def counted(collection: Collection, row: Mapping[tuple[str, str], int], measure: Measure) -> Floats:
    """Return what each pair, by its place, counts in each run's measure, which is a sum over pairs: shape (R, N)."""
    cutoff = measure.cutoff or collection.depth
    gains = gained(measure, cutoff)
    counts = np.zeros((len(collection.runs), len(row)))
    for at, run in enumerate(collection.runs):
        for query in collection.queries:
            docs = run.top(query, cutoff)
            counts[at, [row[query, doc] for doc in docs]] = gains[: len(docs)]
    return counts


def _by_pairs(
    collection: Collection,
    judged: pd.DataFrame,
    sides: tuple[Labeling, Labeling],
    measure: Measure,
    confidence: float,
) -> _Estimates:
    """Return corrected sums and differences from single pairs, by people's labels and the machine's."""
    places = {query_id: at for at, query_id in enumerate(collection.queries)}
    pairs = [(query_id, doc_id) for query_id, docs in collection.pairs.items() for doc_id in docs]
    row = {pair: at for at, pair in enumerate(pairs)}
    query, n = np.array([places[query_id] for query_id, _ in pairs]), len(places)
    probability = np.zeros(len(pairs))
    drawn = [row[pair] for pair in zip(judged["query_id"], judged["doc_id"], strict=True)]
    probability[drawn] = judged["probability"]
    y, f = (worth(labeling.at(pairs), labeling.scale, measure) for labeling in sides)
    y[probability == 0] = np.nan
    known = np.isfinite(f)
    f[~known] = f[known].mean() if known.any() else 0.0
    counts = counted(collection, row, measure)
    # A judge that is sure and wrong leaves few positives with large weights, whose spread a sample seldom shows.
    few = int((y > 0).sum()) < _POSITIVE and judged["probability"].nunique() > 1
    values: dict[tuple[str, str], tuple[Corrected, Corrected, float]] = {}
    for key, c in _contrasts(collection, counts):
        both = []
        for machine in (f, np.zeros(len(f))):
            estimate = corrected_sum(y, machine, c, probability, query, queries=n, confidence=confidence)
            if few:
                estimate = replace(estimate, low=np.nan, high=np.nan, error=np.nan)
            both.append(estimate)
        values[key] = both[0], both[1], float(np.bincount(query, f * c, minlength=n).mean())
    return _Estimates(values, len(judged), n)
