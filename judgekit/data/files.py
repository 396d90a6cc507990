"""Reading and writing the tables of `judgekit.data.tables`: CSV, JSON and Parquet, a file or a folder of parts.

Whatever is written can be read back unchanged: ids such as ``007``, ``NA`` or ``1e5`` stay strings, floats keep all
their digits, NaN is an empty cell.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.data.outputs import as_cell, of_cell
from judgekit.data.records import HALF, delimiter_of, parquet_file, records
from judgekit.data.streams import given, head, lines, open_atomic, parquet_parts, read_bytes, write_atomic
from judgekit.data.tables import NULLS, SCHEMA_VERSION, Table
from judgekit.errors import DataError, UsageError
from judgekit.spec import form_of

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.labelings import Labeling

__all__ = ["check_target", "read_table", "write_atomic", "write_labels", "write_table"]

_VERSION_KEY: Final = b"judgekit.schema_version"

_GUARDED: Final = re.compile(rb"[,\t\n]'[=+@\t\r'-]")
"""A cell that `as_cell` may have made."""

_ROW_GROUP: Final = 1 << 20
"""Rows that Arrow puts into a row group of Parquet: blocks of so many leave no trace in a file."""


def read_table(table: Table, path: str | Path, format: str = "auto") -> pd.DataFrame:
    """Read a table, checked: its columns first, in order, with their dtypes; further columns behind them.

    Args:
        table: what the file should hold, e.g. ``judgekit.data.tables.SCORES``.
        path: CSV, TSV, JSON lines, a JSON array (plain or packed), a Parquet file or a folder of Parquet parts, or what
            `judgekit.data.leaderboards` reads; ``FORM:FILE`` says which.
        format: ``auto`` decides by content; ``csv(query_id=qid, value=stars)`` names your own columns.

    Raises:
        DataError: the file is missing or is not such a table; text files with line, Parquet with row.
        UsageError: there is no such format.
    """
    import pandas as pd

    from judgekit.data.leaderboards import other_form

    other = other_form(table, path, format)
    if other is not None:
        return table.check(other, path)
    spec, text = form_of(path, format)
    path = given(text)
    mapped = {str(value): key for key, value in spec.params if key not in ("header", "quote")}
    for key in mapped.values():
        if key not in (*table.columns, *table.optional):
            have = ", ".join((*table.columns, *table.optional))
            raise UsageError(f"format '{spec}': the {table.name} table has no column {key!r} (it has: {have})")
    expected = f"a {table.name} table (columns {', '.join(table.columns)})"
    name, rows = records(path, spec, expected)
    if name == "parquet":
        parts = [table.check(_read_part(part, expected).rename(columns=mapped), part) for part in parquet_parts(path)]
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    delimiter = delimiter_of(name, head(path)) if name in ("csv", "tsv") else ""
    if delimiter and not spec.params and (frame := _read_plain(table, path, delimiter, expected)) is not None:
        return frame
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    for record in rows:
        fields = {mapped.get(name, name): cell for name, cell in record.fields.items()}
        if not numbers:
            columns = {c: [] for c in fields}
            table.known(columns, path)
        numbers.append(record.line)
        for column, cell in fields.items():
            if column not in columns:
                raise DataError(f"has a field {column!r} that earlier records lack", path, record.line)
            if isinstance(cell, str) and HALF.search(cell):
                reason = f"column {column!r}: holds half of a surrogate pair, which is not a character"
                raise DataError(reason, path, record.line)
        for column, cells in columns.items():
            cells.append(of_cell(fields.get(column)) if delimiter else fields.get(column))
    if not numbers:
        first = next(lines(path), None)
        if first is None:
            raise DataError(f"is empty; expected {expected}", path)
        columns = {c: [] for c in next(csv.reader([first.text], delimiter=delimiter or ","))}
    known = table.known(columns, path)
    series = {c: pd.Series(cells, dtype="object" if c in known else None) for c, cells in columns.items()}
    return table.check(pd.DataFrame(series), path, numbers)


def _read_plain(table: Table, path: Path, delimiter: str, expected: str) -> pd.DataFrame | None:
    """Read a CSV file without any quotes at full speed; None where the strict reader has to look."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    data = read_bytes(path, expected)
    header = data[: data.find(b"\n") + 1 or None].decode(errors="replace").rstrip("\r\n").split(delimiter)
    if b'"' in data or b"\0" in data or _GUARDED.search(data) or len(set(header)) < len(header):
        return None
    # In Arrow's own memory: its reading thread may let go of the data after this returns, and data of Python's
    # would abort the process if the program ends just then.
    copied = pa.BufferOutputStream()
    copied.write(data.rstrip(b"\r\n") + b"\n")
    kinds = {**table.columns, **table.optional}
    try:
        columns = arrow_csv.read_csv(
            pa.BufferReader(copied.getvalue()),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={c: pa.float64() if kinds.get(c) in ("int", "float") else pa.string() for c in header},
                null_values=list(NULLS),
                strings_can_be_null=False,
            ),
        )
        return table.check(columns.to_pandas(), path)
    except (pa.ArrowException, UnicodeDecodeError, DataError):
        return None


def _read_part(part: Path, expected: str) -> pd.DataFrame:
    """Read a Parquet file that no newer version wrote."""
    with parquet_file(part, expected) as file:
        version = int((file.schema_arrow.metadata or {}).get(_VERSION_KEY, SCHEMA_VERSION))
        if version > SCHEMA_VERSION:
            reason = f"was written by a newer judgekit (schema version {version}; this version reads {SCHEMA_VERSION})"
            raise DataError(reason, part)
        frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    return frame


def check_target(path: str | Path, *, table: bool = False) -> None:
    """Refuse the name of a file to be written, before work is done that would then be lost."""
    path = Path(path)
    if table and path.suffix != ".parquet" and not path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        raise UsageError(f"{path}: the name of a table file must end in .csv, .tsv (plain or .gz) or .parquet")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file to write")


def write_labels(labeling: Labeling, path: str | Path) -> None:
    """Write a labeling's table as Parquet, piece by piece."""
    _write_parquet(labeling.blocks(rows=_ROW_GROUP), path)


def write_table(frame: pd.DataFrame, path: str | Path, table: Table | None = None) -> None:
    """Write a table as CSV, TSV or Parquet, by the name's ending (``.csv.gz`` is compressed); whole or absent.

    Args:
        frame: the rows; the index is not written.
        path: the file to make; folders on the way are created.
        table: what the rows are, if they are to be checked.

    Raises:
        DataError: the rows are not such a table, or the file cannot be written.
        UsageError: the name ends otherwise.
    """
    import pandas as pd

    path = Path(path)
    name = path.name.removesuffix(".gz")
    check_target(path, table=True)
    if table is not None:
        frame = table.check(frame)
    if path.suffix == ".parquet":
        _write_parquet([frame], path)
    else:
        # csv.writer leaves a lone carriage return unquoted, and readers take it for a line end.
        columns = frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]
        frame = frame.assign(**{name: frame[name].map(as_cell, na_action="ignore") for name in columns})
        strings = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
        returns = any(frame[c].astype("str").str.contains("\r", regex=False).any() for c in strings)
        with open_atomic(path) as stream:
            frame.to_csv(
                stream,
                mode="wb",
                index=False,
                sep="\t" if name.endswith(".tsv") else ",",
                lineterminator="\n",
                quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
            )


def _write_parquet(frames: Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write frames of the same columns, at least one, one below the other; whole or absent."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema: Any = None
    with ExitStack() as stack:
        stream = stack.enter_context(open_atomic(path))
        for frame in frames:
            try:
                chunk = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            except pa.ArrowException as error:
                raise DataError(f"the rows do not fit the table: {error}", path) from error
            if schema is None:
                schema = chunk.schema.with_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
                writer = stack.enter_context(pq.ParquetWriter(stream, schema))
            writer.write_table(chunk.replace_schema_metadata(schema.metadata))
