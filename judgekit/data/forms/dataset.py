"""``dataset``: questions, passages and judgments in one object, as LlamaIndex saves them for retrievers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.entry import Entry, fields_by_id, is_id, is_text_by_id
from judgekit.data.records import Fields, kind_of
from judgekit.registry import DataForm

_PARTS: Final = {"queries": "query", "corpus": "doc", "relevant_docs": "qrels", "qrels": "qrels"}
"""The kind of each part: objects by id."""


def _rows(kind: str, own: str, value: Any) -> list[dict[str, Any]]:
    """Return the rows of a member: a query, a doc, or the judgments of a query, ids or an object of grades."""
    if kind != "qrels":
        if not is_text_by_id(value):
            raise ValueError(f"must be a text or an object with 'text', not {kind_of(value)}")
        return [fields_by_id(own, value, f"{kind}_id")]
    if isinstance(value, list) and all(map(is_id, value)):
        value = dict.fromkeys(map(str, value), 1)
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a list of ids or an object of grades, not {value!r:.60}")
    return [{"query_id": own, "doc_id": doc, "relevance": grade} for doc, grade in value.items()]


def _read(fields: Fields) -> Entry:
    """Return the rows by kind; a member of a large object holds one part only."""
    by_kind: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _PARTS.values()}
    for part, kind in _PARTS.items():
        held = fields.get(part, {})
        if not isinstance(held, Mapping):
            raise ValueError(f"{part!r} must be an object by id, not {kind_of(held)}")
        for own, value in held.items():
            try:
                by_kind[kind] += _rows(kind, own, value)
            except ValueError as error:
                raise ValueError(f"{part}[{own!r}] {error}") from None
    return {"by_kind": by_kind}


def _marks(fields: Fields) -> bool:
    """Return whether a record is such an object, or begins one that is read by its members."""
    kinds = {kind for part, kind in _PARTS.items() if part in fields}
    held = next(iter(fields.values()), None)
    if len(fields) != 1 or not isinstance(held, Mapping):
        return len(kinds) == len({*_PARTS.values()})
    return kinds <= {"query", "doc"} and bool(kinds and held) and all(map(is_text_by_id, held.values()))


DATASET: Final = DataForm(
    "dataset",
    _read,
    ("query", "doc", "qrels"),
    marks=_marks,
    nested=True,
    example='{"queries": {"q1": "Who?"}, "corpus": {"d1": "by Ann"}, "relevant_docs": {"q1": ["d1"]}}\n',
)
