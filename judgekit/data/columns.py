"""Columns of ids as Arrow strings and columns of numbers as numpy arrays.

Ids stay in Arrow memory, where millions of them are hashed and compared in a fraction of a second. pyarrow's own
conversions to numpy and from lists import pandas (a quarter of a second); the ones here do not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.records import NULLS, row_groups
from judgekit.data.streams import BOM, open_binary
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
N = TypeVar("N", bound=np.generic)

_CHUNK: Final = 32_768
"""Number of rows hashed at a time, so that intermediate values stay in the processor's cache."""
_BLOCK: Final = 1 << 22
"""Bytes of a text file that are parsed at a time."""
_SPARE_BITS: Final = 4
"""A table of keys has 16 to 32 times as many places as keys: a larger one would leave the cache, a smaller one would
send many keys to the next table."""
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_MASKS: Final = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
"""By number of bytes, the mask that keeps the first bytes of a little-endian word."""


class RunLengthIds(NamedTuple):
    """A column of query ids in which equal ids are mostly adjacent; indexed by row."""

    ids: list[str]
    """The distinct ids in order of appearance."""
    codes: Codes
    """Index into ``ids`` per stretch of equal ids, shape (S,)."""
    bounds: Ints
    """Rows of stretch i are ``bounds[i]:bounds[i + 1]``, shape (S + 1,)."""

    def by_row(self) -> Codes:
        """Return the index into ``ids`` per row."""
        return np.repeat(self.codes, np.diff(self.bounds))


class Pairs(NamedTuple):
    """Rows of query, doc and number: those of a run or of judgments."""

    queries: RunLengthIds
    docs: pa.StringArray
    values: Floats

    def frame(self, number: str) -> pd.DataFrame:
        """Return the rows as a table ``query_id, doc_id`` and a number."""
        queries = take(strings(self.queries.ids), self.queries.by_row())
        frame: pd.DataFrame = pa.table({"query_id": queries, "doc_id": self.docs, number: self.values}).to_pandas()
        return frame

    def at(self, row: int) -> tuple[str, str]:
        """Return the query id and the doc id of a row."""
        stretch = np.searchsorted(self.queries.bounds, row, side="right") - 1
        return self.queries.ids[self.queries.codes[stretch]], self.docs[row].as_py()


@cache
def keep_freed_memory() -> None:
    """Have the allocator keep what is freed for the next array."""
    # From when a block this large was freed, glibc does so (mallopt(3) on its dynamic thresholds), rather than give
    # memory back and fetch it anew page by page, a sixth of the time of reading a run, or of scoring one again. Nothing
    # is written into the block, so that it costs nothing; other allocators take no notice. Not at import: whoever only
    # imports judgekit keeps thresholds of their own.
    np.empty((32 << 20) - 8192, np.uint8)


def strings(values: object) -> pa.StringArray:
    """Return ids as one Arrow string array."""
    column: Any = values
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        try:
            # pa.array imports pandas, which takes longer than to read a small file.
            column = pa.array(column, pa.string()) if "pandas" in sys.modules else _encoded(column)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise DataError(f"ids must be strings: {error}") from None
    column = _joined(column)
    if column.type != pa.string():
        column = column.cast(pa.string())
    if column.null_count:
        raise DataError("an id is missing (null)")
    return column


def _encoded(texts: Iterable[str]) -> pa.StringArray:
    encoded = [*map(str.encode, texts)]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def _joined(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def numbers(array: pa.Array | pa.ChunkedArray, dtype: type[N]) -> npt.NDArray[N]:
    """Return the values of an Arrow array without nulls as a numpy array, without a copy if possible."""
    array = _joined(array)
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def objects(ids: pa.StringArray | list[str]) -> Objects:
    """Return ids as a numpy array of str objects."""
    out = np.empty(len(ids), dtype=object)
    out[:] = ids if isinstance(ids, list) else ids.to_pylist()
    return out


def integers(values: npt.NDArray[Any]) -> pa.Int64Array:
    """Return 64-bit integers as an Arrow array, without a copy if possible."""
    whole = np.ascontiguousarray(values).view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def take(array: pa.Array, rows: npt.NDArray[np.integer]) -> pa.Array:
    """Return the given rows of an Arrow array."""
    return array.take(integers(rows))


def gather(table: pa.Table, rows: npt.NDArray[np.integer]) -> pa.Table:
    """Return the given rows of a table without touching other parts of its memory (a mapped file)."""
    # Arrow itself would first join the pieces of each column.
    order = np.argsort(rows, kind="stable")
    ascending, parts, start = rows[order], [], 0
    for batch in table.to_batches():
        low, high = np.searchsorted(ascending, (start, start + len(batch)))
        if low < high:
            parts.append(take(batch, ascending[low:high] - start))
        start += len(batch)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return take(pa.Table.from_batches(parts, table.schema).combine_chunks(), places)


def _offsets(ids: pa.StringArray | pa.LargeStringArray) -> npt.NDArray[np.integer]:
    if not len(ids):
        return np.zeros(1, np.int32)
    dtype: type[np.integer] = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    return np.frombuffer(ids.buffers()[1], dtype)[ids.offset : ids.offset + len(ids) + 1]


def run_lengths(*parts: pa.StringArray) -> RunLengthIds:
    """Code a column of query ids, given in consecutive parts."""
    return _joined_runs([*map(pc.run_end_encode, parts)])


def _joined_runs(parts: Sequence[pa.RunEndEncodedArray]) -> RunLengthIds:
    """Code a column of query ids from separately coded parts."""
    values, ends, rows = [strings([])], [np.zeros(0, np.int64)], 0
    for part in parts:
        values.append(part.values)
        ends.append(rows + numbers(part.run_ends, np.int32).astype(np.int64))
        rows += len(part)
    # A stretch may continue in the next part.
    joined = pc.run_end_encode(pa.concat_arrays(values))
    coded = joined.values.dictionary_encode()
    bounds = np.append(0, np.concatenate(ends)[numbers(joined.run_ends, np.int32) - 1])
    return RunLengthIds(coded.dictionary.to_pylist(), numbers(coded.indices, np.int32), bounds)


def find(keys: Keys, among: Keys) -> Codes:
    """Return the index of each key in ``among``, or -1."""
    # A table by the first bits of the keys holds nearly all. Keys that lost their place, even to an equal one, go to a
    # table by other bits.
    bits = min(len(among).bit_length() + _SPARE_BITS, 24)
    table, rows = np.full(1 << bits, -1, np.int32), np.arange(len(among), dtype=np.int32)
    shift = np.uint64(64 - bits)
    slots = (among >> shift).view(np.int64)
    table[slots] = rows
    found = np.empty(len(keys), np.int32)
    wrong = [np.empty(0, np.int64)]
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        places = table.take((part >> shift).view(np.int64))
        found[start : start + _CHUNK] = places
        there = np.flatnonzero(places >= 0)
        wrong.append(there[among.take(places.take(there)) != part.take(there)] + start)
    if len(other := np.concatenate(wrong)):
        left = np.flatnonzero(table.take(slots) != rows)
        found[other] = np.append(left, -1)[find(keys[other] * _ODD, among[left] * _ODD)]
    return found


NOT_PLAIN: Final = (pa.ArrowException, OSError, ValueError, KeyError)
"""Errors of reading by columns if a cell is not plain, so that the file has to be read record by record."""


class TextTable(NamedTuple):
    """The layout of cells in the lines of a text file.

    Attributes:
        columns: their names in order, "" for ignored ones.
        delimiter: the separator of cells.
        header: whether the first line names the columns.
        packing: the compression, in Arrow's terms.
        trec: whether any white space separates cells, and empty lines may separate rows.
        skip: number of comment lines at the beginning.
    """

    columns: Sequence[str]
    delimiter: str
    header: bool
    packing: str | None = None
    trec: bool = False
    skip: int = 0

    def read(self, stream: Any, types: Mapping[str, pa.DataType]) -> Any:
        """Return a reader of the columns that ``types`` names, in this order; quotes are plain characters."""
        import pyarrow.csv as pacsv

        # By position, since names may be repeated.
        places = {str(self.columns.index(name)): kind for name, kind in types.items()}
        return pacsv.open_csv(
            stream,
            pacsv.ReadOptions(
                column_names=[*map(str, range(len(self.columns)))],
                block_size=_BLOCK,
                skip_rows=self.header + self.skip,
            ),
            pacsv.ParseOptions(
                delimiter=self.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=self.trec
            ),
            pacsv.ConvertOptions(
                column_types=places, include_columns=[*places], null_values=[*NULLS], strings_can_be_null=False
            ),
        )


def text_batches(
    path: Path, table: TextTable, wanted: Sequence[str], *, spaced: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of query, doc and number; one of `NOT_PLAIN` is raised where records have to be read.

    With ``spaced`` any white space may stand between the cells of a TREC file, which takes twice as long.
    """
    types = dict(zip(wanted, _PAIR, strict=True))
    if table.trec:
        # All columns are checked: an empty one, from two spaces in a row, would turn the rank into a score.
        types |= {name: pa.string() for name in table.columns if name and name not in types}
    if spaced:
        single = table._replace(delimiter=" ", skip=0)
        for rows in _whole_lines(path, table.skip):
            if rows.strip():
                yield from _plain(single.read(in_arrow(_single_spaced(rows)), types), quotes=True)
        return
    # Arrow's own streams, not Python's: its reading thread may release the stream after this returns, and a release
    # that needs the interpreter aborts the process if the program is ending. The stream is not closed here either: if
    # the file is not read to its end, that thread may still be reading, and would read from the next file opened under
    # the same number. It is closed by its last owner.
    stream = pa.input_stream(str(path), compression=table.packing)
    yield from _plain(table.read(stream, types), quotes=table.trec)


def _whole_lines(path: Path, skip: int) -> Iterator[bytes]:
    """Yield the lines of a file behind the first ``skip``, millions of bytes at a time, without a byte order mark."""
    with open_binary(path) as stream:
        for _ in range(skip):
            stream.readline()
        yield (stream.read(_BLOCK) + stream.readline()).removeprefix(BOM)
        while rows := stream.read(_BLOCK) + stream.readline():
            yield rows


def in_arrow(data: bytes) -> pa.BufferReader:
    """Return bytes as a stream in Arrow's own memory; `text_batches` says why."""
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def _single_spaced(text: bytes) -> bytes:
    """Return the lines of a TREC file with one space between their columns, and none at their ends."""
    # Replacing pairs of spaces until none is left is ten times as fast as an expression.
    text = text.translate(_SPACES)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip() + b"\n"


_SPACES: Final = bytes.maketrans(b"\t\r\f\v", b"    ")
_PAIR: Final = (pa.string(), pa.string(), pa.float64())
"""The types of query, doc and number."""


def parquet_batches(path: Path, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of query, doc and number of Parquet; likewise."""
    yield from _plain(_typed(path, wanted), quotes=True)


def _typed(path: Path, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns with their proper types."""
    schema = pa.schema(zip(wanted, _PAIR, strict=True))
    for batch in row_groups(path, wanted, 262_144):
        rows = batch.select([*wanted])
        query, doc, number = rows.schema.types
        # Arrow's cast would turn the number 7, perhaps once "007", into an id, or a text into a score.
        numeric = pa.types.is_floating(number) or pa.types.is_integer(number)
        if {query, doc} - {pa.string(), pa.large_string()} or not numeric:
            raise ValueError(f"{query}, {doc} and {number} are not two ids and a number")
        # One by one: batches have a cast of their own only from Arrow 16 on.
        columns = [column.cast(kind) for column, kind in zip(rows.columns, _PAIR, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


_LARGE: Final = 1 << 25


def pairs_of(batches: Iterable[pa.RecordBatch]) -> Pairs:
    """Return the rows of batches with query, doc, number and possibly more."""
    queries, parts, values = list[pa.RunEndEncodedArray](), list[pa.StringArray](), [np.empty(0)]
    batch = None
    for batch in batches:
        # At once, since the ids of all rows take as much memory as everything else.
        queries.append(pc.run_end_encode(batch.column(0)))
        parts.append(batch.column(1))
        values.append(numbers(batch.column(2), np.float64))
    docs = pa.concat_arrays(parts or [strings([])])
    # One column after the other, since each exists twice while its parts are joined.
    del parts
    joined = np.concatenate(values)
    del values, batch
    if docs.nbytes > _LARGE:
        # Otherwise Arrow would keep the parts' memory while numpy needs as much again.
        pa.default_memory_pool().release_unused()
    return Pairs(_joined_runs(queries), docs, joined)


def _plain(batches: Iterable[pa.RecordBatch], *, quotes: bool) -> Iterator[pa.RecordBatch]:
    """Yield batches without nulls and without texts that are empty or hold white space, control characters or quotes.

    Raises:
        ValueError: of any other batch.
    """
    for batch in batches:
        for column in batch.columns:
            fits = not column.null_count
            if fits and column.type == pa.string():
                offsets = _offsets(column)
                texts = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
                fits = texts.min(initial=0xFF) > ord(" ") and bool((offsets[1:] > offsets[:-1]).all())
                fits = fits and (quotes or not (texts == ord('"')).any())
            if not fits:
                raise ValueError("not plain")
        yield batch


def order_ids(ids: pa.StringArray, *, descending: bool = False) -> Ints:
    """Return a permutation that sorts ids by bytes (as strcmp does, and as Python sorts str)."""
    words = _as_words(ids)
    # Numbers are sorted ten times as fast as texts.
    if words is not None:
        return np.argsort(~words if descending else words)
    direction = "descending" if descending else "ascending"
    return numbers(pc.array_sort_indices(ids, order=direction), np.uint64).astype(np.int64)


def _as_words(ids: pa.StringArray) -> Keys | None:
    """Return ids as numbers in the same order; None if any id is longer than eight bytes, is empty or has a NUL."""
    ends = _offsets(ids)
    texts = np.frombuffer(ids.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    lengths = np.diff(ends)
    # Shorter ids are padded with NUL.
    if lengths.max(initial=0) > 8 or lengths.min(initial=1) < 1 or not texts.all():
        return None
    offsets, words = _eights(ids, ">u8")
    spare = ((8 - lengths) * 8).astype(np.uint64)
    own: Keys = words[offsets[:-1]].astype(np.uint64) >> spare << spare
    return own


def grouped(rows: Ints, group: npt.NDArray[np.integer]) -> Ints:
    """Return rows sorted by group, keeping their order within groups (a stable sort)."""
    # Sorting one number of group and place is several times as fast as a stable sort.
    keys = group[rows].astype(np.uint64) << np.uint64(32)
    keys |= np.arange(len(rows), dtype=np.uint64)
    keys.sort()
    return rows[(keys & np.uint64(0xFFFFFFFF)).view(np.int64)]


def sorted_codes(ids: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the ids in ascending order, and the place of each given one."""
    order = sorted(range(len(ids)), key=ids.__getitem__)
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    return [*map(ids.__getitem__, order)], places


def _mix(keys: Keys) -> Keys:
    keys = keys * _ODD
    keys ^= keys >> np.uint64(29)
    return keys


def _eights(ids: pa.StringArray, order: str) -> tuple[npt.NDArray[np.integer], Keys]:
    """Return the bounds of ids (N + 1), and the eight bytes from each position as a number, in a byte order."""
    offsets = _offsets(ids)
    first, last = int(offsets[0]), int(offsets[-1])
    texts = np.frombuffer(ids.buffers()[2] or b"", np.uint8)
    if len(texts) < last + 8:
        texts, offsets = np.append(texts[first:last], np.zeros(8, np.uint8)), offsets - first
    # A view: one gather reads eight bytes of many ids.
    words: Keys = np.lib.stride_tricks.as_strided(texts[:8].view(order), shape=(len(texts) - 7,), strides=(1,))
    return offsets, words


def _hashes(ids: pa.StringArray) -> Keys:
    """Return a 64-bit hash of each text, independently of the others."""
    offsets, words = _eights(ids, "<u8")
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    shortest, longest = int(lengths.min(initial=0)), int(lengths.max(initial=0))
    out: Keys = lengths.astype(np.uint64)
    for done in range(0, longest, 8):
        word = words[np.minimum(starts + done, ends) if done else starts]
        if shortest < done + 8:
            word &= _MASKS[np.clip(lengths - done, 0, 8) if longest > 8 else lengths]
        more = _mix(out ^ word)
        out = more if shortest > done else np.where(lengths > done, more, out)
    return out


def row_keys(queries: RunLengthIds, docs: pa.StringArray) -> Keys:
    """Return a 64-bit hash of each row's (query id, doc id), the same in every run and labeling."""
    # Two different pairs collide with a chance of 2**-64, so users of keys compare the ids of matches.
    keys = np.repeat(_mix(_hashes(strings(queries.ids)))[queries.codes], np.diff(queries.bounds))
    for start in range(0, len(docs), _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = _mix(part + _hashes(docs.slice(start, _CHUNK)))
    return keys


def repeated(pairs: Pairs, keys: Keys) -> tuple[str, str] | None:
    """Return a query and a doc that occur in two rows, given their keys, or None."""
    for start, stop in pairwise(_whole_queries(pairs.queries)):
        in_order = np.sort(keys[start:stop])
        for key in in_order[1:][in_order[1:] == in_order[:-1]]:
            rows = np.flatnonzero(keys == key).tolist()
            [(pair, times)] = Counter(map(pairs.at, rows)).most_common(1)
            if times > 1:
                return pair
    return None


def _whole_queries(queries: RunLengthIds) -> list[int]:
    """Return edges of blocks that hold all rows of some queries and are small enough to sort quickly."""
    rows = int(queries.bounds[-1])
    if len(queries.codes) > len(queries.ids):
        return [0, rows]
    ends = np.searchsorted(queries.bounds, np.arange(_CHUNK, rows, _CHUNK))
    # They ascend. np.unique would import numpy.ma, which takes longer than to read a small file.
    return [0, *dict.fromkeys(queries.bounds[ends].tolist()), rows]


def equal(ids: pa.StringArray, others: pa.StringArray) -> Bools:
    """Return whether ``ids[i] == others[i]``, byte by byte."""
    return numbers(pc.equal(ids, others).cast(pa.uint8()), np.uint8).astype(np.bool_)
