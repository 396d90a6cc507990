"""The syntaxes of files: each turns a file into records (dictionaries), from which everything else is made.

Built in are ``jsonl``, ``json`` (an array of objects, or one object, whose members are records of one field), ``csv``,
``tsv``, ``parquet`` (a file or a folder of parts) and ``topics`` (TREC's ``<top>``). ``auto`` recognises them by
content. A third-party syntax is an entry point of the group ``judgekit.formats``: a function from a `Path` to records,
used when it is named.

A format is spelled ``name(option=value, ...)``. Options of ``csv`` and ``tsv``: ``header`` names the columns of a file
without a header line, ``quote=none`` makes quotes plain characters. Other options (``id=``, ``text=``, …) name the
fields to read, see `judgekit.data.forms`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple

from judgekit.data.outputs import note_read
from judgekit.data.streams import Line, given, head, lines, parquet_parts, read_bytes
from judgekit.errors import DataError, UsageError, not_among
from judgekit.spec import Spec, Value

__all__ = [
    "EXPECTED",
    "SYNTAXES",
    "Record",
    "as_number",
    "kind_of",
    "parse_object",
    "records",
    "sniff",
    "trec_records",
]

ENTRY_POINTS = "judgekit.formats"
_READABLE: Final = "JSON lines, JSON, CSV, TSV or Parquet"
EXPECTED: Final = {
    "query": f"query records ({_READABLE}; TREC topics; or files of BEIR, KILT, DPR/FiD, castorini, ragas or deepeval)",
    "doc": f"doc records ({_READABLE}; or a file of BEIR, DPR/FiD, castorini, ragas or deepeval)",
    "run": "a TREC run (query Q0 doc rank score tag), or a run as CSV, TSV, Parquet, MS MARCO TSV, JSON {query: {doc:"
    " score}}, or in a file of DPR/FiD, castorini, KILT, ragas or deepeval",
    "qrels": "a TREC qrels file (query 0 doc relevance), or qrels as CSV, TSV, Parquet, JSON {query: {doc: relevance}},"
    " or in a file of BEIR, KILT, ragas or deepeval",
    "answer": f"answers ({_READABLE} with query_id and answer; or a file of KILT, ragas or deepeval)",
}
"""What a file of each kind may be, for error messages."""


class Record(NamedTuple):
    """One record of a file."""

    line: int
    """1-based line on which it starts; in Parquet the 1-based row."""
    fields: Mapping[str, Any]
    start: int = -1
    """JSON lines: offset of its line in the (decompressed) file."""
    inside: str = ""
    """Where in a record of the file it stands, e.g. ``ctxs[3]``."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} appears twice")
            seen.add(key)
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
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    names: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


def parse_object(line: Line, path: str | Path) -> dict[str, Any]:
    """Return the JSON object of one line.

    Raises:
        DataError: the line is empty, is not valid JSON or not an object, or has a key twice.
    """
    try:
        value = _DECODER.decode(line.text)
    except (ValueError, RecursionError) as error:
        if not line.text.strip():
            raise DataError("is empty where a JSON object was expected", path, line.number) from None
        raise DataError(_json_problem(error), path, line.number) from error
    return _object(value, path, line.number)


def without_trailing_blanks(found: Iterator[Line]) -> Iterator[Line]:
    """Leave out empty lines at the end of a file; one in the middle is for the reader to refuse."""
    blanks: list[Line] = []
    for line in found:
        if line.text and not line.text.isspace():
            yield from blanks
            blanks.clear()
            yield line
        else:
            blanks.append(line)


def _jsonl(path: Path, options: Mapping[str, Value]) -> Iterator[Record]:
    for line in without_trailing_blanks(lines(path)):
        yield Record(line.number, parse_object(line, path), line.start)


def _json(path: Path, options: Mapping[str, Value]) -> Iterator[Record]:
    """Read an array of objects, or an object's members, one by one, so that an error has its line."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise DataError(f"is not UTF-8 text ({error.reason})", path, line) from error
    position, line, counted, what = 0, 1, 0, "array"

    def skip(expected: str) -> str:
        """Move to the next token, which has to be one of ``expected``."""
        nonlocal position, line, counted
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        line += text.count("\n", counted, position)
        counted = position
        found = text[position : position + 1]
        if not found:
            raise DataError(f"the JSON {what} ends early: the file was cut off", path, line)
        if expected and found not in expected:
            raise DataError(f"is not valid JSON: expected {' or '.join(expected)}, found {found!r}", path, line)
        position += bool(expected)
        return found

    def value() -> Any:
        nonlocal position
        skip("")
        try:
            found, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise DataError(f"is not valid JSON: {error.msg} at character {error.colno}", path, error.lineno) from error
        except (ValueError, RecursionError) as error:
            raise DataError(_json_problem(error), path, line) from error
        return found

    end, keys = "]", set[str]()
    if skip("[{") == "{":
        end, what = "}", "object"
    if skip("") == end:
        position += 1
    else:
        while True:
            found = value()
            start = line
            if end == "]":
                yield Record(start, _object(found, path, start))
            else:
                if not isinstance(found, str) or found in keys:
                    raise DataError(f"is not valid JSON: {kind_of(found)} as a key, or a key twice", path, start)
                keys.add(found)
                skip(":")
                yield Record(start, {found: value()})
            if skip("," + end) == end:
                break
    rest = text[position:].lstrip()
    if rest:
        line += text.count("\n", counted, len(text) - len(rest))
        raise DataError(f"goes on after the end of the JSON {what}: {rest[:20]!r}", path, line)


_TREC: Final = {
    "run": ("query_id", "", "doc_id", "", "score", ""),
    "qrels": ("query_id", "", "doc_id", "relevance"),
}
_WORD: Final = re.compile(r"[^ \t\r\f\v]+")


def trec_records(path: Path, kind: str) -> Iterator[Record]:
    """Read the lines of a TREC run or qrels file, with any white space between the columns."""
    columns, expected = _TREC[kind], EXPECTED[kind]
    for line in lines(path, expected):
        words = _WORD.findall(line.text)
        if words and len(words) != len(columns):
            reason = f"has {len(words)} columns, expected {len(columns)}: {expected}; it reads {line.text[:80]!r}"
            raise DataError(reason, path, line.number)
        if words:
            yield Record(line.number, {name: word for name, word in zip(columns, words, strict=True) if name})


_TAG = re.compile(r"\s*<(/?)([A-Za-z]+)>\s*(.*)")
_SAYS = re.compile(r"(?:Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)


def _topics(path: Path, options: Mapping[str, Value]) -> Iterator[Record]:
    """Read TREC topics: ``<top>``, the tags ``<num>``, ``<title>``, … with their texts, ``</top>``."""
    start, fields, tag = 0, dict[str, str](), ""
    for line in lines(path):
        match = _TAG.match(line.text)
        closing, name, text = (match[1], match[2].lower(), match[3]) if match else ("", "", line.text)
        if name == "top" and bool(closing) != bool(start):
            raise DataError(f"<{closing}top> where none was expected", path, line.number)
        if name == "top":
            if closing:
                text = fields.get("title") or fields.get("desc") or ""
                yield Record(start, {**fields, "query_id": fields.get("num"), "text": text})
            start, fields, tag = 0 if closing else line.number, {}, ""
        elif closing:
            tag = ""
        elif name and start:
            tag = name
            fields[tag] = _SAYS.sub("", text.removesuffix(f"</{name}>").strip(), count=1)
        elif tag and text.strip():
            said = text.strip().removesuffix(f"</{tag}>")
            fields[tag] = f"{fields[tag]} {said}".strip()
        elif text.strip():
            raise DataError(f"stands outside a topic (<top> ... </top>): {text.strip()[:40]!r}", path, line.number)
    if start:
        raise DataError("this topic has no end (</top>): the file was cut off", path, start)


def _delimited(delimiter: str) -> Callable[[Path, Mapping[str, Value]], Iterator[Record]]:
    def read(path: Path, options: Mapping[str, Value]) -> Iterator[Record]:
        quote = str(options.get("quote", "csv"))
        if quote not in ("csv", "none"):
            raise UsageError(f"quote={quote}: expected quote=none, quote=csv, or nothing")
        source = (line.text for line in without_trailing_blanks(lines(path, ends=True)))
        csv.field_size_limit(_LARGEST_CELL)
        taken = list[str]()  # the lines of one row

        def noted() -> Iterator[str]:
            for text in source:
                taken.append(text)
                yield text

        rows = csv.reader(
            noted(),
            delimiter=delimiter,
            quoting=csv.QUOTE_NONE if quote == "none" else csv.QUOTE_MINIMAL,
            strict=True,
        )
        header = [name.strip() for name in str(options["header"]).split(",")] if "header" in options else None
        while True:
            line = rows.line_num + 1
            taken.clear()
            try:
                row = next(rows, None)
            except csv.Error as error:
                hint = "" if quote == "none" else " (if quotes are plain characters here: quote=none)"
                raise DataError(f"is not a valid row: {error}{hint}", path, line) from error
            if row is None:
                return
            if header is None:
                header = row
                twice = {name for name in header if header.count(name) > 1}
                if twice:
                    raise DataError(f"the header names column {sorted(twice)[0]!r} twice", path, line)
            elif len(row) != len(header):
                columns = f"the header has {len(header)} columns, this row {len(row)}"
                raise DataError(columns if row else "is empty where a row was expected", path, line)
            elif delimiter == "\t" and "quote" not in options and len(taken) > 1 and _each_a_row(taken, len(header)):
                raise DataError(
                    f"begins a cell with a quote that ends {len(taken) - 1} lines below, but each of these lines looks"
                    " like a row: write quote=none if quotes are plain characters, or quote=csv if this is one cell",
                    path,
                    line,
                )
            else:
                yield Record(line, dict(zip(header, row, strict=True)))

    return read


_LARGEST_CELL = (1 << 31) - 1
"""Bytes of a cell; Python's limit of 128 KiB is less than a long document."""


def _each_a_row(taken: list[str], columns: int) -> bool:
    return columns > 1 and all(line.count("\t") == columns - 1 for line in taken)


def _parquet(path: Path, options: Mapping[str, Value]) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    for part in parquet_parts(path):
        try:
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches(batch_size=4096):
                    for fields in batch.to_pylist():
                        row += 1
                        yield Record(row, fields)
        except pa.ArrowException as error:
            raise DataError(f"is not a readable Parquet file: {error}", part) from error


SYNTAXES: Mapping[str, Callable[[Path, Mapping[str, Value]], Iterator[Record]]] = {
    "csv": _delimited(","),
    "json": _json,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "topics": _topics,
    "tsv": _delimited("\t"),
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


def sniff(path: Path, expected: str) -> str:
    """Return the name of the built-in syntax of a file, by its content.

    Raises:
        DataError: the file is missing, empty or of an unknown format.
    """
    if path.is_dir():
        parquet_parts(path)
        return "parquet"
    start = head(path, expected)
    if start.startswith(b"PAR1"):
        return "parquet"
    if not start.strip():
        raise DataError(f"is empty; expected {expected}", path)
    first = start.lstrip()[:1]
    header, *more = start.lstrip().splitlines()
    if first in (b"{", b"["):
        # An object that goes on in the next line is not a line of JSON lines.
        return "jsonl" if first == b"{" and (not more or header.rstrip().endswith(b"}")) else "json"
    if header.lower().startswith(b"<top>"):
        return "topics"
    for name, delimiter in (("tsv", b"\t"), ("csv", b",")):
        if delimiter in header:
            return name
    hint = "; its cells are separated by semicolons: save it with commas or tabs" if b";" in header else ""
    raise DataError(f"begins with {header[:40].decode(errors='replace')!r}; expected {expected}{hint}", path, 1)


def records(path: Path, spec: Spec, expected: str, more: Iterable[str] = ()) -> tuple[str, Iterator[Record]]:
    """Return the format's name and the records of a file.

    Args:
        path: the file, or a folder of Parquet parts.
        spec: the format's spelling; ``auto`` decides by content.
        expected: what the file should hold, for error messages.
        more: other names that there are, for the same.

    Raises:
        DataError: the file is not of that format; also while the records are read.
        UsageError: there is no such format.
    """
    path = given(path)
    note_read(path)
    name = sniff(path, expected) if spec.name == "auto" else spec.name
    if name in SYNTAXES:
        if not (name == "parquet" and path.is_dir()):
            head(path, expected, 1)
        return name, SYNTAXES[name](path, spec.options)
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name in found:
        return name, (Record(*record) for record in found[name].load()(path))
    known = sorted({"auto", *SYNTAXES, *found, *more})
    raise UsageError(not_among("data format", name, known))
