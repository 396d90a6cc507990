"""The three levels, never mixed: over queries, within queries over pairs of runs, over runs.

Each yields, for every labeling of a panel, the coefficients on the data and on every resample of the queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Floats, Target, attainable_tau_b
from judgekit.analysis.follow import MIN_TELLING, pooled_correlation
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import Margins, margins, mean_concordance_interval, within_query_interval
from judgekit.analysis.rankings import over_runs, tau_ap, within_queries
from judgekit.analysis.resampling import Interval, interval
from judgekit.data.tables import ALL

Ints = npt.NDArray[np.intp]

LEVELS: Final = ("query", "within-query", "system")
MIN_RUNS: Final = 5
"""Below so many runs the system level is descriptive only."""
TOP_HEAVY_RUNS: Final = 10
"""From so many runs on the system level has tau_AP too: it cares most about the best runs."""

_KEPT: Final = 2**28
"""Bytes of resampled quality that are kept for the next measure."""
UNDEFINED_EVERYWHERE: Final = "no query has a score"
_OF_THE_QUALITY: Final = ("the quality is constant", "fewer than 2 queries")
"""Reasons why a run leaves the mean over runs, for all labelings; any other undoes the mean."""

POOLED: Final = "r_pooled"
"""The coefficient that within-query comparisons have beside the four: see `judgekit.analysis.follow`."""


@dataclass(frozen=True)
class Resamples:
    """The resample matrix and what it was made from.

    Attributes:
        weights: how often each query is in each resample, shape (Q, B).
        groups: the group of each query, shape (Q,), where queries of a group are resampled together; else None.
    """

    weights: Floats
    groups: Ints | None = None
    _targets: dict[tuple[bytes, bytes], Target] = field(default_factory=dict)

    def target(self, quality: Floats, where: npt.NDArray[np.bool_]) -> Target:
        """Return the quality of some queries, shape (Q,), as it is and on every resample."""
        key = (quality.tobytes(), where.tobytes())
        if key not in self._targets:
            most = _KEPT // max(8 * self.weights.size, 1)
            for old in [*self._targets][: max(len(self._targets) - most, 0)]:
                del self._targets[old]
            weights = self.weights if where.all() else self.weights[where]
            self._targets[key] = Target(quality[where], weights)
        return self._targets[key]

    def units(self, where: npt.NDArray[np.bool_] | Ints) -> int:
        """Return how many independent units some queries are: groups of queries, or queries.

        The queries are given by a mask of shape (Q,), or by position.
        """
        if self.groups is not None:
            return len(np.unique(self.groups[where]))
        return int(where.sum()) if where.dtype == np.bool_ else len(where)

    def groups_of(self, where: npt.NDArray[np.bool_] | Ints) -> Ints | None:
        """Return the groups of some queries, by a mask of shape (Q,) or by position; None where each stands alone."""
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
        queries: how many queries went in; 0 where there are only means over them, whose number nobody knows.
        attainable: the largest tau-b that the same values could reach, NaN where undefined.
        reason: why they are undefined, "" where they are not.
        units: how many independent units the queries are, see `Resamples.units`; 0 at system level.
        silent: query level: in which resamples the scores are constant and the quality is not, shape (B,).
        margins: query level: what the interval of the concordance is made of, by run.
        each: what the coefficients are made of, query by query: the ranks of score and quality (query level), or each
            coefficient within the query (within-query level), shape (K, n).
        where: the position of each of these queries, shape (n,).
        telling: within-query level: how many units the pooled correlation rests on.
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
        """Return one of its coefficients; NaN if it is not among them."""
        return float(self.values[self.names.index(name)]) if name in self.names else float("nan")

    def drawn(self, name: str) -> Floats:
        """Return one of its coefficients on every resample, shape (B,)."""
        return np.asarray(self.draws[self.names.index(name)])

    def interval(self, name: str, confidence: float, resamples: Resamples) -> Interval:
        """Return the interval of one of its coefficients, by methods chosen for their measured coverage.

        The system level has none: means of few runs carry the noise of the queries, and no interval that was tried
        covered .93 where runs are nearly equal.
        """
        units = self.telling if name == POOLED else self.units
        if units < MIN_TELLING:
            return Interval(np.nan, np.nan, "")
        if name == "concordance" and self.margins and not self.reason:
            return Interval(*mean_concordance_interval(self.margins, confidence, resamples.groups), "newcombe-5")
        if name == "concordance" and POOLED in self.names and not self.reason:
            groups = resamples.groups_of(self.where)
            return Interval(*within_query_interval(self.each[0], confidence, groups), "wilson-t")
        return interval(self.value(name), self.drawn(name), confidence, "fisher-t", units)


def units_apart(first: Estimate, second: Estimate, name: str, resamples: Resamples) -> int:
    """Return on how many units two estimates of a coefficient have something else to go by."""
    rows: slice | int = slice(None)
    if POOLED in first.names:
        # What differs between the pooled correlations does so between those of single queries.
        rows = first.names.index("r" if name == POOLED else name)
    size = 1 + max(int(each.where.max(initial=-1)) for each in (first, second))
    if not size:
        return 0
    values = np.full((2, *np.shape(first.each[rows])[:-1], size), np.nan)
    for side, estimate in zip(values, (first, second), strict=True):
        side[..., estimate.where] = estimate.each[rows]
    same = np.isclose(values[0], values[1], rtol=0, atol=1e-9, equal_nan=True).reshape(-1, size).all(axis=0)
    return resamples.units(np.flatnonzero(~same))


def estimates(
    panel: Panel, level: str, resamples: Resamples, names: tuple[str, ...] = COEFFICIENTS
) -> Iterator[Estimate]:
    """Return the estimates of all labelings of a panel at a level, one of `LEVELS`."""
    of_level = {"query": _query_level, "within-query": _within_query_level, "system": _system_level}[level]
    return of_level(panel, resamples, names)


def _none(index: int, run: str, names: tuple[str, ...], n: int, queries: int, draws: int, why: str) -> Estimate:
    nothing = np.full((len(names), draws), np.nan)
    return Estimate(index, run, names, nothing[:, 0], nothing, n, queries, reason=why)


def _reason(scores: Floats, quality: Floats, what: str) -> str:
    if len(quality) < 2:
        return f"fewer than 2 {what}" if len(quality) else UNDEFINED_EVERYWHERE
    if (quality == quality[0]).all():
        return "the quality is constant"
    return "the scores are constant" if (scores == scores[0]).all() else ""


def _query_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the coefficients over queries of each run and, with several runs, their mean over runs."""
    size = resamples.weights.shape[1]
    per_run: dict[int, list[Estimate]] = {index: [] for index in range(len(panel.labelings))}
    for row, run in enumerate(panel.runs):
        for index in range(len(panel.labelings)):
            where = panel.defined(index)[row]
            n = int(where.sum())
            score, quality = panel.scores[index, row, where], panel.quality[row, where]
            why = _reason(score, quality, "queries")
            silent = why == "the scores are constant"
            if why and not silent:
                per_run[index].append(_none(index, run, names, n, n, size, why))
                continue
            target = resamples.target(panel.quality[row], where)
            both = target.coefficients(score, names)
            best = attainable_tau_b(score, quality) if len(names) > 1 else np.nan
            constant = np.isnan(both[0, 1:]) & (target.untied[1:] > 0)
            positions = np.flatnonzero(where)
            per_run[index].append(
                Estimate(
                    labeling=index,
                    run=run,
                    names=names,
                    values=both[:, 0],
                    draws=both[:, 1:],
                    n=n,
                    queries=n,
                    attainable=best,
                    reason=why,
                    units=resamples.units(where),
                    silent=constant,
                    margins=((margins(score, quality), positions),),
                    each=np.stack([_dense_ranks(score), _dense_ranks(quality)]),
                    where=positions,
                )
            )
    for index, found in per_run.items():
        yield from found
        if len(panel.runs) > 1:
            yield _mean(found, np.asarray(panel.defined(index).any(axis=0)), resamples)


def _mean(found: Sequence[Estimate], where: npt.NDArray[np.bool_], resamples: Resamples) -> Estimate:
    """Return the mean over runs, over the queries that some run has."""
    # A run on which a labeling's scores are constant stays: they say nothing there, which is a concordance of .5 and a
    # correlation of 0.
    first, n = found[0], int(where.sum())
    of_use = [e for e in found if e.reason not in _OF_THE_QUALITY]
    failed = next((e for e in of_use if e.reason and not e.margins), None)
    if failed is not None or not of_use or all(e.reason for e in of_use):
        blamed = failed or (of_use or found)[0]
        why = f"{blamed.reason} on run {blamed.run}" if of_use else blamed.reason
        return _none(first.labeling, ALL, first.names, n, n, first.draws.shape[1], why)
    silent = np.array([0.5, 0, 0, 0])[: len(first.names)]
    values = [silent if e.reason else e.values for e in of_use]
    draws = np.stack([np.where(e.silent, silent[:, None], e.draws) for e in of_use])
    there = np.isfinite(draws)
    with np.errstate(invalid="ignore"):
        mean = np.where(there, draws, 0).sum(axis=0) / there.sum(axis=0)
    known = [e.attainable for e in of_use if np.isfinite(e.attainable)]
    best = float(np.mean(known)) if known else np.nan
    each = np.full((len(of_use), 2, len(where)), -1.0)
    for rows, estimate in zip(each, of_use, strict=True):
        rows[:, estimate.where] = estimate.each
    return Estimate(
        labeling=first.labeling,
        run=ALL,
        names=first.names,
        values=np.mean(values, axis=0),
        draws=mean,
        n=n,
        queries=n,
        attainable=best,
        units=resamples.units(where),
        margins=tuple(part for e in of_use for part in e.margins),
        each=each.reshape(-1, len(where)),
        where=np.arange(len(where)),
    )


def _dense_ranks(values: Floats) -> Floats:
    return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _within_query_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the mean over queries, of those on which some runs differ in quality, of each query's coefficients."""
    size, every = resamples.weights.shape[1], (*names, POOLED)
    for index in range(len(panel.labelings)):
        where = panel.complete(index)
        total = int(where.sum())
        scores, quality = panel.scores[index][:, where], panel.quality[:, where]
        if not total:
            yield _none(index, ALL, every, 0, 0, size, UNDEFINED_EVERYWHERE)
            continue
        each = within_queries(scores, quality, names)
        differ = np.isfinite(each[0])
        n = int(differ.sum())
        if not n:
            why = "the quality of all runs is the same on every query"
            yield _none(index, ALL, every, 0, total, size, why)
            continue
        there = where.copy()
        there[where] = differ
        weights = resamples.weights[there]
        counts = weights.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = each[:, differ] @ weights / counts
        best = np.sort(scores[:, differ], axis=0), np.sort(quality[:, differ], axis=0)
        attainable = float(within_queries(*best, names)[1].mean()) if len(names) > 1 else np.nan
        pooled = pooled_correlation(scores, quality, resamples.weights[where])
        telling = where.copy()
        telling[where] = pooled.telling
        values, draws = np.append(each[:, differ].mean(axis=1), pooled.value), np.vstack([draws, pooled.draws])
        yield Estimate(
            labeling=index,
            run=ALL,
            names=every,
            values=values,
            draws=draws,
            n=n,
            queries=total,
            attainable=attainable,
            units=resamples.units(there),
            each=each[:, differ],
            where=np.flatnonzero(there),
            telling=resamples.units(telling),
        )


def _system_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the coefficients over runs of means over the queries that all runs have."""
    runs, size = len(panel.runs), resamples.weights.shape[1]
    every = (*names, "tau_ap") if runs >= TOP_HEAVY_RUNS else names
    for index in range(len(panel.labelings)):
        where = panel.complete(index)
        n = int(where.sum())
        least = 1 if panel.means_only else 2
        if n < least or runs < 2:
            why = "fewer than 2 runs" if n >= least else "fewer than 2 queries with all runs"
            yield _none(index, ALL, every, runs, n, size, why if n else UNDEFINED_EVERYWHERE)
            continue
        means = np.stack([panel.scores[index][:, where].mean(axis=1), panel.quality[:, where].mean(axis=1)], axis=-1)
        values = over_runs(means[:, 0], means[:, 1], names)
        if np.isnan(values[0]):
            why = _reason(np.round(means[:, 0], 10), np.round(means[:, 1], 10), "runs")
            yield _none(index, ALL, every, runs, n, size, why or "the means are constant")
            continue
        if runs >= TOP_HEAVY_RUNS:
            values = np.append(values, tau_ap(means[:, 0], means[:, 1]))
        best = float(over_runs(np.sort(means[:, 0]), np.sort(means[:, 1]))[1])
        nothing = np.full((len(every), size), np.nan)
        yield Estimate(index, ALL, every, values, nothing, runs, 0 if panel.means_only else n, best)
