"""The stages label and score: the one code behind the command line, the Python API and the experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pandas as pd

from judgekit.analysis.background import LENGTH, RETRIEVER
from judgekit.analysis.money import Pool
from judgekit.client.model_drift import origin
from judgekit.data.checks import check_runs, twins
from judgekit.data.documents import Docs, Fields, Queries, Unit
from judgekit.data.frames import AsDocs, AsQueries, AsRuns, as_docs, as_queries, as_runs
from judgekit.data.labelings import LabelFile, Labeling, Scale
from judgekit.data.runs import Run, pool
from judgekit.data.spans import where
from judgekit.data.tables import SCORES
from judgekit.errors import UsageError
from judgekit.kinds import context_of
from judgekit.labelers.base import Label, Labeler, build, checked
from judgekit.progress import Progress, silent
from judgekit.wire.types import Endpoint, Origin, Outcome, Program, Request, most_requests

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

    from judgekit.client.budget import Budget, Prices
    from judgekit.client.session import Session
    from judgekit.metrics import Evaluation, Measure
    from judgekit.store.modes import Mode

T = TypeVar("T")

_ORIGIN: Final = ("reply_model", "fingerprint")
_KEPT: Final = 1 << 16
"""Labels that a stage keeps as objects before they go to disk."""
_LOOKED_AT: Final = 200
"""Queries whose pooled passages are looked at before anything is labelled."""


@dataclass(frozen=True)
class Collection:
    """Queries, documents and runs that belong together, and the depth of the pool.

    Attributes:
        queries: all queries of the experiment, in file order.
        docs: the documents.
        runs: the runs, cut to ``depth`` and to the queries.
        depth: how many documents per run and query are pooled.
        fields: how documents are rendered.
        at_hand: how many queries there were before a limit; 0 where nobody counted.
        notes: what looks wrong with the runs, a sentence each.
    """

    queries: Queries
    docs: Docs
    runs: tuple[Run, ...]
    depth: int
    fields: Fields = "title+text"
    at_hand: int = 0
    notes: tuple[str, ...] = ()

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
            raise UsageError(f"the depth, the number of documents used from each list, must be at least 1, not {depth}")
        notes: list[str] = []
        found = [run.cut(depth) for run in as_runs(runs, notes)]
        asked, collection = as_queries(queries), as_docs(docs, cache)
        check_runs(found, asked, collection)
        notes += (f"runs {a!r} and {b!r} hold the same lists: leave out one of them" for a, b in twins(found))
        for at, run in enumerate(found):
            found[at] = run.only(asked)
            if further := len(run.query_ids) - len(found[at].query_ids):
                notes.append(f"run {run.name!r} has {further:,} queries that the query file lacks; they are left out")
        whole = cls(asked, collection, tuple(found), depth, fields, len(asked))
        looked_at = {doc_id for _, ids in islice(whole.pooled(), _LOOKED_AT) for doc_id in ids}
        empty = [doc.doc_id for doc in collection.get(sorted(looked_at)) if not doc.text.strip()]
        if empty:
            notes.append(
                f"{len(empty):,} of the {len(looked_at):,} passages that runs found have no text, first {empty[0]!r}:"
                " every labeler calls them irrelevant"
            )
        whole = replace(whole, notes=tuple(notes))
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


def lacking(collection: Collection) -> Iterator[str]:
    """Yield a sentence for every run without documents for some queries: its low scores are not its ranking's."""
    for run in collection.runs:
        if n := len(set(collection.queries) - set(run.query_ids)):
            yield (
                f"{run.name} returns nothing for {n:,} of {len(collection.queries):,} queries. They score 0 and are"
                " answered without documents."
            )


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
    """Label every pair of the pool, or of some units."""
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
    return Labeling(name, labeler.scale, table)


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


@dataclass(frozen=True)
class PoolLabeler:
    """A collection and what labels its pool, ready to be asked."""

    collection: Collection
    labeler: Labeler
    name: str

    @classmethod
    def make(
        cls,
        spec: str | Labeler,
        queries: AsQueries,
        docs: AsDocs,
        runs: AsRuns,
        depth: int,
        *,
        endpoints: Endpoint | Iterable[Endpoint] | None = None,
        name: str | None = None,
        limit: int | None = None,
        cache: str | Path | None = None,
    ) -> PoolLabeler:
        """Read the collection and build the labeler of a spelling, whose canonical form is the default name."""
        collection = Collection.make(queries, docs, runs, depth, limit, cache=cache)
        labeler = build(spec, context_of(endpoints, collection.fields, collection.docs))
        return cls(collection, labeler, name or str(labeler.spec))

    async def label(self, session: Session) -> Labeling:
        """Label the pool; see `label_pool`."""
        return await label_pool(self.labeler, self.collection, session, self.name)


StageUnit = tuple[Program[Any], Any]
"""A unit and the program (a labeler, the answerer, a metric of imported answers) that says what it needs."""


class AllStages:
    """The requests of all stages as one program, so that those that two stages share are counted and sent once."""

    def requests(self, asked: StageUnit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of the unit's own program."""
        program, unit = asked
        return program.requests(unit, replies)

    def most(self, asked: StageUnit, /) -> int | None:
        """Return the most requests that the unit's own program makes of it."""
        return most_requests(*asked)


def stored_outcomes(labeler: Labeler, unit: Unit, session: Session) -> Sequence[Outcome]:
    """Return the stored outcomes of a unit; [] unless all are there."""
    outcomes: list[Outcome] = []
    while wave := labeler.requests(unit, outcomes):
        found = session.lookup([request.key for request in wave])
        if not all(request.key in found for request in wave):
            return []
        outcomes += [found[request.key] for request in wave]
    return outcomes


def labels_asked(labeler: Labeler, collection: Collection) -> Iterator[StageUnit]:
    """Yield what a labeler is asked about the pool."""
    return ((labeler, unit) for unit in label_units(labeler, collection))


def at_depths(measures: Iterable[Measure], depths: Sequence[int]) -> list[Measure]:
    """Return the measures, each that can have a cutoff and has none being taken at every answer depth."""
    out: list[Measure] = []
    for measure in measures:
        open_ = measure.definition.cutoff and measure.spec.cutoff is None
        out.extend([measure.at(k) for k in depths] if open_ else [measure])
    return list(dict.fromkeys(out))


def score_pool(collection: Collection, labelings: Sequence[Labeling], measures: Sequence[Measure]) -> Evaluation:
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
        docs=collection.docs,
    )


def pool_size(collection: Collection, depth: int | None) -> Pool:
    """Return how much there is to label and to answer from the top ``depth``, and what one further run would add."""
    pairs: Counter[tuple[str, str]] = Counter()
    lists: Counter[tuple[str, tuple[str, ...]]] = Counter()
    tops = [{q: tuple(run.top(q, depth or collection.depth)) for q in collection.queries} for run in collection.runs]
    for top in tops:
        pairs.update((query_id, doc_id) for query_id, doc_ids in top.items() for doc_id in doc_ids)
        lists.update(top.items())
    # What one run alone brings is what it would have added to the others.
    labels = [sum(pairs[q, d] == 1 for q, doc_ids in top.items() for d in doc_ids) for top in tops]
    answers = [sum(lists[item] == 1 for item in top.items()) for top in tops]
    several = len(tops) > 1
    return Pool(
        len(collection.queries),
        len(pairs),
        collection.n_pairs,
        len(lists),
        collection.at_hand or len(collection.queries),
        tuple(labels) if several else (),
        tuple(answers) if several else (),
    )


_FUSION: Final = 60


def control_scores(collection: Collection, measure: str) -> pd.DataFrame:
    """Return scores of the runs under two labelings that know no question, named as those of ``measure``."""
    # They are gains, so they are scored by nDCG, at the measure's cutoff.
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


def question_mean(labeling: Labeling) -> dict[str, float]:
    """Return a labeling's question-only twin: the mean label per query over its pool, of the labels that there are."""
    means = labeling.table.groupby("query_id")["relevance"].mean().dropna()
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
    """Return what ``work`` returns, given a session; works under a running event loop (a notebook) too."""
    from judgekit.client.session import Session
    from judgekit.client.sync import run_sync
    from judgekit.store.replies import default_store_path

    async def inside() -> T:
        store = default_store_path() if cache is None else cache
        async with Session(store, mode, budget, prices, progress, wait_s=wait_s) as session:
            return await work(session)

    return run_sync(inside())
