"""SQLite's log beside a database, and the parts that SQLite silently ignores.

The log holds images of pages that are newer than those in the database. SQLite reads it up to the first frame whose
checksum is wrong, treats the rest as leftovers of an earlier round, and deletes the log when the last process closes
the database. It also accepts any complete log as the database's own. The format:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from judgekit.store.rows import ERRORS, connect

END: Final = "-wal"
"""SQLite's suffix of the database's name."""

_HEAD: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_BYTE_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}
"""The byte order of the checksum, by the beginning of the log."""

_MOMENT_S: Final = 0.2

_APPLICATION_ID: Final = 68
"""Its place in the first page."""


class Frame(NamedTuple):
    """The image of a page in a log."""

    page: int
    ends: bool
    """Whether it ends a transaction."""
    salts: tuple[int, int]
    """Numbers that all frames of a round share."""
    place: int
    """The place of the image in the log."""


@dataclass(frozen=True)
class Log:
    """A log as found: all frames, whatever their checksums.

    Attributes:
        path: its file.
        head: its first bytes.
        page_size: bytes of a page.
        frames: all frames, in the order of writing.
    """

    path: Path
    head: bytes
    page_size: int
    frames: list[Frame]

    @property
    def whole(self) -> bool:
        """Whether the head's checksum is right. If not, SQLite ignores the whole log."""
        return _is_whole(self.head)

    @cached_property
    def current(self) -> list[Frame]:
        """The frames of the last round; later ones are leftovers of earlier rounds."""
        salts = _HEAD.unpack(self.head)[4:6]
        if not self.whole and self.frames:
            salts = self.frames[0].salts
        return [frame for frame in self.frames if frame.salts == salts]

    @property
    def committed(self) -> int:
        """The number of frames up to the last one that ends a transaction of the last round."""
        last = max((frame.place for frame in self.current if frame.ends), default=0)
        return sum(frame.place <= last for frame in self.frames)

    def store(self) -> int | None:
        """Return the number of the log's database; None if its first page is not in the log."""
        places = [frame.place for frame in self.current if frame.page == 1]
        if not places:
            return None
        with self.path.open("rb") as stream:
            stream.seek(places[-1] + _APPLICATION_ID)
            return int.from_bytes(stream.read(4), "big", signed=True)


def read_log(database: Path, page_size: int = 0) -> Log | None:
    """Return the log beside a database, None if there is none; ``page_size`` is for a log whose head is damaged."""
    path = database.with_name(database.name + END)
    with suppress(FileNotFoundError), path.open("rb") as stream:
        length = os.fstat(stream.fileno()).st_size
        head = stream.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        size = _HEAD.unpack(head)[2] if _is_whole(head) else page_size
        frames: list[Frame] = []
        if size:
            for place in range(_HEAD.size, length - _FRAME.size - size + 1, _FRAME.size + size):
                stream.seek(place)
                start = stream.read(_FRAME.size)
                if len(start) < _FRAME.size:  # another process begins it anew at this moment
                    break
                page, pages, one, other, *_ = _FRAME.unpack(start)
                frames.append(Frame(page, pages > 0, (one, other), place + _FRAME.size))
        return Log(path, head, size, frames)
    return None


def _is_whole(head: bytes) -> bool:
    words = _HEAD.unpack(head)
    order = _BYTE_ORDERS.get(words[0])
    if order is None:
        return False
    summed = struct.unpack(f"{order}6I", head[:24])
    one = other = 0
    for first, second in zip(summed[::2], summed[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return (one, other) == words[6:]


def is_foreign(database: Path, log: Log) -> bool:
    """Whether a log belongs to another database than the one beside it, judging by their numbers."""
    with suppress(*ERRORS), closing(connect(database, "mode=ro&immutable=1")) as alone:
        number = alone.execute("PRAGMA application_id").fetchone()[0]
        return number != 0 and log.store() not in (None, number)
    return False


def refuse_unread_log(database: Path) -> None:
    """Raise an error if SQLite would ignore the log, or overwrite the database with another one's log.

    Called before SQLite opens the database, because SQLite would then delete the one or apply the other.
    """
    _refuse(lambda: _unread(database))


def refuse_cut_log(database: Path, connection: sqlite3.Connection) -> None:
    """Raise an error if SQLite does not read the log to its end."""
    _refuse(lambda: _cut(database, connection))


def _refuse(look: Callable[[], str]) -> None:
    """Raise an error if two looks at the log find it damaged, since others may be writing."""
    if look():
        time.sleep(_MOMENT_S)
        if problem := look():
            raise sqlite3.DatabaseError(problem)


def _unread(database: Path) -> str:
    log = read_log(database)
    if log is not None and not log.whole:
        return "the beginning of its log is malformed"
    if log is not None and is_foreign(database, log):
        return "the log beside it was written for another file, so it is malformed"
    return ""


def _cut(database: Path, connection: sqlite3.Connection) -> str:
    if read_log(database) is None:
        return ""
    connection.execute("BEGIN IMMEDIATE")  # nobody is in the middle of writing
    try:
        log = read_log(database)
    finally:
        connection.execute("ROLLBACK")
    while True:
        busy, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if not busy:
            break
        time.sleep(_MOMENT_S / 10)  # another process does the same
    later = read_log(database)
    # A log that another process restarted meanwhile was read to its end.
    if log and later and later.head == log.head and 0 <= frames < log.committed:
        return "its log is malformed"
    return ""
