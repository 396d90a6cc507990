"""Who asks what at the moment, so that processes that share a store pay for each request once.

A claim (key, process, time) stands in the store's own database. One process sends, the others wait for its reply in the
store. A claim of a process that is dead or silent is void, so that all that may be paid for twice is what was in flight
when a process was killed.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Collection
from typing import Final
from uuid import uuid4

from judgekit.store.replies import Store

__all__ = ["Claims"]

_BEAT_S: Final = 4.0
_SILENT_S: Final = 20.0
_TABLE: Final = "CREATE TABLE IF NOT EXISTS Claims (key TEXT PRIMARY KEY, process TEXT, time REAL) WITHOUT ROWID"
_TAKE: Final = (
    "INSERT INTO Claims VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET time = excluded.time"
    " WHERE process = excluded.process"
)


class Claims:
    """The claims of one event loop. What ends is given back together with the next beat: that costs a run nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._process = f"{socket.gethostname()} {os.getpid()} {uuid4().hex}"
        self._ended: set[str] = set()
        self._beaten = float("-inf")

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim requests; return those that no other process asks."""
        self._ended.difference_update(keys)
        return self._store.written(self._take, keys)

    def _take(self, rows: sqlite3.Connection, keys: Collection[str]) -> set[str]:
        now = time.time()
        rows.execute(_TABLE)
        others = "SELECT process, max(time) FROM Claims WHERE process <> ? GROUP BY process"
        for process, heard in rows.execute(others, (self._process,)).fetchall():
            if now - heard > _SILENT_S or _dead(process):
                rows.execute("DELETE FROM Claims WHERE process = ?", (process,))
        rows.executemany(_TAKE, [(key, self._process, now) for key in keys])
        mine = rows.execute("SELECT key FROM Claims WHERE process = ? AND time >= ?", (self._process, now))
        return {key for (key,) in mine} & set(keys)

    def end(self, key: str) -> None:
        """Give a request back, once its reply is stored or there will be none."""
        self._ended.add(key)

    def beat(self) -> None:
        """Say that this process lives, and give back what ended."""
        if self._ended or time.monotonic() - self._beaten > _BEAT_S:
            self._store.written(self._beat)

    def _beat(self, rows: sqlite3.Connection) -> None:
        rows.execute(_TABLE)
        rows.executemany("DELETE FROM Claims WHERE key = ? AND process = ?", [(k, self._process) for k in self._ended])
        self._ended.clear()
        if time.monotonic() - self._beaten > _BEAT_S:
            rows.execute("UPDATE Claims SET time = ? WHERE process = ?", (time.time(), self._process))
            self._beaten = time.monotonic()

    def close(self) -> None:
        """Give everything back."""
        self._store.written(lambda rows: rows.execute("DELETE FROM Claims WHERE process = ?", (self._process,)))


def _dead(process: str) -> bool:
    """Whether a process of this machine has ended; elsewhere, and on Windows, only its silence tells."""
    host, number, _ = process.split(" ")
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's
        pass
    return False
