"""Reads a damaged store row by row, with SQLite itself.

Where SQLite comes upon a damaged page it gives up the whole query, although nearly all rows lie elsewhere. So rows are
asked for by the numbers that SQLite gave them, in ever smaller parts around what cannot be read. Nothing is believed
unseen: the caller checks each text, which holds its own identity and checksum.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

__all__ = ["rows_of_damaged"]

_LAST: Final = (
    "SELECT max(rowid) FROM Cache",
    "SELECT rowid FROM Cache INDEXED BY Cache_expire_time WHERE expire_time IS NULL ORDER BY rowid DESC LIMIT 1",
    "SELECT CAST(value AS INTEGER) FROM Settings WHERE key = 'count'",
)
"""Where the last row's number stands; each may be damaged."""

_KEY: Final = "CAST(key AS BLOB)"
_TEXT: Final = "CAST(value AS BLOB)"

_LEAST: Final = 64
"""Bytes that a row takes at the least, so that a damaged number of rows is not believed."""


def rows_of_damaged(database: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, stored text) of every row, both empty for each that cannot be read; nothing if none can be.

    Args:
        database: the file; the log beside it is read too. Neither is changed.
    """
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as rows:
        # Makes SQLite read a file that was cut off as far as it goes.
        rows.execute("PRAGMA writable_schema = ON")
        last = 0
        for query in _LAST:
            with suppress(sqlite3.DatabaseError):
                last = max(last, *(row[0] or 0 for row in rows.execute(query)))
        log = database.with_name(f"{database.name}-wal")
        size = sum(path.stat().st_size for path in (database, log) if path.exists())
        parts = [(1, min(last, size // _LEAST))]
        query = f"SELECT rowid, {_KEY}, {_TEXT} FROM Cache WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        while parts:
            first, last = parts.pop()
            try:
                for number, key, text in rows.execute(query, (first, last)):
                    first = number + 1
                    yield key or b"", text or b""
            except sqlite3.DatabaseError:
                if first < last:
                    middle = (first + last) // 2
                    parts += [(middle + 1, last), (first, middle)]
                elif first == last:
                    yield b"", b""
