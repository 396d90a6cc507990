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
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import Margins, margins, mean_concordance_interval, within_query_interval
from judgekit.analysis.rankings import TOP_HEAVY, over_runs, within_queries
from judgekit.analysis.resampling import Interval, interval
from judgekit.analysis.system_bootstrap import shrunken_draws
from judgekit.data.tables import ALL

__all__ = ["LEVELS", "METHOD", "MIN_RUNS", "TOP_HEAVY_RUNS", "Estimate", "Resamples", "estimates", "paired_draws"]

Ints = npt.NDArray[np.intp]

LEVELS: Final = ("query", "within-query", "system")
MIN_RUNS: Final = 5
"""Below so many runs the system level is descriptive only."""
TOP_HEAVY_RUNS: Final = 10
"""From so many runs on the system level has tau_AP and rank-biased overlap too."""

_KEPT: Final = 2**28
"""Bytes of resampled quality that are kept for the next measure."""
UNDEFINED_EVERYWHERE: Final = "no query has a score"
_OF_THE_QUALITY: Final = ("the quality is constant", "fewer than 2 queries")
"""Reasons why a run leaves the mean over runs, for all labelings; any other undoes the mean."""

_CORRELATIONS: Final = {"tau_b": "fisher-t", "rho": "fisher-t", "r": "fisher-t"}
METHOD: Final = {
    "query": {"concordance": "newcombe-5", **_CORRELATIONS},
    "within-query": {"concordance": "wilson-t", **_CORRELATIONS},
    "system": dict.fromkeys((*COEFFICIENTS, *TOP_HEAVY), "shrunken-percentile"),
}
"""The interval method per level and coefficient, chosen by measured coverage: those of `judgekit.analysis.intervals`
for the concordance over and within queries, else those of `judgekit.analysis.resampling`. Differences use ``t`` at the
first two levels and the percentiles of paired shrunken draws at the last."""


@dataclass(frozen=True)
class Resamples:
    """The resample matrix and what it was made from.

    Attributes:
        weights: how often each query is in each resample, shape (Q, B).
        seed: of the matrix, and of the draws of covariances at system level.
        groups: the group of each query, shape (Q,), where queries of a group are resampled together; else None.
    """

    weights: Floats
    seed: int
    groups: Ints | None = None
    _targets: dict[tuple[bytes, bytes], Target] = field(default_factory=dict, repr=False, compare=False)

    def target(self, quality: Floats, where: npt.NDArray[np.bool_]) -> Target:
        """Return the quality of some queries, shape (Q,), as it is and on every resample.

        What was asked for last is kept: many measures are held against the same answers.
        """
        key = (quality.tobytes(), where.tobytes())
        if key not in self._targets:
            most = _KEPT // max(8 * self.weights.size, 1)
            for old in [*self._targets][: max(len(self._targets) - most, 0)]:
                del self._targets[old]
            weights = self.weights if where.all() else self.weights[where]
            self._targets[key] = Target(quality[where], weights, once=True)
        return self._targets[key]

    def units(self, where: npt.NDArray[np.bool_]) -> int:
        """Return how many independent units some queries, shape (Q,), are: groups of queries, or queries."""
        return int(where.sum()) if self.groups is None else len(np.unique(self.groups[where]))

    def groups_of(self, where: npt.NDArray[np.bool_] | Ints) -> Ints | None:
        """Return the groups of some queries, by a mask of shape (Q,) or by position; None where each stands alone."""
        return None if self.groups is None else self.groups[where]

    def rng(self) -> np.random.Generator:
        """Return the generator for further draws, the same at every call."""
        return np.random.default_rng([self.seed, 1])


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
        units: how many independent units the queries are, see `Resamples.units`.
        silent: query level: in which resamples the scores are constant and the quality is not, shape (B,).
        margins: query level: what the interval of the concordance is made of, by run.
        each: within-query level: each query's concordance, shape (n,), and its position, shape (n,).
        means: system level: mean score and mean quality per run, shape (R, 2), and their deviations in the
            resamples, shape (B, R, 2).
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
    silent: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, np.bool_), repr=False)
    margins: tuple[tuple[Margins, Ints], ...] = field(default=(), repr=False)
    each: tuple[Floats, Ints] | None = field(default=None, repr=False)
    means: tuple[Floats, Floats] | None = field(default=None, repr=False)

    def value(self, name: str) -> float:
        """Return one of its coefficients; NaN if it is not among them."""
        return float(self.values[self.names.index(name)]) if name in self.names else float("nan")

    def interval(self, name: str, level: str, confidence: float, resamples: Resamples) -> Interval:
        """Return the interval of one of its coefficients."""
        index = self.names.index(name)
        if name == "concordance" and not self.reason and (self.margins or self.each):
            if self.each is None:
                ends = mean_concordance_interval(self.margins, confidence, resamples.groups)
            else:
                values, where = self.each
                ends = within_query_interval(values, confidence, resamples.groups_of(where))
            return Interval(*ends, METHOD[level][name], 0.0)
        return interval(float(self.values[index]), self.draws[index], confidence, METHOD[level][name], self.units)


def estimates(
    panel: Panel, level: str, resamples: Resamples, names: tuple[str, ...] = COEFFICIENTS
) -> Iterator[Estimate]:
    """Return the estimates of all labelings of a panel at a level, one of `LEVELS`.

    ``names`` are the first so many of `COEFFICIENTS`; at system level there are more where there are runs enough.
    """
    of_level = {"query": _query_level, "within-query": _within_query_level, "system": _system_level}[level]
    return of_level(panel, resamples, names)


def paired_draws(first: Estimate, second: Estimate, resamples: Resamples) -> Floats:
    """Return draws of the differences between two labelings of a panel at one level, shape (C, B)."""
    if first.means is None or second.means is None:
        return np.asarray(first.draws - second.draws)
    (one, moved), (other, shifted) = first.means, second.means
    means = np.concatenate([one[:, :1], other], axis=1)
    deviations = np.concatenate([moved[:, :, :1], shifted], axis=2)
    draws = shrunken_draws(means, deviations, min(first.units, second.units), resamples.rng())
    quality = draws[:, :, 2]
    return np.asarray(over_runs(draws[:, :, 0], quality, first.names) - over_runs(draws[:, :, 1], quality, first.names))


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
    """Yield the coefficients over queries of each run and, with several runs, their mean over runs.

    Runs whose quality is constant leave the mean for all labelings. The mean is undefined where the scores of a
    labeling are constant on another run.
    """
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
            parts = ((margins(score, quality), np.flatnonzero(where)),)
            known = (both[:, 0], both[:, 1:], n, n, best, why, resamples.units(where), constant, parts)
            per_run[index].append(Estimate(index, run, names, *known))
    for index, found in per_run.items():
        yield from found
        if len(panel.runs) > 1:
            yield _mean(found, np.asarray(panel.defined(index).any(axis=0)), resamples)


def _mean(found: Sequence[Estimate], where: npt.NDArray[np.bool_], resamples: Resamples) -> Estimate:
    """Return the mean over runs, over the queries that some run has.

    A run whose quality is constant, or in a resample is, has nothing to predict and leaves the mean, for all
    labelings alike. A run on which a labeling's scores are constant stays: they say nothing there, which is a
    concordance of .5 and a correlation of 0.
    """
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
    parts = tuple(part for e in of_use for part in e.margins)
    mean_value, units = np.mean(values, axis=0), resamples.units(where)
    return Estimate(first.labeling, ALL, first.names, mean_value, mean, n, n, best, units=units, margins=parts)


def _within_query_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the mean over queries, of those on which some runs differ in quality, of each query's coefficients."""
    size = resamples.weights.shape[1]
    for index in range(len(panel.labelings)):
        where = panel.complete(index)
        total = int(where.sum())
        scores, quality = panel.scores[index][:, where], panel.quality[:, where]
        if not total:
            yield _none(index, ALL, names, 0, 0, size, UNDEFINED_EVERYWHERE)
            continue
        each = within_queries(scores, quality, names)
        differ = np.isfinite(each[0])
        n = int(differ.sum())
        if not n:
            why = "the quality of all runs is the same on every query"
            yield _none(index, ALL, names, 0, total, size, why)
            continue
        there = where.copy()
        there[where] = differ
        weights = resamples.weights[there]
        counts = weights.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = each[:, differ] @ weights / counts
        best = np.sort(scores[:, differ], axis=0), np.sort(quality[:, differ], axis=0)
        attainable = float(within_queries(*best, names)[1].mean()) if len(names) > 1 else np.nan
        known = (each[:, differ].mean(axis=1), draws, n, total, attainable)
        alone = each[0, differ], np.flatnonzero(there)
        yield Estimate(index, ALL, names, *known, units=resamples.units(there), each=alone)


def _system_level(panel: Panel, resamples: Resamples, names: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the coefficients over runs of means over the queries that all runs have."""
    runs, size = len(panel.runs), resamples.weights.shape[1]
    names = (*names, *TOP_HEAVY) if runs >= TOP_HEAVY_RUNS else names
    for index in range(len(panel.labelings)):
        where = panel.complete(index)
        n = int(where.sum())
        least = 1 if panel.means_only else 2
        if n < least or runs < 2:
            why = "fewer than 2 runs" if n >= least else "fewer than 2 queries with all runs"
            yield _none(index, ALL, names, runs, n, size, why if n else UNDEFINED_EVERYWHERE)
            continue
        weights = resamples.weights[where]
        both = np.stack([panel.scores[index][:, where], panel.quality[:, where]], axis=-1)
        means = both.mean(axis=1)
        values = over_runs(means[:, 0], means[:, 1], names)
        if np.isnan(values[0]):
            why = _reason(np.round(means[:, 0], 10), np.round(means[:, 1], 10), "runs")
            yield _none(index, ALL, names, runs, n, size, why or "the means are constant")
            continue
        best = float(over_runs(np.sort(means[:, 0]), np.sort(means[:, 1]))[1])
        if panel.means_only:
            yield Estimate(index, ALL, names, values, np.full((len(names), size), np.nan), runs, 0, best)
            continue
        # A resample may hold no query that all runs have: it has no means, and no draw.
        with np.errstate(invalid="ignore"):
            resampled = np.einsum("qb,rqv->brv", weights, both, optimize=True) / weights.sum(axis=0)[:, None, None]
        deviations = resampled - means
        moved = shrunken_draws(means, deviations, resamples.units(where), resamples.rng())
        draws = over_runs(moved[:, :, 0], moved[:, :, 1], names)
        units = resamples.units(where)
        yield Estimate(index, ALL, names, values, draws, runs, n, best, units=units, means=(means, deviations))
