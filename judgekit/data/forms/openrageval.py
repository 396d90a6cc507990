"""``openrageval``: the table of scored results of open-rag-eval. ``openrageval_answers``: what its connectors write."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from judgekit.data.forms.entry import Entry, object_in
from judgekit.data.forms.tool import Tool, entry_by, sentences
from judgekit.data.records import Fields

_FIRST: Final = "run_1_"
"""Questions may be answered repeatedly; further repetitions stay as columns."""


_PLACE: Final = re.compile(r"\[?\d+\]?")
"""An id that counts the passages of one answer, as all of its connectors write."""
_FAILED: Final = ("NO_ANSWER", "API_ERROR")


def _unless_places(ids: Any) -> Any:
    """Return ids that name passages; None if they count those of each answer anew."""
    return None if all(_PLACE.fullmatch(str(own)) for own in ids) else ids


def _by_id(retrieved: Any) -> list[Any] | None:
    passages = object_in(retrieved)
    if passages is None or _unless_places(passages) is None:
        return None if passages is None else list(passages.values())
    return [{"id": own, "text": text} for own, text in passages.items()]


OPENRAGEVAL: Final = Tool(
    "openrageval",
    release="0.3.0",
    exports="the CSV that `open-rag-eval eval` writes",
    tells=("query_id", "query", f"{_FIRST}retrieved_passages", f"{_FIRST}generated_answer"),
    question="query",
    id="query_id",
    answer=f"{_FIRST}generated_answer[].text",
    passages=f"{_FIRST}retrieved_passages",
    reads={"answer": sentences, "passages": _by_id},
    scores=f"{_FIRST}retrieval_score_* | {_FIRST}generation_score_*",
    example='{"query_id": "q1", "query": "Who?", "run_1_retrieved_passages": {"d1": "by Ann"},'
    ' "run_1_generated_answer": [{"text": "Ann", "citations": ["d1"]}]}\n',
)
_ROWS: Final = Tool(
    "openrageval_answers",
    tells=("query_run", "passage_id", "passage", "generated_answer"),
    question="query",
    id="query_id",
    answer="generated_answer",
    passages="passage",
    passage_ids="passage_id",
    together=("query_id", "query", "query_run"),
    apart=("query_run",),
    example='{"query_id": "q1", "query": "Who?", "query_run": 1, "passage_id": "[1]", "passage": "by Ann",'
    ' "generated_answer": "Ann [1]"}\n',
)


def _answered(fields: Fields) -> Entry:
    """Return the contents of an answer's rows; a failed one names no passages."""
    if fields.get("generated_answer") in _FAILED:
        return entry_by(_ROWS, {**fields, "generated_answer": None, "passage": [], "passage_id": []})
    return entry_by(_ROWS, {**fields, "passage_id": _unless_places(fields["passage_id"])})


OPENRAGEVAL_ANSWERS: Final = replace(_ROWS.form(), read=_answered)
