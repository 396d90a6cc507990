"""Reads what SQL still reads of a damaged file.

SQLite finds a row by way of other pages, so a page that it cannot read hides all rows below it. They are walked through
by their numbers, in spans: one that cannot be read to its end is halved, until only what is damaged is left out.
Nothing is believed unseen: the caller checks each record, which holds its own identity and checksum.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from judgekit.store.rows import ERRORS, OURS

# Bytes of the smallest row: a damaged number of rows that no file of this size can hold is not believed.
_LEAST: Final = 64

# One of these is mostly whole. Without the highest number all that the file might hold is tried, for seconds.
_HIGHEST: Final = (
    "SELECT max(rowid) FROM Cache NOT INDEXED",
    "SELECT max(rowid) FROM Cache INDEXED BY Cache_expire_time WHERE expire_time IS NULL",
    "SELECT max(rowid) FROM Cache INDEXED BY Cache_key_raw",
)

_SPAN: Final = (
    "SELECT rowid, CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache NOT INDEXED"
    f" WHERE rowid BETWEEN ? AND ? AND typeof(key) = 'text' AND {OURS} ORDER BY rowid"
)


def rows_counted(connection: sqlite3.Connection) -> int | None:
    """Return how many rows diskcache counted; None if that cannot be read."""
    with suppress(*ERRORS, TypeError):
        (counted,) = connection.execute("SELECT value FROM Settings NOT INDEXED WHERE key = 'count'").fetchone()
        if isinstance(counted, int) and 0 <= counted <= _most_rows(connection):
            return counted
    return None


def readable_rows(connection: sqlite3.Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, stored bytes) of every row that can be read."""
    most = _most_rows(connection)
    highest = 0
    for query in _HIGHEST:
        with suppress(*ERRORS):
            highest = max(highest, connection.execute(query).fetchone()[0] or 0)
    failures = 0
    spans = [(0, highest or most)]
    while spans and failures <= 2 * most:  # a damaged number may make a span longer than the file can fill
        low, high = spans.pop()
        try:
            for number, key, value in connection.execute(_SPAN, (low, high)):
                if number < low:  # damaged pages lead round in circles
                    raise sqlite3.DatabaseError("its rows are out of order")
                low = number + 1
                yield key, value
        except ERRORS:
            failures += 1
            if low < high:
                middle = (low + high) // 2
                spans += [(middle + 1, high), (low, middle)]


def _most_rows(connection: sqlite3.Connection) -> int:
    """Return how many rows a file of this size can hold; 0 if its first page is damaged."""
    with suppress(*ERRORS):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        return int(pages * size) // _LEAST
    return 0
