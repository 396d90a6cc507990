"""The store: a map from the identity of a request to the raw reply, on diskcache, as JSON text only.

Two of diskcache's defaults are traps, and are switched off here: values are pickled, so that reading a crafted row
runs code (`JSONDisk` too: it still follows a row's pickle mode), and whatever exceeds 1 GiB is dropped in silence
(``eviction_policy="none"`` keeps everything; ``cull_limit=0`` alone does not).

Look-ups go straight to diskcache's table, many keys at a time: one ``get`` a key would be several times slower.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import diskcache
import orjson

from judgekit.data.tables import SCHEMA_VERSION
from judgekit.errors import StoreError
from judgekit.llm.types import identity

__all__ = ["Record", "Store", "Stored", "TextDisk", "default_store_path"]

_MODE_RAW: Final = 1
_NO_FILES: Final = 2**62
_SETTINGS: Final[dict[str, Any]] = {
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    "statistics": 0,
    "tag_index": 0,
    "disk_min_file_size": _NO_FILES,
    "disk_pickle_protocol": 0,
    "sqlite_journal_mode": "wal",
    "sqlite_synchronous": 1,
    "sqlite_auto_vacuum": 0,
    "sqlite_mmap_size": 0,
    "sqlite_cache_size": 2**13,
}


def default_store_path() -> Path:
    """Return where the store lies unless the user says: ``$JUDGEKIT_CACHE``, else the platform's cache folder."""
    if named := os.environ.get("JUDGEKIT_CACHE"):
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "judgekit"


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """A Disk that knows text keys and text values, and refuses everything else. It never unpickles."""

    def put(self, key: Any) -> tuple[str, bool]:
        """Return the key as it is stored."""
        if type(key) is not str:
            raise TypeError(f"keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        """Return the key of a row."""
        if not raw or type(key) is not str:
            raise StoreError("the store holds a row that judgekit did not write (its key is pickled); it is not read")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        """Return (size, mode, file name, value) of a row."""
        if type(value) is not str or read:
            raise TypeError(f"values are text, not {type(value).__name__}")
        return 0, _MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        """Return the value of a row."""
        if mode != _MODE_RAW or filename is not None or type(value) is not str:
            raise StoreError("the store holds a row that judgekit did not write (its value is pickled); it is not read")
        return value


class Stored(NamedTuple):
    """What a look-up gives: the raw reply, (prompt, completion) tokens if reported, and when it was stored."""

    reply: str
    usage: tuple[int, int] | None
    time: float


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that is stored about one request.

    Attributes:
        key: the identity.
        endpoint: the endpoint's part of the identity.
        sample: the sample index.
        body: the canonical body, as the labeler made it.
        sent: the body really sent, if negotiation changed it.
        reply: the raw reply, as it came.
        usage: (prompt, completion) tokens, if the server reported them.
        time: when it was stored, seconds since 1970.
    """

    key: str
    endpoint: str
    sample: int
    body: str
    sent: str | None
    reply: str
    usage: tuple[int, int] | None
    time: float

    def text(self) -> str:
        """Return the JSON text that is stored."""
        return orjson.dumps(
            {
                "version": SCHEMA_VERSION,
                "key": self.key,
                "endpoint": self.endpoint,
                "sample": self.sample,
                "body": self.body,
                "sent": self.sent,
                "reply": self.reply,
                "usage": self.usage,
                "time": self.time,
            }
        ).decode()

    @classmethod
    def parse(cls, text: str | bytes) -> Record:
        """Read a stored text.

        Raises:
            ValueError: it is no record of this schema version, or its key is not the identity of its content.
        """
        try:
            row = orjson.loads(text)
            version = row.pop("version")
            usage = row.pop("usage")
            record = cls(**row, usage=None if usage is None else (int(usage[0]), int(usage[1])))
            key = identity(record.endpoint, record.sample, record.body.encode())
        except (AttributeError, IndexError, KeyError, TypeError) as problem:
            raise ValueError(f"no record of judgekit: {problem}") from None
        if version != SCHEMA_VERSION:
            raise ValueError(f"schema version {version}; this judgekit reads {SCHEMA_VERSION}")
        if key != record.key:
            raise ValueError("the key is not the identity of the request")
        return record


class Store:
    """Raw replies by identity. Safe for several processes; within one, for several threads in turn."""

    def __init__(self, path: str | Path, *, readonly: bool = False) -> None:
        """Open or create the store in a folder.

        Raises:
            StoreError: it cannot be opened, or not be written to; the message says what to do.
        """
        self.path = Path(path)
        self.readonly = readonly
        self._lock = threading.Lock()
        self._cache = None if readonly else diskcache.Cache(str(self.path), timeout=60, disk=TextDisk, **_SETTINGS)
        file = (self.path / "cache.db").resolve()
        self._reader = sqlite3.connect(
            f"{file.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )

    def get_many(self, keys: Sequence[str]) -> dict[str, Stored]:
        """Return what is stored of these requests; a key that is missing or unreadable is left out."""
        found: dict[str, Stored] = {}
        for start in range(0, len(keys), 512):
            part = keys[start : start + 512]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, value FROM Cache WHERE key IN ({marks}) AND raw = 1 AND mode = {_MODE_RAW}"
            with self._lock:
                rows = self._reader.execute(query, part).fetchall()
            for key, value in rows:
                row = orjson.loads(value)
                usage = row["usage"]
                found[key] = Stored(row["reply"], None if usage is None else (usage[0], usage[1]), row["time"])
        return found

    def put_many(self, records: Iterable[Record]) -> None:
        """Store records in one transaction: all of them are there when it returns."""
        if self._cache is None:
            raise StoreError(f"the store {self.path} was opened for reading only")
        with self._cache.transact(retry=True):
            for record in records:
                self._cache.set(record.key, record.text(), retry=True)

    def records(self) -> Iterator[Record]:
        """Yield all records, in the order they were stored."""
        for (value,) in self._reader.execute(f"SELECT value FROM Cache WHERE raw = 1 AND mode = {_MODE_RAW}"):
            yield Record.parse(value)

    def __len__(self) -> int:
        with self._lock:
            count: int = self._reader.execute("SELECT count(*) FROM Cache").fetchone()[0]
        return count

    def close(self) -> None:
        """Close the files."""
        self._reader.close()
        if self._cache is not None:
            self._cache.close()
