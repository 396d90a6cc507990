"""Works a comparison out panel by panel: rows, details and differences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.background import Background
from judgekit.analysis.differences import DIFFERENCE_COLUMNS, compared
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Panel, PanelKey
from judgekit.analysis.levels import LEVELS, Estimate, Resamples, estimates, on_common_cases
from judgekit.analysis.primary import Primary
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.wording import some_of
from judgekit.data.tables import COMPARISON
from judgekit.progress import Event, Progress, silent
from judgekit.rules import Rules

_BEHIND: Final = ("queries", "lacking", "tau_b_max")
_DETAILS: Final = ["labeling", "measure", "run", "level", "depth", "quality_metric", "model", "n", *_BEHIND]


@dataclass
class Collector:
    """Collects the rows panel by panel; draws are dropped with their panel, except for the primary cell's.

    Attributes:
        inputs: the tables.
        cell: the primary cell.
        rules, background: of the comparison.
        by_construction: (labeling, model, metric) whose labels are the outcome at depth 1.
        groups: the group of each grouped query; None if every query stands alone.
        pairs: whether to compare labelings with each other, too.
    """

    inputs: Inputs
    cell: Primary
    rules: Rules
    background: Background
    by_construction: Collection[tuple[str, str, str]]
    groups: Mapping[str, str] | None = None
    pairs: bool = True
    rows: list[tuple[object, ...]] = field(default_factory=list)
    differences: list[dict[str, object]] = field(default_factory=list)
    left_out: dict[str, dict[str, float]] = field(default_factory=dict)
    primary: tuple[Panel, dict[str, list[Estimate]]] = field(init=False)

    def __post_init__(self) -> None:
        """Resample the queries, once for all panels."""
        inputs, rules, groups, distinct = self.inputs, self.rules, None, None
        units = inputs.rows.units(inputs.queries, self.groups)
        if units is not None:
            groups = np.unique(units, return_inverse=True)[1]
        if inputs.rows.uneven:
            distinct = inputs.rows.distinct(inputs.queries)
        matrix = resample_matrix(len(inputs.queries), rules.resamples, rules.seed, groups)
        self.resamples = Resamples(matrix, groups, distinct)
        self.flagger = Flagger(inputs, self.background, self.by_construction)
        self.controls = self.background.controls
        self.levels: Sequence[str] = LEVELS
        if inputs.means_only:
            self.levels = ["system"]
        elif len(inputs.runs) < 2:
            self.levels = ["query"]

    def work_out(self, plan: Sequence[PanelKey], progress: Progress = silent) -> None:
        """Work out all panels of a plan."""
        # Measures compared with the same answers come together, since they share the resampled quality.
        for done, key in enumerate(sorted(plan, key=lambda key: key[1:])):
            progress(Event("compare", done, len(plan)))
            self.panel(self.inputs.panel(*key))
        progress(Event("compare", len(plan), len(plan)))

    def omissions(self) -> Iterator[str]:
        """Yield what is left out: queries of the primary cell, and labelings of the comparison of measures."""
        yield from self.inputs.uncompared(self.primary[0])
        for labeling, shares in sorted(self.left_out.items()):
            if len(shares) == len(self.inputs.measures) and min(shares.values()) == 1:
                yield f"{labeling!r} has no values and is excluded from the comparison."
            else:
                yield f"{labeling!r} lacks values for {_listed(shares)} and is excluded from their joint comparison."

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the rows of all panels as a table, by measure, and the details of each cell, in the same order."""
        # Panels with the same answers are worked out together.
        rows = sorted(self.rows, key=lambda row: self.inputs.measures.index(str(row[1])))
        whole = pd.DataFrame(rows, columns=[*COMPARISON.columns, *_BEHIND])
        details = whole[whole["coefficient"] == "concordance"][_DETAILS].reset_index(drop=True)
        return COMPARISON.check(whole[list(COMPARISON.columns)]), details

    def panel(self, panel: Panel) -> None:
        """Work out one panel at all levels."""
        cell = self.cell
        same_answers = (panel.metric, panel.model, panel.depth) == (cell.metric, cell.model, cell.depth)
        is_primary = same_answers and panel.measure == cell.measure
        by_level: dict[str, list[Estimate]] = {}
        if is_primary:
            self.primary = panel, by_level
        for index, labeling in enumerate(panel.labelings):
            if index not in panel.joint and labeling not in self.controls:
                shares = self.left_out.setdefault(labeling, {})
                shares[panel.measure] = max(shares.get(panel.measure, 0.0), float(panel.cost[index]))
        for level in self.levels:
            by_level[level] = []
            jointly: list[Estimate] = []
            for estimate in estimates(panel, level, self.resamples):
                is_control = panel.labelings[estimate.labeling] in self.controls
                joint = estimate.labeling in panel.joint
                # A control is scored by the primary measure only.
                if is_control and not joint:
                    continue
                explained = replace(estimate, reason=self.flagger.reason(panel, estimate))
                by_level[level].append(explained)
                if is_control:
                    continue
                self._estimate(panel, explained, level)
                if joint:
                    jointly.append(explained)
                if is_primary and level == cell.level and estimate.run == cell.run:
                    self.inputs.warnings += self.flagger.suspicion(panel, explained, level)
            if self.pairs and same_answers and not panel.means_only:
                keep = cell.run if is_primary else ""
                self._differences(panel, level, self._pairs(panel, level, jointly, keep))

    def _estimate(self, panel: Panel, estimate: Estimate, level: str) -> None:
        """Add a row per coefficient, with the columns of `COMPARISON`, and its details."""
        labeling = panel.labelings[estimate.labeling]
        common = self.flagger.cell(panel, estimate, level)
        key = (labeling, panel.measure, estimate.run, level, panel.depth, panel.metric, panel.model)
        behind = (estimate.queries, float(panel.cost[estimate.labeling]), estimate.attainable)
        for name in estimate.names:
            ends = estimate.interval(name, self.rules.confidence, self.resamples)
            own = self.flagger.coefficient(panel, estimate, level, name, ends.method)
            flags = ";".join([*common, *own])
            self.rows.append((*key, name, estimate.value(name), *ends, estimate.n, estimate.reason, flags, *behind))

    def _pairs(
        self, panel: Panel, level: str, jointly: Sequence[Estimate], keep: str
    ) -> Iterator[tuple[Estimate, Estimate]]:
        """Yield every two estimates of a run on the cases that both labelings have; keep those of one run."""
        common: dict[tuple[int, int], dict[str, tuple[Estimate, Estimate]]] = {}
        for first, second in combinations([each for each in jointly if not each.reason], 2):
            if first.run != second.run:
                continue
            both = first.labeling, second.labeling
            if both not in common:
                # With missing scores, two coefficients on different cases would also differ because of the cases.
                same = panel.same_cases(*both)
                common[both] = {} if same else on_common_cases(panel, *both, level, self.resamples, keep=keep)
            yield common[both].get(first.run, (first, second))

    def _differences(self, panel: Panel, level: str, compared_pairs: Iterable[tuple[Estimate, Estimate]]) -> None:
        """Compare all pairs of labelings with each other, run by run; Holm over the pairs of one coefficient."""
        columns = [*list(DIFFERENCE_COLUMNS)[:8], "family"]
        pairs = []
        for first, second in compared_pairs:
            names = [panel.labelings[first.labeling], panel.labelings[second.labeling]]
            family = f"{panel.measure} {level} {first.run}"
            # There is nothing to test against the outcome itself, and it would make the family too large.
            tested = not any(self.flagger.is_outcome(panel, name) for name in names)
            key = (*names, panel.measure, first.run, level, panel.depth, panel.metric, panel.model)
            about = dict(zip(columns, (*key, family if tested else None), strict=True))
            pairs.append((about, first, second))
        self.differences += compared(pairs, self.rules.confidence, self.resamples)


def _listed(shares: Mapping[str, float]) -> str:
    """Return measures with the share of cases that they lack; measures of equal shares are named together."""
    together: dict[str, list[str]] = {}
    for measure, share in shares.items():
        together.setdefault(f"{share:.1%}", []).append(measure)
    return "; ".join(f"{some_of(measures)} (in {share} of the cases)" for share, measures in together.items())
