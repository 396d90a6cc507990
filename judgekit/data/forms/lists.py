"""``dpr``: questions with ranked lists of passages; ``dict``: numbers by query and doc."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.entry import Entry
from judgekit.data.records import Fields, kind_of
from judgekit.registry import DataForm


def _numbers(docs: object) -> bool:
    # null passes here, so that the reader can name its line.
    return isinstance(docs, dict) and not any(isinstance(value, dict | list | str) for value in docs.values())


def _dict(fields: Fields) -> Entry:
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
DICT: Final = DataForm(
    "dict",
    _dict,
    ("run", "qrels"),
    marks=lambda fields: bool(fields) and all(map(_numbers, fields.values())),
    nested=True,
    example='{"q1": {"d1": 2.5, "d2": 1}}\n',
)
