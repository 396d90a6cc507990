"""Verdicts in JSON objects, whole or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from judgekit.llm.forms import Form

__all__ = ["Found", "find_objects"]

_MAX_OBJECTS: Final = 50
"""JSON objects are looked for behind at most so many of the last opening braces."""
_BROKEN: Final = re.compile(r"(?<![\w\\])\{\s{0,99}(?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\w{1,60})\s{0,99}:")
_WEAK: Final = re.compile(r"answer|result|correct", re.IGNORECASE)
"""Keys that may as well hold the answer to the question as the verdict on the passage."""
_LAST_WORD: Final = re.compile(r"(?:final|overall)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON object in a text: ``text[start:end]``.

    Attributes:
        start, end: where the object stands.
        key: the key of its verdict, case-folded; "" if it has none.
        place: where its verdict begins.
        value: its verdict, None if it has none, or an impossible one.
    """

    start: int
    end: int
    key: str
    place: int
    value: int | None


def find_objects(text: str, form: Form) -> Iterator[Found]:
    """Yield the JSON objects of a text in order: the outermost ones with a verdict's key, and those without.

    Where one is broken, only what stands behind a verdict's key is read, and everything up to the last closing brace
    belongs to it, so that nothing inside its strings is taken for a statement.
    """
    decoder = json.JSONDecoder()
    done = 0
    braces = [i for i, c in enumerate(text) if c == "{"] if "{" in text else []
    for start in braces[-_MAX_OBJECTS:]:
        if start < done:
            continue
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        done = end
        yield _whole(text, form, start, end, found)
    if braces:
        broken = _BROKEN.search(text, max(done, braces[-_MAX_OBJECTS:][0]))
        if broken:
            yield _read_broken(text, form, broken.start())


def _whole(text: str, form: Form, start: int, end: int, found: Mapping[str, Any]) -> Found:
    for keys in form.keys:
        level: list[Any] = [found]
        while level:
            named = [(o, [k for k in o if keys.fullmatch(k)]) for o in level if isinstance(o, dict)]
            stated = [_ruling(o, names, form) for o, names in named if names]
            if stated:
                key, value = stated[-1]
                places = list(re.finditer(rf'"{re.escape(key)}"\s*:\s*', text[start:end]))
                place = start + places[-1].end() if places else start
                return Found(start, end, key.casefold(), place, value if len({v for _, v in stated}) == 1 else None)
            level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
            level = [inner for inner in level if isinstance(inner, (dict, list))]
    return Found(start, end, "", start, None)


def _ruling(found: Mapping[str, Any], keys: list[str], form: Form) -> tuple[str, int | None]:
    """Return the key that holds the verdict and the verdict: None where several keys disagree."""
    keys = [k for k in keys if not _WEAK.fullmatch(k)] or keys
    keys = [k for k in keys if _LAST_WORD.match(k)] or keys
    values = {form.whole(found[k]) for k in keys}
    return keys[-1], values.pop() if len(values) == 1 else None


def _read_broken(text: str, form: Form, start: int) -> Found:
    end = text.rfind("}", start) + 1 or len(text)
    # Keys must be quoted as the object quotes: an unquoted one may stand inside of a string.
    quote = next((q for q in "\"'" if q in text[start:end]), "")
    for keys in form.keys:
        named = rf"(?<![\w\\]){quote}(?P<key>{keys.pattern}){quote}\s{{0,9}}:\s{{0,9}}[\"']?"
        matches = list(re.finditer(named, text[start:end], re.IGNORECASE))
        if matches:
            place = start + matches[-1].end()
            read = form.value.match(text, place, end)
            return Found(start, end, matches[-1]["key"].casefold(), place, form.read(read) if read else None)
    return Found(start, end, "", start, None)
