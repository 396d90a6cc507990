"""Records, into which every form turns its files, and the shared parts of readers."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.streams import (
    Line,
    check_file,
    file_error,
    parquet_parts,
)
from judgekit.errors import DataError

READABLE: Final = "JSON lines, JSON, CSV, TSV, Excel or Parquet"


HALF: Final = re.compile("[\\ud800-\\udfff]")
"""Half of a surrogate pair, which JSON can spell but no file can hold."""


Fields = Mapping[str, Any]
"""What a record holds, by name."""


class DataRecord(NamedTuple):
    """One record of a file."""

    line: int
    """1-based line on which it starts; in Parquet the 1-based row."""
    fields: Fields
    inside: str = ""
    """Its place inside a record of the file, e.g. ``ctxs[3]``."""

    def of(self, fields: Fields, inside: str = "") -> DataRecord:
        """Return a record inside of this one."""
        return DataRecord(self.line, fields, inside)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    # Python would silently keep the last of two equal keys.
    if len(fields) != len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} appears twice")
    return fields


DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)


def json_problem(error: ValueError | RecursionError) -> str:
    """Return what is wrong with a JSON text, for messages."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not valid JSON: {error.msg} at character {error.colno}"
    return f"is not valid JSON: {error}" if isinstance(error, ValueError) else "is not valid JSON: nested too deeply"


def json_object(value: Any, path: str | Path, line: int) -> dict[str, Any]:
    """Return a JSON object; refuse any other value."""
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, found {kind_of(value)}", path, line)
    return value


def kind_of(value: object) -> str:
    """Return the kind of a JSON value in words, for error messages."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value}"
    names: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


_KEY_ENDS: Final = re.compile(r'"\s*:')
_WIDE: Final = float(1 << 63)


def _quick(text: str) -> dict[str, Any] | None:
    """Return a flat JSON object read by orjson; None if Python's reader is needed."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    # orjson keeps the last of two equal keys: if there are as many ends of keys as keys, none is repeated.
    if type(value) is not dict or len(_KEY_ENDS.findall(text)) != len(value):
        return None
    for held in value.values():
        kind = type(held)
        # It turns whole numbers of more than 64 bits into decimals.
        if kind is dict or kind is list or (kind is float and abs(held) >= _WIDE):
            return None
    return value


def parse_object(line: Line, path: str | Path) -> dict[str, Any]:
    """Return the JSON object of one line."""
    if (quick := _quick(line.text)) is not None:
        return quick
    try:
        value = DECODER.decode(line.text)
    except (ValueError, RecursionError) as error:
        if not line.text.strip():
            raise DataError("is empty where a JSON object was expected", path, line.number) from None
        raise DataError(json_problem(error), path, line.number) from error
    return json_object(value, path, line.number)


def fields_of_row(header: Sequence[str], row: Sequence[str], path: Path, line: int) -> dict[str, str]:
    """Return the cells of a row by column; a column that stands there twice must hold the same in both.

    pandas writes an index beside the column of its name, as it does for the spans of Phoenix.
    """
    fields = dict(zip(header, row, strict=False))
    if len(fields) < len(header):
        for name, cell in zip(header, row, strict=False):
            if name and fields[name] != cell:
                raise DataError(
                    f"the header names column {name!r} twice, and this row has {cell[:40]!r} in one of them,"
                    f" {fields[name][:40]!r} in the other: remove one of them",
                    path,
                    line,
                )
    return fields


def without_trailing_blanks(every: Iterator[Line]) -> Iterator[Line]:
    """Skip empty lines at the end of a file; the reader refuses others."""
    blanks: list[Line] = []
    for line in every:
        if line.text and not line.text.isspace():
            yield from blanks
            blanks.clear()
            yield line
        else:
            blanks.append(line)


@contextmanager
def parquet_file(part: Path, expected: str = READABLE) -> Iterator[Any]:
    """Open a Parquet file."""
    import pyarrow.parquet as pq

    try:
        check_file(part, expected)
        with pq.ParquetFile(part) as file:  # read_table() would turn a k=v in the path into a column
            yield file
    except pa.ArrowException as error:
        raise DataError(f"is not a readable Parquet file ({error}); expected {expected}", part) from error
    except OSError as error:
        raise file_error(error, part, expected) from error


def row_groups(path: Path, columns: Sequence[str] | None = None, rows: int = 4096) -> Iterator[Any]:
    """Yield the rows of a Parquet file or of a folder of parts as Arrow's batches."""
    for part in parquet_parts(path):
        with parquet_file(part) as file:
            yield from map(with_class_names, file.iter_batches(rows, columns=columns))


def with_class_names(table: Any) -> Any:
    """Return an Arrow table or batch with the names of classes in place of their numbers, which are no grades.

    Hugging Face's datasets number the classes of a column in some order, e.g. of the alphabet; the table says in which.
    """
    columns = dict(zip(table.schema.names, table.columns, strict=True))
    try:
        features = orjson.loads(table.schema.metadata[b"huggingface"])["info"]["features"].items()
    except (LookupError, ValueError, AttributeError, TypeError):
        return table
    for name, feature in features:
        if name in columns and isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            names = pa.array(map(str, feature["names"]))
            places = pc.index_in(columns[name], pa.array(range(len(names))))  # none of -1, which is no class
            columns[name] = pc.take(names, places)
    return type(table).from_arrays([*columns.values()], [*columns])


def parquet_columns(path: Path) -> list[str]:
    """Return the column names of Parquet (of a folder's first part); [] for anything else."""
    part = next(iter(sorted(path.glob("*.parquet"))), path)
    # By its first bytes, since folders and downloads may have names without an ending.
    if part.is_file():
        with part.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                with parquet_file(part) as file:
                    return [*file.schema_arrow.names]
    return []


NULLS: Final = ("", "nan", "NaN", "NA", "null")
"""Spellings of an undefined number in a text file; never applied to ids."""
NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


def as_number(value: Any) -> float:
    """Return a cell as a number, or NaN; Python's ``1_0`` is a typo, not ten."""
    # float() also reads nan, inf and 1_0; a score column with such cells is damaged.
    if isinstance(value, bool) or (isinstance(value, str) and not NUMBER.fullmatch(value)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
