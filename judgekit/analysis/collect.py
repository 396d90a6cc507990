"""Works a comparison out panel by panel: rows, details and differences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

import pandas as pd

from judgekit.analysis.differences import DIFFERENCE_COLUMNS, compared
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.primary import Primary
from judgekit.data.tables import COMPARISON
from judgekit.rules import Rules

_BEHIND: Final = ("queries", "lacking", "tau_b_max")
_DETAILS: Final = ["labeling", "measure", "run", "level", "depth", "quality_metric", "model", "n", *_BEHIND]


@dataclass
class Collector:
    """Collects the rows panel by panel; draws are dropped with their panel but for the primary cell's."""

    inputs: Inputs
    cell: Primary
    levels: tuple[str, ...]
    resamples: Resamples
    rules: Rules
    flagger: Flagger
    controls: Collection[str] = ()
    rows: list[tuple[object, ...]] = field(default_factory=list)
    differences: list[dict[str, object]] = field(default_factory=list)
    left_out: dict[str, dict[str, float]] = field(default_factory=dict)
    primary: tuple[Panel, dict[str, list[Estimate]]] = field(init=False)
    pairs: bool = True
    """Whether labelings are compared with each other, too."""

    def omissions(self) -> Iterator[str]:
        """Yield what is left out: queries of the primary cell, and labelings of the comparison of measures."""
        yield from self.inputs.uncompared(self.primary[0])
        for labeling, shares in sorted(self.left_out.items()):
            never = [measure for measure, share in shares.items() if share == 1]
            partly = [f"{measure} (in {share:.1%} of the cases)" for measure, share in shares.items() if share < 1]
            if never:
                yield f"{labeling!r} has no value for {', '.join(never)} and is excluded from their joint comparison."
            if partly:
                yield f"{labeling!r} lacks values for {', '.join(partly)} and is excluded from their joint comparison."

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the rows of all panels as a table, by measure, and what stands behind each cell, in the same order."""
        # Panels are worked out by the answers that they share.
        rows = sorted(self.rows, key=lambda row: self.inputs.measures.index(str(row[1])))
        whole = pd.DataFrame(rows, columns=[*COMPARISON.columns, *_BEHIND])
        details = whole[whole["coefficient"] == "concordance"][_DETAILS].reset_index(drop=True)
        return COMPARISON.check(whole[list(COMPARISON.columns)]), details

    def panel(self, panel: Panel) -> None:
        """Work out one panel at all levels."""
        for index in sorted(set(range(len(panel.labelings))) - set(panel.joint)):
            if panel.labelings[index] not in self.controls:
                lacking = self.left_out.setdefault(panel.labelings[index], {})
                lacking[panel.measure] = max(lacking.get(panel.measure, 0.0), float(panel.cost[index]))
        for level in self.levels:
            # A control is scored by the primary measure only.
            found = [
                replace(each, reason=self.flagger.reason(panel, each))
                for each in estimates(panel, level, self.resamples)
                if panel.labelings[each.labeling] not in self.controls or each.labeling in panel.joint
            ]
            labelings = [each for each in found if panel.labelings[each.labeling] not in self.controls]
            for estimate in labelings:
                self._estimate(panel, estimate, level)
            here, cell = (panel.metric, panel.model, panel.depth), self.cell
            same = here == (cell.metric, cell.model, cell.depth)
            if same and panel.measure == self.cell.measure:
                if level == self.levels[0]:
                    self.primary = panel, {}
                self.primary[1][level] = found
                if level == self.cell.level:
                    mean = [each for each in labelings if each.run == self.cell.run]
                    self.inputs.warnings += [w for each in mean for w in self.flagger.suspicion(panel, each, level)]
            if self.pairs and same and not panel.means_only:
                self._differences(panel, level, [e for e in labelings if e.labeling in panel.joint])

    def _estimate(self, panel: Panel, estimate: Estimate, level: str) -> None:
        """Add a row per coefficient, in the order of the columns of `COMPARISON`, with what stands behind it."""
        labeling, common = panel.labelings[estimate.labeling], self.flagger.cell(panel, estimate, level)
        key = (labeling, panel.measure, estimate.run, level, panel.depth, panel.metric, panel.model)
        behind = (estimate.queries, float(panel.cost[estimate.labeling]), estimate.attainable)
        for name, value in zip(estimate.names, estimate.values, strict=True):
            ends = estimate.interval(name, self.rules.confidence, self.resamples)
            flags = ";".join([*common, *self.flagger.coefficient(panel, estimate, level, name, ends.method)])
            self.rows.append((*key, name, float(value), *ends, estimate.n, estimate.reason, flags, *behind))

    def _differences(self, panel: Panel, level: str, found: Sequence[Estimate]) -> None:
        """Compare all pairs of labelings with each other, run by run; Holm over the pairs of one coefficient."""

        def about(a: Estimate, b: Estimate) -> dict[str, object]:
            names = [panel.labelings[each.labeling] for each in (a, b)]
            # Against the outcome itself there is nothing to test, and a family that held it would be too large.
            tested = not any(self.flagger.is_outcome(panel, name) for name in names)
            family = f"{panel.measure} {level} {a.run}" if tested else None
            key = (*names, panel.measure, a.run, level, panel.depth, panel.metric, panel.model, family)
            return dict(zip([*list(DIFFERENCE_COLUMNS)[:8], "family"], key, strict=True))

        there = combinations([each for each in found if not each.reason], 2)
        pairs = ((about(a, b), a, b) for a, b in there if a.run == b.run)
        self.differences += compared(pairs, self.rules.confidence, self.resamples)
