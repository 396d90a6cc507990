"""What becomes of each column of a file that `judgekit init` takes, and what those would add that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Columns:
    """What becomes of the columns of a file.

    Attributes:
        taken: what each column that is used becomes.
        left: the others.
        lacks: what columns would add that are not there, by their names.
    """

    taken: Mapping[str, str]
    left: tuple[str, ...]
    lacks: Mapping[str, str]


def columns_of(source: str, found: Recognised, kind: str) -> Columns:
    """Return what becomes of the columns of a file that is taken for a kind."""
    if found.form is TREC:
        places = (1, 3, 5) if kind == "run" else (1, 3, 4)
        keys = ("query", "doc", DECLARED[kind].number)
        return Columns({f"column {place}": key for place, key in zip(places, keys, strict=True)}, (), {})
    if found.form is None or found.flat is None or not found.fields:
        return Columns({}, (), {})
    if found.form is DICT:
        return Columns({"{query: {doc: number}}": "queries, docs and numbers"}, (), {})
    if found.nested:
        taken = _entries(found.form, Source(None, found.flat.name, ENTRY, "entry"), found.told)
        return Columns(taken, tuple(name for name in found.told if name not in taken), {})
    declared = DECLARED_KINDS[kind]
    names = {**declared.names, **{key: (name,) for key, name in found.named.items()}}
    origin, fields = Source(None, found.form.name, names, declared.one), found.fields
    if kind in DECLARED and kind != "answer":
        origin, rows = opened(source, kind)
        first = next(rows, None)
        fields = tuple(map(str, first.fields)) if first is not None else fields
    taken = {}
    for key in names:
        column = next((name for name in origin.names.get(key, ()) if name in fields), None)
        if column is not None:
            taken.setdefault(column, key)
    if kind == "answer":
        taken |= {name: "rating" for name in fields if name in RATED and name not in taken}
    if kind == "ratings" or "rating" in taken.values():
        taken |= dict.fromkeys([name for name in RATERS if name in fields][:1], "cluster")
    lacks = {names[key][0]: what for key, what in declared.adds.items() if key not in taken.values()}
    # No column of a query or doc holds a list or an object.
    left = (name for name in fields if name not in taken and not isinstance(found.told.get(name), list | dict))
    return Columns(taken, tuple(left), lacks)


def _entries(form: DataForm, source: Source, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return what each field of a record of a nested form becomes: what of the entry changes where it is empty."""
    whole, taken = entry_of(form, source, DataRecord(1, fields)), {}
    for name, value in fields.items():
        empty = type(value)() if isinstance(value, str | list | dict) else None
        try:
            without = entry_of(form, source, DataRecord(1, {**fields, name: empty}))
        except DataError:  # no record of the form without its lists
            without = {key: part for key, part in whole.items() if key not in ("ctxs", "gold", "rows")}
        changed = [key for key, value in whole.items() if without.get(key) != value]
        if changed:
            taken[str(name)] = " and ".join(dict.fromkeys(_BECOMES.get(key, key) for key in changed))
    return taken
