"""The comparison: from score and quality tables to one row per coefficient and a decision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from judgekit.analysis.background import Background
from judgekit.analysis.case import Case
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.collect import Collector
from judgekit.analysis.decision import Decision, decide_on, no_decision
from judgekit.analysis.differences import DIFFERENCE_COLUMNS, difference_table
from judgekit.analysis.inputs import Bools, Inputs, Pairing, PanelKey, at_every_depth, outcome_of, where_ok
from judgekit.analysis.intervals import MIN_DIFFERING
from judgekit.analysis.known import Known
from judgekit.analysis.leakage import same_by_construction
from judgekit.analysis.measures import best_measures, cutoff_of, known_measure, spelled_as
from judgekit.analysis.modes import modes_of, of_mode, on_common_questions
from judgekit.analysis.partly_rated import MOST, PartlyRated, partly_rated
from judgekit.analysis.primary import FIND_QUESTIONS, USES, Primary, choose_primary
from judgekit.analysis.repeats import QuestionRows, texts_in
from judgekit.analysis.samples import Sampled, column_of, means_of, sampled
from judgekit.analysis.threads import one_thread
from judgekit.analysis.unpaired import UnpairedRatings, is_unpaired, one_value, unpaired_ratings
from judgekit.analysis.wording import names_of, plural
from judgekit.answers.declared import named, scaled, turned
from judgekit.answers.direction import AS_NAMED, Directions, question
from judgekit.answers.imported import UNCHECKED, completed, read_ratings
from judgekit.answers.unanswerable import unanswerable_in
from judgekit.answers.wide import taken_apart
from judgekit.client.model_drift import mixed_answers
from judgekit.data.documents import Query
from judgekit.data.frames import AsQueries, as_queries, as_table
from judgekit.data.questions import PARTED, Repeats, questions_of, repeats_of
from judgekit.data.scores import as_scores
from judgekit.data.tables import ALL, UNDECLARED, stacked
from judgekit.errors import DataError, UsageError, not_among
from judgekit.metrics import Evaluation
from judgekit.notebook import NotebookRepr
from judgekit.progress import Progress, silent
from judgekit.rules import DeclaredOutcome, Rules

AsQuality = str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]
AsScores = Evaluation | AsQuality
AsWide = Mapping[str, str | Path | pd.DataFrame]
_KEYS: Final = ("labeling", "measure", "run", "level", "depth", "quality_metric", "model")
_ONLY: Final = ("labelings", "runs", "measures", "depths", "metrics", "models")


@dataclass(frozen=True, repr=False)
class Comparison(NotebookRepr):
    """The result of a comparison.

    Attributes:
        table: one row per coefficient, columns of `judgekit.data.tables.COMPARISON`.
        decision: what to do, why, and what could overturn it: a list of claims.
        differences: one row per pair of labelings and coefficient, for the quality of the primary cell: difference,
            interval, p, p by Holm over all pairs of the same cell and coefficient (none for pairs with a labeling
            that is the outcome by construction).
        details: one row per cell: the number of queries, the share of cases that each labeling lacks, and the largest
            tau-b that the same values can attain.
        warnings: sentences for the user.
        rules: the rules behind the numbers.
        modes: with several modes of answering: the comparison of each, columns of `COMPARISON` and ``mode``. ``table``
            and ``decision`` are about one mode.
    """

    table: pd.DataFrame
    decision: Decision
    differences: pd.DataFrame
    details: pd.DataFrame
    warnings: tuple[str, ...]
    rules: Rules = field(default_factory=Rules)
    modes: pd.DataFrame | None = None

    @property
    def primary(self) -> Primary:
        """The cell that the decision is about."""
        return self.decision.primary

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>\n{self.decision.text}"

    def best_at_k(self, coefficient: str = "tau_b", *, run: str | None = None) -> pd.DataFrame:
        """Return each labeling's best measure at each k, by run: the eRAG paper's Figure 1, over questions.

        The best measure is chosen after looking, so its value flatters the labeling and has no interval.

        Args:
            coefficient: ``tau_b``, ``rho``, ``r`` or ``concordance``.
            run: a single run, or ``all`` for the mean over runs; by default each run.

        Returns:
            Columns ``run, labeling, k, measure, value``; ``primary``, the value of the measure that was fixed in
            advance; ``measures``, the number of measures to choose from.

        Raises:
            UsageError: there is no such coefficient or run.
        """
        rows = self.table[self.table["level"] == USES[FIND_QUESTIONS]]
        rows = rows[(rows["quality_metric"] == self.primary.metric) & (rows["model"] == self.primary.model)]
        runs = [str(name) for name in dict.fromkeys(rows["run"])]
        for what, told, known in (
            ("coefficient", coefficient, [str(name) for name in dict.fromkeys(rows["coefficient"])]),
            ("run", run, runs),
        ):
            if told is not None and told not in known:
                raise UsageError(not_among(what, told, known))
        rows = rows[(rows["coefficient"] == coefficient) & (rows["depth"] > 0)]
        parts = []
        for name in [name for name in runs if name != ALL] if run is None else [run]:
            best = best_measures(rows[rows["run"] == name], self.primary.measure)
            best.insert(0, "run", name)
            parts.append(best)
        return stacked(parts)

    def wide(self) -> pd.DataFrame:
        """Return the table with one row per cell, a column per coefficient, and the interval of the concordance."""
        keys = [*_KEYS, "n"]
        wide = self.table.pivot(index=keys, columns="coefficient", values="value").reset_index()
        ends = self.table.loc[self.table["coefficient"] == "concordance", [*keys, "ci_low", "ci_high"]]
        wide = wide.rename_axis(columns=None).merge(ends, on=keys, how="left")
        # A table that was read from a file may hold fewer coefficients.
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
    queries: AsQueries | None = None,
    reverse: Collection[str] = (),
    as_given: Collection[str] = (),
    background: Background | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare how well the scores under each labeling follow answer quality, and say what to do.

    Args:
        scores: per-query scores, columns of `SCORES`: a table, a file, several of these, or what `judgekit.score`
            returned, or tables by the names of their labelings. Files of `trec_eval -q`, PyTerrier and Auto-Judge are
            read, too. Rows with query_id ``all`` are ignored, unless a table has no others: then means are compared, at
            system level, without intervals or a decision. Columns ``low`` and ``high`` bound scores that missing labels
            leave open (`judgekit.score` gives them). A labeling is compared on the scores that it has, two labelings on
            those that both have. If it lacks more than 5 % of its scores, in all or for one run, claims about it must
            hold whatever the missing ones are; if nothing bounds them, no claim is made. Without ``quality``, a wide
            table of any tool, or several by the names of their runs: a row for each answer, a column for each metric,
            one of them the outcome; see `judgekit.answers.wide`.
        quality: answer quality per query, columns of `QUALITY`: a table, a file or several; depth 0 with run ``all`` is
            closed book. Run, depth, model and metric may be left out if there is only one (`RATINGS`). Or what
            `judgekit.score` returned for people's labels: scores are then compared with those of each run on each
            question.
        rules: what the decision is about, when something is claimed, and the resampling. Without a primary measure or
            metric a warning names the one used. The columns ``by`` and ``groups`` belong to the quality or the scores
            table, unless ``background`` holds them.
        outcome: the metric or rating that the decision is about, or a `DeclaredOutcome` with its scale; by default the
            first metric by name, with a warning. Values are scaled to 0 to 1.
        model: the answering model that the decision is about; the first by name by default, with a warning.
        mode: the mode of answering to compare, if the quality table has several (column ``mode``); the others stand in
            ``modes`` of the comparison. The first by default, with a warning.
        only: what to look at, everything by default: any of ``labelings, runs, measures, depths, metrics, models``.
        pairing: ``matched`` compares a measure at cutoff c with quality at depth c only; ``all`` also the others,
            flagged.
        queries: the questions, as for `judgekit.label`: rows with the same conversation, text and language are one
            question. A column ``text`` of either table does the same; without both, each row counts as a question.
        reverse: labelings, or the outcome, for which lower is better. In a wide table, names and columns ``NAME
            direction`` say so too, if no tool disagrees; see `judgekit.answers.direction`.
        as_given: those for which higher is better, whatever their names say.
        background: facts that the tables do not hold: costs and prices, who answered, kinds and groups.
        progress: called for every panel (measure x metric x model x depth).

    Returns:
        The table of coefficients, the differences between labelings, the decision and its warnings. Quality and gains
        are in points (hundredths of the scale), coefficients between -1 and 1. Runs are compared with the best
        (Hsu, 1996); correlations over questions are those of eRAG (Salemi and Zamani, 2024).

    Raises:
        DataError: the tables cannot be read or have nothing to compare.
        UsageError: a requested name does not exist, or an argument is not a table.
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
        queries=queries,
        directions=Directions(tuple(reverse), tuple(as_given)),
    )
    return work.compared(scores, quality)


@dataclass
class _Comparing:
    """One comparison in progress: its arguments and what is known so far."""

    rules: Rules
    outcome: DeclaredOutcome
    background: Background
    only: dict[str, Collection[Any]]
    pairing: Pairing
    mode: str | None
    model: str | None
    progress: Progress
    queries: AsQueries | None = None
    directions: Directions = AS_NAMED
    lower: Collection[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] | None = None
    contradicting: int = 0
    groups: Mapping[str, str] | None = None
    known: set[tuple[str, str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    ratings: pd.DataFrame = field(default_factory=pd.DataFrame)
    samples: pd.DataFrame | None = None
    scored: pd.DataFrame = field(default_factory=pd.DataFrame)

    def compared(self, given_scores: AsScores | AsWide, given_quality: AsScores | None) -> Comparison:
        """Return the comparison of two tables."""
        for name in self.only:
            if name not in _ONLY:
                raise UsageError(f"only: {not_among('key', name, _ONLY)}")
        known = Known.of(given_scores, given_quality)
        self.background = known.with_needs(self.background)
        scores, quality = self._tables(given_scores, given_quality)
        scores, quality = self._without_unanswerable(scores, quality)
        self.scored = scores
        one_mode = of_mode(quality, self.mode)
        inputs = Inputs.read(scores, one_mode, self.only, self.background.lower, self.questions)
        # Reading its panels adds to its warnings, in the order in which all are told.
        inputs.warnings[:0] = self.notes
        self.notes = inputs.warnings
        self._merge_background(inputs.rows)
        plan = inputs.plan(self._depths, self.pairing)
        if inputs.means_only and len(inputs.runs) < 2:
            raise DataError(
                "a single run needs values per query, but a table holds only means (query_id 'all'); scores per query"
                " come from `judgekit score --per-query`"
            )
        cell = self._cell(inputs, plan, quality)
        self.background = known.with_costs(self.background, cell.model, cell.depth)
        constructed = same_by_construction(self.background.needs, self.background.answering, inputs.metrics)
        self.known = constructed | set(self.background.by_construction)
        work = self._collector(inputs, cell)
        work.work_out(plan, self.progress)
        table, details = work.tables()
        modes = None
        if cell.mode:
            table = table.assign(mode=cell.mode)
            modes = self._modes(work, scores, quality)
        decision = self._decision(work, one_mode)
        self.notes += self._warnings(work)
        return Comparison(
            table=table,
            decision=decision,
            differences=difference_table(work.differences, list(DIFFERENCE_COLUMNS)),
            details=details,
            warnings=tuple(dict.fromkeys(self.notes)),
            rules=self.rules,
            modes=modes,
        )

    @property
    def _depths(self) -> list[int] | None:
        return sorted(self.only["depths"]) if "depths" in self.only else None

    def _taken_apart(self, given: AsScores | AsWide) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the scores and the outcome that wide tables of another tool hold."""
        by_run = given if isinstance(given, Mapping) else {"": given}
        tables = {run: as_table(table) for run, table in by_run.items()}
        wide = taken_apart(tables, self.outcome, self.directions)
        self.notes += wide.notes
        self.lower = wide.lower
        return wide.scores, wide.quality

    def _tables(
        self, given_scores: AsScores | AsWide, given_quality: AsScores | None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both tables as given, and note what their attributes say."""
        given_wide = given_quality is None
        if given_quality is None:
            given_scores, given_quality = self._taken_apart(given_scores)
        if isinstance(given_scores, Evaluation):
            # What the caller knows better stays.
            if self.background.notes is None:
                self.background = replace(self.background, notes=given_scores.notes)
            if not self.background.lists:
                self.background = replace(self.background, lists=given_scores.lists)
            given_scores = given_scores.scores()
        if isinstance(given_quality, Evaluation):
            if not self.background.quality:
                self.background = replace(self.background, quality=_quality_in_words(given_quality))
            given_quality = outcome_of(given_quality)
        if isinstance(given_scores, Mapping):
            given_scores = {labeling: as_table(table) for labeling, table in given_scores.items()}
            for table in given_scores.values():
                if not isinstance(table, str | Path | pd.DataFrame):
                    raise UsageError(f"{_expected('scores')}; got {type(table).__name__}")
            given_scores = [as_scores(table, labeling) for labeling, table in given_scores.items()]
        scores = _table(given_scores, as_scores, "scores")
        quality = _table(given_quality, self._read_ratings, "quality")
        _check_order(scores, quality)
        on_unit = scaled(quality, self.outcome)
        self.notes += on_unit.notes
        quality = where_ok(on_unit.table)
        if given_wide:
            self.directions.check([*self.lower, *scores["labeling"], *named(quality)["metric"]])
        else:
            self._find_directions(scores, named(quality))
        scores, quality = turned(scores, "labeling", self.lower), turned(quality, "metric", self.lower)
        self.ratings = named(quality)
        self.samples = quality if column_of(quality) is not None else None
        scores, quality = means_of(scores), means_of(quality)
        # Means of runs need each user's rating, the comparison one value per answer.
        if self.outcome.several:
            quality = one_value(quality)
        both = quality, scores
        self.kinds = _named_by("by", self.rules.by, self.background.kinds, both) or {}
        parted = self.rules.groups == PARTED
        column = None if parted else self.rules.groups
        if column is not None and self.queries is not None and not any(column in table.columns for table in both):
            self.groups = {query.query_id: query.group(column) for query in as_queries(self.queries).values()}
        else:
            self.groups = _named_by("groups", column, self.background.groups, both)
        self._find_questions(both, parted=parted)
        return scores, at_every_depth(quality, scores, self._depths)

    def _read_ratings(self, path: str | Path) -> pd.DataFrame:
        """Read quality from a file."""
        rated = read_ratings(path, outcome=self.outcome)
        self.notes += rated.notes
        return rated.table

    def _find_directions(self, scores: pd.DataFrame, quality: pd.DataFrame) -> None:
        """Find the labelings for which lower is better, and whether that holds for the outcome."""
        metrics = quality["metric"].unique().tolist()
        self.directions.check([*scores["labeling"].unique().tolist(), *metrics])
        self.lower = list(self.directions.reverse)
        outcome = self.outcome.outcome
        if outcome is None or outcome not in metrics or self.directions.said(outcome):
            return
        if self.directions.of(outcome) == "asked":
            raise UsageError(f"{outcome}: tools disagree on its direction; {question(outcome)}")
        if self.directions.of(outcome) == "lower":
            self.lower.append(outcome)
            self.notes.append(f"{outcome}: lower counts as better.")

    def _find_questions(self, tables: Sequence[pd.DataFrame], *, parted: bool) -> None:
        """Find out which rows are one question, by what is known of their texts."""
        if parted:
            self.questions = {}
            return
        if self.background.questions is not None:
            self.questions, self.contradicting = self.background.questions, self.background.contradicting
            return
        if self.queries is not None:
            asked = dict(as_queries(self.queries))
        else:
            asked = {}
            for query_id, text, language in texts_in(tables):
                query = Query(query_id, text, language=language)
                if asked.setdefault(query_id, query) != query:
                    raise DataError(f"query {query_id!r} has two texts: {asked[query_id].text!r} and {text!r}")
        if asked:
            self.questions = questions_of(asked)
            self.contradicting = repeats_of(asked, self.questions).contradicting

    def _merge_background(self, rows: QuestionRows) -> None:
        """Move facts about single rows to the rows that stand for their questions."""
        if not rows.question:
            return
        known, grades = self.background, self.background.grades
        if grades is not None:
            # Several people may have graded one answer.
            each = grades.groupby(["run", "query_id"], as_index=False)["value"].mean()
            grades = rows.merged(each[each["query_id"].isin(list(rows.question))])
        twins = {name: rows.means(values) for name, values in known.twins.items()}
        self.background = replace(known, twins=twins, weights=rows.means(known.weights), grades=grades)

    def _repeats(self, inputs: Inputs) -> Repeats | None:
        """Return the numbers of rows and questions compared; None if texts are unknown."""
        if self.questions is None:
            return None
        ids = inputs.rows.rows_of(inputs.queries)
        return Repeats.of(self.questions, ids, self.contradicting, self.background.gold)

    def _without_unanswerable(self, scores: pd.DataFrame, quality: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both tables without unanswerable questions, and note their number."""
        gone = {*self.background.unanswerable, *unanswerable_in(scores), *unanswerable_in(quality)}
        unanswerable = quality["query_id"].isin(gone)
        left_out = quality["query_id"][unanswerable].nunique()
        if left_out:
            self.notes.append(f"All comparisons leave out {plural(left_out, 'unanswerable question')}.")
        return scores[~scores["query_id"].isin(gone)], quality[~unanswerable]

    def _cell(self, inputs: Inputs, plan: Sequence[PanelKey], quality: pd.DataFrame) -> Primary:
        """Return the primary cell, and note the choices made for the user."""
        rules, modes = self.rules, modes_of(quality)
        cell = choose_primary(inputs, plan, rules, self.outcome.outcome, self.model)
        self.outcome = replace(self.outcome, outcome=cell.metric)
        # Ratings and imported answers have no mode.
        if len(modes) < 2 or not modes_of(_of_cell(of_mode(quality, self.mode), cell)):
            return cell
        if self.mode:
            return replace(cell, mode=self.mode)
        first = f"No mode of answering was chosen: the decision is about {modes[0]!r}, the first of"
        self.notes.append(f"{first} {', '.join(modes)}.")
        return replace(cell, mode=modes[0])

    def _collector(self, inputs: Inputs, cell: Primary, *, pairs: bool = True) -> Collector:
        return Collector(inputs, cell, self.rules, self.background, self.known, self.groups, pairs)

    def _modes(self, work: Collector, scores: pd.DataFrame, quality: pd.DataFrame) -> pd.DataFrame | None:
        """Return the comparison of each mode, for the measures that go with the answers of the primary cell.

        None if no question has a value in all modes.
        """
        cell = work.cell
        fitting = [name for name in work.inputs.measures if cutoff_of(name) in (None, cell.depth)]
        only = self.only | {"metrics": [cell.metric], "models": [cell.model], "measures": [*fitting, cell.measure]}
        tables = []
        for mode, rows in on_common_questions(quality, cell).items():
            inputs = Inputs.read(scores, rows, only, self.background.lower, self.questions)
            collector = self._collector(inputs, cell, pairs=False)
            collector.work_out(inputs.plan([cell.depth], self.pairing))
            tables.append(collector.tables()[0].assign(mode=mode))
        if tables:
            return pd.concat(tables, ignore_index=True)
        self.notes.append(
            f"The modes {', '.join(modes_of(quality))} share no question with values, so they are not compared."
        )
        return None

    def _obstacle(self, inputs: Inputs, quality: pd.DataFrame) -> str:
        """Return why there can be no decision, or "", and note accepted obstacles."""
        mix = mixed_answers(quality)
        if self.background.obstacle:
            return self.background.obstacle
        if inputs.means_only:
            return "The tables hold only means over queries, so no interval can be computed."
        if not mix:
            return ""
        if not self.rules.accept_mixed_models:
            return f"{mix}. Answer again with one of them, or accept it with accept_mixed_models."
        self.notes.append(f"{mix}.")
        return ""

    def _decision(self, work: Collector, quality: pd.DataFrame) -> Decision:
        cell, inputs = work.cell, work.inputs
        obstacle = self._obstacle(inputs, quality)
        if obstacle:
            return no_decision(cell, obstacle)
        panel, found = work.primary
        kinds: dict[str, Bools] = {}
        for kind in sorted(set(self.kinds.values())):
            standing = inputs.rows.of_kind(self.kinds, kind)
            kinds[kind] = np.array([query in standing for query in inputs.queries])
        constructed = [name for name in panel.labelings if work.flagger.is_outcome(panel, name)]
        holding = [name for name in panel.labelings if work.flagger.own_lists(panel, name)]
        rows = _of_cell(quality, cell)
        unchecked = "contexts" in rows and (rows["contexts"] == UNCHECKED).any()
        case = Case(
            primary=cell,
            panel=panel,
            found=found,
            resamples=work.resamples,
            rules=self.rules,
            background=self.background,
            declared=self.outcome,
            constructed=frozenset(constructed),
            holding=frozenset(holding),
            closed_book=inputs.closed_book.get((panel.metric, cell.model)),
            kinds=kinds,
            unchecked=bool(unchecked),
            unpaired=self._unpaired(cell, panel.runs),
            directions=self.directions,
            sampled=self._sampled(cell, panel.runs, inputs.rows),
            rows=inputs.rows,
            repeats=self._repeats(inputs),
        )
        partly = None
        if case.unpaired is None and case.graded is None:
            partly = self._partly_rated(work)
        if self.outcome.drawn is not None and partly is None:
            self.notes.append(
                "No labeling is corrected by the rated questions. That takes at least 5 of them with ratings of all"
                " runs' answers, unrated ones beside them, and a labeling with a score for nearly all answers that"
                " follows the ratings."
            )
        return decide_on(replace(case, partly=partly))

    def _partly_rated(self, work: Collector) -> PartlyRated | None:
        """Return ratings of some questions combined with a labeling that scores all; None if all are rated."""
        panel, inputs = work.primary[0], work.inputs
        rated = np.isfinite(panel.quality).all(axis=0)
        ids = self.scored["query_id"].unique()
        drawn = self.outcome.drawn is not None
        if len(panel.runs) < 2 or not rated.any() or rated.sum() >= len(ids):
            return None
        if not drawn and rated.sum() >= MOST * len(ids):
            return None
        named_so = [name for name in panel.labelings if name not in self.background.controls]
        rows = self.scored[self.scored["labeling"].isin(named_so) & self.scored["run"].isin(panel.runs)]
        spelled = spelled_as(panel.measure, {*rows["measure"].unique()})
        rows = inputs.rows.merged(rows[(rows["measure"] == spelled) & (rows["query_id"] != ALL)])
        queries = sorted(rows["query_id"].unique())
        known = known_measure(panel.measure)
        sign = -1 if known is not None and known.lower_is_better else 1
        scores: dict[str, Floats] = {}
        for name, of_labeling in rows.groupby("labeling"):
            wide = of_labeling.pivot(index="run", columns="query_id", values="value")
            scores[str(name)] = sign * wide.reindex(index=list(panel.runs), columns=queries).to_numpy(np.float64)
        quality = pd.DataFrame(panel.quality, panel.runs, panel.queries).reindex(columns=queries)
        units = inputs.rows.units(queries, self.groups)
        return partly_rated(
            panel.runs,
            quality.to_numpy(np.float64),
            scores,
            drawn=drawn,
            groups=None if units is None else np.unique(units, return_inverse=True)[1],
            confidence=self.rules.confidence,
        )

    def _sampled(self, cell: Primary, runs: Sequence[str], rows: QuestionRows) -> Sampled | None:
        """Return the spread of several answers to a question; None if each question has one."""
        if self.samples is None:
            return None
        answers = _of_cell(of_mode(completed(self.samples, set(runs), {cell.depth}), cell.mode or None), cell)
        return sampled(answers[answers["depth"] == cell.depth], runs, rows.question, self.rules)

    def _unpaired(self, cell: Primary, runs: Sequence[str]) -> UnpairedRatings | None:
        """Return the means of ratings that are about one run each; None if questions compare runs."""
        rows = _of_cell(self.ratings, cell)
        if "run" not in rows.columns or len(runs) < 2:
            return None
        # A rating of another depth is one of other answers.
        rows = rows[rows["depth"] == cell.depth] if "depth" in rows.columns else rows
        # If users were shown runs at random, the means of runs can be compared.
        random = self.outcome.assigned is not None
        if not random and not is_unpaired(rows[rows["run"].isin(list(runs))]):
            return None
        cluster = self.outcome.cluster
        if cluster is not None and cluster not in rows.columns:
            raise UsageError(f"cluster: the ratings have no column {cluster!r}")
        return unpaired_ratings(rows, runs, cluster=cluster, random=random, confidence=self.rules.confidence)

    def _warnings(self, work: Collector) -> Iterator[str]:
        """Yield what was left out, and what is known too poorly for claims."""
        yield from work.omissions()
        count = work.resamples.units(np.ones(len(work.inputs.queries), np.bool_))
        if self.groups is not None and count < MIN_DIFFERING:
            yield f"Only {count} groups of queries: intervals are rough, and no difference is claimed."
        # A user's own table does not say who answered; labelings that ask nobody need not know.
        needs = self.background.needs
        if work.cell.model == UNDECLARED and (not needs or any(need.asked for need in needs.values())):
            yield (
                "The answering model is not declared (answered_by, or a column 'model'), so labels made by the same"
                " model cannot be marked."
            )


def _check_order(scores: pd.DataFrame, quality: pd.DataFrame) -> None:
    """Refuse a scores table that lacks its columns; ask for the other order if the second table has them."""
    lacking = [name for name in ("labeling", "measure") if name not in scores.columns]
    if lacking:
        swapped = all(name in quality.columns for name in ("labeling", "measure"))
        hint = "; the second table has them: give the scores first, then the quality" if swapped else ""
        raise UsageError(f"the scores table lacks column {' and '.join(map(repr, lacking))}{hint}")


def _of_cell(quality: pd.DataFrame, cell: Primary) -> pd.DataFrame:
    """Return the rows of the quality table that a cell is about."""
    rows = named(quality)
    return rows[(rows["metric"] == cell.metric) & (rows["model"] == cell.model)]


def _quality_in_words(evaluation: Evaluation) -> str:
    """Return the meaning of quality that is scored by people's labels."""
    rows = evaluation.scores()
    measures, labelings = (list(dict.fromkeys(rows[column])) for column in ("measure", "labeling"))
    return f"{names_of(measures)} by {names_of(labelings)}"


def decide(scores: AsScores, quality: AsScores, rules: Rules | None = None, **given: Any) -> Decision:
    """Return the decision of `compare`, with the same arguments; print it, or show it in a notebook.

    Args:
        scores: as for `compare`.
        quality: as for `compare`.
        rules: as for `compare`.
        given: further arguments of `compare`.

    Returns:
        The decision: its lines, and the claims behind them; quality is in points (hundredths of the scale).

    Raises:
        DataError, UsageError: as for `compare`.
    """
    return compare(scores, quality, rules, **given).decision


def _named_by(
    rule: str, column: str | None, known: Mapping[str, str] | None, tables: Sequence[pd.DataFrame]
) -> dict[str, str] | None:
    """Return the kind or group of each question that has one; None if none is given."""
    if known is not None:
        return {query: str(name) for query, name in known.items() if name}
    if column is None:
        return None
    holding = [table for table in tables if column in table.columns]
    if not holding:
        raise UsageError(f"{rule}: neither the quality nor the scores table has a column {column!r}")
    pairs = holding[0][["query_id", column]].dropna().drop_duplicates().astype("str")
    # A question of two kinds would count twice.
    twice = pairs["query_id"][pairs["query_id"].duplicated()]
    if len(twice):
        raise UsageError(f"{rule}: query {twice.iloc[0]!r} has two values in column {column!r}")
    named_pairs = pairs[pairs[column] != ""]
    return dict(zip(named_pairs["query_id"], named_pairs[column], strict=True))


def _expected(name: str) -> str:
    return f"{name} must be a table, a file or the result of judgekit.score, or several"


def _table(given: object, read: Callable[[str | Path], pd.DataFrame], name: str) -> pd.DataFrame:
    """Return a DataFrame, a file, or several of these as one table."""
    expected = _expected(name)
    tables: list[pd.DataFrame] = []
    given = as_table(given)
    for part in given if isinstance(given, list | tuple) else [given]:
        table = read(part) if isinstance(part, str | Path) else as_table(part)
        if not isinstance(table, pd.DataFrame):
            raise UsageError(f"{expected}; got {type(part).__name__}")
        tables.append(table)
    if not tables:
        raise UsageError(f"{expected}; got none")
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
