"""The comparison: score and quality tables in, one row per coefficient and a verdict out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import coefficients
from judgekit.analysis.construction import Answering, kinship, same_by_construction
from judgekit.analysis.controls import CONTROL_COLUMNS, control_rows
from judgekit.analysis.cost import check_costs, cost_order, frontier
from judgekit.analysis.differences import DIFFERENCE_COLUMNS, Difference, difference, holm, steiger, williams
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Pairing, Panel
from judgekit.analysis.levels import LEVELS, METHOD, MIN_RUNS, Estimate, Resamples, estimates, paired_draws
from judgekit.analysis.primary import Primary, settle
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.verdict import Candidate, Verdict, decide
from judgekit.data.tables import ALL, COMPARISON
from judgekit.errors import DataError, UsageError, nearest
from judgekit.progress import Event, Progress, silent

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs

__all__ = ["Comparison", "compare"]

_CONTROL_COLUMNS: Final = ("labeling", "measure", "depth", "quality_metric", "model", *CONTROL_COLUMNS)
_KEYS: Final = ("labeling", "measure", "run", "level", "depth", "quality_metric", "model")


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        verdict: the verdict on the primary cell.
        differences: one row per pair of labelings and coefficient, for the quality of the primary cell: difference,
            interval, p, p by Holm over all pairs of the same cell and coefficient, and per run Williams' t and
            Steiger's z for r and rho.
        details: one row per cell: how many queries went in, what share of its cases each labeling lacks, the largest
            tau-b attainable with the same values, the share of resamples without a concordance.
        controls: for the measures of the primary cell, how much of the agreement easy and hard questions make, see
            `judgekit.analysis.controls`.
        costs: cost beside the concordance of the primary cell, with the frontier.
        warnings: sentences for the user.
        settings: what the numbers depend on: resamples, seed, confidence, margin.
    """

    table: pd.DataFrame
    verdict: Verdict
    differences: pd.DataFrame
    details: pd.DataFrame
    controls: pd.DataFrame
    costs: pd.DataFrame
    warnings: tuple[str, ...]
    settings: Mapping[str, float] = field(default_factory=dict)

    def wide(self) -> pd.DataFrame:
        """Return the table with one row per cell and a column per coefficient."""
        keys = [*_KEYS, "n"]
        wide = self.table.pivot(index=keys, columns="coefficient", values="value").reset_index()
        order = [name for name in ("concordance", "tau_b", "rho", "r", "tau_ap", "rbo") if name in wide.columns]
        return pd.DataFrame(wide[[*keys, *order]].rename_axis(columns=None))


def compare(
    scores: pd.DataFrame,
    quality: pd.DataFrame,
    *,
    levels: Sequence[str] | None = None,
    labelings: Collection[str] | None = None,
    runs: Collection[str] | None = None,
    measures: Collection[str] | None = None,
    depths: Sequence[int] | None = None,
    metrics: Collection[str] | None = None,
    models: Collection[str] | None = None,
    primary: str | None = None,
    primary_metric: str | None = None,
    primary_model: str | None = None,
    primary_level: str | None = None,
    primary_depth: int | None = None,
    margin: float = 0.05,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 1,
    pairing: Pairing = "matched",
    lower: Collection[str] = (),
    costs: pd.DataFrame | None = None,
    needs: Mapping[str, Needs] | None = None,
    answering: Mapping[str, Answering] | None = None,
    by_construction: Collection[tuple[str, str, str]] = (),
    notes: pd.DataFrame | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare how well the scores under each labeling follow answer quality.

    Args:
        scores: per-query scores, columns of `SCORES`; rows with query_id ``all`` are ignored.
        quality: answer quality per query, columns of `QUALITY`; depth 0 with run ``all`` is closed book.
        levels: of ``query``, ``within-query``, ``system``; all that the runs allow by default.
        labelings: the labelings to look at, like the next five everything by default.
        runs: the runs to look at.
        measures: the measures to look at.
        depths: the answer depths to look at.
        metrics: the answer metrics to look at.
        models: the answer models to look at.
        primary: the measure that the verdict is about; without it each labeling's best measure is taken, inside
            every resample.
        primary_metric: the answer metric of the primary cell; the first by name by default, with a warning.
        primary_model: its answer model; likewise.
        primary_level: its level; ``query`` by default.
        primary_depth: its answer depth; the primary measure's cutoff, else the largest, by default.
        margin: what the user accepts to lose in concordance by taking a cheaper labeling.
        confidence: of the intervals.
        resamples: number of bootstrap resamples of the queries, the same for everything.
        seed: of the resamples.
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only; ``all`` also the others,
            flagged.
        lower: measures, beside those known, whose small values are the good ones.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``wall_s``.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were had, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        progress: is told about every panel (measure x metric x model x depth).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist.
    """
    if not 0 < confidence < 1 or not 0 <= margin <= 0.5:
        raise UsageError(f"confidence must lie in (0, 1) and margin in [0, 0.5], not {confidence} and {margin}")
    inputs = Inputs.read(
        scores, quality, labelings=labelings, runs=runs, measures=measures, metrics=metrics, models=models, lower=lower
    )
    plan = list(inputs.plan(depths, pairing))
    wanted, level, warnings = _levels(levels, primary_level, len(inputs.runs))
    cell, choices = settle(
        inputs, plan, measure=primary, metric=primary_metric, model=primary_model, level=level, depth=primary_depth
    )
    known = same_by_construction(needs or {}, answering or {}, inputs.metrics) | set(by_construction)
    work = _Work(
        inputs=inputs,
        cell=cell,
        levels=wanted,
        resamples=Resamples(resample_matrix(len(inputs.queries), resamples, seed), seed),
        confidence=confidence,
        flagger=Flagger(inputs, by_construction=known, needs=needs, answering=answering, notes=notes),
    )
    for done, key in enumerate(plan):
        progress(Event("compare", done, len(plan)))
        work.panel(inputs.panel(*key))
    progress(Event("compare", len(plan), len(plan)))
    price = check_costs(costs)
    verdict = work.verdict(margin, cost_order(price), needs or {}, answering or {})
    values = {c.labeling: c.concordance for c in work.candidates({}, {}, {})[0]}
    return Comparison(
        table=COMPARISON.check(pd.DataFrame(work.rows, columns=list(COMPARISON.columns))),
        verdict=verdict,
        differences=pd.DataFrame(work.differences, columns=list(DIFFERENCE_COLUMNS)),
        details=pd.DataFrame(work.details),
        controls=pd.DataFrame(work.controls, columns=list(_CONTROL_COLUMNS)),
        costs=frontier(price, values),
        warnings=tuple(dict.fromkeys([*inputs.warnings, *warnings, *choices, *work.omissions()])),
        settings={"resamples": resamples, "seed": seed, "confidence": confidence, "margin": margin},
    )


def _levels(asked: Sequence[str] | None, primary: str | None, runs: int) -> tuple[tuple[str, ...], str, list[str]]:
    """Return the levels to work out, in their order, the primary one, and sentences on what is left out.

    Raises:
        UsageError: there is no such level.
        DataError: the primary level needs several runs and there is one.
    """
    for level in [*(asked or ()), *([primary] if primary else ())]:
        if level not in LEVELS:
            raise UsageError(f"there is no level {level!r} (there are: {', '.join(LEVELS)}).{nearest(level, LEVELS)}")
    chosen = primary or ("query" if not asked or "query" in asked else asked[0])
    wanted = {*(asked or LEVELS), chosen}
    alone = [level for level in LEVELS if level in wanted and level != "query" and runs < 2]
    if chosen in alone:
        raise DataError(f"the {chosen} level compares runs, and only one has both scores and quality")
    warnings = [f"There is only one run, so nothing at the {' and '.join(alone)} level."] if asked and alone else []
    return tuple(level for level in LEVELS if level in wanted and level not in alone), chosen, warnings


@dataclass
class _Work:
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
        for index in set(range(len(panel.labelings))) - set(panel.joint):
            lacking = self.left_out.setdefault(panel.labelings[index], {})
            lacking[panel.measure] = max(lacking.get(panel.measure, 0.0), float(panel.cost[index]))
        for level in self.levels:
            found = list(estimates(panel, level, self.resamples))
            for estimate in found:
                self._estimate(panel, estimate, level)
                if level == self.cell.level and estimate.run == self.cell.run and self.cell.holds(panel):
                    self.primary.append((panel, estimate))
                    self.inputs.warnings += self.flagger.suspicion(panel, estimate, level)
            if self.cell.same_quality(panel):
                self._differences(panel, level, [e for e in found if e.labeling in panel.joint])
        if self.cell.holds(panel):
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
            flags = [*common, *self.flagger.coefficient(estimate, level, name, found.method)]
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
            for index, name in enumerate(names):
                gaps = [each[index] for each in found_gaps]
                for (a, b), gap, adjusted in zip(pairs, gaps, holm([g.p for g in gaps]), strict=True):
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

    def verdict(
        self,
        margin: float,
        order: Mapping[str, int],
        needs: Mapping[str, Needs],
        answering: Mapping[str, Answering],
    ) -> Verdict:
        """Return the verdict on the primary cell."""
        found, taking, excluded = self.candidates(order, needs, answering)
        level = self.cell.level

        def gap(one: str, other: str) -> Difference:
            first, second = taking[one], taking[other]
            if len(first) == len(second) == 1:
                return self._gaps(first[0], second[0], level)[0]
            value = max(float(e.values[0]) for e in first) - max(float(e.values[0]) for e in second)
            draws = np.max([e.draws[0] for e in first], axis=0) - np.max([e.draws[0] for e in second], axis=0)
            return difference(value, draws, self.confidence, min(e.n for e in [*first, *second]), level)

        runs = min((len(panel.runs) for panel, _ in self.primary), default=0)
        obstacle = (
            f"The system level needs at least {MIN_RUNS} runs, and there are {runs}; its numbers are descriptive only."
            if level == "system" and runs < MIN_RUNS
            else ""
        )
        queries = max((e.queries if level == "system" else e.n for mine in taking.values() for e in mine), default=0)
        return decide(found, gap, self.cell, margin=margin, queries=queries, excluded=excluded, obstacle=obstacle)


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
