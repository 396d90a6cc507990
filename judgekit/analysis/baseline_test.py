"""Two versions of a retriever: what changed against a baseline, and whether chance explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import holm
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.measures import reach_of
from judgekit.analysis.resampling import t_quantile, unseen
from judgekit.data.frames import AsQueries, as_queries
from judgekit.data.questions import PARTED, joined, questions_of
from judgekit.errors import UsageError, not_among
from judgekit.metrics import Evaluation

_FLIPS: Final = 10_000
_AT_ONCE: Final = 1 << 22
_CHANGED: Final = 5
_EQUAL: Final = 1e-12


def against(
    evaluation: Evaluation,
    baseline: str,
    *,
    confidence: float = 0.95,
    queries: AsQueries | None = None,
    groups: str | None = None,
) -> pd.DataFrame:
    """Return how every other run differs from a baseline, on the queries where both have a score.

    Args:
        evaluation: what `judgekit.score` returned.
        baseline: the run to compare with.
        confidence: confidence of the intervals: paired, Student's t, with an allowance for differences too rare to be
            seen here. They need five queries that differ.
        queries: the questions, as for `judgekit.label`: queries with the same conversation, text and language count as
            one question. Without them each query counts alone.
        groups: column of the queries with their groups: a group counts as one question, too. ``none`` counts every
            query alone.

    Returns:
        One row per labeling, measure and run: ``labeling, measure, run, difference`` (run minus baseline), ``ci_low,
        ci_high, p_t`` (paired t test), ``p_random`` (paired randomization test: signs of the differences flipped 10,000
        times), ``p_t_holm, p_random_holm`` (Holm over the runs), ``wins, ties, losses`` (queries on which the run is
        better, equal, worse), ``queries``, and ``most_changed``, the queries with the largest differences. If a
        question has several rows, everything but the difference counts questions; ``rows`` is the number of queries,
        and ``p_t_rows`` the plain paired p over them.

    Raises:
        UsageError: the baseline is not one of the runs, or is the only run.
    """
    if baseline not in evaluation.runs:
        raise UsageError(not_among("run", baseline, evaluation.runs))
    if len(evaluation.runs) < 2:
        raise UsageError(f"{baseline!r} is the only run: add another run to compare with it")
    base = evaluation.runs.index(baseline)
    unit = _units(evaluation.query_ids, queries, groups)
    rows = []
    for k, labeling in enumerate(evaluation.labelings):
        for i, measure in enumerate(evaluation.measures):
            values = evaluation.values[i, k]
            reach = reach_of(measure, values)
            for run, scores in zip(evaluation.runs, values, strict=True):
                if run != baseline:
                    keys = {"labeling": labeling, "measure": str(measure), "run": run}
                    gaps = pd.Series(scores - values[base], evaluation.query_ids).dropna()
                    row = _compared(gaps.mask(gaps.abs() <= _EQUAL, 0), unit, confidence, reach)
                    if measure.lower_is_better:
                        row["wins"], row["losses"] = row["losses"], row["wins"]
                    rows.append(keys | row)
    table = pd.DataFrame(rows)
    tests = table.groupby(["labeling", "measure"])
    table["p_t_holm"] = tests["p_t"].transform(holm)
    table["p_random_holm"] = tests["p_random"].transform(holm)
    order = ["labeling", "measure", "run", "difference", "ci_low", "ci_high", "p_t", "p_t_holm", "p_random"]
    repeated: list[str] = [] if unit is None else ["rows", "p_t_rows"]
    return table[[*order, "p_random_holm", "wins", "ties", "losses", "queries", *repeated, "most_changed"]]


def _units(ids: Sequence[str], queries: AsQueries | None, groups: str | None) -> Mapping[str, str] | None:
    """Return the question or group of each query, named by its first query; None if each stands alone."""
    if queries is None and groups not in (None, PARTED):
        raise UsageError(f"groups: {groups!r} is a column of the queries: give the queries too")
    if queries is None or groups == PARTED:
        return None
    known = as_queries(queries)
    asked = {query_id: known[query_id] for query_id in ids if query_id in known}
    questions = {query_id: query_id for query_id in ids} | questions_of(asked)
    declared = {} if groups is None else {query_id: query.group(groups) for query_id, query in asked.items()}
    unit, first = joined(questions, declared), dict[str, str]()
    for query_id in sorted(unit):
        first.setdefault(unit[query_id], query_id)
    if len(first) == len(unit):
        return None
    return {query_id: first[name] for query_id, name in unit.items()}


def _by_unit(gaps: pd.Series, unit: Mapping[str, str]) -> tuple[pd.Series, Floats]:
    """Return each unit's difference, and its deviation from the mean of all rows, around that mean.

    Both are sums over the rows of a unit as shares of a mean unit, so that their mean is that of the rows.
    """
    by_unit = gaps.groupby(gaps.index.map(unit)).agg(["sum", "size"])
    share = len(by_unit) / max(len(gaps), 1)
    sums = by_unit["sum"] * share
    mean = float(gaps.mean()) if len(gaps) else 0.0
    # A unit with more rows than others is expected to differ by more.
    return sums, (sums - mean * (by_unit["size"] * share - 1)).to_numpy()


def _compared(
    by_query: pd.Series, unit: Mapping[str, str] | None, confidence: float, reach: float
) -> dict[str, object]:
    """Return the test results for one run's differences, given by query in ascending order."""
    rows: dict[str, object] = {}
    centred = by_query.to_numpy()
    if unit is not None:
        rows = {"rows": len(by_query), "p_t_rows": _paired_t(centred)}
        by_query, centred = _by_unit(by_query, unit)
    gaps = by_query.to_numpy()
    low, high = paired_interval(centred, confidence, reach, int(np.count_nonzero(gaps)))
    changed = by_query[gaps != 0]
    largest = changed.abs().sort_values(ascending=False, kind="stable").index[:_CHANGED]
    return {
        "difference": float(gaps.mean()) if len(gaps) else np.nan,
        "ci_low": low,
        "ci_high": high,
        "p_t": _paired_t(centred),
        **rows,
        "p_random": flipped(gaps),
        "wins": int((gaps > 0).sum()),
        "ties": int((gaps == 0).sum()),
        "losses": int((gaps < 0).sum()),
        "queries": len(gaps),
        "most_changed": ", ".join(f"{query_id} {changed[query_id]:+.4g}" for query_id in largest),
    }


def paired_interval(gaps: Floats, confidence: float, reach: float, differing: int | None = None) -> tuple[float, float]:
    """Return the interval of a mean of differences of at most ``reach`` each; NaN if too few differ from 0.

    ``differing`` counts them, if the given differences are not the observed ones.
    """
    n = len(gaps)
    if (np.count_nonzero(gaps) if differing is None else differing) < MIN_TELLING:
        return np.nan, np.nan
    mean = float(gaps.mean())
    # Unseen differences may exist: if 2 of n queries differ, one sample of seven shows none.
    variance = float(gaps.var(ddof=1)) / n + unseen(n, reach + abs(mean))
    half = t_quantile((1 + confidence) / 2, n) * math.sqrt(variance)
    return mean - half, mean + half


def _paired_t(gaps: Floats) -> float:
    """Return the p of Student's paired t test."""
    from scipy.special import stdtr

    n = len(gaps)
    if n < 2:
        return np.nan
    mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(n)
    if error <= _EQUAL * abs(mean):  # all differences are the same
        return float(mean == 0)
    return 2 * float(stdtr(n - 1, -abs(mean) / error))


def flipped(gaps: Floats, seed: int = 1) -> float:
    """Return the share of random signs, the data's own included, whose sum is as far from 0."""
    moved = gaps[gaps != 0]
    if not len(gaps):
        return math.nan
    random = np.random.default_rng([seed, 4])
    far, left = 0, _FLIPS
    most = abs(float(moved.sum())) * (1 - _EQUAL)
    # In parts: all flips of a hundred thousand queries at once do not fit into memory.
    while left:
        flips = min(left, max(1, _AT_ONCE // max(len(moved), 1)))
        signs = random.integers(0, 2, (flips, len(moved)), dtype=np.int8)
        sums = (2.0 * signs - 1) @ moved
        far += int((np.abs(sums) >= most).sum())
        left -= flips
    return (far + 1) / (_FLIPS + 1)
