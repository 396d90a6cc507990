"""The file of nuggets: JSON lines, one per question, which people may edit.

{"query_id": "q1", "nuggets": [{"text": "The bridge was built in 1412.", "importance": "vital"}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from judgekit.answers.sentences import sentences
from judgekit.answers.text import word_count
from judgekit.data.documents import Query
from judgekit.data.fields import QUERY
from judgekit.data.forms import records
from judgekit.data.forms.entry import first_of
from judgekit.data.records import DataRecord
from judgekit.data.streams import write_atomic
from judgekit.errors import DataError
from judgekit.spec import Spec

VITAL: Final = "vital"
OKAY: Final = "okay"
_EXPECTED: Final = 'nuggets, JSON lines such as {"query_id": "q1", "nuggets": [{"text": "…", "importance": "vital"}]}'
# A reference with fewer words is a name or a number, and another reference is another spelling of it.
_SHORT: Final = 6


@dataclass(frozen=True)
class Nugget:
    """A fact that a good answer states; without a vital one, an answer is bad."""

    text: str
    vital: bool = True


Nuggets = Mapping[str, tuple[Nugget, ...]]
"""Nuggets by query id."""


def read_nuggets(path: Path) -> Nuggets:
    """Read a file of nuggets.

    Raises:
        DataError: a line is not as expected; the message names it.
    """
    nuggets: dict[str, tuple[Nugget, ...]] = {}
    for record in records(path, Spec("jsonl"), _EXPECTED)[1]:
        # Other tools, nuggetizer among them, call it qid.
        name = first_of(record.fields, QUERY["id"]) or "query_id"
        query_id, listed = record.fields.get(name), record.fields.get("nuggets")
        if not isinstance(query_id, str):
            raise DataError(f"{name} must be a text, not {query_id!r}; expected {_EXPECTED}", path, record.line)
        if query_id in nuggets:
            raise DataError(f"query {query_id!r} stands on two lines: put its nuggets on one", path, record.line)
        if not isinstance(listed, list):
            raise DataError(f"nuggets must be a list, not {listed!r}; expected {_EXPECTED}", path, record.line)
        nuggets[query_id] = tuple(_nugget(path, record, number, item) for number, item in enumerate(listed, 1))
        # The same fact twice would count twice in every recall.
        texts = [nugget.text.casefold() for nugget in nuggets[query_id]]
        if len(set(texts)) < len(texts):
            raise DataError(f"query {query_id!r} has the same nugget twice", path, record.line)
    if not nuggets:
        raise DataError(f"holds no nuggets; expected {_EXPECTED}", path)
    return nuggets


def _nugget(path: Path, record: DataRecord, number: int, item: Any) -> Nugget:
    def wrong(reason: str) -> DataError:
        return DataError(f"nugget {number}: {reason}", path, record.line)

    if not isinstance(item, dict):
        raise wrong(f"expected an object with text and importance, not {item!r}")
    unknown = sorted(item.keys() - {"text", "importance"})
    if unknown:
        raise wrong(f"{unknown[0]!r} is not a key here (expected: text, importance)")
    text, importance = item.get("text"), item.get("importance", VITAL)
    if not isinstance(text, str) or not text.strip():
        raise wrong(f"text must be a text, not {text!r}")
    if importance not in (VITAL, OKAY):
        raise wrong(f"importance must be vital or okay, not {importance!r}")
    return Nugget(" ".join(text.split()), importance == VITAL)


def write_nuggets(nuggets: Nuggets, path: Path) -> None:
    """Write a file of nuggets, one question per line."""
    lines = []
    for query_id, listed in nuggets.items():
        items = [{"text": nugget.text, "importance": VITAL if nugget.vital else OKAY} for nugget in listed]
        lines.append(json.dumps({"query_id": query_id, "nuggets": items}, ensure_ascii=False))
    write_atomic(path, "".join(f"{line}\n" for line in lines))


def from_references(query: Query) -> tuple[Nugget, ...]:
    """Return the nuggets stated by a query's reference answers; all are vital.

    Each sentence of a long reference is a nugget. Short references are spellings of one answer, and so one nugget.
    """
    spellings = [answer for answer in query.answers if word_count(answer) < _SHORT]
    texts = []
    if spellings:
        others = f" (or {', '.join(spellings[1:])})" if len(spellings) > 1 else ""
        texts.append(f"The answer is {spellings[0].rstrip('.')}{others}.")
    for answer in query.answers:
        if answer not in spellings:
            texts += sentences(answer)
    # References often share sentences; each is only one fact.
    distinct: dict[str, str] = {}
    for text in texts:
        distinct.setdefault(text.casefold(), text)
    return tuple(Nugget(text) for text in distinct.values())
