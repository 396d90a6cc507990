"""A session's store: no paid reply is lost if the store fails, even on a full disk.

Replies that cannot be stored go to a file beside the store, which the next session imports. Space for it is reserved
beforehand.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from judgekit.store.maintenance import holds, import_store
from judgekit.store.records import Record
from judgekit.store.replies import Store, default_store_path
from judgekit.wire.types import Endpoint, Reply

_SPARE: Final = 2**20
"""Bytes: enough for the replies in flight, unless many are long."""

_RESCUED: Final = "rescued-"


class SessionStore:
    """The replies of one session: in a store, or in a temporary folder.

    Attributes:
        replies: the store.
    """

    def __init__(self, path: str | Path | Store | None, note: Callable[[str], None]) -> None:
        """Open the store in a folder, or use an open one; import replies that an earlier session could not store."""
        self._note = note
        self._opened = ExitStack()
        if path is None:
            path = self._opened.enter_context(tempfile.TemporaryDirectory(prefix="judgekit-"))
        self.replies = path if isinstance(path, Store) else Store(path, note=note)
        self._opened.callback(self.replies.close)
        for file in _rescued_files(self.replies):
            added, _ = import_store(self.replies, file)
            file.unlink()
            note(f"{added:,} replies that an earlier run could not store are in the store now")
        self._spare = _reserve(self.replies.path)

    def keep(self, records: Sequence[Record]) -> dict[str, Reply]:
        """Store records; return existing replies, which stay. If the store fails, write the records beside it."""
        if not records:
            return {}
        try:
            return self.replies.put_many(records)
        except BaseException:  # an interrupt as well: these replies are paid for
            self._free_spare()
            self._note(rescue(self.replies, records))
            raise

    def knows(self, endpoint: Endpoint) -> bool:
        """Return whether the store holds a reply of an endpoint's model."""
        return holds(self.replies, endpoint.identity, endpoint.model)

    def close(self) -> None:
        """Close the store; a temporary one is deleted."""
        self._free_spare()
        self._opened.close()

    def _free_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None


def _reserve(folder: Path) -> BinaryIO | None:
    """Reserve space on a store's disk with an unnamed file, for paid replies that arrive when the disk is full."""
    with suppress(OSError), ExitStack() as opened:
        spare = opened.enter_context(tempfile.TemporaryFile(dir=folder))
        spare.write(bytes(min(_SPARE, shutil.disk_usage(folder).free // 4)))
        spare.flush()
        opened.pop_all()
        return spare
    return None


def rescue(store: Store, records: Sequence[Record]) -> str:
    """Write paid replies that cannot be stored to a file for the next session; return its place."""
    lines: list[bytes] = []
    for record in records:
        with suppress(ValueError):  # half of a surrogate pair, which nothing can be written of
            lines.append(record.text().encode() + b"\n")
    lost = ""
    if len(lines) < len(records):
        lost = f"; {len(records) - len(lines):,} others are lost"
    for folder in _folders(store):
        file = folder / f"{_RESCUED}{uuid4().hex[:8]}.jsonl"
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_for_owner(file, lines)
            return (
                f"{len(lines):,} paid replies that the store could not take are in {file}: the next run takes"
                f" them{lost}"
            )
    return f"{len(records):,} paid replies are lost: neither the store nor a file beside it could be written"


def _write_for_owner(file: Path, lines: Sequence[bytes]) -> None:
    """Write a file that only its owner can read, completely or not at all."""
    opened = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(opened, "wb") as stream:
            stream.writelines(lines)
    except OSError:
        file.unlink()
        raise


def _rescued_files(store: Store) -> list[Path]:
    files: list[Path] = []
    for folder in _folders(store):
        files += sorted(folder.glob(f"{_RESCUED}*.jsonl"))
    return files


def _folders(store: Store) -> tuple[Path, Path]:
    """Return the folder of rescued replies: the store's, or that of the default store if it is not writable."""
    name = sha256(str(store.path.resolve()).encode()).hexdigest()[:16]
    return store.path, default_store_path() / "rescued" / name
