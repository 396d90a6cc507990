"""Looking into the store and moving it: what ``judgekit cache stats | verify | export | import`` do.

The exchange format is JSON lines, one `Record` a line, so that a store can be read with any tool, merged and archived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from judgekit.data.streams import lines, open_atomic
from judgekit.errors import DataError, UsageError
from judgekit.store.records import Record, member
from judgekit.store.replies import Store
from judgekit.wire.jsontext import parse_json
from judgekit.wire.responses import unusable

__all__ = [
    "Stats",
    "Verification",
    "export_store",
    "holds",
    "import_store",
    "records_of",
    "stats",
    "verify",
]

_BATCH: Final = 500
_SAMPLE: Final = 20_000


@dataclass
class Part:
    """What the store holds of one endpoint and model; ``answered`` counts replies by the model that they name."""

    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    negotiated: int = 0
    answered: Counter[str] = field(default_factory=Counter)


@dataclass
class Stats:
    """What a store holds.

    Attributes:
        path: its folder.
        size: bytes of its files.
        replies: how many.
        damaged: rows that are no whole records; they are asked for again when they are needed.
        waiting: requests that were exported to a batch file and have no reply yet.
        parts: by (endpoint identity, model).
        oldest, newest: when the first and the last reply were stored, seconds since 1970; None if there are none.
        aside: folders with damaged files that were moved aside.
    """

    path: Path
    size: int
    waiting: int
    replies: int = 0
    damaged: int = 0
    parts: dict[tuple[str, str], Part] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None
    aside: list[Path] = field(default_factory=list)


def stats(store: Store) -> Stats:
    """Return what a store holds."""
    files = [p for p in store.path.iterdir() if p.is_file()]
    found = Stats(store.path, sum(p.stat().st_size for p in files), store.count(waiting=True))
    found.aside = sorted(p for p in store.path.glob("damaged-*") if p.is_dir())
    for _, record in records_of(store):
        if record is None:
            found.damaged += 1
            continue
        found.replies += 1
        model = str(member(record.body, "model") or "")
        part = found.parts.setdefault((record.endpoint, model), Part())
        part.replies += 1
        part.answered[str(member(record.reply or "", "model") or "")] += 1
        part.prompt_tokens += record.usage[0] if record.usage else 0
        part.completion_tokens += record.usage[1] if record.usage else 0
        part.negotiated += record.sent is not None
        found.oldest = min(record.time, found.oldest or record.time)
        found.newest = max(record.time, found.newest or record.time)
    return found


def holds(store: Store, endpoint: str, model: str) -> bool:
    """Whether there is a reply of a model at an endpoint (its identity), as far as a large sample shows.

    Keys are hashes, so that the first ones are a fair sample of all.
    """
    sample = (record for _, record in records_of(store, _SAMPLE) if record is not None)
    return any(r.endpoint == endpoint and member(r.body, "model") == model for r in sample)


def records_of(store: Store, most: int | None = None) -> Iterator[tuple[str, Record | None]]:
    """Yield (key, record) of all replies, or of the first; None for what is damaged."""
    for key, text in islice(store.texts(), most):
        record = None
        with suppress(ValueError):
            record = Record.parse(text)
        yield key, record if record is not None and record.key == key else None


@dataclass(frozen=True)
class Verification:
    """Whether a store is whole.

    Attributes:
        structure: ``ok``, or what SQLite said about its file.
        checked: replies that were looked at.
        damaged: (key, what is wrong) of those that are not whole.
    """

    structure: str
    checked: int
    damaged: list[tuple[str, str]]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.structure == "ok" and not self.damaged


def verify(store: Store, *, repair: bool = False) -> Verification:
    """Check every record: its identity, its checksum, and that its reply is a chat completion.

    Args:
        store: the store.
        repair: delete what is damaged, so that it is asked for again, and make the file anew if its structure is.
    """
    structure = store.check()
    if repair and structure != "ok":
        store.recover(structure)
    checked, damaged = 0, []
    for key, text in store.texts():
        checked += 1
        try:
            record = Record.parse(text)
            if record.key != key:
                raise ValueError("it is stored under another key")
            problem = unusable(parse_json(record.reply or ""))
            if problem is not None:
                raise ValueError(f"its reply is not a chat completion: {problem}")
        except ValueError as problem:
            damaged.append((key, str(problem)))
    if repair and damaged:
        store.forget([key for key, _ in damaged])
    shown = [(key.encode("utf-8", "backslashreplace").decode(), problem) for key, problem in damaged]
    return Verification(structure, checked, shown)


def export_store(store: Store, path: str | Path) -> int:
    """Write all whole replies as JSON lines (``.gz`` is compressed), whole or absent; return how many.

    Raises:
        DataError: the file cannot be written.
        UsageError: it lies in the store's own folder, whose files it could replace.
    """
    if Path(path).resolve().parent == store.path.resolve():
        raise UsageError(f"{path}: lies in the folder of the store itself: choose another one")
    count = 0
    with open_atomic(path) as stream:
        for _, record in records_of(store):
            if record is not None:
                stream.write(record.text().encode() + b"\n")
                count += 1
    return count


def import_store(store: Store, path: str | Path) -> tuple[int, int]:
    """Add replies from JSON lines; what is there already stays. Nothing is added if a line is bad.

    Returns:
        How many were added, and how many were there already.

    Raises:
        DataError: a line is not a record, or a damaged one.
        StoreError: the store cannot be written to.
    """
    path = Path(path)
    for _ in _read(path):
        pass
    added = there = 0
    source = _read(path)
    while part := list(islice(source, _BATCH)):
        kept = len(store.put_many(part))
        there += kept
        added += len(part) - kept
    return added, there


def _read(path: Path) -> Iterator[Record]:
    for line in lines(path, "replies exported from a store"):
        if not line.text.strip():
            continue
        try:
            record = Record.parse(line.text)
        except ValueError as problem:
            raise DataError(f"{problem}", path, line.number) from None
        if record.reply is None:
            raise DataError("it has no reply", path, line.number)
        yield record
