"""Proposes how to read a record that no form knows, by the names and contents of its parts.

A proposal is printed for the user to check, and never used unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from judgekit.data.forms.entry import TEXTS, first_of, listed_in, object_in, passage_of
from judgekit.data.records import Fields

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ASKS: Final = {"question", "query", "prompt", "input", "inputs", "asked"}
_ANSWERS: Final = {
    "answer",
    "answers",
    "output",
    "outputs",
    "response",
    "responses",
    "prediction",
    "pred",
    "completion",
}
_RIGHT: Final = {"expected", "reference", "gold", "golden", "truth", "truths", "target", "ideal", "correct", "example"}
_FOUND: Final = {
    *("context", "contexts", "passage", "passages", "document", "documents", "doc", "docs", "chunk", "chunks"),
    *("retrieved", "retrieval", "sources", "nodes", "evidence", "paragraphs", "snippets"),
}
"""Words in the names of questions, of answers, of what is right (an expected answer is not the application's), and of
lists of passages."""
_DEPTH: Final = 4


def places_in(fields: Fields, outer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each place of a record, ``inputs.question``, with the text or list there."""
    for name, value in fields.items():
        place = f"{outer}{name}"
        # A cell of CSV spells lists and objects as texts.
        inner = object_in(value)
        if inner is not None and place.count(".") < _DEPTH:
            yield from places_in(inner, f"{place}.")
        elif isinstance(value, str | list):
            yield place, listed_in(value) or value


def proposed(fields: Fields) -> list[str]:
    """Return spellings of the form ``rag`` that may read a record, up to the colon.

    There are several if each of several texts may be the application's answer, and none if no question or nothing
    beside it is found.
    """
    rows, found = "", _parts(fields)
    for place, value in places_in(fields):
        if "question" not in found and _are_objects(value):
            rows, found = place, _parts(value[0])
    if "question" not in found or len(found) == 1:
        return []
    chosen = {part: places[0] for part, places in found.items()}
    if rows:
        chosen = {"rows": rows, **chosen}
    said = found.get("answer", [])
    if len(said) == 2 and "reference" not in found:
        return [_spelled({**chosen, "answer": one, "reference": other}) for one, other in (said, reversed(said))]
    return [_spelled({**chosen, "answer": answer}) for answer in said] or [_spelled(chosen)]


def _spelled(parts: Mapping[str, str]) -> str:
    return f"rag({','.join(f'{part}={place}' for part, place in parts.items())})"


def _parts(fields: Fields) -> dict[str, list[str]]:
    """Return the places of what is found, by the options that name them."""
    found: dict[str, list[str]] = {"question": [], "answer": [], "reference": [], "contexts": [], "gold": []}
    for place, value in places_in(fields):
        part, where = _part_at(place, value)
        if part and re.search(r"[,()'\"=:]", where) is None:
            found[part].append(where)
    return {part: places for part, places in found.items() if places}


def _part_at(place: str, value: Any) -> tuple[str, str]:
    """Return what stands at a place, "" if nothing tells, and where the texts stand in it."""
    words = [_words(name) for name in place.split(".")]
    right = any(_RIGHT.intersection(said) for said in words)
    if _are_objects(value):
        named = first_of(value[0], TEXTS)
        if "role" in value[0] and named is not None:  # messages of a conversation
            return _told(words, right=right), f"{place}[].{named}"
        within = texts_in(value[0])
        return ("", place) if within is None else ("gold" if right else "contexts", f"{place}{within}")
    if isinstance(value, str):
        return _told(words, right=right), place
    if not all(isinstance(text, str) for text in value):
        return "", place
    if _FOUND.intersection(words[-1]):
        return "gold" if right else "contexts", place
    return ("reference" if _told(words[-1:], right=right) in ("answer", "reference") else ""), place


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _told(words: Sequence[Sequence[str]], *, right: bool) -> str:
    """Return what a text is by the last word of the innermost name that tells."""
    for said in reversed(words):
        last = next((word for word in reversed(said) if word not in ("text", "content", "value")), "")
        if last in _ASKS:
            return "question"
        if last in _ANSWERS or last in _RIGHT:
            return "reference" if right else "answer"
    return ""


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def texts_in(item: Fields) -> str | None:
    """Return where the items of a list hold the text of a passage: "" in themselves, or ``[].payload``."""
    inner = {f"[].{name}": held for name, held in item.items() if not _told([_words(str(name))], right=False)}
    for within, held in {"": item, **inner}.items():
        with suppress(ValueError):
            if isinstance(held, Mapping) and isinstance(passage_of(held)["text"], str):
                return within
    return None
