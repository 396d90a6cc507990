"""``openrageval``: the table of scored results of open-rag-eval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.entry import object_in
from judgekit.data.forms.tool import Tool, sentences

_FIRST: Final = "run_1_"
"""Questions may be answered repeatedly; further repetitions stay as columns."""


def _passages(fields: Mapping[str, Any]) -> list[Any] | None:
    held = object_in(fields.get(f"{_FIRST}retrieved_passages"))
    return None if held is None else [{"id": own, "text": text} for own, text in held.items()]


OPENRAGEVAL: Final = Tool(
    "openrageval",
    exports="the CSV of `open-rag-eval eval`",
    tells=("query_id", "query", f"{_FIRST}retrieved_passages", f"{_FIRST}generated_answer"),
    question=("query",),
    id=("query_id",),
    answer=(sentences(f"{_FIRST}generated_answer[].text"),),
    passages=(_passages,),
    scores=(f"{_FIRST}retrieval_score_*", f"{_FIRST}generation_score_*"),
    example='{"query_id": "q1", "query": "Who?", "run_1_retrieved_passages": {"d1": "by Ann"},'
    ' "run_1_generated_answer": [{"text": "Ann", "citations": ["d1"]}]}\n',
)
