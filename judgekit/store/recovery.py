"""Recovers the rows of damaged files with SQLite.

It reads a copy with a new head, and with the log's pages in their places, whatever their checksums. SQLite finds a row
through other pages, so an unreadable page hides all rows below it. If rows are still missing, each page of rows is
presented to SQLite as a table of its own. Nothing is trusted: the caller checks each record by its identity and
checksum.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO, Final

from judgekit.store.log import is_foreign, read_log
from judgekit.store.rows import ERRORS, connect

# Bytes of the smallest row: a damaged count of more rows than the file can hold is ignored.
_LEAST: Final = 64

_ROWS: Final = (
    "SELECT rowid, CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache NOT INDEXED"
    " WHERE typeof(key) = 'text' AND value NOT NULL ORDER BY rowid"
)


def rows_counted(connection: sqlite3.Connection, size: int) -> int | None:
    """Return diskcache's count of rows in a file of a given size; None if it cannot be read."""
    with suppress(*ERRORS, TypeError):
        (counted,) = connection.execute("SELECT value FROM Settings NOT INDEXED WHERE key = 'count'").fetchone()
        if isinstance(counted, int) and 0 <= counted <= size // _LEAST:
            return counted
    return None


def rows_of_table(connection: sqlite3.Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, stored bytes) of the rows up to the damage, from both ends."""
    for order in ("ASC", "DESC"):
        before: int | None = None
        try:
            for number, key, value in connection.execute(f"{_ROWS} {order}"):
                if before is not None and (number <= before) == (order == "ASC"):
                    break  # damaged pages lead round in circles
                before = number
                yield key, value
            else:
                return
        except ERRORS:
            continue


_SIZES: Final = (8192, 4096)
"""Bytes of a page in our stores, and in those of judgekit 0.1."""

_HEAD: Final = 100
_PAGE_COUNT: Final = slice(28, 32)
_WITH_ROWS: Final = 0x0D
"""The beginning of a page with rows of a table."""

_TABLE: Final = (
    "CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, key, raw, store_time, expire_time, access_time, access_count, tag,"
    " size, mode, filename, value)"
)
"""The columns in diskcache's order."""


def page_sizes(database: Path) -> list[int]:
    """Return the possible page sizes of a damaged file, likeliest first."""
    sizes = [log.page_size] if (log := read_log(database)) else []
    with database.open("rb") as stream:
        head = stream.read(_HEAD)
    sizes += [int.from_bytes(head[16:18], "big"), *_SIZES]
    plausible = [size for size in sizes if 512 <= size <= 2**15 and size & (size - 1) == 0]
    return list(dict.fromkeys(plausible))


def lay_out(database: Path, copy: Path, page_size: int) -> None:
    """Write a copy of a damaged file with its log's pages in their places, and older images after them."""
    head = _first_page(copy, page_size)[:_HEAD]
    shutil.copyfile(database, copy)
    log = read_log(database, page_size)
    with copy.open("r+b") as pages:
        count = -(-pages.seek(0, 2) // page_size)
        pages.truncate(count * page_size)
        if log and log.page_size == page_size:
            # A damaged number would put an image far away.
            numbers = [frame.page for frame in log.frames if 0 < frame.page <= count + len(log.frames)]
            behind = max([count, *numbers])
            current = set() if is_foreign(database, log) else {frame.place for frame in log.current}
            with log.path.open("rb") as stream:
                for frame in log.frames:
                    stream.seek(frame.place)
                    image = stream.read(page_size)
                    if frame.place in current and 0 < frame.page <= behind:
                        older = _page(pages, frame.page, page_size)
                        _put(pages, frame.page, image)
                        image = older
                    if image[0] == _WITH_ROWS:
                        behind += 1
                        _put(pages, behind, image)
        pages.seek(0)
        pages.write(head)


def rows_of_pages(copy: Path, page_size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, stored bytes) of every row on any page of a copy; this modifies the copy."""
    first = _first_page(copy.with_name(f"{copy.name}-first"), page_size)
    with copy.open("r+b") as pages:
        count = pages.seek(0, 2) // page_size
        _put(pages, 1, first)
        with_rows = [number for number in range(2, count + 1) if _page(pages, number, page_size)[0] == _WITH_ROWS]
    if not with_rows:
        return
    with closing(connect(copy, "mode=rw")) as connection:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "writable_schema = ON"):
            connection.execute(f"PRAGMA {setting}").fetchall()
        for number in with_rows:
            connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'Cache'", (number,))
            connection.execute(f"PRAGMA schema_version = {number}")  # SQLite reads the list of tables again
            yield from rows_of_table(connection)


def _first_page(file: Path, page_size: int) -> bytes:
    """Return the first page of a database with only diskcache's table; SQLite then gets the length from the file."""
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(_TABLE)
    page = bytearray(file.read_bytes()[:page_size])
    file.unlink()
    page[_PAGE_COUNT] = bytes(4)
    return bytes(page)


def _page(pages: BinaryIO, number: int, page_size: int) -> bytes:
    """Return a page; beyond the end of the file an empty one."""
    pages.seek((number - 1) * page_size)
    return pages.read(page_size).ljust(page_size, b"\0")


def _put(pages: BinaryIO, number: int, page: bytes) -> None:
    pages.seek((number - 1) * len(page))
    pages.write(page)
