"""The hottest loops, compiled by numba (the extra ``fast``): each gives bit for bit what the code beside its use gives.

Compiled code is kept beside this file, or in the user's cache folder where that cannot be written, once per machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from judgekit.data.columns import RunLengthIds, numbers

__all__ = ["any_twice", "find", "read", "row_keys", "weighted_pairs"]

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

_BLOCK: Final = 1 << 22
_POWERS: Final = 10.0 ** np.arange(16)
"""By number of decimals. Up to 15 digits are a whole number below 2**53, and its quotient is correctly rounded."""
_SPACE, _LF, _CR, _PLUS, _MINUS, _POINT, _ZERO, _NINE = 32, 10, 13, 43, 45, 46, 48, 57
_LANES: Final = 128
"""Resamples that are worked out side by side."""


Rows = tuple[RunLengthIds, pa.StringArray, Floats]
"""Queries, docs and values of some rows."""


def read(path: Path, columns: int, value: int, delimiter: str) -> Iterator[Rows | None]:
    """Yield the rows of a TREC file block by block; None and no more from where others must read.

    They must where bytes are not printable ASCII, lines or columns are empty, or a number is malformed; some
    malformed numbers raise ArrowInvalid instead.
    """
    buffer, kept = np.empty(_BLOCK + 1, np.uint8), 0
    texts = [(np.empty(_BLOCK // 2 + 1, np.int32), np.empty(_BLOCK, np.uint8)) for _ in range(3)]
    values, starts, odd = np.empty(_BLOCK // 2), np.empty(_BLOCK // 2, np.int64), np.empty(_BLOCK // 2, np.int64)
    with path.open("rb", buffering=0) as file:
        while True:
            got = file.readinto(buffer[kept:_BLOCK].data)
            end = kept + (got or 0)
            if not end:
                return
            if not got and buffer[end - 1] != _LF:
                buffer[end] = _LF
                end += 1
            newlines = np.flatnonzero(buffer[max(end - 65536, 0) : end] == _LF)
            stop = max(end - 65536, 0) + int(newlines[-1]) + 1 if len(newlines) else 0
            (doc_ends, docs), (query_ends, queries), (odd_ends, odds) = texts
            rows, stretches, strange = _parse(
                buffer, stop, columns, value, ord(delimiter), doc_ends, docs, query_ends, queries, starts,
                values, odd, odd_ends, odds,
            ) if stop else (-1, 0, 0)  # fmt: skip
            if rows < 0:
                yield None
                return
            if strange:
                others = numbers(_strings(odd_ends, odds, strange).cast(pa.float64()), np.float64)
                values[odd[:strange]] = others
            coded = _strings(query_ends, queries, stretches).dictionary_encode()
            bounds = np.append(starts[:stretches], rows)
            ids = RunLengthIds(coded.dictionary.to_pylist(), numbers(coded.indices, np.int32), bounds)
            yield ids, _strings(doc_ends, docs, rows), values[:rows].copy()
            kept = end - stop
            buffer[:kept] = buffer[stop:end].copy()


def _strings(ends: npt.NDArray[np.int32], data: Bytes, count: int) -> pa.StringArray:
    """Return texts as an array of their own, given where each ends."""
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends[:count]
    texts = data[: offsets[-1]].copy()
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(texts)])


@njit(cache=True, nogil=True)
def _parse(
    data: Any, size: Any, columns: Any, value: Any, delimiter: Any, doc_ends: Any, docs: Any, query_ends: Any,
    queries: Any, starts: Any, values: Any, odd: Any, odd_ends: Any, odds: Any,
) -> Any:  # fmt: skip
    """Return how many rows, stretches of equal queries and numbers left to others there are, or -1."""
    powers = _POWERS
    at = row = stretches = strange = doc_end = query_end = odd_end = last = last_end = 0
    while at < size:
        for column in range(columns):
            start = at
            byte = data[at]
            if column == 2:
                while _SPACE < byte < 128:
                    docs[doc_end] = byte
                    doc_end += 1
                    at += 1
                    byte = data[at]
            elif column == value:
                negative = byte == _MINUS
                if negative:
                    at += 1
                    byte = data[at]
                number, digits, point = np.uint64(0), 0, -1
                while _ZERO <= byte <= _NINE or (byte == _POINT and point < 0):
                    if byte == _POINT:
                        point = digits
                    else:
                        number = number * np.uint64(10) + np.uint64(byte - _ZERO)
                        digits += 1
                    at += 1
                    byte = data[at]
                if byte > _SPACE or not 0 < digits < 16:
                    # An exponent, or more digits than are exact: for a parser of such numbers.
                    while _ZERO <= byte <= _NINE or byte in (_PLUS, _MINUS, 69, 101):
                        at += 1
                        byte = data[at]
                    for place in range(start, at):
                        odds[odd_end] = data[place]
                        odd_end += 1
                    odd[strange], odd_ends[strange] = row, odd_end
                    strange += 1
                else:
                    found = np.float64(number) / powers[digits - point if point >= 0 else 0]
                    values[row] = -found if negative else found
            else:
                while _SPACE < byte < 128:
                    at += 1
                    byte = data[at]
            if at == start:
                return -1, 0, 0
            if column == 0:
                same = row > 0 and at - start == last_end - last
                place = 0
                while same and place < at - start:
                    same = data[start + place] == data[last + place]
                    place += 1
                if not same:
                    for place in range(start, at):
                        queries[query_end] = data[place]
                        query_end += 1
                    starts[stretches], query_ends[stretches] = row, query_end
                    stretches += 1
                last, last_end = start, at
            if column < columns - 1:
                if byte != delimiter:
                    return -1, 0, 0
                at += 1
        if byte == _CR and data[at + 1] == _LF:
            at += 1
            byte = data[at]
        if byte != _LF:
            return -1, 0, 0
        at += 1
        doc_ends[row] = doc_end
        row += 1
    return row, stretches, strange


@njit(cache=True, nogil=True)
def _hash(data: Any, start: Any, stop: Any) -> Any:
    """Return the hash of one text (`columns._hashes`)."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    out, place = np.uint64(stop - start), start
    while True:
        word, last = np.uint64(0), min(place + 8, stop)
        for byte in range(last - 1, place - 1, -1):
            word = (word << np.uint64(8)) | np.uint64(data[byte])
        out = (out ^ word) * odd
        out ^= out >> np.uint64(29)
        place += 8
        if place >= stop:
            return out


@njit(cache=True, nogil=True)
def row_keys(hashes: Any, bounds: Any, data: Any, offsets: Any) -> Any:
    """Return the key of each row (`columns.row_keys`), given the hash of the query of each stretch."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for stretch in range(len(hashes)):
        for row in range(bounds[stretch], bounds[stretch + 1]):
            key = (_hash(data, offsets[row], offsets[row + 1]) + hashes[stretch]) * np.uint64(0x9E3779B97F4A7C15)
            out[row] = key ^ (key >> np.uint64(29))
    return out


@njit(cache=True, nogil=True)
def find(keys: Any, among: Any) -> Any:
    """Return the rows whose key is there, and where (`columns.find`)."""
    bits = 3
    while 1 << bits < 4 * len(among):
        bits += 1
    table, shift, mask = np.full(1 << bits, -1, np.int32), np.uint64(64 - bits), (1 << bits) - 1
    for place in range(len(among)):
        slot = np.int64(among[place] >> shift)
        while table[slot] >= 0 and among[table[slot]] != among[place]:
            slot = (slot + 1) & mask
        table[slot] = place
    rows, places, count = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64), 0
    for row in range(len(keys)):
        slot = np.int64(keys[row] >> shift)
        while table[slot] >= 0 and among[table[slot]] != keys[row]:
            slot = (slot + 1) & mask
        if table[slot] >= 0:
            rows[count], places[count] = row, table[slot]
            count += 1
    return rows[:count].copy(), places[:count].copy()


@njit(cache=True, nogil=True)
def any_twice(keys: Any, bounds: Any) -> Any:
    """Return whether any key is there twice within one stretch of ``bounds``."""
    widest = 0
    for stretch in range(len(bounds) - 1):
        widest = max(widest, bounds[stretch + 1] - bounds[stretch])
    bits = 3
    while 1 << bits < 4 * widest:
        bits += 1
    table, shift, mask = np.full(1 << bits, -1, np.int64), np.uint64(64 - bits), (1 << bits) - 1
    for stretch in range(len(bounds) - 1):
        first = bounds[stretch]
        for row in range(first, bounds[stretch + 1]):
            slot = np.int64(keys[row] >> shift)
            while table[slot] >= first:
                if keys[table[slot]] == keys[row]:
                    return True
                slot = (slot + 1) & mask
            table[slot] = row
    return False


@njit(cache=True, nogil=True)
def weighted_pairs(order: Any, x: Any, y: Any, weights: Any, ranked: Any, totals: Any) -> Any:
    """Return what `judgekit.analysis.coefficients` counts, per column of weights, shape (4, B).

    These are concordant minus discordant ordered pairs, pairs that x does not tie, twelve times the sum of squared
    centred mid-ranks of x, and the sum of their products with those of y; all exact below 2**53, added in any order.

    Args:
        order: the points in ascending order of x, shape (n,).
        x: per point its value's place among the values, shape (n,).
        y: likewise.
        weights: shape (n, B).
        ranked: weight times centred mid-rank of y, shape (n, B); (0, 0) leaves the last row out.
        totals: the sums of the weights, shape (B,).
    """
    columns, levels, ranks = len(totals), y.max() + 1, len(ranked) > 0
    # By Fenwick's tree of cumulated weights a point looks up how much before it lies below and above it.
    tree = np.zeros((levels + 1, _LANES), weights.dtype)
    before, own, favour, balance = np.zeros((4, _LANES), weights.dtype)
    group, of_y, square, cube, product = np.zeros((5, _LANES))
    out = np.zeros((4, columns))
    for first in range(0, columns, _LANES):
        lanes = min(_LANES, columns - first)
        tree[:], before[:], balance[:], square[:], cube[:], product[:] = 0, 0, 0, 0, 0, 0
        start = 0
        while start < len(order):
            stop = start
            group[:], of_y[:] = 0, 0
            while stop < len(order) and x[order[stop]] == x[order[start]]:
                point = order[stop]
                for lane in range(_LANES):
                    favour[lane] = -before[lane]
                for node in (y[point], y[point] + 1):
                    while node > 0:
                        for lane in range(_LANES):
                            favour[lane] += tree[node, lane]
                        node &= node - 1
                for lane in range(lanes):
                    balance[lane] += favour[lane] * weights[point, first + lane]
                    group[lane] += weights[point, first + lane]
                if ranks:
                    for lane in range(lanes):
                        of_y[lane] += ranked[point, first + lane]
                stop += 1
            for place in range(start, stop):
                point = order[place]
                for lane in range(lanes):
                    own[lane] = weights[point, first + lane]
                node = y[point] + 1
                while node <= levels:
                    for lane in range(_LANES):
                        tree[node, lane] += own[lane]
                    node += node & -node
            for lane in range(lanes):
                before[lane] += group[lane]
                square[lane] += group[lane] ** 2
                cube[lane] += group[lane] ** 3
                product[lane] += (before[lane] - group[lane] / 2 - totals[first + lane] / 2) * of_y[lane]
            start = stop
        for lane in range(lanes):
            total = totals[first + lane]
            out[0, first + lane] = 2 * np.float64(balance[lane])
            out[1, first + lane] = total**2 - square[lane]
            out[2, first + lane] = total**3 - cube[lane]
            out[3, first + lane] = product[lane]
    return out
