"""The forms in which this field keeps its data: how each is recognised, and what of queries, docs, runs, … it holds.

A file's records (see `judgekit.data.records`) are either *flat*, one query, doc or row each, with the field names of
`judgekit.data.fields`; or of a nested form, where each is a question with what belongs to it: passages that were
retrieved, an application's answer, the evidence. `opened` is the one way from a file to records of one kind.

A form is recognised by content. Where content is not enough you name it in front of the path, ``FORM:PATH``, or as
``format``: ``jsonl(id=qid, text=question):queries.jsonl``. The table of forms is in ``docs/formats.md``.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from judgekit.data.fields import DOC, NAMES, QUERY, Names, Source
from judgekit.data.records import EXPECTED, Record, as_number, kind_of, records, trec_records
from judgekit.data.streams import given, head
from judgekit.errors import DataError, UsageError, not_among
from judgekit.spec import Spec, parse, split_form

__all__ = [
    "FORMS",
    "Located",
    "Opened",
    "content_id",
    "fetched",
    "header",
    "ir_dataset",
    "item_fields",
    "located",
    "opened",
    "resolved",
    "with_form",
]

_TABULAR: Final = ("csv", "tsv")
_BEIR: Final = {"query": ("queries.jsonl",), "doc": ("corpus.jsonl",), "qrels": ("qrels/{split}.tsv",)}


class Form(NamedTuple):
    """A nested form.

    Attributes:
        marks: recognises its records by their fields.
        entry: turns a record's fields into those of `_ENTRY`; where something is wrong it says so.
        kinds: what it holds.
    """

    marks: Callable[[Mapping[str, Any]], bool]
    entry: Callable[[Source, Record], dict[str, Any]]
    kinds: tuple[str, ...]


_ENTRY: Final[Names] = {**QUERY, "text": ("question", "query", "text")}
_PASSAGE: Final[Names] = {**DOC, "id": ("id", "doc_id", "passage_id", "docid")}


def content_id(title: str, text: str) -> str:
    """Return a doc id made of title and text, so that the same passage has the same id everywhere."""
    return "p" + hashlib.sha256(f"{title}\n{text}".encode(errors="surrogatepass")).hexdigest()[:16]


def _castorini(source: Source, record: Record) -> dict[str, Any]:
    query = record.fields["query"]
    if not isinstance(query, dict):
        query = {"text": query, "qid": record.fields.get("qid")}
    entry: dict[str, Any] = {"question": query.get("text"), "ctxs": record.fields["candidates"]}
    if isinstance(entry["ctxs"], list):
        for number, found in enumerate(entry["ctxs"]):
            if not isinstance(found, dict) or "docid" not in found:
                raise source.error(record, f"candidates[{number}]: expected an object with docid, score and doc")
        entry["ctxs"] = [
            {**_passage(p.get("doc")), "id": _text_id(p["docid"]), "score": p.get("score")} for p in entry["ctxs"]
        ]
    return entry if query.get("qid") is None else {**entry, "query_id": _text_id(query["qid"])}


def _text_id(value: object) -> object:
    """Return the id that this form writes as a number as well."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _passage(found: object) -> dict[str, Any]:
    """Return title and text of a passage, an object or a text."""
    if not isinstance(found, dict):
        return {} if found is None else {"text": found}
    names = ("text", "contents", "segment", "passage", "body", "page_content", "content")
    text = next((found[name] for name in names if found.get(name) is not None), None)
    return {"text": text, "title": found.get("title")}


def _kilt(source: Source, record: Record) -> dict[str, Any]:
    fields = record.fields
    answers, passages, gold = list[Any](), list[dict[str, Any]](), dict[str, int]()
    for number, output in enumerate(fields["output"]):
        if not isinstance(output, dict):
            raise source.error(record, f"output[{number}]: expected an object with answer or provenance")
        if output.get("answer") not in (None, "", *answers):
            answers.append(output["answer"])
        for evidence in output.get("provenance") or ():
            page = evidence.get("wikipedia_id") if isinstance(evidence, dict) else None
            if page is None:
                raise source.error(record, f"output[{number}].provenance: expected objects with wikipedia_id")
            text, title = evidence.get("text"), evidence.get("title") or ""
            known = isinstance(text, str) and isinstance(title, str)
            passage = {"id": content_id(title, text) if known else str(page), "text": text, "title": title}
            if number == 0 and passage["id"] not in gold:
                passages.append({**passage, "page_id": str(page), "score": evidence.get("score")})
            gold[passage["id"]] = 1
    entry = {"query_id": fields.get("id"), "question": fields.get("input"), "answers": answers}
    return {**entry, "ctxs": passages, "gold": list(gold.items()), "answer": answers[0] if answers else None}


_TRAINED_ON: Final = ("positive_ctxs", "negative_ctxs", "hard_negative_ctxs")


def _training(source: Source, record: Record) -> dict[str, Any]:
    """Return the question of a file that DPR is trained on; negatives are docs, and nobody judged them."""
    passages, gold = list[dict[str, Any]](), dict[str, int]()
    for name in _TRAINED_ON:
        for number, found in enumerate(record.fields.get(name) or ()):
            if not isinstance(found, dict) or not isinstance(found.get("text"), str):
                raise source.error(record, f"{name}[{number}]: expected an object with text, title and passage_id")
            own = found.get("passage_id", found.get("psg_id"))
            title = found.get("title") or ""
            doc = str(own) if own not in (None, "") else content_id(str(title), found["text"])
            passages.append({"id": doc, "title": title, "text": found["text"]})
            if name == "positive_ctxs":
                gold[doc] = 1
    said = {name: value for name, value in record.fields.items() if name not in _TRAINED_ON}
    return {**said, "ctxs": passages, "gold": list(gold.items())}


_ASKED: Final = ("user_input", "question", "input", "query")
_FOUND: Final = ("retrieved_contexts", "retrieval_context", "contexts", "context")
_GOLD: Final = ("reference_contexts", "context")
_RIGHT: Final = ("ground_truths", "ground_truth", "reference", "expected_output", "expected_answer")
_SAID: Final = ("response", "actual_output", "answer")
_TELLING: Final = {*_FOUND[:3], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}


def _rag(source: Source, record: Record) -> dict[str, Any]:
    fields = record.fields

    def first(names: Iterable[str]) -> str | None:
        return next((name for name in names if fields.get(name) not in (None, "")), None)

    def texts(name: str | None) -> list[Any]:
        value = fields[name] if name else []
        if isinstance(value, str) and name:
            value = source.cell(record, name, value, python=True) if source.format in _TABULAR else [value]
        if not isinstance(value, list):
            raise source.error(record, f"{name!r} must be a list of texts, not {kind_of(value)}")
        return value

    asked, said, right, found = first(_ASKED), first(_SAID), first(_RIGHT), first(_FOUND)
    question = fields[asked] if asked else None
    entry: dict[str, Any] = {}
    if isinstance(question, list):  # a conversation: its last message of a person is the question
        said_by = {"human": "user", "ai": "assistant"}
        told = [dict(m) if isinstance(m, dict) else {} for m in question]
        roles = [m.get("role") or said_by.get(str(m.get("type")), m.get("type")) for m in told]
        entry["messages"] = [{"role": r, "content": m.get("content")} for r, m in zip(roles, told, strict=True)]
        question = next((m.get("content") for r, m in zip(roles[::-1], told[::-1], strict=True) if r == "user"), None)
    own = next((name for name in QUERY["id"] if fields.get(name) is not None), None)
    known = "q" + hashlib.sha256(str(question).encode(errors="surrogatepass")).hexdigest()[:16]
    entry |= {"query_id": fields[own] if own else known, "numbered": own is None, "question": question}
    entry |= {"answers": texts(right), "answer": fields[said] if said else None}
    entry["ctxs"] = [{"title": None, **_passage(text)} for text in texts(found)]
    gold = [_passage(text) for text in texts(first(name for name in _GOLD if name != found))]
    return {
        **entry,
        "gold": [*{content_id(str(p.get("title") or ""), str(p["text"])): 1 for p in gold}.items()],
        "sources": gold,
    }


_LISTED: Final = ("documents", "docs", "doc_ids", "expected_documents")
_GRADES: Final = ("grades", "relevance", "relevances")


def _expected(source: Source, record: Record) -> dict[str, Any]:
    fields = record.fields
    docs = next(fields[name] for name in _LISTED if name in fields)
    grades = next((fields[name] for name in _GRADES if name in fields), None)
    if all(isinstance(doc, dict) for doc in docs) and grades is None:
        grades = [next((doc[name] for name in NAMES["qrels"]["relevance"] if name in doc), None) for doc in docs]
        docs = [next((doc[name] for name in ("id", *NAMES["qrels"]["doc"]) if name in doc), None) for doc in docs]
    if not isinstance(grades, list) or len(grades) != len(docs):
        raise source.error(record, f"has {len(docs)} documents, so it needs a list of {len(docs)} grades ('relevance')")
    return {**fields, "gold": list(zip(docs, grades, strict=True))}


def _by_query(fields: Mapping[str, Any]) -> bool:
    return bool(fields) and all(
        isinstance(docs, dict) and not any(map(_nested, docs.values())) for docs in fields.values()
    )


def _nested(value: object) -> bool:
    return isinstance(value, dict | list | str)


FORMS: Final[Mapping[str, Form]] = {
    "dpr": Form(
        lambda fields: isinstance(fields.get("ctxs"), list),
        lambda source, record: dict(record.fields),
        ("query", "doc", "run"),
    ),
    "dpr_training": Form(
        lambda fields: isinstance(fields.get("positive_ctxs"), list),
        _training,
        ("query", "doc", "qrels"),
    ),
    "castorini": Form(
        lambda fields: isinstance(fields.get("candidates"), list) and "query" in fields,
        _castorini,
        ("query", "doc", "run"),
    ),
    "kilt": Form(
        lambda fields: isinstance(fields.get("output"), list) and {"id", "input"} <= set(fields),
        _kilt,
        ("query", "doc", "run", "qrels", "answer"),
    ),
    "expected": Form(
        lambda fields: (
            any(isinstance(fields.get(name), list) for name in _LISTED)
            and any(fields.get(name) for name in _ENTRY["text"])
        ),
        _expected,
        ("query", "qrels"),
    ),
    "rag": Form(
        lambda fields: bool(_TELLING & set(fields)) or {"response", "reference"} <= set(fields),
        _rag,
        ("query", "doc", "run", "qrels", "answer"),
    ),
    "dict": Form(_by_query, lambda source, record: dict(record.fields), ("run", "qrels")),
}
"""The nested forms by name, in the order in which a record is held against them."""


_NOT_ASKED: Final = ("answer", "ctxs", "gold", "sources")
_OF_THE_QUESTION: Final = ("score", "hasanswer", "has_answer", "rank")


def _unfolded(form: str, source: Source, found: Iterable[Record], kind: str) -> Iterator[Record]:
    """Yield the records of one kind that are inside of the records of a nested form."""
    entries = source.of(_ENTRY, "entry")
    counts: dict[str, int] = {}
    value = "score" if kind == "run" else "relevance"
    for number, record in enumerate(found, 1):
        if form == "dict":
            for query, docs in record.fields.items():
                if not isinstance(docs, dict):
                    raise entries.error(record, f"{query!r}: expected an object of docs, found {kind_of(docs)}")
                for doc, said in docs.items():
                    yield Record(record.line, {"query_id": query, "doc_id": doc, value: said}, inside=repr(query))
            continue
        entry = FORMS[form].entry(entries, record)
        whole = Record(record.line, entry)
        query_id = entries.id(whole) if entries.find(whole, "id") else f"q{number}"
        if entry.pop("numbered", False):
            counts[query_id] = counts.get(query_id, 0) + 1
            query_id += f"-{counts[query_id]}" if counts[query_id] > 1 else ""
        if kind == "query":
            said = {name: value for name, value in entry.items() if form == "dpr" or name not in _NOT_ASKED}
            yield Record(record.line, {**said, "query_id": query_id})
        elif kind == "answer":
            yield Record(record.line, {"query_id": query_id, "answer": entry.get("answer")})
        elif kind == "qrels":
            for doc, grade in entry["gold"]:
                yield Record(record.line, {"query_id": query_id, "doc_id": doc, "relevance": grade})
        else:
            yield from _passages(entries, record, query_id, entry.get("ctxs"), kind)
            for fields in entry.get("sources", ()) if kind == "doc" else ():
                yield Record(
                    record.line, {**fields, "doc_id": content_id(str(fields.get("title") or ""), str(fields["text"]))}
                )


def _passages(source: Source, record: Record, query_id: str, passages: object, kind: str) -> Iterator[Record]:
    if not isinstance(passages, list):
        raise source.error(record, f"'ctxs' must be a list of passages, not {kind_of(passages)}")
    inner = source.of(_PASSAGE, "passage")
    for position, fields in enumerate(passages):
        passage = Record(record.line, fields, inside=f"ctxs[{position}]")
        if not isinstance(fields, dict):
            raise inner.error(passage, f"expected a JSON object, found {kind_of(fields)}")
        if inner.find(passage, "id"):
            doc_id = inner.id(passage)
        else:
            doc_id = content_id(inner.optional(passage, "title"), inner.text(passage))
        if kind == "doc":
            # What is said of a passage for one question is not of the passage.
            kept = {name: value for name, value in fields.items() if name not in _OF_THE_QUESTION}
            yield passage._replace(fields={**kept, "doc_id": doc_id})
        else:
            row = {"query_id": query_id, "doc_id": doc_id, "score": fields.get("score"), "rank": position + 1}
            yield passage._replace(fields=row)


class Located(NamedTuple):
    """Where data is, and in which form; ``auto`` if nobody names one."""

    path: Path
    format: Spec


def located(source: str | Path, kind: str, format: str = "auto") -> Located:
    """Return where the data of one kind is: what ``FORM:PATH`` says, and of a BEIR folder the file of that kind.

    Raises:
        DataError: it is a BEIR folder, and holds nothing of the kind.
    """
    form, text = split_form(source)
    spec = parse(form if form and format == "auto" else format)
    if spec.name == "msmarco":
        spec = Spec("tsv", (*spec.params, ("header", "query_id,doc_id,rank")))
    path = Path(text) if spec.name == "ir_datasets" else given(text)
    if spec.name not in ("auto", "beir") or not (path.is_dir() and any(path.glob("corpus.jsonl*"))):
        if spec.name == "beir":
            raise DataError("is not a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv)", path)
        return Located(path, spec)
    split = str(spec.options.get("split", "test"))
    wanted = [name.format(split=split) for name in _BEIR.get(kind, ())]
    found = [path / (name + end) for name in wanted for end in ("", ".gz") if (path / (name + end)).exists()]
    if not found:
        splits = ", ".join(sorted(p.name.split(".")[0] for p in path.glob("qrels/*.tsv*"))) or "none"
        hint = f" (beir(split=…); it has: {splits})" if kind == "qrels" else ""
        raise DataError(f"this BEIR folder lacks {' and '.join(wanted) or kind}{hint}", path)
    return Located(found[0], Spec("auto", tuple((k, v) for k, v in spec.params if k != "split")))


def with_form(path: Path, form: str | None) -> Path:
    """Return a path with a form in front of it; one that has one keeps it."""
    return Path(f"{form}:{path}") if form and not split_form(path)[0] else path


def resolved(text: str | Path, base: Path) -> Path:
    """Return a path relative to a folder, with the form that stands in front of it; ``~`` is the home."""
    form, rest = split_form(text)
    if form.split("(")[0] == "ir_datasets":
        return Path(text)
    path = base / os.path.expanduser(rest)
    return Path(f"{form}:{path}") if form else path


class Opened(NamedTuple):
    """A file that is being read.

    Attributes:
        source: the file and the names of its fields.
        records: the records of one kind.
        form: the nested form's name, or "".
    """

    source: Source
    records: Iterator[Record]
    form: str


def opened(source: str | Path, kind: str, format: str = "auto") -> Opened:
    """Open a file for the records of one kind: the one way in, but for runs and qrels that the fast parser takes.

    Args:
        source: the file, or ``FORM:PATH``.
        kind: ``query``, ``doc``, ``run``, ``qrels`` or ``answer``.
        format: as it may stand in front of the path.

    Raises:
        DataError: the file has none of the forms that hold such records; also while the records are read.
        UsageError: there is no such form or option.
    """
    path, spec = located(source, kind, format)
    names, expected = NAMES[kind], EXPECTED[kind]
    what = kind if kind in ("query", "doc") else "row"
    chosen = {key: value for key, value in spec.params if key not in _OPTIONS}
    for key in chosen:
        if key not in names:
            raise UsageError(f"format '{spec}': {not_among('option', key, [*names, *_OPTIONS])}")
    names = {**names, **{key: (str(value),) for key, value in chosen.items()}}
    if spec.name == "ir_datasets":
        return Opened(Source(None, "frame", names, what), _ir_datasets(str(path), kind), "")
    if spec.name == "trec" and kind in ("run", "qrels"):
        return Opened(Source(path, "trec", names, what), trec_records(path, kind), "")
    form = spec.name if spec.name in FORMS else ""
    options = {key: value for key, value in spec.params if key in _OPTIONS}
    columns = [] if spec.name != "auto" or "header" in options else header(path, kind, names)
    if columns:
        options["header"] = ",".join(columns)
    syntax, found = records(path, Spec("auto" if form else spec.name, tuple(options.items())), expected, _OTHERS)
    first = next(found, None)
    if first is not None:
        if form != "dict":
            _refuse_columns(path, first, names)
        found = chain([first], found)
        if not form and not chosen:
            form = next((name for name, one in FORMS.items() if one.marks(first.fields)), "")
    origin = Source(path, syntax, names, what)
    if not form:
        return Opened(origin, _numbered(origin, found) if columns == _QA else found, "")
    if kind not in FORMS[form].kinds:
        raise DataError(f"is of the form {form!r}, which holds no {_MANY[kind]}; expected {expected}", path)
    if kind == "query":
        origin = origin.of({**_ENTRY, **names, "text": names["text"] if "text" in chosen else _ENTRY["text"]}, what)
    return Opened(origin, _unfolded(form, origin, found, kind), form)


def _refuse_columns(path: Path, record: Record, names: Names) -> None:
    """Refuse JSON by columns, as pandas and Datasets write a table unless told otherwise.

    Raises:
        DataError: the first record is such a table.
    """
    if not all(isinstance(cells, list | dict) for cells in record.fields.values()):
        return
    telling = {*_ASKED, *(name for key in ("id", "text", "query", "doc") for name in names.get(key, ()))}
    for name, cells in record.fields.items():
        of_texts = isinstance(cells, list) and cells and isinstance(cells[0], str)
        if name in telling and (of_texts or (isinstance(cells, dict) and cells and all(map(str.isdigit, cells)))):
            how = "to_json(…, orient='records', lines=True)"
            raise DataError(
                f"{name!r} holds a whole column, but a record is one row: write it with {how}", path, record.line
            )


_OPTIONS: Final = ("header", "quote")
_OTHERS: Final = ("beir", "ir_datasets", "msmarco", "trec", *FORMS)
_MANY: Final = {"query": "queries", "doc": "docs", "run": "run", "qrels": "judgments", "answer": "answers"}
_QA: Final = ["question", "answers"]


def header(path: Path, kind: str, names: Names) -> list[str]:
    """Return the columns of a TSV (of runs and qrels also CSV) file without a header line; [] if it has one."""
    if path.is_dir():
        return []
    start = head(path, EXPECTED[kind], 1 << 16).lstrip()
    row = start.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    if start[:1] in (b"", b"[", b"{", b"<") or start.startswith(b"PAR1"):
        return []
    delimiter = "\t" if "\t" in row else "," if kind in ("run", "qrels") else "\t"
    cells = row.split(delimiter)
    known = {name for some in (names, *NAMES.values()) for one in some.values() for name in one}
    if len(cells) < 2 or known.intersection(cell.strip().strip('"') for cell in cells):
        return []
    if kind == "query" and len(cells) == 2 and " " in cells[0] and cells[1].lstrip('"').startswith("["):
        return _QA
    columns = list(_WITHOUT_HEADER.get((kind, len(cells)), ()))
    if columns and kind in ("run", "qrels") and not math.isfinite(as_number(cells[2].strip().strip('"'))):
        roles = ("query", "doc", "score" if kind == "run" else "relevance")
        says = ",".join(f"{role}={cell.strip()}" for role, cell in zip(roles, cells, strict=True))
        form = f"{'csv' if delimiter == ',' else 'tsv'}({says}):{path}"
        raise DataError(
            f"{cells[2].strip()!r} is neither a number nor a known name of a column. If this line is a header, say"
            f" which column is which: {form!r}",
            path,
            1,
        )
    return columns


_WITHOUT_HEADER: Final = {
    ("query", 2): ("query_id", "text"),
    ("doc", 2): ("doc_id", "text"),
    ("doc", 3): ("doc_id", "text", "title"),
    ("run", 3): ("query_id", "doc_id", "score"),
    ("qrels", 3): ("query_id", "doc_id", "relevance"),
    ("answer", 2): ("query_id", "answer"),
}
"""The columns of a file without a header, by kind and number: topics, MS MARCO's and DPR's collections, and so on."""


def _numbered(source: Source, found: Iterable[Record]) -> Iterator[Record]:
    """Yield the questions of a ``qa.csv`` of DPR, which have no ids, and Python's lists of answers."""
    for number, record in enumerate(found, 1):
        answers = source.cell(record, "answers", record.fields["answers"], python=True)
        yield record._replace(fields={**record.fields, "query_id": f"q{number}", "answers": answers})


def ir_dataset(name: str) -> Any:
    """Return a data set of the library ir_datasets.

    Raises:
        UsageError: the library is not installed.
        DataError: it knows no such data set.
    """
    try:
        library = import_module("ir_datasets")
    except ImportError:
        reason = "needs the library ir_datasets: pip install 'judgekit[ir-datasets]'"
        raise UsageError(f"ir_datasets:{name} {reason}") from None
    try:
        return library.load(name)
    except KeyError:
        raise DataError(f"unknown data set of ir_datasets: {name!r}") from None


def _ir_datasets(name: str, kind: str) -> Iterator[Record]:
    """Yield what a data set of ir_datasets holds; a query or doc of several fields as its library renders it."""
    method = {"query": "queries_iter", "doc": "docs_iter", "qrels": "qrels_iter", "run": "scoreddocs_iter"}.get(kind)
    found = getattr(ir_dataset(name), method or "", None)
    if found is None:
        raise DataError(f"the data set ir_datasets:{name} holds no {_MANY[kind]}")
    with fetched(name):
        for number, item in enumerate(found(), 1):
            yield Record(number, item_fields(item))


@contextmanager
def fetched(name: str) -> Iterator[None]:
    """Say in a sentence why ir_datasets has no data: it fetches a data set when it is first read.

    Raises:
        DataError: it could not be fetched.
    """
    try:
        yield
    except (OSError, RuntimeError) as problem:
        raise DataError(
            f"ir_datasets could not fetch the data set {name!r}: {' '.join(str(problem).split())[:300]}. See"
            " https://ir-datasets.com for where it comes from, and whether you have to put files of it in place"
        ) from None


def item_fields(item: Any) -> dict[str, Any]:
    """Return the fields of a query, doc or row of ir_datasets; ``text`` is what its library says it is."""
    fields = dict(item._asdict())
    render = getattr(item, "default_text", None)
    return fields if render is None or "text" in fields else {**fields, "text": render()}
