"""Forgetting what the store holds: of one question, older than a time, or of one model.

A store knows no queries, only requests. A question is looked for in the texts of their messages, where it must stand by
itself and not inside of a longer word; what merely quotes it is found as well, which costs a reply and hides nothing.
Requests that wait for a batch file hold questions too. What lies in a ``damaged-…`` folder is not looked into.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from judgekit.errors import UsageError
from judgekit.store.records import Record, member
from judgekit.store.replies import Store
from judgekit.wire.shapes import SHOWN

__all__ = ["Found", "find", "forget"]


@dataclass
class Found:
    """What would be forgotten.

    Attributes:
        replies: the identities of replies.
        waiting: the identities of requests that wait for a batch file.
        parts: how many of both, by (endpoint identity, model asked for).
        damaged: rows that cannot be read, so that nobody knows whether they belong to it.
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
        for key, text in store.texts(waiting=waiting):
            try:
                record = Record.parse(text)
            except ValueError:
                found.damaged += 1
                continue
            asked = member(record.body, "model")
            if before is not None and record.time >= before:
                continue
            if model is not None and model not in (asked, member(record.reply or "", "model")):
                continue
            if pattern is not None and not any(map(pattern.search, _shown(record.body))):
                continue
            keys.append(key)
            found.parts[record.endpoint, str(asked or "")] += 1
    return found


def forget(store: Store, found: Found) -> None:
    """Delete what was found, and write the file anew, so that no trace of it is left in free pages.

    Raises:
        StoreError: the store cannot be written to.
    """
    store.forget(found.replies)
    store.forget(found.waiting, waiting=True)
    store.compact()


def _shown(body: str) -> Iterator[str]:
    """Yield what a request shows, in whichever API."""
    return (text for name in SHOWN.values() for text in _texts(member(body, name)))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts inside of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
