"""Finds the fields of a record by name and checks them; every problem is an error with its line.

judgekit's own names come first, those of BEIR and other common collections next. Rules for all forms:

* Ids are strings, without white space (TREC files could not hold them); a JSON number is refused, because ``7`` may
  once have been ``"007"``. The query id ``all`` is reserved.
* Reference answers are a list of strings under ``answers`` (or ``references``). A bare string is read as one answer
  only under a singular name, ``answer`` or ``reference``. In CSV and TSV a cell holds one answer, or a JSON list.
* A null title, page id, language or list of answers counts as absent. The text of a doc may be empty, that of a
  query not.
* Empty lines are errors, except at the end of the file.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.records import HALF, READABLE, DataRecord, Fields, as_number, kind_of
from judgekit.data.tables import ALL, id_cell, id_problem, text_cell
from judgekit.errors import DataError, nearest

T = TypeVar("T")
Names = Mapping[str, tuple[str, ...]]
"""The names under which each field may be found; the first is judgekit's own."""


class Declaration(NamedTuple):
    """The declaration of one kind of records, for reading, recognising and refusing them.

    Attributes:
        names: of their fields.
        many: the plural.
        expected: the expected file, for error messages.
        bare: the columns of a file without a header, by their number, as in MS MARCO's queries and collections.
        number: the key of the number, for pairs of query and doc.
        trec: the columns of TREC's files.
        beir: the file in a BEIR folder.
        one: the singular.
        needs: the required keys; alternatives are grouped.
        marks: names of columns that decide for this kind if a file may be of two.
        called: typical file names, used if nothing else decides.
    """

    names: Names
    many: str
    expected: str
    bare: tuple[tuple[str, ...], ...] = ()
    number: str = ""
    trec: tuple[str, ...] = ()
    beir: str = ""
    one: str = "row"
    needs: tuple[tuple[str, ...], ...] = ()
    marks: frozenset[str] = frozenset()
    called: tuple[str, ...] = ()


REFERENCES: Final = ("reference", "reference_answer", "expected_answer")
"""Names of one right answer that nothing else is called."""
NAMES_RUN: Final = ("run", "system", "agent", "app", "provider", "run_id", "name")
"""Columns that name the run of a row, where the rows bear it out."""
_IDS: Final = ("query_id", "_id", "qid", "question_id", "id")
_PAIR: Final[Names] = {
    "query": ("query_id", "query-id", "qid", "topic_id", "topic", "q_id"),
    "doc": ("doc_id", "corpus-id", "docid", "docno", "pid", "passage_id", "did", "doc"),
}
EXPECTED_DOC: Final = tuple(
    f"{way}_{what}"
    for way in ("expected", "gold", "relevant")
    for what in ("doc_id", "document_id", "passage_id", "chunk_id", "doc", "id")
)
"""Columns with a document that should be found, which is relevant without a grade."""
DECLARED: Final = {
    "query": Declaration(
        {
            "id": _IDS,
            "text": ("text", "question", "query"),
            "answers": ("answers", "answer", "references", *REFERENCES),
            "language": ("language",),
            "messages": ("messages",),
        },
        "queries",
        f"query records ({READABLE}; or files of BEIR, KILT, DPR/FiD, ragas or deepeval)",
        bare=(("query_id", "text"),),
        beir="queries.jsonl",
        one="query",
        needs=(("id",), ("text",)),
        marks=frozenset(
            (
                "answers",
                "answer",
                "references",
                "reference",
                "question",
                "query",
                "messages",
                "query_id",
                "qid",
                "question_id",
            )
        ),
    ),
    "doc": Declaration(
        {
            "start": ("start",),
            "end": ("end",),
            "id": ("doc_id", "_id", "docid", "docno", "pid", "passage_id", "did", "id"),
            "text": ("text", "contents", "passage", "body"),
            "title": ("title",),
            "page": ("page_id", "wikipedia_id"),
        },
        "docs",
        f"doc records ({READABLE}; or a file of BEIR, DPR/FiD, ragas or deepeval)",
        bare=(("doc_id", "text"), ("doc_id", "text", "title")),
        beir="corpus.jsonl",
        one="doc",
        needs=(("id",), ("text",)),
        marks=frozenset(
            ("title", "contents", "passage", "body", "doc_id", "docid", "docno", "pid", "passage_id", "did", "page_id")
        ),
        called=("doc", "corpus", "passage", "collection", "chunk"),
    ),
    "run": Declaration(
        {**_PAIR, "score": ("score", "sim", "similarity"), "rank": ("rank",)},
        "runs",
        "a TREC run (query Q0 doc rank score tag), or a run as CSV, TSV, Parquet, JSON {query: {doc:"
        " score}}, or in a file of DPR/FiD, KILT, ragas or deepeval",
        number="score",
        trec=("query_id", "", "doc_id", "rank", "score", ""),
        needs=(("query",), ("doc",), ("score", "rank")),
        marks=frozenset(("run", "rank", "sim", "similarity")),
    ),
    "qrels": Declaration(
        {
            **_PAIR,
            "relevance": ("relevance", "rel", "label", "grade", "judgment", "score"),
            "expected": EXPECTED_DOC,
        },
        "judgments",
        "a TREC qrels file (query 0 doc relevance), or qrels as CSV, TSV, Parquet, JSON {query: {doc: relevance}},"
        " or in a file of BEIR, KILT, ragas or deepeval",
        number="relevance",
        trec=("query_id", "iteration", "doc_id", "relevance"),
        beir="qrels/{split}.tsv",
        needs=(("query",), ("doc", "expected"), ("relevance", "expected")),
        marks=frozenset(("relevance", "rel", "label", "grade", "judgment", "corpus-id")),
        called=("qrel", "gold", "judg", "relev", "label", "truth"),
    ),
    "answer": Declaration(
        {"id": _IDS, "answer": ("answer", "response", "output")},
        "answers",
        f"answers ({READABLE} with query_id and answer; or a file of KILT, ragas or deepeval)",
        bare=(("query_id", "answer"),),
        needs=(("id",), ("answer",)),
        marks=frozenset(("run", "model", "depth")),
    ),
}
QUERY, DOC = DECLARED["query"].names, DECLARED["doc"].names


def _number(value: Any) -> float:
    """Return a finite number, also from a text (CSV, and DPR's scores)."""
    number = as_number(value)
    if not math.isfinite(number):
        hint = ""
        if isinstance(value, str) and math.isfinite(as_number(value.replace(",", ".", 1))):
            hint = " (write the decimal comma as a point)"
        raise ValueError(f"must be a finite number, not {value!r}{hint}")
    return number


_LONGEST: Final = 2**53
"""No page has this many characters; from here on, numbers of a JSON file are rounded."""


def _offset(value: Any) -> int:
    """Return a number of characters, also from a text (CSV)."""
    number = as_number(value)
    if not (0 <= number < _LONGEST and number.is_integer()):
        raise ValueError(f"must be a whole number of characters of the page, from 0, not {value!r}")
    return int(number)


def _answers(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list of strings, not {kind_of(value)}")
    for answer in value:
        if not isinstance(answer, str):
            raise ValueError(f"must be a list of strings, holds {kind_of(answer)}")
        if not text_cell(answer).strip():
            raise ValueError("holds an empty answer")
    return tuple(value)


def _messages(value: Any) -> tuple[dict[str, str], ...]:
    messages = []
    for message in value:
        held = message if isinstance(message, dict) else {}
        role, content = held.get("role"), held.get("content")
        if not (isinstance(role, str) and isinstance(content, str)):
            raise ValueError("must be a list of objects with role and content, two strings")
        messages.append({"role": text_cell(role), "content": text_cell(content)})
    return tuple(messages)


def _one_id(value: Any) -> str:
    """Return an id; refuse a cell that holds several."""
    if isinstance(value, str) and re.search(r"^\[|[;,|\s]", value.strip()):
        raise ValueError(f"must be one id, not {value[:60]!r}: write a row for each document")
    return id_cell(value)


_CELLS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("id", "query", "doc", "page"), id_cell),
    "expected": _one_id,
    **dict.fromkeys(("score", "rank", "relevance"), _number),
    **dict.fromkeys(("start", "end"), _offset),
    **dict.fromkeys(("text", "title", "language", "answer"), text_cell),
    "answers": _answers,
    "messages": _messages,
}
"""The checks of the fields; a `ValueError` says what is wrong with a value."""
_NEEDED: Final = ("id", "text", "query", "doc")
TABULAR: Final = ("csv", "tsv", "xlsx")
_ROWS: Final = ("parquet", "xlsx", "frame")
"""Formats whose records are rows, not lines."""


@dataclass(frozen=True)
class Source:
    """The file of records, and their kind.

    Attributes:
        path: the file; None for a DataFrame.
        format: the format's name; the records of ``parquet`` and ``frame`` are rows.
        names: the possible names of each field.
        what: ``query``, ``doc``, …, for error messages.
        form: the nested form's name, or "".
    """

    path: Path | None
    format: str
    names: Names
    what: str
    form: str = ""

    def of(self, names: Names, what: str) -> Self:
        """Return a copy of the source for other objects, such as those inside of its records."""
        return replace(self, names=names, what=what)

    def error(self, record: DataRecord, reason: str) -> DataError:
        """Return the error for a record."""
        if record.inside:
            reason = f"{record.inside}: {reason}"
        if self.format not in _ROWS:
            return DataError(reason, self.path, record.line)
        if self.path is None:
            return DataError(f"the {self.what} table, row {record.line}: {reason}")
        return DataError(f"row {record.line}: {reason}", self.path)

    def again(self, record: DataRecord, identifier: str, first: int, before: object, item: object) -> None:
        """Refuse a repeated id, ``first`` seen on that line; passages of questions may repeat their text."""
        if not (self.form and isinstance(before, Doc) and isinstance(item, Doc)):
            unit = "row" if self.format in _ROWS else "line"
            raise self.error(record, f"{self.what} {identifier!r} appears twice (first on {unit} {first})")
        if not same_text(before, item):
            raise self.error(record, f"doc {identifier!r} has a different title or text than before")

    def nothing(self, what: str) -> DataError:
        """Return the error for a file or table without records."""
        return DataError(f"holds no {what}", self.path)

    def find(self, record: DataRecord, key: str) -> str | None:
        """Return the name of a field in a record, or None; null counts as absent."""
        # Exports write null for nothing, so null is absent, not a text.
        present = [name for name in self.names[key] if record.fields.get(name) is not None]
        # Terrier's docid is a document's number in its index; docno is the id in judgments.
        if "docno" in present and "docid" in present:
            present.remove("docid")
        # If two names hold the same value, either will do.
        if any(record.fields[name] != record.fields[present[0]] for name in present[1:]):
            both = " and ".join(map(repr, present))
            way = "by renaming the other"
            if self.path:
                way = f"e.g. {self.format}({key}={present[0]}):{self.path.name}"
            raise self.error(record, f"has {both}; choose one, {way}")
        return present[0] if present else None

    def names_in(self, fields: Fields) -> Mapping[str, str] | None:
        """Return the name of each field in a record, by key; None if a field has two names there."""
        # A file's records share a few sets of names, so each set is worked out once.
        shape = tuple(fields)
        if shape not in self._shapes:
            present = {key: [name for name in names if name in fields] for key, names in self.names.items()}
            single = {key: names[0] for key, names in present.items() if names}
            self._shapes[shape] = None if any(len(names) > 1 for names in present.values()) else single
        return self._shapes[shape]

    @cached_property
    def _shapes(self) -> dict[tuple[str, ...], Mapping[str, str] | None]:
        return {}

    def lacks(self, record: DataRecord, key: str) -> DataError:
        """Return the error for a record without a field."""
        name, *others = names = self.names[key]
        if null := next(filter(record.fields.__contains__, names), None):
            kind = "number" if _CELLS[key] is _number else "string"
            return self.error(record, f"{null!r} must be a {kind}, not null")
        have = ", ".join(map(repr, record.fields)) or "none"
        either = ""
        if others:
            either = f" (or {', '.join(map(repr, others))})"
        hint = nearest(name, map(str, record.fields))
        far = next((field for field in map(str, record.fields) if "distance" in field.lower()), "")
        if far and key == "score" and self.path is not None:  # read as scores, they would turn each list upside down
            hint = f" Of distances the lowest is best: write {self.format}(rank={far}):{self.path.name}"
        return self.error(record, f"this {self.what} lacks the field {name!r}{either}; it has: {have}.{hint}")

    def get(self, record: DataRecord, key: str) -> Any:
        """Return a field of a record, checked; None if it is optional and absent."""
        name = self.find(record, key)
        if name is None:
            if key in _NEEDED:
                raise self.lacks(record, key)
            return None
        value = record.fields[name]
        tabular = self.format in TABULAR
        # An empty cell of a CSV means no page; an empty id stays an error.
        if tabular and value == "" and key in ("page", "start", "end"):
            return None
        if isinstance(value, str):
            if key == "messages" or (key == "answers" and tabular):
                value = self.cell(record, name, value)
            # Under a plural name, a bare text may be a badly written list.
            elif key == "answers" and name in ("answer", *REFERENCES):
                value = [value]
        return self.checked(record, name, _CELLS[key], value)

    def cell(self, record: DataRecord, name: str, cell: str, *, python: bool = False) -> Any:
        """Return a cell of CSV as a list: from JSON, with ``python`` also from pandas' spelling, else one text."""
        array = None
        if python and _OBJECT.match(cell):
            array = _ARRAY.fullmatch(cell)
            if array is None:
                shown = f"{cell[:60]!r} is an object as Python shows it"
                cure = "write its text, or the table with to_json(…, orient='records', lines=True)"
                raise self.error(record, f"{name!r}: {shown}, not a text: {cure}")
            cell = array[1]
        if not cell.lstrip().startswith("["):
            return [cell] if cell else []
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            if python:
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    held = ast.literal_eval(cell)
                    # Lists as pandas writes them. Python would read a numpy array, which has no commas, as one text;
                    # long ones have dots in the middle.
                    if str(held) == cell or (array is not None and all(isinstance(text, str) for text in held)):
                        return held
            hint = " (pandas: write the table with to_json(…, orient='records', lines=True))"
            raise self.error(record, f'{name!r} begins with "[" but is not a JSON list: {cell[:60]}{hint}') from error

    def checked(self, record: DataRecord, name: str, check: Callable[[Any], T], value: Any) -> T:
        """Return the value of a field as a check returns it."""
        try:
            return check(value)
        except ValueError as error:
            raise self.error(record, f"{name!r} {error}") from error

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(chain(*self.names.values()))

    def columns(self, record: DataRecord) -> dict[str, str]:
        """Return the other fields of a record as texts, without lists and objects."""
        columns = {}
        for name, value in record.fields.items():
            if name not in self._known and not isinstance(value, list | dict):
                text = "" if value is None else str(value)
                columns[self.checked(record, name, text_cell, name)] = self.checked(record, name, text_cell, text)
        return columns

    def each(
        self, records: Iterable[DataRecord], read: Callable[[Self, DataRecord], tuple[str, T]], many: str
    ) -> dict[str, T]:
        """Return the values of records by id, in order."""
        items: dict[str, T] = {}
        lines: dict[str, int] = {}
        for record in records:
            identifier, item = read(self, record)
            if identifier in items:
                self.again(record, identifier, lines[identifier], items[identifier], item)
                continue
            items[identifier], lines[identifier] = item, record.line
        if not items:
            raise self.nothing(many)
        return items


_ARRAY: Final = re.compile(r"\s*array\((\[.*\])(?:,\s*dtype=[^)]*)?\)\s*", re.S)
"""The ``repr`` of a numpy array, with commas, unlike its ``str``."""
_OBJECT: Final = re.compile(r"\s*(?:array\(|page_content=['\"]|<[\w.]+(?: \w+)* at 0x|[A-Z]\w+\(\w+=)")
"""Python's display of arrays, of LangChain's and LlamaIndex' documents, and of plain objects."""


def query_of(source: Source, record: DataRecord) -> tuple[str, Query]:
    """Return the query in a record, by its id; without a text, its last message is the text."""
    query_id = source.get(record, "id")
    messages: tuple[dict[str, str], ...] = source.get(record, "messages") or ()
    # A conversation ends with the question, so it need not be repeated.
    if messages and messages[-1]["role"] == "user" and source.find(record, "text") is None:
        text = messages[-1]["content"]
    else:
        text = source.get(record, "text")
    if query_id == ALL:
        raise source.error(record, f"the query id {ALL!r} is reserved: it marks means over queries")
    if not text.strip():
        raise source.error(record, f"the text of query {query_id!r} is empty")
    answers = source.get(record, "answers") or ()
    language = source.get(record, "language") or ""
    return query_id, Query(query_id, text, answers, language.strip(), messages, source.columns(record))


def queries_of(source: Source, records: Iterable[DataRecord]) -> dict[str, Query]:
    """Return the queries in records, by id, in order."""
    return source.each(records, query_of, "queries")


def _plain_doc(source: Source, fields: Fields) -> Doc | None:
    """Return the doc of a record with a valid id, a text and possibly a title; None for any other record."""
    names = source.names_in(fields)
    if names is None or len(names) != len(fields) or "page" in names or "start" in names or "end" in names:
        return None
    try:
        doc_id, text = fields[names["id"]], fields[names["text"]]
    except KeyError:
        return None
    title = fields[names["title"]] if "title" in names else ""
    for value in (doc_id, text, title):
        if type(value) is not str or "\0" in value or not (value.isascii() or HALF.search(value) is None):
            return None
    return None if not doc_id or id_problem(doc_id) else Doc(doc_id, text, title)


def doc_of(source: Source, record: DataRecord) -> tuple[str, Doc]:
    """Return the doc in a record, by its id."""
    # Most records of a large collection are like this, and take a third of the time this way.
    plain = _plain_doc(source, record.fields)
    if plain is not None:
        return plain.doc_id, plain
    doc_id, text, title, page = (source.get(record, key) for key in ("id", "text", "title", "page"))
    start = end = None
    # Offsets without a page mean nothing: passages of different pages would seem to overlap.
    if page is not None:
        start, end = source.get(record, "start"), source.get(record, "end")
    if (start is None) != (end is None):
        raise source.error(record, "has a start or an end on its page, but not both")
    if start is not None and start >= end:
        raise source.error(record, f"ends on its page at {end}, which is not after its start at {start}")
    return doc_id, Doc(doc_id, text, title or "", page, start, end, source.columns(record))


def same_text(doc: Doc, other: Doc) -> bool:
    """Return whether two docs have the same title and text; some results of a pipeline may lack the page."""
    return (doc.title, doc.text) == (other.title, other.text)


def docs_of(source: Source, records: Iterable[DataRecord]) -> MemoryDocs:
    """Return the docs in records."""
    return MemoryDocs(source.each(records, doc_of, "docs").values())


def rows_of(
    source: Source, records: Iterable[DataRecord], value: str, problem: Callable[[float], str | None] = lambda _: None
) -> tuple[list[str], list[str], list[float]]:
    """Return the queries, docs and numbers in the records of a run or of qrels."""
    values: list[float] = []
    lines: dict[tuple[str, str], int] = {}
    for query, doc, number, line in checked_rows(source, records, value, lines, problem):
        lines[query, doc] = line
        values.append(number)
    return [query for query, _ in lines], [doc for _, doc in lines], values


def _expected_in(source: Source, record: DataRecord) -> str | None:
    """Return the document that should be found, which needs no grade; None in rows of graded documents."""
    if source.find(record, "doc") is not None and source.find(record, "relevance") is not None:
        return None
    expected: str | None = source.get(record, "expected")
    return expected


def checked_rows(
    source: Source,
    records: Iterable[DataRecord],
    value: str,
    lines: Mapping[tuple[str, str], int],
    problem: Callable[[float], str | None] = lambda _: None,
) -> Iterator[tuple[str, str, float, int]]:
    """Yield query, doc, number and line of each record of a run or of qrels; ``lines`` has those of earlier pairs."""
    scored = run = None
    for record in records:
        query, number = source.get(record, "query"), source.get(record, value)
        doc = _expected_in(source, record) if value == "relevance" else None
        if doc is None:
            doc = source.get(record, "doc")
        elif number is None:
            number = 1.0
        if value == "score":
            if scored is None:
                scored = number is not None
            if scored != (number is not None):
                raise source.error(record, "some passages of this file have a 'score' and others do not")
            # A table of several runs, read as one, would list each document several times or mix their scores.
            name = record.fields.get("run") or run
            run = run or name
            if run != name:
                reason = f"the column 'run' holds {run!r} and {name!r}: write each run into a file of its own"
                if source.form:
                    reason += ", as judgekit init does"
                raise source.error(record, reason)
            # Without scores, ranks count, and in lists of passages their order.
            rank = None if scored else source.get(record, "rank")
            if rank is not None:
                number = -rank
        if (query, doc) in lines:
            reason = f"doc {doc!r} appears twice for query {query!r} (first on line {lines[query, doc]})"
            column = next((name for name in NAMES_RUN if name in record.fields), "")
            if column and value == "score":
                reason += f". If {column!r} names the run, write each run into a file of its own"
            raise source.error(record, reason)
        if query == ALL:
            raise source.error(record, f"the query id {ALL!r} is reserved for means over queries")
        if number is None:
            raise source.lacks(record, value)
        unfit = problem(number)
        if unfit:
            raise source.error(record, f"the {value} {unfit}")
        yield query, doc, number, record.line
