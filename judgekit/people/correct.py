"""Corrects many machine labels by few human ones: means of measures and differences of runs, with honest intervals.

Prediction-powered inference (Angelopoulos et al., 2023; PPI++, 2024) for people's queries among the machine's: F is the
score under the machine's labels on all N queries, Y that under people's on n of them, drawn at random:

    estimate = mean_i [ Y_i - l_-i (F_i - mean F) ],   l_-i = Cov(Y, F) / Var F without query i, at least 0
    variance = (1/n - 1/N) s2_resid + s2_Y / N + 2 (range / n)^2,        t with n - 1 degrees of freedom

Two runs with the same list for a query differ by 0 there, so their difference is estimated on the N_d other queries and
multiplied by N_d / N; below eight judged ones it has no interval. The judged queries may all have missed a rare large
win, or the only queries on which a run fails: the last term stands for unseen queries (`judgekit.analysis.resampling`).
The estimate is unbiased even for a poor machine; then it is as wide as with people's labels alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from judgekit.analysis.differences import holm
from judgekit.analysis.measures import reach_of
from judgekit.analysis.resampling import unseen
from judgekit.collection import Collection
from judgekit.data.columns import Bools, Floats
from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run
from judgekit.data.tables import stacked
from judgekit.errors import UsageError
from judgekit.metrics import Evaluation, Measure, evaluate, parse_measures
from judgekit.people.reading import People

CORRECTED: Final = (
    "labeling", "measure", "run", "other", "value", "ci_low", "ci_high", "people", "people_low", "people_high",
    "machine", "bias", "weight", "worth", "judged", "queries", "p", "p_holm",
)  # fmt: skip
"""Columns of the table of corrected values: ``other`` is the run compared with, or "" for a run's mean; ``bias`` is the
machine's value minus the corrected one; ``weight`` is l; ``worth`` is the factor by which people alone would need more
labels for the same width; p is two-sided, for differences, and ``p_holm`` over all pairs of runs in a measure."""

_FEW: Final = 25
_ONE_OR_NOTHING: Final = ("Success", "RR", "R")
_USELESS: Final = 0.05
_LEAST: Final = 8
"""With fewer judged queries whose lists differ, a difference has no interval, because its spread is unknown."""


@dataclass(frozen=True)
class Corrected:
    """A corrected mean.

    Attributes:
        value, low, high: the estimate and its interval.
        error: its standard error.
        freedom: degrees of freedom.
        weight: l, averaged: 0 if the machine's labels are not worth using.
    """

    value: float
    low: float
    high: float
    error: float
    freedom: int
    weight: float

    @property
    def p(self) -> float:
        """Two-sided p of no difference; 1 if the lists are the same."""
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

    ``reach`` is the largest distance of a query's value from the mean.
    """
    n, total = len(people), len(every)
    if n < 3:
        raise UsageError(f"people judged {n} queries: a corrected mean needs at least three")
    y, f = people - people.mean(), machine - machine.mean()
    # Sums of products without each query: leaving a point out subtracts n / (n - 1) of its product.
    cross = (y * f).sum() - n / (n - 1) * y * f
    square = (f * f).sum() - n / (n - 1) * f * f
    # 0 if the machine's labels are all alike or point the wrong way.
    weight = np.maximum(np.divide(cross, square, out=np.zeros(n), where=square > 1e-12), 0.0)
    residual = people - weight * (machine - every.mean())
    variance = (1 / n - 1 / total) * float(residual.var(ddof=1)) + float(people.var(ddof=1)) / total
    variance += unseen(n, reach)
    return _interval(float(residual.mean()), variance, n - 1, confidence, weight=float(weight.mean()))


@dataclass(frozen=True)
class Correction:
    """Corrected values of runs.

    Attributes:
        table: rows with the columns `CORRECTED`.
        notes: sentences that a reader should know.
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
    asked = people.asked[people.asked["query_id"].isin(set(collection.queries))]
    # If some passages of a query are unjudged, its nDCG is a different number.
    if not judged_whole(collection, asked):
        raise UsageError(f"{_PARTLY}, so means of runs cannot be corrected: sample whole queries (--design queries)")
    notes: list[str] = []
    lacking = int((asked["status"] != "ok").sum())
    if lacking:
        notes.append(
            f"{lacking:,} of {len(asked):,} pairs have no human label (skipped, undecided or not"
            " reached); the estimates hold only if that is unrelated to their relevance"
        )
    tables = []
    for name, labeling in labelings.items():
        for measure in parsed:
            table = _corrected(collection, people, labeling, measure, confidence)
            tables.append(table.assign(labeling=name, measure=str(measure)))
            notes += _notes(name, measure, tables[-1], asked["query_id"].nunique())
    return Correction(stacked(tables).reindex(columns=list(CORRECTED)), tuple(dict.fromkeys(notes)))


def _notes(name: str, measure: Measure, rows: pd.DataFrame, shown: int) -> Iterator[str]:
    """Yield the limits of a measure's estimates, given the number of queries that people saw."""
    n = int(rows["judged"].iloc[0])
    if n < shown:
        yield (
            f"{measure} rests on {n:,} of the {shown:,} queries that people were asked about; the others are"
            " excluded, since some of their pairs have no label. Have these judged or adjudicated first"
        )
    lacking = int(rows["ci_low"].isna().sum())
    if lacking:
        why = f"have different lists on fewer than {_LEAST} judged queries"
        yield f"{lacking:,} values of {measure} have no interval: they {why}"
    if (rows["other"] != "").any():
        yield f"{measure}: a rare large win may be unseen; intervals of differences allow for one"
    if rows["weight"].mean() < _USELESS:
        yield f"{name} says almost nothing about people's {measure}: do not use its labels"
    if n < _FEW and measure.name in _ONE_OR_NOTHING:
        yield f"{measure} is nearly always 0 or 1, and there are few queries: judge {_FEW} or more"


_PARTLY: Final = "people judged only some of the passages of a question"


def scored(collection: Collection, people: People, measure: Measure) -> Evaluation:
    """Return each run's score by people's labels on the questions that they judged completely."""
    if not judged_whole(collection, people.asked):
        raise UsageError(
            f"{_PARTLY}, which gives no run a score of its own there: sample whole queries (--design queries)"
        )
    asked = sorted(set(people.asked["query_id"]))
    return evaluate(list(collection.runs), [people.labeling], [measure], query_ids=asked, depth=collection.depth)


def judged_whole(collection: Collection, asked: pd.DataFrame) -> bool:
    """Return whether people were asked about all pooled documents of each query they saw."""
    sizes = asked.groupby("query_id")["doc_id"].nunique()
    return bool(len(sizes)) and all(count == len(collection.pairs[str(query)]) for query, count in sizes.items())


def _corrected(
    collection: Collection, people: People, machine: Labeling, measure: Measure, confidence: float
) -> pd.DataFrame:
    """Return corrected means of the runs, and the differences of all pairs, tested together."""
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
    f, y = f[:, labelled], y[:, labelled]
    rows: list[dict[str, Any]] = []
    for run, by_people, by_machine in zip(runs, y, f, strict=True):
        corrected = corrected_mean(by_people[judged], by_machine[judged], by_machine, confidence, reach)
        alone = _alone(by_people[judged], confidence, reach)
        rows.append(_row(run.name, "", corrected, alone, float(by_machine.mean())))
    for first, second in combinations(range(len(runs)), 2):
        run, other = runs[first], runs[second]
        # Equal lists differ by 0, so only the other queries are estimated.
        differ = _differ(run, other, queries, measure.cutoff or collection.depth)[labelled]
        by_people, by_machine = y[first] - y[second], f[first] - f[second]
        corrected, alone = corrected_difference(by_people, by_machine, judged, differ, confidence, reach=reach)
        rows.append(_row(run.name, other.name, corrected, alone, float(by_machine.mean())))
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    table.loc[tested, "p_holm"] = holm(table.loc[tested, "p"].tolist())
    return table.assign(judged=n, queries=int(labelled.sum()))


def _row(run: str, other: str, corrected: Corrected, alone: Corrected, machine: float) -> dict[str, Any]:
    return {
        "run": run,
        "other": other,
        "value": corrected.value,
        "ci_low": corrected.low,
        "ci_high": corrected.high,
        "people": alone.value,
        "people_low": alone.low,
        "people_high": alone.high,
        "machine": machine,
        "bias": machine - corrected.value,
        "weight": corrected.weight,
        "worth": np.nan if corrected.error == 0 else (alone.error / corrected.error) ** 2,
        "p": corrected.p if other else np.nan,
    }


def _differ(first: Run, second: Run, queries: Sequence[str], depth: int) -> Bools:
    """Return on which queries two runs show different lists."""
    return np.array([first.top(query, depth) != second.top(query, depth) for query in queries])


def corrected_difference(
    people: Floats,
    machine: Floats,
    judged: Bools,
    differ: Bools,
    confidence: float,
    reach: float = 1.0,
) -> tuple[Corrected, Corrected]:
    """Return the mean over all queries, corrected and by people alone, if some are known to be 0.

    ``reach`` is the largest possible difference on a query.
    """
    share, taken = float(differ.mean()), judged & differ
    y, n = people[taken], int(taken.sum())
    if share == 0:
        nothing = Corrected(0.0, 0.0, 0.0, error=0.0, freedom=0, weight=0.0)
        return nothing, nothing
    # Seven differences do not reveal the spread: intervals from so few missed the truth far too often.
    if n < _LEAST:
        value = share * float(y.mean()) if n else np.nan
        unknown = Corrected(value, np.nan, np.nan, error=np.nan, freedom=0, weight=0.0)
        return unknown, unknown
    # An unseen win may lie on the other side of 0 than the mean of the seen ones.
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
