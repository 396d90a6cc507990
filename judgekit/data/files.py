"""Reading and writing the tables of `judgekit.data.tables`: CSV, JSON and Parquet, a file or a folder of parts.

Whatever is written can be read back unchanged: ids such as ``007``, ``NA`` or ``1e5`` stay strings, floats keep all
their digits, NaN is an empty cell.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from os.path import exists  # False, not an error, for a name that is too long
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from judgekit.data.columns import NOT_PLAIN, TextTable, in_arrow
from judgekit.data.fields import TABULAR
from judgekit.data.forms import form_named, forms, records
from judgekit.data.forms.delimited import CSV, delimiter_of
from judgekit.data.outputs import as_cell, of_cell
from judgekit.data.records import kind_of, parquet_file
from judgekit.data.sources import opened
from judgekit.data.streams import head, lines, open_atomic, parquet_parts, read_bytes
from judgekit.data.tables import ANSWERS, RATED, SCHEMA_VERSION, Table, text_cell
from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import form_of

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.labelings import Labeling

_VERSION_KEY: Final = b"judgekit.schema_version"

_ODD_CELL: Final = re.compile(rb"[\"\0]|[,\t\n]'[=+@\t\r'-]")
"""Quotes and NUL, and a cell that `as_cell` may have made."""

_ROW_GROUP: Final = 1 << 20
"""Rows in Arrow's row groups of Parquet: writing in blocks of this size leaves no trace in a file."""


def read_table(table: Table, path: str | Path, *, numbered: bool = False) -> pd.DataFrame:
    """Read and check a table: its columns first, in order, with their dtypes, then further ones.

    Args:
        table: what the file should hold, e.g. ``judgekit.data.tables.SCORES``.
        path: CSV, TSV, JSON lines, a JSON array (plain or packed), a Parquet file or a folder of Parquet parts;
            ``csv(query_id=qid, value=stars):FILE`` names your own columns. Answers may have nested forms, too.
        numbered: use the line numbers of a text file as index, named ``line``.

    Returns:
        The table, a row for each record.

    Raises:
        DataError: the file is missing or is not such a table; the message has line or row.
        UsageError: there is no such form.
    """
    import pandas as pd

    spec, text = form_of(path)
    if table.name == ANSWERS.name and (spec.name == "auto" or (spec.name in forms() and form_named(spec.name).nested)):
        nested = _nested_answers(path)
        if nested is not None:
            return table.check(nested, path)
    path = Path(text)
    own = {**table.columns, **table.optional}
    options = CSV.options if spec.name == "auto" else form_named(spec.name).options
    renamed: dict[str, str] = {}
    for key, value in spec.params:
        if key in own:
            renamed[str(value)] = key
        elif key not in options:
            raise UsageError(
                f"format '{spec}': the {table.name} table has no column {key!r} (it has: {', '.join(own)})"
                f".{nearest(key, own)}"
            )
    expected = f"a {table.name} table (columns {', '.join(table.columns)})"
    form, rows = records(path, spec, expected)
    if form == "parquet":
        parts = []
        for part in parquet_parts(path):
            parts.append(table.check(_read_part(part, expected).rename(columns=renamed), part))
        return pd.concat(parts, ignore_index=True)
    delimiter = ","
    if form in ("csv", "tsv"):
        delimiter = delimiter_of(form, head(path))
    if form in ("csv", "tsv") and not spec.params:
        plain = _read_plain(table, path, delimiter, expected)
        if plain is not None:
            # No cell is quoted, so that each row is a line, below the header's.
            if numbered:
                plain.index = pd.RangeIndex(2, len(plain) + 2, name="line")
            return plain
    cells: list[dict[str, Any]] = []
    numbers: list[int] = []
    for record in rows:
        fields = {renamed.get(name, name): cell for name, cell in record.fields.items()}
        if not cells:
            table.known(fields, path)
        # A field of only later records would make a column of mostly missing values.
        elif further := fields.keys() - cells[0].keys():
            raise DataError(f"has a field {further.pop()!r} that earlier records lack", path, record.line)
        if form in TABULAR:
            fields = {name: of_cell(cell) for name, cell in fields.items()}
        cells.append(fields)
        numbers.append(record.line)
    if not cells:
        first = next(lines(path), None)
        if first is None:
            raise DataError(f"is empty; expected {expected}", path)
        return table.check(pd.DataFrame(columns=next(csv.reader([first.text], delimiter=delimiter))), path)
    frame = pd.DataFrame(cells, dtype="object")
    others = frame.columns.difference([*table.known(frame, path)])
    frame[others] = frame[others].infer_objects()
    checked = table.check(frame, path, numbers)
    if numbered:
        checked.index = pd.Index(numbers, name="line")
    return checked


def column_names(path: str | Path, expected: str) -> set[str]:
    """Return the names of a table's columns, as in `read_table`; none for an empty file."""
    spec, file = form_of(path)
    first = next(records(Path(file), spec, expected)[1], None)
    renamed = {str(value): key for key, value in spec.params}
    return set() if first is None else {renamed.get(str(name), str(name)) for name in first.fields}


def _read_plain(table: Table, path: Path, delimiter: str, expected: str) -> pd.DataFrame | None:
    """Read a CSV file without quotes at full speed; None if the strict reader is needed."""
    data = read_bytes(path, expected)
    header = data[: data.find(b"\n") + 1 or None].decode(errors="replace").rstrip("\r\n").split(delimiter)
    # Arrow reads quotes as plain characters, and an apostrophe may guard a formula.
    if _ODD_CELL.search(data) or len(set(header)) < len(header):
        return None
    kinds = {**table.columns, **table.optional}
    types = dict.fromkeys(header, pa.string())
    types |= {name: pa.float64() for name in header if kinds.get(name) in ("int", "float")}
    try:
        columns = TextTable(header, delimiter, header=True).read(in_arrow(data.rstrip(b"\r\n") + b"\n"), types)
        return table.check(columns.read_all().rename_columns(header).to_pandas(), path)
    except (*NOT_PLAIN, DataError):
        return None


def _read_part(part: Path, expected: str) -> pd.DataFrame:
    """Read a Parquet file; refuse one from a newer version."""
    with parquet_file(part, expected) as file:
        version = int((file.schema_arrow.metadata or {}).get(_VERSION_KEY, SCHEMA_VERSION))
        # A column may have changed its meaning: read the old way, its numbers would be wrong.
        if version > SCHEMA_VERSION:
            reason = f"was written by a newer judgekit (schema version {version}; this version reads {SCHEMA_VERSION})"
            raise DataError(reason, part)
        frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    return frame


def check_target(path: str | Path, *, table: bool = False) -> None:
    """Refuse a bad name for an output file before any work is done."""
    path = Path(path)
    if table and path.suffix != ".parquet" and not path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        raise UsageError(f"{path}: the name of a table file must end in .csv, .tsv (plain or .gz) or .parquet")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file to write")
    if exists(path) and not path.is_file():
        raise UsageError(f"{path} is a pipe or a device: name a file to write")
    above = next(folder for folder in path.absolute().parents if exists(folder))
    if not above.is_dir():
        raise UsageError(f"{path} cannot be written: {above} is a file, not a folder")
    if not os.access(above, os.W_OK):
        raise UsageError(f"{path} cannot be written: {above} may not be written to")


def write_labels(labeling: Labeling, path: str | Path) -> None:
    """Write a labeling's table as Parquet, piece by piece."""
    _write_parquet(labeling.blocks(rows=_ROW_GROUP), path)


def write_table(frame: pd.DataFrame, path: str | Path, table: Table | None = None) -> None:
    """Write a table as CSV, TSV or Parquet, by the name's ending (``.csv.gz`` is compressed), completely or not at all.

    Args:
        frame: the rows; the index is not written.
        path: the file to write; missing folders are created.
        table: the kind of table to check the rows against, if any.

    Raises:
        DataError: the rows are not such a table, or the file cannot be written.
        UsageError: the name has another ending.
    """
    import pandas as pd

    path = Path(path)
    check_target(path, table=True)
    if table is not None:
        frame = table.check(frame)
    if path.suffix == ".parquet":
        _write_parquet([frame], path)
        return
    cells, returns = frame.copy(deep=False), False
    for name, dtype in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            cells[name] = frame[name].map(as_cell, na_action="ignore")
            returns = returns or bool(cells[name].astype("str").str.contains("\r", regex=False).any())
    with open_atomic(path) as stream:
        cells.to_csv(
            stream,
            mode="wb",
            index=False,
            sep="\t" if path.name.removesuffix(".gz").endswith(".tsv") else ",",
            lineterminator="\n",
            # csv.writer leaves a lone carriage return unquoted, and readers take it for a line end.
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )


def _write_parquet(frames: Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write one or more frames of the same columns below each other, completely or not at all."""
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


def _nested_answers(source: str | Path) -> pd.DataFrame | None:
    """Return the answers of a nested form, each a text or a number (0 is one), or ""."""
    import pandas as pd

    origin, entries = opened(source, "answer")
    if not origin.form:
        return None
    rows = []
    for record in entries:
        answer = record.fields["answer"]
        if isinstance(answer, list | dict):
            raise origin.error(record, f"the answer must be a text, not {kind_of(answer)}")
        # A missing answer is failed, never a text such as None.
        if answer is None:
            answer = ""
        row = {**record.fields, "query_id": origin.get(record, "id"), "answer": answer}
        for name in ("answer", "run", *RATED):
            if isinstance(row.get(name), str):
                origin.checked(record, name, text_cell, row[name])
        rows.append(row)
    further = [name for name in ("run", *RATED) if any(name in row for row in rows)]
    return pd.DataFrame(rows, columns=["query_id", "answer", *further])
