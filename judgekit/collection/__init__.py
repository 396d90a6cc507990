"""Queries, documents and runs that belong together, and their pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Final

from judgekit.collection.retrieving import holds_ids, ranked, results, retrievers_of
from judgekit.data.checks import check_runs, own_documents, twins
from judgekit.data.documents import Docs, Fields, Queries
from judgekit.data.frames import AsDocs, AsQueries, AsRuns, as_docs, as_queries, noted_runs
from judgekit.data.pooled import counts_of
from judgekit.data.runs import Run, pool
from judgekit.errors import UsageError

_LOOKED_AT: Final = 200
"""The number of queries whose pooled passages are checked before labelling."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The amount to label and to answer, at the depth of the primary measure.

    Attributes:
        queries: number of labelled queries.
        pairs: number of their (query, doc) pairs within the depth; ``pooled`` within the depth of the pool, to which
            costs refer.
        pooled: see above.
        at_hand: number of all queries, labelled or not.
        labels_again, answers_again: by run, the number of labels and answers that only it needs, in addition to the
            others. Empty with one run.
        lists: number of different lists of documents behind answers; 0 if unknown.
    """

    queries: int
    pairs: int
    pooled: int
    at_hand: int
    labels_again: tuple[int, ...] = ()
    answers_again: tuple[int, ...] = ()
    lists: int = 0


@dataclass(frozen=True)
class Collection:
    """Queries, documents and runs that belong together, and the depth of the pool.

    Attributes:
        queries: all queries of the experiment, in file order.
        docs: the documents.
        runs: the runs, cut to ``depth`` and to the queries.
        depth: number of documents pooled per run and query.
        fields: how documents are rendered.
        at_hand: number of queries before a limit; 0 if not counted.
        notes: sentences on what looks wrong with the runs.
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
        docs: AsDocs | None,
        runs: AsRuns,
        depth: int,
        fields: Fields = "title+text",
        cache: str | Path | None = None,
        *,
        drop_self: bool = False,
    ) -> Collection:
        """Read queries, documents and runs, check that they fit together, and cut the runs to ``depth``.

        Retrievers given as runs are asked every query; without ``docs``, the documents are those they return.

        The index of a large collection lies in ``cache``, by default the user's cache folder. ``drop_self`` removes
        documents from the runs whose id is that of their query.

        Raises:
            DataError: a file cannot be read; a run is empty, or holds a query or a document that the collection lacks.
            UsageError: the depth is below 1, or an argument is not queries, docs or runs.
        """
        if depth < 1:
            raise UsageError(f"the depth, the number of documents used from each list, must be at least 1, not {depth}")
        asked = retrievers_of(runs)
        if asked:
            queries = as_queries(queries)
            found = {name: results(retriever, queries, depth, name) for name, retriever in asked.items()}
            if docs is None:
                bare = [name for name, rows in found.items() if holds_ids(rows)]
                if bare:
                    raise UsageError(f"docs is missing: retriever {bare[0]!r} returns ids, not passages")
                docs = list(chain.from_iterable(found.values()))
            runs = {name: ranked(rows) if holds_ids(rows) else rows for name, rows in found.items()}
        if docs is None:
            raise UsageError(
                "docs is missing: only retrievers given as runs bring their documents (a function of a question, or an"
                " object of LangChain, LlamaIndex or Haystack, not its class)"
            )
        # Cut first, since documents below the pool need not be in the collection.
        read = noted_runs(runs, depth, drop_self=drop_self)
        given, notes = read.runs, [*read.notes]
        questions, documents = as_queries(queries), as_docs(docs, cache)
        check_runs(given, questions, documents)
        # One file under two names would look like two equally good retrievers.
        for first, second in twins(given):
            notes.append(f"runs {first!r} and {second!r} hold the same lists: leave out one of them")
        kept = []
        for run in given:
            kept.append(run.only(questions))
            notes += own_documents(kept[-1], texts=(questions, documents))
            further = len(run.query_ids) - len(kept[-1].query_ids)
            if further:
                notes.append(f"run {run.name!r} has {further:,} queries that the query file lacks; they are left out")
        whole = cls(questions, documents, tuple(kept), depth, fields, at_hand=len(questions))
        # The first ones suffice: if a column was not found, no passage has a text.
        looked_at: set[str] = set()
        for _, doc_ids in islice(whole.pooled(), _LOOKED_AT):
            looked_at.update(doc_ids)
        empty = [doc.doc_id for doc in documents.get(sorted(looked_at)) if not doc.text.strip()]
        if empty:
            notes.append(
                f"{len(empty):,} of the {len(looked_at):,} passages that runs found have no text, first {empty[0]!r}:"
                " every labeler calls them irrelevant"
            )
        return replace(whole, notes=tuple(notes))

    def only(self, query_ids: Iterable[str]) -> Collection:
        """Return the collection with some of its queries, in its own order."""
        wanted = set(query_ids)
        queries = {query_id: query for query_id, query in self.queries.items() if query_id in wanted}
        runs = [run.only(queries) for run in self.runs]
        return replace(self, queries=queries, runs=tuple(runs))

    @cached_property
    def pairs(self) -> dict[str, list[str]]:
        """The pooled doc ids per query: what every labeler labels."""
        return dict(self.pooled())

    def pooled(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the pairs query by query; `pairs` itself takes a hundred bytes per pair."""
        return pool(self.runs, self.queries, self.depth)

    @property
    def n_pairs(self) -> int:
        """The number of pooled pairs."""
        return sum(len(doc_ids) for _, doc_ids in self.pooled())


def lacking(collection: Collection) -> Iterator[str]:
    """Yield a sentence for every run without documents for some queries, since this lowers its scores."""
    for run in collection.runs:
        if n := len(set(collection.queries) - set(run.query_ids)):
            yield (
                f"{run.name} returns nothing for {n:,} of {len(collection.queries):,} queries. They score 0 and are"
                " answered without documents."
            )


def pool_size(collection: Collection, depth: int | None, questions: Mapping[str, str] | None = None) -> Pool:
    """Return the amount to label and to answer from the top ``depth``, and what another run would add.

    ``questions`` holds the question of each query id; shared requests count once.
    """
    question = dict(zip(collection.queries, collection.queries, strict=True)) if questions is None else questions
    depth = depth or collection.depth
    asked_for = len({question[query_id] for query_id in collection.queries})
    at_hand = collection.at_hand or len(collection.queries)
    counts = counts_of(collection.runs, collection.queries, depth, question)
    return Pool(
        queries=asked_for,
        pooled=distinct_pairs(collection, question),
        at_hand=round(at_hand * asked_for / max(len(collection.queries), 1)),
        **counts,
    )


def distinct_pairs(collection: Collection, questions: Mapping[str, str]) -> int:
    """Return the number of pooled (question, doc) pairs; ``questions`` holds the question of each query id."""
    return len({(questions[query_id], doc_id) for query_id, doc_ids in collection.pooled() for doc_id in doc_ids})
