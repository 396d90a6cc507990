"""``expected``: questions with the documents that a good retriever finds, with grades or without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from judgekit.data.fields import DECLARED
from judgekit.data.forms.entry import ENTRY
from judgekit.registry import DataForm

LISTED: Final = ("documents", "docs", "doc_ids", "expected_documents")
GRADES: Final = ("grades", "relevance", "relevances")
_NAMES: Final = DECLARED["qrels"].names


def _expected(fields: Mapping[str, Any]) -> dict[str, Any]:
    docs = fields[next((name for name in LISTED if name in fields), LISTED[0])]
    grades = next((fields[name] for name in GRADES if name in fields), None)
    if grades is None:
        objects = [doc if isinstance(doc, dict) else {"id": doc} for doc in docs]
        docs = [_first(doc, ("id", *_NAMES["doc"])) for doc in objects]
        # Who expects documents without grades says that each is relevant.
        grades = [_first(doc, _NAMES["relevance"], 1) for doc in objects]
    if not isinstance(grades, list) or len(grades) != len(docs):
        raise ValueError(f"has {len(docs)} documents, so it needs {len(docs)} grades ('relevance'), or none")
    return {**fields, "gold": list(zip(docs, grades, strict=True))}


def _first(fields: Mapping[str, Any], names: Iterable[str], otherwise: object = None) -> Any:
    return next((fields[name] for name in names if name in fields), otherwise)


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
