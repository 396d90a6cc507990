"""JSON as judgekit writes it, one spelling for each value, and as servers write it, whatever is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from judgekit.errors import DataError

_FEW_LEVELS = 100
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value: keys sorted by code point, no white space, UTF-8, shortest floats."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        if "surrogates" in str(error):
            raise DataError(
                "a text holds half of a surrogate pair (a broken \\ud8xx escape), so it is not text"
            ) from None
        text = _strict(value)  # whole numbers beyond 64 bits
    if b"null" in text:
        _strict(value)  # orjson would write a number that is not finite as null
    return text


def _strict(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_json(text: str | bytes) -> Any:
    """Parse what a server sent: also ``NaN``, halves of surrogate pairs and what is nested without end."""
    try:
        value = orjson.loads(text)
        levels = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
        if levels > _FEW_LEVELS:
            orjson.dumps(value)
    except (orjson.JSONDecodeError, TypeError):
        value = json.loads(_flattened(text), parse_int=_number)
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return json.loads(whole.decode("utf-16-le", "replace"))
    return value


def at(value: Any, *path: str | int) -> Any:
    """Return what stands at a path of names and places in what a server sent, or None where nothing does."""
    try:
        for step in path:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def _number(digits: str) -> float:
    """Return a whole number; one that is longer than Python reads is without end."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _flattened(text: str | bytes) -> str:
    """Return JSON with null in the place of each list and object below the 100th level."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    parts: list[str] = []
    level = done = 0
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in "[{":
            level += 1
            if level == _FEW_LEVELS + 1:
                parts += (text[done : bracket.start()], "null")
        elif bracket[0] in "]}":
            if level == _FEW_LEVELS + 1:
                done = bracket.end()
            level -= 1
    return "".join((*parts, text[done:]))
