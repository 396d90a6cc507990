"""The stages label, answer, score: the one code behind the command line, the Python API and the experiment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pandas as pd

from judgekit.analysis.controls import LENGTH, RETRIEVER
from judgekit.answers.answerer import MODES, Answerer, make_answerer
from judgekit.answers.imported import Imported, completed, read_answers, read_ratings
from judgekit.answers.quality import Answered, AnswerMetric, Score
from judgekit.answers.quality import metric as answer_metric
from judgekit.client.origins import origin
from judgekit.data.checks import check_runs
from judgekit.data.documents import Docs, Fields, Queries, Unit
from judgekit.data.forms import resolved
from judgekit.data.frames import AsDocs, AsQueries, AsRuns, as_docs, as_queries, as_runs
from judgekit.data.labelings import LabelFile, Labeling, Scale
from judgekit.data.outputs import note_read
from judgekit.data.readers import check_numbers
from judgekit.data.runs import Run, pool
from judgekit.data.spans import where
from judgekit.data.tables import ALL, QUALITY, RATINGS, SCORES, UNDECLARED, Status
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.labelers.base import Label, Labeler, checked
from judgekit.progress import Progress, silent
from judgekit.reading.prompts import list_prompts
from judgekit.spec import Value
from judgekit.wire.types import Endpoint, Origin

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

    from judgekit.client.budget import Budget, Prices
    from judgekit.client.session import Mode, Session
    from judgekit.metrics import Evaluation, Measure
    from judgekit.metrics.evaluation import Missing

__all__ = [
    "Answering",
    "Collection",
    "Resources",
    "answer_modes",
    "answer_runs",
    "answer_stage",
    "answer_units",
    "answering",
    "at_depth",
    "at_depths",
    "check_references",
    "control_scores",
    "import_answers",
    "label_pool",
    "label_units",
    "rating_stage",
    "read_ratings_of",
    "resources_of",
    "score_pool",
    "twin",
    "units_to_answer",
    "with_session",
]

T = TypeVar("T")

_ORIGIN: Final = ("reply_model", "fingerprint")
_KEPT: Final = 1 << 16
"""Labels that a stage keeps as objects before they go to disk."""


@dataclass(frozen=True)
class Resources:
    """What labelers may ask for while they are built: endpoints by name, files, prompts, the rendering of documents.

    Raises:
        ConfigError: a prompt of the user's folder makes no sense, or there is none.
    """

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None
    prompts: Path | None = None

    def __post_init__(self) -> None:
        if self.prompts is not None:
            list_prompts(self.prompts)

    def endpoint(self, name: str | None) -> Endpoint:
        """Return the endpoint of that name, or the only one if ``name`` is None.

        Raises:
            ConfigError: there is none of that name, or none at all, or several and no name was given.
        """
        have = ", ".join(self.endpoints) or "none"
        if name is None:
            if len(self.endpoints) == 1:
                return next(iter(self.endpoints.values()))
            if not self.endpoints:
                raise ConfigError(
                    "an LLM is needed and no endpoint is defined: give its base_url and model (--base-url, --model)"
                )
            raise ConfigError(f"an LLM is needed and several endpoints are defined: say which (endpoints: {have})")
        if name not in self.endpoints:
            raise ConfigError(not_among("endpoint", name, self.endpoints))
        return self.endpoints[name]

    def path(self, text: str) -> Path:
        """Return a file's path, relative ones being relative to ``base``."""
        path = resolved(text, self.base)
        note_read(path)
        return path


@dataclass(frozen=True)
class Collection:
    """Queries, documents and runs that belong together, and the depth of the pool.

    Attributes:
        queries: all queries of the experiment, in file order.
        docs: the documents.
        runs: the runs, cut to ``depth`` and to the queries.
        depth: how many documents per run and query are pooled.
        fields: how documents are rendered.
    """

    queries: Queries
    docs: Docs
    runs: tuple[Run, ...]
    depth: int
    fields: Fields = "title+text"

    @classmethod
    def make(
        cls,
        queries: AsQueries,
        docs: AsDocs,
        runs: AsRuns,
        depth: int,
        limit: int | None = None,
        fields: Fields = "title+text",
        cache: str | Path | None = None,
    ) -> Collection:
        """Read what is given, check that it fits together, take the first ``limit`` queries, cut the runs to ``depth``.

        The index of a large collection lies in ``cache``, by default the user's cache folder.

        Raises:
            DataError: a file cannot be read; a run holds a query or a document that the collection lacks, or nothing.
            UsageError: the depth is below 1, or something given is not queries, docs or runs.
        """
        if depth < 1:
            raise UsageError(f"the depth is how many documents of each list are looked at: at least 1, not {depth}")
        found = [run.cut(depth) for run in as_runs(runs)]
        asked, collection = as_queries(queries), as_docs(docs, cache)
        for file in runs.values() if isinstance(runs, Mapping) else runs if isinstance(runs, list) else [runs]:
            if isinstance(file, str | Path):
                check_numbers(file, asked)
        check_runs(found, asked, collection)
        whole = cls(asked, collection, tuple(found), depth, fields)
        return whole if limit is None else whole.only(list(asked)[:limit])

    def only(self, query_ids: Iterable[str]) -> Collection:
        """Return the collection with some queries alone, in its own order."""
        wanted = set(query_ids)
        queries = {query_id: query for query_id, query in self.queries.items() if query_id in wanted}
        return replace(self, queries=queries, runs=tuple(run.only(queries) for run in self.runs))

    @cached_property
    def pairs(self) -> dict[str, list[str]]:
        """The pooled doc ids per query: what every labeler labels."""
        return dict(self.pooled())

    def pooled(self) -> Iterator[tuple[str, list[str]]]:
        """Yield query by query what is in `pairs`, which takes a hundred bytes a pair."""
        return pool(self.runs, self.queries, self.depth)

    @property
    def n_pairs(self) -> int:
        """The number of pooled pairs."""
        return sum(len(doc_ids) for _, doc_ids in self.pooled())


def read_ratings_of(
    files: Iterable[Path], collection: Collection, depths: Sequence[int], model: str = UNDECLARED
) -> pd.DataFrame | None:
    """Read ratings of answers about the collection's runs; those about other queries are left out.

    Returns:
        A quality table, or None without a file. Where a file names no run or depth, the collection's only one is meant.

    Raises:
        DataError, UsageError: a file cannot be read, or is about a run that the collection lacks.
    """
    runs = {run.name for run in collection.runs}
    tables = [completed(read_ratings(file, model=model), runs, depths) for file in files]
    if not tables:
        return None
    table = pd.concat(tables, ignore_index=True)
    keys = [key for key in ("run", "depth", "model", "query_id", "metric", "mode") if key in table.columns]
    twice = table[table.duplicated(keys)]
    if len(twice):
        row = twice.iloc[0]
        raise UsageError(f"two of the files rate {row['metric']!r} of run {row['run']!r}, query {row['query_id']!r}")
    unknown = sorted(set(table["run"]) - runs - {ALL})
    if unknown:
        known = ", ".join(sorted(runs))
        raise UsageError(f"the ratings are of run {unknown[0]!r}, which is not in [runs] ({known})")
    return table[table["query_id"].isin(list(collection.queries))]


def label_units(labeler: Labeler, collection: Collection) -> Iterator[Unit]:
    """Yield the units that a labeler cuts the pool into, query by query."""
    for query_id, doc_ids in collection.pooled():
        if doc_ids:
            yield from labeler.units(collection.queries[query_id], collection.docs.get(doc_ids))


async def label_pool(
    labeler: Labeler,
    collection: Collection,
    session: Session,
    name: str | None = None,
    units: Sequence[Unit] | None = None,
) -> Labeling:
    """Label every pair of the pool, or of some units.

    Raises:
        StoppedError: the endpoint or the budget ended the run; the replies so far are in the store.
    """
    name = name or str(labeler.spec)
    labels: list[Label] = []
    origins: dict[Origin, int] = {}
    made_by: list[int] = []

    def rows() -> pd.DataFrame:
        columns = dict(zip(_ORIGIN, zip(*origins, strict=True), strict=False))
        found = frame_of(labels, {c: pd.array(names, dtype="str").take(made_by) for c, names in columns.items()})
        labels.clear()
        made_by.clear()
        return found

    asked = label_units(labeler, collection) if units is None else units
    total = collection.n_pairs if units is None else sum(len(unit.docs) for unit in units)
    with LabelFile(session.folder) as kept:
        pairs = session.resolve(asked, labeler, f"label {name}", total, size=lambda unit: len(unit.docs))
        async for unit, outcomes in pairs:
            made = checked(labeler, unit, outcomes)
            stands = {doc.doc_id: at for doc in unit.docs if (at := where(doc))}
            for one in made if stands else ():
                one.extra = {**stands.get(one.doc_id, {}), **one.extra}
            labels.extend(made)
            made_by += [origins.setdefault(origin(outcomes), len(origins))] * len(made)
            if len(labels) >= _KEPT:
                kept.add(rows())
        table = kept.table(rows())
    if not any(map(any, origins)):
        table = table.select([column for column in table.column_names if column not in _ORIGIN])
    return Labeling.from_table(name, labeler.scale, table)


def frame_of(labels: Sequence[Label], columns: Mapping[str, ExtensionArray] | None = None) -> pd.DataFrame:
    """Return labels as a table; further columns are those given and what the labels hold extra."""
    frame = pd.DataFrame(
        {
            "query_id": [x.query_id for x in labels],
            "doc_id": [x.doc_id for x in labels],
            "relevance": np.array([np.nan if x.relevance is None else x.relevance for x in labels], dtype=np.float64),
            "status": [x.status.value for x in labels],
            "raw": [x.raw for x in labels],
            "reason": [x.reason for x in labels],
        }
    )
    for column, values in (columns or {}).items():
        frame[column] = values
    for column in sorted({key for x in labels for key in x.extra}):
        frame[column] = [x.extra.get(column) for x in labels]
    return frame


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
    def asking(self) -> list[AnswerMetric]:
        """The metrics that ask an LLM."""
        return [metric for metric in self.metrics if metric.endpoint is not None]


def answering(
    resources: Resources,
    *,
    endpoint: str | None = None,
    prompt: str = "answer-short",
    metrics: Sequence[str | AnswerMetric] = ("em", "f1"),
    options: Mapping[str, Value] | None = None,
    modes: Sequence[str] = (),
) -> list[Answering]:
    """Build the answerer and the answer metrics from their names, in each of the modes, or in that of the options.

    Raises:
        ConfigError, UsageError: there is no such endpoint, prompt, metric, option or mode.
    """
    given, asked = dict(options or {}), resources.endpoint(endpoint)
    for mode in modes:
        if mode not in MODES:
            raise UsageError(not_among("mode", mode, MODES))
        if modes.count(mode) > 1:
            raise UsageError(f"modes names {mode!r} twice")
    if modes and (own := next((name for name in ("mode", "order") if name in given), None)):
        raise UsageError(f"modes and the option {own} say the same: leave one of them out")
    rated = tuple(answer_metric(name, resources) for name in metrics)
    return [
        Answering(make_answerer(asked, prompt, resources, {**given, **MODES.get(mode, {})}), rated, mode)
        for mode in modes or [""]
    ]


def import_answers(
    source: str | Path | pd.DataFrame,
    queries: Queries,
    resources: Resources,
    metrics: Sequence[str | AnswerMetric],
    *,
    runs: Sequence[str] = (),
    depths: Sequence[int] = (),
    answered_by: str | None = None,
    limited: bool = False,
) -> list[Answering]:
    """Read what an application answered, by model, each with the metrics that rate it; see `read_answers`.

    Raises:
        DataError, UsageError: it is not such a table, or cannot be rated.
    """
    found = read_answers(source, queries, runs=runs, depths=depths, answered_by=answered_by, limited=limited)
    built = tuple(answer_metric(name, resources) for name in metrics)
    made = [Answering(one, built, one.mode) for one in found]
    for one in made:
        check_references(queries, one)
    return made


def check_references(queries: Queries, answering: Answering) -> None:
    """Refuse to pay for answers that cannot be rated.

    Raises:
        UsageError: every metric compares answers with reference answers, and no query has any.
    """
    if (
        answering.metrics
        and all(m.needs_references for m in answering.metrics)
        and not any(q.answers for q in queries.values())
    ):
        names = ", ".join(m.name for m in answering.metrics)
        raise UsageError(f"answers are compared with reference answers ({names}), and no query has any")


def answer_units(
    collection: Collection, depths: Sequence[int], closed_book: bool = True
) -> dict[tuple[str, tuple[str, ...]], list[_Asked]]:
    """Return what has to be answered: (query id, doc ids in order) and the (run, depth) pairs that ask for it.

    Lists that two runs or depths share are answered once. Closed-book answering has depth 0 and run ``all``.
    """
    asked: dict[tuple[str, tuple[str, ...]], list[_Asked]] = {}
    for query_id in collection.queries:
        if closed_book:
            asked.setdefault((query_id, ()), []).append((ALL, 0))
        for depth in depths:
            for run in collection.runs:
                asked.setdefault((query_id, tuple(run.top(query_id, depth))), []).append((run.name, depth))
    return asked


def units_to_answer(collection: Collection, asked: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[Unit]:
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
    """Answer every query from the top k documents of every run, for every depth k, and say how good the answers are.

    Imported answers are only rated.

    Returns:
        The quality table, sorted by run, depth, query and metric: one row per run, depth, query and metric, with
        the answer, whether it abstains or only reads as if it did, and how many estimated tokens did not fit into
        the context budget.

    Raises:
        StoppedError: the endpoint or the budget ended the run; the replies so far are in the store.
    """
    answerer = answering.answerer
    with_docs = any(metric.needs_docs for metric in answering.metrics)
    if isinstance(answerer, Imported):
        if with_docs:
            answering = replace(answering, answerer=_with_docs(answerer, collection))
        return QUALITY.check(await _rate_imported([answering], session, stage))
    asked = answer_units(collection, depths, closed_book)
    units = units_to_answer(collection, asked)
    found: dict[Answered, list[tuple[_Asked, Origin]]] = {}
    async for unit, outcomes in session.resolve(units, answerer, stage=stage, total=len(asked)):
        answered = Answered(unit.query, answerer.answer(unit, outcomes), unit.docs if with_docs else ())
        lists = asked[unit.query.query_id, tuple(d.doc_id for d in unit.docs)]
        found.setdefault(answered, []).extend((one, origin(outcomes)) for one in lists)
        for depth in {depth for _, depth in lists}:
            session.book(at_depth(stage, depth), answerer.endpoint, outcomes)
        for run, depth in lists if any(map(where, unit.docs)) else ():
            session.book(at_depth(f"{stage} {run}", depth), answerer.endpoint, outcomes)
    return QUALITY.check(await _rated(answering, found, session, stage))


def _with_docs(imported: Imported, collection: Collection) -> Imported:
    """Return imported answers with the documents that they were made from, where run and depth say which."""
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
    return RATINGS.check(table.drop(columns=[c for c in ("run", "depth") if len(table) and table[c].isna().all()]))


async def _rated(
    answering: Answering, found: Mapping[Answered, Sequence[tuple[_Asked, Origin]]], session: Session, stage: str
) -> pd.DataFrame:
    """Return answers with their quality by every metric, sorted."""
    rows: list[dict[str, object]] = []
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


def at_depths(measures: Iterable[Measure], depths: Sequence[int]) -> list[Measure]:
    """Return the measures, each that can have a cutoff and has none being taken at every answer depth."""
    out: list[Measure] = []
    for measure in measures:
        open_ = measure.definition.cutoff and measure.spec.cutoff is None
        out.extend([measure.at(k) for k in depths] if open_ else [measure])
    return list(dict.fromkeys(out))


def score_pool(
    collection: Collection, labelings: Sequence[Labeling], measures: Sequence[Measure], missing: Missing = "undefined"
) -> Evaluation:
    """Score all runs under all labelings, over all queries of the experiment."""
    from judgekit.metrics import evaluate

    if not labelings:
        raise UsageError("give at least one labeling to score the runs with")
    return evaluate(
        collection.runs,
        labelings,
        measures,
        query_ids=list(collection.queries),
        depth=collection.depth,
        missing=missing,
        docs=collection.docs,
        fields=collection.fields,
    )


def score_bounds(
    collection: Collection, labelings: Sequence[Labeling], measure: str, scores: pd.DataFrame
) -> pd.DataFrame:
    """Return the score table with columns ``low`` and ``high``: what scores may be by the labels that are missing.

    They are worked out for one measure, if it has bounds at all and labels are missing; else the table stays as it is.
    """
    from judgekit.metrics import Measure

    missing = [labeling for labeling in labelings if labeling.missing.any()]
    try:
        bounded = score_pool(collection, missing, [Measure(measure)], "bounds").scores() if missing else None
    except UsageError:
        return scores
    if bounded is None or not (bounded["low"] < bounded["high"]).any():
        return scores
    return scores.merge(bounded.drop(columns="value"), how="left", on=["labeling", "run", "measure", "query_id"])


_FUSION: Final = 60


def control_scores(collection: Collection, measure: str) -> pd.DataFrame:
    """Return scores of the runs under two labelings that know no question, named as those of ``measure``.

    One is 1 / rank in a fusion of the runs (reciprocal ranks, Cormack et al. 2009), the other how long a document is.

    They are gains, so they are scored by nDCG, at the measure's cutoff.

    Returns:
        Columns of the score table; without rows where there is one run, whose ranks are its own.
    """
    from judgekit.metrics import Measure

    if len(collection.runs) < 2:
        return SCORES.empty()
    made: dict[str, list[Label]] = {RETRIEVER: [], LENGTH: []}
    for query_id, doc_ids in collection.pooled():
        fused = dict.fromkeys(doc_ids, 0.0)
        for run in collection.runs:
            for rank, doc_id in enumerate(run.top(query_id, collection.depth), 1):
                fused[doc_id] += 1 / (_FUSION + rank)
        ranked = sorted(doc_ids, key=lambda doc_id: (-fused[doc_id], doc_id))
        made[RETRIEVER] += [Label(query_id, doc_id, 1 / rank) for rank, doc_id in enumerate(ranked, 1)]
        sizes = [len(doc.text) for doc in collection.docs.get(doc_ids)]
        longest = max([1, *sizes])
        made[LENGTH] += [Label(query_id, d, size / longest) for d, size in zip(doc_ids, sizes, strict=True)]
    given = Measure(measure)
    gain = Measure(replace(given.spec, name="nDCG", params=()))
    labelings = [Labeling(name, Scale("unit"), frame_of(labels)) for name, labels in made.items()]
    return score_pool(collection, labelings, [gain]).scores().assign(measure=measure)


def twin(labeling: Labeling) -> dict[str, float]:
    """Return a labeling's question-only twin: the mean label per query over its pool, of the labels that there are."""
    table = labeling.table
    means = table[table["status"] == Status.OK.value].groupby("query_id")["relevance"].mean()
    return {str(query_id): float(value) for query_id, value in means.items()}


def with_session(
    work: Callable[[Session], Awaitable[T]],
    *,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    prices: Prices | None = None,
    progress: Progress = silent,
    wait_s: float = 0.0,
) -> T:
    """Return what ``work`` returns, given a session; works under a running event loop (a notebook) too.

    Args:
        work: what to do.
        cache: folder of the reply store; the user's cache folder by default.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        prices: money per million tokens, by endpoint name or model id.
        progress: called with events.
        wait_s: how long a server that is not ready is waited for.
    """
    from judgekit.client.session import Session, run_sync
    from judgekit.store.replies import default_store_path

    async def inside() -> T:
        store = default_store_path() if cache is None else cache
        async with Session(store, mode, budget, prices, progress, wait_s=wait_s) as session:
            return await work(session)

    return run_sync(inside())


def resources_of(
    endpoints: Endpoint | Iterable[Endpoint] | None,
    fields: Fields,
    docs: Docs | None,
    prompts: str | Path | None = None,
) -> Resources:
    """Return what labelers may ask for, from what a caller of the API gives.

    Raises:
        ConfigError: a prompt of the folder makes no sense, or there is none.
        UsageError: something else was given than endpoints.
    """
    given = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints or ())
    odd = next((one for one in given if not isinstance(one, Endpoint)), None)
    if odd is not None:
        raise UsageError(f"endpoints must be a jk.Endpoint or a list of them; got {odd!r}")
    return Resources({e.name: e for e in given}, Path(), fields, docs, None if prompts is None else Path(prompts))
