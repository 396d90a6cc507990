"""The comparison: score and quality tables in, one row per coefficient and a decision out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from judgekit.analysis.collect import Collector
from judgekit.analysis.differences import DIFFERENCE_COLUMNS, difference_table
from judgekit.analysis.findings import CONTROL_COLUMNS, Findings
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Pairing, at_every_depth, outcome_of
from judgekit.analysis.intervals import MIN_DIFFERING
from judgekit.analysis.leakage import AnsweredBy, same_by_construction, shared
from judgekit.analysis.levels import LEVELS, Resamples
from judgekit.analysis.measures import best_measures, cutoff_of
from judgekit.analysis.modes import Modes, by_mode, modes_of, of_mode
from judgekit.analysis.money import Money, Pool, check_costs, purchase_order
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, Primary, settle
from judgekit.analysis.resampling import one_thread, resample_matrix
from judgekit.analysis.words import Decision, Situation, put
from judgekit.answers.declared import named, scaled
from judgekit.answers.imported import UNCHECKED, read_ratings
from judgekit.answers.wide import taken_apart
from judgekit.client.model_drift import mixed_answers
from judgekit.data.files import read_table
from judgekit.data.tables import ALL, SCORES, UNDECLARED
from judgekit.errors import DataError, UsageError, not_among
from judgekit.metrics import Evaluation
from judgekit.notebook import NotebookRepr
from judgekit.progress import Event, Progress, silent
from judgekit.rules import DeclaredOutcome, Rules

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs

AsQuality = str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]
AsScores = Evaluation | AsQuality
_KEYS: Final = ("labeling", "measure", "run", "level", "depth", "quality_metric", "model")
_ONLY: Final = ("labelings", "runs", "measures", "depths", "metrics", "models")


@dataclass(frozen=True)
class Background:
    """What the tables of a comparison do not say of themselves; an experiment knows all of it.

    Attributes:
        lower: measures, beside those known, whose small values are the good ones.
        controls: labelings of the scores table that are controls: they never win.
        twins: per labeling and query the mean label over the query's pool, the labeling's question-only twin.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``request_seconds``; the labeling ``answers`` is answering end to end.
        pool: how much there is to label and to answer.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were obtained, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        obstacle: a sentence that says why there can be no decision, if there is a reason that the tables do not show.
        incomparable: likewise, why the primary measure does not compare these runs.
        kinds: the kind of each question, in the place of the column ``by`` of the rules.
        quality: what quality means where it is not that of answers, such as ``nDCG@10 by NIST``.
        groups: the group of each question, in the place of their column ``groups``.
    """

    lower: Collection[str] = ()
    controls: Collection[str] = ()
    twins: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    costs: pd.DataFrame | None = None
    pool: Pool | None = None
    needs: Mapping[str, Needs] = field(default_factory=dict)
    answering: Mapping[str, AnsweredBy] = field(default_factory=dict)
    by_construction: Collection[tuple[str, str, str]] = ()
    notes: pd.DataFrame | None = None
    obstacle: str = ""
    incomparable: str = ""
    kinds: Mapping[str, str] | None = None
    groups: Mapping[str, str] | None = None
    quality: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(NotebookRepr):
    """What came out.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        decision: what to do, for how much, and how sure that is.
        independent: the decision by the answers of a model that no labeling used, by that model; empty where every
            answering model was used, or none.
        gains: decision gain per labeling, and without each run in turn, for the primary cell: rows ``labeling,
            without, gain, ci_low, ci_high``, in the unit of quality. The labeling ``answers`` is picking by the answers
            themselves.
        kinds: what was found of each labeling, over all questions and by kind, see `judgekit.analysis.findings`.
        differences: one row per pair of labelings and coefficient, for the quality of the primary cell: difference,
            interval, p, p by Holm over all pairs of the same cell and coefficient (none for pairs with a labeling
            that is the outcome by construction).
        details: one row per cell: how many queries went in, what share of its cases each labeling lacks, the largest
            tau-b attainable with the same values.
        controls: concordance of each control by use, see `judgekit.analysis.findings`.
        cases: how scores and quality of the primary cell fall together: rows ``labeling, score, quality, n``, the
            number of queries and runs with about this score (of a measure of which less is better, its negative) and
            quality.
        warnings: sentences for the user.
        settings: what the numbers depend on: resamples, seed, confidence, margin_points.
        modes: the modes of answering side by side, where the quality table has several; the table and the decision are
            about one of them alone.
    """

    table: pd.DataFrame
    decision: Decision
    gains: pd.DataFrame
    kinds: pd.DataFrame
    differences: pd.DataFrame
    details: pd.DataFrame
    controls: pd.DataFrame
    cases: pd.DataFrame
    warnings: tuple[str, ...]
    independent: Mapping[str, Decision] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    modes: Modes | None = None

    @property
    def primary(self) -> Primary:
        """The cell that the decision is about."""
        return self.decision.primary

    @property
    def purchase(self) -> pd.DataFrame:
        """The purchase order, see `judgekit.analysis.money`."""
        return self.decision.purchase

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>\n{self.decision.text}"

    def best_at_k(
        self, coefficient: str = "concordance", *, level: str | None = None, run: str | None = None
    ) -> pd.DataFrame:
        """Return each labeling's best measure at each k, chosen after looking, with the primary one beside it.

        This is the rule of the eRAG paper's Figure 1.

        Args:
            coefficient: by which.
            level: where; that of the decision by default.
            run: of which run; the one that the decision is about, most often ``all``, by default.

        Returns:
            As `judgekit.analysis.measures.best_measures` does.

        Raises:
            UsageError: the table has no such coefficient, level or run.
        """
        cell, rows = self.primary, self.table
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
        order = [*keys, "concordance", "ci_low", "ci_high", "tau_b", "rho", "r", "r_pooled", "tau_ap", "rbo"]
        return pd.DataFrame(wide[[name for name in order if name in wide.columns]])


@one_thread
def compare(
    scores: AsScores | Mapping[str, str | Path | pd.DataFrame],
    quality: AsScores | None = None,
    rules: Rules | None = None,
    *,
    outcome: str | DeclaredOutcome | None = None,
    model: str | None = None,
    mode: str | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
    pairing: Pairing = "matched",
    money: Money | None = None,
    background: Background | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare how well the scores under each labeling follow answer quality, and say what to do.

    Args:
        scores: per-query scores, columns of `SCORES`: a table, a file, several of these, or what `judgekit.score`
            returned; rows with query_id ``all`` are ignored, but where a
            table has no others: then means are compared, at system level, without intervals and without a decision.
            Columns ``low`` and ``high`` bound scores that missing labels leave open (`judgekit.score` gives them): then
            every claim holds whatever these labels are, and where nothing bounds a score none is made. Without
            ``quality``, a wide table of any tool, or several by the names of their runs: a row for each answer, a
            column for each metric, one of them the outcome; see `judgekit.answers.wide`.
        quality: answer quality per query, columns of `QUALITY`: a table, a file or several; depth 0 with run ``all``
            is closed book. Run, depth, model and metric may be left out where there is only one (`RATINGS`). Or what
            `judgekit.score` returned for people's labels: then scores are to follow those of a run on a question.
        rules: what the decision is about, when something is claimed, and the resampling. Without a primary measure or
            metric a warning says which was taken. The columns ``by`` and ``groups`` are of the quality or the scores
            table, unless ``background`` holds them.
        outcome: the metric or rating that the decision is about, or all that is declared of it, such as its scale; the
            first metric by name by default, with a warning. Values are put on 0 to 1.
        model: the answering model that the decision is about; the first by name by default, with a warning.
        mode: of answering, where the quality table has several (column ``mode``): everything is about the answers of
            this one, and ``modes`` of the comparison holds the others beside it; the first by default, with a warning.
        only: what to look at, everything by default: any of ``labelings, runs, measures, depths, metrics, models``.
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only; ``all`` also the others,
            flagged.
        money: what things cost, and what may be spent.
        background: what the tables do not say of themselves.
        progress: is told about every panel (measure x metric x model x depth).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist, or what is given is not a table.
    """
    rules, told, wanted = rules or Rules(), background or Background(), dict(only or {})
    for name in wanted:
        if name not in _ONLY:
            raise UsageError(f"only: {not_among('key', name, _ONLY)}")
    declared = DeclaredOutcome(outcome) if isinstance(outcome, str) else outcome or DeclaredOutcome()
    left_out: list[str] = []
    if isinstance(scores, Evaluation):
        told = told if told.notes is not None else replace(told, notes=scores.notes)
        scores = scores.scores()
    if quality is None:
        wide = taken_apart(scores if isinstance(scores, Mapping) else {"": scores}, declared)  # type: ignore[dict-item]  # checked there
        scores, quality = wide.scores, wide.quality
        left_out += [f"Columns without numbers are not compared: {', '.join(wide.unused)}."] if wide.unused else []
    scores = _table(scores, partial(read_table, SCORES), "scores")
    quality = outcome_of(quality) if isinstance(quality, Evaluation) else quality
    quality = _table(quality, partial(read_ratings, outcome=declared, notes=left_out), "quality")
    quality = scaled(quality, declared, notes=left_out)
    kinds = _named_by("by", rules.by, told.kinds, (quality, scores)) or {}
    groups = _named_by("groups", rules.groups, told.groups, (quality, scores))
    depths = sorted(wanted["depths"]) if "depths" in wanted else None
    quality = at_every_depth(quality, scores, depths, whole=False)
    several, all_modes = modes_of(quality), quality
    quality = of_mode(quality, mode)
    inputs = Inputs.read(scores, quality, wanted, told.lower)
    plan = inputs.plan(depths, pairing)
    means_only, obstacle = inputs.queries == (ALL,), told.obstacle
    if means_only and len(inputs.runs) < 2:
        raise DataError(
            "a single run needs values per query, but a table holds only means (query_id 'all'); scores per query come"
            " from `judgekit score --per-query`"
        )
    if means_only:
        obstacle = obstacle or "The tables hold only means over queries, so no interval can be computed."
    cell, choices = settle(inputs, plan, measure=rules.primary, metric=declared.outcome, model=model, use=rules.use)
    declared = replace(declared, outcome=cell.metric)
    about = named(quality)
    about = about[(about["metric"] == cell.metric) & (about["model"] == cell.model)]
    if len(several) > 1 and modes_of(about):
        cell = replace(cell, mode=mode or several[0])
        first = f"No mode of answering was chosen: the decision is about {cell.mode!r}, the first of"
        choices += [] if mode else [f"{first} {', '.join(several)}."]
    known = same_by_construction(told.needs, told.answering, inputs.metrics) | set(told.by_construction)

    def worked_out(
        inputs: Inputs, plan: Sequence[tuple[str, str, str, int]], progress: Progress = silent, pairs: bool = True
    ) -> Collector:
        # A query that is not named stands alone.
        names = [(groups or {}).get(query, f"\0{query}") for query in inputs.queries]
        grouped = None if groups is None else np.unique(names, return_inverse=True)[1]
        work = Collector(
            inputs=inputs,
            cell=cell,
            levels=("system",) if means_only else LEVELS if len(inputs.runs) > 1 else ("query",),
            resamples=Resamples(resample_matrix(len(inputs.queries), rules.resamples, rules.seed, grouped), grouped),
            rules=rules,
            flagger=Flagger(inputs, known, told.needs, told.answering, told.notes),
            controls=told.controls,
            twins={
                name: np.array([values.get(query, np.nan) for query in inputs.queries], np.float64)
                for name, values in told.twins.items()
            },
            kinds={
                kind: np.array([kinds.get(query) == kind for query in inputs.queries])
                for kind in sorted(set(kinds.values()))
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
        asked = wanted | {"metrics": [cell.metric], "models": [cell.model], "depths": [cell.depth], "measures": fitting}
        one = Inputs.read(scores, rows, asked, told.lower)
        return worked_out(one, one.plan([cell.depth], pairing), pairs=False)

    work = worked_out(inputs, plan, progress)
    side_by_side = by_mode(all_modes, cell, of_one, rules.confidence) if cell.mode and not means_only else None
    if cell.mode and side_by_side is None:
        choices.append(f"The modes {', '.join(several)} share no question with values, so they are not compared.")
    mix = mixed_answers(quality)
    accepted = [f"{mix}."] if mix and rules.accept_mixed_models else []
    if mix and not accepted:
        obstacle = obstacle or f"{mix}. Answer again with one of them, or accept it with accept_mixed_models."
    costs, priced = check_costs(told.costs), money or Money()

    def decision(model: str) -> Decision:
        of = {} if obstacle else work.findings(model, incomparable=told.incomparable)
        choose, find = of.get(CHOOSE_RUNS), of.get(FIND_QUESTIONS)
        clauses = {n: shared(need, told.answering.get(model), cell.metric) for n, need in told.needs.items()}
        bought = of.get(cell.use)
        order = purchase_order(bought, told.needs, costs, priced, told.pool) if bought else pd.DataFrame()
        it = Situation(
            choose,
            find,
            priced,
            told.pool,
            order,
            frozenset(name for name, need in told.needs.items() if need.existing),
            frozenset(name for name, need in told.needs.items() if need.references),
            {name: clause for name, clause in clauses.items() if clause},
            obstacle or (told.incomparable if cell.use == CHOOSE_RUNS else ""),
            "contexts" in about and bool((about["contexts"] == UNCHECKED).any()),
            declared,
        )
        return put(replace(cell, model=model), it)

    used = {endpoint.model for need in told.needs.values() for endpoint in need.asked}
    apart = [m for m in inputs.models if m != cell.model and m not in used] if cell.model in used else []
    made = decision(cell.model)
    choosing = made.findings if cell.use == CHOOSE_RUNS else made.other
    # A table of one's own says nothing of who answered; an experiment's labelings that ask nobody need not know.
    unknown = cell.model == UNDECLARED and (not told.needs or any(need.asked for need in told.needs.values()))
    count = work.resamples.units(np.ones(len(inputs.queries), np.bool_))
    few = f"Only {count} groups of queries: intervals are rough, and no difference is claimed."
    table, details = work.tables()
    return Comparison(
        table=table.assign(**({"mode": cell.mode} if cell.mode else {})),
        decision=made,
        gains=_gains(choosing),
        kinds=made.findings.table(),
        differences=difference_table(work.differences, list(DIFFERENCE_COLUMNS)),
        details=details,
        controls=pd.DataFrame(work.control_rows, columns=list(CONTROL_COLUMNS)),
        cases=work.cases(),
        warnings=tuple(
            dict.fromkeys(
                [*left_out, *inputs.warnings, *choices, *work.omissions()]
                + [few] * (groups is not None and count < MIN_DIFFERING)
                + [*accepted, *[_UNDECLARED] * unknown]
            )
        ),
        independent={model: decision(model) for model in apart[:1]},
        settings={
            "resamples": rules.resamples,
            "seed": rules.seed,
            "confidence": rules.confidence,
            "margin_points": rules.margin_points,
        },
        modes=side_by_side,
    )


def decide(scores: AsScores, quality: AsScores, rules: Rules | None = None, **given: Any) -> Decision:
    """Return the decision that `compare` comes to, with its arguments: print it, or show it in a notebook."""
    return compare(scores, quality, rules, **given).decision


_UNDECLARED: Final = (
    "Which model answered is not declared (answered_by, or a column 'model'): labels made by the same model cannot be"
    " marked."
)


def _named_by(
    rule: str, column: str | None, known: Mapping[str, str] | None, tables: Sequence[pd.DataFrame]
) -> dict[str, str] | None:
    """Return the kind or the group of each question that has one, None where nothing says any."""
    if known is not None:
        return {query: str(name) for query, name in known.items() if name}
    if column is None:
        return None
    there = next((table for table in tables if column in table.columns), None)
    if there is None:
        raise UsageError(f"{rule}: neither the quality nor the scores table has a column {column!r}")
    pairs = there[["query_id", column]].dropna().drop_duplicates().astype("str")
    twice = pairs["query_id"][pairs["query_id"].duplicated()]
    if len(twice):
        raise UsageError(f"{rule}: query {twice.iloc[0]!r} has two values in column {column!r}")
    return {query: name for query, name in zip(pairs["query_id"], pairs[column], strict=True) if name}


def _table(given: object, read: Callable[[str | Path], pd.DataFrame], name: str) -> pd.DataFrame:
    """Return what is given as one table: a DataFrame, a file, or several of these, one below the other."""
    parts: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    odd = [type(each).__name__ for each in parts if not isinstance(each, str | Path | pd.DataFrame)]
    if odd or not parts:
        expected = f"{name} must be a table, a file or the result of judgekit.score, or several"
        raise UsageError(f"{expected}; got {odd[0] if odd else 'none'}")
    tables = [each if isinstance(each, pd.DataFrame) else read(each) for each in parts]
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def _gains(found: Findings | None) -> pd.DataFrame:
    """Return the decision gains of a comparison as a table."""
    each = () if found is None else found.each
    rows = [(one.labeling, run, *gain) for one in each for run, gain in {"": one.gain, **one.without}.items()]
    rows += [("answers", "", *found.answers)] if found is not None and each else []
    return pd.DataFrame(rows, columns=["labeling", "without", "gain", "ci_low", "ci_high"])
