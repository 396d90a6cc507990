"""The syntaxes of files: each turns a file into records (dictionaries), from which everything else is made.

Built in are ``jsonl``, ``json`` (an array of objects, or one object, whose members are records of one field), ``csv``,
``tsv``, ``parquet`` (a file or a folder of parts) and ``topics`` (TREC's ``<top>``). ``auto`` recognises them by
content. A user's own is a function from a `Path` to records, (line, fields) each, used when it is named: registered
(`judgekit.register.form`, by a plug-in too), or in a file (``my_forms.py:pairs``).

A format is spelled ``name(option=value, ...)``. Options of ``csv`` and ``tsv``: ``header`` names the columns of a file
without a header line, ``quote=none`` makes quotes plain characters. Other options (``id=``, ``text=``, …) name the
fields to read, see `judgekit.data.forms`.
"""

from __future__ import annotations

import csv
import inspect
import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from judgekit.data.streams import (
    Line,
    check_file,
    file_error,
    given,
    head,
    lines,
    note_read,
    packing,
    parquet_parts,
    read_bytes,
)
from judgekit.errors import DataError, UsageError, not_among
from judgekit.registry import register
from judgekit.spec import Spec, Value, run_file, split_file, user_code

READABLE: Final = "JSON lines, JSON, CSV, TSV or Parquet"


HALF: Final = re.compile("[\\ud800-\\udfff]")
"""Half of a surrogate pair, which JSON can spell and no file can hold."""


class DataRecord(NamedTuple):
    """One record of a file."""

    line: int
    """1-based line on which it starts; in Parquet the 1-based row."""
    fields: Mapping[str, Any]
    inside: str = ""
    """Where in a record of the file it stands, e.g. ``ctxs[3]``."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} appears twice")
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _json_problem(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not valid JSON: {error.msg} at character {error.colno}"
    return f"is not valid JSON: {error}" if isinstance(error, ValueError) else "is not valid JSON: nested too deeply"


def _object(value: Any, path: str | Path, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, found {kind_of(value)}", path, line)
    return value


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words, for error messages."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value}"
    names: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


def parse_object(line: Line, path: str | Path) -> dict[str, Any]:
    """Return the JSON object of one line."""
    try:
        value = _DECODER.decode(line.text)
    except (ValueError, RecursionError) as error:
        if not line.text.strip():
            raise DataError("is empty where a JSON object was expected", path, line.number) from None
        raise DataError(_json_problem(error), path, line.number) from error
    return _object(value, path, line.number)


def without_trailing_blanks(every: Iterator[Line]) -> Iterator[Line]:
    """Leave out empty lines at the end of a file; one in the middle is for the reader to refuse."""
    blanks: list[Line] = []
    for line in every:
        if line.text and not line.text.isspace():
            yield from blanks
            blanks.clear()
            yield line
        else:
            blanks.append(line)


def _jsonl(path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    for line in without_trailing_blanks(lines(path)):
        yield DataRecord(line.number, parse_object(line, path))


def _json(path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    """Read an array of objects, or an object's members, one by one, so that an error has its line."""
    text = "".join(line.text for line in lines(path, ends=True))
    ends = [match.start() for match in re.finditer("\n", text)]
    position, what = 0, "array"

    def token(expected: str) -> str:
        """Move to the next character, and behind it where it has to be one of ``expected``."""
        nonlocal position
        position = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # no blanks match as well
        mark = text[position : position + 1]
        if not mark:
            raise DataError(f"the JSON {what} ends early: the file was cut off", path, line())
        if expected and mark not in expected:
            raise DataError(f"is not valid JSON: expected {' or '.join(expected)}, found {mark!r}", path, line())
        position += bool(expected)
        return mark

    def line() -> int:
        return bisect_left(ends, position) + 1

    def value() -> tuple[int, Any]:
        nonlocal position
        token("")
        start = line()
        try:
            decoded, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise DataError(_json_problem(error), path, getattr(error, "lineno", start)) from error
        return start, decoded

    end, keys = "]", set[str]()
    if token("[{") == "{":
        end, what = "}", "object"
    more = token("") != end
    position += not more
    while more:
        start, member = value()
        if end == "]":
            yield DataRecord(start, _object(member, path, start))
        else:
            if not isinstance(member, str) or member in keys:
                raise DataError(f"is not valid JSON: {kind_of(member)} as a key, or a key twice", path, start)
            keys.add(member)
            token(":")
            yield DataRecord(start, {member: value()[1]})
        more = token("," + end) == ","
    if rest := text[position:].lstrip():
        position = len(text) - len(rest)
        raise DataError(f"goes on after the end of the JSON {what}: {rest[:20]!r}", path, line())


_BLANK: Final = re.compile(r"[ \t\r\n]*")
_WORD: Final = re.compile(r"[^ \t\r\f\v]+")


def trec_records(path: Path, columns: Sequence[str], expected: str) -> Iterator[DataRecord]:
    """Read the lines of a TREC run or qrels file, with any white space between the columns."""
    for line in lines(path, expected):
        words = _WORD.findall(line.text)
        if words and len(words) != len(columns):
            reason = f"has {len(words)} columns, expected {len(columns)}: {expected}; it reads {line.text[:80]!r}"
            raise DataError(reason, path, line.number)
        if words:
            yield DataRecord(line.number, {name: word for name, word in zip(columns, words, strict=True) if name})


_TOPIC: Final = re.compile(r"<top>(?P<fields>(?:(?!</?top>).)*)</top>|\S[^\n]*", re.I | re.S)
"""A topic, or what stands where one was expected."""
_FIELD: Final = re.compile(r"^\s*<([a-z]+)>\s*(.*?)(?:</\1>\s*)?(?=^\s*</?[a-z]+>|\Z)", re.I | re.M | re.S)
_SAYS: Final = re.compile(r"(?:Number|Topic|Description|Narrative)\s*:\s*", re.I)


def _topics(path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    """Read TREC topics: ``<top>``, the tags ``<num>``, ``<title>``, … with their texts, ``</top>``."""
    text = "".join(line.text for line in lines(path, ends=True))
    line, counted = 1, 0
    for topic in _TOPIC.finditer(text):
        line, counted, tags = line + text.count("\n", counted, topic.start()), topic.start(), topic["fields"]
        if tags is None or _FIELD.sub("", tags).strip():
            lacks_end = tags is None and topic[0].lower().startswith("<top>")
            outside = f"stands outside a topic (<top> ... </top>): {topic[0][:40]!r}"
            reason = "this topic has no end (</top>): the file was cut off" if lacks_end else outside
            raise DataError(reason, path, line)
        fields = {
            tag.lower(): " ".join(_SAYS.sub("", said.strip(), count=1).split()) for tag, said in _FIELD.findall(tags)
        }
        asked = fields.get("title") or fields.get("desc") or ""
        yield DataRecord(line, {**fields, "query_id": fields.get("num"), "text": asked})


def delimiter_of(syntax: str, start: bytes) -> str:
    """Return what separates the cells of a table that begins so: the first line decides between ``,`` and ``;``."""
    row = start.lstrip().split(b"\n", 1)[0]
    return "\t" if syntax == "tsv" else ";" if b";" in row and b"," not in row else ","


def _delimited(syntax: str, path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    quote = str(options.get("quote", "csv"))
    if quote not in ("csv", "none"):
        raise UsageError(f"quote={quote}: expected quote=none, quote=csv, or nothing")
    csv.field_size_limit(_LARGEST_CELL)
    texts = list[str]()  # the lines of one row

    def noted() -> Iterator[str]:
        for line in without_trailing_blanks(lines(path, ends=True)):
            texts.append(line.text)
            yield line.text

    delimiter = delimiter_of(syntax, head(path))
    rows = csv.reader(
        noted(),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if quote == "none" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    header = [name.strip() for name in str(options["header"]).split(",")] if "header" in options else None
    while True:
        start = rows.line_num + 1
        texts.clear()
        try:
            row = next(rows, None)
        except csv.Error as error:
            hint = "" if quote == "none" else " (if quotes are plain characters here: quote=none)"
            raise DataError(f"is not a valid row: {error}{hint}", path, start) from error
        if row is None:
            return
        each_a_row = len(texts) > 1 and all(text.count(delimiter) == len(row) - 1 > 0 for text in texts)
        if header is None:
            header = row
            twice = sorted(name for name in header if header.count(name) > 1)
            if twice:
                raise DataError(f"the header names column {twice[0]!r} twice", path, start)
        elif len(row) != len(header):
            columns = f"the header has {len(header)} columns, this row {len(row)}"
            raise DataError(columns if row else "is empty where a row was expected", path, start)
        elif syntax == "tsv" and "quote" not in options and each_a_row:
            raise DataError(
                f"begins a cell with a quote that ends {len(texts) - 1} lines below, but each of these lines looks"
                " like a row: write quote=none if quotes are plain characters, or quote=csv if this is one cell",
                path,
                start,
            )
        else:
            yield DataRecord(start, dict(zip(header, row, strict=True)))


_LARGEST_CELL = (1 << 31) - 1
"""Bytes of a cell; Python's limit of 128 KiB is less than a long document."""


def _parquet(path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    rows = (fields for batch in _row_groups(path) for fields in batch.to_pylist())
    return starmap(DataRecord, enumerate(rows, 1))


@contextmanager
def parquet_file(part: Path, expected: str = READABLE) -> Iterator[Any]:
    """Open a Parquet file."""
    import pyarrow.parquet as pq

    try:
        check_file(part, expected)
        with pq.ParquetFile(part) as file:  # read_table() would take a k=v in the path for a column
            yield file
    except pa.ArrowException as error:
        raise DataError(f"is not a readable Parquet file ({error}); expected {expected}", part) from error
    except OSError as error:
        raise file_error(error, part, expected) from error


def _row_groups(path: Path, columns: Sequence[str] | None = None, rows: int = 4096) -> Iterator[Any]:
    """Yield the rows of a Parquet file or of a folder of parts as Arrow's batches."""
    for part in parquet_parts(path):
        with parquet_file(part) as file:
            yield from file.iter_batches(rows, columns=columns)


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns of Parquet, of a folder's first part; [] of anything else."""
    part = next(iter(sorted(path.glob("*.parquet"))), path)
    if part.is_file():
        with part.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                with parquet_file(part) as file:
                    return [*file.schema_arrow.names]
    return []


def batches(
    path: Path, columns: Sequence[str], wanted: Sequence[str], delimiter: str, *, header: bool, trec: bool
) -> Iterator[Any]:
    """Return columns of a file as Arrow's batches, the third as numbers, all others as texts.

    Without a delimiter they are of Parquet, or of TREC's any white space.

    Raises:
        ArrowException, ValueError: as the batches are read, for what has to be read record by record.
    """
    import pyarrow.csv as pacsv

    types = [pa.string(), pa.string(), pa.float64(), *[pa.string()] * (len(wanted) - 3)]
    if not delimiter and not trec:
        return (_typed(batch, wanted, types) for batch in _row_groups(path, wanted, 262_144))
    places = [*map(str, map(columns.index, wanted))]
    reading = pacsv.ReadOptions(column_names=[*map(str, range(len(columns)))], block_size=1 << 22, skip_rows=header)
    parsing = pacsv.ParseOptions(
        delimiter=delimiter or " ", quote_char=False, escape_char=False, ignore_empty_lines=trec
    )
    converting = pacsv.ConvertOptions(
        column_types=dict(zip(places, types, strict=True)), include_columns=places, strings_can_be_null=False
    )
    # Arrow's own streams, not Python's: its reading thread may let go of the stream after this returns, and one that
    # needs the interpreter for that aborts the process if the program ends just then. Nor is it closed here: where the
    # file is not read to its end that thread may be reading still, and would read from whatever file is opened next
    # under the number of this one. It is closed when the last of them lets go of it.
    stream = pa.input_stream(str(path), compression=packing(path)) if delimiter else _single_spaced(path)
    reader: Iterator[Any] = pacsv.open_csv(stream, reading, parsing, converting)
    return reader


def _single_spaced(path: Path) -> Any:
    """Return a TREC file as a stream of Arrow's with one space between its columns, and no empty lines."""
    copy = pa.BufferOutputStream()
    copy.write(_ENDS.sub(b"\n", _SPACES.sub(b" ", read_bytes(path))).strip() + b"\n")
    return pa.BufferReader(copy.getvalue())


_SPACES: Final = re.compile(rb"[ \t\r\f\v]+")
_ENDS: Final = re.compile(rb" ?\n[ \n]*")


def _typed(batch: Any, names: Sequence[str], types: Sequence[Any]) -> Any:
    """Return columns of a batch with the types that they should have; no text becomes a number, or a number text."""
    columns = [*map(batch.column, names)]
    for column, wanted in zip(columns, types, strict=True):
        held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        texts, digits = pa.types.is_string(held) or pa.types.is_large_string(held), pa.types.is_floating(held)
        if not (texts if wanted == pa.string() else digits or pa.types.is_integer(held)):
            raise ValueError(f"{held} for {wanted}")
    return pa.record_batch([*map(pa.Array.cast, columns, types)], [*names])


SYNTAXES: Mapping[str, Callable[[Path, Mapping[str, Value]], Iterator[DataRecord]]] = {
    "csv": partial(_delimited, "csv"),
    "json": _json,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "topics": _topics,
    "tsv": partial(_delimited, "tsv"),
}
"""The built-in syntaxes by name."""


_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


def as_number(value: Any) -> float:
    """Return a cell as a number, NaN if it is not one; Python's ``1_0`` is a slip of the pen, not ten."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def sniff(path: Path, start: bytes, expected: str) -> str:
    """Return the name of the built-in syntax of a file, by its beginning."""
    if path.is_dir() or start.startswith(b"PAR1"):
        parquet_parts(path)
        return "parquet"
    start = start.lstrip()
    if not start:
        raise DataError(f"is empty; expected {expected}", path)
    row = start.split(b"\n", 1)[0]
    if start[:1] in (b"{", b"["):
        # An object that goes on in the next line is not a line of JSON lines.
        return "jsonl" if start[:1] == b"{" and (b"\n" not in start or row.rstrip().endswith(b"}")) else "json"
    if row.lower().startswith(b"<top>"):
        return "topics"
    for name, delimiter in (("tsv", b"\t"), ("csv", b","), ("csv", b";")):
        if delimiter in row:
            return name
    raise DataError(f"begins with {row[:40].decode(errors='replace').rstrip()!r}; expected {expected}", path, 1)


def records(path: Path, spec: Spec, expected: str, more: Iterable[str] = ()) -> tuple[str, Iterator[DataRecord]]:
    """Return the format's name and the records of a file."""
    path = given(path)
    note_read(path)
    start = b"" if path.is_dir() or spec.name not in ("auto", *SYNTAXES) else head(path, expected)
    name = sniff(path, start, expected) if spec.name == "auto" else spec.name
    if name in SYNTAXES:
        return name, SYNTAXES[name](path, spec.options)
    file, function = split_file(name)
    if file is not None:
        note_read(Path(file))
        read = vars(run_file(Path(file))).get(function)
        if not callable(read):
            raise UsageError(f"{file} has no function {function!r}")
        return name, _own(name, read, path)
    registered = register.load().forms
    if name not in registered:
        raise UsageError(not_among("data format", name, sorted({"auto", *SYNTAXES, *registered, *more})))
    return name, _own(name, registered[name], path)


def _own(name: str, read: Callable[[Path], Iterable[Any]], path: Path) -> Iterator[DataRecord]:
    with user_code(lambda: f"{path}, read as {name}", read.__code__.co_filename if inspect.isfunction(read) else ""):
        yield from starmap(DataRecord, read(path))
