"""A run: one retriever's ranked lists as coded arrays, and the one function that orders their documents.

Pool, answers, metrics and report all use that function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import (
    Floats,
    Ints,
    Keys,
    Objects,
    Pairs,
    RunLengthIds,
    equal,
    grouped,
    objects,
    order_ids,
    repeated,
    row_keys,
    run_lengths,
    sorted_codes,
    strings,
    take,
)
from judgekit.data.tables import ALL, RUN
from judgekit.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.parts import DiskRun

N = TypeVar("N", bound=np.generic)
T = TypeVar("T")


class Ties(StrEnum):
    """The order of documents with equal scores.

    `DOC_DESC` is trec_eval 10's: doc id descending (by bytes, as strcmp), scores compared as 64-bit floats.
    `DOC_DESC_32` compares scores as 32-bit floats, as trec_eval up to 9.0.8 and pytrec_eval do. `DOC_ASC` is the MS
    MARCO script's order, `RUN_ORDER` keeps the order of the file (ranx).
    """

    DOC_DESC = "doc-desc"
    DOC_DESC_32 = "doc-desc-32"
    DOC_ASC = "doc-asc"
    RUN_ORDER = "run-order"


def compared(scores: Floats, ties: Ties) -> npt.NDArray[np.floating]:
    """Return the scores in the precision of the tie rule."""
    if ties is not Ties.DOC_DESC_32:
        return scores
    # A score beyond 32 bits becomes infinite there, as in trec_eval 9.
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


class Moves(NamedTuple):
    """A reordering of rows: row ``rows[i]`` moves to ``places[i]``; all other rows stay."""

    places: Ints
    """Ascending."""
    rows: Ints

    def of(self, values: npt.NDArray[N]) -> npt.NDArray[N]:
        """Return a column in the new order; the same object if nothing changes, since columns may be large."""
        moved = values[self.rows]
        if len(moved) == len(values):
            return moved
        # Compared as bytes: 0 and -0 are equal, but not the same.
        if values[self.places].tobytes() != moved.tobytes():
            values = values.copy()
            values[self.places] = moved
        return values


def order(bounds: Ints, scores: Floats, docs: pa.StringArray, ties: Ties) -> Moves:
    """Return the reordering that sorts each query's rows: score descending, then by the tie rule."""
    values = compared(scores, ties)
    inside = np.ones(max(len(values) - 1, 0), np.bool_)  # of rows (i, i + 1): whether they are of one query
    inside[bounds[1:-1][(bounds[1:-1] > 0) & (bounds[1:-1] < len(values))] - 1] = False
    every = None
    # Most files are sorted already: their columns then stay as they are.
    if (inside & (values[1:] > values[:-1])).any():
        # Equal scores keep the file's order, or are ordered below.
        by_score = np.argsort(-values, kind="stable" if ties is Ties.RUN_ORDER else None)
        every = grouped(by_score, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)))
        values = values[every]
    places = np.empty(0, np.int64)
    if ties is not Ties.RUN_ORDER:
        tied = inside & (values[1:] == values[:-1])
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    rows = places if every is None else every[places]
    if len(places):
        block = np.cumsum(np.append(True, ~tied)[places])
        by_id = order_ids(take(docs, rows), descending=ties is not Ties.DOC_ASC)
        rows = rows[grouped(by_id, block)]
    if every is None:
        return Moves(places, rows)
    every[places] = rows
    return Moves(np.arange(len(every)), every)


class Extent(NamedTuple):
    """What there is of a run, in numbers."""

    queries: int = 0
    lists: int = 0
    """Queries with at least one document."""
    docs: int = 0
    """Rows as they were read, before lists were cut."""
    own_first: Sequence[str] = ()
    """The queries whose list begins with the query itself."""

    def with_part(self, part: Extent) -> Extent:
        """Return the same with another part of the run, which has other queries."""
        own_first = [*self.own_first, *part.own_first]
        return Extent(self.queries + part.queries, self.lists + part.lists, self.docs + part.docs, own_first)


class Run:
    """One retriever's ranked lists.

    Queries keep their order; documents are ordered best first.

    Attributes:
        name: the run's name.
        ties: the rule that orders equal scores.
        query_ids: query ids in ascending order, shape (Q,).
        starts, counts: rows of query i are ``starts[i]:starts[i] + counts[i]``, shapes (Q,).
        docs_as_read: doc ids as Arrow strings, in the order of the input; see `docs_at`, shape (N,).
        ranked_scores: 64-bit score per row, best first within a query, shape (N,).
        ranked_keys: hash of query and doc per row (`columns.row_keys`), shape (N,).
        uncut: the run with all rows, if a large file was cut while it was read, else None.
    """

    uncut: DiskRun | None = None

    def __init__(
        self,
        name: str,
        query_ids: Sequence[str] | Objects | pa.StringArray | RunLengthIds,
        doc_ids: Sequence[str] | Objects | pa.StringArray,
        scores: npt.ArrayLike,
        *,
        ties: Ties = Ties.DOC_DESC,
    ) -> None:
        """Build a run from rows: query id, doc id and score per row, in any order."""
        coded = query_ids if isinstance(query_ids, RunLengthIds) else run_lengths(strings(query_ids))
        docs = doc_ids if isinstance(doc_ids, pa.StringArray) and not doc_ids.null_count else strings(doc_ids)
        # Copied, so that changes elsewhere do not change the run.
        self._fill(name, Pairs(coded, docs, np.array(scores, np.float64)), Ties(ties))

    @classmethod
    def of(cls, name: str, rows: Pairs, *, ties: Ties = Ties.DOC_DESC) -> Run:
        """Build a run from rows that nobody else holds, without copying them."""
        run = cls.__new__(cls)
        run._fill(name, rows, Ties(ties))
        return run

    def _fill(self, name: str, rows: Pairs, ties: Ties) -> None:
        coded, docs, values = rows
        if not name.strip():
            raise DataError("the name of a run is empty")
        # Every table of scores uses this name for the mean over runs.
        if name == ALL:
            raise DataError(f"a run cannot be named {ALL!r}: that name is reserved for the mean over runs")
        if not coded.bounds[-1] == len(docs) == len(values):
            raise DataError(f"run {name!r}: {coded.bounds[-1]} queries, {len(docs)} docs and {len(values)} scores")
        if ALL in coded.ids:
            raise DataError(f"run {name!r} has a query with the reserved id {ALL!r}")
        finite = np.isfinite(values)
        # NaN cannot be ordered: the list would depend on the sorting algorithm.
        if not finite.all():
            row = int(np.argmin(finite))
            query_id, doc_id = rows.at(row)
            pair = f"query {query_id!r}, doc {doc_id!r}"
            raise DataError(f"run {name!r}: the score of {pair} is {values[row]}; scores must be finite")
        if len(coded.codes) > len(coded.ids):
            # A query's rows are scattered: join them, keeping their order.
            per_row = coded.by_row()
            together = grouped(np.arange(len(per_row)), per_row)
            docs, values = take(docs, together), values[together]
            coded = _together(coded.ids, np.bincount(per_row))
        keys = row_keys(coded, docs)
        if twice := repeated(Pairs(coded, docs, values), keys):
            raise DataError(f"run {name!r} lists doc {twice[1]!r} twice for query {twice[0]!r}")
        ascending, at = sorted_codes(coded.ids)
        self.name, self.ties = name, ties
        self.query_ids: Objects = np.array(ascending, object)
        self.starts, self.counts = np.empty((2, len(at)), np.int64)
        self.starts[at], self.counts[at] = coded.bounds[:-1], np.diff(coded.bounds)
        moves = order(coded.bounds, values, docs, ties)
        self.docs_as_read: pa.StringArray = docs
        # None if all rows keep their input order.
        self._doc_rows = moves.of(np.arange(len(docs))) if len(moves.places) else None
        self.ranked_scores: Floats = moves.of(values)
        self.ranked_keys: Keys = moves.of(keys)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, name: str, *, ties: Ties = Ties.DOC_DESC) -> Run:
        """Build a run from a table ``query_id, doc_id, score``."""
        if not isinstance(name, str):
            raise UsageError(f"the name of a run is a text, not {type(name).__name__}: from_frame(frame, name)")
        columns = RUN.named(name).check(frame)
        queries, docs = (strings(columns[c]) for c in ("query_id", "doc_id"))
        return cls(name, queries, docs, columns["score"].to_numpy(), ties=ties)

    def docs_at(self, rows: Ints) -> pa.StringArray:
        """Return the doc ids of rows."""
        return take(self.docs_as_read, self._as_read(rows))

    def _as_read(self, rows: Ints) -> Ints:
        """Return the rows' positions in the input."""
        return rows if self._doc_rows is None else self._doc_rows[rows]

    @property
    def doc_ids(self) -> Objects:
        """The distinct doc ids in ascending order, shape (D,)."""
        return objects(self.distinct_docs())

    def distinct_docs(self) -> pa.StringArray:
        """Return the same as Arrow strings: of millions each would take seventy bytes more as an object."""
        docs = self.docs_as_read if self._doc_rows is None else take(self.docs_as_read, self._doc_rows)
        docs = docs.unique()
        return take(docs, order_ids(docs))

    def frame(self) -> pd.DataFrame:
        """Return the run as a table ``query_id, doc_id, score``, best first within each query."""
        import pandas as pd

        rows, queries = self._by_query()
        columns = {
            "query_id": self.query_ids[queries],
            "doc_id": objects(self.docs_at(rows)),
            "score": self.ranked_scores[rows],
        }
        return RUN.check(pd.DataFrame(columns))

    def with_ties(self, ties: Ties) -> Run:
        """Return the run with equal scores ordered by another rule."""
        if ties is self.ties:
            return self
        # One of the rules keeps this order.
        rows = self._in_input_order()
        bounds = np.concatenate([[0], np.cumsum(self.counts)])
        ordered = order(bounds, self.ranked_scores[rows], self.docs_at(rows), ties).of(rows)
        other = self._of_rows(ordered, self.counts, self.query_ids)
        other.ties = ties
        return other

    @cached_property
    def _query_index(self) -> dict[str, int]:
        return {q: i for i, q in enumerate(self.query_ids)}

    @cached_property
    def extent(self) -> Extent:
        """What there is of the run."""
        lists = np.flatnonzero(self.counts)
        own = self.query_ids[lists[self._own(self.starts[lists], lists)]]
        return Extent(len(self.query_ids), len(lists), len(self.docs_as_read), own.tolist())

    def of_parts(self, make: Callable[[Run], T]) -> list[T]:
        """Return what a function makes of each part: of a run in memory, of itself (`judgekit.data.parts.DiskRun`)."""
        return [make(self)]

    def lowest(self, count: int) -> Run:
        """Return the run with its first queries by id."""
        return self.only(self.query_ids[:count])

    def top(self, query_id: str, k: int | None = None) -> list[str]:
        """Return the ids of the first ``k`` documents of a query, best first; [] if the run lacks the query."""
        index = self._query_index.get(query_id)
        if index is None:
            return []
        start, count = self.starts[index], self.counts[index]
        docs: list[str] = self.docs_at(np.arange(start, start + count)[:k]).to_pylist()
        return docs

    def cut(self, depth: int) -> Run:
        """Return the run cut to its first ``depth`` documents per query."""
        if self.counts.max(initial=0) <= depth:
            return self
        return self._keep(self.starts, np.minimum(self.counts, depth), self.query_ids)

    def only(self, query_ids: Iterable[str]) -> Run:
        """Return the run with the given queries only."""
        wanted = set(query_ids)
        keep = np.fromiter((q in wanted for q in self.query_ids), np.bool_, len(self.query_ids))
        return self._keep(self.starts[keep], self.counts[keep], self.query_ids[keep])

    def without_own(self) -> Run:
        """Return the run without documents whose id is that of their query.

        A query that retrieved nothing else keeps an empty list.
        """
        rows, queries = self._by_query()
        others = np.flatnonzero(~self._own(rows, queries))
        counts = np.bincount(queries[others], minlength=len(self.query_ids))
        return self._of_rows(rows[others], counts, self.query_ids)

    def _own(self, rows: Ints, queries: Ints) -> npt.NDArray[np.bool_]:
        """Return whether each row's doc has the id of its query, given by position."""
        return equal(self.docs_at(rows), take(strings(self.query_ids), queries))

    def _by_query(self) -> tuple[Ints, Ints]:
        """Return all rows, queries ascending and documents best first, and the position of each row's query."""
        within = np.arange(len(self)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return np.repeat(self.starts, self.counts) + within, np.repeat(np.arange(len(self.counts)), self.counts)

    def _in_input_order(self) -> Ints:
        """Return all rows, queries ascending, the documents of each in the order of the input."""
        rows, queries = self._by_query()
        return rows[np.lexsort((self._as_read(rows), queries))]

    def rows(self) -> Pairs:
        """Return the rows that are left in the lists, in the order of `_in_input_order`, in memory of their own."""
        rows = self._in_input_order()
        return Pairs(_together(self.query_ids.tolist(), self.counts), self.docs_at(rows), self.ranked_scores[rows])

    def _keep(self, starts: Ints, counts: Ints, query_ids: Objects) -> Run:
        """Return a run of the first ``counts`` rows from ``starts`` on of the given queries; they stay in order."""
        bounds = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])
        return self._of_rows(rows, counts, query_ids)

    def _of_rows(self, rows: Ints, counts: Ints, query_ids: Objects) -> Run:
        """Return a run of some rows, given query by query, ``counts`` per query."""
        bounds = np.concatenate([[0], np.cumsum(counts)])
        kept = object.__new__(Run)
        kept.name, kept.ties, kept.docs_as_read = self.name, self.ties, self.docs_as_read
        kept._doc_rows = self._as_read(rows)
        kept.ranked_scores = self.ranked_scores[rows]
        kept.ranked_keys = self.ranked_keys[rows]
        kept.query_ids, kept.starts, kept.counts = query_ids, bounds[:-1], counts
        kept.uncut = self.uncut
        return kept

    def __len__(self) -> int:
        return len(self.ranked_scores)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, queries={len(self.query_ids)}, rows={len(self)})"


def joined(parts: Sequence[Pairs]) -> Pairs:
    """Return the rows of parts with different queries, one behind the other; each query's rows stand together."""
    queries = _together(
        [query_id for part in parts for query_id in part.queries.ids],
        np.concatenate([np.diff(part.queries.bounds) for part in parts]),
    )
    docs = pa.concat_arrays([part.docs for part in parts])
    return Pairs(queries, docs, np.concatenate([part.values for part in parts]))


def _together(query_ids: list[str], counts: Ints) -> RunLengthIds:
    """Return the queries of rows of which each query has a number, one behind the other."""
    bounds = np.append(0, np.cumsum(counts))
    return RunLengthIds(query_ids, np.arange(len(query_ids), dtype=np.int32), bounds)


def pool(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the pooled doc ids per query, ascending, over the top ``depth`` of all runs: the pairs to label."""
    return ((q, sorted({d for run in runs for d in run.top(q, depth)})) for q in query_ids)


_FUSION: Final = 60


def fused(runs: Sequence[Run], query_id: str, depth: int) -> list[str]:
    """Return the pooled doc ids of a query in the fused order of all runs, best first.

    Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): the sum of 1 / (60 + rank) over the runs. Equal
    sums are ordered by doc id, descending, as equal scores are.
    """
    sums: dict[str, float] = {}
    for run in runs:
        for rank, doc_id in enumerate(run.top(query_id, depth), 1):
            sums[doc_id] = sums.get(doc_id, 0.0) + 1 / (_FUSION + rank)
    return sorted(sorted(sums, reverse=True), key=lambda doc_id: -sums[doc_id])
