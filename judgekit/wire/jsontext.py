"""JSON as judgekit writes it, with one spelling per value, and as servers write it, with all their mistakes."""

from __future__ import annotations

import json
from typing import Any

import orjson

from judgekit.errors import DataError

_FEW_LEVELS = 100
_TOO_DEEP = "it is nested too deeply"


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


def canonical_text(text: str) -> bytes:
    """Return the canonical JSON of a text without its quotes, as part of a longer one."""
    try:
        return orjson.dumps(text)[1:-1]
    except TypeError:
        return canonical(text)[1:-1]  # says what is wrong with it


def _strict(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def parse_json(text: str | bytes) -> Any:
    """Parse a server's JSON, including ``NaN`` and halves of surrogate pairs, but with limited nesting."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # Python's own parser goes deeper from 3.13 on, to values that cannot be printed or sent.
        if "depth limit" in str(error):
            raise ValueError(_TOO_DEEP) from None
        return _parsed_slowly(text)
    levels = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if levels > _FEW_LEVELS:
        try:
            orjson.dumps(value)
        except TypeError:
            raise ValueError(_TOO_DEEP) from None
    return value


def _parsed_slowly(text: str | bytes) -> Any:
    """Parse what orjson refuses; halves of surrogate pairs become a replacement sign."""
    try:
        value = json.loads(text, parse_int=_number)
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return json.loads(whole.decode("utf-16-le", "replace"))


def at(value: Any, *path: str | int) -> Any:
    """Return the value at a path of names and positions in a server's JSON, or None."""
    try:
        for step in path:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def _number(digits: str) -> float:
    """Return a whole number; one with too many digits for Python is infinite."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)
