"""The retrieval JSON of DPR and FiD: questions, each with the passages that were retrieved for it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.fields import DOC, QUERY, Names, Source, query_of
from judgekit.data.ordering import Ties
from judgekit.data.records import Record, kind_of, records
from judgekit.data.runs import Run
from judgekit.data.streams import head, stem
from judgekit.data.tables import ALL
from judgekit.errors import DataError
from judgekit.spec import Spec

__all__ = ["is_dpr", "read_dpr"]

_ENTRY: Final[Names] = {**QUERY, "text": ("question", "query", "text")}
_PASSAGE: Final[Names] = {**DOC, "id": ("id", "doc_id", "passage_id", "docid")}
_MARK: Final = re.compile(rb'"ctxs"\s*:\s*\[')


def is_dpr(path: str | Path, expected: str) -> bool:
    """Return whether a file looks like the retrieval JSON of DPR and FiD (its first records have ``ctxs``).

    ``expected`` is what the caller reads otherwise, for the error message where there is no such file.
    """
    start = head(path, expected)
    return start.lstrip()[:1] in (b"[", b"{") and bool(_MARK.search(start))


def read_dpr(
    path: str | Path, name: str | None = None, ties: Ties = Ties.DOC_DESC
) -> tuple[dict[str, Query], MemoryDocs, Run]:
    """Read queries, docs and the run from a list of ``{question, answers, ctxs: [{id, title, text, score}]}``.

    A JSON array or JSON lines, plain or gzip. Entries without an id are numbered ``q1, q2, …`` in the order of the
    file; passages without an id get one made of title and text, so that the same passage has the same id everywhere.
    Scores may be strings that hold a number, as DPR writes them; where no passage has one, the order of the lists
    counts. ``hasanswer`` is ignored: the containment labeler says it with a declared normalisation.

    Args:
        path: the file.
        name: the run's name; by default the file's name without its endings.
        ties: how documents with equal scores are ordered.

    Raises:
        DataError: an entry is not of that form, an id is there twice, one doc id has two texts, or some passages
            have scores and others have none.
    """
    path = Path(path)
    expected = "retrieval results as JSON (a list of question, answers and ctxs)"
    start = head(path, expected).lstrip()
    if not start:
        raise DataError(f"is empty; expected {expected}", path)
    format, found = records(path, Spec("json" if start.startswith(b"[") else "jsonl"), expected)
    entry = Source(path, format, _ENTRY, "entry")
    queries: dict[str, Query] = {}
    docs: dict[str, Doc] = {}
    rows: list[tuple[str, str, float]] = []
    scored: bool | None = None
    for number, record in enumerate(found, 1):
        query_id = entry.id(record) if entry.find(record, "id") else f"q{number}"
        query = query_of(entry, record, query_id)
        if query_id == ALL:
            raise entry.error(record, f"the query id {ALL!r} is reserved: it marks means over queries")
        if query_id in queries:
            raise entry.error(record, f"query {query_id!r} is there twice")
        if not query.text.strip():
            raise entry.error(record, f"the text of query {query_id!r} is empty")
        queries[query_id] = query
        passages = record.fields.get("ctxs")
        if not isinstance(passages, list):
            raise entry.error(record, f"'ctxs' must be a list of passages, is {kind_of(passages)}")
        seen: set[str] = set()
        for position, fields in enumerate(passages):
            source = entry.within(f"ctxs[{position}]", _PASSAGE, "passage")
            if not isinstance(fields, dict):
                raise source.error(record, f"expected a JSON object, found {kind_of(fields)}")
            passage = Record(record.line, fields)
            doc = _passage(source, passage)
            if doc.doc_id in seen:
                raise source.error(record, f"doc {doc.doc_id!r} is there twice for query {query_id!r}")
            seen.add(doc.doc_id)
            if docs.setdefault(doc.doc_id, doc) != doc:
                raise source.error(record, f"doc {doc.doc_id!r} has another title or text than before")
            score = _score(source, passage, fields)
            if scored is None:
                scored = score is not None
            if scored != (score is not None):
                raise source.error(record, "some passages of this file have a 'score', others have none")
            rows.append((query_id, doc.doc_id, float(len(passages) - position) if score is None else score))
    if not queries:
        raise DataError("holds no entries", path)
    run = Run(
        name or stem(path),
        [query_id for query_id, _, _ in rows],
        [doc_id for _, doc_id, _ in rows],
        [score for _, _, score in rows],
        ties=ties,
    )
    return queries, MemoryDocs(docs.values()), run


def _passage(source: Source, record: Record) -> Doc:
    title, text = source.optional(record, "title"), source.text(record)
    if source.find(record, "id"):
        return Doc(source.id(record), text, title)
    return Doc("p" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:16], text, title)


def _score(source: Source, record: Record, fields: Mapping[str, Any]) -> float | None:
    value = fields.get("score")
    if value is None:
        return None
    try:
        score = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise source.error(record, f"'score' must be a finite number, is {value!r}")
    return score
