"""Traces of an application as queries, docs, runs, answers and ratings: OpenInference (Phoenix) and Langfuse exports.

Every record becomes a `_Step`: its parent, its input and output, and what was retrieved. A trace is a question, the
input of its outermost step. Earlier traces of a session are the conversation before it. Each retrieval step belongs to
the run of its name; the answer, the output of the outermost step, belongs to the last one. Scores and annotations are
ratings of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.files import write_table
from judgekit.data.forms import content_id, records
from judgekit.data.forms.entry import listed_in, passage_of
from judgekit.data.readers import write_docs, write_queries
from judgekit.data.records import Fields
from judgekit.data.runs import Run
from judgekit.data.tables import BY_AN_LLM, BY_CODE, id_problem
from judgekit.data.trec import write_run
from judgekit.errors import DataError
from judgekit.spec import Spec, slug

_EXPECTED: Final = "spans in OpenInference terms (Phoenix) or a Langfuse export: JSON lines, a JSON array, CSV, Parquet"
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_RETRIEVING: Final = ("RETRIEVER", "RERANKER")
_WHOLE: Final = "TRACE"
_RATED_BY: Final = {"LLM": BY_AN_LLM, "CODE": BY_CODE}
"""The ending of an annotation's name if its kind says that no person gave it."""
_QUESTIONS: Final = ("question", "query", "user_input", "input", "text", "content", "messages")
_ANSWERS: Final = ("answer", "output", "response", "result", "text", "content", "messages")

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "trace": ("context.trace_id", "trace_id"),
    "own": ("context.span_id", "span_id", "id"),
    "rated": ("subject.id", "trace_id", "observation_id"),
    "annotates": ("context.span_id", "span_id"),
    "parent": ("parent_id", "parent_span_id", "parent_observation_id"),
    "kind": ("attributes.openinference.span.kind", "span_kind", "type"),
    "name": ("name",),
    "session": ("attributes.session.id", "session_id"),
    "start": ("start_time", "timestamp"),
    "question": ("attributes.input.value", "input"),
    "answer": ("attributes.output.value", "output"),
    "model": ("attributes.llm.model_name", "model", "provided_model_name"),
    "documents": ("attributes.reranker.output_documents", "attributes.retrieval.documents", "output"),
    "rating": ("annotation_name", "name"),
    "value": ("value", "string_value"),
    "annotated": ("result.score", "score", "result.label", "label"),
}
"""The place of each field: first in Phoenix' spans and annotations, then in Langfuse's exports."""


@dataclass
class _Step:
    trace: str
    name: str
    parent: str = ""
    kind: str = ""
    session: str = ""
    start: str = ""
    question: str = ""
    answer: str = ""
    model: str = ""
    docs: list[Doc] = field(default_factory=list)


@dataclass
class Traces:
    """The contents of traces.

    Attributes:
        queries: one for each question; a question asked again (of another retriever) keeps the id of its first trace.
        docs: the retrieved documents.
        runs: one for each name of a retrieval step.
        answers: ``run, depth, query_id, answer, model``; the depth is the length of the longest list behind an answer.
        ratings: ``run, depth, query_id, metric, value, model``; values as given, including words.
        left_out: sentences on what could not be used.
    """

    queries: dict[str, Query]
    docs: MemoryDocs
    runs: list[Run]
    answers: pd.DataFrame
    ratings: pd.DataFrame
    left_out: list[str]

    @property
    def files(self) -> dict[str, Callable[[Path], object]]:
        """The writers of the files that `write` makes, by name, those of the runs first."""
        files: dict[str, Callable[[Path], object]] = {}
        for run in self.runs:
            files[f"{slug(run.name)}.trec"] = partial(write_run, run)
        files["queries.jsonl"] = partial(write_queries, self.queries)
        files["docs.jsonl"] = partial(write_docs, self.docs)
        for name, table in (("answers.csv", self.answers), ("ratings.csv", self.ratings)):
            if len(table):
                files[name] = partial(write_table, table)
        return files

    def write(self, folder: str | Path) -> None:
        """Write everything into a folder; see `files`."""
        for name, write in self.files.items():
            write(Path(folder) / name)


def read_traces(paths: str | Path | Sequence[str | Path]) -> Traces:
    """Read exported traces, from one file or from several (traces, observations, scores).

    Args:
        paths: the file or files, each JSON lines, a JSON array, CSV or Parquet.

    Returns:
        Questions, documents, runs, answers and ratings of all traces, and sentences on unused parts.

    Raises:
        DataError: a record is neither a span, an observation, a trace nor a score, or no trace holds a question and
            a retrieval.
    """
    steps: dict[str, list[_Step]] = {}
    trace_of: dict[str, str] = {}
    rated: list[tuple[str, str, Any]] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        for record in records(Path(path), Spec("auto"), _EXPECTED)[1]:
            for fields in _unwrapped(record.fields):
                try:
                    score = _score(fields)
                except DataError as error:
                    raise DataError(error.reason, path, record.line) from None
                if score is not None:
                    rated.append(score)
                    continue
                step = _step(fields)
                if not step.trace:
                    have = ", ".join(list(fields)[:8])
                    raise DataError(
                        f"is not a span, a trace or a score (it has: {have}); expected {_EXPECTED}", path, record.line
                    )
                steps.setdefault(step.trace, []).append(step)
                trace_of[_id(fields, "own")] = step.trace
    return _assembled(steps, [(trace_of.get(rates, rates), name, value) for rates, name, value in rated])


def _unwrapped(fields: Fields) -> Iterator[dict[str, Any]]:
    """Yield the flat objects of a record, with names in snake case: itself, and what is inside of it."""
    if isinstance(fields.get("data"), list):
        for inner in fields["data"]:
            yield from _unwrapped(inner)
        return
    whole = _flat(fields)
    parts: list[Any] = []
    for name in ("observations", "scores", "annotations"):
        parts += whole.pop(name, None) or ()
    yield whole
    ids = {"trace_id": _id(whole, "trace") or _id(whole, "own"), "span_id": _id(whole, "own")}
    for part in parts:
        yield from _unwrapped({**ids, **part})


def _flat(fields: Fields, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        key = prefix + name if prefix else _CAMEL.sub("_", name).lower()
        # Inputs and outputs are the application's own objects, whose keys only make sense together.
        if isinstance(value, Mapping) and key not in ("input", "output", "metadata"):
            flat |= _flat(value, f"{key}.")
        elif value is not None and value == value:  # Parquet has NaN where there is nothing
            flat[key] = value
    return flat


def _value(fields: Fields, what: str) -> Any:
    return next((fields[name] for name in _FIELDS[what] if fields.get(name) not in (None, "")), None)


def _id(fields: Fields, what: str) -> str:
    value = _value(fields, what)
    if value is None:
        return ""
    return str(value)


def _score(fields: Fields) -> tuple[str, str, Any] | None:
    """Return the rated step or trace, the rating's name and its value; None for other records."""
    annotation = "annotator_kind" in fields
    value = _value(fields, "annotated" if annotation else "value")
    if value is None:
        return None
    about = _id(fields, "annotates" if annotation else "rated")
    if annotation and not about:  # the annotation's own id is meaningless
        raise DataError(
            "is an annotation without its span_id, which Phoenix keeps as the index of the table: call reset_index()"
            " before to_json(…), or write it with to_parquet(…) or to_csv(…) and its index"
        )
    # The name's ending keeps an evaluator's values apart from a person's under the same name.
    name = (_id(fields, "rating") or "rating") + _RATED_BY.get(str(fields.get("annotator_kind")).upper(), "")
    return about, name, value


def _step(fields: Fields) -> _Step:
    trace, kind = _id(fields, "trace"), _id(fields, "kind").upper()
    if not trace and ("input" in fields or "output" in fields):  # a trace of Langfuse
        trace, kind = _id(fields, "own"), _WHOLE
    step = _Step(
        trace=trace,
        name=_id(fields, "name") or kind.lower(),
        parent=_id(fields, "parent"),
        kind=kind,
        session=_id(fields, "session"),
        start=_id(fields, "start"),
        question=_text(_value(fields, "question"), _QUESTIONS),
        answer=_text(_value(fields, "answer"), _ANSWERS),
        model=_id(fields, "model") if kind in ("LLM", "GENERATION") else "",
    )
    if kind in _RETRIEVING:
        step.docs = [_doc(item, step) for item in _documents(fields, step)]
    return step


def _text(value: Any, keys: Sequence[str]) -> str:
    """Return the text of an input or output: a text, an object with one of these keys, or messages."""
    if isinstance(value, str):
        parsed = _parsed(value)
        if isinstance(parsed, str):
            return value
        return _text(parsed, keys) or value
    if isinstance(value, list):
        if value:
            return _text(value[-1], ("content", *keys))
        return ""
    if isinstance(value, Mapping):
        for key in keys:
            text = _text(value.get(key), keys)
            if text:
                return text
        return ""
    if value is None:
        return ""
    return str(value)


def _parsed(value: Any) -> Any:
    """Return a text's JSON object or list; else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _documents(fields: Fields, step: _Step) -> list[Any]:
    """Return the documents of a retrieval, the best first."""
    numbered = _numbered(fields)
    if numbered:
        return numbered
    listed = _parsed(_value(fields, "documents"))
    if isinstance(listed, Mapping):
        listed = listed.get("documents") or listed.get("results")
    # pandas writes lists into CSV in the syntax of Python; texts side by side would become one there.
    if isinstance(listed, str) and listed.lstrip().startswith("["):
        documents = listed_in(listed) or []
        if documents and all(isinstance(document, Mapping) for document in documents):
            return documents
        what = f"trace {step.trace}: the documents are not written as JSON ({listed[:40]}…)"
        raise DataError(f"{what}: export the table as Parquet or JSON lines, not as CSV")
    if isinstance(listed, list):
        return listed
    return []


_NUMBERED: Final = re.compile(r"attributes\.(reranker\.output_documents|retrieval\.documents)\.(\d+)\.(.+)")
"""A member of a document as Phoenix' REST API names it."""


def _numbered(fields: Fields) -> list[dict[str, Any]]:
    """Return documents whose members are attributes of their own, ``retrieval.documents.0.document.content``."""
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for name, value in fields.items():
        found = _NUMBERED.fullmatch(name)
        if found is not None:
            lists.setdefault(found[1], {}).setdefault(int(found[2]), {})[found[3]] = value
    documents = next((lists[name] for name in sorted(lists)), {})  # a reranker's output counts
    return [documents[place] for place in sorted(documents)]


def _doc(item: Any, step: _Step) -> Doc:
    if isinstance(item, Mapping):
        item = {name.removeprefix("document."): _parsed(value) for name, value in item.items()}
    passage = passage_of(item)
    title, text, doc_id = str(passage.get("title") or ""), passage.get("text"), str(passage.get("id") or "")
    if not isinstance(text, str):
        raise DataError(f"trace {step.trace}: step {step.name!r} holds a document without its content: {item!r:.80}")
    if id_problem(doc_id) is not None:
        doc_id = content_id(title, text)
    return Doc(doc_id, text, title, passage.get("page_id"))


@dataclass
class _Assembly:
    """Collects queries, docs, lists and answers trace by trace.

    Attributes:
        queries: by question and conversation before it.
        conversations: the messages of a session so far.
        docs: by id.
        lists: the retrieved ids of each run, by query.
        answers: a row per trace that could be used.
        unused: number of unusable traces, by reason.
    """

    queries: dict[str, Query] = field(default_factory=dict)
    conversations: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    docs: dict[str, Doc] = field(default_factory=dict)
    lists: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)

    def add(self, trace: str, root: _Step, steps: Iterable[_Step]) -> None:
        """Add a trace; those of a session come in order."""
        if not root.question.strip():
            self.unused["hold no question"] += 1
            return
        query_id = self._query(trace, root).query_id
        retrieved: dict[str, list[str]] = {}
        model = ""
        for step in sorted(steps, key=lambda step: step.start):
            model = step.model or model
            if step.kind in _RETRIEVING:
                # The answer belongs to the run of the last retrieval, so that run moves to the end.
                earlier = retrieved.pop(step.name, [])
                retrieved[step.name] = earlier + [self._kept(doc) for doc in step.docs]
        for name, doc_ids in retrieved.items():
            self.lists.setdefault(name, {})[query_id] = list(dict.fromkeys(doc_ids))
        if not retrieved:
            self.unused["hold no retrieval (a step of kind RETRIEVER)"] += 1
            return
        run = list(retrieved)[-1]
        self.answers.append({"trace": trace, "run": run, "query_id": query_id, "model": model, "answer": root.answer})

    def _query(self, trace: str, root: _Step) -> Query:
        before = self.conversations.setdefault(root.session or f"trace {trace}", [])
        turn = {"role": "user", "content": root.question}
        # A follow-up such as "Why?" is another question after another conversation.
        messages = (*before, turn) if before else ()
        before += [turn, {"role": "assistant", "content": root.answer}]
        query = Query(slug(trace), root.question, messages=messages)
        # A question to two retrievers is one query, on which their runs are compared.
        return self.queries.setdefault(json.dumps([root.question, messages]), query)

    def _kept(self, doc: Doc) -> str:
        """Keep a document, under a new id if another one has its id, and return the id."""
        # Chunks of one page may share its id, and a label belongs to one text.
        if self.docs.setdefault(doc.doc_id, doc) != doc:
            doc = replace(doc, doc_id=f"{doc.doc_id}-{content_id(doc.title, doc.text)}")
            self.docs[doc.doc_id] = doc
        return doc.doc_id

    def runs(self) -> list[Run]:
        """Return a run for each name of a retrieval step."""
        runs: list[Run] = []
        for name, by_query in self.lists.items():
            query_ids: list[str] = []
            doc_ids: list[str] = []
            scores: list[int] = []
            for query_id, ranked in by_query.items():
                query_ids += [query_id] * len(ranked)
                doc_ids += ranked
                scores += range(0, -len(ranked), -1)
            runs.append(Run(name, query_ids, doc_ids, scores))
        return runs


def _assembled(steps: Mapping[str, list[_Step]], rated: Sequence[tuple[str, str, Any]]) -> Traces:
    assembly = _Assembly()
    roots = {trace: _root(inside) for trace, inside in steps.items()}
    for trace, root in sorted(roots.items(), key=lambda item: (item[1].start, item[0])):
        assembly.add(trace, root, steps[trace])
    if not assembly.answers:
        raise DataError("no trace holds both a question and a retrieval (a step of kind RETRIEVER with documents)")
    every = pd.DataFrame(assembly.answers)
    answers = every.drop_duplicates(["run", "query_id"], keep="last")
    if len(answers) < len(every):
        reason = "were replaced by a later one of the same run on the same question"
        assembly.unused[reason] = len(every) - len(answers)
    # One depth for all runs, so that they can be compared; shorter lists are answered as they are.
    lengths = [
        len(assembly.lists[run][query_id]) for run, query_id in zip(answers["run"], answers["query_id"], strict=True)
    ]
    answers.insert(2, "depth", max(lengths) or 1)
    if rated and not {trace for trace, _, _ in rated} & roots.keys():
        raise DataError(
            f"none of the {len(rated):,} scores is of a trace that is here: the first is of {rated[0][0]!r}, the first"
            f" trace is {next(iter(roots))!r}. Export the scores of these traces, or leave the scores out"
        )
    ratings = pd.DataFrame(rated, columns=["trace", "metric", "value"], dtype=object)
    ratings = ratings.drop_duplicates(["trace", "metric"], keep="last").merge(answers, on="trace")
    left_out = [f"{count:,} of {len(steps):,} traces {reason}" for reason, count in assembly.unused.items()]
    if len(ratings) < len(rated):
        left_out.append(f"{len(rated) - len(ratings):,} of {len(rated):,} ratings are of other traces, or repeated")
    return Traces(
        queries={query.query_id: query for query in assembly.queries.values()},
        docs=MemoryDocs(assembly.docs.values()),
        runs=assembly.runs(),
        answers=answers.drop(columns="trace"),
        ratings=ratings[["run", "depth", "query_id", "metric", "value", "model"]],
        left_out=left_out,
    )


def _root(steps: Sequence[_Step]) -> _Step:
    """Return the outermost step. What it lacks comes from the steps inside of it, the answer from the last of them."""
    # Exports cut at a page or a time may lack the root; then the earliest outer step replaces it.
    ordered = sorted(steps, key=lambda step: (step.kind != _WHOLE, bool(step.parent), step.start))
    root = ordered[0]
    for step in ordered:
        root.session = root.session or step.session
        root.question = root.question or step.question
    for step in reversed(ordered):
        if step.kind not in _RETRIEVING:
            root.answer = root.answer or step.answer
    return root
