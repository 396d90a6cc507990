"""The work of ``judgekit cache``: show, check, forget and move stored replies.

The exchange format is JSON lines, one `Record` a line, so that a store can be read with any tool, merged and archived.

A store knows no queries, only requests. A question to forget is looked for in the texts of their messages, as whole
words; texts that merely quote it are found, too, which costs a reply and hides nothing. Requests waiting for a batch
file hold questions, too. Folders named ``damaged-…`` are not searched.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from judgekit.data.streams import lines, open_atomic
from judgekit.errors import DataError, UsageError
from judgekit.store.records import Record, member
from judgekit.store.replies import Store
from judgekit.wire.jsontext import parse_json
from judgekit.wire.quirks import unusable
from judgekit.wire.types import ASKED, SHOWN

_BATCH: Final = 500
_SAMPLE: Final = 20_000


@dataclass
class Part:
    """The stored replies of one endpoint and model.

    Attributes:
        waiting: requests that wait for a reply.
        prompt_tokens: tokens of the prompts, if counted by the server.
        completion_tokens: generated tokens, if counted.
        uncounted: number of replies without a count.
        answered: numbers of replies by the model that they name.
    """

    waiting: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0
    answered: Counter[str] = field(default_factory=Counter)

    @property
    def replies(self) -> int:
        """The number of replies."""
        return self.answered.total()

    @property
    def tokens(self) -> str:
        """The known tokens, in words."""
        if self.uncounted == self.replies:
            return "tokens unknown: the server counted none"
        counted = f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        return counted if not self.uncounted else f"{counted}, those of {self.uncounted:,} replies unknown"


@dataclass
class Found:
    """The contents of a store, or those that meet some conditions.

    Attributes:
        replies: the identities of replies.
        waiting: the identities of requests that were exported to a batch file and have no reply yet.
        parts: by (endpoint identity, model asked for).
        damaged: number of damaged rows; they are requested again when needed.
        times: when the replies were stored, seconds since 1970.
        aside: folders with damaged files that were moved aside.
    """

    replies: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    parts: defaultdict[tuple[str, str], Part] = field(default_factory=lambda: defaultdict(Part))
    damaged: int = 0
    times: list[float] = field(default_factory=list)
    aside: list[Path] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a record."""
        part = self.parts[record.endpoint, _model(record.body)]
        if record.reply is None:
            self.waiting.append(record.key)
            part.waiting += 1
            return
        self.replies.append(record.key)
        self.times.append(record.time)
        part.answered[_model(record.reply)] += 1
        # Two zeros beside a reply are no count.
        if record.usage is None or not any(record.usage):
            part.uncounted += 1
            return
        prompt, completion = record.usage
        part.prompt_tokens += prompt
        part.completion_tokens += completion


def find(store: Store, *, query: str | None = None, before: float | None = None, model: str | None = None) -> Found:
    """Return the records that meet all given conditions."""
    if query is not None and not query.strip():
        raise UsageError("the text of the question is empty")
    question = None if query is None else re.compile(rf"(?<!\w){re.escape(query.strip())}(?!\w)")
    result = Found(aside=sorted(filter(Path.is_dir, store.path.glob("damaged-*"))))
    for _, record in chain(records_of(store), records_of(store, waiting=True)):
        if record is None:
            result.damaged += 1
            continue
        if before is not None and record.time >= before:
            continue
        if model is not None and model not in (_model(record.body), _model(record.reply or "")):
            continue
        if question is None or any(map(question.search, _shown_texts(record))):
            result.add(record)
    return result


def _model(text: str) -> str:
    """Return the model that a request or a reply names."""
    return str(member(text, "model") or "")


def _shown_texts(record: Record) -> Iterator[str]:
    """Yield all texts that a request shows the model."""
    for name in (*ASKED, *SHOWN.values()):
        yield from _texts(member(record.body, name))


def holds(store: Store, endpoint: str, model: str) -> bool:
    """Whether there is a reply of a model at an endpoint (its identity), as far as a large sample shows."""
    # Keys are hashes, so that the first ones are a fair sample of all.
    sample = (record for _, record in records_of(store, _SAMPLE) if record is not None)
    return any(record.endpoint == endpoint and _model(record.body) == model for record in sample)


def records_of(store: Store, most: int | None = None, *, waiting: bool = False) -> Iterator[tuple[str, Record | None]]:
    """Yield (key, record) of all or the first replies (or waiting requests); None for damaged ones."""
    for key, value in islice(store.texts(waiting=waiting), most):
        try:
            yield key, _parsed(key, value)
        except ValueError:
            yield key, None


def _parsed(key: str, value: bytes) -> Record:
    record = Record.parse(value)
    if record.key != key:
        raise ValueError("it is stored under another key")
    return record


@dataclass(frozen=True)
class Verification:
    """Whether a store is whole.

    Attributes:
        structure: ``ok``, or what SQLite said about its file.
        checked: number of checked replies.
        damaged: (key, problem) of damaged ones.
    """

    structure: str
    checked: int
    damaged: list[tuple[str, str]]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.structure == "ok" and not self.damaged


def verify(store: Store, *, repair: bool = False) -> Verification:
    """Check every record: its identity, its checksum, and that its reply is a chat completion."""
    structure = store.check()
    if repair and structure != "ok":
        store.recover(structure)
    checked, damaged = 0, []
    for key, value in store.texts():
        checked += 1
        try:
            _check_reply(_parsed(key, value))
        except ValueError as problem:
            damaged.append((key, str(problem)))
    if repair and damaged:
        store.forget([key for key, _ in damaged])
    shown = [(key.encode("utf-8", "backslashreplace").decode(), problem) for key, problem in damaged]
    return Verification(structure, checked, shown)


def _check_reply(record: Record) -> None:
    problem = unusable(parse_json(record.reply or ""))
    if problem is not None:
        raise ValueError(f"its reply is not a chat completion: {problem}")


def forget(store: Store, found: Found) -> None:
    """Delete the found records, and rewrite the file, so that no trace is left in free pages."""
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


class Exported(NamedTuple):
    """The numbers of written replies and of damaged ones left out."""

    written: int
    damaged: int


def export_store(store: Store, path: str | Path) -> Exported:
    """Write all intact replies as JSON lines (``.gz`` is compressed), completely or not at all.

    Replies that another process stores meanwhile may be missing, but are not counted as damaged.
    """
    if Path(path).resolve().parent == store.path.resolve():
        raise UsageError(f"{path} is inside the folder of the store: choose another folder")
    written = damaged = 0
    with open_atomic(path) as stream:
        for _, record in records_of(store):
            if record is None:
                damaged += 1
            else:
                stream.write(record.text().encode() + b"\n")
                written += 1
    return Exported(written, damaged)


def import_store(store: Store, path: str | Path) -> tuple[int, int]:
    """Add replies from JSON lines; existing ones stay. Nothing is added if a line is bad."""
    # All of it is read first, so that a bad line at the end of a long file leaves the store as it was.
    total = sum(1 for _ in _read(Path(path)))
    already = 0
    records = _read(Path(path))
    while part := list(islice(records, _BATCH)):
        already += len(store.put_many(part))
    return total - already, already


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
