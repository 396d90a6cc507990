"""Reading and writing the tables of `judgekit.data.tables`: CSV, JSON and Parquet, a file or a folder of parts.

Whatever is written can be read back unchanged: ids such as ``007``, ``NA`` or ``1e5`` stay strings, floats keep all
their digits, NaN is an empty cell.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from judgekit.data.outputs import check_outputs
from judgekit.data.records import kind_of, records, sniff
from judgekit.data.streams import (
    check_file,
    file_error,
    given,
    lines,
    open_atomic,
    parquet_parts,
    read_bytes,
    sync_folder,
    temporary,
    write_atomic,
)
from judgekit.data.tables import CELLS, SCHEMA_VERSION, Table
from judgekit.errors import DataError, UsageError
from judgekit.spec import parse, split_form

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.labelings import Labeling

__all__ = ["TableWriter", "check_target", "read_table", "write_atomic", "write_labels", "write_table"]

_VERSION_KEY: Final = b"judgekit.schema_version"
_PART: Final = re.compile(r"part-\d{5,}\.parquet")

_ROW_GROUP: Final = 1 << 20
"""Rows that Arrow puts into a row group of Parquet: blocks of so many leave no trace in a file."""
_NULLS: Final = ("", "nan", "NaN", "NA", "null")
"""Spellings of an undefined number in a text file; never applied to ids."""

_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


def read_table(table: Table, path: str | Path, format: str = "auto") -> pd.DataFrame:
    """Read a table, checked: its columns first, in order, with their dtypes; further columns behind them.

    Args:
        table: what the file should hold, e.g. ``judgekit.data.tables.SCORES``.
        path: CSV, TSV, JSON lines, a JSON array (plain or packed), a Parquet file or a folder of Parquet parts, or what
            `judgekit.data.leaderboards` reads; ``FORM:FILE`` says which.
        format: ``auto`` decides by content; ``csv(query_id=qid, value=stars)`` names columns of one's own.

    Raises:
        DataError: the file is missing or is no such table; text files with line, Parquet with row.
        UsageError: there is no such format.
    """
    import pandas as pd

    from judgekit.data.leaderboards import other_form

    found = other_form(table, path, format)
    if found is not None:
        return table.check(found, path)
    form, text = split_form(path)
    path, spec = given(text), parse(form if form and format == "auto" else format)
    mapped = {str(value): key for key, value in spec.params if key not in ("header", "quote")}
    for key in mapped.values():
        if key not in (*table.columns, *table.optional):
            have = ", ".join((*table.columns, *table.optional))
            raise UsageError(f"format '{spec}': the {table.name} table has no column {key!r} (there are: {have})")
    expected = f"a {table.name} table (columns {', '.join(table.columns)})"
    name = sniff(path, expected) if spec.name == "auto" else spec.name
    if name == "parquet":
        return _read_parts(table, path, expected, mapped)
    if name in ("csv", "tsv") and not spec.options:
        frame = _read_plain(table, path, "," if name == "csv" else "\t", expected)
        if frame is not None:
            return frame
    columns: dict[str, list[Any]] = {}
    known: dict[str, str] = {}
    for record in records(path, spec, expected)[1]:
        if mapped:
            record = record._replace(fields={mapped.get(name, name): cell for name, cell in record.fields.items()})
        if not columns:
            columns = {c: [] for c in record.fields}
            known = table.known(columns, path)
        for column, values in columns.items():
            try:
                values.append(_value(record.fields.get(column), known.get(column)))
            except ValueError as error:
                raise DataError(f"column {column!r}: {error}", path, record.line) from None
        extra = [c for c in record.fields if c not in columns]
        if extra:
            raise DataError(f"has a field {extra[0]!r} that earlier records lack", path, record.line)
    if not columns:
        header = next(csv.reader([next(lines(path)).text], delimiter="\t" if name == "tsv" else ","))
        columns = {c: [] for c in header}
        return table.check(pd.DataFrame(columns, dtype="str"), path)
    return table.check(pd.DataFrame(columns), path)


def _value(value: Any, kind: str | None) -> Any:
    """Return a cell as its kind; a ValueError says why it is none."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("holds half of a surrogate pair, which is not a character")
    if kind is None:
        return value
    or_word = " or a word such as up or down" if kind == "rating" else ""
    if kind in CELLS:
        plain, kind = CELLS[kind]
        value = plain(value)
    if kind in ("id", "str"):
        if not (isinstance(value, str) or (value is None and kind == "str")):
            raise ValueError(f"must be a string, is {kind_of(value)}")
        if kind == "id" and not value:
            raise ValueError("is empty")
        return value or ""
    if value is None or (isinstance(value, str) and value in _NULLS):
        number = math.nan
    elif isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a number, is {kind_of(value)}")
    elif isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a number{or_word}")
    else:
        number = float(value)
    if math.isinf(number):
        raise ValueError(f"{value} is infinite")
    if kind == "int" and number != math.trunc(0 if math.isnan(number) else number):
        raise ValueError(f"{'an empty cell' if math.isnan(number) else value} is not a whole number")
    return number


def _read_plain(table: Table, path: Path, delimiter: str, expected: str) -> pd.DataFrame | None:
    """Read a CSV file without any quotes at full speed; None where the strict reader has to look."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    data = read_bytes(path, expected)
    if b'"' in data or b"\0" in data:
        return None
    try:
        header = data[: data.find(b"\n") + 1 or None].decode().rstrip("\r\n").split(delimiter)
    except UnicodeDecodeError:
        return None
    if len(set(header)) < len(header):
        return None
    # In Arrow's own memory: its reading thread may let go of the data after this returns, and data of Python's
    # would abort the process if the program ends just then.
    copied = pa.BufferOutputStream()
    copied.write(data.rstrip(b"\r\n") + b"\n")
    stream = pa.BufferReader(copied.getvalue())
    kinds = {**table.columns, **table.optional}
    numeric = {c for c in header if kinds.get(c) in ("int", "float")}
    try:
        found = arrow_csv.read_csv(
            stream,
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={c: pa.float64() if c in numeric else pa.string() for c in header},
                null_values=list(_NULLS),
                strings_can_be_null=False,
            ),
        )
        return table.check(found.to_pandas(), path)
    except (pa.ArrowInvalid, DataError):
        return None


def _read_parts(table: Table, path: Path, expected: str, mapped: Mapping[str, str]) -> pd.DataFrame:
    """Read and check a table from a Parquet file or a folder of parts.

    Raises:
        DataError: a part is unreadable, no such table, or written by a newer version; it is named.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frames: list[pd.DataFrame] = []
    for part in parquet_parts(path):
        try:
            check_file(part, expected)
            with pq.ParquetFile(part) as file:  # read_table() would take a k=v in the path for a column
                found = file.read()
        except pa.ArrowException as error:
            raise DataError(f"is not a readable Parquet file ({error}); expected {expected}", part) from error
        except OSError as error:
            raise file_error(error, part, expected) from error
        version = int((found.schema.metadata or {}).get(_VERSION_KEY, SCHEMA_VERSION))
        if version > SCHEMA_VERSION:
            reason = f"was written by a newer judgekit (schema version {version}, this one knows {SCHEMA_VERSION})"
            raise DataError(reason, part)
        frames.append(table.check(found.to_pandas(ignore_metadata=True).rename(columns=mapped), part))
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def check_target(path: str | Path, *, table: bool = False) -> None:
    """Refuse the name of a file to be written, before work is done that would then be lost.

    Args:
        path: the file to make.
        table: whether it is a table, whose form is known by the name's ending.

    Raises:
        UsageError: there is a folder of that name, or no table is written under it.
    """
    path = Path(path)
    if table and path.suffix != ".parquet" and not path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        raise UsageError(f"{path}: the name of a table file ends in .csv, .tsv (plain or .gz) or .parquet")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; a file was to be written there")


def write_labels(labeling: Labeling, path: str | Path) -> None:
    """Write a labeling's table as Parquet, piece by piece.

    Raises:
        DataError: it cannot be written.
    """
    with TableWriter(None, path) as writer:
        for block in labeling.blocks(rows=_ROW_GROUP):
            writer.write(block)


def write_table(frame: pd.DataFrame, path: str | Path, table: Table | None = None) -> None:
    """Write a table as CSV, TSV or Parquet, by the name's ending (``.csv.gz`` is compressed); whole or absent.

    Args:
        frame: the rows; the index is not written.
        path: the file to make; folders on the way are created.
        table: what the rows are, if they are to be checked.

    Raises:
        DataError: the rows are no such table, or the file cannot be written.
        UsageError: the name ends otherwise.
    """
    import pandas as pd

    path = Path(path)
    name = path.name.removesuffix(".gz")
    check_target(path, table=True)
    if table is not None:
        frame = table.check(frame)
    if path.suffix == ".parquet":
        with TableWriter(table, path) as writer:
            writer.write(frame)
    else:
        # csv.writer leaves a lone carriage return unquoted, and readers take it for a line end.
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


class TableWriter:
    """Writes a table chunk by chunk as Parquet; the result is whole or absent.

    A table of up to ``rows_per_part`` rows becomes one file, a longer one a folder of parts of that name; the readers
    here and pandas read both. Use it as a context manager: after an exception nothing is left behind, and an older
    table stays as it was::

        with TableWriter(SCORES, "scores.parquet") as writer:
            for frame in chunks:
                writer.write(frame)

    Attributes:
        rows: how many rows were written so far.
    """

    def __init__(self, table: Table | None, path: str | Path, *, rows_per_part: int = 5_000_000) -> None:
        """Prepare to write.

        Args:
            table: what each chunk is checked against, if anything.
            path: the file or folder to make.
            rows_per_part: rows after which a new part begins.
        """
        self.rows = 0
        self._table = table
        self._path = Path(path).resolve() if Path(path).is_symlink() else Path(path)
        self._rows_per_part = rows_per_part
        self._folder = temporary(self._path)
        self._parts: list[Path] = []
        self._schema: Any = None
        self._writer: Any = None
        self._in_part = 0

    def __enter__(self) -> Self:
        check_outputs(self._path)
        if self._path.is_dir() and not all(_PART.fullmatch(p.name) for p in self._path.iterdir()):
            raise DataError("is a folder that holds more than the parts of a table; it is not replaced", self._path)
        try:
            self._folder.mkdir(parents=True)
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Append rows.

        Raises:
            DataError: the chunk is no such table, differs in columns from the first one, or cannot be written.
        """
        import pyarrow as pa

        try:
            frame = self._table.check(frame) if self._table else frame
            chunk = pa.Table.from_pandas(frame, schema=self._schema, preserve_index=False)
        except (pa.ArrowException, KeyError) as error:
            raise DataError(f"the rows do not fit the table: {error}", self._path) from error
        if self._schema is None:
            self._schema = chunk.schema.with_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
        elif set(map(str, frame.columns)) != set(self._schema.names):
            raise DataError(f"the rows have other columns than earlier ones: {list(frame.columns)}", self._path)
        if self._parts and not chunk.num_rows:
            return
        try:
            self._append(chunk.replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise self._unwritable(error) from error

    def _append(self, chunk: Any) -> None:
        import pyarrow.parquet as pq

        start = 0
        while True:
            if self._writer is None:
                self._parts.append(self._folder / f"part-{len(self._parts):05}.parquet")
                self._writer = pq.ParquetWriter(self._parts[-1], self._schema)
                self._in_part = 0
            rows = min(chunk.num_rows - start, self._rows_per_part - self._in_part)
            self._writer.write_table(chunk.slice(start, rows))
            start += rows
            self._in_part += rows
            self.rows += rows
            if self._in_part >= self._rows_per_part:
                self._end_part()
            if start >= chunk.num_rows:
                return

    def _end_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            with self._parts[-1].open("rb+") as file:
                os.fsync(file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                if self._schema is None and self._table is not None:
                    self.write(self._table.empty())
                self._end_part()
                if self._parts:
                    self._publish()
        except OSError as problem:
            raise self._unwritable(problem) from problem
        finally:
            if self._writer is not None:
                self._writer.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _publish(self) -> None:
        """Put the finished part or folder under its name; what was there before is moved aside, then removed."""
        made = self._parts[0] if len(self._parts) == 1 else self._folder
        aside = temporary(self._path)
        if self._path.is_dir() or (self._path.exists() and made.is_dir()):
            self._path.rename(aside)
        sync_folder(self._folder)
        made.replace(self._path)
        sync_folder(self._path.parent)
        if aside.is_dir():
            shutil.rmtree(aside)
        else:
            aside.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(f"cannot be written: {error.strerror or error}", self._path)
