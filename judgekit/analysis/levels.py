"""The three levels, never mixed: over queries, within queries over pairs of runs, over runs.

Each yields, for every labeling of a panel, the coefficients on the data and on every resample of the queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import COEFFICIENTS, Floats, Target
from judgekit.analysis.inputs import Panel
from judgekit.data.tables import ALL

__all__ = ["LEVELS", "MIN_RUNS", "Estimate", "query_level"]

LEVELS: Final = ("query", "within-query", "system")
MIN_RUNS: Final = 5
"""Below so many runs the system level is descriptive only."""


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
        reason: why they are undefined, "" where they are not.
    """

    labeling: int
    run: str
    names: tuple[str, ...]
    values: Floats
    draws: Floats
    n: int
    reason: str


def _reason(scores: Floats, quality: Floats, what: str) -> str:
    if len(quality) < 2:
        return f"fewer than 2 {what}"
    if (quality == quality[0]).all():
        return "the quality is constant"
    return "the scores are constant" if (scores == scores[0]).all() else ""


def query_level(panel: Panel, weights: Floats) -> Iterator[Estimate]:
    """Yield per labeling the coefficients over queries of each run and, with several runs, their mean over runs.

    Runs whose quality is constant leave the mean for all labelings. The mean is undefined where the scores of a
    labeling are constant on another run.
    """
    size, draws = len(COEFFICIENTS), weights.shape[1]
    per_run: dict[int, list[Estimate]] = {index: [] for index in range(len(panel.labelings))}
    for row, run in enumerate(panel.runs):
        targets: dict[bytes, tuple[Target, Target]] = {}
        for index in range(len(panel.labelings)):
            where = panel.defined(index)[row]
            score, quality = panel.scores[index, row, where], panel.quality[row, where]
            reason = _reason(score, quality, "queries")
            if reason:
                none = np.full((size, draws), np.nan)
                per_run[index].append(Estimate(index, run, COEFFICIENTS, none[:, 0], none, int(where.sum()), reason))
                continue
            key = where.tobytes()
            if key not in targets:
                targets[key] = Target(quality), Target(quality, weights[where])
            once, often = targets[key]
            values, resampled = once.coefficients(score)[:, 0], often.coefficients(score)
            per_run[index].append(Estimate(index, run, COEFFICIENTS, values, resampled, int(where.sum()), ""))
    for index, estimates in per_run.items():
        yield from estimates
        if len(panel.runs) > 1:
            yield _mean(estimates, int(panel.defined(index).any(axis=0).sum()))


def _mean(estimates: Sequence[Estimate], n: int) -> Estimate:
    """Return the mean over runs."""
    of_use = [e for e in estimates if e.reason not in ("the quality is constant", "fewer than 2 queries")]
    failed = next((e for e in of_use if e.reason), None)
    if failed is not None or not of_use:
        reason = f"{failed.reason} on run {failed.run}" if failed is not None else estimates[0].reason
        none = np.full_like(estimates[0].draws, np.nan)
        return Estimate(estimates[0].labeling, ALL, COEFFICIENTS, none[:, 0], none, n, reason)
    values = np.mean([e.values for e in of_use], axis=0)
    draws = np.mean([e.draws for e in of_use], axis=0)
    return Estimate(estimates[0].labeling, ALL, COEFFICIENTS, values, draws, n, "")
