"""The comparison: score and quality tables in, one row per coefficient and a verdict out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from judgekit.analysis.inputs import Inputs, Pairing, Panel
from judgekit.analysis.levels import LEVELS, Estimate, query_level
from judgekit.analysis.measures import cutoff_of
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.verdict import Candidate, Primary, Verdict, decide
from judgekit.data.tables import ALL, COMPARISON
from judgekit.errors import UsageError, nearest

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        verdict: the verdict on the primary cell.
        warnings: sentences for the user.
        settings: what the numbers depend on: resamples, seed, confidence, margin.
    """

    table: pd.DataFrame
    verdict: Verdict
    warnings: tuple[str, ...]
    settings: Mapping[str, object] = field(default_factory=dict)

    def wide(self) -> pd.DataFrame:
        """Return the table with one row per cell and a column per coefficient."""
        keys = ["labeling", "measure", "run", "level", "depth", "quality_metric", "model", "n"]
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
    by_construction: Collection[tuple[str, str, str]] = (),
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
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only.
        lower: measures, beside those known, whose small values are the good ones.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``.
        by_construction: (labeling, model, metric) whose labels are the outcome at depth 1, see
            `same_by_construction`.

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist.
    """
    for level in [*(levels or ()), *([primary_level] if primary_level else ())]:
        if level not in LEVELS:
            raise UsageError(f"there is no level {level!r} (there are: {', '.join(LEVELS)}).{nearest(level, LEVELS)}")
    inputs = Inputs.read(
        scores, quality, labelings=labelings, runs=runs, measures=measures, metrics=metrics, models=models, lower=lower
    )
    weights = resample_matrix(len(inputs.queries), resamples, seed)
    cell, warnings = _primary(
        inputs, primary, primary_metric, primary_model, primary_level, primary_depth, depths, pairing
    )
    warnings = [*inputs.warnings, *warnings]
    rows: list[dict[str, object]] = []
    found: list[tuple[Panel, Estimate]] = []
    for panel in inputs.panels(depths, pairing):
        warnings += _left_out(panel)
        for estimate in query_level(panel, weights):
            rows += _rows(panel, estimate, "query", confidence, by_construction)
            if _is_primary(panel, estimate, cell):
                found.append((panel, estimate))
    table = pd.DataFrame(rows, columns=list(COMPARISON.columns)) if rows else COMPARISON.empty()
    verdict = _verdict(found, cell, margin, confidence, costs, by_construction)
    settings = {"resamples": resamples, "seed": seed, "confidence": confidence, "margin": margin}
    return Comparison(COMPARISON.check(table), verdict, tuple(dict.fromkeys(warnings)), settings)


def _primary(
    inputs: Inputs,
    measure: str | None,
    metric: str | None,
    model: str | None,
    level: str | None,
    depth: int | None,
    depths: Sequence[int] | None,
    pairing: Pairing,
) -> tuple[Primary, list[str]]:
    """Settle the primary cell; a choice that had to be made for the user is a warning."""
    warnings: list[str] = []

    def choose(what: str, given: str | None, have: Sequence[str]) -> str:
        if given is not None:
            if given not in have:
                raise UsageError(
                    f"the primary {what} {given!r} is not in the tables (there are: {', '.join(have)})."
                    f"{nearest(given, have)}"
                )
            return given
        if len(have) > 1:
            warnings.append(f"The verdict is about {what} {have[0]!r}, the first of {', '.join(have)}.")
        return have[0]

    if measure is not None:
        measure = choose("measure", measure, inputs.measures)
    metric = choose("metric", metric, inputs.metrics)
    model = choose("model", model, inputs.models)
    cutoff = None if measure is None else cutoff_of(measure)
    if depth is None:
        possible = [
            panel.depth
            for panel in inputs.panels(depths, pairing)
            if panel.metric == metric and panel.model == model and measure in (None, panel.measure)
        ]
        depth = cutoff if cutoff in possible else max(possible, default=cutoff or 0)
    run = inputs.runs[0] if len(inputs.runs) == 1 else ALL
    return Primary(measure, metric, model, depth, level or "query", run), warnings


def _is_primary(panel: Panel, estimate: Estimate, cell: Primary) -> bool:
    same = (panel.metric, panel.model, panel.depth, estimate.run) == (cell.metric, cell.model, cell.depth, cell.run)
    return same and cell.measure in (None, panel.measure)


def _left_out(panel: Panel) -> list[str]:
    return [
        f"{panel.labelings[index]!r} has no value for {panel.measure} in {panel.cost[index]:.1%} of the cases (depth"
        f" {panel.depth}, {panel.metric}, {panel.model}); it is left out of the joint comparison."
        for index in range(len(panel.labelings))
        if index not in panel.joint
    ]


def _rows(
    panel: Panel,
    estimate: Estimate,
    level: str,
    confidence: float,
    by_construction: Collection[tuple[str, str, str]],
) -> list[dict[str, object]]:
    flags = _flags(panel, estimate, by_construction)
    out: list[dict[str, object]] = []
    for name, value, draws in zip(estimate.names, estimate.values, estimate.draws, strict=True):
        limits = interval(float(value), draws, confidence, "percentile")
        out.append(
            {
                "labeling": panel.labelings[estimate.labeling],
                "measure": panel.measure,
                "run": estimate.run,
                "level": level,
                "depth": panel.depth,
                "quality_metric": panel.metric,
                "model": panel.model,
                "coefficient": name,
                "value": float(value),
                "ci_low": limits.low,
                "ci_high": limits.high,
                "ci_method": limits.method,
                "n": estimate.n,
                "undefined_reason": estimate.reason,
                "flags": ";".join(flags),
            }
        )
    return out


def _flags(panel: Panel, estimate: Estimate, by_construction: Collection[tuple[str, str, str]]) -> list[str]:
    flags = []
    if panel.depth == 1 and (panel.labelings[estimate.labeling], panel.model, panel.metric) in by_construction:
        flags.append("by_construction")
    if estimate.labeling not in panel.joint:
        flags.append("left_out")
    if not panel.matched:
        flags.append("unmatched_depth")
    return flags


def _verdict(
    found: Sequence[tuple[Panel, Estimate]],
    cell: Primary,
    margin: float,
    confidence: float,
    costs: pd.DataFrame | None,
    by_construction: Collection[tuple[str, str, str]],
) -> Verdict:
    per_labeling: dict[str, list[Estimate]] = {}
    excluded: dict[str, str] = {}
    queries = 0
    for panel, estimate in found:
        name = panel.labelings[estimate.labeling]
        flags = _flags(panel, estimate, by_construction)
        if "by_construction" in flags:
            excluded[name] = "its labels are the outcome by construction"
        elif "left_out" in flags:
            excluded[name] = "it has no value on too many queries"
        elif estimate.reason:
            excluded.setdefault(name, f"no coefficient is defined ({estimate.reason})")
        else:
            per_labeling.setdefault(name, []).append(estimate)
            queries = max(queries, estimate.n)
    order = _cost_order(costs)
    candidates = [
        Candidate(
            name,
            max(float(e.values[0]) for e in estimates),
            np.max([e.draws[0] for e in estimates], axis=0),
            max(float(e.values[1]) for e in estimates),
            order.get(name),
        )
        for name, estimates in per_labeling.items()
    ]
    excluded = {name: why for name, why in excluded.items() if name not in per_labeling}
    return decide(candidates, cell, margin=margin, queries=queries, level=confidence, excluded=excluded)


def _cost_order(costs: pd.DataFrame | None) -> dict[str, int]:
    """Return each labeling's position by cost: by money where all have a price, else tokens, else requests."""
    if costs is None or costs.empty:
        return {}
    frame = costs.set_index("labeling")
    keys: pd.Series | None = None
    if "money" in frame and frame["money"].notna().all():
        keys = frame["money"]
    elif {"prompt_tokens", "completion_tokens"} <= set(frame.columns):
        keys = frame["prompt_tokens"] + frame["completion_tokens"]
    elif "requests" in frame:
        keys = frame["requests"]
    if keys is None:
        return {}
    ranks = keys.rank(method="dense")
    return {str(name): int(rank) for name, rank in ranks.dropna().items()}
