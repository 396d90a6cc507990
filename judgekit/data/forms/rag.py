"""``rag``: the evaluation tables of ragas, deepeval and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.fields import QUERY
from judgekit.data.forms.entry import content_id, first_of, passage_of
from judgekit.data.records import kind_of
from judgekit.registry import DataForm

ASKED: Final = ("user_input", "question", "input", "query")
_FOUND: Final = ("retrieved_contexts", "retrieval_context", "contexts", "context")
_GOLD: Final = ("reference_contexts", "context")
_RIGHT: Final = ("ground_truths", "ground_truth", "reference", "expected_output", "expected_answer")
_SAID: Final = ("response", "actual_output", "answer")
_TELLING: Final = {*_FOUND[:3], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}
_ROLES: Final = {"human": "user", "ai": "assistant"}


def _texts(fields: Mapping[str, Any], name: str | None) -> list[Any]:
    value = fields[name] if name else []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise ValueError(f"{name!r} must be a list of texts, not {kind_of(value)}")
    return value


def _turns(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the messages of a conversation with role and content, as ragas has them by type."""
    turns = []
    for message in messages:
        held = message if isinstance(message, dict) else {}
        kind = held.get("type")
        turns.append({"role": held.get("role") or _ROLES.get(str(kind), kind), "content": held.get("content")})
    return turns


def _rag(fields: Mapping[str, Any]) -> dict[str, Any]:
    asking, reply, truth, context = (first_of(fields, names) for names in (ASKED, _SAID, _RIGHT, _FOUND))
    entry: dict[str, Any] = {"question": fields[asking] if asking else None}
    if isinstance(entry["question"], list):  # a conversation: its last message of a person is the question
        entry["messages"] = _turns(entry["question"])
        asked = (turn["content"] for turn in reversed(entry["messages"]) if turn["role"] == "user")
        entry["question"] = next(asked, None)
    entry["query_id"] = next((fields[name] for name in QUERY["id"] if fields.get(name) is not None), None)
    entry |= {"answers": _texts(fields, truth), "answer": fields[reply] if reply else None}
    entry["ctxs"] = [_passage(text) for text in _texts(fields, context)]
    golds = first_of(fields, [name for name in _GOLD if name != context])
    entry["sources"] = [_passage(text) for text in _texts(fields, golds)]
    ids = [content_id(str(passage["title"] or ""), str(passage["text"])) for passage in entry["sources"]]
    return {**entry, "gold": [*dict.fromkeys(ids, 1).items()]}


def _passage(context: Any) -> dict[str, Any]:
    held = passage_of(context) if isinstance(context, str | dict) else {"text": context}
    return {"text": held["text"], "title": held.get("title")}


def _marks(fields: Mapping[str, Any]) -> bool:
    # An answer beside a reference is the application's; on its own it is the reference.
    return bool(_TELLING & {*fields}) or ("reference" in fields and bool({"response", "answer"} & {*fields}))


RAG: Final = DataForm(
    "rag",
    _rag,
    ("query", "doc", "run", "qrels", "answer"),
    marks=_marks,
    nested=True,
    lists=(*_FOUND, *_GOLD, *_RIGHT),
    example='{"user_input": "Who?", "retrieved_contexts": ["by Ann"], "response": "Ann", "reference": "Ann"}\n',
)
