"""The use of each column of a table in `judgekit init`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judgekit.data.fields import DECLARED
from judgekit.data.forms.delimited import TREC
from judgekit.data.forms.lists import DICT
from judgekit.data.recognise import DECLARED_KINDS, Recognised
from judgekit.data.sources import opened
from judgekit.data.tables import RATED, RATERS


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
    for key, known in names.items():
        column = next((name for name in known if name in fields), None)
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
