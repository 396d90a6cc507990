"""Readers and writers of queries and docs in files; `judgekit.data.forms` recognises what a file holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgekit.data.disk import GivenDocs, large, on_disk
from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, Query
from judgekit.data.fields import QUERY, docs_of, queries_of
from judgekit.data.forms import fetched, ir_dataset, item_fields
from judgekit.data.sources import contents, located, opened
from judgekit.data.streams import open_atomic
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError, not_among

__all__ = [
    "check_numbers",
    "read_column",
    "read_docs",
    "read_queries",
    "write_docs",
    "write_queries",
]

Files = str | Path | Sequence[str | Path]


def _each(files: Files) -> list[str | Path]:
    return [files] if isinstance(files, str | Path) else list(files)


def read_queries(files: Files, format: str = "auto") -> Queries:
    """Read queries.

    Args:
        files: the file, ``FORM:FILE``, or several files, whose queries are taken together; of a BEIR folder those that
            its judgments (``beir(split=test)``) are about.
        format: the form, where content does not tell, e.g. ``"jsonl(id=qid, text=question, answers=gold)"``.

    Returns:
        The queries by id, in the order of the files.

    Raises:
        DataError: see `judgekit.data.fields`; the message has file, line and reason.
        UsageError: there is no such form or option.
    """
    queries: dict[str, Query] = {}
    for file in _each(files):
        some = queries_of(*opened(file, "query", format))
        place = located(file, "query", format).path
        if place.name.startswith("queries.jsonl") and (place.parent / "qrels").is_dir() and place != Path(file):
            judged = set(read_qrels(file, format=format).row_queries)
            some = {query_id: query for query_id, query in some.items() if query_id in judged} or some
        for query_id, query in some.items():
            if queries.setdefault(query_id, query).text != query.text:
                raise DataError(f"query {query_id!r} has a different text than in an earlier file", place)
    return queries


def read_column(path: str | Path, column: str) -> dict[str, str]:
    """Return a further column of a query file, by query id."""
    source, records = opened(path, "query")
    cells: dict[str, str] = {}
    for record in records:
        if column not in record.fields:
            raise source.error(record, not_among("column", column, map(str, record.fields)))
        value = record.fields[column]
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            raise source.error(record, f"{column!r} must be a text or a whole number here, not {value!r}")
        cells[source.get(record, "id")] = str(value)
    return cells


def read_docs(
    files: Files, format: str = "auto", *, memory_limit: int | None = None, index: str | Path | None = None
) -> Docs:
    """Read a collection of documents; a large one is checked once and then stays on disk, see `judgekit.data.disk`.

    Args:
        files: the file, a folder of Parquet parts, ``FORM:FILE``, or several files, whose docs are taken together: the
            same doc may be in more than one.
        format: the form, where content does not tell, e.g. ``"tsv(header='id,text', quote=none)"``.
        memory_limit: bytes above which the collection stays on disk; compressed files count fourfold.
        index: the folder for what is kept of it between commands; the cache folder by default.

    Raises:
        DataError: see `judgekit.data.fields`; the message has file, line and reason.
        UsageError: there is no such form or option.
    """
    collections = [_docs(file, format, memory_limit, index) for file in _each(files)]
    if len(collections) == 1:
        return collections[0]
    docs: dict[str, Doc] = {}
    for file, some in zip(_each(files), collections, strict=True):
        if not isinstance(some, MemoryDocs):
            raise DataError("is too large to be one of several collections: put all docs into one file", file)
        for doc in some:
            if docs.setdefault(doc.doc_id, doc) != doc:
                raise DataError(f"doc {doc.doc_id!r} has a different title or text than in an earlier file", file)
    return MemoryDocs(docs.values())


def _docs(file: str | Path, format: str, memory_limit: int | None, index: str | Path | None) -> Docs:
    place = located(file, "doc", format)
    if place.format.name == "ir_datasets":
        name = str(place.path)
        store = ir_dataset(name).docs_store()

        def look_up(ids: list[str]) -> dict[str, dict[str, Any]]:
            with fetched(name):
                return {i: item_fields(doc) for i, doc in store.get_many(ids).items()}

        return GivenDocs(look_up)
    if large(place.path, memory_limit):
        return on_disk(place, f"{file} {format}", index)
    source, records = contents(place, "doc")
    return docs_of(source, records, again=bool(source.form))


def check_numbers(file: str | Path, queries: Queries) -> None:
    """Refuse a run in retrieval JSON whose questions have no ids and are in another order than the queries."""
    place = located(file, "run")
    if place.format.name not in ("auto", "dpr", "json", "jsonl") or contents(place, "run")[0].form != "dpr":
        return
    source, records = opened(file, "query")
    for number, record in enumerate(records, 1):
        own = any(name in record.fields for name in QUERY["id"][1:]) or record.fields["query_id"] != f"q{number}"
        known = queries.get(f"q{number}")
        text = None if own else source.get(record, "text")
        if known is not None and text is not None and known.text != text:
            raise source.error(
                record,
                f"question {number} is {text[:60]!r}, and query {known.query_id!r} is {known.text[:60]!r}: questions"
                " without ids must be in the same order in all files",
            )


def write_queries(queries: Queries | Iterable[Query], path: str | Path) -> None:
    """Write queries as JSON lines that `read_queries` reads back; compressed if the name ends in ``.gz``."""

    def fields(query: Query) -> dict[str, Any]:
        language = {"language": query.language} if query.language else {}
        messages = {"messages": list(query.messages)} if query.messages else {}
        known = {"query_id": query.query_id, "text": query.text, "answers": list(query.answers), **language}
        return {**known, **messages, **query.columns}

    _write_jsonl(path, map(fields, queries.values() if isinstance(queries, Mapping) else queries))


def write_docs(docs: Iterable[Doc], path: str | Path) -> None:
    """Write docs as JSON lines that `read_docs` reads back; compressed if the name ends in ``.gz``."""

    def fields(doc: Doc) -> dict[str, Any]:
        page = {} if doc.page_id is None else {"page_id": doc.page_id}
        span = {} if doc.start is None else {"start": doc.start, "end": doc.end}
        return {"doc_id": doc.doc_id, "title": doc.title, "text": doc.text, **page, **span, **doc.columns}

    _write_jsonl(path, map(fields, docs))


def _write_jsonl(path: str | Path, objects: Iterable[dict[str, Any]]) -> None:
    with open_atomic(path) as stream:
        for fields in objects:
            stream.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")
