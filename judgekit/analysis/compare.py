"""The comparison: score and quality tables in, one row per coefficient and a verdict out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pandas as pd

from judgekit.analysis.collect import Collector
from judgekit.analysis.construction import Answering, same_by_construction
from judgekit.analysis.controls import CONTROL_COLUMNS
from judgekit.analysis.cost import check_costs, cost_order, frontier
from judgekit.analysis.differences import DIFFERENCE_COLUMNS
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Pairing
from judgekit.analysis.levels import LEVELS, Resamples
from judgekit.analysis.primary import settle
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.verdict import Verdict
from judgekit.data.tables import ALL, COMPARISON
from judgekit.errors import DataError, UsageError, nearest
from judgekit.llm.origins import mixed_answers
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
            interval, p, p by Holm over all pairs of the same cell and coefficient (none for pairs with a labeling
            that is the outcome by construction), and per run Williams' t and Steiger's z for r and rho.
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
        """Return the table with one row per cell, a column per coefficient, and the interval of the concordance."""
        keys = [*_KEYS, "n"]
        wide = self.table.pivot(index=keys, columns="coefficient", values="value").reset_index()
        ends = self.table.loc[self.table["coefficient"] == "concordance", [*keys, "ci_low", "ci_high"]]
        wide = wide.rename_axis(columns=None).merge(ends, on=keys, how="left")
        order = [*keys, "concordance", "ci_low", "ci_high", "tau_b", "rho", "r", "tau_ap", "rbo"]
        return pd.DataFrame(wide[[name for name in order if name in wide.columns]])


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
    accept_mixed_models: bool = False,
    obstacle: str = "",
    progress: Progress = silent,
) -> Comparison:
    """Compare how well the scores under each labeling follow answer quality.

    Args:
        scores: per-query scores, columns of `SCORES`; rows with query_id ``all`` are ignored, but where a
            table has no others: then means are compared, at system level, without intervals and without a verdict.
        quality: answer quality per query, columns of `QUALITY`; depth 0 with run ``all`` is closed book. Run, depth,
            model and metric may be left out where there is only one (`RATINGS`).
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
        confidence: of the intervals, and of what the verdict claims; at least .5.
        resamples: number of bootstrap resamples of the queries, the same for everything.
        seed: of the resamples.
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only; ``all`` also the others,
            flagged.
        lower: measures, beside those known, whose small values are the good ones.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``request_seconds``.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were had, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        accept_mixed_models: whether a verdict may rest on answers that come from several models under one name, as
            the quality table's ``reply_model`` says.
        obstacle: a sentence that says why there can be no verdict, if there is a reason that the tables do not show.
        progress: is told about every panel (measure x metric x model x depth).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist.
    """
    if not 0.5 <= confidence < 1 or not 0 <= margin <= 0.5:
        raise UsageError(
            f"confidence must be at least 0.5 and below 1, margin from 0 to 0.5; they are {confidence:g} and {margin:g}"
        )
    inputs = Inputs.read(
        scores,
        quality,
        labelings=labelings,
        runs=runs,
        measures=measures,
        metrics=metrics,
        models=models,
        depths=depths,
        lower=lower,
    )
    plan = list(inputs.plan(depths, pairing))
    wanted, level, warnings = _levels(levels, primary_level, len(inputs.runs), means_only=inputs.queries == (ALL,))
    cell, choices = settle(
        inputs, plan, measure=primary, metric=primary_metric, model=primary_model, level=level, depth=primary_depth
    )
    known = same_by_construction(needs or {}, answering or {}, inputs.metrics) | set(by_construction)
    work = Collector(
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
    price, taking = check_costs(costs), work.concordances()
    # What is cheaper is asked of those that take part: the unknown cost of another one changes nothing between them.
    order = cost_order(price[price["labeling"].isin(list(taking))])
    mix = mixed_answers(quality)
    accepted = [f"{mix}."] if mix and accept_mixed_models else []
    if mix and not accepted:
        obstacle = obstacle or f"{mix}. Answer again with one of them, or accept it with accept_mixed_models."
    verdict = work.verdict(margin, order, needs or {}, answering or {}, obstacle)
    return Comparison(
        table=COMPARISON.check(pd.DataFrame(work.rows, columns=list(COMPARISON.columns))),
        verdict=verdict,
        differences=pd.DataFrame(work.differences, columns=list(DIFFERENCE_COLUMNS)),
        details=pd.DataFrame(work.details),
        controls=pd.DataFrame(work.controls, columns=list(_CONTROL_COLUMNS)),
        costs=frontier(price, taking),
        warnings=tuple(dict.fromkeys([*inputs.warnings, *warnings, *choices, *work.omissions(), *accepted])),
        settings={"resamples": resamples, "seed": seed, "confidence": confidence, "margin": margin},
    )


def _levels(
    asked: Sequence[str] | None, primary: str | None, runs: int, *, means_only: bool
) -> tuple[tuple[str, ...], str, list[str]]:
    """Return the levels to work out, in their order, the primary one, and sentences on what is left out.

    Raises:
        UsageError: there is no such level.
        DataError: the primary level needs several runs and there is one, or values per query and there are only means.
    """
    for level in [*(asked or ()), *([primary] if primary else ())]:
        if level not in LEVELS:
            raise UsageError(f"there is no level {level!r} (there are: {', '.join(LEVELS)}).{nearest(level, LEVELS)}")
    if means_only:
        below = [level for level in (*(asked or ()), primary) if level not in ("system", None)]
        if below or runs < 2:
            what = f"the {below[0]} level" if below else "a single run"
            raise DataError(
                f"{what} needs values per query, and a table holds only means (query_id 'all'); scores per query come"
                " from `judgekit score --per-query`. With means, only the system level of several runs can be compared"
            )
        asked, primary = ["system"], "system"
    chosen = primary or ("query" if not asked or "query" in asked else asked[0])
    wanted = {*(asked or LEVELS), chosen}
    alone = [level for level in LEVELS if level in wanted and level != "query" and runs < 2]
    if chosen in alone:
        raise DataError(f"the {chosen} level compares runs, and only one has both scores and quality")
    warnings = [f"There is only one run, so nothing at the {' and '.join(alone)} level."] if asked and alone else []
    return tuple(level for level in LEVELS if level in wanted and level not in alone), chosen, warnings
