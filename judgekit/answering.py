"""The outcome: what queries are answered end to end, by our prompt or elsewhere, and how good the answers are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from judgekit.answers.answerer import MODES, Answerer, make_answerer
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
from judgekit.answers.quality import Answered, AnswerMetric, Score, metric as answer_metric
from judgekit.answers.reading import Answer
from judgekit.client.model_drift import origin
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.context import Context
from judgekit.data.documents import Queries, Unit
from judgekit.data.runs import Run
from judgekit.data.spans import where
from judgekit.data.tables import ALL, QUALITY, RATINGS, UNDECLARED
from judgekit.errors import DataError, UsageError, not_among
from judgekit.reading.asker import play
from judgekit.rules import DeclaredOutcome
from judgekit.spec import Value
from judgekit.wire.types import Origin, Outcome, Program, Request, most_requests

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
) -> pd.DataFrame | None:
    """Read ratings of answers about the collection's runs, from files of their own and beside imported answers.

    Args:
        files: of ratings.
        collection: queries, of which the experiment may take some only, and runs.
        depths: of the answers.
        model: that answered, where the file does not say.
        outcome: the outcome as declared: its scale, and the column of imported answers that holds it.
        imported: files of answers, each with its run where the rows do not say: ratings are columns of `RATED`.
        queries: ids of all questions: a rating of another one is an error.
    """
    runs = {run.name for run in collection.runs}
    known = {*queries, *collection.queries, ALL}
    found = [(file, read_ratings(file, model=model, outcome=outcome)) for file in files]
    for file, run in imported:
        beside = read_ratings_beside(file, run, model, outcome)
        found += [] if beside is None else [(file, beside)]
    tables = []
    for file, table in found:
        for column, what, names in (("query_id", "question", known), ("run", "run", {*runs, ALL})):
            odd = table[~table[column].isin(names)] if column in table.columns else table[:0]
            if len(odd):
                have = f" (the runs are {', '.join(sorted(runs))})" if column == "run" else ""
                reason = f"rates {what} {odd[column].iloc[0]!r}, which the experiment does not have{have}"
                raise DataError(reason, file, line_of(odd))
        tables.append(completed(table, runs, depths))
    if not tables:
        return None
    table = pd.concat(tables, ignore_index=True)
    keys = [key for key in ("run", "depth", "model", "query_id", "metric", "mode") if key in table.columns]
    twice = table[table.duplicated(keys)]
    if len(twice) and (outcome is None or not outcome.several):
        row = twice.iloc[0]
        raise UsageError(f"two of the files rate {row['metric']!r} of run {row['run']!r}, query {row['query_id']!r}")
    return table[table["query_id"].isin(list(collection.queries))]


_Asked = tuple[str, int]
"""A run's name and a depth."""


@dataclass(frozen=True)
class Answering:
    """How queries are answered end to end, by our prompt or elsewhere, and how the answers are rated.

    ``mode`` names one of several ways that are compared (the quality table's column); "" where there is one.
    """

    answerer: Answerer | Imported
    metrics: tuple[AnswerMetric, ...]
    mode: str = ""

    @property
    def model(self) -> str:
        """Who answers, as the quality table names it."""
        return self.answerer.model if isinstance(self.answerer, Imported) else self.answerer.endpoint.model

    @property
    def llm_metrics(self) -> list[AnswerMetric]:
        """The metrics that ask an LLM."""
        return [metric for metric in self.metrics if metric.endpoint is not None]

    def answered(self, unit: Unit, replies: Sequence[Outcome]) -> Answered:
        """Return the answer that metrics rate, once all replies are there."""
        assert isinstance(self.answerer, Answerer)  # imported answers are not asked for
        with_docs = any(metric.needs_docs for metric in self.metrics)
        return Answered(unit.query, self.answerer.answer(unit, replies), unit.docs if with_docs else ())


@dataclass(frozen=True)
class _Rated:
    """An answer and its ratings by LLMs as one program: what rates an answer is known once that is there."""

    answering: Answering

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave for the answer, then for each rating."""
        assert isinstance(self.answering.answerer, Answerer)
        wave, count = play(self.answering.answerer, unit, replies)
        if wave:
            return wave
        answered = self.answering.answered(unit, replies[:count])
        for metric in self.answering.llm_metrics:
            wave, further = play(metric, answered, replies[count:])
            if wave:
                return wave
            count += further
        return []

    def most(self, unit: Unit, /) -> int | None:
        """Return the most requests that a unit takes, None where the answerer or a metric does not say."""
        total = most_requests(self.answering.answerer, unit)  # type: ignore[arg-type]  # an Answerer, see above
        for metric in self.answering.llm_metrics:
            ratings = metric.most(Answered(unit.query, Answer("")))
            if total is None or ratings is None:
                return None
            total += ratings
        return total


def answers_asked(
    answering: Answering, collection: Collection | None, depths: Sequence[int], closed_book: bool = True
) -> Iterator[StageUnit]:
    """Yield what is asked for answers and their ratings: each list that is answered, or each imported answer."""
    answerer = answering.answerer
    if isinstance(answerer, Imported):
        found = _with_docs(answering, collection).found
        return ((metric, answered) for metric in answering.llm_metrics for answered in found)
    if collection is None:
        return iter(())
    program: Program[Unit] = _Rated(answering) if answering.llm_metrics else answerer
    return ((program, unit) for unit in _units_to_answer(collection, answer_units(collection, depths, closed_book)))


def build_answerings(
    resources: Context,
    *,
    endpoint: str | None = None,
    prompt: str = "answer-short",
    metrics: Sequence[str | AnswerMetric] = ("em", "f1"),
    options: Mapping[str, Value] | None = None,
    modes: Sequence[str] = (),
) -> list[Answering]:
    """Build the answerer and the answer metrics from their names, in each of the modes, or in that of the options."""
    given, asked = dict(options or {}), resources.endpoint(endpoint)
    for mode in modes:
        if mode not in MODES:
            raise UsageError(not_among("mode", mode, MODES))
        if modes.count(mode) > 1:
            raise UsageError(f"modes names {mode!r} twice")
    if modes and (own := next((name for name in ("mode", "order") if name in given), None)):
        raise UsageError(f"modes and the option {own} set the same thing: leave out one of them")
    rated = tuple(answer_metric(name, resources) for name in metrics)
    return [
        Answering(make_answerer(asked, prompt, resources, {**given, **MODES.get(mode, {})}), rated, mode)
        for mode in modes or [""]
    ]


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
    """Read what an application answered, by model, each with the metrics that rate it; see `read_answers`."""
    named = {run.name: run for run in runs}
    found = read_answers(source, queries, runs=list(named), depths=depths, answered_by=answered_by, limited=limited)
    for imported in found:
        check_contexts(imported, named)
    found = found if named else [replace(imported, contexts=None) for imported in found]
    built = tuple(answer_metric(name, resources) for name in metrics)
    # An experiment reads the ratings beside its files itself, with what it declares of them.
    ratings = None if isinstance(source, list) else read_ratings_beside(source, None, answered_by or UNDECLARED)
    if ratings is not None:
        found[0] = replace(found[0], ratings=ratings[ratings["query_id"].isin(list(queries))])
    made = [Answering(one, built, one.mode) for one in found]
    for one in made if ratings is None else ():
        check_references(queries, one)
    return made


def check_references(queries: Queries, answering: Answering) -> None:
    """Refuse to pay for answers that cannot be rated."""
    if (
        answering.metrics
        and all(m.needs_references for m in answering.metrics)
        and not any(q.answers for q in queries.values())
    ):
        names = ", ".join(m.name for m in answering.metrics)
        raise UsageError(
            f"answers are compared with reference answers ({names}), and no query has any. Add ratings, a labeler with"
            " labels that you trust, or a metric that needs no references, such as grounded"
        )


def answer_units(
    collection: Collection, depths: Sequence[int], closed_book: bool = True
) -> dict[tuple[str, tuple[str, ...]], list[_Asked]]:
    """Return what has to be answered: (query id, doc ids in order) and the (run, depth) pairs that ask for it."""
    asked: dict[tuple[str, tuple[str, ...]], list[_Asked]] = {}
    for query_id in collection.queries:
        if closed_book:
            asked.setdefault((query_id, ()), []).append((ALL, 0))
        for depth in depths:
            for run in collection.runs:
                asked.setdefault((query_id, tuple(run.top(query_id, depth))), []).append((run.name, depth))
    return asked


def _units_to_answer(collection: Collection, asked: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[Unit]:
    """Yield a unit for every (query id, doc ids)."""
    return (Unit(collection.queries[q], tuple(collection.docs.get(docs))) for q, docs in asked)


def answer_stage(model: str = "", mode: str = "") -> str:
    """Return the name of the stage that answers, with the model and the mode where there are several."""
    return " ".join(filter(None, ("answer", model, mode and f"({mode})")))


def rating_stage(stage: str, metric: AnswerMetric) -> str:
    """Return the name of the stage in which an LLM rates the answers of a stage."""
    return f"rate {metric.name}{stage.removeprefix('answer')}"


def at_depth(stage: str, depth: int) -> str:
    """Return the name under which the requests of a stage about answers from the top ``depth`` are counted."""
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
    """Answer every query from the top k documents of every run, for every depth k, and say how good the answers are."""
    answerer = answering.answerer
    if isinstance(answerer, Imported):
        answering = replace(answering, answerer=_with_docs(answering, collection))
        return QUALITY.check(await _rate_imported([answering], session, stage))
    asked = answer_units(collection, depths, closed_book)
    units = _units_to_answer(collection, asked)
    found: dict[Answered, list[tuple[_Asked, Origin]]] = {}
    async for unit, outcomes in session.resolve(units, answerer, stage=stage, total=len(asked)):
        answered = answering.answered(unit, outcomes)
        lists = asked[unit.query.query_id, tuple(d.doc_id for d in unit.docs)]
        found.setdefault(answered, []).extend((one, origin(outcomes)) for one in lists)
        for depth in {depth for _, depth in lists}:
            session.book(at_depth(stage, depth), answerer.endpoint, outcomes)
        for run, depth in lists if any(map(where, unit.docs)) else ():
            session.book(at_depth(f"{stage} {run}", depth), answerer.endpoint, outcomes)
    return QUALITY.check(await _rated(answering, found, session, stage))


def _with_docs(answering: Answering, collection: Collection | None) -> Imported:
    """Return imported answers; with the documents that they were made from, where a metric looks at them."""
    imported = answering.answerer
    assert isinstance(imported, Imported)
    if collection is None or not any(metric.needs_docs for metric in answering.metrics):
        return imported
    runs = {run.name: run for run in collection.runs}
    found: dict[Answered, list[tuple[Any, Any]]] = {}
    for answered, places in imported.found.items():
        for run, depth in places:
            top = runs[run].top(answered.query.query_id, int(depth)) if run in runs and depth else []
            found.setdefault(replace(answered, docs=tuple(collection.docs.get(top))), []).append((run, depth))
    return replace(imported, found=found)


async def answer_modes(
    modes: Sequence[Answering],
    collection: Collection | None,
    depths: Sequence[int],
    session: Session,
    *,
    closed_book: bool,
) -> pd.DataFrame:
    """Return what `answer_runs` does, all modes below each other; without a collection, rate imported answers."""
    if collection is None:
        return await _rate_imported(modes, session)
    tables = [
        await answer_runs(one, collection, depths, session, closed_book=closed_book, stage=answer_stage(mode=one.mode))
        for one in modes
    ]
    return pd.concat(tables, ignore_index=True)


async def _rate_imported(imported: Sequence[Answering], session: Session, stage: str = "answer") -> pd.DataFrame:
    """Return imported answers with their quality; without the columns run and depth where their table had none."""
    tables = [QUALITY.empty()]
    for one in imported:
        assert isinstance(one.answerer, Imported)  # as `import_answers` made it
        found = {answered: [(asked, ("", "")) for asked in at] for answered, at in one.answerer.found.items()}
        tables.append(await _rated(one, found, session, stage))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    for one in imported:
        ratings = one.answerer.ratings if isinstance(one.answerer, Imported) else None
        if ratings is not None:
            table = pd.concat([table, _beside(ratings, table)], ignore_index=True)
    return RATINGS.check(table.drop(columns=[c for c in ("run", "depth") if len(table) and table[c].isna().all()]))


def _beside(ratings: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return ratings with the only run and depth of the answers, where they name none."""
    for column in ("run", "depth"):
        known = answers[column].dropna().unique()
        if column not in ratings.columns and len(known) == 1:
            ratings = ratings.assign(**dict[str, Any]({column: known[0]}))
    return ratings.assign(abstained=0, seems_abstained=0)


async def _rated(
    answering: Answering, found: Mapping[Answered, Sequence[tuple[_Asked, Origin]]], session: Session, stage: str
) -> pd.DataFrame:
    """Return answers with their quality by every metric, sorted."""
    rows: list[dict[str, object]] = []
    unchecked = isinstance(answering.answerer, Imported) and answering.answerer.contexts is None
    for metric in answering.metrics:
        name = metric.name
        async for answered, score in _rate(metric, found, session, rating_stage(stage, metric)):
            result = answered.answer
            for (run, depth), (reply_model, fingerprint) in found[answered]:
                rows.append(
                    {
                        "run": run,
                        "depth": depth,
                        "model": answering.model,
                        "query_id": answered.query.query_id,
                        "metric": name,
                        "value": np.nan if score.value is None else score.value,
                        "answer": result.text,
                        "status": score.status.value,
                        "reason": score.reason,
                        "abstained": int(result.abstained),
                        "seems_abstained": int(result.seems_abstained),
                        "cut_tokens": result.cut_tokens,
                        **({"mode": answering.mode} if answering.mode else {}),
                        **({"contexts": UNCHECKED} if unchecked else {}),
                        "reply_model": reply_model,
                        "fingerprint": fingerprint,
                    }
                )
    keys = ["run", "depth", "query_id", "metric"]
    return pd.DataFrame(rows).sort_values(keys, ignore_index=True) if rows else QUALITY.empty()


async def _rate(
    metric: AnswerMetric, found: Mapping[Answered, Sequence[tuple[_Asked, Origin]]], session: Session, stage: str
) -> AsyncIterator[tuple[Answered, Score]]:
    if metric.endpoint is None:
        for unit in found:
            yield unit, metric.read(unit, [])
    else:
        async for unit, outcomes in session.resolve(list(found), metric, stage=stage, total=len(found)):
            for depth in {depth for (_, depth), _ in found[unit]}:
                session.book(at_depth(stage, depth), metric.endpoint, outcomes)
            yield unit, metric.read(unit, outcomes)
