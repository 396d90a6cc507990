"""The three levels, kept apart: over queries, within queries over pairs of runs, and over runs.

Each yields, for every labeling of a panel, the coefficients on the data and on every resample of the queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Bools, Drawn, Floats, Target, attainable_tau_b
from judgekit.analysis.follow import MIN_TELLING, pooled_correlation
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import Margins, mean_concordance_interval, within_query_interval
from judgekit.analysis.rankings import over_present, over_runs, tau_ap, within_queries
from judgekit.analysis.resampling import Interval, interval
from judgekit.data.tables import ALL

Ints = npt.NDArray[np.intp]

LEVELS: Final = ("query", "within-query", "system")
MIN_RUNS: Final = 5
"""With fewer runs, the system level is descriptive only."""
TOP_HEAVY_RUNS: Final = 10
"""From this many runs on, the system level has tau_AP too, which weighs the best runs most."""

_KEPT: Final = 2**26
"""Bytes of resampled quality, and of what was worked out beside it, that are kept for the next measure."""
UNDEFINED_EVERYWHERE: Final = "no query has a score"
_SILENT: Final = "the scores are constant"
_OF_THE_QUALITY: Final = ("the quality is constant", "fewer than 2 queries")
"""Reasons for leaving a run out of the mean over runs, for all labelings; any other reason makes the mean undefined."""

POOLED: Final = "r_pooled"
"""The fifth coefficient of within-query comparisons: see `judgekit.analysis.follow`."""


@dataclass(frozen=True)
class _Answers:
    """The quality of one run's answers, and what was worked out of scores beside it.

    Attributes:
        target: the quality as it is and on every resample.
        found: the estimates by scores and number of coefficients: measures that look at one document, and labelings
            that agree, give the same scores.
        drawn: bytes that the target's own weights take; 0 where it shares those of all queries.
    """

    target: Target
    drawn: int
    found: dict[tuple[bytes, int], Estimate] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of its larger arrays."""
        kept = self.drawn + self.target.size
        for estimate in islice(self.found.values(), 1):  # all are about as large
            kept += len(self.found) * (estimate.draws.nbytes + estimate.each.nbytes)
        return kept


@dataclass(frozen=True)
class Resamples:
    """The resample matrix and what it was made from.

    Attributes:
        weights: how often each query is in each resample, shape (Q, B).
        groups: the group of each query, shape (Q,), if groups are resampled as a whole; else None.
        distinct: the number of each query's question, shape (Q,), if a question has several queries; else None.
    """

    weights: Floats
    groups: Ints | None = None
    distinct: Ints | None = None
    _answers: dict[tuple[bytes, bytes], _Answers] = field(default_factory=dict)
    _pairs: dict[tuple[str, str, bytes], tuple[Estimate, Estimate]] = field(default_factory=dict)

    @cached_property
    def _drawn(self) -> Drawn:
        return Drawn(self.weights, len(self.weights))

    def answers(self, quality: Floats, where: npt.NDArray[np.bool_]) -> _Answers:
        """Return the quality of some queries, shape (Q,), on the data and on every resample."""
        key = (quality.tobytes(), where.tobytes())
        if key not in self._answers:
            while sum(kept.size for kept in self._answers.values()) > _KEPT:
                del self._answers[next(iter(self._answers))]
            drawn = self._drawn if where.all() else Drawn(self.weights[where], int(where.sum()))
            target = Target(quality[where], drawn)
            self._answers[key] = _Answers(target, 0 if drawn is self._drawn else drawn.size)
        return self._answers[key]

    def units(self, where: npt.NDArray[np.bool_] | Ints) -> int:
        """Return the number of independent units among some queries: groups, or queries.

        The queries are given by a mask of shape (Q,), or by position.
        """
        if self.groups is not None:
            return len(np.unique(self.groups[where]))
        return int(where.sum()) if where.dtype == np.bool_ else len(where)

    def questions(self, where: npt.NDArray[np.bool_] | Ints) -> int:
        """Return the number of different questions among some queries, by a mask of shape (Q,) or by position."""
        if self.distinct is not None:
            return len(np.unique(self.distinct[where]))
        return int(where.sum()) if where.dtype == np.bool_ else len(where)

    def groups_of(self, where: npt.NDArray[np.bool_] | Ints) -> Ints | None:
        """Return the groups of some queries, by a mask of shape (Q,) or by position; None if each stands alone."""
        return None if self.groups is None else self.groups[where]


@dataclass(frozen=True)
class Estimate:
    """The coefficients of one labeling in one cell.

    Attributes:
        labeling: index into the panel's labelings.
        run: a run's name, or ``all``.
        names: the coefficients, C of them.
        values: on the data, shape (C,), NaN where undefined.
        draws: on every resample, shape (C, B).
        n: queries (query and within-query level) or runs (system level) that the coefficients are over.
        queries: number of queries; 0 if there are only means over an unknown number.
        attainable: the largest tau-b that the same values could reach, NaN where undefined.
        reason: why they are undefined, or "".
        units: number of independent units, see `Resamples.units`; 0 at system level.
        silent: query level: the resamples with constant scores but varying quality, shape (B,).
        margins: query level: the components of the concordance's interval, by run.
        each: the coefficients' components by query: the ranks of score and quality (query level), or each coefficient
            within the query (within-query level), shape (K, n).
        where: the position of each of these queries, shape (n,).
        telling: within-query level: number of units behind the pooled correlation.
    """

    labeling: int
    run: str
    names: tuple[str, ...]
    values: Floats
    draws: Floats
    n: int
    queries: int
    attainable: float = float("nan")
    reason: str = ""
    units: int = 0
    silent: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, np.bool_))
    margins: tuple[tuple[Margins, Ints], ...] = ()
    each: Floats = field(default_factory=lambda: np.empty((0, 0)))
    where: Ints = field(default_factory=lambda: np.empty(0, np.intp))
    telling: int = 0

    def value(self, name: str) -> float:
        """Return one of its coefficients, or NaN."""
        return float(self.values[self.names.index(name)]) if name in self.names else float("nan")

    def drawn(self, name: str) -> Floats:
        """Return one of its coefficients on every resample, shape (B,)."""
        return np.asarray(self.draws[self.names.index(name)])

    def interval(self, name: str, confidence: float, resamples: Resamples) -> Interval:
        """Return the interval of one of its coefficients, by a method chosen for its measured coverage.

        The system level has none: means of few runs carry the noise of the queries, and no interval that was tried
        covered .93 for nearly equal runs.
        """
        units = self.telling if name == POOLED else self.units
        # Resamples of so few queries hardly vary.
        if units < MIN_TELLING:
            return Interval(np.nan, np.nan, "")
        if name != "concordance" or self.reason:
            return interval(self.value(name), self.drawn(name), confidence, "fisher-t", units)
        if self.margins:
            return Interval(*mean_concordance_interval(self.margins, confidence, resamples.groups), "newcombe-5")
        groups = resamples.groups_of(self.where)
        return Interval(*within_query_interval(self.each[0], confidence, groups), "wilson-t")


def units_apart(first: Estimate, second: Estimate, name: str, resamples: Resamples) -> int:
    """Return the number of units on which two estimates of a coefficient, on the same queries, differ."""
    # A constant labeling has no coefficient on any query.
    if not len(first.where) or not len(second.where):
        return 0
    values, others = first.each, second.each
    if POOLED in first.names:
        # Pooled correlations differ only if those of single queries do.
        row = first.names.index("r" if name == POOLED else name)
        values, others = values[[row]], others[[row]]
    same = np.isclose(values, others, rtol=0, atol=1e-9, equal_nan=True).all(axis=0)
    return resamples.units(first.where[~same])


def on_common_cases(
    panel: Panel, first: int, second: int, level: str, resamples: Resamples, *, keep: str = ""
) -> dict[str, tuple[Estimate, Estimate]]:
    """Return the pair of estimates of two joint labelings on the cases that both have, by run.

    Those of the run ``keep`` are kept for `concordance_on_common_cases`.
    """
    pair = panel.pair(first, second)
    found = _pairs_by_run(pair, level, resamples, COEFFICIENTS)
    if keep in found:
        one, other = found[keep]
        resamples._pairs[_key(pair, level, keep)] = _concordance_of(one), _concordance_of(other)
    return {run: (replace(one, labeling=first), replace(other, labeling=second)) for run, (one, other) in found.items()}


def concordance_on_common_cases(
    panel: Panel, first: int, second: int, level: str, resamples: Resamples, run: str, other: Panel | None = None
) -> tuple[Estimate, Estimate] | None:
    """Return the concordances of a run under two joint labelings on the cases that both have; None if it has none.

    The second labeling is taken from ``other``, a panel of the same cases, if one is given.
    """
    if first > second and (other is None or other is panel):  # kept as the smaller one with the larger
        found = concordance_on_common_cases(panel, second, first, level, resamples, run)
        return None if found is None else (found[1], found[0])
    pair = panel.pair(first, second, other)
    key = _key(pair, level, run)
    if key not in resamples._pairs:
        by_run = _pairs_by_run(pair, level, resamples, ("concordance",))
        if run not in by_run:
            return None
        resamples._pairs[key] = by_run[run]
    one, another = resamples._pairs[key]
    return replace(one, labeling=first), replace(another, labeling=second)


def _pairs_by_run(
    pair: Panel, level: str, resamples: Resamples, names: tuple[str, ...]
) -> dict[str, tuple[Estimate, Estimate]]:
    found = {(each.labeling, each.run): each for each in estimates(pair, level, resamples, names)}
    runs = dict.fromkeys(run for _, run in found)
    return {run: (found[0, run], found[1, run]) for run in runs}


def _key(pair: Panel, level: str, run: str) -> tuple[str, str, bytes]:
    """Return the panel and the cases behind the estimates of a pair of labelings."""
    values = sha256()
    for part in (pair.scores, pair.quality, pair.asked):
        values.update(np.ascontiguousarray(part).tobytes())
    return level, run, values.digest()


def _concordance_of(estimate: Estimate) -> Estimate:
    """Return an estimate with only the concordance and, if there is one, the pooled correlation."""
    kept = [row for row, name in enumerate(estimate.names) if name in ("concordance", POOLED)]
    names = tuple(estimate.names[row] for row in kept)
    return replace(estimate, names=names, values=estimate.values[kept], draws=estimate.draws[kept])


def estimates(
    panel: Panel, level: str, resamples: Resamples, names: tuple[str, ...] = COEFFICIENTS
) -> Iterator[Estimate]:
    """Return the estimates of all labelings of a panel at a level, one of `LEVELS`."""
    if level == "query":
        return _query_level(panel, resamples, names)
    if level == "within-query":
        return _within_query_level(panel, resamples, names)
    return _system_level(panel, resamples, names)


def _none(
    labeling: int, run: str, names: tuple[str, ...], n: int, queries: int, resamples: Resamples, why: str
) -> Estimate:
    nothing = np.full((len(names), resamples.weights.shape[1]), np.nan)
    return Estimate(labeling, run, names, nothing[:, 0], nothing, n, queries, reason=why)


def _reason(scores: Floats, quality: Floats, what: str) -> str:
    if not len(quality):
        return UNDEFINED_EVERYWHERE
    if len(quality) < 2:
        return f"fewer than 2 {what}"
    if (quality == quality[0]).all():
        return "the quality is constant"
    return _SILENT if (scores == scores[0]).all() else ""


def _query_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the coefficients over queries of each run and, with several runs, their mean over runs."""
    labelings = range(len(panel.labelings))
    per_run: dict[int, list[Estimate]] = {labeling: [] for labeling in labelings}
    # Run by run, so that all labelings share a run's resampled quality.
    for row in range(len(panel.runs)):
        for labeling in labelings:
            per_run[labeling].append(_of_run(panel, labeling, row, resamples, names))
    for labeling, of_runs in per_run.items():
        yield from of_runs
        if len(of_runs) > 1:
            yield _mean(of_runs, np.asarray(panel.defined(labeling).any(axis=0)), resamples)


def _of_run(panel: Panel, labeling: int, row: int, resamples: Resamples, names: tuple[str, ...]) -> Estimate:
    """Return the coefficients over the queries of one run."""
    run, where = panel.runs[row], panel.defined(labeling)[row]
    n = int(where.sum())
    score, quality = panel.scores[labeling, row, where], panel.quality[row, where]
    why = _reason(score, quality, "queries")
    # Constant scores have a concordance of .5, and their run stays in the mean.
    if why not in ("", _SILENT):
        return _none(labeling, run, names, n, n, resamples, why)
    answers = resamples.answers(panel.quality[row], where)
    key = score.tobytes(), len(names)
    if key not in answers.found:
        answers.found[key] = _over_queries(score, answers.target, np.flatnonzero(where), resamples, names, why)
    return replace(answers.found[key], labeling=labeling, run=run)


def _over_queries(
    score: Floats, target: Target, where: Ints, resamples: Resamples, names: tuple[str, ...], why: str
) -> Estimate:
    """Return the coefficients of scores with quality on the queries of these positions."""
    both = target.coefficients(score, names)
    n = len(score)
    return Estimate(
        labeling=-1,
        run="",
        names=names,
        values=both[:, 0],
        draws=both[:, 1:],
        n=n,
        queries=n,
        attainable=attainable_tau_b(score, target.quality) if len(names) > 1 else np.nan,
        reason=why,
        units=resamples.units(where),
        silent=np.isnan(both[0, 1:]) & (target.untied[1:] > 0),
        margins=((Margins(score, target.quality), where),),
        each=np.stack([_dense_ranks(score), target.ranks]),
        where=where,
    )


def _mean(of_runs: Sequence[Estimate], where: npt.NDArray[np.bool_], resamples: Resamples) -> Estimate:
    """Return the mean over runs, on the queries that any run has."""
    labeling, names, n = of_runs[0].labeling, of_runs[0].names, int(where.sum())
    kept = [estimate for estimate in of_runs if estimate.reason not in _OF_THE_QUALITY]
    if not kept:
        return _none(labeling, ALL, names, n, n, resamples, of_runs[0].reason)
    failed = [estimate for estimate in kept if estimate.reason and not estimate.margins]
    if not failed and all(estimate.reason for estimate in kept):
        failed = kept
    if failed:
        return _none(labeling, ALL, names, n, n, resamples, f"{failed[0].reason} on run {failed[0].run}")
    # A run with constant scores stays, with a concordance of .5 and a correlation of 0.
    silent = np.array([0.5, 0, 0, 0])[: len(names)]
    values = np.mean([silent if estimate.reason else estimate.values for estimate in kept], axis=0)
    draws = np.stack([np.where(estimate.silent, silent[:, None], estimate.draws) for estimate in kept])
    there = np.isfinite(draws)
    with np.errstate(invalid="ignore"):
        mean = np.where(there, draws, 0).sum(axis=0) / there.sum(axis=0)
    # The largest tau-b shows how much of a low one is due to ties.
    attainable = np.array([estimate.attainable for estimate in kept])
    known = attainable[np.isfinite(attainable)]
    each = np.full((len(kept), 2, len(where)), -1.0)
    parts: list[tuple[Margins, Ints]] = []
    for rows, estimate in zip(each, kept, strict=True):
        rows[:, estimate.where] = estimate.each
        parts += estimate.margins
    return Estimate(
        labeling=labeling,
        run=ALL,
        names=names,
        values=values,
        draws=mean,
        n=n,
        queries=n,
        attainable=float(known.mean()) if len(known) else float("nan"),
        units=resamples.units(where),
        margins=tuple(parts),
        each=each.reshape(-1, len(where)),
        where=np.arange(len(where)),
    )


def _dense_ranks(values: Floats) -> Floats:
    return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _within_query_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the mean of the within-query coefficients, over queries whose runs differ in quality."""
    every = (*names, POOLED)
    for labeling in range(len(panel.labelings)):
        where = np.flatnonzero(panel.beside(labeling).any(axis=0))
        total = len(where)
        if not total:
            yield _none(labeling, ALL, every, 0, 0, resamples, UNDEFINED_EVERYWHERE)
            continue
        scores, quality, present = panel.within(labeling)
        each = within_queries(scores, quality, names, present)
        # A query whose answers are all alike has no concordance, and says nothing about runs.
        differ = np.isfinite(each[0])
        if not differ.any():
            why = "the quality of all runs is the same on every query"
            yield _none(labeling, ALL, every, 0, total, resamples, why)
            continue
        each, there = each[:, differ], where[differ]
        weights = resamples.weights[there]
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = each @ weights / weights.sum(axis=0)
        attainable = np.nan
        if len(names) > 1:
            best = _sorted(scores[:, differ], quality[:, differ], None if present is None else present[:, differ])
            attainable = float(within_queries(*best[:2], names, best[2])[1].mean())
        pooled = pooled_correlation(scores, quality, resamples.weights[where])
        yield Estimate(
            labeling=labeling,
            run=ALL,
            names=every,
            values=np.append(each.mean(axis=1), pooled.value),
            draws=np.vstack([draws, pooled.draws]),
            n=len(there),
            queries=total,
            attainable=attainable,
            units=resamples.units(there),
            each=each,
            where=there,
            telling=resamples.units(where[pooled.telling]),
        )


def _sorted(scores: Floats, quality: Floats, there: Bools | None) -> tuple[Floats, Floats, Bools | None]:
    """Return both series ordered by value within each query, absent runs last."""
    if there is None:
        return np.sort(scores, axis=0), np.sort(quality, axis=0), None
    score, answers = (np.sort(np.where(there, values, np.inf), axis=0) for values in (scores, quality))
    present = np.isfinite(score)
    return over_present(score, present), over_present(answers, present), present


def _system_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the coefficients over runs of means over the queries that all runs have."""
    runs = len(panel.runs)
    top_heavy = runs >= TOP_HEAVY_RUNS
    every = (*names, "tau_ap") if top_heavy else names
    for labeling in range(len(panel.labelings)):
        where = panel.complete(labeling)
        n = int(where.sum())
        # A mean over queries from elsewhere counts as such a mean.
        enough = n >= (1 if panel.means_only else 2)
        if not enough or runs < 2:
            why = "fewer than 2 runs" if enough else "fewer than 2 queries with all runs"
            yield _none(labeling, ALL, every, runs, n, resamples, why if n else UNDEFINED_EVERYWHERE)
            continue
        scores, quality = panel.scores[labeling][:, where].mean(axis=1), panel.quality[:, where].mean(axis=1)
        values = over_runs(scores, quality, names)
        # Means that differ by the rounding of their sums are equal.
        if np.isnan(values[0]):
            why = _reason(np.round(scores, 10), np.round(quality, 10), "runs")
            yield _none(labeling, ALL, every, runs, n, resamples, why or "the means are constant")
            continue
        if top_heavy:
            values = np.append(values, tau_ap(scores, quality))
        attainable = float(over_runs(np.sort(scores), np.sort(quality))[1])
        undefined = _none(labeling, ALL, every, runs, 0 if panel.means_only else n, resamples, "")
        yield replace(undefined, values=values, attainable=attainable)
