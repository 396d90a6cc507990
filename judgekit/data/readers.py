"""Readers and writers of queries and docs, and of the retrieval JSON of DPR and FiD.

A record's fields are recognised by their names; judgekit's own (`query_id, text, answers` and
`doc_id, text, title, page_id`) come first, those of BEIR and other common collections next. Which one is meant can be
told: ``format="jsonl(id=qid, text=question)"``.

Rules that hold for all formats, each with its line in the error:

* Ids are strings, without white space (TREC files could not hold them); a JSON number is refused, because ``7`` may
  once have been ``"007"``. The query id ``all`` is reserved.
* Reference answers are a list of strings under ``answers`` (or ``references``). A bare string is read as one answer
  only under the singular name ``answer``. In CSV and TSV a cell holds one answer, or a JSON list of them.
* An absent or null title, page id or list of answers is none. The text of a doc may be empty, that of a query not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.data.documents import Doc, MemoryDocs, Queries, Query
from judgekit.data.records import Record, kind_of, records
from judgekit.data.streams import open_atomic
from judgekit.data.tables import ALL
from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import parse

__all__ = ["id_problem", "read_docs", "read_queries", "write_docs", "write_queries"]

_QUERY: Mapping[str, tuple[str, ...]] = {
    "id": ("query_id", "_id", "qid", "question_id", "id"),
    "text": ("text", "question", "query"),
    "answers": ("answers", "answer", "references"),
}
_DOC: Mapping[str, tuple[str, ...]] = {
    "id": ("doc_id", "_id", "docid", "docno", "pid", "passage_id", "id"),
    "text": ("text", "contents", "passage", "body"),
    "title": ("title",),
    "page": ("page_id", "wikipedia_id"),
}
_UNFIT = re.compile(r"[\s\0]")


def id_problem(text: str) -> str | None:
    """Return why a string cannot be the id of a query or doc, or None."""
    if not text:
        return "is empty"
    if _UNFIT.search(text):
        return f"{text!r} holds white space, which TREC files cannot hold"
    return None


@dataclass(frozen=True)
class _Source:
    """The records of one file, and how their fields are found and checked."""

    path: Path
    format: str
    names: Mapping[str, tuple[str, ...]]
    what: str

    def error(self, record: Record, reason: str) -> DataError:
        if self.format == "parquet":
            return DataError(f"row {record.line}: {reason}", self.path)
        return DataError(reason, self.path, record.line)

    def find(self, record: Record, key: str) -> str | None:
        """Return the name under which a record holds a field; the first of the known names is our own."""
        names = self.names[key]
        present = [name for name in names if record.fields.get(name) is not None]
        if len(present) > 1 and present[0] != names[0]:
            both = " and ".join(map(repr, present))
            raise self.error(
                record, f'has {both}; say which one is meant, e.g. format="{self.format}({key}={present[0]})"'
            )
        return present[0] if present else None

    def need(self, record: Record, key: str) -> str:
        name = self.find(record, key)
        if name is not None:
            return name
        names = self.names[key]
        for candidate in names:
            if candidate in record.fields:
                raise self.error(record, f"{candidate!r} must be a string, is null")
        have = ", ".join(map(repr, record.fields)) or "none"
        others = f" (or {', '.join(map(repr, names[1:]))})" if len(names) > 1 else ""
        hint = nearest(names[0], record.fields) if record.fields else ""
        raise self.error(record, f"this {self.what} lacks the field {names[0]!r}{others}; it has: {have}.{hint}")

    def string(self, record: Record, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(record, f"{name!r} must be a string, is {kind_of(value)}")
        if "\0" in value:
            raise self.error(record, f"{name!r} holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                broken = f"half of a surrogate pair, {value[error.start]!r}"
                raise self.error(record, f"{name!r} holds {broken}, which is no character") from error
        return value

    def id(self, record: Record, key: str = "id") -> str:
        name = self.need(record, key)
        value = record.fields[name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise self.error(record, f'{name!r} is the number {value}; ids are strings, write "{value}"')
        text = self.string(record, name, value)
        problem = id_problem(text)
        if problem:
            raise self.error(record, f"{name!r} {problem}")
        return text

    def text(self, record: Record, key: str) -> str:
        name = self.need(record, key)
        return self.string(record, name, record.fields[name])

    def optional(self, record: Record, key: str) -> str:
        name = self.find(record, key)
        return "" if name is None else self.string(record, name, record.fields[name])

    def answers(self, record: Record) -> tuple[str, ...]:
        name = self.find(record, "answers")
        if name is None:
            return ()
        value = record.fields[name]
        if self.format in ("csv", "tsv"):
            value = self._cell(record, name, value)
        elif isinstance(value, str) and name == "answer":
            value = [value]
        if not isinstance(value, list):
            raise self.error(record, f"{name!r} must be a list of strings, is {kind_of(value)}")
        for answer in value:
            if not self.string(record, name, answer).strip():
                raise self.error(record, f"{name!r} holds an empty answer")
        return tuple(value)

    def _cell(self, record: Record, name: str, cell: str) -> Any:
        if not cell.lstrip().startswith("["):
            return [cell] if cell else []
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise self.error(record, f'{name!r} begins with "[" but is no JSON list: {cell[:60]}') from error


def _open(
    path: str | Path, format: str, names: Mapping[str, tuple[str, ...]], what: str
) -> tuple[_Source, Iterator[Record]]:
    path, spec = Path(path), parse(format)
    chosen = {key: value for key, value in spec.options.items() if key not in ("header", "quote")}
    for key in chosen:
        if key not in names:
            known = ", ".join([*names, "header", "quote"])
            raise UsageError(f"format {format!r}: no option {key!r} (there are: {known}).{nearest(key, names)}")
    fields = {key: (str(chosen[key]),) if key in chosen else known for key, known in names.items()}
    name, found = records(path, spec, f"{what} records (JSON lines, JSON, CSV, TSV or Parquet)")
    return _Source(path, name, fields, what), found


def _query_records(path: str | Path, format: str) -> Iterator[tuple[_Source, Record, Query]]:
    source, found = _open(path, format, _QUERY, "query")
    for record in found:
        query = Query(source.id(record), source.text(record, "text"), source.answers(record))
        if query.query_id == ALL:
            raise source.error(record, f"the query id {ALL!r} is reserved: it marks means over queries")
        if not query.text.strip():
            raise source.error(record, f"the text of query {query.query_id!r} is empty")
        yield source, record, query


def read_queries(path: str | Path, format: str = "auto") -> Queries:
    """Read queries from JSON lines, a JSON array, CSV, TSV or Parquet (plain or gzip).

    Args:
        path: the file.
        format: ``auto``, or e.g. ``"jsonl(id=qid, text=question, answers=gold)"``; see `judgekit.data.records`.

    Returns:
        The queries by id, in the order of the file.

    Raises:
        DataError: see the module's rules; the message has file, line and reason.
        UsageError: there is no such format or option.
    """
    queries: dict[str, Query] = {}
    where: dict[str, int] = {}
    for source, record, query in _query_records(path, format):
        if query.query_id in queries:
            first = where[query.query_id]
            raise source.error(record, f"query {query.query_id!r} is there twice (first on line {first})")
        queries[query.query_id] = query
        where[query.query_id] = record.line
    if not queries:
        raise DataError("holds no queries", path)
    return queries


def _doc_records(path: str | Path, format: str) -> Iterator[tuple[_Source, Record, Doc]]:
    source, found = _open(path, format, _DOC, "doc")
    for record in found:
        page = source.id(record, "page") if source.find(record, "page") else None
        doc = Doc(source.id(record), source.text(record, "text"), source.optional(record, "title"), page)
        yield source, record, doc


def read_docs(path: str | Path, format: str = "auto") -> MemoryDocs:
    """Read a collection from JSON lines, a JSON array, CSV, TSV or Parquet (plain or gzip).

    Args:
        path: the file, or a folder of Parquet parts.
        format: ``auto``, or e.g. ``"tsv(header='id,text', quote=none)"``; see `judgekit.data.records`.

    Raises:
        DataError: see the module's rules; the message has file, line and reason.
        UsageError: there is no such format or option.
    """
    where: dict[str, int] = {}

    def docs() -> Iterator[Doc]:
        for source, record, doc in _doc_records(path, format):
            first = where.setdefault(doc.doc_id, record.line)
            if first != record.line:
                raise source.error(record, f"doc {doc.doc_id!r} is there twice (first on line {first})")
            yield doc

    collection = MemoryDocs(docs())
    if not len(collection):
        raise DataError("holds no docs", path)
    return collection


def _write_jsonl(path: str | Path, objects: Iterable[dict[str, Any]]) -> None:
    with open_atomic(path) as stream:
        for fields in objects:
            stream.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")


def write_queries(queries: Queries | Iterable[Query], path: str | Path) -> None:
    """Write queries as JSON lines that `read_queries` reads back; gzip if the name ends in ``.gz``."""
    found = queries.values() if isinstance(queries, Mapping) else queries
    _write_jsonl(path, ({"query_id": q.query_id, "text": q.text, "answers": list(q.answers)} for q in found))


def write_docs(docs: Iterable[Doc], path: str | Path) -> None:
    """Write docs as JSON lines that `read_docs` reads back; gzip if the name ends in ``.gz``."""

    def fields(doc: Doc) -> dict[str, Any]:
        page = {} if doc.page_id is None else {"page_id": doc.page_id}
        return {"doc_id": doc.doc_id, "title": doc.title, "text": doc.text, **page}

    _write_jsonl(path, map(fields, docs))
