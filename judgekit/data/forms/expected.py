"""``expected``: questions with the documents that a good retriever finds, with or without grades."""

from __future__ import annotations

import re
from typing import Any, Final

from judgekit.data.forms.entry import ENTRY, Entry, first_of
from judgekit.data.records import Fields, kind_of
from judgekit.registry import DataForm

_IDS: Final = ("expected_document_ids", "expected_doc_ids", "expected_ids")
_JOINED: Final = re.compile(r"[;,|]|\s")
LISTED: Final = ("documents", "docs", "doc_ids", "expected_documents", *_IDS)
GRADES: Final = ("grades", "relevance", "relevances")


def _expected(fields: Fields) -> Entry:
    name = first_of(fields, LISTED) or LISTED[0]
    docs = fields[name]
    if isinstance(docs, str):
        docs = [docs]
    if not isinstance(docs, list):
        raise ValueError(f"{name!r} must be a list of ids, not {kind_of(docs)}")
    if len(docs) == 1 and isinstance(docs[0], str) and _JOINED.search(docs[0]):
        raise ValueError(f'{name!r} holds {docs[0][:60]!r}: write a list, ["d1", "d2"], if these are several ids')
    # People have a separate list of grades; grades inside of the documents would be a second way.
    if any(isinstance(doc, dict) for doc in docs):
        raise ValueError("the documents must be ids, not an object; grades stand in a list of their own ('grades')")
    # An inner list holds alternatives.
    docs = [tuple(doc) if isinstance(doc, list) else doc for doc in docs]
    graded = first_of(fields, GRADES)
    # Documents without grades are all relevant.
    grades = [1] * len(docs) if graded is None else fields[graded]
    if not isinstance(grades, list) or len(grades) != len(docs):
        raise ValueError(f"has {len(docs)} documents, so it needs {len(docs)} grades ('relevance'), or none")
    return {**fields, "gold": list(zip(docs, grades, strict=True))}


_RESULTS: Final = ("scores", "distances", "similarities", "run", "response", "actual_output", "generation")
"""Names that a retriever's or an application's results have beside the ids of documents."""


def is_result(fields: Fields) -> bool:
    """Return whether a record lists ids that a retriever may have found; other names say that they are expected."""
    listed = first_of(fields, LISTED)
    if listed is None or listed in _IDS or "expected" in listed or first_of(fields, GRADES):
        return False
    return first_of(fields, _RESULTS) is not None


def _lists(name: str, value: Any) -> bool:
    # A cell of CSV may spell a list; under names other than ids it may be the text of a passage.
    return bool(value) and (isinstance(value, list) or (name in _IDS and isinstance(value, str)))


EXPECTED: Final = DataForm(
    "expected",
    _expected,
    ("query", "qrels"),
    marks=lambda fields: (
        any(_lists(name, fields.get(name)) for name in LISTED)
        and any(fields.get(name) for name in ENTRY["text"])
        and not is_result(fields)
    ),
    nested=True,
    lists=(*LISTED, *GRADES),
    options=("alternatives",),
    example='{"query_id": "q1", "query": "Who?", "documents": ["d1", "d2"], "grades": [2, 1]}\n',
)
