"""The outcome: the answers to queries, by our prompt or from elsewhere, and their quality."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.imported import (
    UNCHECKED,
    Imported,
    check_contexts,
    completed,
    line_of,
    read_answers,
    read_ratings,
    read_ratings_beside,
)
from judgekit.answers.quality import Answered, AnswerMetric, Occurrence, Score, metric as answer_metric
from judgekit.answers.reading import Answer
from judgekit.client.model_drift import origin
from judgekit.client.stages import AllStages, StageUnit
from judgekit.collection import Collection
from judgekit.context import Context
from judgekit.data.documents import Queries, Unit
from judgekit.data.frames import AsDocs, AsQueries
from judgekit.data.runs import Run
from judgekit.data.spans import where
from judgekit.data.tables import ALL, QUALITY, RATINGS, SAMPLES, UNDECLARED, NotedTable
from judgekit.errors import DataError, UsageError, nearest
from judgekit.labelers.made import costs_of, endpoint_record
from judgekit.reading import ANSWER_METRICS, ANSWER_PROMPT
from judgekit.reading.asker import play
from judgekit.rules import DeclaredOutcome
from judgekit.wire.types import Outcome, Program, Request, most_requests

if TYPE_CHECKING:
    from judgekit.client.session import Session


def read_ratings_of(
    files: Iterable[Path],
    collection: Collection,
    depths: Sequence[int],
    model: str = UNDECLARED,
    *,
    outcome: DeclaredOutcome | None = None,
    imported: Iterable[tuple[Path, str | None]] = (),
    queries: Iterable[str] = (),
) -> NotedTable | None:
    """Read ratings of answers about the collection's runs, from files of their own and beside imported answers.

    The notes tell what to know about the files. Return None if nothing is rated.

    Args:
        files: files of ratings.
        collection: queries and runs; the experiment may use only some of the queries.
        depths: the depths of the answers.
        model: the answering model, if the file does not name it.
        outcome: the declared outcome: its scale, and its column in imported answers.
        imported: files of answers, with their run if the rows do not name it; ratings are columns of `RATED`.
        queries: the ids of all questions; a rating of any other is an error.
    """
    tables: list[tuple[Path, pd.DataFrame]] = []
    notes: list[str] = []
    for file in files:
        rated = read_ratings(file, model=model, outcome=outcome)
        tables.append((file, rated.table))
        notes += rated.notes
    for file, run in imported:
        beside = read_ratings_beside(file, run, model, outcome)
        if beside is not None:
            tables.append((file, beside))
    if not tables:
        return None

    runs = {run.name for run in collection.runs}
    questions = {*queries, *collection.queries, ALL}
    for file, table in tables:
        _check_rated(table, file, questions, runs)
    ratings = pd.concat([completed(table, runs, depths) for _, table in tables], ignore_index=True)
    # Two votes on an answer only belong to two users if a column says so.
    if outcome is None or not outcome.several:
        names = ("run", "depth", "model", "query_id", "metric", "mode", *SAMPLES)
        keys = [key for key in names if key in ratings.columns]
        twice = ratings[ratings.duplicated(keys)]
        if len(twice):
            row = twice.iloc[0]
            raise UsageError(
                f"two of the files rate {row['metric']!r} of run {row['run']!r}, query {row['query_id']!r}"
            )
    return NotedTable(ratings[ratings["query_id"].isin(list(collection.queries))], tuple(notes))


def _check_rated(table: pd.DataFrame, file: Path, questions: set[str], runs: set[str]) -> None:
    """Refuse ratings of questions and runs that the experiment does not have."""
    for column, known, what in (("query_id", questions, "question"), ("run", {*runs, ALL}, "run")):
        if column not in table.columns:
            continue
        # A rating without an answer would be dropped silently, and the decision would rest on the others.
        unknown = table[~table[column].isin(known)]
        if len(unknown):
            name = unknown[column].iloc[0]
            reason = f"rates {what} {name!r}, which the experiment does not have.{nearest(name, known)}"
            raise DataError(reason, file, line_of(unknown))


@dataclass(frozen=True)
class Answering:
    """The way of answering queries, by our prompt or elsewhere, and of rating the answers.

    ``mode`` names one of several modes to compare (the quality table's column), or "" for a single one. With
    ``samples`` each list is answered that many times, and the quality table has a row for each.
    """

    answerer: Answerer | Imported
    metrics: tuple[AnswerMetric, ...]
    mode: str = ""
    samples: int = 1

    @property
    def model(self) -> str:
        """The answering model, as named in the quality table."""
        if isinstance(self.answerer, Imported):
            return self.answerer.model
        return self.answerer.endpoint.model

    @property
    def answerers(self) -> list[Answerer]:
        """The answerers, one per sample; none if answers are imported."""
        if isinstance(self.answerer, Imported):
            return []
        if self.samples == 1:
            return [self.answerer]
        return [replace(self.answerer, sample=sample) for sample in range(self.samples)]

    @property
    def llm_metrics(self) -> list[AnswerMetric]:
        """The metrics that ask an LLM."""
        return [metric for metric in self.metrics if metric.endpoint is not None]

    @property
    def needs_docs(self) -> bool:
        """Whether a metric uses the documents behind an answer."""
        return any(metric.needs_docs for metric in self.metrics)


@dataclass(frozen=True)
class _AnswerAndRatings:
    """An answer and its ratings by LLMs as one program, since requests for ratings depend on the answer."""

    answerer: Answerer
    answering: Answering

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave for the answer, then for each rating."""
        # The replies are one list: first the answer's, then those of each rating.
        wave, count = play(self.answerer, unit, replies)
        if wave:
            return wave
        answered = self.answered(unit, replies[:count])
        for metric in self.answering.llm_metrics:
            wave, further = play(metric, answered, replies[count:])
            if wave:
                return wave
            count += further
        return []

    def most(self, unit: Unit, /) -> int | None:
        """Return the largest number of requests for a unit; None if the answerer or a metric does not tell."""
        total = most_requests(self.answerer, unit)
        # A rating's number of requests does not depend on the answer.
        to_come = Answered(unit.query, Answer(""))
        for metric in self.answering.llm_metrics:
            ratings = metric.most(to_come)
            if total is None or ratings is None:
                return None
            total += ratings
        return total

    def read(self, unit: Unit, replies: Sequence[Outcome]) -> None:
        """Read all replies, including those of ratings."""
        _, count = play(self.answerer, unit, replies)
        answered = self.answered(unit, replies[:count])
        for metric in self.answering.llm_metrics:
            _, further = play(metric, answered, replies[count:])
            metric.read(answered, replies[count : count + further])
            count += further

    def answered(self, unit: Unit, replies: Sequence[Outcome]) -> Answered:
        """Return the answer to rate, if all replies to the question are there."""
        return Answered(unit.query, self.answerer.answer(unit, replies), unit.docs if self.answering.needs_docs else ())


def answers_asked(
    answering: Answering, collection: Collection | None, depths: Sequence[int], closed_book: bool = True
) -> Iterator[StageUnit]:
    """Yield the units for answers and ratings: each list to answer from, or each imported answer."""
    answerer = answering.answerer
    if isinstance(answerer, Imported):
        given = _with_docs(answerer, answering, collection).given
        for metric in answering.llm_metrics:
            for answered in given:
                yield metric, answered
    elif collection is not None:
        for sample in answering.answerers:
            program: Program[Unit] = sample
            if answering.llm_metrics:
                program = _AnswerAndRatings(sample, answering)
            for unit in _units_to_answer(collection, answer_units(collection, depths, closed_book)):
                yield program, unit


def build_answerings(
    resources: Context,
    *,
    endpoint: str | None = None,
    prompt: str = ANSWER_PROMPT,
    metrics: Sequence[str | AnswerMetric] = ANSWER_METRICS,
    modes: Sequence[str] = (),
    context_tokens: int | None = None,
    samples: int = 1,
) -> list[Answering]:
    """Build the answerer and the answer metrics from their names, in each of the modes.

    Raises:
        UsageError: a mode is named twice, or several samples would be the same answer.
    """
    answers_by = resources.endpoint(endpoint)
    if samples > 1 and answers_by.params.get("temperature") == 0:
        raise UsageError(
            f"endpoint {answers_by.name!r} has temperature 0, at which {samples} samples are {samples} times the same"
            " answer: set another temperature, or leave samples out"
        )
    built = tuple(answer_metric(name, resources) for name in metrics)
    answerings: list[Answering] = []
    for mode in modes or ["together"]:
        answerer = make_answerer(answers_by, prompt, resources, mode=mode, context_tokens=context_tokens)
        # Columns with the same name could not be distinguished.
        if any(mode == other.mode for other in answerings):
            raise UsageError(f"modes names {mode!r} twice")
        answerings.append(Answering(answerer, built, mode if modes else "", samples))
    return answerings


def import_answers(
    source: str | Path | pd.DataFrame | list[tuple[Path, str | None]],
    queries: Queries,
    resources: Context,
    metrics: Sequence[str | AnswerMetric],
    *,
    runs: Sequence[Run] = (),
    depths: Sequence[int] = (),
    answered_by: str | None = None,
    limited: bool = False,
) -> list[Answering]:
    """Read an application's answers by model, with the metrics to rate them; see `read_answers`."""
    named = {run.name: run for run in runs}
    built = tuple(answer_metric(name, resources) for name in metrics)
    answerings = []
    for imported in read_answers(
        source, queries, runs=list(named), depths=depths, answered_by=answered_by, limited=limited
    ):
        check_contexts(imported, named)
        if not named:
            imported = replace(imported, contexts=None)
        answerings.append(Answering(imported, built, imported.mode))
    check_references(queries, answerings[0])
    return answerings


def passages_of(
    answerings: Sequence[Answering],
    queries: AsQueries,
    docs: AsDocs | None,
    runs: Sequence[Run],
    cache: str | Path | None,
) -> Collection | None:
    """Return the collection behind imported answers; None if no metric uses their passages.

    Raises:
        UsageError: a metric uses passages, but those behind the answers are unknown.
    """
    looking = [metric.name for metric in answerings[0].metrics if metric.needs_docs]
    if not looking:
        return None
    needs = f"{' and '.join(looking)}: rating an answer by the passages that it was made from"
    if docs is None or not runs:
        raise UsageError(f"{needs} needs the documents and the runs (--docs and --run; in Python docs and runs)")
    depths: set[Any] = set()
    for answering in answerings:
        if isinstance(answering.answerer, Imported):
            for occurrences in answering.answerer.given.values():
                depths.update(occurrence.depth for occurrence in occurrences)
    if None in depths:
        raise UsageError(
            f"{needs} needs the number of its documents: add a column depth to the answers, or give one depth"
        )
    return Collection.make(queries, docs, runs, max(1, *map(int, depths)), cache=cache)


def check_references(queries: Queries, answering: Answering) -> None:
    """Refuse to pay for answers that cannot be rated."""
    names = []
    for metric in answering.metrics:
        if not metric.needs_references:
            return
        names.append(metric.name)
    if not names or any(query.answers for query in queries.values()):
        return
    raise UsageError(
        f"answers are compared with reference answers ({', '.join(names)}), and no query has any. Add ratings, a"
        " metric that needs no references, such as grounded, or name as outcome a labeler whose labels you trust"
    )


_List = tuple[str, tuple[str, ...]]
"""The input of an answer: a query's id, and the ids of documents in order."""


def answer_units(
    collection: Collection, depths: Sequence[int], closed_book: bool = True
) -> dict[_List, list[tuple[str, int]]]:
    """Return the lists to answer from, with the runs and depths of each."""
    # Runs with the same top documents share a list, which is answered once and counts for each.
    lists: dict[_List, list[tuple[str, int]]] = {}
    for query_id in collection.queries:
        if closed_book:
            lists.setdefault((query_id, ()), []).append((ALL, 0))
        for depth in depths:
            for run in collection.runs:
                top = tuple(run.top(query_id, depth))
                lists.setdefault((query_id, top), []).append((run.name, depth))
    return lists


def _units_to_answer(collection: Collection, lists: Iterable[_List]) -> Iterator[Unit]:
    for query_id, doc_ids in lists:
        yield Unit(collection.queries[query_id], tuple(collection.docs.get(doc_ids)))


def answer_stage(model: str = "", mode: str = "") -> str:
    """Return the name of the answering stage, with the model and the mode if there are several."""
    return " ".join(filter(None, ("answer", model, mode and f"({mode})")))


def rating_stage(stage: str, metric: AnswerMetric) -> str:
    """Return the name of the stage in which an LLM rates a stage's answers."""
    return f"rate {metric.name}{stage.removeprefix('answer')}"


def stage_at_depth(stage: str, depth: int) -> str:
    """Return the name under which a stage's requests about answers from the top ``depth`` count."""
    return f"{stage}, top {depth}"


async def answer_runs(
    answering: Answering,
    collection: Collection,
    depths: Sequence[int],
    session: Session,
    *,
    closed_book: bool = True,
    stage: str = "answer",
) -> pd.DataFrame:
    """Answer every query from the top k documents of every run, for every depth k, and rate the answers."""
    answerer = answering.answerer
    if isinstance(answerer, Imported):
        given_answers = _with_docs(answerer, answering, collection).given
        return QUALITY.check(await _rated(answering, given_answers, session, stage))
    lists = answer_units(collection, depths, closed_book)
    given: dict[Answered, list[Occurrence]] = {}
    answerers = answering.answerers
    # All samples are one stage, so that its progress counts them together.
    units = ((sampled, unit) for sampled in answerers for unit in _units_to_answer(collection, lists))
    total = len(lists) * len(answerers)
    async for (sampled, unit), outcomes in session.resolve(units, AllStages(), stage=stage, total=total):
        places = lists[unit.query.query_id, tuple(doc.doc_id for doc in unit.docs)]
        of = origin(outcomes)
        occurrences = [Occurrence(run, depth, *of, sampled.sample) for run, depth in places]
        program = _AnswerAndRatings(sampled, answering)
        given.setdefault(program.answered(unit, outcomes), []).extend(occurrences)
        # The decision is about one depth, so its price must not include other depths.
        for depth in {depth for _, depth in places}:
            session.book(stage_at_depth(stage, depth), answerer.endpoint, outcomes)
        if any(map(where, unit.docs)):  # runs with different chunks are compared by their own costs
            for run, depth in places:
                session.book(stage_at_depth(f"{stage} {run}", depth), answerer.endpoint, outcomes)
    return QUALITY.check(await _rated(answering, given, session, stage))


def _with_docs(imported: Imported, answering: Answering, collection: Collection | None) -> Imported:
    """Return imported answers, with the documents behind them if a metric uses these."""
    if collection is None or not answering.needs_docs:
        return imported
    runs = {run.name: run for run in collection.runs}
    given: dict[Answered, list[Occurrence]] = {}
    for answered, occurrences in imported.given.items():
        for occurrence in occurrences:
            query_id = answered.query.query_id
            shown: Sequence[str] = ()
            if occurrence.run in runs and occurrence.depth:
                shown = runs[occurrence.run].top(query_id, int(occurrence.depth))
                # The same documents, in the order in which the application showed them: [1] cites the first of these.
                shown = (imported.contexts or {}).get((occurrence.run, occurrence.depth, query_id), shown)
            answered_from = replace(answered, docs=tuple(collection.docs.get(shown)))
            given.setdefault(answered_from, []).append(occurrence)
    return replace(imported, given=given)


async def answer_modes(
    modes: Sequence[Answering],
    collection: Collection | None,
    depths: Sequence[int],
    session: Session,
    *,
    closed_book: bool,
) -> pd.DataFrame:
    """Return the result of `answer_runs` for all modes, concatenated; without a collection, rate imported answers."""
    tables = []
    for answering in modes:
        stage = answer_stage(mode=answering.mode)
        if collection is not None:
            table = await answer_runs(answering, collection, depths, session, closed_book=closed_book, stage=stage)
        elif isinstance(answering.answerer, Imported):
            table = await _rated(answering, answering.answerer.given, session, stage)
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    if collection is not None:
        return table
    # Without the columns run and depth, if the table of answers had none.
    for column in ("run", "depth"):
        if len(table) and table[column].isna().all():
            table = table.drop(columns=column)
    return RATINGS.check(table)


def answers_made(ways: Sequence[Answering], session: Session, depths: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the origin of each model's answers (`judgekit.labelers.made`), with their costs by depth."""
    made: dict[str, dict[str, Any]] = {}
    for way in ways:
        record: dict[str, Any] = {"model": way.model, "endpoint": None, "prompt": "", "costs": {}}
        if not isinstance(way.answerer, Imported):
            record |= {"endpoint": endpoint_record(way.answerer.endpoint), "prompt": way.answerer.prompt.name}
            stage = answer_stage(mode=way.mode)
            for depth in depths:
                amount = session.usage(stage_at_depth(stage, depth)).standalone
                record["costs"][str(depth)] = costs_of(amount)
        made.setdefault(way.model, record)
    return made


async def _rated(
    answering: Answering, given: Mapping[Answered, Sequence[Occurrence]], session: Session, stage: str
) -> pd.DataFrame:
    """Return answers with their quality by every metric, sorted."""
    imported = answering.answerer
    extra: dict[str, object] = {}
    if answering.mode:
        extra["mode"] = answering.mode
    if isinstance(imported, Imported) and imported.contexts is None:
        # The passages could not be compared with a run, so the table says that they were not checked.
        extra["contexts"] = UNCHECKED
    rows: list[dict[str, object]] = []
    for metric in answering.metrics:
        name = metric.name
        _note_published(metric, given, session)
        async for answered, score in _scored(metric, given, session, rating_stage(stage, metric)):
            answer = answered.answer
            for occurrence in given[answered]:
                if occurrence.sample is not None:
                    extra["sample"] = occurrence.sample + 1
                rows.append(
                    {
                        "run": occurrence.run,
                        "depth": occurrence.depth,
                        "model": answering.model,
                        "query_id": answered.query.query_id,
                        "metric": name,
                        "value": np.nan if score.value is None else score.value,
                        "answer": answer.text,
                        "status": score.status.value,
                        "reason": score.reason,
                        "abstained": int(answer.abstained),
                        "seems_abstained": int(answer.seems_abstained),
                        "cut_tokens": answer.cut_tokens,
                        **extra,
                        "reply_model": occurrence.reply_model,
                        "fingerprint": occurrence.fingerprint,
                    }
                )
    if not rows:
        return QUALITY.empty()
    # Replies come in any order, but a table needs a fixed one.
    order = ["run", "depth", "query_id", "metric", *({"sample"} & extra.keys())]
    return pd.DataFrame(rows).sort_values(order, ignore_index=True)


def _note_published(metric: AnswerMetric, given: Mapping[Answered, Sequence[Occurrence]], session: Session) -> None:
    """Note how many answers have another value by the published scripts' variant of a metric."""
    # For 0.4 only: until 0.3 the published scripts' rule was the default.
    published = metric.published
    if published is None:
        return
    count = others = 0
    for answered, occurrences in given.items():
        count += len(occurrences)
        if metric.read(answered, []).value != published.read(answered, []).value:
            others += len(occurrences)
    if others:
        session.note(f"{metric.name}: {others:,} of {count:,} values differ under {published.name}", once=True)


async def _scored(
    metric: AnswerMetric, given: Mapping[Answered, Sequence[Occurrence]], session: Session, stage: str
) -> AsyncIterator[tuple[Answered, Score]]:
    """Yield each answer with its score by a metric, and count an LLM's cost for it."""
    if metric.endpoint is None:
        for answered in given:
            yield answered, metric.read(answered, [])
        return
    async for answered, outcomes in session.resolve(list(given), metric, stage=stage, total=len(given)):
        for depth in {occurrence.depth for occurrence in given[answered]}:
            session.book(stage_at_depth(stage, depth), metric.endpoint, outcomes)
        yield answered, metric.read(answered, outcomes)
