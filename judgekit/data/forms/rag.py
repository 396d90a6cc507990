"""``retrieved``: the results of an application's pipeline. ``rag``: a table of them for an evaluation.

Passages come from LangChain, LlamaIndex or Haystack, as JSON or as objects; tables come from tools without a form of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from judgekit.data.fields import DECLARED, QUERY, REFERENCES
from judgekit.data.forms.entry import Entry, is_scored, passage_of
from judgekit.data.forms.expected import GRADES, LISTED
from judgekit.data.forms.tool import Tool, either, entry_by, roles_of
from judgekit.data.records import Fields
from judgekit.data.tables import RATED
from judgekit.registry import DataForm

ASKED: Final = "user_input | question | query | input | text"
IDENTIFIED: Final = " | ".join(QUERY["id"])
RIGHT: Final = (
    "answers | ground_truths | ground_truth | reference | expected_output | expected_answer | reference_answer"
)
SAID: Final = "response | actual_output | answer | result | generation | output"
_RETRIEVED: Final = ("source_documents", "source_nodes", "retrieved_documents", "documents", "docs", "context")
_CONTEXTS: Final = ("retrieved_contexts", "retrieval_context", "contexts", "context")
_TELLING: Final = {*_CONTEXTS[:3], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}
GRADED: Final = {*DECLARED["qrels"].names["relevance"]} - {"score"}


def _within(held: str, paths: str) -> str:
    """Return the paths of members of an object."""
    return " | ".join(f"{held}.{path}" for path in either(paths))


_TABLE: Final = Tool(
    "rag",
    question=f"{_within('input', ASKED)} | {_within('inputs', ASKED)} | {ASKED}",
    id=IDENTIFIED,
    answer=f"{_within('output', SAID)} | {SAID}",
    reference=RIGHT,
    passages=" | ".join(_CONTEXTS),
    gold="reference_contexts | context",
    run="run",
    scores="*",
    example='{"question": "Who?", "contexts": ["by Ann"], "answer": "Ann", "ground_truth": "Ann"}\n',
)
_RESULT: Final = Tool("retrieved", question=ASKED, id=IDENTIFIED, answer=SAID, reference=RIGHT, run="run")


def _marks_rag(fields: Fields) -> bool:
    # An answer beside a reference is the application's; a single answer is the reference.
    telling = _TELLING & {*fields}
    if telling == {"user_input"} and {*RATED} & {*fields}:
        return False  # ratings, which name their question by its text
    return bool(telling) or bool({*REFERENCES} & {*fields} and {"response", "answer"} & {*fields})


def _passages_in(fields: Fields) -> str | None:
    """Return the name of a list of passages with texts; None if a result holds none."""
    for name in _RETRIEVED:
        items = fields.get(name)
        if isinstance(items, list) and items and _are_passages(name, items):
            return name
    return None


def _are_passages(name: str, items: Iterable[Any]) -> bool:
    first = next(iter(items))
    if isinstance(first, list | tuple) and not is_scored(first):
        return False
    if isinstance(first, str):
        # Ids hold no white space, texts do; deepeval has expected texts under "context".
        return name != "context" and any(len(item.split()) > 1 for item in items if isinstance(item, str))
    graded = isinstance(first, Mapping) and GRADED & {*first}
    return not graded and isinstance(passage_of(first).get("text"), str)


def _marks_retrieved(fields: Fields) -> bool:
    return not {*GRADES} & {*fields} and _passages_in(fields) is not None


def _listed(fields: Fields) -> str | None:
    """Return the name of the list of passages, which may be empty if nothing was found."""
    return _passages_in(fields) or next((name for name in _RETRIEVED if fields.get(name) == []), None)


def _result(fields: Fields) -> Tool:
    """Return the places of a result's parts."""
    listed = _listed(fields)
    return replace(_RESULT, passages=listed or "")


def _retrieved(fields: Fields) -> Entry:
    if _listed(fields) is None:
        raise ValueError(f"lacks a list of passages with their texts ({', '.join(_RETRIEVED)})")
    return entry_by(_result(fields), fields)


RETRIEVED: Final = DataForm(
    "retrieved",
    _retrieved,
    ("query", "doc", "run", "answer"),
    marks=_marks_retrieved,
    nested=True,
    lists=LISTED,
    taken=lambda fields: roles_of(_result(fields), fields),
    example='{"question": "Who?", "documents": [{"page_content": "by Ann", "metadata": {"source": "a.md"}}]}\n',
)
RAG: Final = replace(_TABLE.form(_marks_rag), narrows=None)
