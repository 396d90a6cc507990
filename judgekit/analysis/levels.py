"""The three levels, never mixed: over queries, within queries over pairs of runs, over runs.

Each yields, for every labeling of a panel, the coefficients on the data and on every resample of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import COEFFICIENTS, Floats, Target, attainable_tau_b
from judgekit.analysis.inputs import Panel
from judgekit.analysis.rankings import TOP_HEAVY, over_runs, within_queries
from judgekit.analysis.shrinkage import shrunken_draws
from judgekit.data.tables import ALL

__all__ = ["LEVELS", "METHOD", "MIN_RUNS", "TOP_HEAVY_RUNS", "Estimate", "Resamples", "estimates", "paired_draws"]

LEVELS: Final = ("query", "within-query", "system")
MIN_RUNS: Final = 5
"""Below so many runs the system level is descriptive only."""
TOP_HEAVY_RUNS: Final = 10
"""From so many runs on the system level has tau_AP and rank-biased overlap too."""

UNDEFINED_EVERYWHERE: Final = "no query has a score"
_OF_THE_QUALITY: Final = ("the quality is constant", "fewer than 2 queries")
"""Reasons why a run leaves the mean over runs, for all labelings; any other undoes the mean."""

_BY_COEFFICIENT: Final = {"concordance": "arcsine-t", "tau_b": "fisher-t", "rho": "fisher-t", "r": "fisher-t"}
METHOD: Final = {
    "query": _BY_COEFFICIENT,
    "within-query": _BY_COEFFICIENT,
    "system": dict.fromkeys((*COEFFICIENTS, *TOP_HEAVY), "shrunken-percentile"),
}
"""The interval method per level and coefficient, chosen by measured coverage. Differences use ``t`` at the first two
levels and the percentiles of paired shrunken draws at the last."""


@dataclass(frozen=True)
class Resamples:
    """The resample matrix and what it was made from.

    Attributes:
        weights: how often each query is in each resample, shape (Q, B).
        seed: of the matrix, and of the draws of covariances at system level.
    """

    weights: Floats
    seed: int

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
    means: tuple[Floats, Floats] | None = field(default=None, repr=False)


def estimates(panel: Panel, level: str, resamples: Resamples) -> Iterator[Estimate]:
    """Yield the estimates of all labelings of a panel at a level."""
    by_level: dict[str, Callable[[Panel, Resamples], Iterator[Estimate]]] = {
        "query": _query_level,
        "within-query": _within_query_level,
        "system": _system_level,
    }
    return by_level[level](panel, resamples)


def paired_draws(first: Estimate, second: Estimate, resamples: Resamples) -> Floats:
    """Return draws of the differences between two labelings of a panel at one level, shape (C, B)."""
    if first.means is None or second.means is None:
        return np.asarray(first.draws - second.draws)
    (one, moved), (other, shifted) = first.means, second.means
    means = np.concatenate([one[:, :1], other], axis=1)
    deviations = np.concatenate([moved[:, :, :1], shifted], axis=2)
    draws = shrunken_draws(means, deviations, min(first.queries, second.queries), resamples.rng())
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


def _query_level(panel: Panel, resamples: Resamples) -> Iterator[Estimate]:
    """Yield the coefficients over queries of each run and, with several runs, their mean over runs.

    Runs whose quality is constant leave the mean for all labelings. The mean is undefined where the scores of a
    labeling are constant on another run.
    """
    weights = resamples.weights
    per_run: dict[int, list[Estimate]] = {index: [] for index in range(len(panel.labelings))}
    for row, run in enumerate(panel.runs):
        targets: dict[bytes, tuple[Target, Target]] = {}
        for index in range(len(panel.labelings)):
            where = panel.defined(index)[row]
            n = int(where.sum())
            score, quality = panel.scores[index, row, where], panel.quality[row, where]
            why = _reason(score, quality, "queries")
            if why:
                per_run[index].append(_none(index, run, COEFFICIENTS, n, n, weights.shape[1], why))
                continue
            key = where.tobytes()
            if key not in targets:
                targets[key] = Target(quality), Target(quality, weights if where.all() else weights[where])
            once, often = targets[key]
            values, draws = once.coefficients(score)[:, 0], often.coefficients(score)
            best = attainable_tau_b(score, quality)
            per_run[index].append(Estimate(index, run, COEFFICIENTS, values, draws, n, n, best))
    for index, found in per_run.items():
        yield from found
        if len(panel.runs) > 1:
            yield _mean(found, int(panel.defined(index).any(axis=0).sum()))


def _mean(found: Sequence[Estimate], n: int) -> Estimate:
    """Return the mean over runs."""
    first = found[0]
    of_use = [e for e in found if e.reason not in _OF_THE_QUALITY]
    failed = next((e for e in of_use if e.reason), None)
    if failed is not None or not of_use:
        why = f"{failed.reason} on run {failed.run}" if failed is not None else first.reason
        return _none(first.labeling, ALL, COEFFICIENTS, n, n, first.draws.shape[1], why)
    return Estimate(
        first.labeling,
        ALL,
        COEFFICIENTS,
        np.mean([e.values for e in of_use], axis=0),
        np.mean([e.draws for e in of_use], axis=0),
        n,
        n,
        float(np.mean([e.attainable for e in of_use])),
    )


def _complete(panel: Panel, index: int) -> npt.NDArray[np.bool_]:
    """Return on which queries every run has a score and quality, shape (Q,)."""
    return np.asarray(panel.defined(index).all(axis=0))


def _within_query_level(panel: Panel, resamples: Resamples) -> Iterator[Estimate]:
    """Yield the mean over queries, of those on which some runs differ in quality, of each query's coefficients."""
    size = resamples.weights.shape[1]
    for index in range(len(panel.labelings)):
        where = _complete(panel, index)
        total = int(where.sum())
        scores, quality = panel.scores[index][:, where], panel.quality[:, where]
        if not total:
            yield _none(index, ALL, COEFFICIENTS, 0, 0, size, UNDEFINED_EVERYWHERE)
            continue
        each = within_queries(scores, quality)
        differ = np.isfinite(each[0])
        n = int(differ.sum())
        if not n:
            why = "the quality of all runs is the same on every query"
            yield _none(index, ALL, COEFFICIENTS, 0, total, size, why)
            continue
        weights = resamples.weights[where][differ]
        counts = weights.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = each[:, differ] @ weights / counts
        best = np.sort(scores[:, differ], axis=0), np.sort(quality[:, differ], axis=0)
        attainable = float(within_queries(*best)[1].mean())
        yield Estimate(index, ALL, COEFFICIENTS, each[:, differ].mean(axis=1), draws, n, total, attainable)


def _system_level(panel: Panel, resamples: Resamples) -> Iterator[Estimate]:
    """Yield the coefficients over runs of means over the queries that all runs have."""
    runs, size = len(panel.runs), resamples.weights.shape[1]
    names = (*COEFFICIENTS, *TOP_HEAVY) if runs >= TOP_HEAVY_RUNS else COEFFICIENTS
    for index in range(len(panel.labelings)):
        where = _complete(panel, index)
        n = int(where.sum())
        if n < (1 if panel.means_only else 2) or runs < 2:
            why = (
                "fewer than 2 runs"
                if n >= 2 or (n and panel.means_only)
                else "fewer than 2 queries with all runs"
                if n
                else UNDEFINED_EVERYWHERE
            )
            yield _none(index, ALL, names, runs, n, size, why)
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
        moved = shrunken_draws(means, deviations, n, resamples.rng())
        draws = over_runs(moved[:, :, 0], moved[:, :, 1], names)
        yield Estimate(index, ALL, names, values, draws, runs, n, best, means=(means, deviations))
