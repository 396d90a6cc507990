"""Why a request is, or is not, answered from the store: what ``judgekit cache explain`` does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import orjson

from judgekit.errors import UsageError
from judgekit.store.maintenance import records_of
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.jsontext import canonical
from judgekit.wire.shapes import SHOWN

__all__ = ["Difference", "Explanation", "explain"]

_WIDTH: Final = 80


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
    first, second = _text(one), _text(other)
    if first == second:
        return 1000.0 + same
    length = 2 * len(_common(first, second)) / max(1, len(first) + len(second))
    return 10 * length + same


def _text(body: dict[str, Any]) -> str:
    return orjson.dumps([body.get(name) for name in SHOWN.values()]).decode()


def _common(first: str, second: str) -> str:
    end = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    return first[:end]


def _differences(asked: Any, stored: Any, path: str = "") -> list[Difference]:
    if isinstance(asked, dict) and isinstance(stored, dict):
        names = {key: f"{path}.{key}" if path else key for key in sorted({*asked, *stored})}
    elif isinstance(asked, list) and isinstance(stored, list):
        asked, stored = dict(enumerate(asked)), dict(enumerate(stored))
        names = {at: f"{path}[{at}]" for at in sorted({*asked, *stored})}
    elif asked == stored and type(asked) is type(stored):
        return []
    else:
        return [Difference(path, *_shown(asked, stored))]
    return [
        difference
        for key, name in names.items()
        for difference in _differences(asked.get(key, _Absent), stored.get(key, _Absent), name)
    ]


class _Absent:
    pass


def _shown(asked: Any, stored: Any) -> tuple[str | None, str | None]:
    """Return both values as text; of long texts only the surroundings of the first difference."""
    one, other = _written(asked), _written(stored)
    if one is None or other is None or max(len(one), len(other)) <= _WIDTH:
        return one, other
    at = max(0, len(_common(one, other)) - _WIDTH // 3)
    dots = "…" if at else ""
    return dots + one[at : at + _WIDTH], dots + other[at : at + _WIDTH]


def _written(value: Any) -> str | None:
    if value is _Absent:
        return None
    return value if isinstance(value, str) else orjson.dumps(value).decode()
