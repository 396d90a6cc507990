"""Flags: what a reader has to know next to a number."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.leakage import AnsweredBy, kinship
from judgekit.analysis.levels import MIN_RUNS, POOLED, UNDEFINED_EVERYWHERE, Estimate
from judgekit.analysis.measures import known_measure
from judgekit.analysis.nesting import Nesting
from judgekit.data.tables import ALL
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.labelers.base import Needs

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
    "means_only": "only means over queries are known, so there is no interval",
    "few_differing": f"answers and scores differ on fewer than {MIN_TELLING} queries, so there is no interval",
    "constant_resamples": "constant on more than 5 % of the resamples, so there is no interval",
    "coverage": "fewer queries than in the simulations of intervals (docs/statistics.md)",
}
"""What each flag in the comparison table means."""


_NOTED: Final = ("labeling", "run", "measure")
_TWINS: Final = {"R": "Success", "Success": "R"}
_LEAST: Final = 25
"""Half of the queries of the smallest experiment whose intervals were simulated."""


class Flagger:
    """Knows what to flag.

    Args:
        inputs: the tables.
        by_construction: (labeling, model, metric) whose labels are the outcome at depth 1.
        needs: what each labeling needs, by name.
        answering: how each model's answers were obtained.
        nesting: which runs' lists are nested.
        notes: rows (labeling, run, measure) with counts ``ties`` and ``unjudged``, a ``reason`` why the measure is
            undefined, and of ``queries`` how many are ``not_applicable``, where known.
    """

    def __init__(
        self,
        inputs: Inputs,
        by_construction: Collection[tuple[str, str, str]],
        needs: Mapping[str, Needs],
        answering: Mapping[str, AnsweredBy],
        nesting: Nesting,
        notes: pd.DataFrame | None,
    ) -> None:
        self._inputs, self._by_construction, self._nesting = inputs, by_construction, nesting
        self._needs, self._answering = needs, answering
        self._notes: dict[tuple[str, ...], dict[Hashable, Any]] = {}
        if notes is not None:
            lacking = [key for key in _NOTED if key not in notes.columns]
            if lacking:
                raise DataError(f"the notes table lacks column {lacking[0]!r}")
            self._notes = {tuple(str(row[key]) for key in _NOTED): row for row in notes.to_dict("records")}

    def is_outcome(self, panel: Panel, labeling: str) -> bool:
        """Return whether a cell is the outcome by construction."""
        return panel.depth == 1 and (labeling, panel.model, panel.metric) in self._by_construction

    def cell(self, panel: Panel, estimate: Estimate, level: str) -> list[str]:
        """Return the flags of all coefficients of a cell."""
        index, name = estimate.labeling, panel.labelings[estimate.labeling]
        rows = [i for i, run in enumerate(panel.runs) if estimate.run in (ALL, run)]
        where = panel.defined(index)
        pairs = [(panel.scores[index, i, where[i]], panel.quality[i, where[i]]) for i in rows]
        pairs = [(score, quality) for score, quality in pairs if len(score)]
        distinct = [len(np.unique(score)) for score, _ in pairs if level == "query"]
        found = {
            "by_construction": self.is_outcome(panel, name),
            "equals_outcome": bool(pairs)
            and all(np.allclose(score, quality, rtol=1e-11, atol=0) for score, quality in pairs),
            "left_out": index not in panel.joint,
            "unmatched_depth": not panel.matched,
            "recall_is_success": self._is_success(panel, name, rows),
            "binary_binary": level == "query"
            and bool(pairs)
            and all(n <= 2 and len(np.unique(quality)) <= 2 for n, (_, quality) in zip(distinct, pairs, strict=True)),
            "few_values": level == "query" and 1 < min(distinct, default=0) <= FEW_VALUES,
            "ties_at_cutoff": any(note.get("ties", 0) > 0 for note in self._notes_on(panel, estimate)),
            "unjudged": any(note.get("unjudged", 0) > 0 for note in self._notes_on(panel, estimate)),
            # A single run's coefficient over its questions compares no lists.
            "nested": level != "query" and bool(self._nesting.under(panel.measure, panel.depth)),
            "few_runs": level == "system" and estimate.n < MIN_RUNS,
        }
        if name in self._needs and panel.model in self._answering:
            kin = kinship(self._needs[name], self._answering[panel.model])
            found |= {"same_model": kin == "same model", "same_family": kin == "same family"}
        return [flag for flag, there in found.items() if there]

    def suspicion(self, panel: Panel, estimate: Estimate, level: str) -> list[str]:
        """Return a warning where scores equal the quality and are not declared as the outcome."""
        flags = self.cell(panel, estimate, level)
        # Equal constants, which have no coefficient, are no sign of anything.
        if "equals_outcome" not in flags or "by_construction" in flags or estimate.reason:
            return []
        name = panel.labelings[estimate.labeling]
        how = "" if name in self._needs else "; leave it out"
        return [
            f"The scores of {name!r} ({panel.measure}) equal the quality on every query: if its labels were made from"
            f" these answers, that proves nothing{how}."
        ]

    def reason(self, panel: Panel, estimate: Estimate) -> str:
        """Return why a cell is undefined, with the metrics engine's own reason where there is no score at all."""
        if not estimate.reason.startswith(UNDEFINED_EVERYWHERE):
            return estimate.reason
        return next(filter(None, map(_reason, self._notes_on(panel, estimate))), estimate.reason)

    def _notes_on(self, panel: Panel, estimate: Estimate) -> Iterator[dict[Hashable, Any]]:
        """Yield what the metrics engine noted on the runs of a cell."""
        for run in panel.runs if estimate.run == ALL else (estimate.run,):
            yield self._notes.get((panel.labelings[estimate.labeling], run, panel.measure), {})

    def coefficient(self, panel: Panel, estimate: Estimate, level: str, name: str, method: str) -> list[str]:
        """Return the flags of one coefficient, given the method of its interval, "" if it has none."""
        if not estimate.reason and not method and (level != "system" or panel.means_only):
            units = estimate.telling if name == POOLED else estimate.units
            few = "few_differing" if units < MIN_TELLING else "constant_resamples"
            return ["means_only" if panel.means_only else few]
        if method and estimate.queries < _LEAST:
            return ["coverage"]
        return []

    def _is_success(self, panel: Panel, labeling: str, runs: list[int]) -> bool:
        """Return whether a recall or a success agrees with the other one on every query of some runs."""
        measure, scores = known_measure(panel.measure), self._inputs.scores
        other = str(replace(measure.spec, name=_TWINS.get(measure.name, ""))) if measure else ""
        if other not in scores:
            return False
        at = self._inputs.labelings.index(labeling), [self._inputs.runs.index(panel.runs[i]) for i in runs]
        gap = scores[panel.measure].values[at] - scores[other].values[at]
        there = np.isfinite(gap)
        return bool(there.any(axis=1).all() and not gap[there].any())


def _reason(note: dict[Hashable, Any]) -> str:
    """Return why a measure of a run under a labeling has no score at all; "" if no reason is known."""
    if note.get("queries") and note.get("not_applicable") == note.get("queries"):
        return "not applicable: the labeling does not apply to these queries"
    reason = note.get("reason")
    return reason if isinstance(reason, str) else ""
