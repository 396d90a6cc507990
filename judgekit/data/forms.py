"""The nested forms in which this field keeps its data: how each is recognised, and what it makes of a record.

A file's records (see `judgekit.data.records`) are either *flat*, one query, doc or row each, with the field names of
`judgekit.data.fields`; or of a nested form, where each is a question with what belongs to it: passages that were
retrieved, an application's answer, the evidence.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NamedTuple

from judgekit.data.fields import DECLARED, DOC, QUERY, TABULAR, Declaration, Names, Source
from judgekit.data.records import DataRecord, kind_of
from judgekit.errors import DataError, UsageError

Marks = Callable[[Mapping[str, Any]], bool]
Entry = Callable[[Source, DataRecord], dict[str, Any]]


class NestedForm(NamedTuple):
    """A nested form.

    Attributes:
        kinds: what it holds.
        marks: recognises its records by their fields.
        entry: turns a record's fields into those of `ENTRY`; where something is wrong it says so.
    """

    kinds: tuple[str, ...]
    marks: Marks
    entry: Entry


ENTRY: Final[Names] = {**QUERY, "text": ("question", "query", "text")}
_PASSAGE: Final[Names] = {**DOC, "id": ("id", "doc_id", "passage_id", "docid")}


def content_id(title: str, text: str) -> str:
    """Return a doc id made of title and text, so that the same passage has the same id everywhere."""
    return _hashed("p", f"{title}\n{text}")


def _hashed(kind: str, text: str) -> str:
    return kind + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _castorini(source: Source, record: DataRecord) -> dict[str, Any]:
    query = record.fields["query"]
    if not isinstance(query, dict):
        query = {"text": query, "qid": record.fields.get("qid")}
    entry: dict[str, Any] = {"question": query.get("text"), "ctxs": record.fields["candidates"]}
    if isinstance(entry["ctxs"], list):
        for number, candidate in enumerate(entry["ctxs"]):
            if not isinstance(candidate, dict) or "docid" not in candidate:
                raise source.error(record, f"candidates[{number}]: expected an object with docid, score and doc")
        entry["ctxs"] = [
            {**_passage(p.get("doc")), "id": _text_id(p["docid"]), "score": p.get("score")} for p in entry["ctxs"]
        ]
    return entry if query.get("qid") is None else {**entry, "query_id": _text_id(query["qid"])}


def _text_id(value: object) -> object:
    """Return the id that this form writes as a number as well."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _passage(passage: object) -> dict[str, Any]:
    """Return title and text of a passage, an object or a text."""
    if not isinstance(passage, dict):
        return {} if passage is None else {"text": passage}
    names = ("text", "contents", "segment", "passage", "body", "page_content", "content")
    text = next((passage[name] for name in names if passage.get(name) is not None), None)
    return {"text": text, "title": passage.get("title")}


def _kilt(source: Source, record: DataRecord) -> dict[str, Any]:
    fields = record.fields
    answers, passages, gold = list[Any](), list[dict[str, Any]](), dict[str, int]()
    for number, output in enumerate(fields["output"]):
        if not isinstance(output, dict):
            raise source.error(record, f"output[{number}]: expected an object with answer or provenance")
        if output.get("answer") not in (None, "", *answers):
            answers.append(output["answer"])
        for evidence in output.get("provenance") or ():
            page = evidence.get("wikipedia_id", evidence.get("title")) if isinstance(evidence, dict) else None
            if page is None:
                raise source.error(record, f"output[{number}].provenance: expected objects with wikipedia_id or title")
            page = "_".join(str(page).split())  # as Wikipedia writes titles in addresses: ids hold no white space
            text, title = evidence.get("text"), evidence.get("title") or ""
            known = isinstance(text, str) and isinstance(title, str)
            passage = {"id": content_id(title, text) if known else str(page), "text": text, "title": title}
            if number == 0 and passage["id"] not in gold:
                passages.append({**passage, "page_id": str(page), "score": evidence.get("score")})
            gold[passage["id"]] = 1
    entry = {"query_id": fields.get("id"), "question": fields.get("input"), "answers": answers}
    return {**entry, "ctxs": passages, "gold": list(gold.items()), "answer": answers[0] if answers else None}


_LISTED: Final = ("documents", "docs", "doc_ids", "expected_documents")
_JUDGED: Final = DECLARED["qrels"].names
_GRADES: Final = ("grades", "relevance", "relevances")


def _expected(source: Source, record: DataRecord) -> dict[str, Any]:
    fields = record.fields
    docs = fields[next((name for name in _LISTED if name in fields), _LISTED[0])]
    grades = next((fields[name] for name in _GRADES if name in fields), None)
    if all(isinstance(doc, dict) for doc in docs) and grades is None:
        grades = [next((doc[name] for name in _JUDGED["relevance"] if name in doc), None) for doc in docs]
        docs = [next((doc[name] for name in ("id", *_JUDGED["doc"]) if name in doc), None) for doc in docs]
    if not isinstance(grades, list) or len(grades) != len(docs):
        raise source.error(record, f"has {len(docs)} documents, so it needs {len(docs)} grades ('relevance')")
    return {**fields, "gold": list(zip(docs, grades, strict=True))}


ASKED: Final = ("user_input", "question", "input", "query")
_FOUND: Final = ("retrieved_contexts", "retrieval_context", "contexts", "context")
_GOLD: Final = ("reference_contexts", "context")
_RIGHT: Final = ("ground_truths", "ground_truth", "reference", "expected_output", "expected_answer")
_SAID: Final = ("response", "actual_output", "answer")
_TELLING: Final = {*_FOUND[:3], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}


def _rag(source: Source, record: DataRecord) -> dict[str, Any]:
    fields = record.fields

    def first(names: Iterable[str]) -> str | None:
        return next((name for name in names if fields.get(name) not in (None, "")), None)

    def texts(name: str | None) -> list[Any]:
        value = fields[name] if name else []
        if isinstance(value, str) and name:
            value = source.cell(record, name, value, python=True) if source.format in TABULAR else [value]
        if not isinstance(value, list):
            raise source.error(record, f"{name!r} must be a list of texts, not {kind_of(value)}")
        return value

    asking, reply, truth, context = first(ASKED), first(_SAID), first(_RIGHT), first(_FOUND)
    question = fields[asking] if asking else None
    entry: dict[str, Any] = {}
    if isinstance(question, list):  # a conversation: its last message of a person is the question
        roles_of = {"human": "user", "ai": "assistant"}
        messages = [dict(m) if isinstance(m, dict) else {} for m in question]
        roles = [m.get("role") or roles_of.get(str(m.get("type")), m.get("type")) for m in messages]
        entry["messages"] = [{"role": r, "content": m.get("content")} for r, m in zip(roles, messages, strict=True)]
        question = next(
            (m.get("content") for r, m in zip(roles[::-1], messages[::-1], strict=True) if r == "user"), None
        )
    entry["query_id"] = next((fields[name] for name in QUERY["id"] if fields.get(name) is not None), None)
    entry["question"] = question
    entry |= {"answers": texts(truth), "answer": fields[reply] if reply else None}
    entry["ctxs"] = [{"title": None, **_passage(text)} for text in texts(context)]
    gold = [_passage(text) for text in texts(first(name for name in _GOLD if name != context))]
    return {
        **entry,
        "gold": [*{content_id(str(p.get("title") or ""), str(p["text"])): 1 for p in gold}.items()],
        "sources": gold,
    }


def _numbers(docs: object) -> bool:
    return isinstance(docs, dict) and not any(isinstance(value, dict | list | str) for value in docs.values())


def _dict(source: Source, record: DataRecord) -> dict[str, Any]:
    """Return rows of query, doc and number of a dictionary ``{query: {doc: number}}``."""
    for query, docs in record.fields.items():
        if not isinstance(docs, dict):
            raise source.error(record, f"{query!r}: expected an object of docs, found {kind_of(docs)}")
    return {"rows": [(query, *pair) for query, docs in record.fields.items() for pair in docs.items()]}


FORMS: Final = {
    "dpr": NestedForm(
        ("query", "doc", "run"),
        lambda fields: isinstance(fields.get("ctxs"), list),
        lambda _, record: dict(record.fields),
    ),
    "castorini": NestedForm(
        ("query", "doc", "run"),
        lambda fields: isinstance(fields.get("candidates"), list) and "query" in fields,
        _castorini,
    ),
    "kilt": NestedForm(
        ("query", "doc", "run", "qrels", "answer"),
        lambda fields: isinstance(fields.get("output"), list) and {"id", "input"} <= set(fields),
        _kilt,
    ),
    "expected": NestedForm(
        ("query", "qrels"),
        lambda fields: (
            any(isinstance(fields.get(name), list) for name in _LISTED)
            and any(fields.get(name) for name in ENTRY["text"])
        ),
        _expected,
    ),
    "rag": NestedForm(
        ("query", "doc", "run", "qrels", "answer"),
        lambda fields: bool(_TELLING & set(fields)) or {"response", "reference"} <= set(fields),
        _rag,
    ),
    "dict": NestedForm(("run", "qrels"), lambda fields: bool(fields) and all(map(_numbers, fields.values())), _dict),
}
"""The nested forms by name, in the order in which a record is held against them."""

_NOT_ASKED: Final = ("answer", "ctxs", "gold", "sources")
_OF_THE_QUESTION: Final = ("score", "hasanswer", "has_answer", "rank")


def unfolded(source: Source, records: Iterable[DataRecord], kind: str) -> Iterator[DataRecord]:
    """Yield the records of one kind that are inside of the records of a nested form."""
    entries = source if kind == "query" else source.of(ENTRY, "entry")
    counts = Counter[tuple[str, str]]()
    value = "score" if kind == "run" else "relevance"
    for record in records:
        try:
            entry = FORMS[source.form].entry(entries, record)
        except (KeyError, TypeError):  # the first record told the form
            raise entries.error(record, f"is not a record of the form {source.form!r}") from None
        if "rows" in entry:
            rows = (({"query_id": query, "doc_id": doc, value: cell}, query) for query, doc, cell in entry["rows"])
            yield from (DataRecord(record.line, row, inside=repr(query)) for row, query in rows)
            continue
        whole = DataRecord(record.line, entry)
        if entries.find(whole, "id"):
            query_id = entries.get(whole, "id")
        else:
            query_id = _hashed("q", entries.get(whole, "text"))
            # Answers of several runs to one question are about that question.
            times = (query_id, str(record.fields.get("run")) if kind == "answer" else "")
            counts[times] += 1
            query_id += f"-{counts[times]}" if counts[times] > 1 else ""
        if kind == "query":
            question = {name: value for name, value in entry.items() if source.form == "dpr" or name not in _NOT_ASKED}
            yield DataRecord(record.line, {**question, "query_id": query_id})
        elif kind == "answer":
            run = {"run": record.fields["run"]} if "run" in record.fields else {}
            yield DataRecord(record.line, {"query_id": query_id, "answer": entry.get("answer"), **run})
        elif kind == "qrels":
            for doc, grade in entry["gold"]:
                yield DataRecord(record.line, {"query_id": query_id, "doc_id": doc, "relevance": grade})
        else:
            yield from _passages(entries, record, query_id, entry.get("ctxs"), kind)
            yield from _passages(entries, record, query_id, entry.get("sources", []), kind) if kind == "doc" else ()


def _passages(source: Source, record: DataRecord, query_id: str, passages: object, kind: str) -> Iterator[DataRecord]:
    if not isinstance(passages, list):
        raise source.error(record, f"'ctxs' must be a list of passages, not {kind_of(passages)}")
    inner = source.of(_PASSAGE, "passage")
    for position, fields in enumerate(passages):
        passage = DataRecord(record.line, fields, inside=f"ctxs[{position}]")
        if not isinstance(fields, dict):
            raise inner.error(passage, f"expected a JSON object, found {kind_of(fields)}")
        if inner.find(passage, "id"):
            doc_id = inner.get(passage, "id")
        else:
            doc_id = content_id(inner.get(passage, "title") or "", inner.get(passage, "text"))
        if kind == "doc":
            # What is said of a passage for one question is not of the passage.
            kept = {name: value for name, value in fields.items() if name not in _OF_THE_QUESTION}
            yield passage._replace(fields={**kept, "doc_id": doc_id})
        else:
            row = {"query_id": query_id, "doc_id": doc_id, "score": fields.get("score"), "rank": position + 1}
            yield passage._replace(fields=row)


def ir_dataset(name: str) -> Any:
    """Return a data set of the library ir_datasets."""
    try:
        library = import_module("ir_datasets")
    except ImportError:
        reason = "needs the library ir_datasets: pip install 'judgekit[ir-datasets]'"
        raise UsageError(f"ir_datasets:{name} {reason}") from None
    try:
        return library.load(name)
    except KeyError:
        raise DataError(f"unknown data set of ir_datasets: {name!r}") from None


def dataset_records(name: str, declared: Declaration) -> Iterator[DataRecord]:
    """Yield what a data set of ir_datasets holds; a query or doc of several fields as its library renders it."""
    items = getattr(ir_dataset(name), declared.dataset, None)
    if items is None:
        raise DataError(f"the data set ir_datasets:{name} holds no {declared.many}")
    with fetched(name):
        for number, item in enumerate(items(), 1):
            yield DataRecord(number, item_fields(item))


@contextmanager
def fetched(name: str) -> Iterator[None]:
    """Say in a sentence why ir_datasets has no data: it fetches a data set when it is first read."""
    try:
        yield
    except (OSError, RuntimeError) as problem:
        raise DataError(
            f"ir_datasets could not fetch the data set {name!r}: {' '.join(str(problem).split())[:300]}. See"
            " https://ir-datasets.com for its source, and for files that you may have to download yourself"
        ) from None


def item_fields(item: Any) -> dict[str, Any]:
    """Return the fields of a query, doc or row of ir_datasets; ``text`` is what its library says it is."""
    fields, render = dict(item._asdict()), getattr(item, "default_text", None)
    if render is not None:
        fields = {name: value for name, value in fields.items() if name not in _OTHERS}
    return fields if render is None or "text" in fields else {**fields, "text": render()}


_OTHERS: Final = {name for names in (*QUERY.values(), *DOC.values()) for name in names[1:]}
"""Names that fields of other files have; ir_datasets calls ids and texts as judgekit does."""
