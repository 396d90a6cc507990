"""Flags: what a reader has to know about a number."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from judgekit.analysis.background import Background
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.leakage import kinship
from judgekit.analysis.levels import MIN_RUNS, POOLED, UNDEFINED_EVERYWHERE, Estimate
from judgekit.analysis.measures import known_measure
from judgekit.analysis.nesting import Nesting
from judgekit.data.runs import fused
from judgekit.data.tables import ALL
from judgekit.errors import DataError

FEW_VALUES: Final = 3

FLAGS: Final[dict[str, str]] = {
    "by_construction": "the labels are the outcome itself at depth 1 (same LLM, prompt, metric); no decision uses it",
    "equals_outcome": "the scores equal the quality on every query",
    "left_out": "would leave less than half of the cases to compare: shown apart, on its own queries",
    "unmatched_depth": "the measure's cutoff is not the number of documents that the answers were made from",
    "recall_is_success": "recall equals success on every query: the labels know one relevant document or one run only",
    "binary_binary": "scores and quality are both binary: tau-b, rho and r are one number, without ranking information",
    "few_values": f"the scores take {FEW_VALUES} values or fewer on some run, so many pairs are tied",
    "ties_at_cutoff": "some queries have documents of equal score on both sides of the cutoff",
    "unjudged": "some of the documents looked at were never judged and count as not relevant",
    "nested": "one run's lists contain another's on more than a tenth of the queries: their lengths decide the measure",
    "few_runs": f"fewer than {MIN_RUNS} runs: descriptive only, no decision",
    "same_model": "the labeling asks the model whose answers it predicts",
    "same_family": "the labeling asks a model of the answering model's family",
    "no_reference": "the labeling takes the model's own answers in the place of reference answers",
    "own_list": "the labels hold the quality of the answers from these very lists; no decision uses them",
    "means_only": "only means over queries are known, so there is no interval",
    "few_differing": f"answers and scores differ on fewer than {MIN_TELLING} queries, so there is no interval",
    "constant_resamples": "constant on more than 5 % of the resamples, so there is no interval",
    "coverage": "fewer queries than in the simulations of intervals (docs/statistics.md)",
}
"""What each flag in the comparison table means."""


_NOTED: Final = ("labeling", "run", "measure")
_TWINS: Final = {"R": "Success", "Success": "R"}
_OWN: Final = 0.1
"""From this share of equal lists on, a run counts as the source of the labels."""
_LEAST: Final = 25
"""Half of the queries of the smallest simulated experiment."""


class Flagger:
    """Finds the flags of a comparison's numbers.

    Args:
        inputs: the tables.
        background: who answered, what labelings need, and what the metrics engine noted.
        by_construction: (labeling, model, metric) whose labels are the outcome at depth 1.
    """

    def __init__(
        self, inputs: Inputs, background: Background, by_construction: Collection[tuple[str, str, str]]
    ) -> None:
        self._inputs, self._background, self._by_construction = inputs, background, by_construction
        self._nesting = Nesting(background.lists, inputs.queries)
        self._own_lists = cache(self._shares_of_own_lists)
        self._notes: dict[tuple[str, ...], dict[Hashable, Any]] = {}
        if background.notes is None:
            return
        lacking = [key for key in _NOTED if key not in background.notes.columns]
        if lacking:
            raise DataError(f"the notes table lacks column {lacking[0]!r}")
        for row in background.notes.to_dict("records"):
            self._notes[tuple(str(row[key]) for key in _NOTED)] = row

    def is_outcome(self, panel: Panel, labeling: str) -> bool:
        """Return whether a cell is the outcome by construction."""
        return panel.depth == 1 and (labeling, panel.model, panel.metric) in self._by_construction

    def own_lists(self, panel: Panel, labeling: str) -> list[str]:
        """Return the runs whose lists the labels were made from, so that the labels hold their answers' quality."""
        need = self._background.needs.get(labeling)
        if need is None or need.outcome_list is None or need.outcome_list != panel.depth:
            return []
        shares = self._own_lists(panel.depth)
        return [run for run in panel.runs if shares.get(run, 0.0) > _OWN]

    def _shares_of_own_lists(self, depth: int) -> dict[str, float]:
        """Return the share of questions on which each run's list equals that of all runs together."""
        runs = self._background.lists
        same = dict.fromkeys((run.name for run in runs), 0)
        for query_id in self._inputs.queries:
            together = fused(runs, query_id, self._background.pool_depth or depth)[:depth]
            for run in runs:
                same[run.name] += list(run.top(query_id, depth)) == together
        return {name: count / max(len(self._inputs.queries), 1) for name, count in same.items()}

    def cell(self, panel: Panel, estimate: Estimate, level: str) -> list[str]:
        """Return the flags of all coefficients of a cell."""
        labeling = panel.labelings[estimate.labeling]
        rows = [row for row, run in enumerate(panel.runs) if estimate.run in (ALL, run)]
        flags = _of_values(panel, estimate.labeling, rows, level)
        if self.is_outcome(panel, labeling):
            flags.append("by_construction")
        if any(run in self.own_lists(panel, labeling) for run in (panel.runs[row] for row in rows)):
            flags.append("own_list")
        if estimate.labeling not in panel.joint:
            flags.append("left_out")
        if not panel.matched:
            flags.append("unmatched_depth")
        if self._is_success(panel, labeling, rows):
            flags.append("recall_is_success")
        for note in self._notes_on(panel, estimate):
            if note.get("ties", 0) > 0:
                flags.append("ties_at_cutoff")
            if note.get("unjudged", 0) > 0:
                flags.append("unjudged")
        # A single run's coefficient over its questions compares no lists.
        if level != "query" and self._nesting.under(panel.measure, panel.depth):
            flags.append("nested")
        if level == "system" and estimate.n < MIN_RUNS:
            flags.append("few_runs")
        need, answering = self._background.needs.get(labeling), self._background.answering.get(panel.model)
        if need is not None and need.own_answers:
            flags.append("no_reference")
        # A user's own table does not say who answered.
        if need is not None and answering is not None:
            flags.append(kinship(need, answering).replace(" ", "_"))
        return [flag for flag in FLAGS if flag in flags]

    def suspicion(self, panel: Panel, estimate: Estimate, level: str) -> Iterator[str]:
        """Yield a warning if scores equal the quality without being declared as the outcome."""
        flags = self.cell(panel, estimate, level)
        # Equal constants have no coefficient and mean nothing.
        if "equals_outcome" in flags and "by_construction" not in flags and not estimate.reason:
            yield (
                f"The scores of {panel.labelings[estimate.labeling]!r} ({panel.measure}) equal the quality on every"
                " query: if its labels were made from these answers, that proves nothing; leave it out."
            )

    def reason(self, panel: Panel, estimate: Estimate) -> str:
        """Return why a cell is undefined; without any score, the reason of the metrics engine."""
        if estimate.reason.startswith(UNDEFINED_EVERYWHERE):
            for note in self._notes_on(panel, estimate):
                reason = _reason(note)
                if reason:
                    return reason
        return estimate.reason

    def _notes_on(self, panel: Panel, estimate: Estimate) -> Iterator[dict[Hashable, Any]]:
        """Yield the metrics engine's notes on the runs of a cell."""
        labeling = panel.labelings[estimate.labeling]
        for run in panel.runs:
            if estimate.run in (ALL, run):
                yield self._notes.get((labeling, run, panel.measure), {})

    def coefficient(self, panel: Panel, estimate: Estimate, level: str, name: str, method: str) -> list[str]:
        """Return the flags of one coefficient, given the method of its interval, "" if it has none."""
        # Coverage was simulated from 50 questions on.
        if method:
            return ["coverage"] if estimate.queries < _LEAST else []
        if estimate.reason:
            return []
        if panel.means_only:
            return ["means_only"]
        if level == "system":
            return []
        units = estimate.telling if name == POOLED else estimate.units
        return ["few_differing" if units < MIN_TELLING else "constant_resamples"]

    def _is_success(self, panel: Panel, labeling: str, rows: list[int]) -> bool:
        """Return whether recall and success agree on every query of some runs."""
        measure = known_measure(panel.measure)
        if measure is None or measure.name not in _TWINS:
            return False
        other = str(replace(measure.spec, name=_TWINS[measure.name]))
        if other not in self._inputs.scores:
            return False
        runs = [self._inputs.runs.index(panel.runs[row]) for row in rows]
        at = self._inputs.labelings.index(labeling), runs
        gap = self._inputs.scores[panel.measure].values[at] - self._inputs.scores[other].values[at]
        there = np.isfinite(gap)
        return bool(there.any(axis=1).all() and not gap[there].any())


def _of_values(panel: Panel, labeling: int, rows: list[int], level: str) -> list[str]:
    """Return the flags that follow from the values of scores and quality, run by run."""
    equal, binary = True, True
    distinct: list[int] = []
    defined = panel.defined(labeling)
    for row in rows:
        where = defined[row]
        if not where.any():
            continue
        score, quality = panel.scores[labeling, row, where], panel.quality[row, where]
        values = len(np.unique(score)) if level == "query" else 0  # other levels need no more than that there are some
        distinct.append(values)
        equal = equal and bool((np.abs(score - quality) <= 1e-11 * np.abs(quality)).all())
        binary = binary and values <= 2 and len(np.unique(quality)) <= 2
    flags: list[str] = []
    if equal and distinct:
        flags.append("equals_outcome")
    # Levels that compare runs always look at few values at a time.
    if level != "query" or not distinct:
        return flags
    if binary:
        flags.append("binary_binary")
    if 1 < min(distinct) <= FEW_VALUES:
        flags.append("few_values")
    return flags


def _reason(note: dict[Hashable, Any]) -> str:
    """Return why a measure has no score for a run under a labeling; "" if unknown."""
    if note.get("queries") and note.get("not_applicable") == note.get("queries"):
        return "not applicable: the labeling does not apply to these queries"
    reason = note.get("reason")
    return reason if isinstance(reason, str) else ""
