"""What ``judgekit cache`` does: look into the store, explain it, check it, forget what it holds, and move it.

The exchange format is JSON lines, one `Record` a line, so that a store can be read with any tool, merged and archived.

A store knows no queries, only requests. A question that is to be forgotten is looked for in the texts of their
messages, where it must stand by itself and not inside of a longer word; what merely quotes it is found as well, which
costs a reply and hides nothing. Requests that wait for a batch file hold questions too. What lies in a ``damaged-…``
folder is not looked into.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson
from rapidfuzz.distance import Prefix

from judgekit.data.streams import lines, open_atomic
from judgekit.errors import DataError, UsageError
from judgekit.store.records import Record, member
from judgekit.store.replies import Store
from judgekit.wire.jsontext import canonical, parse_json
from judgekit.wire.responses import unusable
from judgekit.wire.shapes import SHOWN

__all__ = [
    "Difference",
    "Explanation",
    "Found",
    "Stats",
    "Verification",
    "explain",
    "export_store",
    "find",
    "forget",
    "holds",
    "import_store",
    "records_of",
    "stats",
    "verify",
]

_BATCH: Final = 500
_SAMPLE: Final = 20_000
_WIDTH: Final = 80
"""Characters that are shown of a value in which two requests differ."""


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
        damaged: rows that are not whole records; they are asked for again when they are needed.
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


def records_of(store: Store, most: int | None = None, *, waiting: bool = False) -> Iterator[tuple[str, Record | None]]:
    """Yield (key, record) of all replies (or requests that wait for one), or of the first; None for what is damaged."""
    for key, text in islice(store.texts(waiting=waiting), most):
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
        repair: delete what is damaged, so that it is asked for again, and rebuild the file if its structure is.
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


@dataclass(frozen=True)
class Difference:
    """Where a stored request differs from one that was asked for: a field's path, and its values (None: not there)."""

    path: str
    asked: str | None
    stored: str | None


@dataclass(frozen=True)
class Explanation:
    """What the store knows about a request.

    Attributes:
        record: the stored record, or None.
        nearest: without a record: the most similar stored one with the same messages or, failing that, another one.
        differences: how the nearest differs, so that it shows why the request is a new one.
    """

    record: Record | None
    nearest: Record | None = None
    differences: list[Difference] = field(default_factory=list)


def explain(store: Store, request: str) -> Explanation:
    """Explain why a request is, or is not, answered from the store.

    Args:
        store: the store.
        request: an identity or its beginning, or the JSON body of a chat completion.

    Raises:
        UsageError: it is neither, or the beginning of several identities.
    """
    text = request.strip()
    if re.fullmatch(r"[0-9a-f]{4,64}", text):
        found = list(islice(store.texts(text), 2))
        if len(found) > 1:
            raise UsageError(f"several stored requests begin with {text}: give more of it")
        if not found:
            raise UsageError(f"no stored request begins with {text}")
        try:
            return Explanation(Record.parse(found[0][1]))
        except ValueError as problem:
            raise UsageError(f"what is stored of {found[0][0]} is damaged: {problem}") from None
    try:
        body = orjson.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UsageError("give the identity of a request (at least four hexadecimal digits) or its JSON body")
    return _compare(store, body)


def _compare(store: Store, body: dict[str, Any]) -> Explanation:
    wanted = canonical(body).decode()
    best: tuple[float, Record] | None = None
    for _, record in records_of(store):
        if record is None:
            continue
        if record.body == wanted:
            return Explanation(record)
        likeness = _likeness(body, orjson.loads(record.body))
        if best is None or likeness > best[0]:
            best = (likeness, record)
    if best is None:
        return Explanation(None)
    return Explanation(None, best[1], _differences(body, orjson.loads(best[1].body)))


def _likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Count the fields that are the same; the same messages count more than all else."""
    same = sum(bool(key in other and other[key] == value) for key, value in one.items() if key not in SHOWN.values())
    first, second = _asked_text(one), _asked_text(other)
    if first == second:
        return 1000.0 + same
    length = 2 * Prefix.similarity(first, second) / max(1, len(first) + len(second))
    return 10 * length + same


def _asked_text(body: dict[str, Any]) -> str:
    return orjson.dumps([body.get(name) for name in SHOWN.values()]).decode()


def _differences(asked: Any, stored: Any, path: str = "") -> list[Difference]:
    if isinstance(asked, dict) and isinstance(stored, dict):
        names = {key: f"{path}.{key}" if path else key for key in sorted({*asked, *stored})}
    elif isinstance(asked, list) and isinstance(stored, list):
        asked, stored = dict(enumerate(asked)), dict(enumerate(stored))
        names = {at: f"{path}[{at}]" for at in sorted({*asked, *stored})}
    elif asked == stored and type(asked) is type(stored):
        return []
    else:
        return [Difference(path, *_side_by_side(asked, stored))]
    return [
        difference
        for key, name in names.items()
        for difference in _differences(asked.get(key, _Absent), stored.get(key, _Absent), name)
    ]


class _Absent:
    pass


def _side_by_side(asked: Any, stored: Any) -> tuple[str | None, str | None]:
    """Return both values as text; of long texts only the surroundings of the first difference."""
    one, other = _written(asked), _written(stored)
    if one is None or other is None or max(len(one), len(other)) <= _WIDTH:
        return one, other
    at = max(0, Prefix.similarity(one, other) - _WIDTH // 3)
    dots = "…" if at else ""
    return dots + one[at : at + _WIDTH], dots + other[at : at + _WIDTH]


def _written(value: Any) -> str | None:
    if value is _Absent:
        return None
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@dataclass
class Found:
    """What would be forgotten.

    Attributes:
        replies: the identities of replies.
        waiting: the identities of requests that wait for a batch file.
        parts: how many of both, by (endpoint identity, model asked for).
        damaged: rows that cannot be read, so that it is unknown whether they belong to it.
    """

    replies: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    parts: Counter[tuple[str, str]] = field(default_factory=Counter)
    damaged: int = 0

    def __bool__(self) -> bool:
        return bool(self.replies or self.waiting)


def find(store: Store, *, query: str | None = None, before: float | None = None, model: str | None = None) -> Found:
    """Return what meets all the conditions that are given.

    Args:
        store: the store.
        query: text of a question as the request's messages hold it (see `judgekit.reading.prompts.neutral`).
        before: seconds since 1970: what was stored earlier.
        model: the model that was asked for, or that a reply names as its own.

    Raises:
        UsageError: no condition is given, or the question is empty.
    """
    if query is None and before is None and model is None:
        raise UsageError("say what to forget: a question, an age or a model")
    if query is not None and not query.strip():
        raise UsageError("the text of the question is empty")
    pattern = None if query is None else re.compile(rf"(?<!\w){re.escape(query.strip())}(?!\w)")
    found = Found()
    for waiting, keys in ((False, found.replies), (True, found.waiting)):
        for key, record in records_of(store, waiting=waiting):
            if record is None:
                found.damaged += 1
                continue
            asked = member(record.body, "model")
            if before is not None and record.time >= before:
                continue
            if model is not None and model not in (asked, member(record.reply or "", "model")):
                continue
            shown = (text for name in SHOWN.values() for text in _texts(member(record.body, name)))
            if pattern is not None and not any(map(pattern.search, shown)):
                continue
            keys.append(key)
            found.parts[record.endpoint, str(asked or "")] += 1
    return found


def forget(store: Store, found: Found) -> None:
    """Delete what was found, and rewrite the file, so that no trace of it is left in free pages.

    Raises:
        StoreError: the store cannot be written to.
    """
    store.forget(found.replies)
    store.forget(found.waiting, waiting=True)
    store.compact()


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts inside of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


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
