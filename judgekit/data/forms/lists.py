"""``dpr`` and ``castorini``: questions with ranked lists of passages; ``dict``: numbers by query and doc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.entry import passage_of, text_id
from judgekit.data.records import kind_of
from judgekit.registry import DataForm


def _castorini(fields: Mapping[str, Any]) -> dict[str, Any]:
    query = fields["query"]
    if not isinstance(query, dict):
        query = {"text": query, "qid": fields.get("qid")}
    entry: dict[str, Any] = {"question": query.get("text"), "ctxs": fields["candidates"]}
    if query.get("qid") is not None:
        entry["query_id"] = text_id(query["qid"])
    if not isinstance(entry["ctxs"], list):
        return entry
    passages = []
    for number, candidate in enumerate(entry["ctxs"]):
        if not isinstance(candidate, dict) or "docid" not in candidate:
            raise ValueError(f"candidates[{number}]: expected an object with docid, score and doc")
        held = {} if candidate.get("doc") is None else passage_of(candidate["doc"])
        own = {"id": text_id(candidate["docid"]), "score": candidate.get("score")}
        passages.append({"text": held.get("text"), "title": held.get("title"), **own})
    return {**entry, "ctxs": passages}


def _numbers(docs: object) -> bool:
    return isinstance(docs, dict) and not any(isinstance(value, dict | list | str) for value in docs.values())


def _dict(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return rows of query, doc and number of a dictionary ``{query: {doc: number}}``."""
    for query, docs in fields.items():
        if not isinstance(docs, dict):
            raise ValueError(f"{query!r}: expected an object of docs, found {kind_of(docs)}")
    return {"rows": [(query, *pair) for query, docs in fields.items() for pair in docs.items()]}


DPR: Final = DataForm(
    "dpr",
    dict,
    ("query", "doc", "run"),
    marks=lambda fields: isinstance(fields.get("ctxs"), list),
    nested=True,
    example='{"question": "Who?", "answers": ["Ann"], "ctxs": [{"id": "d1", "text": "by Ann", "score": 2}]}\n',
)
CASTORINI: Final = DataForm(
    "castorini",
    _castorini,
    ("query", "doc", "run"),
    marks=lambda fields: isinstance(fields.get("candidates"), list) and "query" in fields,
    nested=True,
    example='{"query": {"text": "Who?", "qid": "q1"},'
    ' "candidates": [{"docid": "d1", "score": 2, "doc": {"contents": "by Ann"}}]}\n',
)
DICT: Final = DataForm(
    "dict",
    _dict,
    ("run", "qrels"),
    marks=lambda fields: bool(fields) and all(map(_numbers, fields.values())),
    nested=True,
    example='{"q1": {"d1": 2.5, "d2": 1}}\n',
)
