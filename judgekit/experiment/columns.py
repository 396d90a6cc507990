"""What becomes of each column of a file that `judgekit init` takes, and what those would add that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from judgekit.data.fields import DECLARED, Source
from judgekit.data.forms import ENTRY, entry_of
from judgekit.data.forms.delimited import TREC
from judgekit.data.forms.lists import DICT
from judgekit.data.recognise import DECLARED_KINDS, Recognised
from judgekit.data.records import DataRecord
from judgekit.data.sources import opened
from judgekit.data.tables import RATED, RATERS
from judgekit.errors import DataError
from judgekit.registry import DataForm

_TREC: Final = {
    "run": {"column 1": "query", "column 3": "doc", "column 5": "score"},
    "qrels": {"column 1": "query", "column 3": "doc", "column 4": "relevance"},
}
_BECOMES: Final = {
    "query_id": "id",
    "question": "question",
    "text": "question",
    "messages": "conversation",
    "answers": "reference answers",
    "answer": "answers of your application",
    "ctxs": "passages in their order",
    "sources": "passages",
    "gold": "judgments",
    "rows": "queries, docs and numbers",
}
"""What a field of the entry that a nested form makes is called."""
_LISTS: Final = ("ctxs", "gold", "rows")


@dataclass(frozen=True)
class Columns:
    """What becomes of the columns of a file.

    Attributes:
        taken: what each column that is used becomes.
        left: the others.
        lacks: what columns would add that are not there, by their names.
    """

    taken: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)


def columns_of(source: str, found: Recognised, kind: str) -> Columns:
    """Return what becomes of the columns of a file that is taken for a kind."""
    if found.form is TREC:
        return Columns(_TREC[kind])
    if found.form is None or found.flat is None or not found.fields:
        return Columns()
    if found.form is DICT:
        return Columns({"{query: {doc: number}}": "queries, docs and numbers"})
    if not found.nested:
        return _of_table(source, found, kind)
    taken = _of_record(found.form, Source(None, found.flat.name, ENTRY, "entry"), found.told)
    return Columns(taken, tuple(name for name in found.told if name not in taken))


def _of_table(source: str, found: Recognised, kind: str) -> Columns:
    """Return what becomes of the columns of a table: of each key the first of its names that is there."""
    declared = DECLARED_KINDS[kind]
    names = {**declared.names, **{key: (name,) for key, name in found.named.items()}}
    fields = found.fields
    if kind in DECLARED and kind != "answer":  # a TSV of topics has no header: its columns go by their number
        origin, rows = opened(source, kind)
        names, first = {**origin.names}, next(rows, None)
        fields = fields if first is None else tuple(map(str, first.fields))
    taken: dict[str, str] = {}
    for key, known in names.items():
        column = next((name for name in known if name in fields), None)
        if column is not None:
            taken.setdefault(column, key)
    if kind == "answer":
        taken = {**{name: "rating" for name in fields if name in RATED}, **taken}
    if kind == "ratings" or "rating" in taken.values():
        rater = next((name for name in RATERS if name in fields), None)
        if rater is not None:
            taken[rater] = "cluster"
    left = []
    for name in fields:  # no column of a query or doc holds a list or an object
        if name not in taken and not isinstance(found.told.get(name), list | dict):
            left.append(name)
    lacks = {}
    for key, what in declared.adds.items():
        if key not in taken.values():
            lacks[names[key][0]] = what
    return Columns(taken, tuple(left), lacks)


def _of_record(form: DataForm, source: Source, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return what each field of a record of a nested form becomes: what of the entry changes where it is empty."""
    whole = entry_of(form, source, DataRecord(1, fields))
    taken = {}
    for name, value in fields.items():
        empty = type(value)() if isinstance(value, str | list | dict) else None
        try:
            without = entry_of(form, source, DataRecord(1, {**fields, name: empty}))
        except DataError:  # no record of the form without its lists
            without = {key: part for key, part in whole.items() if key not in _LISTS}
        changed = [_BECOMES.get(key, key) for key, part in whole.items() if without.get(key) != part]
        if changed:
            taken[str(name)] = " and ".join(dict.fromkeys(changed))
    return taken
