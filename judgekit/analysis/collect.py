"""Works a comparison out panel by panel: rows, details, differences and controls, then the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judgekit.analysis.coefficients import coefficients
from judgekit.analysis.construction import Answering, kinship
from judgekit.analysis.controls import control_rows
from judgekit.analysis.differences import Difference, difference, holm, steiger, williams
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.levels import METHOD, MIN_RUNS, Estimate, Resamples, estimates, paired_draws
from judgekit.analysis.primary import Primary
from judgekit.analysis.resampling import interval
from judgekit.analysis.verdict import Candidate, Verdict, decide
from judgekit.data.tables import ALL

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs

__all__ = ["Collector"]


@dataclass
class Collector:
    """Collects the rows panel by panel; draws are dropped with their panel but for the primary cell's."""

    inputs: Inputs
    cell: Primary
    levels: tuple[str, ...]
    resamples: Resamples
    confidence: float
    flagger: Flagger
    rows: list[dict[str, object]] = field(default_factory=list)
    details: list[dict[str, object]] = field(default_factory=list)
    differences: list[dict[str, object]] = field(default_factory=list)
    controls: list[dict[str, object]] = field(default_factory=list)
    left_out: dict[str, dict[str, float]] = field(default_factory=dict)
    primary: list[tuple[Panel, Estimate]] = field(default_factory=list)

    def omissions(self) -> Iterator[str]:
        """Yield one sentence per labeling on the measures that it is left out of, however many panels they are in."""
        for labeling, shares in sorted(self.left_out.items()):
            never = [measure for measure, share in shares.items() if share == 1]
            partly = [f"{measure} (in {share:.1%} of the cases)" for measure, share in shares.items() if share < 1]
            if never:
                yield f"{labeling!r} has no value for {', '.join(never)}: it is left out of their joint comparison."
            if partly:
                yield f"{labeling!r} lacks values for {', '.join(partly)}: it is left out of their joint comparison."

    def panel(self, panel: Panel) -> None:
        """Work out one panel at all levels."""
        for index in sorted(set(range(len(panel.labelings))) - set(panel.joint)):
            lacking = self.left_out.setdefault(panel.labelings[index], {})
            lacking[panel.measure] = max(lacking.get(panel.measure, 0.0), float(panel.cost[index]))
        for level in self.levels:
            found = list(estimates(panel, level, self.resamples))
            for estimate in found:
                self._estimate(panel, estimate, level)
                if level == self.cell.level and estimate.run == self.cell.run and self.cell.holds(panel):
                    self.primary.append((panel, estimate))
                    self.inputs.warnings += self.flagger.suspicion(panel, estimate, level)
            if self.cell.same_quality(panel) and not panel.means_only:
                self._differences(panel, level, [e for e in found if e.labeling in panel.joint])

        if self.cell.holds(panel) and not panel.means_only:
            known = self.inputs.closed_book.get((panel.metric, panel.model))
            for index, labeling in enumerate(panel.labelings):
                key = {"labeling": labeling, **self._key(panel, "", "")}
                del key["level"], key["run"]
                rows = control_rows(panel, index, known, self.resamples, self.confidence)
                self.controls += [{**key, **row} for row in rows]

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
        for name, value, draws in zip(estimate.names, estimate.values, estimate.draws, strict=True):
            n = estimate.queries if level == "system" else estimate.n
            found = interval(float(value), draws, self.confidence, METHOD[level][name], n)
            undefined = min(undefined, found.undefined)
            flags = [*common, *self.flagger.coefficient(panel, estimate, level, name, found.method)]
            self.rows.append(
                {
                    **key,
                    "coefficient": name,
                    "value": float(value),
                    "ci_low": found.low,
                    "ci_high": found.high,
                    "ci_method": found.method,
                    "n": estimate.n,
                    "undefined_reason": self.flagger.reason(panel, estimate),
                    "flags": ";".join(flags),
                }
            )
        self.details.append(
            {
                **key,
                "n": estimate.n,
                "queries": estimate.queries,
                "lacking": float(panel.cost[estimate.labeling]),
                "tau_b_max": estimate.attainable,
                "undefined_resamples": undefined,
            }
        )

    def _differences(self, panel: Panel, level: str, found: Sequence[Estimate]) -> None:
        """Compare all pairs of labelings with each other, run by run; Holm over the pairs of one coefficient."""
        for run in dict.fromkeys(e.run for e in found):
            mine = [e for e in found if e.run == run and not e.reason]
            names = mine[0].names if mine else ()
            pairs = list(combinations(mine, 2))
            found_gaps = [self._gaps(a, b, level) for a, b in pairs]
            # Against the outcome itself there is nothing to test, and a family that held it would be too large.
            tested = [not any(self.flagger.is_outcome(panel, panel.labelings[e.labeling]) for e in p) for p in pairs]
            for index, name in enumerate(names):
                gaps = [each[index] for each in found_gaps]
                family = holm([g.p if test else math.nan for g, test in zip(gaps, tested, strict=True)])
                for (a, b), gap, adjusted in zip(pairs, gaps, family, strict=True):
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
                    if level == "query" and run != ALL and name in ("rho", "r"):
                        row |= _by_formula(panel, a, b, name)
                    self.differences.append(row)

    def _gaps(self, one: Estimate, other: Estimate, level: str) -> list[Difference]:
        """Return the difference of two labelings in each coefficient."""
        draws = paired_draws(one, other, self.resamples)
        n = min(one.n, other.n)
        return [
            difference(float(value), drawn, self.confidence, n, level)
            for value, drawn in zip(one.values - other.values, draws, strict=True)
        ]

    def candidates(
        self, order: Mapping[str, int], needs: Mapping[str, Needs], answering: Mapping[str, Answering]
    ) -> tuple[list[Candidate], dict[str, list[Estimate]], dict[str, str]]:
        """Return who takes part in the verdict, with their estimates (one per measure), and who does not and why."""
        taking: dict[str, list[Estimate]] = {}
        excluded: dict[str, str] = {}
        for panel, estimate in self.primary:
            name = panel.labelings[estimate.labeling]
            if self.flagger.is_outcome(panel, name):
                excluded[name] = "its labels are the outcome by construction"
            elif estimate.labeling not in panel.joint:
                excluded.setdefault(name, f"it has no value in {panel.cost[estimate.labeling]:.0%} of the cases")
            elif estimate.reason:
                excluded.setdefault(name, estimate.reason)
            else:
                taking.setdefault(name, []).append(estimate)
        how = answering.get(self.cell.model)
        found = []
        for name, mine in taking.items():
            value = max(float(e.values[0]) for e in mine)
            draws = np.max([e.draws[0] for e in mine], axis=0)
            n = min(e.queries if self.cell.level == "system" else e.n for e in mine)
            around = interval(value, draws, self.confidence, METHOD[self.cell.level]["concordance"], n)
            remark = _remark(name, needs[name], how) if how is not None and name in needs else ""
            tau_b = max(float(e.values[1]) for e in mine)
            found.append(Candidate(name, value, tau_b, order.get(name), remark, around.low, around.high))
        return found, taking, {name: why for name, why in excluded.items() if name not in taking}

    def concordances(self) -> dict[str, tuple[float, float, float]]:
        """Return the concordance, with its interval, of each labeling that takes part in the verdict.

        There is no interval where each labeling's best measure is taken.
        """
        out: dict[str, tuple[float, float, float]] = {}
        for name, mine in self.candidates({}, {}, {})[1].items():
            best = max(mine, key=lambda e: float(e.values[0]))
            n = best.queries if self.cell.level == "system" else best.n
            method = METHOD[self.cell.level]["concordance"]
            ends = interval(float(best.values[0]), best.draws[0], self.confidence, method, n)
            alone = len(mine) == 1
            out[name] = float(best.values[0]), ends.low if alone else math.nan, ends.high if alone else math.nan
        return out

    def verdict(
        self,
        margin: float,
        order: Mapping[str, int],
        needs: Mapping[str, Needs],
        answering: Mapping[str, Answering],
        obstacle: str = "",
    ) -> Verdict:
        """Return the verdict on the primary cell, or none for the reason that ``obstacle`` gives."""
        found, taking, excluded = self.candidates(order, needs, answering)
        level = self.cell.level

        def gap(one: str, other: str) -> Difference:
            first, second = taking[one], taking[other]
            if len(first) == len(second) == 1:
                return self._gaps(first[0], second[0], level)[0]
            return _gap_of_best(first, second, self.confidence, level)

        runs = min((len(panel.runs) for panel, _ in self.primary), default=0)
        if any(panel.means_only for panel, _ in self.primary):
            obstacle = (
                obstacle or "There are only means over queries, so there is no interval to tell labelings apart by."
            )
        obstacle = obstacle or (
            f"The system level needs at least {MIN_RUNS} runs, and there are {runs}; its numbers are descriptive only."
            if level == "system" and runs < MIN_RUNS
            else ""
        )
        queries = max((e.queries if level == "system" else e.n for mine in taking.values() for e in mine), default=0)
        return decide(
            found,
            gap,
            self.cell,
            margin=margin,
            queries=queries,
            confidence=self.confidence,
            excluded=excluded,
            obstacle=obstacle,
        )


def _gap_of_best(first: Sequence[Estimate], second: Sequence[Estimate], confidence: float, level: str) -> Difference:
    """Return the difference in concordance between the best measures of two labelings.

    Best means best in every resample. As the maximum over a resample's measures varies less than that over the
    measures themselves (by 6 % in the simulation), the measures that are best on the data are looked at too, and of
    the two differences the less certain one counts.
    """
    ours, theirs = (max(each, key=lambda e: float(e.values[0])) for each in (first, second))
    value = float(ours.values[0] - theirs.values[0])
    in_each = np.max([e.draws[0] for e in first], axis=0) - np.max([e.draws[0] for e in second], axis=0)
    n = min(e.n for e in [*first, *second])
    found = [difference(value, draws, confidence, n, level) for draws in (in_each, ours.draws[0] - theirs.draws[0])]
    return max(found, key=lambda d: d.se if math.isfinite(d.se) else math.inf)


def _remark(name: str, need: Needs, how: Answering) -> str:
    kin = kinship(need, how)
    if kin == "same model":
        return f"Note that {name!r} asks the very model whose answers it predicts."
    return f"Note that {name!r} asks a model of the answering model's family." if kin else ""


def _by_formula(panel: Panel, one: Estimate, other: Estimate, name: str) -> dict[str, object]:
    """Return Williams' t and Steiger's z for one run, where the correlations of the two with each other matter too."""
    row = panel.runs.index(one.run)
    where = panel.defined(one.labeling)[row]
    index = one.names.index(name)
    between = coefficients(panel.scores[one.labeling, row, where], panel.scores[other.labeling, row, where])[name]
    correlations = float(one.values[index]), float(other.values[index]), between
    t, p = williams(*correlations, one.n)
    z, q = steiger(*correlations, one.n)
    return {"williams_t": t, "williams_p": p, "steiger_z": z, "steiger_p": q}
