"""Turns the score and quality tables into panels: which scores are compared with which quality, on which queries.

No DataFrames beyond this point. A *panel* is one measure against one answer metric of one model at one depth, for all
labelings, runs and queries: the unit in which labelings are compared and resampled together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.measures import WHOLE_RUN, at_depth, cutoff_of, known_measure, spelled_as
from judgekit.analysis.rankings import over_present
from judgekit.analysis.repeats import QuestionRows, refuse_twice
from judgekit.analysis.wording import plural, some_of
from judgekit.answers.imported import completed
from judgekit.answers.pairs import SHARES_OF_WINS
from judgekit.data.tables import ALL, SCORES, Status
from judgekit.errors import DataError, UsageError, nearest, not_among
from judgekit.metrics import Evaluation

Bools = npt.NDArray[np.bool_]
Pairing = Literal["matched", "all"]
Only = Mapping[str, Collection[Any]]
"""What to look at, by the plural of each column; other columns are not restricted."""
PanelKey = tuple[str, str, str, int]
"""The measure, metric, model and depth of a panel."""

KEPT_SHARE: Final = 0.5
"""Labelings that would leave a smaller share of the cases are compared apart."""
FEW: Final = 0.05
"""Up to this share of missing scores, in all and for each run, claims rest on the known ones. Simulated: if exactly the
contradicting scores are missing, .05 of claims are false at this share, and .32 at .10."""

_ROUNDING: Final = 1e-12
_ROUNDING_OF_SUMS: Final = 1e-15
"""Tolerances for equal values: the first times their size and, for gains and losses, which may cancel in a sum, the
second times the largest size."""


@dataclass(frozen=True)
class Panel:
    """One measure against one answer metric of one model at one depth.

    Attributes:
        measure, depth, metric, model: the measure, and the answers it is compared with.
        labelings, runs, queries: names along the axes, each sorted.
        scores: shape (L, R, Q), lower-is-better measures with their sign reversed, NaN where undefined.
        quality: shape (R, Q), NaN where undefined.
        asked: cells in which any labeling has a row for this measure and quality is defined, shape (R, Q).
        low, high: bounds of the scores over all values of missing labels, same shape; None if nothing is missing,
            infinite for scores without bounds.
    """

    measure: str
    depth: int
    metric: str
    model: str
    labelings: tuple[str, ...]
    runs: tuple[str, ...]
    queries: tuple[str, ...]
    scores: Floats
    quality: Floats
    asked: Bools
    low: Floats | None = None
    high: Floats | None = None

    @property
    def means_only(self) -> bool:
        """Whether there are only means over queries, as one query with the id ``all``."""
        return self.queries == (ALL,)

    @property
    def matched(self) -> bool:
        """Whether the measure's cutoff is the depth, or it has none."""
        return cutoff_of(self.measure) in (None, self.depth)

    @cached_property
    def _scored(self) -> Bools:
        """Cells with a score of a labeling and a value of the answer, shape (L, R, Q)."""
        return np.asarray(np.isfinite(self.scores) & self.asked)

    @cached_property
    def cost(self) -> Floats:
        """Share of the cases with quality on which each labeling is undefined, shape (L,)."""
        return np.asarray(1 - self._scored.sum(axis=(1, 2)) / max(int(self.asked.sum()), 1))

    @cached_property
    def _missing(self) -> Bools:
        """Cells whose score could not be obtained, shape (L, R, Q); other empty cells do not apply."""
        low, high = self._ends
        return np.asarray((low < high) & self.asked)

    @cached_property
    def few(self) -> Bools:
        """Labelings that lack so few scores, for every run too, that the gaps are ignored, shape (L,)."""
        return self._at_most_few(self._missing)

    @cached_property
    def _partial(self) -> Bools:
        """Which labelings do not apply to more than a few cases, shape (L,)."""
        return ~self._at_most_few(self._inapplicable)

    def _at_most_few(self, lacking: Bools) -> Bools:
        """Return which labelings lack at most a few of their scores, of all and of every run, shape (L,)."""
        cases = self.asked.sum(axis=1)
        by_run = lacking.sum(axis=2) <= FEW * cases
        return np.asarray(by_run.all(axis=1))

    @cached_property
    def joint(self) -> tuple[int, ...]:
        """Indices of the compared labelings: all except those that would leave too few cases."""
        cases, whole = max(int(self.asked.sum()), 1), int(self.asked.all(axis=0).sum())
        # A labeling's own pick needs questions on which it scores all runs.
        least = min(2, whole)
        picking = np.flatnonzero(self._scored.all(axis=1).sum(axis=1) >= least)
        kept = sorted(picking.tolist(), key=lambda index: float(self.cost[index]))
        while kept:
            common = self._applying(kept)
            scored = self._scored[kept] & common
            cases_too = scored[-1].sum() >= KEPT_SHARE * cases
            questions_too = common.all(axis=0).sum() >= KEPT_SHARE * whole
            if cases_too and questions_too and scored.all(axis=1).sum(axis=1).min() >= least:
                break
            kept.pop()
        return tuple(sorted(kept))

    def _applying(self, labelings: Sequence[int]) -> Bools:
        """Return the cases to which some labelings apply, shape (R, Q), ignoring small gaps."""
        partial = [index for index in labelings if self._partial[index]]
        return np.asarray(self.asked & ~self._inapplicable[partial].any(axis=0))

    @cached_property
    def _common(self) -> Bools:
        """The cases of the joint labelings, as far as they have scores, shape (R, Q)."""
        return self._applying(self.joint)

    @property
    def compared(self) -> int:
        """The number of queries on which labelings without missing scores are compared."""
        return int(self._common.all(axis=0).sum())

    def defined(self, labeling: int) -> Bools:
        """The cases of a labeling, shape (R, Q): with a score and, for a joint labeling, where all joint ones apply."""
        if labeling in self.joint:
            return np.asarray(self._scored[labeling] & self._common)
        return np.asarray(self._scored[labeling])

    def complete(self, labeling: int) -> Bools:
        """The queries on which a labeling has cases for every run, shape (Q,)."""
        return np.asarray(self.defined(labeling).all(axis=0))

    def beside(self, labeling: int) -> Bools:
        """The cases in which a labeling compares runs within queries, shape (R, Q): at least two per query."""
        cases = self._common if labeling in self.joint else self.asked
        where = self.defined(labeling) & cases.all(axis=0)
        least = min(2, len(self.runs))
        return np.asarray(where & (where.sum(axis=0) >= least))

    def within(self, labeling: int) -> tuple[Floats, Floats, Bools | None]:
        """Return a labeling's scores and the quality of the queries on which it compares runs, shape (R, n) each.

        The third array marks those that are present, None if all are; `over_present` fills the others.
        """
        beside = self.beside(labeling)
        where = beside.any(axis=0)
        scores, quality, there = self.scores[labeling][:, where], self.quality[:, where], beside[:, where]
        if there.all():
            return scores, quality, None
        return over_present(scores, there), over_present(quality, there), there

    def same_cases(self, first: int, second: int, other: Panel | None = None) -> bool:
        """Return whether two labelings have the same cases; the second may belong to another panel."""
        return np.array_equal(self.defined(first), (other or self).defined(second))

    def pair(self, first: int, second: int, other: Panel | None = None) -> Panel:
        """Return two labelings on the cases that both have; the second may belong to another such panel."""
        other = other or self
        both = self.defined(first) & other.defined(second)
        scores = np.where(both, np.stack([self.scores[first], other.scores[second]]), np.nan)
        names = self.labelings[first], other.labelings[second]
        # A score that either lacks is missing for the pair, unless they do not apply there.
        low, high = np.where(both, scores, -np.inf), np.where(both, scores, np.inf)
        return replace(self, labelings=names, scores=scores, asked=self._common, low=low, high=high)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        if self.low is None or self.high is None:
            return self.scores, self.scores
        return self.low, self.high

    @cached_property
    def open(self) -> Bools:
        """The missing scores of joint labelings whose claims depend on them, shape (L, R, Q)."""
        open_ = self._missing & ~self.few[:, None, None]
        apart = np.setdiff1d(np.arange(len(self.labelings)), self.joint)
        open_[apart] = False
        return np.asarray(open_)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats] | None:
        """The lowest and highest possible scores, shape (L, R, Q); None if no claim depends on them."""
        if not self.open.any():
            return None
        low, high = self._ends
        lowest = np.where(self.open & np.isfinite(low), low, self.scores)
        highest = np.where(self.open & np.isfinite(high), high, self.scores)
        return lowest, highest

    def bounded(self, labeling: int) -> Bools:
        """The queries on which a joint labeling's scores are known or bounded for every run, shape (Q,)."""
        least = self.scores if self.bounds is None else self.bounds[0]
        return np.asarray((self._common & np.isfinite(least[labeling])).all(axis=0))

    def _queries(self, where: Bools) -> dict[str, tuple[str, ...]]:
        """Return, by joint labeling, the queries on which a condition of shape (L, R, Q) holds for some run."""
        queries = np.array(self.queries, dtype=object)
        by_labeling: dict[str, tuple[str, ...]] = {}
        for index in self.joint:
            some = where[index].any(axis=0)
            if some.any():
                by_labeling[self.labelings[index]] = tuple(queries[some])
        return by_labeling

    @property
    def unknown(self) -> dict[str, int]:
        """The number of missing scores by joint labeling, if its claims depend on them."""
        return {name: int(self.open[self.labelings.index(name)].sum()) for name in self._queries(self.open)}

    @property
    def unbounded(self) -> dict[str, tuple[str, ...]]:
        """The queries with missing, unbounded scores by joint labeling, if its claims depend on them."""
        return self._queries(self.open & np.isinf(self._ends[0]))

    @property
    def lacking_few(self) -> dict[str, int]:
        """The number of scores that are missing or do not apply by joint labeling, if these are few."""
        few = self._missing & self.few[:, None, None]
        few |= self._inapplicable & ~self._partial[:, None, None]
        return {name: int(few[self.labelings.index(name)].sum()) for name in self._queries(few)}

    @cached_property
    def _inapplicable(self) -> Bools:
        return np.asarray(self.asked & ~self._scored & ~self._missing)

    @property
    def inapplicable(self) -> dict[str, int]:
        """The number of queries on which a joint labeling does not apply to some run, if these are more than a few."""
        lacking = self._queries(self._inapplicable & self._partial[:, None, None])
        return {name: len(queries) for name, queries in lacking.items()}

    def only(self, queries: Bools) -> Panel:
        """Return the panel with some of its queries, given by a mask of shape (Q,)."""
        return replace(self, asked=self.asked & queries)

    def extremes(self, level: str) -> tuple[Panel, Panel] | None:
        """Return the panel with the joint labelings' missing scores at their worst and at their best, if any."""
        if self.bounds is None:
            return None
        # At its best, a labeling puts each case on the same side of the mean as its answer.
        axis = 1 if level == "query" else 0
        there = np.isfinite(self.quality)
        total = np.where(there, self.quality, 0).sum(axis=axis, keepdims=True)
        mean = total / np.maximum(there.sum(axis=axis, keepdims=True), 1)
        ahead = self.quality > mean
        joint = list(self.joint)
        low, high = self.bounds[0][joint], self.bounds[1][joint]
        names = tuple(self.labelings[index] for index in joint)
        filled = self.open[joint] & np.isfinite(low) & np.isfinite(high)
        ends: list[Panel] = []
        for scores in (np.where(ahead, low, high), np.where(ahead, high, low)):
            # Filled scores are no longer missing.
            lowest, highest = (np.where(filled, scores, end[joint]) for end in self._ends)
            ends.append(replace(self, labelings=names, scores=scores, low=lowest, high=highest))
        return ends[0], ends[1]


@dataclass(frozen=True)
class MeasureScores:
    """The scores of one measure, shape (L, R, Q), with the sign reversed if lower is better.

    Attributes:
        values: NaN where undefined.
        low, high: bounds of the values; equal to the values if nothing is missing.
        asked: cells in which any labeling has a row, shape (R, Q).
    """

    values: Floats
    low: Floats
    high: Floats
    asked: Bools


@dataclass
class Inputs:
    """The checked tables as coded arrays.

    Attributes:
        labelings, runs, measures, queries: the names that both tables share, sorted.
        scores: by measure.
        quality: values per (metric, model, depth), shape (R, Q), NaN where undefined; depth 0 is closed book.
        closed_book: quality without documents per (metric, model), shape (Q,).
        warnings: sentences for the user.
        unanswered: the queries with scores but without any quality.
        unscored: those of ``queries`` with quality but without any score.
        rows: the rows behind each query, if questions have several.
    """

    labelings: tuple[str, ...]
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    queries: tuple[str, ...]
    scores: dict[str, MeasureScores]
    quality: dict[tuple[str, str, int], Floats]
    closed_book: dict[tuple[str, str], Floats]
    warnings: list[str]
    unanswered: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()
    rows: QuestionRows = field(default_factory=QuestionRows)

    @classmethod
    def read(
        cls,
        scores: pd.DataFrame,
        quality: pd.DataFrame,
        only: Only,
        lower: Collection[str],
        questions: Mapping[str, str] | None = None,
    ) -> Inputs:
        """Check both tables, keep what was asked for, and code it; what users should know stands in the warnings.

        ``questions`` names each row's question, by query id; by default each row is its own.
        """
        warnings: list[str] = []
        held = {"score": scores, "quality": quality}
        means = [name for name, table in held.items() if _has_means_only(table)]
        means_only = bool(means)
        score = _asked_scores(scores, only, means_only=means_only)
        cutoffs = {cutoff for cutoff in map(cutoff_of, score["measure"].unique()) if cutoff}
        answer = completed(quality, set(score["run"].unique()), only.get("depths") or cutoffs)
        for column, what in (("run", "answers are those of"), ("depth", "the answers' depth is")):
            if column not in quality.columns and len(answer):
                value = answer[column].iloc[0]
                warnings.append(f"The quality table has no column {column!r}: judgekit assumes that {what} {value}.")
        if means_only:
            warnings.append(
                f"The table of {' and of '.join(means)} holds only means (query_id 'all'), so the system level is"
                " compared without an interval. Any mean taken here is over the queries that have a value."
            )
        answer = _asked_quality(answer, only, means_only=means_only)
        for name, table in (("score", score), ("quality", answer)):
            if table.empty:
                raise DataError(f"the {name} table has no rows to compare")
        rows = QuestionRows()
        if questions and not means_only:
            rows = QuestionRows.of(questions, [*score["query_id"].unique(), *answer["query_id"].unique()])
            score, answer = rows.merged(score), rows.merged(answer)
        # Answers without documents are the same for all runs: they are a control.
        closed = answer[(answer["depth"] == 0) & (answer["run"] == ALL)]
        answer = answer[answer["run"] != ALL]
        if answer.empty:
            raise DataError(
                "the quality table has no row about a run at a depth of at least 1, so there is no answer"
                " quality to predict"
            )
        runs = _shared(score, answer, "run")
        warnings += _excluded(score, answer, only.get("runs"))
        score, answer = score[score["run"].isin(runs)], answer[answer["run"].isin(runs)]
        queries = _shared(score, answer, "query_id")
        unanswered = sorted(set(score["query_id"].unique()) - set(queries))
        unscored = sorted(set(answer["query_id"][answer["value"].notna()]) - set(queries))
        if unscored:
            alone = f"{plural(len(unscored), 'question')} with quality but no scores ({_some(unscored)})"
            if len(runs) < 2:
                warnings.append(f"{alone} excluded.")
                unscored = []
            else:
                # Answers choose the run, so a question counts there even if no labeling covers it.
                queries = sorted([*queries, *unscored])
                verb = "counts" if len(unscored) == 1 else "count"
                warnings.append(f"{alone} {verb} for the choice of a run, not for labels.")
        score = score[score["query_id"].isin(queries)]
        labelings = sorted(score["labeling"].unique())
        axes = {"labeling": labelings, "run": runs, "query_id": queries}
        coded: dict[str, MeasureScores] = {}
        for spelled, of_measure in score.groupby("measure"):
            measure = str(spelled)
            coded[measure], absences = _coded_scores(of_measure, axes, measure, lower)
            warnings += absences
        measures = sorted(coded, key=lambda measure: (at_depth(measure, None), cutoff_of(measure) or 0))
        closed_book: dict[tuple[str, str], Floats] = {}
        for (metric, model, _), values in _by_answers(closed, [ALL], queries).items():
            closed_book[metric, model] = values[0]
        return cls(
            labelings=tuple(labelings),
            runs=tuple(runs),
            measures=tuple(measures),
            queries=tuple(queries),
            scores=coded,
            quality=_by_answers(answer, runs, queries),
            closed_book=closed_book,
            warnings=warnings,
            unanswered=tuple(unanswered),
            unscored=tuple(unscored),
            rows=rows,
        )

    @property
    def means_only(self) -> bool:
        """Whether there are only means over queries."""
        return self.queries == (ALL,)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The answer metrics, sorted."""
        return tuple(sorted({metric for metric, _, _ in self.quality}))

    @property
    def models(self) -> tuple[str, ...]:
        """The answer models, sorted."""
        return tuple(sorted({model for _, model, _ in self.quality}))

    @property
    def depths(self) -> tuple[int, ...]:
        """The answer depths above 0, ascending."""
        return tuple(sorted({depth for _, _, depth in self.quality if depth > 0}))

    def panel(self, measure: str, metric: str, model: str, depth: int) -> Panel:
        """Return the panel of a measure and a kind of quality, on the runs that have both."""
        scores, quality = self.scores[measure], self.quality[metric, model, depth]
        asked = scores.asked & np.isfinite(quality)
        # A run without any case would make the mean over runs undefined, and every query at levels that compare runs.
        keep = np.asarray(asked.any(axis=1))
        if not keep.any():
            keep[:] = True
        for run in np.array(self.runs)[~keep]:
            why = f"has scores but no {metric} of {model} at depth {depth}; it is excluded there."
            self.warnings.append(f"Run {str(run)!r} {why}")
        return Panel(
            measure=measure,
            depth=depth,
            metric=metric,
            model=model,
            labelings=self.labelings,
            runs=tuple(np.array(self.runs)[keep].tolist()),
            queries=self.queries,
            scores=scores.values[:, keep],
            quality=quality[keep],
            asked=asked[keep],
            low=scores.low[:, keep],
            high=scores.high[:, keep],
        )

    def uncompared(self, panel: Panel) -> Iterator[str]:
        """Yield a sentence on the queries of a panel that cannot compare its runs, if there are any."""
        scored = ~np.isin(panel.queries, self.unscored)
        often, queries = panel.asked[:, scored].sum(axis=0), np.array(panel.queries, dtype=object)[scored]
        partly = list(queries[(often > 0) & (often < len(panel.runs))])
        never = [*self.unanswered, *queries[often == 0]]
        if panel.means_only or not (partly or never):
            return
        # Live ratings are about one run each: the decision itself says that no question compares runs.
        if len(panel.runs) > 1 and often.max(initial=0) < 2:
            return
        lacking: list[str] = []
        if partly:
            lacking.append(f"{len(partly)} lack them for some runs ({_some(partly)})")
        if never:
            lacking.append(f"{len(never)} lack them for all ({_some(never)})")
        total = len(queries) + len(self.unanswered)
        whole = total - len(partly) - len(never)
        yield f"Only {whole} of {total} questions have scores and quality for every run: {', '.join(lacking)}."

    def plan(self, depths: Sequence[int] | None = None, pairing: Pairing = "matched") -> list[PanelKey]:
        """Return the key of every panel."""
        wanted = depths or self.depths
        for depth in wanted:
            if depth not in self.depths:
                raise UsageError(not_among("depth", str(depth), map(str, self.depths)))
        keys: list[PanelKey] = []
        for measure in self.measures:
            for answers in sorted(self.quality):
                depth = answers[2]
                if depth in wanted and (pairing == "all" or cutoff_of(measure) in (None, depth)):
                    keys.append((measure, *answers))
        if not keys:
            raise DataError(
                f"no measure can be paired with quality: the measures are {_some(self.measures)} and the answer depths"
                f" {', '.join(map(str, wanted)) or 'none above 0'}. A measure at cutoff c is compared"
                " with the quality of answers from the top c documents."
            )
        return keys


def at_every_depth(quality: pd.DataFrame, scores: pd.DataFrame, depths: Collection[int] | None) -> pd.DataFrame:
    """If no measure has a cutoff, return quality without a depth as that of whole runs."""
    if "depth" in quality.columns or depths or any(map(cutoff_of, scores["measure"].unique())):
        return quality
    return quality.assign(depth=WHOLE_RUN)


def outcome_of(evaluation: Evaluation) -> pd.DataFrame:
    """Return the runs' scores by people's labels as the quality of each question."""
    table = evaluation.scores().rename(columns={"labeling": "model", "measure": "metric"}).dropna(subset=["value"])
    depths = [cutoff_of(metric) or WHOLE_RUN for metric in table["metric"]]
    return table[["run", "model", "metric", "query_id", "value"]].assign(depth=depths)


def _has_means_only(table: pd.DataFrame) -> bool:
    return "query_id" in table.columns and set(table["query_id"].unique()) == {ALL}


def _asked_scores(scores: pd.DataFrame, only: Only, *, means_only: bool) -> pd.DataFrame:
    """Return the scores of the requested runs, or their means."""
    score = _of_level(SCORES.check(scores), ["labeling", "run", "measure"], means_only=means_only)
    score = score[score["run"] != ALL]
    spellings = set(score["measure"].unique())
    measures = [spelled_as(measure, spellings) for measure in only.get("measures") or spellings]
    for column in ("labeling", "run", "measure"):
        score = _keep(score, column, {**only, "measures": measures}, "score")
    return score


def _asked_quality(answer: pd.DataFrame, only: Only, *, means_only: bool) -> pd.DataFrame:
    """Return the requested quality, or its means."""
    for column in ("metric", "model"):
        answer = _keep(answer, column, only, "quality")
    return _of_level(where_ok(answer), ["run", "depth", "model", "metric"], means_only=means_only)


def _of_level(table: pd.DataFrame, keys: list[str], *, means_only: bool) -> pd.DataFrame:
    """Return a table's values per query or, if only means are compared, its means, computing those that it lacks."""
    is_mean = table["query_id"] == ALL
    if not means_only:
        return table[~is_mean]
    if is_mean.any():
        return table[is_mean]
    means = table.groupby(keys, as_index=False)["value"].mean()
    return pd.DataFrame(means.assign(query_id=ALL))


def _by_answers(answer: pd.DataFrame, runs: list[str], queries: list[str]) -> dict[tuple[str, str, int], Floats]:
    """Return the quality by metric, model and depth, shape (R, Q)."""
    axes = {"run": runs, "query_id": queries}
    values: dict[tuple[str, str, int], Floats] = {}
    for (metric, model, depth), rows in answer[answer["query_id"].isin(queries)].groupby(["metric", "model", "depth"]):
        values[str(metric), str(model), int(str(depth))] = _coded(rows, axes)["value"]
    return values


def _keep(frame: pd.DataFrame, column: str, only: Only, name: str) -> pd.DataFrame:
    """Return the rows of a table that were asked for by a column."""
    have, wanted = set(frame[column].unique()), only.get(f"{column}s")
    if wanted is None:
        return frame
    for value in wanted:
        if value not in have:
            raise UsageError(f"{column}s: {not_among(f'{column} of the {name} table', value, sorted(have))}")
    return frame[frame[column].isin(list(wanted))]


def where_ok(answer: pd.DataFrame) -> pd.DataFrame:
    """Return quality with undefined values as its status says."""
    # Ratings of people have no status.
    if "status" not in answer.columns:
        return answer
    unknown = sorted(set(answer["status"]) - {"", *Status})
    if unknown:
        raise DataError(f"the quality table: {not_among('status', unknown[0], sorted(Status))}")
    return answer.assign(value=answer["value"].where(answer["status"].isin(["", Status.OK.value])))


def _shared(scores: pd.DataFrame, quality: pd.DataFrame, column: str) -> list[str]:
    """Return the runs or questions that both tables are about."""
    scored, rated = set(scores[column].unique()), set(quality[column].unique())
    common = scored & rated
    noun = "run" if column == "run" else "question"
    if not common:
        raise DataError(
            f"no {noun} has both scores and quality: the scores are about {_some(scored)}, the quality is about"
            f" {_some(rated)}"
        )
    if column == "run":
        _refuse_unscored(quality, rated - common, scored)
    return sorted(common)


def _excluded(scores: pd.DataFrame, quality: pd.DataFrame, asked: Collection[str] | None) -> Iterator[str]:
    """Yield a sentence for the runs that only one of the tables has."""
    scored, rated = set(scores["run"].unique()), set(quality["run"].unique())
    alone = {"quality but no scores": rated - scored, "scores but no quality": scored - rated}
    for lacking, names in alone.items():
        left_out = names if asked is None else names.intersection(asked)
        # Runs that were not requested are not missing.
        if left_out:
            yield f"{plural(len(left_out), 'run')} with {lacking} ({_some(left_out)}) excluded, also from the choice."


def _refuse_unscored(quality: pd.DataFrame, unscored: Collection[str], scored: Collection[str]) -> None:
    """Refuse answers compared with those of a run without scores: its comparisons count for the others."""
    if "metric" not in quality.columns:
        return
    compared = quality[quality["run"].isin(list(unscored)) & quality["metric"].isin(list(SHARES_OF_WINS))]
    if len(compared):
        run = str(compared["run"].iloc[0])
        raise DataError(
            f"answers are compared with those of run {run!r}, which has no scores.{nearest(run, scored)} Correct its"
            " name, or leave out the rows with it: what the other runs won against it counts"
        )


def _coded_scores(
    rows: pd.DataFrame, axes: Mapping[str, Sequence[str]], name: str, lower: Collection[str]
) -> tuple[MeasureScores, list[str]]:
    """Return the scores of one measure, and which rows the table lacks, a sentence for each labeling."""
    known = known_measure(name)
    turned = name in lower or (known is not None and known.lower_is_better)
    sign = -1 if turned else 1
    coded = _coded(rows.assign(there=1.0, applies=_applies(rows)), axes)
    values, there = sign * coded["value"], np.isfinite(coded["there"])
    low, high = values.copy(), values.copy()
    if "low" in coded and "high" in coded:
        # A known score has no bounds, whatever its columns say.
        lacking = np.isnan(values)
        ends = np.sort([sign * coded["low"], sign * coded["high"]], axis=0)
        low[lacking], high[lacking] = ends[0][lacking], ends[1][lacking]
        values = np.where(low == high, low, values)
    # Our own measures may be undefined on some questions of some runs, with a row that says so.
    absent = np.isnan(values) if known is None else ~there
    scored = np.isfinite(values).any(axis=1, keepdims=True)
    # If a labeling scores no run on a question, it probably does not apply there.
    absent &= scored & (coded["applies"] != 0) & ~(low < high)
    absences: list[str] = []
    if absent.any():
        least, most = -np.inf, np.inf
        if known is not None and known.definition.low is not None and known.definition.high is not None:
            least, most = sorted((sign * known.definition.low, sign * known.definition.high))
        low[absent], high[absent] = least, most
        absences += _absences(absent, axes, bounded=bool(np.isfinite(least)))
    return MeasureScores(values, low, high, asked=np.asarray(there.any(axis=0))), absences


def _applies(rows: pd.DataFrame) -> Bools:
    """Return the rows whose labeling applies, by the column ``status``."""
    if "status" not in rows.columns:
        return np.ones(len(rows), np.bool_)
    return np.asarray(rows["status"] != Status.NOT_APPLICABLE.value)


def _absences(absent: Bools, axes: Mapping[str, Sequence[str]], *, bounded: bool) -> Iterator[str]:
    """Yield a sentence for each labeling on the rows that a table of scores lacks for some runs."""
    runs, queries = np.array(axes["run"]), np.array(axes["query_id"])
    for labeling, lost in zip(axes["labeling"], absent, strict=True):
        if not lost.any():
            continue
        lacking = ", ".join(runs[lost.any(axis=1)])
        about = _some(queries[lost.any(axis=0)].tolist())
        rows = f"{labeling} lacks {lost.sum():,} rows for {lacking} ({about})."
        yield rows if bounded else f"{rows} Nothing bounds them."


def _coded(rows: pd.DataFrame, axes: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Return the columns of numbers of a table as arrays over these axes; NaN where the table has no row."""
    keys = list(axes)
    refuse_twice(rows, keys)
    table = rows.assign(value=_tie_rounding(rows["value"].to_numpy(dtype=np.float64))).set_index(keys)
    table = table.reindex(pd.MultiIndex.from_product([*axes.values()], names=keys))
    shape = [len(names) for names in axes.values()]
    coded: dict[str, Floats] = {}
    for name in ("value", "there", "applies", "low", "high"):
        if name in table.columns:
            coded[name] = table[name].to_numpy(dtype=np.float64).reshape(shape)
    return coded


def _tie_rounding(values: Floats) -> Floats:
    """Make values equal that differ only by the rounding of sums, so that they tie."""
    # (1 + 1/2) / 3 and 1/2 are one score, but not always one float; coefficients would order them by the last bit.
    distinct, where = np.unique(values, return_inverse=True)
    if not len(distinct):
        return values
    low, high = float(np.nanmin(distinct, initial=0.0)), float(np.nanmax(distinct, initial=0.0))
    tolerance = _ROUNDING * np.abs(distinct[1:])
    if low < 0 < high:
        tolerance += _ROUNDING_OF_SUMS * max(-low, high)
    begins = np.append(True, (np.diff(distinct) > tolerance) | np.isnan(distinct[1:]))
    first = np.maximum.accumulate(np.where(begins, np.arange(len(distinct)), 0))
    return np.asarray(distinct[first[where]])


def _some(names: Iterable[str]) -> str:
    return some_of([repr(name) for name in sorted(set(names))])
