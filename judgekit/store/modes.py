"""The store as a session uses it: what its cache mode lets it read, where it keeps what is new, and what it claims.

Claims (process, time, keys) say who asks what at the moment, so that processes that share a store pay for each request
once. They stand in the store's own database. One process sends, the others wait for its reply in the store. The claims
of a process that is dead or silent are void, so that all that may be paid for twice is what was in flight, or not yet
stored, when a process was killed.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal, get_args
from uuid import uuid4

from judgekit.errors import UsageError, not_among
from judgekit.store.maintenance import holds, import_store, rescue, rescued
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.store.rows import Rows
from judgekit.wire.types import Endpoint, Reply

_BEAT_S: Final = 4.0
_SILENT_S: Final = 20.0
_SPARE: Final = 2**20
"""Bytes: more than the replies take that are in flight at once, unless many are long."""


Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""


class SessionStore:
    """What one session reads and keeps.

    Attributes:
        sink: where replies are kept.
    """

    def __init__(self, path: str | Path | Store | None, mode: Mode, note: Callable[[str], None]) -> None:
        """Open the store in a folder, or use one that is open."""
        if mode not in get_args(Mode):
            raise UsageError(not_among("cache mode", mode, get_args(Mode)))
        self._since = time.time() if mode == "refresh" else 0.0
        self._note = note
        self._base: Store | None = None
        if isinstance(path, Store):
            self._base = path
        elif path is not None and mode != "off":
            self._base = Store(path, readonly=mode == "read-only", note=note)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._spare: BinaryIO | None = None
        if self._base is None or self._base.readonly:
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self.sink = Store(self._temporary.name, note=note)
        else:
            self.sink = self._base
            for file in rescued(self._base):
                added, _ = import_store(self._base, file)
                file.unlink()
                note(f"{added:,} replies that an earlier run could not store are in the store now")
            self._spare = _spare(self._base.path)

    def claims(self) -> Claims | None:
        """Return the claims of an event loop, or None where no other process may ask the same."""
        return None if self._temporary or self._since else Claims(self.sink)

    def lookup(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the stored replies that the mode lets be used."""
        replies = self.sink.get_many(keys, self._since)
        if self._base is not None and self._base is not self.sink and len(replies) < len(keys):
            replies |= self._base.get_many([key for key in keys if key not in replies])
        return replies

    def keep(self, records: Sequence[Record]) -> dict[str, Reply]:
        """Store records; return earlier replies, which stay. If the store fails, write the records beside it."""
        try:
            return self.sink.put_many(records, replace=self._since > 0) if records else {}
        except BaseException:
            if self._temporary is None:
                self._free_spare()
                self._note(rescue(self.sink, records))
            raise

    def knows(self, endpoint: Endpoint) -> bool:
        """Return whether the store holds a reply of an endpoint's model."""
        return self._base is not None and holds(self._base, endpoint.identity, endpoint.model)

    def close(self) -> None:
        """Close the files; what was kept for this session only is deleted."""
        self._free_spare()
        self.sink.close()
        if self._base is not None:
            self._base.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _free_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None


def _spare(folder: Path) -> BinaryIO | None:
    """Reserve room on the disk of a store in an unnamed file, for paid replies that come when it is full."""
    with suppress(OSError), ExitStack() as opened:
        spare = opened.enter_context(tempfile.TemporaryFile(dir=folder))
        spare.write(bytes(min(_SPARE, shutil.disk_usage(folder).free // 4)))
        spare.flush()
        opened.pop_all()
        return spare
    return None


class Claims:
    """The claims of one event loop. Ended requests are released with the next claim or beat, which costs nothing more.

    Attributes:
        others: whether another process wrote to the store between the last two claims.
    """

    def __init__(self, store: Store) -> None:
        self.others = True
        self._store = store
        self._process = f"{socket.gethostname()} {os.getpid()} {uuid4().hex}"
        self._mine: set[str] = set()
        self._version: int | None = None
        self._beaten = 0.0

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim requests; return those that no other process asks."""
        return self._store.written(self._take, keys)

    def _take(self, rows: Rows, keys: Collection[str]) -> set[str]:
        version = rows.version()
        self.others, self._version = version != self._version, version
        free = set(keys)
        for process, heard, claimed in rows.claims_of_others(self._process):
            if time.time() - heard > _SILENT_S or _dead(process):
                rows.unclaim(process)
            else:
                free.difference_update(claimed.split())
        self._mine |= free
        self._write(rows)
        return free

    def end(self, key: str) -> None:
        """Release a request, once its reply is stored or none will come."""
        self._mine.discard(key)
        self._beaten = 0.0

    def beat(self) -> None:
        """Renew the claims, so that others see that this process lives."""
        if time.time() - self._beaten > _BEAT_S:
            self._store.written(self._write)

    def _write(self, rows: Rows) -> None:
        self._beaten = time.time()
        rows.claim(self._process, self._mine, self._beaten)

    def close(self) -> None:
        """Release all claims."""
        self._store.written(Rows.unclaim, self._process)


def _dead(process: str) -> bool:
    """Return whether a process of this machine has ended; of others, and on Windows, only silence shows it."""
    host, number, _ = process.split(" ")
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(number), 0)
    except OSError as problem:  # another user's may not be asked
        return isinstance(problem, ProcessLookupError)
    return False
