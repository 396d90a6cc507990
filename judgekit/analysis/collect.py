"""Works a comparison out panel by panel: rows, details, differences and controls, then the verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import Floats, coefficients
from judgekit.analysis.controls import CLOSED_BOOK, CONTROL_COLUMNS, TWIN, closed_book_strata, question_only
from judgekit.analysis.cost import cost_order
from judgekit.analysis.differences import differences, holm, steiger, williams
from judgekit.analysis.fidelity import MIN_RUNS_TOP, significance_fidelity, top_runs
from judgekit.analysis.flags import Flagger
from judgekit.analysis.gain import Enough
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.primary import CHOOSE_RUNS, USES, Primary
from judgekit.analysis.uses import Found, Series, find, series_of
from judgekit.analysis.verdict import Verdict, decide
from judgekit.data.tables import ALL, COMPARISON

__all__ = ["Collector"]


@dataclass
class Collector:
    """Collects the rows panel by panel; draws are dropped with their panel but for the primary cell's."""

    inputs: Inputs
    cell: Primary
    levels: tuple[str, ...]
    resamples: Resamples
    confidence: float
    enough: Enough
    flagger: Flagger
    controls: Collection[str] = ()
    twins: Mapping[str, Floats] = field(default_factory=dict)
    rows: list[dict[str, object]] = field(default_factory=list)
    detail_rows: list[dict[str, object]] = field(default_factory=list)
    differences: list[dict[str, object]] = field(default_factory=list)
    control_rows: list[dict[str, object]] = field(default_factory=list)
    left_out: dict[str, dict[str, float]] = field(default_factory=dict)
    primary: dict[str, tuple[Panel, dict[str, list[Estimate]]]] = field(default_factory=dict)
    pairs: bool = True
    """Whether labelings are compared with each other, too."""

    def omissions(self) -> Iterator[str]:
        """Yield one sentence per labeling on the measures that it is left out of, however many panels they are in."""
        for labeling, shares in sorted(self.left_out.items()):
            never = [measure for measure, share in shares.items() if share == 1]
            partly = [f"{measure} (in {share:.1%} of the cases)" for measure, share in shares.items() if share < 1]
            if never:
                yield f"{labeling!r} has no value for {', '.join(never)} and is excluded from their joint comparison."
            if partly:
                yield f"{labeling!r} lacks values for {', '.join(partly)} and is excluded from their joint comparison."

    def table(self) -> pd.DataFrame:
        """Return the rows of all panels as a table, by measure."""
        return COMPARISON.check(pd.DataFrame(self._by_measure(self.rows), columns=list(COMPARISON.columns)))

    def details(self) -> pd.DataFrame:
        """Return what stands behind each cell, in the same order."""
        return pd.DataFrame(self._by_measure(self.detail_rows))

    def _by_measure(self, rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
        """Panels are worked out by the answers that they share, and shown by measure."""
        return sorted(rows, key=lambda row: self.inputs.measures.index(str(row["measure"])))

    def panel(self, panel: Panel) -> None:
        """Work out one panel at all levels."""
        for index in sorted(set(range(len(panel.labelings))) - set(panel.joint)):
            if panel.labelings[index] not in self.controls:
                lacking = self.left_out.setdefault(panel.labelings[index], {})
                lacking[panel.measure] = max(lacking.get(panel.measure, 0.0), float(panel.cost[index]))
        for level in self.levels:
            # A control is scored by the primary measure only.
            found = [
                each
                for each in estimates(panel, level, self.resamples)
                if panel.labelings[each.labeling] not in self.controls or each.labeling in panel.joint
            ]
            labelings = [each for each in found if panel.labelings[each.labeling] not in self.controls]
            for estimate in labelings:
                self._estimate(panel, estimate, level)
            if self.cell.holds(panel):
                self.primary.setdefault(panel.model, (panel, {}))[1][level] = found
                if level == self.cell.level and panel.model == self.cell.model:
                    mean = [each for each in labelings if each.run == self.cell.run]
                    self.inputs.warnings += [w for each in mean for w in self.flagger.suspicion(panel, each, level)]
            if self.pairs and self.cell.same_quality(panel) and not panel.means_only:
                self._differences(panel, level, [e for e in labelings if e.labeling in panel.joint])

    def _key(self, panel: Panel, level: str, run: str) -> dict[str, object]:
        return {
            "measure": panel.measure,
            "run": run,
            "level": level,
            "depth": panel.depth,
            "quality_metric": panel.metric,
            "model": panel.model,
        }

    def _estimate(self, panel: Panel, estimate: Estimate, level: str) -> None:
        labeling = panel.labelings[estimate.labeling]
        key = {"labeling": labeling, **self._key(panel, level, estimate.run)}
        common = self.flagger.cell(panel, estimate, level)
        undefined = 1.0
        for name, value in zip(estimate.names, estimate.values, strict=True):
            found = estimate.interval(name, level, self.confidence, self.resamples)
            undefined = min(undefined, found.undefined)
            flags = [*common, *self.flagger.coefficient(panel, estimate, level, name, found.method)]
            # The interval allows for the noise of the means, the value itself does not.
            if level == "system" and found.method and value == found.low < found.high:
                flags.append("end_of_interval")
            row = {
                "coefficient": name,
                "value": float(value),
                "ci_low": found.low,
                "ci_high": found.high,
                "ci_method": found.method,
                "n": estimate.n,
                "undefined_reason": self.flagger.reason(panel, estimate),
                "flags": ";".join(flags),
            }
            self.rows.append(key | row)
        details = {
            "n": estimate.n,
            "queries": estimate.queries,
            "lacking": float(panel.cost[estimate.labeling]),
            "tau_b_max": estimate.attainable,
            "undefined_resamples": undefined,
        }
        self.detail_rows.append(key | details)

    def _differences(self, panel: Panel, level: str, found: Sequence[Estimate]) -> None:
        """Compare all pairs of labelings with each other, run by run; Holm over the pairs of one coefficient."""
        for run in dict.fromkeys(e.run for e in found):
            pairs = list(combinations([e for e in found if e.run == run and not e.reason], 2))
            gaps = [differences(*pair, level, self.confidence, self.resamples) for pair in pairs]
            # Against the outcome itself there is nothing to test, and a family that held it would be too large.
            tested = [not any(self.flagger.is_outcome(panel, panel.labelings[e.labeling]) for e in p) for p in pairs]
            alone = level == "query" and run != ALL
            by_formula = [self._by_formula(panel, *pair) if alone else {} for pair in pairs]
            for name in gaps[0] if gaps else ():
                family = holm([gap[name].p if test else math.nan for gap, test in zip(gaps, tested, strict=True)])
                for (a, b), found_gaps, adjusted, tests in zip(pairs, gaps, family, by_formula, strict=True):
                    gap = found_gaps[name]
                    row = {
                        "first": panel.labelings[a.labeling],
                        "second": panel.labelings[b.labeling],
                        **self._key(panel, level, run),
                        "coefficient": name,
                        "difference": gap.value,
                        "ci_low": gap.low,
                        "ci_high": gap.high,
                        "ci_method": gap.method,
                        "p": gap.p,
                        "p_holm": adjusted,
                        "n": a.n,
                    }
                    self.differences.append(row | tests.get(name, {}))

    def _by_formula(self, panel: Panel, one: Estimate, other: Estimate) -> dict[str, dict[str, object]]:
        """Return Williams' t and Steiger's z on one run, where the two's own correlation matters too, for rho and r."""
        row = panel.runs.index(one.run)
        where = panel.defined(one.labeling)[row]
        between = coefficients(*(panel.scores[each.labeling, row, where] for each in (one, other)))
        found: dict[str, dict[str, object]] = {}
        for name in ("rho", "r"):
            correlations = one.value(name), other.value(name), between[name]
            (t, p), (z, q) = williams(*correlations, one.n), steiger(*correlations, one.n)
            found[name] = {"williams_t": t, "williams_p": p, "steiger_z": z, "steiger_p": q}
        return found

    def verdicts(
        self, costs: pd.DataFrame, shares: Mapping[str, str], model: str, *, obstacle: str, incomparable: str
    ) -> dict[str, Verdict]:
        """Return the verdict on the primary cell, for the answers of a model, by use, that of the cell first."""
        cell = replace(self.cell, model=model)
        # One run leaves nothing to choose between.
        uses = [cell.use, *(use for use in USES if use != cell.use and len(self.inputs.runs) > 1)]
        made: dict[str, Verdict] = {}
        for use in reversed(uses):
            found, excluded = self._found(use, model, costs)
            made[use] = decide(
                found,
                replace(cell, use=use),
                excluded=excluded,
                shares=shares,
                other=made.get(uses[-1]) if use == uses[0] else None,
                obstacle=obstacle or (incomparable if use == CHOOSE_RUNS else ""),
            )
        return {use: made[use] for use in uses}

    def _found(self, use: str, model: str, costs: pd.DataFrame) -> tuple[Found | None, dict[str, str]]:
        """Return what was found for a use, and which labelings are left out and why."""
        if model not in self.primary:
            return None, {}
        panel, by_level = self.primary[model]
        level, run = USES[use], ALL if len(panel.runs) > 1 else panel.runs[0]
        filled = panel.extremes(level)
        excluded: dict[str, str] = {}
        taking: list[Estimate] = []
        ranks: list[Estimate] = []
        for estimate in by_level.get(level, []):
            name = panel.labelings[estimate.labeling]
            if estimate.run != run:
                continue
            if name in self.controls:
                ranks += [] if estimate.reason else [estimate]
            elif self.flagger.is_outcome(panel, name):
                excluded[name] = "its labels are the outcome by construction"
            elif estimate.labeling not in panel.joint:
                excluded[name] = f"it has no value in {panel.cost[estimate.labeling]:.0%} of the cases"
            elif estimate.reason:
                excluded[name] = self.flagger.reason(panel, estimate)
            else:
                taking.append(estimate)
        if not taking:
            return None, excluded
        labelings, controls = (
            list(series_of(each, panel, level, self.confidence, self.resamples, filled)) for each in (taking, ranks)
        )
        # Among those that take part: the unknown cost of another one changes nothing between them.
        order = cost_order(costs[costs["labeling"].isin([one.name for one in labelings])])
        if use != CHOOSE_RUNS:
            controls += self._twins(panel, labelings, filled)
        found = find(use, panel, labelings, controls, self.resamples, order, self.confidence, self.enough)
        self._control_rows(found, panel, model)
        return found, excluded

    def _twins(self, panel: Panel, taking: Sequence[Series], filled: tuple[Panel, Panel] | None) -> Iterator[Series]:
        """Yield what knows the question only: each labeling's twin, and what the model knows without documents."""
        known = self.inputs.closed_book.get((panel.metric, panel.model))
        scores = {TWIN + one.name: self.twins[one.name] for one in taking if one.name in self.twins}
        if known is not None:
            scores[CLOSED_BOOK] = known
        if not scores:
            return
        first = taking[0].estimate
        control = question_only(panel, panel.defined(first.labeling), scores)
        # A labeling at its worst is compared on more questions than have all labels.
        again = question_only(filled[0], filled[0].defined(0), scores) if filled else None
        found = [
            each
            for each in estimates(control, "query", self.resamples, ("concordance",))
            if each.run == first.run and (not each.reason or control.labelings[each.labeling] == CLOSED_BOOK)
        ]
        both = (again, again) if again else None
        yield from series_of(found, control, "query", self.confidence, self.resamples, both)

    def _control_rows(self, found: Found, panel: Panel, model: str) -> None:
        for name, (value, low, high) in found.controls.items():
            kind, _, labeling = name.partition(TWIN) if name.startswith(TWIN) else (name, "", "")
            why = "all closed-book answers have the same quality" if np.isnan(value) else ""
            row = (found.use, kind or "question-only twin", labeling, model, value, low, high, found.differing, why)
            self.control_rows.append(dict(zip(CONTROL_COLUMNS, row, strict=True)))
        known = self.inputs.closed_book.get((panel.metric, panel.model))
        if found.use != CHOOSE_RUNS and known is not None:
            for one in found.standings:
                index = panel.labelings.index(one.labeling)
                given = closed_book_strata(panel, index, known, self.resamples, self.confidence)
                key = {"use": found.use, "control": "same closed-book quality", "labeling": one.labeling}
                self.control_rows.append({**key, "model": model, **given})

    def looks(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return significance fidelity, and the best runs only, per labeling of the primary cell."""
        fidelity, tops = [pd.DataFrame(columns=["labeling"])], [pd.DataFrame(columns=["labeling"])]
        panel, _ = self.primary[self.cell.model]
        for index in panel.joint if len(panel.runs) > 2 else ():
            name, where = panel.labelings[index], panel.complete(index)
            if name in self.controls or where.sum() < 2:
                continue
            scores, quality = panel.scores[index][:, where], panel.quality[:, where]
            found = significance_fidelity(scores, quality, self.confidence, self.resamples.seed)
            fidelity.append(found.assign(labeling=name))
            if len(panel.runs) >= MIN_RUNS_TOP:
                best = top_runs(scores, quality, self.resamples.weights[where], self.confidence)
                tops.append(best.assign(labeling=name))
        return pd.concat(fidelity, ignore_index=True), pd.concat(tops, ignore_index=True)

    def cases(self) -> pd.DataFrame:
        """Return how scores and quality of the primary cell fall together, per labeling."""
        panel, _ = self.primary[self.cell.model]
        columns = ["labeling", "score", "quality", "n"]
        found = [pd.DataFrame(columns=columns)]
        for index, name in enumerate(() if panel.means_only else panel.labelings):
            if name not in self.controls:
                where = panel.defined(index)
                values = {"score": _steps(panel.scores[index][where]), "quality": _steps(panel.quality[where])}
                counted = pd.DataFrame(values).groupby(["score", "quality"], as_index=False).size()
                found.append(counted.rename(columns={"size": "n"}).assign(labeling=name)[columns])
        return pd.concat([each for each in found if len(each)] or found, ignore_index=True)


def _steps(values: Floats) -> Floats:
    """Return the values, or where there are more than eleven the means of ten equal steps."""
    if len(np.unique(values)) <= 11:
        return values
    step = np.digitize(values, np.linspace(values.min(), values.max(), 11)[1:-1])
    return np.asarray((np.bincount(step, values) / np.maximum(np.bincount(step), 1))[step])
