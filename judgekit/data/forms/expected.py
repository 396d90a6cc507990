"""``expected``: questions with the documents that a good retriever finds, with grades or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.entry import ENTRY, first_of
from judgekit.registry import DataForm

LISTED: Final = ("documents", "docs", "doc_ids", "expected_documents")
GRADES: Final = ("grades", "relevance", "relevances")


def _expected(fields: Mapping[str, Any]) -> dict[str, Any]:
    docs = fields[first_of(fields, LISTED) or LISTED[0]]
    # Grades inside of the documents would be two ways to say one thing, and the list of grades is what people have.
    if any(isinstance(doc, dict) for doc in docs):
        raise ValueError("the documents must be ids, not objects; grades stand in a list of their own ('grades')")
    named = first_of(fields, GRADES)
    # Who expects documents without grades says that each is relevant.
    grades = [1] * len(docs)
    if named is not None:
        grades = fields[named]
    if not isinstance(grades, list) or len(grades) != len(docs):
        raise ValueError(f"has {len(docs)} documents, so it needs {len(docs)} grades ('relevance'), or none")
    return {**fields, "gold": list(zip(docs, grades, strict=True))}


EXPECTED: Final = DataForm(
    "expected",
    _expected,
    ("query", "qrels"),
    marks=lambda fields: (
        any(isinstance(fields.get(name), list) and fields[name] for name in LISTED)
        and any(fields.get(name) for name in ENTRY["text"])
    ),
    nested=True,
    example='{"query_id": "q1", "query": "Who?", "documents": ["d1", "d2"], "grades": [2, 1]}\n',
)
