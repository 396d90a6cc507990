"""Data that belong together although their files do not say so: by the texts of questions, or halves of one table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit.data.documents import Doc, Docs, Queries
from judgekit.data.fields import TABULAR
from judgekit.data.runs import Run
from judgekit.data.sources import opened
from judgekit.data.tables import RATED
from judgekit.experiment.inputs import Input, records_of
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


def table_with_ids(file: Input, column: str, ids: Mapping[str, str], *, known: bool) -> WithIds:
    """Return a table with the ids of its questions, which a column holds as texts.

    Args:
        file: the table.
        column: the one with the questions.
        ids: the ids of questions by their texts, `folded`.
        known: whether another table is the one of the questions.
    """
    named = dict(file.content.named)
    # Beside ratings, or again, the question would make the table one of questions.
    without = known or "value" in named or bool({*RATED}.intersection(file.content.fields))
    if without:
        named.pop("text", None)
    rows, left_out = [], 0
    for record in records_of(file):
        query_id = ids.get(folded(str(record.fields.get(column) or "")))
        if query_id is None:
            left_out += 1
            continue
        kept = {name: cell for name, cell in record.fields.items() if not (without and name == column)}
        rows.append({"query_id": query_id, **kept})
    flat = file.content.flat
    tabular = flat is not None and flat.name in TABULAR
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
