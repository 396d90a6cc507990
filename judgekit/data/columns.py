"""Columns of ids as Arrow strings and columns of numbers as numpy arrays.

Ids stay in Arrow memory, where hashing and comparing millions of them takes a fraction of a second. pyarrow's own
conversions to numpy and from lists import pandas (a quarter of a second); the ones here do not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.errors import DataError

__all__ = [
    "codes",
    "find",
    "fingerprints",
    "numbers",
    "objects",
    "order_ids",
    "pair_twice",
    "sorted_codes",
    "strings",
    "take",
]

Ints = npt.NDArray[np.int64]
N = TypeVar("N", bound=np.generic)


def strings(values: object) -> pa.StringArray:
    """Return ids as one Arrow string array.

    Args:
        values: a pandas Series, a numpy object array, an Arrow array or a sequence of str.

    Raises:
        DataError: a value is missing or is no string.
    """
    column: Any = values if isinstance(values, pa.Array | pa.ChunkedArray) else _from_python(values)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if column.type != pa.string():
        column = column.cast(pa.string())
    if column.null_count:
        raise DataError("an id is missing (null)")
    return column


def _from_python(values: object) -> pa.Array | pa.ChunkedArray:
    try:
        if "pandas" in sys.modules:
            return pa.array(values, type=pa.string())
        encoded = [str.encode(v) for v in values]  # type: ignore[attr-defined]  # anything else raises TypeError
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"ids must be strings: {error}") from None
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    offsets, data = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, offsets, data])


def numbers(array: pa.Array | pa.ChunkedArray, dtype: type[N]) -> npt.NDArray[N]:
    """Return the values of an Arrow array without nulls as a numpy array, without a copy where it can."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]


def objects(ids: pa.StringArray | list[str]) -> npt.NDArray[np.object_]:
    """Return ids as a numpy array of str objects."""
    out = np.empty(len(ids), dtype=object)
    out[:] = ids if isinstance(ids, list) else ids.to_pylist()
    return out


def take(array: pa.Array, rows: npt.NDArray[np.integer]) -> pa.Array:
    """Return the given rows of an Arrow array."""
    indices = np.ascontiguousarray(rows, dtype=np.int64)
    return array.take(pa.Array.from_buffers(pa.int64(), len(indices), [None, pa.py_buffer(indices)]))


def codes(ids: pa.StringArray) -> tuple[list[str], npt.NDArray[np.int32], Ints]:
    """Code a column of query ids, in which equal ids mostly stand together.

    Returns:
        The distinct ids in order of appearance; for every stretch of equal ids its code, shape (S,); and the
        stretches' bounds, shape (S + 1,): rows of stretch i are ``bounds[i]:bounds[i + 1]``.
    """
    if not len(ids):
        return [], np.empty(0, np.int32), np.zeros(1, np.int64)
    runs = pc.run_end_encode(ids)
    coded = runs.values.dictionary_encode()
    bounds = np.concatenate([[0], numbers(runs.run_ends, np.int32)]).astype(np.int64)
    return coded.dictionary.to_pylist(), numbers(coded.indices, np.int32), bounds


def find(ids: pa.StringArray, among: pa.StringArray) -> npt.NDArray[np.int32]:
    """Return for each id its index in ``among`` (distinct ids), or -1."""
    if not len(among) or not len(ids):
        return np.full(len(ids), -1, np.int32)
    return numbers(pc.index_in(ids, value_set=among).fill_null(-1), np.int32)


def fingerprints(ids: pa.StringArray) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash per id: equal ids have equal hashes; different ones differ but for a chance of 2**-64."""
    n = len(ids)
    if not n:
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + n + 1].astype(np.int64)
    data = ids.buffers()[2]
    padded = np.zeros((0 if data is None else len(data)) + 16, np.uint8)
    if data is not None:
        padded[: len(data)] = np.frombuffer(data, np.uint8)
    # A view of the eight bytes that start at every byte: one gather reads eight bytes of every id.
    words = np.lib.stride_tricks.as_strided(padded[:8].view("<u8"), shape=(len(padded) - 8,), strides=(1,))
    lengths = np.diff(offsets)
    out = lengths.astype(np.uint64)
    for start in range(0, int(lengths.max()), 8):
        left = np.clip(lengths - start, 0, 8).astype(np.uint64)
        word = words[offsets[:-1] + np.minimum(start, lengths)]
        # Keep the first `left` bytes; a shift by 64 is undefined, hence the two steps.
        word &= ~((~np.uint64(0) << (left * np.uint64(4))) << (left * np.uint64(4)))
        out = (out ^ word) * np.uint64(0x9E3779B97F4A7C15)
        out ^= out >> np.uint64(29)
    return out


def pair_twice(groups: npt.NDArray[np.integer], ids: pa.StringArray) -> tuple[int, int] | None:
    """Return two rows that hold the same (group, id), or None."""
    keys = fingerprints(ids) + groups.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
    ordered = np.sort(keys)
    for key in ordered[1:][ordered[1:] == ordered[:-1]]:
        seen: dict[tuple[int, str], int] = {}
        for row in np.flatnonzero(keys == key).tolist():
            pair = (int(groups[row]), ids[row].as_py())
            if pair in seen:
                return seen[pair], row
            seen[pair] = row
    return None


def order_ids(ids: pa.StringArray, *, descending: bool = False) -> Ints:
    """Return the permutation that sorts ids by bytes (as strcmp does, and as Python sorts str)."""
    direction = "descending" if descending else "ascending"
    return numbers(pc.array_sort_indices(ids, order=direction), np.uint64).astype(np.int64)


def sorted_codes(ids: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the ids in ascending order, and for each of the given ones its place there."""
    order = sorted(range(len(ids)), key=ids.__getitem__)
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    return [ids[i] for i in order], places
