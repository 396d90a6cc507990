"""Queries and documents, and the one function that renders a document as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, Protocol

from judgekit.errors import DataError, nearest, not_among

BYTES_PER_TOKEN: Final = 4
Fields = Literal["title+text", "text"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question and its reference answers, if any.

    Attributes:
        query_id: its id, as in runs and qrels.
        text: the question.
        answers: reference answers, each of them right.
        language: a code such as ``fi`` or ``pt-BR``, or "".
        messages: the conversation that it ends, each message with ``role`` and ``content``; may be empty.
        columns: further fields of its record by name, as texts, for prompts.
    """

    query_id: str
    text: str
    answers: tuple[str, ...] = ()
    language: str = ""
    # Queries need a hash for grouping answers, and dictionaries have none.
    messages: tuple[Mapping[str, str], ...] = field(default=(), hash=False)
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)

    def column(self, name: str) -> str:
        """Return what ``{query.NAME}`` shows: a column, ``messages``, or ``history`` (the earlier messages).

        Raises:
            DataError: there is no such column.
        """
        if self.messages and name in ("messages", "history") and name not in self.columns:
            messages = self.messages
            # The last message is the question itself, where the user wrote it.
            if name == "history" and messages[-1]["role"] == "user":
                messages = messages[:-1]
            return "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        return _column(f"query {self.query_id!r}", self.columns, name)

    def group(self, name: str) -> str:
        """Return the question's group: its value in the column ``name`` (or its language).

        Raises:
            DataError: there is no such column, or it is empty.
        """
        columns = {"language": self.language, **self.columns}
        if not columns.get(name):
            raise DataError(f"question {self.query_id!r} has no group: {not_among('column', name, columns)}")
        return columns[name]


@dataclass(frozen=True, slots=True)
class Doc:
    """A passage that can be retrieved.

    Attributes:
        doc_id: its id, as in runs and qrels.
        text: the passage.
        title: its title, or "".
        page_id: id of the page that it was cut from.
        start, end: its span on that page in characters: from ``start`` (0 is the first) up to, without, ``end``.
        columns: further fields of its record by name, as texts, for prompts.
    """

    doc_id: str
    text: str
    title: str = ""
    page_id: str | None = None
    start: int | None = None
    end: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)

    def column(self, name: str) -> str:
        """Return what ``{doc.NAME}`` shows.

        Raises:
            DataError: there is no such column.
        """
        return _column(f"doc {self.doc_id!r}", self.columns, name)


def _column(whose: str, columns: Mapping[str, str], name: str) -> str:
    if name not in columns:
        have = ", ".join(columns) or "none"
        raise DataError(
            f"{whose} has no column {name!r}, which the prompt shows (it has: {have}).{nearest(name, columns)} Where"
            " you have nothing to show, leave the column empty."
        )
    return columns[name]


@dataclass(frozen=True, slots=True)
class Unit:
    """A query and the docs to label, or to answer from, together, best first; no docs means closed book."""

    query: Query
    docs: tuple[Doc, ...]


Queries = Mapping[str, Query]
"""Queries by id, in the order of their file."""


def record_of(item: Query | Doc) -> dict[str, Any]:
    """Return the fields of a query or doc by name, as in a record, including further columns."""
    held = {field.name: getattr(item, field.name) for field in fields(item)}
    columns: Mapping[str, str] = held.pop("columns")
    # An empty title or a missing answer is worth showing in a file; other fields only if present.
    shown = ("title", "text", "answers")
    return {name: value for name, value in held.items() if name in shown or value not in (None, "", ())} | {**columns}


class Docs(Protocol):
    """Looks documents up by id, in memory or on disk."""

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents, in the order of the given ids.

        Raises:
            DataError: an id is unknown; the message names it.
        """
        ...

    def __getitem__(self, doc_id: str) -> Doc: ...

    def __contains__(self, doc_id: object) -> bool: ...

    def __len__(self) -> int: ...


def unknown_doc(doc_id: object) -> DataError:
    """Return the error for a document that is not in a collection."""
    return DataError(f"doc {doc_id!r} is not in the collection")


class MemoryDocs:
    """A collection held in memory."""

    def __init__(self, docs: Iterable[Doc]) -> None:
        self._docs: dict[str, Doc] = {}
        for doc in docs:
            if doc.doc_id in self._docs:
                raise DataError(f"doc {doc.doc_id!r} appears twice")
            self._docs[doc.doc_id] = doc

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents, in the order of the given ids; raise a `DataError` for an unknown id."""
        try:
            return [self._docs[i] for i in doc_ids]
        except KeyError as error:
            raise unknown_doc(error.args[0]) from None

    def __getitem__(self, doc_id: str) -> Doc:
        """Return the document of an id; raise a `DataError` for an unknown one."""
        return self.get([doc_id])[0]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._docs

    def __len__(self) -> int:
        return len(self._docs)

    def __iter__(self) -> Iterator[Doc]:
        return iter(self._docs.values())


def render(doc: Doc, fields: Fields = "title+text") -> str:
    """Return the text of a document for prompts and for containment: title, newline, text."""
    # Containment and prompts must see the same text; otherwise an answer in the title counts for one of them only.
    if fields == "text" or not doc.title:
        return doc.text
    return f"{doc.title}\n{doc.text}"


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text: one per four bytes of UTF-8, rounded up."""
    # The same rule as for cost estimates: the tokenizer of an endpoint is unknown.
    return -(-len(text.encode()) // BYTES_PER_TOKEN)
