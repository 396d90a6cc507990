"""``retrieved``: what a pipeline of LangChain, LlamaIndex or Haystack returned, as JSON or as its objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.fields import DECLARED, QUERY
from judgekit.data.forms.entry import first_of, passage_of
from judgekit.data.forms.expected import GRADES, LISTED
from judgekit.registry import DataForm

_ASKED: Final = ("question", "query", "user_input", "input", "text")
_FOUND: Final = ("source_documents", "source_nodes", "retrieved_documents", "documents", "docs", "context")
_SAID: Final = ("answer", "result", "response", "generation", "output", "data")
_RIGHT: Final = ("reference", "ground_truth", "expected_answer", "reference_answer", "expected_output")
_PARTS: Final = ("documents", "source_nodes", "replies", "answers")
"""What a part of a result holds: a component of Haystack's pipeline, a response of LlamaIndex."""
_GRADED: Final = {*DECLARED["qrels"].names["relevance"]} - {"score"}


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what its parts hold beside the rest."""
    merged: dict[str, Any] = {}
    for name, part in fields.items():
        held = _attributes(part)
        merged |= held if {*_PARTS} & {*held} else {name: part}
    answers = merged.get("answers")
    given = _attributes(answers[0]) if isinstance(answers, list) and answers else {}
    if "data" in given:  # Haystack's answer with its documents
        del merged["answers"]
        merged = {**given, **merged}
    if merged.get("replies"):
        merged.setdefault("answer", _said(merged["replies"][0]))
    return merged


def _attributes(item: Any) -> dict[str, Any]:
    """Return what an object or its JSON holds, by name."""
    if isinstance(item, Mapping):
        return dict(item.get("init_parameters", item))  # as Haystack writes objects
    names = (*_PARTS, "response", "query", "data")
    return {name: value for name in names if (value := getattr(item, name, None)) is not None}


def _said(reply: Any) -> Any:
    """Return the text of a reply: a text, or a message of a chat as an object or as JSON."""
    if isinstance(reply, Mapping):
        parts = reply.get("content", reply.get("_content"))
        return parts[0].get("text") if isinstance(parts, list) and parts else parts
    return reply if isinstance(reply, str) else getattr(reply, "text", None)


def _found(fields: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the passages of a result, None if it holds no list of passages with texts."""
    for name in _FOUND:
        items = fields.get(name)
        if not isinstance(items, list) or not items:
            continue
        if isinstance(items[0], str):
            # Ids hold no white space, texts do; deepeval has expected texts under "context".
            if name != "context" and any(len(item.split()) > 1 for item in items if isinstance(item, str)):
                return [passage_of(item) for item in items]
            continue
        graded = isinstance(items[0], Mapping) and _GRADED & {*items[0]}
        if not graded and isinstance(passage_of(items[0]).get("text"), str):
            return [passage_of(item) for item in items]
    return None


def _same(passage: Mapping[str, Any]) -> str:
    """Return what two listings of one passage share."""
    own = passage.get("id")
    return f"{passage.get('title') or ''}\n{passage.get('text')}" if own is None else str(own)


def _marks(fields: Mapping[str, Any]) -> bool:
    return not {*GRADES} & {*fields} and _found(_flat(fields)) is not None


def _retrieved(fields: Mapping[str, Any]) -> dict[str, Any]:
    flat = _flat(fields)
    asked, said, right = (first_of(flat, names) for names in (_ASKED, _SAID, _RIGHT))
    passages = _found(flat)
    if passages is None:
        if not any(flat.get(name) == [] for name in _FOUND):
            raise ValueError(f"lacks a list of passages with their texts ({', '.join(_FOUND)})")
        passages = []  # nothing was found for this question
    # A score of a vector store may be a distance: the order of the list counts, and where a passage comes first.
    ranked = {_same(passage): {**passage, "score": None} for passage in reversed(passages)}
    entry = {
        "question": flat[asked] if asked else None,
        "ctxs": [*ranked.values()][::-1],
        "answer": flat[said] if said else None,
    }
    entry["query_id"] = next((flat[name] for name in QUERY["id"] if flat.get(name) is not None), None)
    reference = flat.get("answers", flat[right] if right else [])
    entry["answers"] = [reference] if isinstance(reference, str) else reference
    return entry


RETRIEVED: Final = DataForm(
    "retrieved",
    _retrieved,
    ("query", "doc", "run", "answer"),
    marks=_marks,
    nested=True,
    lists=LISTED,
    example='{"question": "Who?", "documents": [{"page_content": "by Ann", "metadata": {"source": "a.md"}}]}\n',
)
