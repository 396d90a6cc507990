"""The comparison: score and quality tables in, one row per coefficient and a verdict out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.collect import Collector
from judgekit.analysis.controls import CONTROL_COLUMNS
from judgekit.analysis.cost import check_costs, frontier
from judgekit.analysis.differences import DIFFERENCE_COLUMNS
from judgekit.analysis.flags import Flagger
from judgekit.analysis.gain import Enough
from judgekit.analysis.inputs import Inputs, Pairing, at_every_depth
from judgekit.analysis.intervals import MIN_DIFFERING
from judgekit.analysis.leakage import Answering, same_by_construction, shared
from judgekit.analysis.levels import LEVELS, Resamples
from judgekit.analysis.measures import best_measures, cutoff_of
from judgekit.analysis.modes import Modes, by_mode, modes_of, of_mode
from judgekit.analysis.primary import CHOOSE_RUNS, settle
from judgekit.analysis.resampling import one_thread, resample_matrix
from judgekit.analysis.verdict import Verdict
from judgekit.answers.imported import named, read_ratings
from judgekit.client.origins import mixed_answers
from judgekit.data.files import read_table
from judgekit.data.tables import ALL, SCORES, UNDECLARED
from judgekit.errors import DataError, UsageError, not_among
from judgekit.metrics import Evaluation
from judgekit.notebook import Shown
from judgekit.progress import Event, Progress, silent

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs

__all__ = ["Comparison", "compare", "plan_queries"]

AsQuality = str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]
AsScores = Evaluation | AsQuality
_KEYS: Final = ("labeling", "measure", "run", "level", "depth", "quality_metric", "model")


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """What came out.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        verdicts: the verdict on the primary cell for each use, the one that was asked for first.
        independent: the same for the answers of a model that no labeling used, by that model; empty where every
            answering model was used, or none.
        gains: decision gain per labeling, and without each run in turn, for the primary cell: rows ``labeling,
            without, gain, ci_low, ci_high``, in the unit of quality. The labeling ``answers`` is picking by the answers
            themselves, ``any choice`` the most that any choice could win.
        fidelity: what paired tests of all pairs of runs find, see `judgekit.analysis.fidelity`.
        top: the best runs only, likewise; empty with fewer than ten runs.
        differences: one row per pair of labelings and coefficient, for the quality of the primary cell: difference,
            interval, p, p by Holm over all pairs of the same cell and coefficient (none for pairs with a labeling
            that is the outcome by construction), and per run Williams' t and Steiger's z for r and rho.
        details: one row per cell: how many queries went in, what share of its cases each labeling lacks, the largest
            tau-b attainable with the same values, the share of resamples without a concordance.
        controls: concordance of each control by use, see `judgekit.analysis.controls`.
        cases: how scores and quality of the primary cell fall together: rows ``labeling, score, quality, n``, the
            number of queries and runs with about this score (of a measure of which less is better, its negative) and
            quality.
        costs: cost beside the concordance of the primary cell, with the frontier.
        warnings: sentences for the user.
        settings: what the numbers depend on: resamples, seed, confidence, keep.
        modes: the modes of answering side by side, where the quality table has several; the table and the verdicts are
            about one of them alone.
    """

    table: pd.DataFrame
    verdicts: Mapping[str, Verdict]
    gains: pd.DataFrame
    fidelity: pd.DataFrame
    top: pd.DataFrame
    differences: pd.DataFrame
    details: pd.DataFrame
    controls: pd.DataFrame
    cases: pd.DataFrame
    costs: pd.DataFrame
    warnings: tuple[str, ...]
    independent: Mapping[str, Mapping[str, Verdict]] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    modes: Modes | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict for the use that was asked for."""
        return next(iter(self.verdicts.values()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict.headline}>"

    def best_at_k(
        self, coefficient: str = "concordance", *, level: str | None = None, run: str | None = None
    ) -> pd.DataFrame:
        """Return each labeling's best measure at each k, chosen after looking, with the primary one beside it.

        This is the rule of the eRAG paper's Figure 1.

        Args:
            coefficient: by which.
            level: where; that of the verdict by default.
            run: of which run; the one that the verdict is about, most often ``all``, by default.

        Returns:
            As `judgekit.analysis.measures.best_measures` does.

        Raises:
            UsageError: the table has no such coefficient, level or run.
        """
        cell, rows = self.verdict.primary, self.table
        wanted = {"coefficient": coefficient, "level": level or cell.level, "run": run or cell.run}
        for column, value in {**wanted, "quality_metric": cell.metric, "model": cell.model}.items():
            have = list(rows[column].unique())
            rows = rows[rows[column] == value]
            if rows.empty:
                raise UsageError(not_among(column.replace("_", " "), value, have))
        return best_measures(rows, cell.measure)

    def wide(self) -> pd.DataFrame:
        """Return the table with one row per cell, a column per coefficient, and the interval of the concordance."""
        keys = [*_KEYS, "n"]
        wide = self.table.pivot(index=keys, columns="coefficient", values="value").reset_index()
        ends = self.table.loc[self.table["coefficient"] == "concordance", [*keys, "ci_low", "ci_high"]]
        wide = wide.rename_axis(columns=None).merge(ends, on=keys, how="left")
        order = [*keys, "concordance", "ci_low", "ci_high", "tau_b", "rho", "r", "tau_ap", "rbo"]
        return pd.DataFrame(wide[[name for name in order if name in wide.columns]])


@one_thread
def compare(
    scores: AsScores,
    quality: AsQuality,
    *,
    use: str | None = None,
    labelings: Collection[str] | None = None,
    runs: Collection[str] | None = None,
    measures: Collection[str] | None = None,
    depths: Sequence[int] | None = None,
    metrics: Collection[str] | None = None,
    models: Collection[str] | None = None,
    primary: str | None = None,
    primary_metric: str | None = None,
    primary_model: str | None = None,
    primary_depth: int | None = None,
    mode: str | None = None,
    keep: float = 0.5,
    margin_points: float | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 1,
    pairing: Pairing = "matched",
    lower: Collection[str] = (),
    groups: Mapping[str, str] | None = None,
    controls: Collection[str] = (),
    twins: Mapping[str, Mapping[str, float]] | None = None,
    costs: pd.DataFrame | None = None,
    needs: Mapping[str, Needs] | None = None,
    answering: Mapping[str, Answering] | None = None,
    by_construction: Collection[tuple[str, str, str]] = (),
    notes: pd.DataFrame | None = None,
    accept_mixed_models: bool = False,
    obstacle: str = "",
    incomparable: str = "",
    progress: Progress = silent,
) -> Comparison:
    """Compare how well the scores under each labeling follow answer quality.

    Args:
        scores: per-query scores, columns of `SCORES`: a table, a file, several of these, or what `judgekit.score`
            returned; rows with query_id ``all`` are ignored, but where a
            table has no others: then means are compared, at system level, without intervals and without a verdict.
            Columns ``low`` and ``high`` bound the scores over all that missing labels may be (as scoring with
            ``missing="bounds"`` gives them): then every claim holds whatever these labels are.
        quality: answer quality per query, columns of `QUALITY`: a table, a file or several; depth 0 with run ``all``
            is closed book. Run, depth, model and metric may be left out where there is only one (`RATINGS`).
        use: what the labels are wanted for, ``choose-runs`` (with two or more runs the default) or
            ``find-questions``. Both verdicts are made; this one leads.
        labelings: the labelings to look at, like the next five everything by default.
        runs: the runs to look at.
        measures: the measures to look at.
        depths: the answer depths to look at.
        metrics: the answer metrics to look at.
        models: the answer models to look at.
        primary: the measure that the verdict is about; nDCG at the largest cutoff by default, with a warning.
        primary_metric: the answer metric of the primary cell; the first by name by default, with a warning.
        primary_model: its answer model; likewise.
        primary_depth: its answer depth; the primary measure's cutoff, else the largest, by default.
        mode: of answering, where the quality table has several (column ``mode``): everything is about the answers of
            this one, and ``modes`` of the comparison holds the others beside it; the first by default, with a warning.
        keep: the share of the best labeling's decision gain that a cheaper one must keep.
        margin_points: what it may lose instead, in points (hundredths of the quality's unit).
        confidence: of the intervals and of every claim; at least .5.
        resamples: number of bootstrap resamples of the queries, the same for everything.
        seed: of the resamples.
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only; ``all`` also the others,
            flagged.
        lower: measures, beside those known, whose small values are the good ones.
        groups: the group of each query whose queries go together (paraphrases, questions about one document):
            groups are resampled, not queries.
        controls: labelings of the scores table that are controls: they never win.
        twins: per labeling and query the mean label over the query's pool, the labeling's question-only twin.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``request_seconds``.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were obtained, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        accept_mixed_models: whether a verdict may rest on answers that come from several models under one name, as
            the quality table's ``reply_model`` says.
        obstacle: a sentence that says why there can be no verdict, if there is a reason that the tables do not show.
        incomparable: likewise, why the primary measure does not compare these runs.
        progress: is told about every panel (measure x metric x model x depth).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist, or what is given is not a table.
    """
    if isinstance(scores, Evaluation):
        notes = scores.notes if notes is None else notes
        scores = scores.scores()
    scores = _table(
        scores, partial(read_table, SCORES), "scores must be a table, a file or what judgekit.score returned"
    )
    quality = _table(quality, read_ratings, "quality must be a table or a file")
    quality = at_every_depth(quality, scores, depths, whole=False)
    if not 0.5 <= confidence < 1 or not 0 < keep <= 1:
        raise UsageError(
            f"confidence must be from 0.5 to below 1 (not {confidence:g}), keep above 0 and at most 1 (not {keep:g})"
        )
    if margin_points is not None and margin_points < 0:
        raise UsageError(f"margin_points must be at least 0, not {margin_points}")
    several, all_modes = modes_of(quality), quality
    quality = of_mode(quality, mode)
    read = partial(Inputs.read, scores, labelings=labelings, runs=runs, lower=lower)
    inputs = read(quality, measures=measures, metrics=metrics, models=models, depths=depths)
    plan = list(inputs.plan(depths, pairing))
    means_only = inputs.queries == (ALL,)
    if means_only and len(inputs.runs) < 2:
        raise DataError(
            "a single run needs values per query, and a table holds only means (query_id 'all'); scores per query come"
            " from `judgekit score --per-query`"
        )
    if means_only:
        obstacle = obstacle or "The tables hold only means over queries, so no interval can be computed."
    cell, choices = settle(
        inputs, plan, measure=primary, metric=primary_metric, model=primary_model, use=use, depth=primary_depth
    )
    about = named(quality)
    if len(several) > 1 and modes_of(about[(about["metric"] == cell.metric) & (about["model"] == cell.model)]):
        cell = replace(cell, mode=mode or several[0])
        told = f"No mode of answering was chosen: the verdict is about {cell.mode!r}, the first of"
        choices += [] if mode else [f"{told} {', '.join(several)}."]
    needs, answering = needs or {}, answering or {}
    known = same_by_construction(needs, answering, inputs.metrics) | set(by_construction)

    def worked_out(
        inputs: Inputs, plan: Sequence[tuple[str, str, str, int]], progress: Progress = silent, pairs: bool = True
    ) -> Collector:
        grouped = None if groups is None else _groups(inputs.queries, groups)
        work = Collector(
            inputs=inputs,
            cell=cell,
            levels=("system",) if means_only else LEVELS if len(inputs.runs) > 1 else ("query",),
            resamples=Resamples(resample_matrix(len(inputs.queries), resamples, seed, grouped), seed, grouped),
            confidence=confidence,
            enough=Enough(keep, None if margin_points is None else margin_points / 100),
            flagger=Flagger(inputs, known, needs, answering, notes),
            controls=controls,
            twins={
                name: np.array([values.get(query, np.nan) for query in inputs.queries], np.float64)
                for name, values in (twins or {}).items()
            },
            pairs=pairs,
        )
        # Measures that are held against the same answers are worked out together.
        for done, panel in enumerate(sorted(plan, key=lambda one: one[1:])):
            progress(Event("compare", done, len(plan)))
            work.panel(inputs.panel(*panel))
        progress(Event("compare", len(plan), len(plan)))
        return work

    def of_one(rows: pd.DataFrame) -> Collector:
        """Work out one mode, for the measures that are held against the answers of the primary cell."""
        fitting = [m for m in inputs.measures if cutoff_of(m) in (None, cell.depth)] + [cell.measure]
        one = read(rows, measures=dict.fromkeys(fitting), depths=[cell.depth])
        return worked_out(one, list(one.plan([cell.depth], pairing)), pairs=False)

    work = worked_out(inputs, plan, progress)
    side_by_side = by_mode(all_modes, cell, of_one, confidence) if cell.mode and not means_only else None
    if cell.mode and side_by_side is None:
        choices.append(f"The modes {', '.join(several)} share no question with values, so they are not compared.")
    price = check_costs(costs)
    mix = mixed_answers(quality)
    accepted = [f"{mix}."] if mix and accept_mixed_models else []
    if mix and not accepted:
        obstacle = obstacle or f"{mix}. Answer again with one of them, or accept it with accept_mixed_models."

    def verdicts(model: str) -> dict[str, Verdict]:
        shares = {n: shared(need, answering.get(model), cell.metric) for n, need in needs.items()}
        made = work.verdicts(price, shares, model, obstacle=obstacle, incomparable=incomparable)
        if model != UNDECLARED or (needs and not any(need.asked for need in needs.values())):
            return made
        return {use: replace(one, details=(*one.details, _UNDECLARED)) for use, one in made.items()}

    made = verdicts(cell.model)
    used = {endpoint.model for need in needs.values() for endpoint in need.asked}
    apart = [m for m in inputs.models if m != cell.model and m not in used] if cell.model in used else []
    fidelity, top = work.looks()
    return Comparison(
        table=work.table().assign(**({"mode": cell.mode} if cell.mode else {})),
        verdicts=made,
        gains=_gains(made.get(CHOOSE_RUNS)),
        fidelity=fidelity,
        top=top,
        differences=pd.DataFrame(work.differences, columns=list(DIFFERENCE_COLUMNS)),
        details=work.details(),
        controls=pd.DataFrame(work.control_rows, columns=list(CONTROL_COLUMNS)),
        cases=work.cases(),
        costs=frontier(price, next(iter(made.values()))),
        warnings=tuple(
            dict.fromkeys(
                [*inputs.warnings, *choices, *work.omissions(), *_few_groups(work.resamples.groups), *accepted]
            )
        ),
        independent={model: verdicts(model) for model in apart[:1]},
        settings={"resamples": resamples, "seed": seed, "confidence": confidence, "keep": keep},
        modes=side_by_side,
    )


_UNDECLARED: Final = (
    "Which model answered is not declared (answered_by, or a column 'model'): labels made by the same model cannot be"
    " marked."
)


def _table(given: object, read: Callable[[str | Path], pd.DataFrame], expected: str) -> pd.DataFrame:
    """Return what is given as one table: a DataFrame, a file, or several of these, one below the other."""
    parts: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    odd = [type(each).__name__ for each in parts if not isinstance(each, str | Path | pd.DataFrame)]
    if odd or not parts:
        raise UsageError(f"{expected}, or several; got {odd[0] if odd else 'none'}")
    tables = [each if isinstance(each, pd.DataFrame) else read(each) for each in parts]
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def _groups(queries: Sequence[str], groups: Mapping[str, str]) -> npt.NDArray[np.intp]:
    """Return the group of each query as a number; a query that is not named stands alone."""
    names = [groups.get(query, f"\0{query}") for query in queries]
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.intp)


def _few_groups(groups: npt.NDArray[np.intp] | None) -> Iterator[str]:
    if groups is not None and len(np.unique(groups)) < MIN_DIFFERING:
        count = len(np.unique(groups))
        yield f"Only {count} groups of queries: intervals are rough, and no difference is claimed."


def _gains(verdict: Verdict | None) -> pd.DataFrame:
    """Return the decision gains of a verdict as a table."""
    rows: list[tuple[str, str, float, float, float]] = []
    if verdict is not None and verdict.found is not None and verdict.found.gains is not None:
        found, worth = verdict.found, verdict.found.gains
        for one in found.standings:
            if one.gain is not None:
                rows.append((one.labeling, "", one.gain.value, *one.gain.interval(worth.confidence)))
                for run, name in enumerate(found.runs) if len(found.runs) > 2 else ():
                    ends = one.gain.interval(worth.confidence, run)
                    rows.append((one.labeling, name, float(one.gain.without[run]), *ends))
        rows.append(("answers", "", worth.by_answers, np.nan, np.nan))
        rows.append(("any choice", "", worth.attainable, np.nan, np.nan))
    return pd.DataFrame(rows, columns=["labeling", "without", "gain", "ci_low", "ci_high"])


def plan_queries(comparison: Comparison, queries: Sequence[int] | None = None) -> pd.DataFrame:
    """Return how wide the intervals of the verdict would be with other numbers of queries.

    A standard error shrinks with the root of the number of queries; that the new queries are like the old ones is
    taken for granted. All queries count, also those on which runs do not differ.

    Args:
        comparison: the pilot.
        queries: numbers of queries; by default half, once, twice, 4 and 10 times those of the pilot.

    Returns:
        Rows ``labeling, queries, concordance_width, gain_width`` (in the unit of quality, NaN where there is no gain).

    Raises:
        DataError: there is no verdict to start from.
        UsageError: fewer than 2 queries are asked for.
    """
    found = comparison.verdict.found
    if found is None:
        raise DataError("the verdict has no interval to plan from")
    numbers = list(queries or [max(round(found.queries * times), 2) for times in (0.5, 1, 2, 4, 10)])
    if min(numbers) < 2:
        raise UsageError(f"plan at least 2 queries, not {min(numbers)}")
    rows = []
    for one in found.standings:
        low, high = (math.nan, math.nan) if one.gain is None else one.gain.interval(comparison.settings["confidence"])
        for number in numbers:
            shrink = math.sqrt(found.queries / number)
            rows.append((one.labeling, number, (one.high - one.low) * shrink, (high - low) * shrink))
    return pd.DataFrame(rows, columns=["labeling", "queries", "concordance_width", "gain_width"])
