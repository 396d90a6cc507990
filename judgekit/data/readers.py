"""Readers and writers of queries and docs: JSON lines, a JSON array, CSV, TSV, Parquet; plain or gzip.

A record's fields are recognised by their names; judgekit's own (``query_id, text, answers, language`` and
``doc_id, text, title, page_id, start, end``) come first, those of BEIR and other common collections next. Which one is
meant can be told: ``format="jsonl(id=qid, text=question)"``. The retrieval JSON of DPR and FiD is recognised too.

Rules that hold for all formats, each with its line in the error:

* Ids are strings, without white space (TREC files could not hold them); a JSON number is refused, because ``7`` may
  once have been ``"007"``. The query id ``all`` is reserved.
* Reference answers are a list of strings under ``answers`` (or ``references``). A bare string is read as one answer
  only under the singular name ``answer``. In CSV and TSV a cell holds one answer, or a JSON list of them.
* An absent or null title, page id, language or list of answers is none. The text of a doc may be empty, that of a
  query not.
* Empty lines are errors, except at the end of the file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from judgekit.data.disk import DiskDocs, DiskIndex
from judgekit.data.documents import Doc, MemoryDocs, Queries, Query
from judgekit.data.dpr import is_dpr, read_dpr
from judgekit.data.fields import DOC, QUERY, Names, Source, doc_of, docs_of, queries_of
from judgekit.data.records import Record, parse_object, records
from judgekit.data.streams import Line, is_gzip, open_atomic
from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import parse

__all__ = ["read_column", "read_docs", "read_dpr", "read_queries", "write_docs", "write_queries"]

MEMORY_LIMIT: Final = 256 << 20
"""Bytes of a collection's file above which it stays on disk; compressed files count fourfold."""

_EXPECTED: Final = "{} records (JSON lines, JSON, CSV, TSV or Parquet)"


def _open(path: Path, format: str, names: Names, what: str) -> tuple[Source, Iterator[Record]]:
    spec = parse(format)
    chosen = {key: value for key, value in spec.options.items() if key not in ("header", "quote")}
    for key in chosen:
        if key not in names:
            known = ", ".join([*names, "header", "quote"])
            raise UsageError(f"format {format!r}: no option {key!r} (there are: {known}).{nearest(key, names)}")
    fields = {key: (str(chosen[key]),) if key in chosen else known for key, known in names.items()}
    name, found = records(path, spec, _EXPECTED.format(what))
    return Source(path, name, fields, what), found


def _dpr(path: Path, format: str, what: str) -> bool:
    return format == "dpr" or (format == "auto" and not path.is_dir() and is_dpr(path, _EXPECTED.format(what)))


def read_queries(path: str | Path, format: str = "auto") -> Queries:
    """Read queries.

    Args:
        path: the file, or a folder of Parquet parts.
        format: ``auto``, ``dpr``, or e.g. ``"jsonl(id=qid, text=question, answers=gold)"``; see
            `judgekit.data.records`.

    Returns:
        The queries by id, in the order of the file.

    Raises:
        DataError: see the module's rules; the message has file, line and reason.
        UsageError: there is no such format or option.
    """
    path = Path(path)
    if _dpr(path, format, "query"):
        return read_dpr(path)[0]
    return queries_of(*_open(path, format, QUERY, "query"))


def read_column(path: str | Path, column: str, format: str = "auto") -> dict[str, str]:
    """Return a further column of a query file, by query id.

    Raises:
        DataError: the file cannot be read, or a query has no such text or number.
    """
    source, found = _open(Path(path), format, QUERY, "query")
    out: dict[str, str] = {}
    for record in found:
        value = record.fields.get(column)
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            have = ", ".join(map(str, record.fields))
            raise source.error(
                record, f"has no text under {column!r} (there are: {have}).{nearest(column, record.fields)}"
            )
        out[source.id(record)] = str(value)
    return out


def read_docs(path: str | Path, format: str = "auto", *, memory_limit: int = MEMORY_LIMIT) -> MemoryDocs | DiskDocs:
    """Read a collection of documents; a large one is checked and then stays on disk.

    JSON lines are used where they are; a large file of another kind is unpacked into an unnamed temporary file
    (in ``$TMPDIR``), which disappears with the process.

    Args:
        path: the file, or a folder of Parquet parts.
        format: ``auto``, ``dpr``, or e.g. ``"tsv(header='id,text', quote=none)"``; see `judgekit.data.records`.
        memory_limit: bytes above which the collection stays on disk; compressed files count fourfold.

    Raises:
        DataError: see the module's rules; the message has file, line and reason.
        UsageError: there is no such format or option.
    """
    path = Path(path)
    if _dpr(path, format, "doc"):
        return read_dpr(path)[1]
    source, found = _open(path, format, DOC, "doc")
    if _size(path, source.format) > memory_limit:
        return _disk_docs(source, found, path)
    return docs_of(source, found)


def _size(path: Path, format: str) -> int:
    if path.is_dir():
        return 4 * sum(part.stat().st_size for part in path.iterdir())
    return path.stat().st_size * (4 if format == "parquet" or is_gzip(path) else 1)


def _disk_docs(source: Source, found: Iterable[Record], path: Path) -> DiskDocs:
    in_place = source.format == "jsonl" and not is_gzip(path)

    def load(line: bytes) -> Doc:
        if not in_place:
            return Doc(**json.loads(line))
        try:
            return doc_of(source, Record(0, parse_object(Line(0, 0, line.decode("utf-8-sig")), path)))
        except (DataError, UnicodeDecodeError) as error:
            raise DataError("was changed while it was in use", path) from error

    with ExitStack() as stack:
        stream: IO[bytes] = (
            stack.enter_context(path.open("rb")) if in_place else stack.enter_context(tempfile.TemporaryFile())
        )
        index, end = DiskIndex(), 0
        for record in found:
            doc = doc_of(source, record)
            index.add(doc.doc_id, record.start if in_place else end, record.line)
            if not in_place:
                end += stream.write(json.dumps(asdict(doc)).encode() + b"\n")
        docs = DiskDocs(stream, index, load)
        repeated = docs.repeated(index)
        if repeated:
            doc_id, line, first = repeated
            raise source.repeated(Record(line, {}), doc_id, first)
        if not len(docs):
            raise source.nothing("docs")
        stack.pop_all()
    return docs


def _write_jsonl(path: str | Path, objects: Iterable[dict[str, Any]]) -> None:
    with open_atomic(path) as stream:
        for fields in objects:
            stream.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")


def write_queries(queries: Queries | Iterable[Query], path: str | Path) -> None:
    """Write queries as JSON lines that `read_queries` reads back; gzip if the name ends in ``.gz``."""
    found = queries.values() if isinstance(queries, Mapping) else queries

    def fields(query: Query) -> dict[str, Any]:
        language = {"language": query.language} if query.language else {}
        messages = {"messages": list(query.messages)} if query.messages else {}
        known = {"query_id": query.query_id, "text": query.text, "answers": list(query.answers), **language}
        return {**known, **messages, **query.columns}

    _write_jsonl(path, map(fields, found))


def write_docs(docs: Iterable[Doc], path: str | Path) -> None:
    """Write docs as JSON lines that `read_docs` reads back; gzip if the name ends in ``.gz``."""

    def fields(doc: Doc) -> dict[str, Any]:
        page = {} if doc.page_id is None else {"page_id": doc.page_id}
        span = {} if doc.start is None else {"start": doc.start, "end": doc.end}
        return {"doc_id": doc.doc_id, "title": doc.title, "text": doc.text, **page, **span, **doc.columns}

    _write_jsonl(path, map(fields, docs))
