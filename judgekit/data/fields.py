"""How the fields of a record are found by name and checked; every problem is an error with its line.

judgekit's own names come first, those of BEIR and other common collections next. Rules for all forms:

* Ids are strings, without white space (TREC files could not hold them); a JSON number is refused, because ``7`` may
  once have been ``"007"``. The query id ``all`` is reserved.
* Reference answers are a list of strings under ``answers`` (or ``references``). A bare string is read as one answer
  only under the singular name ``answer``. In CSV and TSV a cell holds one answer, or a JSON list of them.
* A null title, page id, language or list of answers counts as absent. The text of a doc may be empty, that of a
  query not.
* Empty lines are errors, except at the end of the file.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.records import Record, as_number, kind_of
from judgekit.data.tables import ALL, id_problem
from judgekit.errors import DataError, nearest

__all__ = ["DOC", "NAMES", "QUERY", "Names", "Source", "doc_of", "docs_of", "queries_of", "query_of", "rows_of"]

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
_PAIR: Final[Names] = {
    "query": ("query_id", "query-id", "qid", "topic_id", "topic", "q_id"),
    "doc": ("doc_id", "corpus-id", "docid", "docno", "pid", "passage_id", "doc"),
}
NAMES: Final[Mapping[str, Names]] = {
    "query": QUERY,
    "doc": DOC,
    "run": {**_PAIR, "score": ("score", "sim", "similarity"), "rank": ("rank",)},
    "qrels": {**_PAIR, "relevance": ("relevance", "rel", "label", "grade", "judgment", "score")},
    "answer": {"id": ("query_id", "_id", "qid", "question_id", "id"), "answer": ("answer", "response", "output")},
}
"""The names of the fields of each kind of record."""


@dataclass(frozen=True)
class Source:
    """The file that records come from, and what they are.

    Attributes:
        path: the file; None for a DataFrame.
        format: its format's name; the records of ``parquet`` and ``frame`` are rows.
        names: where each field may be found.
        what: ``query``, ``doc``, …, for error messages.
    """

    path: Path | None
    format: str
    names: Names
    what: str

    @property
    def _rows(self) -> bool:
        return self.format in ("parquet", "frame")

    def of(self, names: Names, what: str) -> Self:
        """Return the same source for other objects, such as those inside of its records."""
        return replace(self, names=names, what=what)

    def error(self, record: Record, reason: str) -> DataError:
        """Return the error for a record."""
        reason = f"{record.inside}: {reason}" if record.inside else reason
        if self._rows:
            table = "" if self.path else f"the {self.what} table, "
            return DataError(f"{table}row {record.line}: {reason}", self.path)
        return DataError(reason, self.path, record.line)

    def repeated(self, record: Record, identifier: str, first: int) -> DataError:
        """Return the error for an id that was there before."""
        unit = "row" if self._rows else "line"
        return self.error(record, f"{self.what} {identifier!r} appears twice (first on {unit} {first})")

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
            raise self.error(record, f"has {both}; choose one, {choice}")
        return present[0] if present else None

    def need(self, record: Record, key: str) -> str:
        """Return the name under which a record holds a field that has to be there."""
        name = self.find(record, key)
        if name is None:
            raise self.lacks(record, key)
        return name

    def lacks(self, record: Record, key: str) -> DataError:
        """Return the error for a record without a field."""
        names = self.names[key]
        null = next((name for name in names if name in record.fields), None)
        if null is not None:
            return self.error(record, f"{null!r} must be a string, not null")
        have = ", ".join(map(repr, record.fields)) or "none"
        others = f" (or {', '.join(map(repr, names[1:]))})" if len(names) > 1 else ""
        hint = nearest(names[0], map(str, record.fields))
        return self.error(record, f"this {self.what} lacks the field {names[0]!r}{others}; it has: {have}.{hint}")

    def string(self, record: Record, name: str, value: Any) -> str:
        """Return a value that has to be a string which a UTF-8 file can hold."""
        if not isinstance(value, str):
            raise self.error(record, f"{name!r} must be a string, not {kind_of(value)}")
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

    def number(self, record: Record, key: str) -> float | None:
        """Return a finite number, or a text that holds one (as in CSV, and as DPR writes scores); None if absent."""
        name = self.find(record, key)
        if name is None:
            return None
        value = record.fields[name]
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float | str) else as_number(value)
        if not math.isfinite(number):
            raise self.error(record, f"{name!r} must be a finite number, not {value!r}")
        return number

    def answers(self, record: Record) -> tuple[str, ...]:
        """Return the reference answers, () where there are none."""
        name = self.find(record, "answers")
        if name is None:
            return ()
        value = record.fields[name]
        if self.format in ("csv", "tsv") and isinstance(value, str):
            value = self.cell(record, name, value)
        elif isinstance(value, str) and name == "answer":
            value = [value]
        if not isinstance(value, list):
            raise self.error(record, f"{name!r} must be a list of strings, not {kind_of(value)}")
        for answer in value:
            if not isinstance(answer, str):
                raise self.error(record, f"{name!r} must be a list of strings, holds {kind_of(answer)}")
            if not self.string(record, name, answer).strip():
                raise self.error(record, f"{name!r} holds an empty answer")
        return tuple(value)

    def cell(self, record: Record, name: str, cell: str, *, python: bool = False) -> Any:
        """Return a cell of CSV as a list: a JSON list, with ``python`` also as Python writes one, else one text."""
        if not cell.lstrip().startswith("["):
            return [cell] if cell else []
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            if python:
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    return ast.literal_eval(cell)
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
            value = self.cell(record, name, value)
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
    told = source.find(record, "page")
    empty = source.format in ("csv", "tsv") and told is not None and record.fields[told] == ""
    page = source.id(record, "page") if told and not empty else None
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
        raise source.error(record, f"{name!r} must be a whole number of characters of the page, from 0, not {value!r}")
    return int(number)


def _checked(source: Source, record: Record, start: int | None, end: int | None) -> tuple[int | None, int | None]:
    if (start is None) != (end is None):
        raise source.error(record, f"has {'an end' if start is None else 'a start'} on its page, but not both")
    if start is not None and end is not None and start >= end:
        raise source.error(record, f"ends on its page at {end}, which is not after its start at {start}")
    return start, end


def docs_of(source: Source, records: Iterable[Record], *, again: bool = False) -> MemoryDocs:
    """Return the docs that records hold; with ``again`` the same doc may be there more than once.

    Raises:
        DataError: a record holds no doc, an id is there twice, or there is no record.
    """
    docs: dict[str, Doc] = {}
    where: dict[str, int] = {}
    for record in records:
        doc = doc_of(source, record)
        if again and docs.get(doc.doc_id, doc) != doc:
            raise source.error(record, f"doc {doc.doc_id!r} has a different title or text than before")
        if not again and doc.doc_id in docs:
            raise source.repeated(record, doc.doc_id, where[doc.doc_id])
        docs[doc.doc_id] = doc
        where[doc.doc_id] = record.line
    if not docs:
        raise source.nothing("docs")
    return MemoryDocs(docs.values())


def rows_of(
    source: Source, records: Iterable[Record], value: str, problem: Callable[[float], str | None]
) -> tuple[list[str], list[str], list[float]]:
    """Return the queries, docs and numbers that the records of a run or of qrels hold.

    Args:
        source: what they come from.
        records: the records.
        value: ``score`` or ``relevance``. Where no record has a score its rank counts, and in lists of passages their
            order.
        problem: says what is wrong with a number, or None.

    Raises:
        DataError: with the line: an id or a number is missing or wrong, a pair is there twice, or only some records
            have a score.
    """
    values: list[float] = []
    seen: dict[tuple[str, str], int] = {}
    scored: bool | None = None
    for record in records:
        pair = source.id(record, "query"), source.id(record, "doc")
        if pair[0] == ALL:
            raise source.error(record, f"the query id {ALL!r} is reserved for means over queries")
        if pair in seen:
            reason = f"doc {pair[1]!r} appears twice for query {pair[0]!r} (first on line {seen[pair]})"
            raise source.error(record, reason)
        seen[pair] = record.line
        number = source.number(record, value)
        if value == "score":
            scored = number is not None if scored is None else scored
            if scored != (number is not None):
                raise source.error(record, "some passages of this file have a 'score', others have none")
            rank = source.number(record, "rank") if number is None else None
            number = -rank if rank is not None else number
        if number is None:
            raise source.lacks(record, value)
        wrong = problem(number)
        if wrong is not None:
            raise source.error(record, f"the {value} {wrong}")
        values.append(number)
    return [query for query, _ in seen], [doc for _, doc in seen], values
