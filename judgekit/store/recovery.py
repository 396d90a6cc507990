"""Reads the rows of a damaged store from the pages of its files, without SQLite.

SQLite finds a row by way of other pages: one that is damaged hides all below it, and may lead round in circles. A row
itself lies on one page (a long one goes on in others), so every page is looked at by itself, once: what is read is
bounded by the size of the files. Nothing is believed unseen: the caller checks each text, which holds its own identity
and checksum.

The log beside the database holds newer images of pages. They are read first; then the older ones, for rows whose newer
page is damaged. So the first row of a key is the one to keep.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

_MAGIC: Final = b"SQLite format 3\0"
_SIZES: Final = (8192, 4096)
"""The pages of our stores, and of earlier versions."""

_LEAF: Final = 0x0D
_LOG_MAGIC: Final = b"\x37\x7f\x06"
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MOMENT_S: Final = 0.2
_COLUMNS: Final = 12
_KEY: Final = 1
_VALUE: Final = 11
"""Columns of diskcache's table."""

_LEAST: Final = 64
"""Bytes that a row takes at the least, so that a damaged number of rows is not believed."""

_FAR: Final = 1000
"""Pages: how much farther than both files reach the number of a page may be that the log once held."""


class Remains:
    """What is left of a database and its log; neither is changed.

    Attributes:
        held: how many rows the store counted, once its rows are read; None if that cannot be known.
    """

    def __init__(self, database: Path) -> None:
        self.held: int | None = None
        self._paths = (database, database.with_name(f"{database.name}-wal"))

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, stored text) of every row that is there, the newest of a key first."""
        counts: list[int] = []
        with _Files(self._paths) as files:
            for page in files.pages():
                for payload in files.payloads(*page):
                    columns = _columns(payload)
                    if len(columns) == _COLUMNS:
                        yield columns[_KEY], columns[_VALUE]
                    elif len(columns) == 2 and columns[0] == b"count":
                        counts.append(int.from_bytes(columns[1], "big"))
            # A log that cannot be read at all may have held later rows than the database counts.
            if counts and files.log_known and counts[0] <= files.length // _LEAST:
                self.held = counts[0]

    def log_damaged(self) -> bool:
        """Return whether the log holds more than what SQLite reads in it and leftovers of earlier rounds."""
        first = self._log_damage()
        if first is None:
            return False
        time.sleep(_MOMENT_S)  # a process that stores something at this moment has not told SQLite's index yet
        return self._log_damage() == first

    def _log_damage(self) -> int | None:
        """Return the first damaged frame of the log; 0 if it cannot be read at all, None if none is damaged."""
        database, log = self._paths
        with _Files((None, log)) as files:
            if not files.log_known:
                return 0
            length = database.stat().st_size + files.length
            frames, farthest = files.frames, 16 * (length // files.size) + _FAR
            read = _frames_read(database.with_name(f"{database.name}-shm")) if frames else b""
            if not read or files._read(1, 0, _LOG_HEADER) != files._log_header:  # the log begins anew
                return None
            behind = range(int.from_bytes(read, sys.byteorder), len(frames))
            damaged = (n for n in behind if not 0 < frames[n][0] <= farthest or all(frames[n][1:]))
            return next((number + 1 for number in damaged), None)


def _frames_read(index: Path) -> bytes:
    """Return what SQLite's index of the log says of the number of its valid frames, nothing if there is no index."""
    program = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(20)[16:])"
    command = [sys.executable, "-I", "-S", "-c", program, str(index)]
    return subprocess.run(command, capture_output=True, check=False).stdout


class _Files:
    """The pages of both files, by number."""

    def __init__(self, paths: tuple[Path | None, Path]) -> None:
        self._streams = [path.open("rb", buffering=0) if path and path.exists() else io.BytesIO() for path in paths]
        self._lengths = [stream.seek(0, io.SEEK_END) for stream in self._streams]
        self.length = sum(self._lengths)
        start, log = self._read(0, 0, 100), self._read(1, 0, _LOG_HEADER)
        self._log_header = log if log.startswith(_LOG_MAGIC) else b""
        self.log_known = not self._lengths[1] or bool(self._log_header)
        named = (int.from_bytes(start[16:18], "big"), int.from_bytes(self._log_header[8:12], "big"))
        self.size = next((size for size in named if size in _SIZES), 0)
        self.size = self.size or next((size for size in _SIZES if self._has_leaf(size)), _SIZES[0])
        self._followed: set[int] = set()

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.close()

    def _read(self, file: int, start: int, length: int) -> bytes:
        self._streams[file].seek(start)
        return self._streams[file].read(length)

    def _has_leaf(self, size: int) -> bool:
        """Return whether pages of this size begin where a row is."""
        return any(
            len(_columns(payload)) == _COLUMNS
            for start in range(0, self._lengths[0], size)
            for payload, _, _ in _cells(self._read(0, start, size).ljust(size, b"\0"), 0)
        )

    @cached_property
    def frames(self) -> list[tuple[int, bool, bool]]:
        """Return of each frame of the log: its page, whether it ends a transaction, whether it is of the last round."""
        found = []
        for start in range(_LOG_HEADER, self._lengths[1] - _FRAME_HEADER - self.size + 1, _FRAME_HEADER + self.size):
            frame = self._read(1, start, _FRAME_HEADER)
            ours = not self._log_header or frame[8:16] == self._log_header[16:24]
            found.append((int.from_bytes(frame[:4], "big"), any(frame[4:8]), ours))
        return found

    @cached_property
    def _images(self) -> list[tuple[int, int, int]]:
        """Return (page, file, place) of all images of pages, newer ones of a page before older ones."""
        places = range(_LOG_HEADER + _FRAME_HEADER, self._lengths[1] + 1, _FRAME_HEADER + self.size)
        log = [(page, 1, place) for (page, _, ours), place in zip(self.frames, places, strict=False) if ours]
        stored = [(place // self.size + 1, 0, place) for place in range(0, self._lengths[0], self.size)]
        return [*reversed(log), *stored]

    @cached_property
    def _newest(self) -> dict[int, tuple[int, int, int]]:
        return {image[0]: image for image in reversed(self._images)}

    def _page(self, number: int) -> bytes:
        """Return the newest image of a page."""
        _, file, place = self._newest.get(number, (number, 0, self._lengths[0]))
        return self._read(file, place, self.size).ljust(self.size, b"\0")

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Yield (number, image) of all images of pages that are in use, the newest of each before all older ones."""
        free, newest = self._free(), set(self._newest.values())
        for images in (sorted(newest), [image for image in self._images if image not in newest]):
            self._followed.clear()
            for number, file, place in images:
                if number not in free:
                    yield number, self._read(file, place, self.size).ljust(self.size, b"\0")

    def _free(self) -> set[int]:
        """Return the pages that the database lists as free: they hold what was deleted or replaced."""
        found: set[int] = set()
        first = self._page(1)
        trunk = int.from_bytes(first[32:36], "big") if first.startswith(_MAGIC) else 0
        while trunk and trunk not in found and trunk <= self.length // self.size + 1:
            page = self._page(trunk)
            found.add(trunk)
            most = min(int.from_bytes(page[4:8], "big"), self.size // 4 - 2)
            found |= {int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * most, 4)}
            trunk = int.from_bytes(page[:4], "big")
        return found

    def payloads(self, number: int, image: bytes) -> Iterator[bytes]:
        """Yield what the rows of a page hold."""
        for payload, link, more in _cells(image, 100 if number == 1 else 0):
            if more <= self.length:
                yield payload + self._rest(link, more) if more else payload

    def _rest(self, link: bytes, length: int) -> bytes:
        """Return what a long row goes on with, as far as no other row took it."""
        parts: list[bytes] = []
        number = int.from_bytes(link, "big")
        while length > 0 and number and number not in self._followed:
            self._followed.add(number)
            page = self._page(number)
            parts.append(page[4 : 4 + length])
            length -= len(parts[-1])
            number = int.from_bytes(page[:4], "big")
        return b"".join(parts)


def _cells(image: bytes, start: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield of each row of a page: what of it stands there, the page where it goes on, how many bytes those are."""
    if image[start] != _LEAF:
        return
    size = room = len(image)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    count = min(int.from_bytes(image[start + 3 : start + 5], "big"), size // 4)
    for at in range(start + 8, start + 8 + 2 * count, 2):
        place = int.from_bytes(image[at : at + 2], "big")
        length, place = _varint(image, place)
        _, place = _varint(image, place)
        local = length if length <= most else least + (length - least) % (size - 4)
        local = local if local <= most else least
        room -= local
        if room < 0:  # rows do not overlap
            return
        yield image[place : place + local], image[place + local : place + local + 4], length - local


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return SQLite's whole number of one to nine bytes at a place, and the place behind it."""
    value = 0
    for count, byte in enumerate(data[place : place + 9], 1):
        if count == 9:
            return value << 8 | byte, place + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + count
    return value, len(data)


def _columns(payload: bytes) -> list[bytes]:
    """Return the columns of a row as bytes; none if they do not fill it."""
    end, place = _varint(payload, 0)
    lengths: list[int] = []
    while place < min(end, len(payload), 9 * _COLUMNS):
        kind, place = _varint(payload, place)
        lengths.append((kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind])
    if end + sum(lengths) != len(payload):
        return []
    return [payload[start:stop] for start, stop in pairwise(accumulate(lengths, initial=end))]
