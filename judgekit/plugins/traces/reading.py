"""Traces of an application as queries, docs, runs, answers and ratings: OpenInference (Phoenix) and Langfuse exports.

Whatever its form, a record becomes a `_Step`: what ran inside of what, what went in and came out, what was retrieved.
A trace is a question: what went into its outermost step. Earlier traces of a session are the conversation before it.
Each retrieval step is of the run of its name; the answer, what came out of the outermost step, is about the last one.
Scores and annotations are ratings of it.
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
from judgekit.data.frames import found_in
from judgekit.data.readers import write_docs, write_queries
from judgekit.data.runs import Run
from judgekit.data.tables import id_problem
from judgekit.data.trec import write_run
from judgekit.errors import DataError
from judgekit.spec import Spec, slug

_EXPECTED: Final = "spans in OpenInference terms (Phoenix) or a Langfuse export: JSON lines, a JSON array, CSV, Parquet"
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DOCUMENT: Final = re.compile(r"attributes\.(?:retrieval\.documents|reranker\.output_documents)\.(\d+)\.(.+)")
_RETRIEVING: Final = ("RETRIEVER", "RERANKER")
_WHOLE: Final = "TRACE"
_MODELS: Final = ("attributes.llm.model_name", "attributes.gen_ai.request.model", "model", "provided_model_name")
_ASKED: Final = ("question", "query", "user_input", "input", "text", "content", "messages")
_SAID: Final = ("answer", "output", "response", "result", "text", "content", "messages")


@dataclass
class _Step:
    trace: str
    name: str
    parent: str = ""
    kind: str = ""
    session: str = ""
    start: str = ""
    asked: str = ""
    said: str = ""
    model: str = ""
    found: list[Doc] = field(default_factory=list)


@dataclass
class Traces:
    """What traces hold.

    Attributes:
        queries: one for each question; the same one asked again (of another retriever) has one id, its first trace's.
        docs: the documents that were retrieved.
        runs: one for each name of a retrieval step.
        answers: ``run, depth, query_id, answer, model``; the depth is the length of the longest list that was answered
            from.
        ratings: ``run, depth, query_id, metric, value, model``; values as they came, words too.
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
        """What writes each of the files that `write` makes, by name, those of the runs first."""
        files: dict[str, Callable[[Path], object]] = {}
        files |= {f"{slug(run.name)}.trec": partial(write_run, run) for run in self.runs}
        files |= {"queries.jsonl": partial(write_queries, self.queries), "docs.jsonl": partial(write_docs, self.docs)}
        tables = {"answers.csv": self.answers, "ratings.csv": self.ratings}
        return files | {name: partial(write_table, table) for name, table in tables.items() if len(table)}

    def write(self, folder: str | Path) -> None:
        """Write all of it into a folder; see `files`."""
        for name, write in self.files.items():
            write(Path(folder) / name)


def read_traces(paths: str | Path | Sequence[str | Path]) -> Traces:
    """Read exported traces; what is in several files (traces, observations, scores) belongs together.

    Args:
        paths: the file or files, each JSON lines, a JSON array, CSV or Parquet.

    Raises:
        DataError: a record is neither a span, an observation, a trace nor a score, or no trace holds a question and
            a retrieval.
    """
    steps: dict[str, list[_Step]] = {}
    traces: dict[str, str] = {}
    rated: list[tuple[str, str, Any]] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        for record in records(Path(path), Spec("auto"), _EXPECTED)[1]:
            for fields in _unwrapped(record.fields):
                score = _score(fields)
                if score is not None:
                    rated.append(score)
                    continue
                step, own = _step(fields)
                if not step.trace:
                    have = ", ".join(list(fields)[:8])
                    raise DataError(
                        f"is not a span, a trace or a score (it has: {have}); expected {_EXPECTED}", path, record.line
                    )
                steps.setdefault(step.trace, []).append(step)
                traces[own] = step.trace
    return _assembled(steps, [(traces.get(of, of), name, value) for of, name, value in rated])


def _unwrapped(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the flat objects of a record, with names in snake case: itself, OTLP's spans, a trace's own parts."""
    for resource in fields.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                values = {f"attributes.{one['key']}": next(iter(one["value"].values())) for one in span["attributes"]}
                yield from _unwrapped({**span, "attributes": None, **values})
    if isinstance(fields.get("data"), list):
        for one in fields["data"]:
            yield from _unwrapped(one)
    if "resourceSpans" in fields or isinstance(fields.get("data"), list):
        return
    whole = _flat(fields)
    inside = [part for name in ("observations", "scores", "annotations") for part in whole.pop(name, None) or ()]
    yield whole
    for part in (part for part in inside if isinstance(part, Mapping)):
        yield from _unwrapped({"trace_id": _first(whole, (*_TRACE, "id")), "span_id": _first(whole, _OWN), **part})


def _flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        key = f"{prefix}{_CAMEL.sub('_', name).lower() if not prefix else name}"
        if isinstance(value, Mapping) and key not in ("input", "output", "metadata"):
            flat |= _flat(value, f"{key}.")
        elif value is not None and value == value:  # Parquet has NaN where there is nothing
            flat[key] = value
    return flat


_TRACE: Final = ("context.trace_id", "trace_id")
_OWN: Final = ("context.span_id", "span_id", "id")


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    return str(next((fields[name] for name in names if fields.get(name) not in (None, "")), ""))


def _score(fields: Mapping[str, Any]) -> tuple[str, str, Any] | None:
    """Return what is rated (a step or a trace), the rating's name and its value; None for anything else."""
    annotation = "annotator_kind" in fields
    names = ("result.score", "score", "result.label", "label") if annotation else ("value", "string_value")
    value = next((fields[name] for name in names if name in fields), None)
    about = _first(fields, _OWN if annotation else _TRACE)
    return None if value is None else (about, _first(fields, ("annotation_name", "name")) or "rating", value)


def _step(fields: Mapping[str, Any]) -> tuple[_Step, str]:
    """Return a step and its own id."""
    own = _first(fields, _OWN)
    trace = _first(fields, _TRACE)
    kind = _first(fields, ("attributes.openinference.span.kind", "span_kind", "type")).upper()
    if not trace and ("input" in fields or "output" in fields):  # a trace of Langfuse
        trace, kind = own, _WHOLE
    step = _Step(
        trace=trace,
        name=_first(fields, ("name",)) or kind.lower(),
        parent=_first(fields, ("parent_id", "parent_span_id", "parent_observation_id")),
        kind=kind,
        session=_first(fields, ("attributes.session.id", "session_id")),
        start=_first(fields, ("start_time", "timestamp", "start_time_unix_nano")),
        asked=_text(next((fields[n] for n in ("attributes.input.value", "input") if n in fields), ""), _ASKED),
        said=_text(next((fields[n] for n in ("attributes.output.value", "output") if n in fields), ""), _SAID),
        model=_first(fields, _MODELS) if kind in ("LLM", "GENERATION") else "",
    )
    if kind in _RETRIEVING:
        step.found = [_doc(one, step) for one in _documents(fields)]
    return step, own


def _text(value: Any, keys: Sequence[str]) -> str:
    """Return the text inside what went in or came out: a text, an object with one of these keys, messages."""
    if isinstance(value, str):
        parsed = _parsed(value)
        return value if isinstance(parsed, str) else _text(parsed, keys) or value
    if isinstance(value, list):
        return _text(value[-1], ("content", *keys)) if value else ""
    if isinstance(value, Mapping):
        return next((text for key in keys if key in value and (text := _text(value[key], keys))), "")
    return "" if value is None else str(value)


def _parsed(value: Any) -> Any:
    """Return what a text holds as JSON, if it is an object or a list; else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _documents(fields: Mapping[str, Any]) -> list[Any]:
    """Return the documents of a retrieval, the best first."""
    for name in ("attributes.reranker.output_documents", "attributes.retrieval.documents", "output"):
        found = _parsed(fields.get(name))
        if isinstance(found, Mapping):
            found = next((found[key] for key in ("documents", "results") if key in found), None)
        if isinstance(found, list):
            return found
        if isinstance(found, str) and found.lstrip()[:1] == "[":
            what = f"trace {_first(fields, _TRACE)}: the documents are not written as JSON ({found[:40]}…)"
            raise DataError(f"{what}: export the table as Parquet or JSON lines, not as CSV")
    numbered: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if match := _DOCUMENT.fullmatch(name):
            numbered.setdefault(int(match[1]), {})[match[2]] = value
    return [numbered[place] for place in sorted(numbered)]


def _doc(item: Any, step: _Step) -> Doc:
    if isinstance(item, Mapping):
        item = {name.removeprefix("document."): _parsed(value) for name, value in item.items()}
    doc = found_in({"text": item} if isinstance(item, str) else item)[1]
    if doc is None:
        raise DataError(f"trace {step.trace}: step {step.name!r} holds a document without its content: {item!r:.80}")
    return doc if id_problem(doc.doc_id) is None else replace(doc, doc_id=content_id(doc.title, doc.text))


def _assembled(steps: Mapping[str, list[_Step]], rated: Sequence[tuple[str, str, Any]]) -> Traces:
    roots = {trace: _root(some) for trace, some in steps.items()}
    queries: dict[str, Query] = {}
    told: dict[str, list[dict[str, str]]] = {}
    docs: dict[str, Doc] = {}
    lists: dict[str, dict[str, list[str]]] = {}
    places: dict[tuple[str, str], str] = {}
    models: dict[str, str] = {}
    lost: Counter[str] = Counter()
    for trace, root in sorted(roots.items(), key=lambda item: (item[1].start, item[0])):
        if not root.asked.strip():
            lost["hold no question"] += 1
            continue
        before = told.setdefault(root.session or f"trace {trace}", [])
        turn = {"role": "user", "content": root.asked}
        messages = (*before, turn) if before else ()
        before += [turn, {"role": "assistant", "content": root.said}]
        query = queries.setdefault(
            json.dumps([root.asked, messages]), Query(slug(trace), root.asked, messages=messages)
        )
        found: dict[str, list[str]] = {}
        for step in sorted(steps[trace], key=lambda one: one.start):
            if step.kind in _RETRIEVING:
                found[step.name] = [*found.pop(step.name, ()), *(_kept(docs, doc) for doc in step.found)]
            models[trace] = step.model or models.get(trace, "")
        for name, ids in found.items():
            lists.setdefault(name, {})[query.query_id] = list(dict.fromkeys(ids))
        lost["hold no retrieval (a step of kind RETRIEVER)"] += not found
        if found:
            place = (list(found)[-1], query.query_id)
            lost["were replaced by a later one of the same run on the same question"] += place in places
            places[place] = trace
    if not places:
        raise DataError("no trace holds both a question and a retrieval (a step of kind RETRIEVER with documents)")
    # One depth for all runs, so that they can be compared: a shorter list is answered from what is there.
    depth = max(len(lists[run][query_id]) for run, query_id in places) or 1
    about = {
        trace: {"run": run, "depth": depth, "query_id": query_id, "model": models[trace]}
        for (run, query_id), trace in places.items()
    }
    ratings = {
        (trace, name): {**about[trace], "metric": name, "value": v} for trace, name, v in rated if trace in about
    }
    left_out = [f"{count:,} of {len(roots):,} traces {what}" for what, count in lost.items() if count]
    if len(ratings) < len(rated):
        left_out.append(f"{len(rated) - len(ratings):,} of {len(rated):,} ratings are of other traces, or repeated")
    runs = []
    for name, some in lists.items():
        rows = [(query_id, doc_id, -i) for query_id, ids in some.items() for i, doc_id in enumerate(ids)]
        runs.append(Run(name, [q for q, _, _ in rows], [d for _, d, _ in rows], [score for _, _, score in rows]))
    return Traces(
        {query.query_id: query for query in queries.values()},
        MemoryDocs(docs.values()),
        runs,
        pd.DataFrame([{**place, "answer": roots[trace].said} for trace, place in about.items()]),
        pd.DataFrame(list(ratings.values())),
        left_out,
    )


def _root(steps: Sequence[_Step]) -> _Step:
    """Return the root span. Missing fields come from its ancestors, the answer from its last child."""
    inner = sorted(steps, key=lambda one: (one.kind != _WHOLE, bool(one.parent), one.start))
    root = inner[0]
    root.session = next((one.session for one in inner if one.session), "")
    root.asked = next((one.asked for one in inner if one.asked), "")
    root.said = root.said or next((one.said for one in reversed(inner) if one.kind not in _RETRIEVING and one.said), "")
    return root


def _kept(docs: dict[str, Doc], doc: Doc) -> str:
    """Keep a document, under an id of its own if another has it, and return the id."""
    if docs.setdefault(doc.doc_id, doc) != doc:
        doc = replace(doc, doc_id=f"{doc.doc_id}-{content_id(doc.title, doc.text)}")
        docs[doc.doc_id] = doc
    return doc.doc_id
