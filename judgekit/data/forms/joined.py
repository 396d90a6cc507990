"""Cells in which a tool joined a list of texts with a mark: split where the file confirms it, else asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgekit.data.fields import Source
from judgekit.data.records import DataRecord
from judgekit.errors import UsageError
from judgekit.registry import DataForm


def split_cells(
    form: DataForm, source: Source, records: Iterable[DataRecord], asked: object = None
) -> Iterator[DataRecord]:
    """Yield records whose joined cells are lists; ``asked`` is ``yes`` or ``no`` where the user says what they are."""
    if asked not in (None, "yes", "no"):
        raise UsageError(f"format '{form.name}(split={asked})': expected split=yes or split=no")
    rows = list(records)
    columns = [name for name in form.lists if any(_joined(form, row, name) for row in rows)]
    if asked is None:
        for name in columns:
            _confirm(form, source, rows, name)
    for row in rows:
        cells: dict[str, Any] = {}
        for name in columns:
            cell = row.fields.get(name)
            if isinstance(cell, str) and cell:
                cells[name] = [cell] if asked == "no" else cell.split(form.mark)
        yield row.of({**row.fields, **cells}, row.inside)


def _joined(form: DataForm, row: DataRecord, name: str) -> bool:
    cell = row.fields.get(name)
    return isinstance(cell, str) and form.mark in cell


def _confirm(form: DataForm, source: Source, rows: list[DataRecord], name: str) -> None:
    """Refuse to split a column whose texts may hold the mark themselves, which tables of Markdown do."""
    parts = {}
    for number, row in enumerate(rows):
        cell = row.fields.get(name)
        if isinstance(cell, str) and cell:
            parts[number] = cell.split(form.mark)
    usual, times = Counter(map(len, parts.values())).most_common(1)[0]
    # A text that stands alone in a second place ends where the mark says.
    seen = Counter(part for row in rows for texts in _texts(form, row).values() for part in {*texts})
    for number, texts in parts.items():
        why = ""
        if any(not text or text != text.strip() for text in texts):
            why = "a part begins or ends with white space, or is empty"
        elif form.mark in "".join(_others(form, rows[number].fields)):
            why = "other texts of this record hold it as well"
        elif (len(texts) != usual or times < 2) and not all(seen[text] > 1 for text in texts):
            why = f"it has {len(texts)} parts here, and nothing confirms that number"
            if times > 1:
                why = f"it has {len(texts)} parts here, and {usual} in most records"
        if why:
            place = source.path or "FILE"
            raise source.error(
                rows[number],
                f"{form.name} writes {form.mark!r} between the texts of {name!r}, but {why}: write"
                f" {form.name}(split=yes):{place} if each part is a text of its own, or {form.name}(split=no):{place}"
                " if the cell is one text",
            )


def _texts(form: DataForm, row: DataRecord) -> dict[str, list[str]]:
    texts = {}
    for name in form.lists:
        cell = row.fields.get(name)
        if isinstance(cell, str) and cell:
            texts[name] = cell.split(form.mark)
    return texts


def _others(form: DataForm, fields: Mapping[str, Any]) -> list[str]:
    return [value for name, value in fields.items() if name not in form.lists and isinstance(value, str)]
