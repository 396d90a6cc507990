"""The use of each column of a table in `judgekit init`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from judgekit.data.fields import DECLARED, Source
from judgekit.data.forms.delimited import TREC
from judgekit.data.forms.lists import DICT
from judgekit.data.recognise import DECLARED_KINDS, Recognised
from judgekit.data.records import DataRecord, Fields
from judgekit.data.sources import opened
from judgekit.data.tables import RATED, RATERS
from judgekit.errors import DataError


@dataclass(frozen=True)
class Columns:
    """The use of a file's columns.

    Attributes:
        taken: the use of each used column.
        left: the others.
        lists: others that hold lists and objects.
    """

    taken: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()


def columns_of(source: str, found: Recognised, kind: str) -> Columns:
    """Return the use of a table's columns: for each key, the first existing name."""
    if found.form in (None, TREC, DICT) or found.flat is None or not found.fields:
        return Columns()
    named = {key: (name,) for key, name in found.named.items()}
    names = {**named, **DECLARED_KINDS[kind].names, **named}
    fields = found.fields
    if kind in DECLARED and kind != "answer":  # a TSV of topics has no header, so its columns have numbers
        origin, rows = opened(source, kind)
        names, first = {**origin.names}, next(rows, None)
        fields = fields if first is None else tuple(map(str, first.fields))
    taken: dict[str, str] = {}
    reader = Source(None, found.flat.name, names, kind)
    for key in names:
        column = _column(reader, found.told, key, fields)
        if column is not None:
            taken.setdefault(column, key)
    if kind in ("answer", "ratings") and found.run:
        taken.setdefault(found.run, "run")
    if kind == "answer":
        taken = {**{name: "rating" for name in fields if name in RATED}, **taken}
    if kind == "ratings" or "rating" in taken.values():
        rater = next((name for name in RATERS if name in fields), None)
        if rater is not None:
            taken[rater] = "cluster"
    others = [name for name in fields if name not in taken]
    lists = [name for name in others if isinstance(found.told.get(name), list | dict)]
    return Columns(taken, tuple(name for name in others if name not in lists), tuple(lists))


def _column(source: Source, fields: Fields, key: str, columns: Collection[str]) -> str | None:
    """Return the column that is read for a key, as the reader finds it; the first that exists if this row lacks it."""
    with suppress(DataError):  # which is told where the file is read
        found = source.find(DataRecord(1, fields), key)
        if found is not None:
            return found
    return next((name for name in source.names[key] if name in columns), None)
