"""``retrieved``: the results of an application's pipeline. ``rag``: a table of them for an evaluation.

Passages come from LangChain, LlamaIndex or Haystack, as JSON or as objects; tables come from tools without a form of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from judgekit.data.fields import DECLARED, EXPECTED_DOC, QUERY, REFERENCES
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
    " | expected | expected_response | golden_answers | gold_answers | gold_answer | correct_answer | ideal"
)
_PREDICTED: Final = "prediction | pred | generated_answer | model_answer | llm_answer | agent_answer"
SAID: Final = f"response | actual_output | answer | result | generation | output | {_PREDICTED}"
_RETRIEVED: Final = ("source_documents", "source_nodes", "retrieved_documents", "documents", "docs", "context")
_IDS: Final = (*_RETRIEVED, "doc_ids")
"""Names of lists that may hold ids, where the user says so."""
_CONTEXTS: Final = (
    *("retrieved_contexts", "retrieval_context", "contexts", "retrieved_context", "llm_context", "retrieved_passages"),
    "context",
)
_TELLING: Final = {*_CONTEXTS[:-1], "user_input", "actual_output", "expected_output", "ground_truth", "ground_truths"}
GRADED: Final = {*DECLARED["qrels"].names["relevance"]} - {"score"}


def within(held: str, paths: str) -> str:
    """Return the paths of members of an object, which may have several names."""
    return " | ".join(f"{name}.{path}" for name in either(held) for path in either(paths))


_TABLE: Final = Tool(
    "rag",
    question=f"{within('input | inputs', ASKED)} | {ASKED} | reference_question | prompt",
    id=IDENTIFIED,
    answer=f"{within('output', SAID)} | {SAID}",
    reference=RIGHT,
    passages=f"{' | '.join(_CONTEXTS)} | {within('output', ' | '.join((*_CONTEXTS, 'documents', 'retrieval_result')))}",
    gold="reference_contexts | context",
    gold_ids=" | ".join(EXPECTED_DOC),
    run="run",
    scores="*",
    failed="error",
    example='{"question": "Who?", "contexts": ["by Ann"], "answer": "Ann", "ground_truth": "Ann"}\n',
)
_RESULT: Final = Tool("retrieved", question=ASKED, id=IDENTIFIED, answer=SAID, reference=RIGHT, run="run")


def _marks_rag(fields: Fields) -> bool:
    # An answer beside a reference is the application's; a single answer is the reference.
    telling = _TELLING & {*fields}
    if telling == {"user_input"} and {*RATED} & {*fields}:
        return False  # ratings, which name their question by its text
    if telling or ({*REFERENCES} & {*fields} and {"response", "answer"} & {*fields}):
        return True
    asked, right = {*either(ASKED), "prompt"} & {*fields}, {*either(RIGHT)} - {"answers"}
    return bool(asked and right & {*fields} and {*either(SAID)} & {*fields})


def _asked_about_answers(read: Callable[[Fields], Entry], fields: Fields) -> Entry:
    """Return the contents of a record; ask about one with two texts that may be the application's answer."""
    said = [name for name in either(SAID) if isinstance(fields.get(name), str) and fields[name]]
    if "answer" in said and len({fields[name] for name in said}) > 1 and not {*either(RIGHT)} & {*fields}:
        other = next(name for name in said if fields[name] != fields["answer"])
        listed = _passages_in(fields)
        contexts = f",contexts={listed}" if listed else ""
        raise ValueError(
            f"either of 'answer' and {other!r} may be the application's, and the other the right one: write rag(answer="
            f"{other},reference=answer{contexts}):FILE or rag(answer=answer,reference={other}{contexts}):FILE"
        )
    return read(fields)


def _passages_in(fields: Fields) -> str:
    """Return the name of a list of passages with texts; "" if a result holds none."""
    for name in _RETRIEVED:
        items = fields.get(name)
        if isinstance(items, list) and items and _are_passages(name, items):
            return name
    return ""


def _are_passages(name: str, items: list[Any]) -> bool:
    first = items[0]
    if isinstance(first, list | tuple) and not is_scored(first):
        return False
    if isinstance(first, str):
        # Ids hold no white space, texts do; deepeval has expected texts under "context".
        return name != "context" and any(len(item.split()) > 1 for item in items if isinstance(item, str))
    graded = isinstance(first, Mapping) and GRADED & {*first}
    return not graded and isinstance(passage_of(first).get("text"), str)


def _marks_retrieved(fields: Fields) -> bool:
    return not {*GRADES} & {*fields} and bool(_passages_in(fields))


def _result(fields: Fields) -> Tool:
    """Return the places of a result's parts; the list of passages may be empty if nothing was found, or hold ids."""
    lists = (name for name in _IDS if isinstance(fields.get(name), list))
    return replace(_RESULT, passages=_passages_in(fields) or next(lists, ""))


def _reranked(fields: Fields) -> str:
    """Return the name of a reranker's results, numbers of passages in the list that it was given; "" without them."""
    for name in ("results", "data"):
        items = fields.get(name)
        if isinstance(items, list) and items and all(_is_place(item) for item in items):
            return name
    return ""


def _is_place(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("index"), int) and "relevance_score" in item


def _retrieved(fields: Fields) -> Entry:
    result, ranking = _result(fields), _reranked(fields)
    listed = result.passages
    if not listed:
        raise ValueError(f"lacks a list of passages with their texts ({', '.join(_RETRIEVED)})")
    if ranking:
        places = [item["index"] for item in fields[ranking]]
        if not all(0 <= place < len(fields[listed]) for place in places):
            raise ValueError(f"{ranking!r} numbers passages that {listed!r} does not hold")
        fields = {**fields, listed: [fields[listed][place] for place in places]}
    return entry_by(result, fields)


def _taken(fields: Fields) -> dict[str, str]:
    ranking = _reranked(fields)
    return roles_of(_result(fields), fields) | ({ranking: "order of the passages"} if ranking else {})


RETRIEVED: Final = DataForm(
    "retrieved",
    partial(_asked_about_answers, _retrieved),
    ("query", "doc", "run", "answer"),
    marks=_marks_retrieved,
    nested=True,
    options=("passages", "run"),
    lists=LISTED,
    taken=_taken,
    example='{"question": "Who?", "documents": [{"page_content": "by Ann", "metadata": {"source": "a.md"}}]}\n',
)
RAG: Final = replace(_TABLE.form(_marks_rag), read=partial(_asked_about_answers, _TABLE.form().read), narrows=None)
