"""The store as a session uses it: what its cache mode lets it read, and where it keeps what is new."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from judgekit.errors import UsageError, not_among
from judgekit.store.maintenance import holds, import_store, rescue, rescued
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint, Reply

__all__ = ["Mode", "SessionStore"]

Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""


class SessionStore:
    """What one session reads and keeps.

    Attributes:
        sink: where replies are kept.
        shared: whether other processes may use it too; otherwise it is deleted in the end.
        refreshes: whether a reply that is there already is replaced.
    """

    def __init__(self, path: str | Path | Store | None, mode: Mode, note: Callable[[str], None]) -> None:
        """Open the store in a folder, or use one that is open."""
        if mode not in get_args(Mode):
            raise UsageError(not_among("cache mode", mode, get_args(Mode)))
        self.refreshes = mode == "refresh"
        self._since = time.time() if self.refreshes else 0.0
        self._note = note
        self._base: Store | None = None
        if isinstance(path, Store):
            self._base = path
        elif path is not None and mode != "off":
            self._base = Store(path, readonly=mode == "read-only", note=note)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if self._base is None or self._base.readonly:
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self.sink = Store(self._temporary.name, note=note)
        else:
            self.sink = self._base
            for file in rescued(self._base):
                added, _ = import_store(self._base, file)
                file.unlink()
                note(f"{added:,} replies that an earlier run could not store are in the store now")
        self.shared = self._temporary is None

    def lookup(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return what is stored of these requests, as far as the mode lets it be used."""
        replies = self.sink.get_many(keys, self._since)
        if self._base is not None and self._base is not self.sink and len(replies) < len(keys):
            replies |= self._base.get_many([key for key in keys if key not in replies])
        return replies

    def keep(self, records: Sequence[Record]) -> dict[str, Reply]:
        """Store records; return what was there already and stays. What is not taken is written beside the store."""
        stored = False
        try:
            there = self.sink.put_many(records, replace=self.refreshes) if records else {}
            stored = True
        finally:
            if not stored and self.shared:
                self._note(rescue(self.sink, records))
        return there

    def knows(self, endpoint: Endpoint) -> bool:
        """Say whether there is a reply of an endpoint's model."""
        return self._base is not None and holds(self._base, endpoint.identity, endpoint.model)

    def close(self) -> None:
        """Close the files; what was kept for this session only is deleted."""
        self.sink.close()
        if self._base is not None:
            self._base.close()
        if self._temporary is not None:
            self._temporary.cleanup()
