"""Data that belong together although their files do not say so: by the texts of questions, or halves of one table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit.data.documents import Doc, Docs, Queries
from judgekit.data.fields import TABULAR
from judgekit.data.files import read_table
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import Recognised, records_of
from judgekit.data.runs import Run
from judgekit.data.sources import opened, stem
from judgekit.data.tables import ANSWERS, RATED
from judgekit.data.trec import read_run
from judgekit.experiment.inputs import IMPORTED, Files, Input, question_column
from judgekit.spec import Spec


def folded(text: str) -> str:
    """Return what two spellings of one question share."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class WithIds:
    """A table that named its questions by their texts, with the ids of these.

    Attributes:
        text: the content of its file, CSV or JSON lines.
        ending: that of the file's name.
        form: what stands in front of its path.
        rows: how many rows it has.
        left_out: how many rows are about questions that no other file holds.
    """

    text: str
    ending: str
    form: str
    rows: int
    left_out: int


def table_with_ids(content: Recognised, column: str, ids: Mapping[str, str], known: bool, given: str) -> WithIds:
    """Return a table with the ids of its questions, which a column holds as texts.

    Args:
        content: what the table holds.
        column: the one with the questions.
        ids: the ids of questions by their texts, `folded`.
        known: whether another table is the one of the questions.
        given: the file, as readers take it.
    """
    flat, named = content.flat, dict(content.named)
    assert flat is not None, "only a table has a column of questions"
    # Beside ratings, or again, the question would make the table one of questions.
    without = known or "value" in named or bool({*RATED}.intersection(content.fields))
    if without:
        named.pop("text", None)
    rows, left_out = [], 0
    for record in records_of(given, flat):
        query_id = ids.get(folded(str(record.fields.get(column) or "")))
        if query_id is None:
            left_out += 1
            continue
        kept = {name: cell for name, cell in record.fields.items() if not (without and name == column)}
        rows.append({"query_id": query_id, **kept})
    tabular = flat.name in TABULAR
    if tabular:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, [*(rows[0] if rows else ())], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = stream.getvalue()
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    syntax = "csv" if tabular else "jsonl"
    form = str(Spec(syntax, tuple(named.items()))) if named else ""
    return WithIds(text, syntax, form, len(rows), left_out)


def results_with_ids(
    queries: Queries,
    ids: Mapping[str, str],
    docs: Docs,
    run: Run,
    answers: pd.DataFrame | None,
    passages: dict[tuple[str, str], str],
) -> str:
    """Return results as JSON lines, each with the id of its question; a passage keeps its id in earlier results."""
    earlier = dict(passages)
    answered = {} if answers is None else {row["query_id"]: row for row in answers.to_dict("records")}
    retrieved = {*run.query_ids}
    lines = []
    for query_id, query in queries.items():
        documents: dict[str, dict[str, str]] = {}
        for doc in docs.get(run.top(query_id) if query_id in retrieved else []):
            doc_id = earlier.get((doc.title, doc.text), doc.doc_id)
            if doc_id in documents:
                doc_id = doc.doc_id
            documents[doc_id] = {"id": doc_id, "title": doc.title, "text": doc.text}
            if doc.page_id:
                documents[doc_id]["page_id"] = doc.page_id
            passages.setdefault((doc.title, doc.text), doc_id)
        further = {name: cell for name, cell in answered.get(query_id, {}).items() if name != "query_id"}
        entry = {"query_id": ids[query_id], "question": query.text, "documents": [*documents.values()], **further}
        lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    return "".join(lines)


def named_apart(docs: Iterable[Doc], passages: Mapping[tuple[str, str], str]) -> bool:
    """Return whether most passages that earlier results hold as well have another id there."""
    shared = [(doc.doc_id, passages[doc.title, doc.text]) for doc in docs if (doc.title, doc.text) in passages]
    return 2 * sum(own != other for own, other in shared) > len(shared)


def references_of(source: str | Path) -> dict[str, tuple[str, ...]]:
    """Return the reference answers of a table, by the id of their question."""
    origin, rows = opened(source, "query")
    references: dict[str, tuple[str, ...]] = {}
    for record in rows:
        query_id: str = origin.get(record, "id")
        references[query_id] = (*references.get(query_id, ()), *(origin.get(record, "answers") or ()))
    return references


def with_references(queries: Queries, references: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the questions that lack reference answers and get some."""
    lacking = (query_id for query_id, query in queries.items() if not query.answers and references.get(query_id))
    return {query_id: replace(queries[query_id], answers=tuple(references[query_id])) for query_id in lacking}


def give_tables_ids(files: Files) -> None:
    """Give tables that name questions by their texts alone the ids of these."""
    tables = [(file, column) for file in files.all if (column := question_column(file))]
    ids: dict[str, str] = {}
    holders = files.of("query") if tables else []
    known = any(not file.nested for file in holders)
    for file in holders:
        for query_id, query in (files.read(file, "query", read_queries) or {}).items():
            ids.setdefault(folded(query.text), query_id)
    for file, column in tables:
        unknown, file.why = file.why, ""
        found: WithIds | None = files.read(file, "query", partial(table_with_ids, file.content, column, ids, known))
        if found is None or not found.rows:
            file.why = file.why or unknown
            continue
        copy = files.add_written(f"{IMPORTED}/{stem(file.path).removesuffix('.xlsx')}.{found.ending}", found.text)
        copy.form = found.form
        copy.look()
        said = f"{found.rows:,} rows whose questions were found by their text: written to {copy.name} with their ids"
        if found.left_out:
            files.cautions.append(
                f"{file.name}: {found.left_out:,} of its {found.rows + found.left_out:,} rows are left out, since"
                " no other file holds their questions"
            )
        file.taken.append(said)
        files.all.append(copy)


def give_results_ids(files: Files, runs: dict[str, tuple[Input, Run]]) -> None:
    """Give results the ids of a table with the same questions, and one id to passages that several have."""
    results = {name: (file, run) for name, (file, run) in runs.items() if "query" in file.kinds}
    tables: list[tuple[Input, dict[str, str]]] = []
    for table in files.of("query") if results else ():
        queries = None if table.nested else files.read(table, "query", read_queries)
        if queries is not None:
            tables.append((table, {folded(query.text): query_id for query_id, query in queries.items()}))
    passages: dict[tuple[str, str], str] = {}
    for name, (file, run) in results.items():
        own: Queries = files.read(file, "query", read_queries) or {}
        texts = {folded(query.text) for query in own.values()}
        table, known = max(tables, key=lambda pair: len(texts & pair[1].keys()), default=(file, {}))
        matched = len(texts & known.keys())
        docs = read_docs(file.given)
        retrieved = docs.get(sorted({*run.doc_ids}))
        has_ids = bool(own.keys() & {*known.values()}) or 2 * matched <= len(texts)
        if has_ids and not named_apart(retrieved, passages):
            passages |= {(doc.title, doc.text): doc.doc_id for doc in retrieved}
            continue
        ids = dict(zip(own, own, strict=True))
        if not has_ids:
            ids = {query_id: known.get(folded(query.text), query_id) for query_id, query in own.items()}
        answers = files.read(file, "answer", partial(read_table, ANSWERS)) if "answer" in file.kinds else None
        text = results_with_ids(own, ids, docs=docs, run=run, answers=answers, passages=passages)
        copy = files.add_written(f"{IMPORTED}/{name}.jsonl", text)
        # Its columns are told once, with the file that it came from.
        copy.content = replace(file.content, fields=())
        copy.kinds = [kind for kind in file.kinds if kind not in ("query", "qrels")]
        same = "results whose passages others have under other ids"
        if not has_ids:
            same = f"results for {matched:,} questions of {table.name}, found by their text"
            table.kinds = ["query"]
        file.taken.append(f"{same}: written to {copy.name} with their ids")
        file.tell_columns("query")
        file.kinds = ["query"] if has_ids else []
        files.all.append(copy)
        runs[name] = (copy, read_run(copy.path, name))
