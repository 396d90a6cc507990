"""Saves what can be saved from a damaged store, without SQLite's help.

SQLite refuses a file whose header or inner pages are damaged, although nearly all rows are whole. So the rows are read
straight from the leaf pages of the file and of its write-ahead log, wherever they lie. Nothing is believed unseen:
the caller checks each text, which holds its own identity and checksum.

The format is documented at https://www.sqlite.org/fileformat2.html; only what is needed here is read.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

__all__ = ["MAGIC", "carve"]

_LEAF: Final = 0x0D
MAGIC: Final = b"SQLite format 3\0"
"""What a database file starts with."""

_DEFAULT_PAGE: Final = 4096
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MOST_PAYLOAD: Final = 1 << 28


def carve(database: Path, marker: bytes) -> Iterator[bytes]:
    """Yield every row's text that starts with ``marker``, from a database file and the log beside it.

    A text may come several times (from the log and from the file), and may be damaged.
    """
    with ExitStack() as stack:
        main = _map(database, stack)
        log = _map(database.with_name(database.name + "-wal"), stack)
        size = _page_size(main, log)
        pages = _Pages(main, log, size)
        for page in pages:
            yield from _texts(page, pages, size, marker)


def _map(path: Path, stack: ExitStack) -> mmap.mmap | bytes:
    if not path.is_file() or not path.stat().st_size:
        return b""
    file = stack.enter_context(path.open("rb"))
    return stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _page_size(main: mmap.mmap | bytes, log: mmap.mmap | bytes) -> int:
    found = []
    if main[:16] == MAGIC:
        stated = int.from_bytes(main[16:18], "big")
        found.append(65536 if stated == 1 else stated)
    if len(log) >= _WAL_HEADER:
        found.append(int.from_bytes(log[8:12], "big"))
    return next((size for size in found if 512 <= size <= 65536 and size & (size - 1) == 0), _DEFAULT_PAGE)


class _Pages:
    """The pages of a file and of the log, by number; the log's version of a page is the newer one."""

    def __init__(self, main: mmap.mmap | bytes, log: mmap.mmap | bytes, size: int) -> None:
        self._main = main
        self._log = log
        self._size = size
        frames = range(_WAL_HEADER, len(log) - size - _FRAME_HEADER + 1, size + _FRAME_HEADER)
        self._frames = [(int.from_bytes(log[at : at + 4], "big"), at + _FRAME_HEADER) for at in frames]
        self._newest = dict(self._frames)

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self._main), self._size):
            yield self._main[at : at + self._size]
        for _, at in self._frames:
            yield self._log[at : at + self._size]

    def versions(self, number: int) -> Iterator[bytes]:
        if number in self._newest:
            at = self._newest[number]
            yield self._log[at : at + self._size]
        at = (number - 1) * self._size
        yield self._main[at : at + self._size]


def _texts(page: bytes, pages: _Pages, size: int, marker: bytes) -> Iterator[bytes]:
    start = 100 if page.startswith(MAGIC) else 0
    if len(page) < size or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    pointers = page[start + 8 : start + 8 + 2 * count]
    for index in range(0, len(pointers) - 1, 2):
        at = int.from_bytes(pointers[index : index + 2], "big")
        for payload in _payloads(page, at, pages, size):
            begin = payload.find(marker)
            if begin >= 0:
                yield payload[begin:]


def _varint(page: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(at, min(at + 8, len(page))):
        value = value << 7 | page[index] & 0x7F
        if page[index] < 0x80:
            return value, index + 1
    return -1, at


def _payloads(page: bytes, at: int, pages: _Pages, size: int) -> Iterator[bytes]:
    """Yield the payload of the cell at an offset; what spills over is followed through its chain of pages."""
    length, at = _varint(page, at)
    _, at = _varint(page, at)
    if not 0 < length < _MOST_PAYLOAD:
        return
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        yield page[at : at + length]
        return
    spilled = least + (length - least) % (size - 4)
    local = spilled if spilled <= most else least
    first = int.from_bytes(page[at + local : at + local + 4], "big")
    for newest in (True, False):
        payload, number = page[at : at + local], first
        while number and len(payload) < length:
            versions = list(pages.versions(number))
            link = versions[0] if newest else versions[-1]
            if len(link) < size:
                break
            payload += link[4 : 4 + length - len(payload)]
            number = int.from_bytes(link[:4], "big")
        yield payload
