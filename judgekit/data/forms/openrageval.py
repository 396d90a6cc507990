"""``openrageval``: the table of scored results of open-rag-eval."""

from __future__ import annotations

import re
from typing import Any, Final

from judgekit.data.forms.entry import object_in
from judgekit.data.forms.tool import Tool, sentences

_FIRST: Final = "run_1_"
"""Questions may be answered repeatedly; further repetitions stay as columns."""


def _by_id(retrieved: Any) -> list[Any] | None:
    passages = object_in(retrieved)
    if passages is None:
        return None
    # Its connectors number the passages of each question.
    if all(re.fullmatch(r"\[\d+\]", own) for own in passages):
        return [*passages.values()]
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
