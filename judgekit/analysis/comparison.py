"""The comparison: score and quality tables in, one row per coefficient and a decision out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from judgekit.analysis.background import Background
from judgekit.analysis.case import Case
from judgekit.analysis.collect import Collector
from judgekit.analysis.decision import Decision, decide_on, no_decision
from judgekit.analysis.differences import DIFFERENCE_COLUMNS, difference_table
from judgekit.analysis.flags import Flagger
from judgekit.analysis.inputs import Inputs, Pairing, at_every_depth, outcome_of
from judgekit.analysis.intervals import MIN_DIFFERING
from judgekit.analysis.leakage import same_by_construction
from judgekit.analysis.levels import LEVELS, Resamples
from judgekit.analysis.measures import best_measures, cutoff_of
from judgekit.analysis.modes import by_mode, modes_of, of_mode
from judgekit.analysis.nesting import Nesting
from judgekit.analysis.primary import Primary, choose_primary
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.analysis.unpaired import UnpairedRatings, is_unpaired, one_value, unpaired_ratings
from judgekit.analysis.wording import names_of, plural
from judgekit.answers.declared import named, scaled
from judgekit.answers.imported import UNCHECKED, read_ratings
from judgekit.answers.unanswerable import unanswerable_in
from judgekit.answers.wide import taken_apart
from judgekit.client.model_drift import mixed_answers
from judgekit.data.files import read_table
from judgekit.data.tables import ALL, SCORES, UNDECLARED
from judgekit.errors import DataError, UsageError, not_among
from judgekit.metrics import Evaluation
from judgekit.notebook import NotebookRepr
from judgekit.progress import Event, Progress, silent
from judgekit.rules import DeclaredOutcome, Rules

AsQuality = str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]
AsScores = Evaluation | AsQuality
AsWide = Mapping[str, str | Path | pd.DataFrame]
_KEYS: Final = ("labeling", "measure", "run", "level", "depth", "quality_metric", "model")
_ONLY: Final = ("labelings", "runs", "measures", "depths", "metrics", "models")


@dataclass(frozen=True, repr=False)
class Comparison(NotebookRepr):
    """What came out.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        decision: what to do, for what reason, and what could overturn it: a list of claims.
        differences: one row per pair of labelings and coefficient, for the quality of the primary cell: difference,
            interval, p, p by Holm over all pairs of the same cell and coefficient (none for pairs with a labeling
            that is the outcome by construction).
        details: one row per cell: how many queries went in, what share of its cases each labeling lacks, the largest
            tau-b attainable with the same values.
        warnings: sentences for the user.
        settings: what the numbers depend on: resamples, seed, confidence, margin_points.
        modes: the comparison of each mode of answering, where the quality table has several, columns of `COMPARISON`
            and ``mode``; the table and the decision are about one of them alone.
    """

    table: pd.DataFrame
    decision: Decision
    differences: pd.DataFrame
    details: pd.DataFrame
    warnings: tuple[str, ...]
    settings: Mapping[str, float] = field(default_factory=dict)
    modes: pd.DataFrame | None = None

    @property
    def primary(self) -> Primary:
        """The cell that the decision is about."""
        return self.decision.primary

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
        order = [*keys, "concordance", "ci_low", "ci_high", "tau_b", "rho", "r", "r_pooled", "tau_ap"]
        return pd.DataFrame(wide[[name for name in order if name in wide.columns]])


@one_thread
def compare(
    scores: AsScores | AsWide,
    quality: AsScores | None = None,
    rules: Rules | None = None,
    *,
    outcome: str | DeclaredOutcome | None = None,
    model: str | None = None,
    mode: str | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
    pairing: Pairing = "matched",
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
        background: what the tables do not say of themselves: costs and prices, who answered, kinds and groups.
        progress: is told about every panel (measure x metric x model x depth).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: something asked for does not exist, or what is given is not a table.
    """
    work = _Comparing(
        rules=rules or Rules(),
        outcome=DeclaredOutcome(outcome) if isinstance(outcome, str) else outcome or DeclaredOutcome(),
        background=background or Background(),
        only=dict(only or {}),
        pairing=pairing,
        mode=mode,
        model=model,
        progress=progress,
    )
    return work.compared(scores, quality)


@dataclass
class _Comparing:
    """One comparison: what it was asked, and what of it is known so far."""

    rules: Rules
    outcome: DeclaredOutcome
    background: Background
    only: dict[str, Collection[Any]]
    pairing: Pairing
    mode: str | None
    model: str | None
    progress: Progress
    kinds: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] | None = None
    known: set[tuple[str, str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    ratings: pd.DataFrame = field(default_factory=pd.DataFrame)

    def compared(self, given_scores: AsScores | AsWide, given_quality: AsScores | None) -> Comparison:
        """Return the comparison of two tables."""
        for name in self.only:
            if name not in _ONLY:
                raise UsageError(f"only: {not_among('key', name, _ONLY)}")
        scores, quality = self._tables(given_scores, given_quality)
        scores, quality = self._without_unanswerable(scores, quality)
        one_mode = of_mode(quality, self.mode)
        inputs = Inputs.read(scores, one_mode, self.only, self.background.lower)
        plan = inputs.plan(self._depths, self.pairing)
        if _means_only(inputs) and len(inputs.runs) < 2:
            raise DataError(
                "a single run needs values per query, but a table holds only means (query_id 'all'); scores per query"
                " come from `judgekit score --per-query`"
            )
        cell, choices = self._cell(inputs, plan, quality)
        known = same_by_construction(self.background.needs, self.background.answering, inputs.metrics)
        self.known = known | set(self.background.by_construction)
        work = self._worked_out(inputs, plan, cell, self.progress)
        modes = None
        if cell.mode and not _means_only(inputs):
            modes = by_mode(quality, cell, partial(self._of_one_mode, inputs, scores, cell))
        if cell.mode and modes is None:
            choices.append(
                f"The modes {', '.join(modes_of(quality))} share no question with values, so they are not compared."
            )
        obstacle, accepted = self._obstacle(inputs, one_mode)
        table, details = work.tables()
        warnings = self._warnings(work, cell)
        return Comparison(
            table=table.assign(mode=cell.mode) if cell.mode else table,
            decision=self._decision(work, one_mode, obstacle),
            differences=difference_table(work.differences, list(DIFFERENCE_COLUMNS)),
            details=details,
            warnings=tuple(dict.fromkeys(chain(self.notes, inputs.warnings, choices, warnings, accepted))),
            settings={
                "resamples": self.rules.resamples,
                "seed": self.rules.seed,
                "confidence": self.rules.confidence,
                "margin_points": self.rules.margin_points,
            },
            modes=modes,
        )

    @property
    def _depths(self) -> list[int] | None:
        return sorted(self.only["depths"]) if "depths" in self.only else None

    def _taken_apart(self, given: AsScores | AsWide) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the scores and the outcome that wide tables of another tool hold."""
        by_run = given if isinstance(given, Mapping) else {"": given}
        wide = taken_apart(by_run, self.outcome)  # type: ignore[arg-type]  # checked there
        self.notes += wide.notes
        return wide.scores, wide.quality

    def _tables(
        self, given_scores: AsScores | AsWide, given_quality: AsScores | None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both tables as they were given, and note what they say beside their values."""
        if given_quality is None:
            given_scores, given_quality = self._taken_apart(given_scores)
        if isinstance(given_scores, Evaluation):
            if self.background.notes is None:
                self.background = replace(self.background, notes=given_scores.notes)
            if not self.background.lists:
                self.background = replace(self.background, lists=given_scores.lists)
            given_scores = given_scores.scores()
        if isinstance(given_quality, Evaluation):
            if not self.background.quality:
                self.background = replace(self.background, quality=_quality_in_words(given_quality))
            given_quality = outcome_of(given_quality)
        scores = _table(given_scores, partial(read_table, SCORES), "scores")
        quality = _table(given_quality, partial(read_ratings, outcome=self.outcome, notes=self.notes), "quality")
        _check_order(scores, quality)
        quality = scaled(quality, self.outcome, notes=self.notes)
        self.ratings = named(quality)
        if self.outcome.several:
            quality = one_value(quality)
        both = quality, scores
        self.kinds = _named_by("by", self.rules.by, self.background.kinds, both) or {}
        self.groups = _named_by("groups", self.rules.groups, self.background.groups, both)
        return scores, at_every_depth(quality, scores, self._depths)

    def _without_unanswerable(self, scores: pd.DataFrame, quality: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both tables without the questions that nothing answers, and note how many there are."""
        gone = {*self.background.unanswerable, *unanswerable_in(scores), *unanswerable_in(quality)}
        mine, theirs = (table["query_id"].isin(gone) for table in (scores, quality))
        if left_out := quality["query_id"][theirs].nunique():
            self.notes.append(f"{plural(left_out, 'question')} that nothing answers: left out of all comparisons.")
        return scores[~mine], quality[~theirs]

    def _cell(
        self, inputs: Inputs, plan: Sequence[tuple[str, str, str, int]], quality: pd.DataFrame
    ) -> tuple[Primary, list[str]]:
        """Return the primary cell, and sentences on choices that were made for the user."""
        rules, modes = self.rules, modes_of(quality)
        cell, choices = choose_primary(
            inputs, plan, measure=rules.primary, metric=self.outcome.outcome, model=self.model, use=rules.use
        )
        self.outcome = replace(self.outcome, outcome=cell.metric)
        if len(modes) > 1 and modes_of(_of_cell(of_mode(quality, self.mode), cell)):
            cell = replace(cell, mode=self.mode or modes[0])
            if not self.mode:
                first = f"No mode of answering was chosen: the decision is about {cell.mode!r}, the first of"
                choices.append(f"{first} {', '.join(modes)}.")
        return cell, choices

    def _worked_out(
        self,
        inputs: Inputs,
        plan: Sequence[tuple[str, str, str, int]],
        cell: Primary,
        progress: Progress = silent,
        *,
        pairs: bool = True,
    ) -> Collector:
        grouped = None
        if self.groups is not None:
            # A query that is not named stands alone.
            names = [self.groups.get(query, f"\0{query}") for query in inputs.queries]
            grouped = np.unique(names, return_inverse=True)[1]
        levels = LEVELS if len(inputs.runs) > 1 else ("query",)
        matrix = resample_matrix(len(inputs.queries), self.rules.resamples, self.rules.seed, grouped)
        background = self.background
        work = Collector(
            inputs=inputs,
            cell=cell,
            levels=("system",) if _means_only(inputs) else levels,
            resamples=Resamples(matrix, grouped),
            rules=self.rules,
            flagger=Flagger(
                inputs,
                by_construction=self.known,
                needs=background.needs,
                answering=background.answering,
                nesting=Nesting(background.lists, inputs.queries),
                notes=background.notes,
            ),
            controls=background.controls,
            pairs=pairs,
        )
        # Measures that are held against the same answers are worked out together.
        for done, panel in enumerate(sorted(plan, key=lambda each: each[1:])):
            progress(Event("compare", done, len(plan)))
            work.panel(inputs.panel(*panel))
        progress(Event("compare", len(plan), len(plan)))
        return work

    def _of_one_mode(self, inputs: Inputs, scores: pd.DataFrame, cell: Primary, rows: pd.DataFrame) -> Collector:
        """Work out one mode, for the measures that are held against the answers of the primary cell."""
        fitting = [m for m in inputs.measures if cutoff_of(m) in (None, cell.depth)] + [cell.measure]
        asked: dict[str, Collection[Any]] = {
            "metrics": [cell.metric],
            "models": [cell.model],
            "depths": [cell.depth],
            "measures": fitting,
        }
        one_mode = Inputs.read(scores, rows, self.only | asked, self.background.lower)
        return self._worked_out(one_mode, one_mode.plan([cell.depth], self.pairing), cell, pairs=False)

    def _obstacle(self, inputs: Inputs, quality: pd.DataFrame) -> tuple[str, list[str]]:
        """Return why there can be no decision, "" where there can, and what was accepted."""
        mix = mixed_answers(quality)
        if self.background.obstacle:
            return self.background.obstacle, []
        if _means_only(inputs):
            return "The tables hold only means over queries, so no interval can be computed.", []
        if mix and not self.rules.accept_mixed_models:
            return f"{mix}. Answer again with one of them, or accept it with accept_mixed_models.", []
        return "", [f"{mix}."] if mix else []

    def _decision(self, work: Collector, quality: pd.DataFrame, obstacle: str) -> Decision:
        cell, inputs = work.cell, work.inputs
        if obstacle:
            return no_decision(cell, obstacle)
        panel, found = work.primary
        kinds = {
            kind: np.array([self.kinds.get(query) == kind for query in inputs.queries])
            for kind in sorted(set(self.kinds.values()))
        }
        rows = _of_cell(quality, cell)
        return decide_on(
            Case(
                primary=cell,
                panel=panel,
                found=found,
                resamples=work.resamples,
                rules=self.rules,
                background=self.background,
                declared=self.outcome,
                constructed=frozenset(name for name in panel.labelings if work.flagger.is_outcome(panel, name)),
                closed_book=inputs.closed_book.get((panel.metric, cell.model)),
                kinds=kinds,
                unchecked="contexts" in rows and bool((rows["contexts"] == UNCHECKED).any()),
                unpaired=self._unpaired(cell, panel.runs),
            )
        )

    def _unpaired(self, cell: Primary, runs: Sequence[str]) -> UnpairedRatings | None:
        """Return the means of ratings that are about one run each; None where questions compare the runs."""
        rows = _of_cell(self.ratings, cell)
        if "run" not in rows.columns or len(runs) < 2:
            return None
        rows = rows[rows["depth"] == cell.depth] if "depth" in rows.columns else rows
        random = self.outcome.assigned is not None
        if not random and not is_unpaired(rows[rows["run"].isin(list(runs))]):
            return None
        cluster = self.outcome.cluster
        if cluster is not None and cluster not in rows.columns:
            raise UsageError(f"cluster: the ratings have no column {cluster!r}")
        return unpaired_ratings(rows, runs, cluster=cluster, random=random, confidence=self.rules.confidence)

    def _warnings(self, work: Collector, cell: Primary) -> Iterator[str]:
        """Yield what was left out, and what is too little known to claim anything of."""
        yield from work.omissions()
        count = work.resamples.units(np.ones(len(work.inputs.queries), np.bool_))
        if self.groups is not None and count < MIN_DIFFERING:
            yield f"Only {count} groups of queries: intervals are rough, and no difference is claimed."
        # A table of one's own says nothing of who answered; an experiment's labelings that ask nobody need not know.
        needs = self.background.needs
        if cell.model == UNDECLARED and (not needs or any(need.asked for need in needs.values())):
            yield (
                "Which model answered is not declared (answered_by, or a column 'model'): labels made by the same model"
                " cannot be marked."
            )


def _check_order(scores: pd.DataFrame, quality: pd.DataFrame) -> None:
    """Refuse scores without the columns of scores, and ask for the other order where the second table has them."""
    lacking = [name for name in ("labeling", "measure") if name not in scores.columns]
    if lacking:
        swapped = all(name in quality.columns for name in ("labeling", "measure"))
        hint = "; the second table has them: give the scores first, then the quality" if swapped else ""
        raise UsageError(f"the scores table lacks column {' and '.join(map(repr, lacking))}{hint}")


def _means_only(inputs: Inputs) -> bool:
    return inputs.queries == (ALL,)


def _of_cell(quality: pd.DataFrame, cell: Primary) -> pd.DataFrame:
    """Return the rows of the quality table that a cell is about."""
    rows = named(quality)
    return rows[(rows["metric"] == cell.metric) & (rows["model"] == cell.model)]


def _quality_in_words(evaluation: Evaluation) -> str:
    """Return what quality means that is scored by people's labels."""
    rows = evaluation.scores()
    measures, labelings = (list(dict.fromkeys(rows[column])) for column in ("measure", "labeling"))
    return f"{names_of(measures)} by {names_of(labelings)}"


def decide(scores: AsScores, quality: AsScores, rules: Rules | None = None, **given: Any) -> Decision:
    """Return the decision that `compare` comes to, with its arguments: print it, or show it in a notebook."""
    return compare(scores, quality, rules, **given).decision


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
