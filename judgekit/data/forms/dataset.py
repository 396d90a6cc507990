"""``dataset``: questions, passages and judgments in one object, as LlamaIndex saves them for retrievers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from judgekit.data.forms.entry import is_id
from judgekit.data.records import kind_of
from judgekit.registry import DataForm

_OBJECTS: Final = {"queries": "query_id", "corpus": "doc_id"}
"""The parts with texts by id, and what the id is called."""
_JUDGED: Final = ("relevant_docs", "qrels")


def _is_object(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and "text" in value)


def _objects(part: str, held: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield queries or docs: texts by id, or objects with ``text`` as BEIR has them."""
    for name, value in held.items():
        if not _is_object(value):
            raise ValueError(f"{part}[{name!r}] must be a text or an object with 'text', not {kind_of(value)}")
        fields = {"text": value} if isinstance(value, str) else value
        yield {**fields, _OBJECTS[part]: name}


def _judgments(part: str, held: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield judgments by query: a list of relevant docs, or an object of grades."""
    for query_id, judged in held.items():
        grades = dict.fromkeys(map(str, judged), 1) if isinstance(judged, list) and all(map(is_id, judged)) else judged
        if not isinstance(grades, Mapping):
            raise ValueError(f"{part}[{query_id!r}] must be a list of ids or an object of grades, not {judged!r:.60}")
        yield from ({"query_id": query_id, "doc_id": doc, "relevance": grade} for doc, grade in grades.items())


def _records(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the records by kind; a member of a large object holds one part only."""
    by_kind: dict[str, list[dict[str, Any]]] = {"query": [], "doc": [], "qrels": []}
    for part, held in fields.items():
        if part not in _OBJECTS and part not in _JUDGED:
            continue
        if not isinstance(held, Mapping):
            raise ValueError(f"{part!r} must be an object by id, not {kind_of(held)}")
        if part in _JUDGED:
            by_kind["qrels"] += _judgments(part, held)
        else:
            by_kind[_OBJECTS[part].removesuffix("_id")] += _objects(part, held)
    return {"by_kind": by_kind}


def _marks(fields: Mapping[str, Any]) -> bool:
    """Return whether a record is such an object, or its first member, in an order that its writer chose."""
    if fields.keys() >= _OBJECTS.keys():
        return bool(fields.keys() & {*_JUDGED})
    part, held = next(iter(fields.items()), ("", None))
    if len(fields) > 1 or not isinstance(held, Mapping) or not held:
        return False
    return part in _OBJECTS and all(map(_is_object, held.values()))


DATASET: Final = DataForm(
    "dataset",
    _records,
    ("query", "doc", "qrels"),
    marks=_marks,
    nested=True,
    example='{"queries": {"q1": "Who?"}, "corpus": {"d1": "by Ann"}, "relevant_docs": {"q1": ["d1"]}}\n',
)
