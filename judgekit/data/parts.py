"""Runs whose rows would not fit into memory: read in parts, each of some whole queries, whenever they are gone through.

What is worked out of a part is kept, its rows are not. Where the rows of a query do not stand together no part of the
file holds all of one: such a file is read in one piece, with a note that tells how to sort it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.columns import NOT_PLAIN, Pairs, numbers, run_lengths, strings
from judgekit.data.fields import DECLARED, checked_rows
from judgekit.data.folders import unpacked_size
from judgekit.data.runs import Extent, Run, Ties, joined
from judgekit.data.sources import by_columns, contents, located, stem
from judgekit.data.trec import check_tags, read_run
from judgekit.errors import DataError

T = TypeVar("T")

MEMORY_LIMIT: Final = 256 << 20
"""Bytes of all runs of a command above which they are read in parts; packed files count fourfold."""
_ROWS: Final = 1 << 19
"""Rows of a part, or those of one query if they are more."""
_FIRST: Final = 8
"""Queries, the lowest by id, that stay in memory, for a look at what runs have in common."""


class _Scattered(Exception):
    """The rows of a query do not stand together."""


class _Known(NamedTuple):
    """What is kept of all parts of a run."""

    extent: Extent
    lowest: Run
    """The first queries by id."""


class DiskRun:
    """A run that is not loaded; with the part of `judgekit.data.runs.Run` that scoring needs.

    Attributes:
        name: the run's name.
        ties: the tie rule that the rows are ordered with.
        note: why the file could not be read in parts, or "".
    """

    def __init__(self, source: str | Path, name: str | None = None, ties: Ties = Ties.DOC_DESC) -> None:
        """Look at a file; its rows are read when something is worked out of them."""
        self._place = located(source, "run")
        check_tags(self._place)
        self._source = source
        self._columns = by_columns(self._place, "run")
        fast = [] if self._columns is None else self._columns.ways()
        self._ways: list[Callable[[DiskRun], Iterator[Run]]]
        self._ways = [*(partial(DiskRun._by_column, read=read) for read in fast), DiskRun._by_record]
        self.name, self.ties = name or stem(self._place.path), ties
        self.note = ""
        self._changes: tuple[Callable[[Run], Run], ...] = ()
        self._known: _Known | None = None

    def of_parts(self, make: Callable[[Run], T]) -> list[T]:
        """Return what a function makes of each part, in the order of the file; it may be called again for a part."""
        while self._ways:
            try:
                return self._made(self._ways[0](self), make)
            except _Scattered:
                self._ways = []
            except (*NOT_PLAIN, DataError) as error:
                # The fast readers keep no lines: an error is looked for again, record by record.
                if len(self._ways) == 1:
                    if isinstance(error, DataError) and error.path is None:
                        raise DataError(error.reason, self._place.path) from None
                    raise
                self._ways = self._ways[1:]
        self.note = (
            f"{self._place.path}: the rows of a query do not stand together, so that the file was read in one piece,"
            " which takes a lot of memory. Sort it once: sort -s -k 1,1 OLD > NEW"
        )
        return self._made([read_run(self._source, self.name, self.ties)], make)

    def _made(self, parts: Iterable[Run], make: Callable[[Run], T]) -> list[T]:
        made = []
        extent = Extent()
        lowest = self._of_rows(Pairs(run_lengths(), strings([]), np.empty(0)))
        for part in parts:
            for change in self._changes:
                part = change(part)
            made.append(make(part))
            extent = extent.with_part(part.extent)
            # As rows of their own: a run's first queries hold all of its documents.
            rows = joined([lowest.rows(), part.lowest(_FIRST).rows()])
            lowest = self._of_rows(rows).lowest(_FIRST)
        if not extent.queries:
            raise DataError(f"is empty; expected {DECLARED['run'].expected}", self._place.path)
        self._known = _Known(extent, lowest)
        return made

    def _by_column(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[Run]:
        """Yield the parts of a file whose columns can be read one by one, in one of `PairColumns.ways`."""
        columns = self._columns
        assert columns is not None
        together = _Together()
        for batches in _whole_queries(read()):
            rows = columns.of(batches)
            together.add(rows.queries.ids)
            yield self._of_rows(rows)

    def _by_record(self) -> Iterator[Run]:
        """Yield the parts of any file."""
        together = _Together()
        source, records = contents(self._place, "run")
        lines: dict[tuple[str, str], int] = {}
        ids, docs, scores = list[str](), list[str](), list[float]()
        checked = checked_rows(source, records, "score", lines)
        for query, rows in groupby(checked, key=lambda row: row[0]):
            # Before its rows are read: one of them may repeat a document, which only one piece knows the line of.
            together.add([query])
            lines.clear()
            for _, doc, score, line in rows:
                lines[query, doc] = line
                docs.append(doc)
                scores.append(score)
            ids += [query] * len(lines)
            if len(ids) >= _ROWS:
                yield self._of_rows(Pairs(run_lengths(strings(ids)), strings(docs), np.array(scores)))
                ids, docs, scores = [], [], []
        if ids:
            yield self._of_rows(Pairs(run_lengths(strings(ids)), strings(docs), np.array(scores)))

    def _of_rows(self, rows: Pairs) -> Run:
        """Return some rows as a run."""
        return Run.of(self.name, rows, ties=self.ties)

    def _all(self) -> _Known:
        if self._known is None:
            self.of_parts(len)
        assert self._known is not None
        return self._known

    @property
    def extent(self) -> Extent:
        """What there is of the run."""
        return self._all().extent

    def lowest(self, count: int) -> Run:
        """Return the run with its first queries by id, at most eight."""
        lowest = self._all().lowest
        return lowest.only(lowest.query_ids[:count])

    def only(self, query_ids: Iterable[str]) -> Run:
        """Return the run with the given queries only, which should be few."""
        wanted, (extent, lowest) = {*query_ids}, self._all()
        # All queries up to the last of the lowest ones are among these.
        if extent.queries == len(lowest.query_ids) or max(wanted, default="") <= lowest.query_ids[-1]:
            return lowest.only(wanted)
        return self._of_rows(joined(self.of_parts(lambda part: part.only(wanted).rows())))

    def whole(self) -> Run:
        """Return all of it in memory: what is left of a run that was cut."""
        whole = self._of_rows(joined(self.of_parts(Run.rows)))
        # Whether runs share documents is asked of all rows, also of those below the depth.
        whole.uncut = self
        return whole

    def cut(self, depth: int) -> DiskRun:
        """Return the run cut to its first ``depth`` documents per query."""
        return self._changed(lambda part: part.cut(depth))

    def without_own(self) -> DiskRun:
        """Return the run without documents that are the query itself."""
        return self._changed(Run.without_own)

    def with_ties(self, ties: Ties) -> DiskRun:
        """Return the run with documents of equal score in another order."""
        other = self._changed(lambda part: part.with_ties(ties))
        other.ties = ties
        return other

    def _changed(self, change: Callable[[Run], Run]) -> DiskRun:
        other = copy.copy(self)
        other._changes, other._known = (*self._changes, change), None
        return other

    def __repr__(self) -> str:
        return f"DiskRun({self.name!r})"


AnyRun = Run | DiskRun


def read_runs(
    sources: Mapping[str, str | Path],
    ties: Ties = Ties.DOC_DESC,
    *,
    drop_self: bool = False,
    whole: bool = False,
) -> list[AnyRun]:
    """Read runs by name, or only look at their files, where they are too large for memory; ``whole`` reads them all.

    With ``drop_self`` documents that are the query itself are left out.
    """
    read = read_run if whole or not too_large(sources.values()) else DiskRun
    runs = [read(source, name, ties) for name, source in sources.items()]
    return [run.without_own() for run in runs] if drop_self else runs


def too_large(sources: Iterable[str | Path]) -> bool:
    """Return whether the files of runs are so large in all that they are read in parts."""
    sizes = (unpacked_size(located(source, "run").path, DECLARED["run"].expected) for source in sources)
    return sum(sizes) > MEMORY_LIMIT


def in_one_piece(runs: Iterable[AnyRun]) -> list[str]:
    """Return a sentence for each large run that could not be read in parts."""
    return [run.note for run in runs if isinstance(run, DiskRun) and run.note]


class _Together:
    """Notices where a query comes back behind others."""

    def __init__(self) -> None:
        self._finished: set[str] = set()

    def add(self, query_ids: Iterable[str]) -> None:
        """Take note of the queries of further rows."""
        if not self._finished.isdisjoint(query_ids):
            raise _Scattered
        self._finished.update(query_ids)


def _whole_queries(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches of rows in parts, so that no query is in two of them if its rows stand together."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        for start in range(0, len(batch), _ROWS):
            # Of query, doc and number; a TREC file has further columns, which were only looked at.
            piece = batch.slice(start, _ROWS).select([0, 1, 2])
            if rows + len(piece) >= _ROWS:
                # Where the last query of the piece begins.
                ends = numbers(pc.run_end_encode(piece.column(0)).run_ends, np.int32)
                last = int(ends[-2]) if len(ends) > 1 else 0
                if last or (held and held[-1].column(0)[-1] != piece.column(0)[0]):
                    yield [*held, piece.slice(0, last)]
                    held, rows, piece = [], 0, piece.slice(last)
            held.append(piece)
            rows += len(piece)
    if rows:
        yield held
