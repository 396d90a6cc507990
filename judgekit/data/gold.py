"""Checks existing judgments against a collection: relevant documents that it lacks, and copies of relevant documents.

An id that leads nowhere, or to another copy of the text, would quietly become *not relevant*: a changed prefix, an
index that was built anew, a passage that is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from judgekit.data.documents import Doc, Docs
from judgekit.data.labelings import Labeling
from judgekit.data.questions import apart
from judgekit.data.runs import Run
from judgekit.data.tables import Status

Judged = Mapping[str, Mapping[str, float]]
"""The relevance of each judged document, by query."""

_TOP: Final = 10
"""Default number of documents to look at in each list."""
_LOOKED_AT: Final = 1000
"""Number of queries whose passages are checked for copies of relevant ones."""


def judged_by(labeling: Labeling) -> Judged:
    """Return a labeling's judgments by query."""
    judged: dict[str, dict[str, float]] = {}
    for block in labeling.blocks("query_id", "doc_id", "relevance", "status"):
        obtained = block[block["status"] == Status.OK.value]
        columns = (obtained[name].tolist() for name in ("query_id", "doc_id", "relevance"))
        for query_id, doc_id, relevance in zip(*columns, strict=True):
            judged.setdefault(query_id, {})[doc_id] = relevance
    return judged


def misplaced_in(labelings: Sequence[Labeling], runs: Sequence[Run], docs: Docs) -> list[str]:
    """Return sentences on relevant documents that a collection lacks, or holds under another id."""
    found = _tops(runs)
    notes: list[str] = []
    for labeling in labelings:
        notes += misplaced(labeling.name, judged_by(labeling), labeling.scale.threshold, found, docs)
    return notes


def _tops(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return the documents at the top of any run, by query."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for query_id in run.query_ids:
            found.setdefault(query_id, {}).update(dict.fromkeys(run.top(query_id, _TOP)))
    return {query_id: list(doc_ids) for query_id, doc_ids in found.items()}


def misplaced(name: str, judged: Judged, least: float, found: Mapping[str, Sequence[str]], docs: Docs) -> Iterator[str]:
    """Yield which relevant documents a collection lacks, and which it also holds under another id.

    Args:
        name: the name of the judgments.
        judged: the judgments.
        least: the smallest label that counts as relevant.
        found: the documents that runs found, by query; judgments of other queries are ignored.
        docs: the collection.
    """
    relevant = {
        query_id: [doc_id for doc_id, relevance in judged[query_id].items() if relevance >= least]
        for query_id in found
        if query_id in judged
    }
    pairs = [(query_id, doc_id) for query_id, doc_ids in relevant.items() for doc_id in doc_ids]
    lacking = [(query_id, doc_id) for query_id, doc_id in pairs if doc_id not in docs]
    if lacking:
        query_id, doc_id = lacking[0]
        yield (
            f"{len(lacking):,} of the {len(pairs):,} relevant documents of {name} are not in the collection, first"
            f" {doc_id!r} (query {query_id!r}), and no run can find them. Check how their ids are written. If the docs"
            " hold only what runs found, this is as it should be"
        )
    copies = list(_copies(relevant, judged, found, docs))
    if copies:
        query_id, doc_id, original = copies[0]
        yield (
            f"{len(copies):,} documents have the text of a relevant document of {name}, but another id, which it does"
            f" not judge: they count as not relevant. First {doc_id!r}, with the text of {original!r} (query"
            f" {query_id!r}). Leave out such copies, or judge them as well"
        )


def differing(judged: Judged, least: float, questions: Mapping[str, str]) -> int:
    """Return how many questions have rows with different relevant documents.

    ``questions`` holds each query's question, by query id. Rows without a relevant document do not count.
    """
    relevant = {}
    for query_id, relevances in judged.items():
        if query_id in questions:
            relevant[query_id] = [doc_id for doc_id, relevance in relevances.items() if relevance >= least]
    return apart(questions, relevant)


def _copies(
    relevant: Mapping[str, Sequence[str]], judged: Judged, found: Mapping[str, Sequence[str]], docs: Docs
) -> Iterator[tuple[str, str, str]]:
    """Yield unjudged documents that copy a relevant one: query, document and the relevant document."""
    known = ((query_id, [doc_id for doc_id in ids if doc_id in docs]) for query_id, ids in relevant.items())
    for query_id, doc_ids in islice(((query_id, ids) for query_id, ids in known if ids), _LOOKED_AT):
        others = [doc_id for doc_id in found[query_id] if doc_id not in judged[query_id] and doc_id in docs]
        texts = {_text(doc): doc.doc_id for doc in docs.get(doc_ids)}
        for doc in docs.get(others):
            text = _text(doc)
            if text and text in texts:
                yield query_id, doc.doc_id, texts[text]


def _text(doc: Doc) -> str:
    """Return a document's text without differences of blanks and case."""
    return " ".join(doc.text.casefold().split())
