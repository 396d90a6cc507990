"""``retrieved``: what an application's pipeline returned. ``rag``: a table of it for an evaluation.

The passages of a result are those of LangChain, LlamaIndex or Haystack, as JSON or as objects; tables are those of
ragas, deepeval and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from judgekit.data.fields import DECLARED, QUERY
from judgekit.data.forms.entry import content_id, first_of, passage_of
from judgekit.data.forms.expected import GRADES, LISTED
from judgekit.data.records import kind_of
from judgekit.registry import DataForm

ASKED: Final = ("user_input", "question", "query", "input", "text")
_RETRIEVED: Final = ("source_documents", "source_nodes", "retrieved_documents", "documents", "docs", "context")
_CONTEXTS: Final = ("retrieved_contexts", "retrieval_context", "contexts", "context")
_GOLD: Final = ("reference_contexts", "context")
_RIGHT: Final = (
    *("answers", "ground_truths", "ground_truth", "reference"),
    *("expected_output", "expected_answer", "reference_answer"),
)
_SAID: Final = ("response", "actual_output", "answer", "result", "generation", "output")
_NAMES: Final = {"query_id": QUERY["id"], "question": ASKED, "answer": _SAID, "answers": _RIGHT}
_TELLING: Final = {*_CONTEXTS[:3], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}
_GRADED: Final = {*DECLARED["qrels"].names["relevance"]} - {"score"}


def _entry(fields: Mapping[str, Any], listed: str | None) -> dict[str, Any]:
    """Return the entry of a result or row, whose passages stand under a name."""
    held = {key: first_of(fields, names) for key, names in _NAMES.items()}
    entry = {key: fields[name] if name else None for key, name in held.items()}
    entry["answers"] = _listed(fields, held["answers"])
    # A score of a vector store may be a distance: the order of the list counts, and where a passage comes first.
    ranked: dict[str, dict[str, Any]] = {}
    for item in _listed(fields, listed):
        passage = passage_of(item)
        own = passage.get("id")
        same = f"{passage.get('title') or ''}\n{passage.get('text')}" if own is None else str(own)
        ranked.setdefault(same, passage)
    return {**entry, "ctxs": [*ranked.values()]}


def _listed(fields: Mapping[str, Any], name: str | None) -> list[Any]:
    """Return the list that stands under a name; a text alone is one."""
    value = fields[name] if name else []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise ValueError(f"{name!r} must be a list of texts, not {kind_of(value)}")
    return value


def _rag(fields: Mapping[str, Any]) -> dict[str, Any]:
    listed = first_of(fields, _CONTEXTS)
    entry = _entry(fields, listed)
    sources = _listed(fields, first_of(fields, (name for name in _GOLD if name != listed)))
    entry["sources"] = [passage_of(source) for source in sources]
    ids = (content_id(str(passage.get("title") or ""), str(passage["text"])) for passage in entry["sources"])
    return {**entry, "gold": [*dict.fromkeys(ids, 1).items()]}


def _marks_rag(fields: Mapping[str, Any]) -> bool:
    # An answer beside a reference is the application's; on its own it is the reference.
    return bool(_TELLING & {*fields}) or ("reference" in fields and bool({"response", "answer"} & {*fields}))


def _passages_in(fields: Mapping[str, Any]) -> str | None:
    """Return the name of a list of passages with texts; None if a result holds none."""
    for name in _RETRIEVED:
        items = fields.get(name)
        if isinstance(items, list) and items and _are_passages(name, items):
            return name
    return None


def _are_passages(name: str, items: Iterable[Any]) -> bool:
    first = next(iter(items))
    if isinstance(first, str):
        # Ids hold no white space, texts do; deepeval has expected texts under "context".
        return name != "context" and any(len(item.split()) > 1 for item in items if isinstance(item, str))
    graded = isinstance(first, Mapping) and _GRADED & {*first}
    return not graded and isinstance(passage_of(first).get("text"), str)


def _marks_retrieved(fields: Mapping[str, Any]) -> bool:
    return not {*GRADES} & {*fields} and _passages_in(fields) is not None


def _retrieved(fields: Mapping[str, Any]) -> dict[str, Any]:
    listed = _passages_in(fields)
    # An empty list is a question for which nothing was found.
    if listed is None and not any(fields.get(name) == [] for name in _RETRIEVED):
        raise ValueError(f"lacks a list of passages with their texts ({', '.join(_RETRIEVED)})")
    return _entry(fields, listed)


RETRIEVED: Final = DataForm(
    "retrieved",
    _retrieved,
    ("query", "doc", "run", "answer"),
    marks=_marks_retrieved,
    nested=True,
    lists=LISTED,
    example='{"question": "Who?", "documents": [{"page_content": "by Ann", "metadata": {"source": "a.md"}}]}\n',
)
RAG: Final = DataForm(
    "rag",
    _rag,
    ("query", "doc", "run", "qrels", "answer"),
    marks=_marks_rag,
    nested=True,
    lists=(*_CONTEXTS, *_GOLD, *_RIGHT),
    example='{"user_input": "Who?", "retrieved_contexts": ["by Ann"], "response": "Ann", "reference": "Ann"}\n',
)
