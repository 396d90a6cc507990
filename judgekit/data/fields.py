"""How the fields of a record are found by name and checked; every problem is an error with its line.

judgekit's own names come first, those of BEIR and other common collections next.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.records import Record, as_number, kind_of
from judgekit.data.tables import ALL, id_problem
from judgekit.errors import DataError, nearest

__all__ = ["DOC", "QUERY", "Names", "Source", "doc_of", "docs_of", "queries_of", "query_of"]

Names = Mapping[str, tuple[str, ...]]
"""The names under which each field may be found; the first is judgekit's own."""

QUERY: Final[Names] = {
    "id": ("query_id", "_id", "qid", "question_id", "id"),
    "text": ("text", "question", "query"),
    "answers": ("answers", "answer", "references"),
    "language": ("language",),
    "messages": ("messages",),
}
DOC: Final[Names] = {
    "start": ("start",),
    "end": ("end",),
    "id": ("doc_id", "_id", "docid", "docno", "pid", "passage_id", "id"),
    "text": ("text", "contents", "passage", "body"),
    "title": ("title",),
    "page": ("page_id", "wikipedia_id"),
}


@dataclass(frozen=True)
class Source:
    """The file that records come from, and what they are.

    Attributes:
        path: the file; None for a DataFrame.
        format: its format's name; the records of ``parquet`` and ``frame`` are rows.
        names: where each field may be found.
        what: ``query`` or ``doc``, for error messages.
        inside: where in a record the fields are, e.g. ``ctxs[3]``.
    """

    path: Path | None
    format: str
    names: Names
    what: str
    inside: str = ""

    @property
    def _rows(self) -> bool:
        return self.format in ("parquet", "frame")

    def within(self, inside: str, names: Names, what: str) -> Self:
        """Return the same source for objects inside of its records."""
        return replace(self, inside=inside, names=names, what=what)

    def error(self, record: Record, reason: str) -> DataError:
        """Return the error for a record."""
        reason = f"{self.inside}: {reason}" if self.inside else reason
        if self._rows:
            table = "" if self.path else f"the {self.what} table, "
            return DataError(f"{table}row {record.line}: {reason}", self.path)
        return DataError(reason, self.path, record.line)

    def repeated(self, record: Record, identifier: str, first: int) -> DataError:
        """Return the error for an id that was there before."""
        unit = "row" if self._rows else "line"
        return self.error(record, f"{self.what} {identifier!r} is there twice (first on {unit} {first})")

    def nothing(self, what: str) -> DataError:
        """Return the error for a file or table without records."""
        return DataError(f"{'' if self.path else 'the table '}holds no {what}", self.path)

    def find(self, record: Record, key: str) -> str | None:
        """Return the name under which a record holds a field, or None; null counts as absent."""
        names = self.names[key]
        present = [name for name in names if record.fields.get(name) is not None]
        if len(present) > 1 and present[0] != names[0]:
            both = " and ".join(map(repr, present))
            choice = f'e.g. format="{self.format}({key}={present[0]})"' if self.path else "by renaming the other"
            raise self.error(record, f"has {both}; say which one is meant, {choice}")
        return present[0] if present else None

    def need(self, record: Record, key: str) -> str:
        """Return the name under which a record holds a field that has to be there."""
        name = self.find(record, key)
        if name is not None:
            return name
        names = self.names[key]
        for candidate in names:
            if candidate in record.fields:
                raise self.error(record, f"{candidate!r} must be a string, is null")
        have = ", ".join(map(repr, record.fields)) or "none"
        others = f" (or {', '.join(map(repr, names[1:]))})" if len(names) > 1 else ""
        hint = nearest(names[0], map(str, record.fields))
        raise self.error(record, f"this {self.what} lacks the field {names[0]!r}{others}; it has: {have}.{hint}")

    def string(self, record: Record, name: str, value: Any) -> str:
        """Return a value that has to be a string which a UTF-8 file can hold."""
        if not isinstance(value, str):
            raise self.error(record, f"{name!r} must be a string, is {kind_of(value)}")
        if "\0" in value:
            raise self.error(record, f"{name!r} holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                half = ascii(value[error.start])
                raise self.error(
                    record, f"{name!r} holds {half}, half of a surrogate pair, which is not a character"
                ) from error
        return value

    def id(self, record: Record, key: str = "id") -> str:
        """Return an id: a string that is not empty and holds no white space."""
        name = self.need(record, key)
        value = record.fields[name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise self.error(record, f'{name!r} is the number {value}; ids are strings, write "{value}"')
        text = self.string(record, name, value)
        problem = id_problem(text)
        if problem:
            raise self.error(record, f"{name!r} {problem}")
        return text

    def text(self, record: Record, key: str = "text") -> str:
        """Return a text that has to be there; it may be empty."""
        name = self.need(record, key)
        return self.string(record, name, record.fields[name])

    def optional(self, record: Record, key: str) -> str:
        """Return a text, "" where it is absent."""
        name = self.find(record, key)
        return "" if name is None else self.string(record, name, record.fields[name])

    def answers(self, record: Record) -> tuple[str, ...]:
        """Return the reference answers, () where there are none."""
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
            if not isinstance(answer, str):
                raise self.error(record, f"{name!r} must be a list of strings, holds {kind_of(answer)}")
            if not self.string(record, name, answer).strip():
                raise self.error(record, f"{name!r} holds an empty answer")
        return tuple(value)

    def _cell(self, record: Record, name: str, cell: str) -> Any:
        if not cell.lstrip().startswith("["):
            return [cell] if cell else []
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise self.error(record, f'{name!r} begins with "[" but is not a JSON list: {cell[:60]}') from error

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(name for names in self.names.values() for name in names)

    def columns(self, record: Record) -> dict[str, str]:
        """Return what else a record holds, as texts: all but lists and objects."""
        others = [name for name in record.fields if name not in self._known]
        return {name: self._shown(record, name) for name in others if not isinstance(record.fields[name], list | dict)}

    def _shown(self, record: Record, name: str) -> str:
        value = record.fields[name]
        return "" if value is None else self.string(record, name, str(value))

    def messages(self, record: Record) -> tuple[dict[str, str], ...]:
        """Return the conversation, () where there is none; in CSV and TSV a cell holds it as JSON."""
        name = self.find(record, "messages") or "messages"
        value = record.fields.get(name)
        if isinstance(value, str):
            value = self._cell(record, name, value)
        keys = ("role", "content")
        for one in value or ():
            if not (isinstance(one, dict) and all(isinstance(one.get(key), str) for key in keys)):
                raise self.error(record, f"{name!r} must be a list of objects with role and content, two strings")
        return tuple({key: self.string(record, name, one[key]) for key in keys} for one in value or ())


def query_of(source: Source, record: Record, query_id: str) -> Query:
    """Return the query that a record holds, under an id; the last message is the text of one that has no other."""
    language, messages = source.optional(record, "language").strip(), source.messages(record)
    asked = messages and messages[-1]["role"] == "user" and source.find(record, "text") is None
    text = messages[-1]["content"] if asked else source.text(record)
    return Query(query_id, text, source.answers(record), language, messages, source.columns(record))


def queries_of(source: Source, records: Iterable[Record]) -> dict[str, Query]:
    """Return the queries that records hold, by id, in their order.

    Raises:
        DataError: a record holds no query, an id is there twice or is the reserved one, or there is no record.
    """
    queries: dict[str, Query] = {}
    where: dict[str, int] = {}
    for record in records:
        query = query_of(source, record, source.id(record))
        if query.query_id == ALL:
            raise source.error(record, f"the query id {ALL!r} is reserved: it marks means over queries")
        if not query.text.strip():
            raise source.error(record, f"the text of query {query.query_id!r} is empty")
        if query.query_id in queries:
            raise source.repeated(record, query.query_id, where[query.query_id])
        queries[query.query_id] = query
        where[query.query_id] = record.line
    if not queries:
        raise source.nothing("queries")
    return queries


def doc_of(source: Source, record: Record) -> Doc:
    """Return the doc that a record holds."""
    page = source.id(record, "page") if source.find(record, "page") else None
    span = (None, None) if page is None else (_offset(source, record, "start"), _offset(source, record, "end"))
    title = source.optional(record, "title")
    first, last = _checked(source, record, *span)
    return Doc(source.id(record), source.text(record), title, page, first, last, source.columns(record))


def _offset(source: Source, record: Record, key: str) -> int | None:
    """Return a number of characters, which CSV holds as a text; None if it is absent."""
    name = source.find(record, key)
    value = None if name is None else record.fields[name]
    if value is None or value == "":
        return None
    number = math.nan if isinstance(value, bool) else as_number(value)
    if not (math.isfinite(number) and number >= 0 and number == int(number)):
        raise source.error(record, f"{name!r} must be a whole number of characters of the page, from 0, is {value!r}")
    return int(number)


def _checked(source: Source, record: Record, start: int | None, end: int | None) -> tuple[int | None, int | None]:
    if (start is None) != (end is None):
        raise source.error(record, f"has {'an end' if start is None else 'a start'} on its page and not both ends")
    if start is not None and end is not None and start >= end:
        raise source.error(record, f"ends on its page at {end}, which is not behind its start at {start}")
    return start, end


def docs_of(source: Source, records: Iterable[Record]) -> MemoryDocs:
    """Return the docs that records hold.

    Raises:
        DataError: a record holds no doc, an id is there twice, or there is no record.
    """
    docs: dict[str, Doc] = {}
    where: dict[str, int] = {}
    for record in records:
        doc = doc_of(source, record)
        if doc.doc_id in docs:
            raise source.repeated(record, doc.doc_id, where[doc.doc_id])
        docs[doc.doc_id] = doc
        where[doc.doc_id] = record.line
    if not docs:
        raise source.nothing("docs")
    return MemoryDocs(docs.values())
