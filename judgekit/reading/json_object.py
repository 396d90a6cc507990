"""A reply that is one JSON object."""

from __future__ import annotations

import json
from typing import Any


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the entries of a JSON object by case-folded key; None for anything else, and if a key is repeated."""
    try:
        entries = json.loads(text, object_pairs_hook=_entries, parse_float=_exact)
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None


def names_and_texts(entries: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return all keys of an object and the texts and whole numbers in it, at whatever depth."""
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


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Two keys that differ in case alone are one key twice: which of them holds the verdict nobody knows.
    entries = {name.casefold(): value for name, value in pairs}
    if len(entries) < len(pairs):
        raise ValueError("a key is repeated")
    return entries


def _exact(number: str) -> int | float:
    """Return a number with a point as a whole one if it is written as such, ``2.0``; no other is a verdict."""
    whole, _, rest = number.partition(".")
    if rest and not rest.strip("0"):
        return int(whole)
    return float(number)
