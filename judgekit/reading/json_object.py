"""A reply that is one JSON object, even in the syntax of Python or JavaScript.

Models write a comma after the last entry, single or typographic quotes, ``True``, or comments. The grammar accepts
these without guessing: a value without quotes is a number or one word, objects must be closed, and repeated keys are
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|#[^\n]*)"
    r"|(?P<mark>[{}\[\],:])"
    r"|\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\\n]|\\.|(?<=\w)'(?=\w))*)'"
    r"|[“”](?P<curly>[^“”\n]*)[“”]"
    r"|(?P<number>-?\d+(?:\.\d+)?(?![\w.]))|(?P<word>[^\W\d]\w*)",
    re.DOTALL,
)
_WORDS: Final[dict[str, object]] = {"true": True, "false": False, "null": None, "none": None}
_LEVELS: Final = 20
_KEYS: Final = ("double", "single", "curly", "word")


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the entries of an object by case-folded key; None for anything else, and if a key is repeated.

    A list of one object is that object, as is the same object twice.
    """
    value = parse_value(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def parse_value(text: str) -> object:
    """Return the value of a whole text, objects by case-folded key; None for anything else, and for ``null``."""
    try:
        return json.loads(text, object_pairs_hook=_entries, parse_float=_exact)
    except _RepeatedError:
        return None
    except (ValueError, RecursionError):
        return _read_loosely(text)


def leaves(entries: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each key whose value is not an object, with its value, at any depth."""
    left = [entries]
    while left:
        for name, value in left.pop().items():
            if isinstance(value, dict):
                left.append(value)
            else:
                yield name, value


def names_and_texts(entries: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return all keys, texts and whole numbers of an object, at any depth."""
    names: list[str] = []
    texts: list[str] = []
    left: list[Any] = [entries]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            names += value
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, (str, int)) and not isinstance(value, bool):
            texts.append(str(value))
    return names, texts


class _RepeatedError(ValueError):
    """An object has a key twice."""


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Keys that differ only in case count as one, since nobody knows which holds the verdict.
    entries = {name.casefold(): value for name, value in pairs}
    if len(entries) < len(pairs):
        raise _RepeatedError("a key is repeated")
    return entries


def _exact(number: str) -> int | float:
    """Return a number with a point as a whole one if it is written as such, ``2.0``; no other is a verdict."""
    whole, _, rest = number.partition(".")
    if rest and not rest.strip("0"):
        return int(whole)
    return float(number)


def _read_loosely(text: str) -> object:
    """Return the value that a whole text is in the wider grammar, or None; an object may be repeated."""
    tokens = _tokens(text)
    try:
        value = _value(next(tokens), tokens, 0)
        for token in tokens:
            if not isinstance(value, dict) or _value(token, tokens, 0) != value:
                return None
    except (ValueError, StopIteration):
        return None
    return value


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token."""
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError("no token")
        place = token.end()
        kind = token.lastgroup or ""
        if kind != "skip":
            yield kind, token[kind]


def _value(token: tuple[str, str], tokens: Iterator[tuple[str, str]], level: int) -> object:
    """Return the value that begins with a token."""
    kind, text = token
    if level > _LEVELS:
        raise ValueError("nested too deeply")
    if token == ("mark", "{"):
        return _members(tokens, level)
    if token == ("mark", "["):
        return _items(tokens, level)
    if kind == "number":
        return _exact(text) if "." in text else int(text)
    if kind == "word":
        return _WORDS.get(text.casefold(), text)
    if kind in _KEYS:
        return _unescaped(text)
    raise ValueError("no value")


def _members(tokens: Iterator[tuple[str, str]], level: int) -> dict[str, Any]:
    """Return an object whose opening brace was read."""
    pairs: list[tuple[str, Any]] = []
    token = next(tokens)
    while token != ("mark", "}"):
        kind, name = token
        if kind not in _KEYS or next(tokens) != ("mark", ":"):
            raise ValueError("no key")
        pairs.append((_unescaped(name), _value(next(tokens), tokens, level + 1)))
        token = next(tokens)
        if token == ("mark", ","):
            token = next(tokens)
        elif token != ("mark", "}"):
            raise ValueError("no comma")
    return _entries(pairs)


def _items(tokens: Iterator[tuple[str, str]], level: int) -> list[Any]:
    """Return a list whose opening bracket was read."""
    items: list[Any] = []
    token = next(tokens)
    while token != ("mark", "]"):
        items.append(_value(token, tokens, level + 1))
        token = next(tokens)
        if token == ("mark", ","):
            token = next(tokens)
        elif token != ("mark", "]"):
            raise ValueError("no comma")
    return items


def _unescaped(text: str) -> str:
    """Return a string without its escapes."""
    try:
        return str(json.loads(f'"{text}"')) if "\\" in text else text
    except ValueError:
        return text.replace("\\'", "'").replace('\\"', '"')
