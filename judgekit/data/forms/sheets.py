"""``parquet`` and ``xlsx``: tables with typed cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from judgekit.data.records import DataRecord, fields_of_row, row_groups
from judgekit.data.streams import PARQUET as PAR1, ZIP, note_read
from judgekit.errors import DataError, UsageError, install, not_among
from judgekit.registry import DataForm
from judgekit.spec import Value

_LARGE: Final = 2**24
"""Size in bytes. Files that unpack to more than this and to more than `_RATIO` times their size are refused, because
openpyxl keeps all texts."""
_RATIO: Final = 100
"""Sheets of numbers and texts shrink to a fifth or a twentieth, sheets of repeated texts to a fiftieth."""


def _parquet(path: Path) -> Iterator[DataRecord]:
    rows = (fields for batch in row_groups(path) for fields in batch.to_pylist())
    return starmap(DataRecord, enumerate(rows, 1))


@contextmanager
def _workbook(path: Path) -> Iterator[Any]:
    """Open an Excel file."""
    try:
        load_workbook = import_module("openpyxl").load_workbook
    except ImportError:
        reason = f"needs the library openpyxl: {install('excel')}, or save the sheet as CSV (UTF-8)"
        raise UsageError(f"{path}: reading .xlsx {reason}") from None
    note_read(path)
    try:
        _refuse_inflated(path)
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError) as error:
        raise DataError(f"is not a readable .xlsx file: {error}", path) from None
    try:
        yield book
    finally:
        book.close()


def _refuse_inflated(path: Path) -> None:
    """Refuse a file whose declared unpacked size is far larger; Python never unpacks more than declared."""
    with ZipFile(path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > max(_LARGE, _RATIO * path.stat().st_size):
        raise DataError(
            f"unpacks to {unpacked / 1e6:,.0f} MB, more than {_RATIO} times its size, which no table needs: if you"
            " trust it, save the sheet as CSV (UTF-8)",
            path,
        )


def sheets(path: Path) -> list[str]:
    """Return the names of an Excel file's sheets that are not empty."""
    with _workbook(path) as book:
        # New workbooks come with empty sheets, which nobody meant as data.
        return [sheet.title for sheet in book.worksheets if any(map(any, sheet.iter_rows(values_only=True)))]


def _xlsx(path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    """Read the rows of a sheet (by default the first) below a row of names; cells are texts, as in CSV."""
    with _workbook(path) as book:
        name = str(options.get("sheet", book.sheetnames[0]))
        if name not in book.sheetnames:
            raise UsageError(f"{path}: {not_among('sheet', name, book.sheetnames)}")
        rows = enumerate(book[name].iter_rows(values_only=True), 1)
        header: list[str] = []
        for number, row in rows:
            cells = [*map(_cell, row)]
            # Workbooks have empty rows above the names and cleared ones below the data.
            if not any(cells):
                continue
            if not header:
                header = cells
                continue
            fields = fields_of_row(header, cells, path, number)
            yield DataRecord(number, {column: cell for column, cell in fields.items() if column})


def _cell(value: Any) -> str:
    """Return a cell as it is shown: whole numbers without a decimal point, days without midnight."""
    if value is None:
        return ""
    # Excel holds all numbers as floats: an id of 7 is shown as 7 and must not become 7.0.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    return str(value).strip()


PARQUET: Final = DataForm("parquet", _parquet, begins=(PAR1,), marks=lambda _: True)
XLSX: Final = DataForm("xlsx", _xlsx, begins=(ZIP,), marks=lambda _: True, options=("sheet",))
