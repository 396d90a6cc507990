"""Saves the rows of a damaged file that SQLite still reads, and finds what SQLite passes over in its log.

SQLite finds a row by way of other pages, so a page that it cannot read hides all rows below it. They are walked through
by their numbers, in spans: one that cannot be read to its end is halved, until only what is damaged is left out. Where
that finds less than the store counted, each page is read by itself, in a copy.
Nothing is believed unseen: the caller checks each text, which holds its own identity and checksum.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from judgekit.store.rows import ERRORS, OURS, TextCache, connect, make_file

_LEAST: Final = 64
"""Bytes that a row takes at the least, so that a damaged number of rows is not believed."""

_HIGHEST: Final = (
    "SELECT max(rowid) FROM Cache NOT INDEXED",
    "SELECT max(rowid) FROM Cache INDEXED BY Cache_expire_time WHERE expire_time IS NULL",
    "SELECT max(rowid) FROM Cache INDEXED BY Cache_key_raw",
)
_TEXTS: Final = "CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache NOT INDEXED"
_SPAN: Final = f"SELECT rowid, {_TEXTS} WHERE rowid BETWEEN ? AND ? AND typeof(key) = 'text' AND {OURS} ORDER BY rowid"
_PAGE: Final = f"SELECT {_TEXTS} WHERE typeof(key) = 'text' AND {OURS}"
_LOG_MAGIC: Final = b"\x37\x7f\x06"
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_FAR: Final = 1000
"""Pages: how much farther than both files reach the number of a page may be that the log once held."""


class Remains:
    """What SQLite still reads of a database and its log; neither is changed.

    Attributes:
        held: how many rows the store counted; None if SQLite cannot say.
    """

    def __init__(self, database: Path, log_is_whole: bool) -> None:
        self.held: int | None = None
        self._database = database
        self._log_is_whole = log_is_whole

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, stored bytes) of every row that can be read, some of them twice."""
        count = 0
        with closing(connect(self._database, "mode=ro")) as connection, suppress(*ERRORS):
            self.held = _held(connection)
            for row in _readable(connection):
                count += 1
                yield row
        if not self._log_is_whole:
            self.held = None  # SQLite counts the rows without those of the log that it does not read
        if self.held is None or count < self.held:
            with TemporaryDirectory(dir=self._database.parent) as folder:
                copy = _with_new_first_page(self._database, Path(folder))
                with closing(connect(copy, "mode=rw")) as connection, suppress(*ERRORS):
                    if self._log_is_whole and self.held is None:
                        self.held = _held(connection)
                    yield from _page_by_page(connection)


def _held(connection: sqlite3.Connection) -> int | None:
    """Return how many rows diskcache counted."""
    with suppress(*ERRORS, TypeError):
        (held,) = connection.execute("SELECT value FROM Settings NOT INDEXED WHERE key = 'count'").fetchone()
        if isinstance(held, int) and 0 <= held <= _bytes(connection) // _LEAST:
            return held
    return None


def _bytes(connection: sqlite3.Connection) -> int:
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages * size)


def _readable(connection: sqlite3.Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of every row that can be read."""
    highest = [0]
    for query in _HIGHEST:
        with suppress(*ERRORS):
            highest.append(connection.execute(query).fetchone()[0] or 0)
    most = _bytes(connection) // _LEAST
    failures, spans = 0, [(0, max(highest) or most)]
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


def _page_by_page(connection: sqlite3.Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of the rows of each page, read as if the table were that page alone."""
    connection.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA writable_schema = ON")
    for number in range(2, connection.execute("PRAGMA page_count").fetchone()[0] + 1):
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'Cache'", (number,))
        connection.execute(f"PRAGMA schema_version = {number}")  # so that SQLite reads it anew
        with suppress(*ERRORS):
            yield from connection.execute(_PAGE)


def _with_new_first_page(database: Path, folder: Path) -> Path:
    """Return a copy of a database whose first page, which lists the tables, is that of a new store."""
    new, copy = folder / "new" / database.name, folder / database.name
    new.parent.mkdir()
    make_file(new)
    with closing(connect(new, "mode=rw")) as connection:
        TextCache(new.parent, connection)
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    first = bytearray(new.read_bytes()[:size])
    first[28:32] = bytes(4)  # the number of pages: SQLite then asks the file
    shutil.copyfile(database, copy)
    with copy.open("r+b") as stream:
        stream.write(first)
        log = database.with_name(f"{database.name}-wal")
        for frame in _frames(log, size):
            if frame.of_this_round and 1 < frame.page <= _farthest(database.stat().st_size, log, size):
                stream.seek((frame.page - 1) * size)
                stream.write(frame.image())
    return copy


@dataclass(frozen=True)
class _Frame:
    """A page in the log.

    Attributes:
        page: its number.
        ends: whether it is the last one of a transaction.
        of_this_round: whether it was written since the log was begun anew; what is left of earlier rounds is behind.
        image: reads what the page holds.
    """

    page: int
    ends: bool
    of_this_round: bool
    image: Callable[[], bytes]


def _frames(log: Path, size: int, first: int = 0) -> Iterator[_Frame]:
    """Yield what is in a log, from a frame on."""
    if not log.exists():
        return
    with log.open("rb", buffering=0) as stream:
        header = stream.read(_LOG_HEADER)
        length = stream.seek(0, 2)
        mark = header[16:24]
        for start in range(_LOG_HEADER + first * (_FRAME_HEADER + size), length - size, _FRAME_HEADER + size):
            stream.seek(start)
            frame = stream.read(_FRAME_HEADER)
            if not header.startswith(_LOG_MAGIC) and start == _LOG_HEADER:
                mark = frame[8:16]
            page = int.from_bytes(frame[:4], "big")
            yield _Frame(page, any(frame[4:8]), frame[8:16] == mark, lambda: stream.read(size))


def log_damaged(connection: sqlite3.Connection, log: Path) -> bool:
    """Return whether a log holds transactions that SQLite does not read; it says nothing of them."""
    first = _first_lost(connection, log)
    if first is None:
        return False
    connection.execute("BEGIN IMMEDIATE")  # whoever stores something at this moment has then done so
    connection.rollback()
    return _first_lost(connection, log) == first


def _first_lost(connection: sqlite3.Connection, log: Path) -> int | None:
    """Return the first frame of the log that is damaged or behind a damaged one; None if there is none."""
    if not log.exists() or not log.stat().st_size:
        return None
    _, read, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if read < 0:  # another process is at it, which looked at the log when it opened the file
        return None
    with log.open("rb", buffering=0) as stream:
        if not stream.read(_LOG_HEADER).startswith(_LOG_MAGIC):
            return 0
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    farthest = _farthest(_bytes(connection), log, size)
    for number, frame in enumerate(_frames(log, size, read), read):
        if not 0 < frame.page <= farthest or (frame.of_this_round and frame.ends):
            return number
    return None


def _farthest(length: int, log: Path, size: int) -> int:
    """Return the highest number that a page may have."""
    return 16 * ((length + log.stat().st_size) // size) + _FAR
