"""The requests that each process is sending, so that processes with a shared store pay for each request once.

Claims (process, time, keys) are kept in the store's database. One process sends, the others wait for its reply in the
store. Claims of a dead or silent process are void, so that only requests in flight, or not yet stored, when a process
was killed may be paid twice.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection
from typing import Final
from uuid import uuid4

from judgekit.data.streams import has_ended
from judgekit.store.replies import Store
from judgekit.store.rows import Rows

_BEAT_S: Final = 4.0
_SILENT_S: Final = 20.0


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
        """Claim requests; return those that no other process is sending."""
        return self._store.written(lambda rows: self._take(rows, keys))

    def _take(self, rows: Rows, keys: Collection[str]) -> set[str]:
        version = rows.version()
        # If nobody else wrote, nobody else stored a reply, and a look-up is saved.
        self.others = version != self._version
        self._version = version
        free = set(keys)
        for process, heard, claimed in rows.claims_of_others(self._process):
            if time.time() - heard > _SILENT_S or _is_dead(process):
                rows.unclaim(process)
            else:
                free.difference_update(claimed.split())
        self._mine |= free
        self._write(rows)
        return free

    def end(self, key: str) -> None:
        """Release a request, once its reply is stored or none will come."""
        self._mine.discard(key)
        self._beaten = 0.0  # the next beat writes, so that others need not wait for a reply that will not come

    def beat(self) -> None:
        """Renew the claims, so that others see that this process lives."""
        if time.time() - self._beaten > _BEAT_S:
            self._store.written(self._write)

    def _write(self, rows: Rows) -> None:
        self._beaten = time.time()
        rows.claim(self._process, self._mine, self._beaten)

    def close(self) -> None:
        """Release all claims."""
        self._store.written(lambda rows: rows.unclaim(self._process))


def _is_dead(process: str) -> bool:
    """Return whether a process on this machine has ended; on other machines only silence shows it."""
    host, number, _ = process.split(" ")
    return host == socket.gethostname() and has_ended(int(number))
