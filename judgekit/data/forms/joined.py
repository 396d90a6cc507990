"""Cells in which a tool joined texts with a mark: split if the file confirms it, otherwise the user is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from judgekit.data.fields import Source
from judgekit.data.records import DataRecord
from judgekit.errors import UsageError
from judgekit.registry import DataForm


def split_cells(
    form: DataForm, source: Source, records: Iterable[DataRecord], asked: object = None
) -> Iterator[DataRecord]:
    """Yield records with joined cells as lists; ``asked`` is the user's ``yes`` or ``no``, if given."""
    if asked not in (None, "yes", "no"):
        raise UsageError(f"format '{form.name}(split={asked})': expected split=yes or split=no")
    rows = list(records)
    parts = {name: [_parts(form, row.fields.get(name)) for row in rows] for name in form.lists}
    joined = [name for name, cells in parts.items() if any(len(texts) > 1 for texts in cells)]
    if asked is None:
        for name in sorted(joined):
            _confirm(form, source, rows, parts, name)
    for number, row in enumerate(rows):
        lists = {name: parts[name][number] for name in joined if parts[name][number]}
        if asked == "no":
            lists = {name: [row.fields[name]] for name in lists}
        yield row.of({**row.fields, **lists}, row.inside)


def _parts(form: DataForm, cell: object) -> list[str]:
    """Return the texts that a cell may hold."""
    return cell.split(form.mark) if isinstance(cell, str) and cell else []


def _confirm(
    form: DataForm, source: Source, rows: list[DataRecord], parts: dict[str, list[list[str]]], name: str
) -> None:
    """Refuse to split a column whose texts may hold the mark themselves, which tables of Markdown do."""
    usual, times = Counter(len(texts) for texts in parts[name] if texts).most_common(1)[0]
    # A text that occurs alone elsewhere confirms the mark.
    seen = Counter(text for cells in parts.values() for texts in cells for text in {*texts})
    for row, texts in zip(rows, parts[name], strict=True):
        others = [value for column, value in row.fields.items() if column not in form.lists]
        why = ""
        if any(not text or text != text.strip() for text in texts):
            why = "a part begins or ends with white space, or is empty"
        elif texts and any(form.mark in value for value in others if isinstance(value, str)):
            why = "other texts of this record hold it as well"
        elif (len(texts) != usual or times < 2) and not all(seen[text] > 1 for text in texts):
            why = f"it has {len(texts)} parts here, and nothing confirms that number"
            if times > 1:
                why = f"it has {len(texts)} parts here, and {usual} in most records"
        if why:
            place = source.path or "FILE"
            raise source.error(
                row,
                f"{form.name} writes {form.mark!r} between the texts of {name!r}, but {why}: write"
                f" {form.name}(split=yes):{place} if each part is a text of its own, or {form.name}(split=no):{place}"
                " if the cell is one text",
            )
