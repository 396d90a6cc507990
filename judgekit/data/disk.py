"""A collection of documents that stays on disk."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import numpy as np

from judgekit.data.documents import Doc
from judgekit.errors import DataError

__all__ = ["DiskDocs", "DiskIndex"]


class DiskIndex:
    """Where each doc of a file is. Ids are not kept in memory, only their 64-bit hashes.

    Attributes:
        hashes: ``hash(doc_id)`` per doc, in the order of the file.
        starts: offset of the doc's line in the file that is read later.
        lines: its line (or row) in the user's file, for errors.
    """

    def __init__(self) -> None:
        self.hashes = array("q")
        self.starts = array("q")
        self.lines = array("q")

    def add(self, doc_id: str, start: int, line: int) -> None:
        """Note where a doc is."""
        self.hashes.append(hash(doc_id))
        self.starts.append(start)
        self.lines.append(line)


class DiskDocs:
    """A collection in a file, one doc a line, that is not loaded; see `judgekit.data.readers.read_docs`.

    It takes 16 bytes of memory per doc and is safe to use from several threads. The file is closed when the
    collection is no longer in use.
    """

    def __init__(self, stream: IO[bytes], index: DiskIndex, load: Callable[[bytes], Doc]) -> None:
        """Wrap an open file.

        Args:
            stream: the file.
            index: where its docs are.
            load: turns a line into a doc.
        """
        hashes = np.array(index.hashes, dtype=np.int64)
        self._by_hash = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._by_hash]
        self._starts = np.array(index.starts, dtype=np.int64)[self._by_hash]
        self._stream = stream
        self._load = load
        self._lock = threading.Lock()
        weakref.finalize(self, stream.close)

    def repeated(self, index: DiskIndex) -> tuple[str, int, int] | None:
        """Return the first repeated doc as (doc id, line, line of its first mention), or None."""
        found: list[tuple[int, str, int]] = []
        first: dict[str, int] = {}
        same = self._hashes[1:] == self._hashes[:-1]
        for row in np.flatnonzero(np.append(same, False) | np.append(False, same)):
            doc_id, line = self._at(int(self._starts[row])).doc_id, index.lines[self._by_hash[row]]
            if doc_id in first:
                found.append((line, doc_id, first[doc_id]))
            first.setdefault(doc_id, line)
        if not found:
            return None
        line, doc_id, first_line = min(found)
        return doc_id, line, first_line

    def _at(self, start: int) -> Doc:
        with self._lock:
            self._stream.seek(start)
            line = self._stream.readline()
        return self._load(line)

    def _row(self, doc_id: object) -> int | None:
        """Return the first row with the hash of an id."""
        value = hash(doc_id)
        row = int(np.searchsorted(self._hashes, value))
        return row if row < len(self._hashes) and self._hashes[row] == value else None

    def _get(self, doc_id: str) -> Doc:
        row = self._row(doc_id)
        if row is None:
            raise DataError(f"doc {doc_id!r} is not in the collection")
        while row < len(self._hashes) and self._hashes[row] == hash(doc_id):
            doc = self._at(int(self._starts[row]))
            if doc.doc_id == doc_id:
                return doc
            row += 1
        raise DataError(f"doc {doc_id!r} is not where it was: its file was changed while it was in use")

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents in the order asked for; an unknown id is a `DataError`."""
        return [self._get(doc_id) for doc_id in doc_ids]

    def __contains__(self, doc_id: object) -> bool:
        """Compare hashes only, without reading: an unknown id passes for known once in 2**64 / len(self) times."""
        return isinstance(doc_id, str) and self._row(doc_id) is not None

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[Doc]:
        """Read the documents in the order of the file."""
        return map(self._at, np.sort(self._starts).tolist())
