"""``lm_eval``: the samples that lm-evaluation-harness logs."""

from __future__ import annotations

from typing import Any, Final

from judgekit.data.forms.entry import listed_in
from judgekit.data.forms.tool import Tool


def _only(filtered: Any) -> Any:
    """Return the filtered reply; raise a `ValueError` if there are several."""
    replies = listed_in(filtered) or []
    if len(replies) != 1 or not isinstance(replies[0], str):
        raise ValueError("'filtered_resps' must hold one text: log samples of a task that generates one answer")
    return replies[0]


LM_EVAL: Final = Tool(
    "lm_eval",
    exports="the samples that the harness logs, `samples_TASK_….jsonl`",
    tells=("doc_id", "doc", "filtered_resps", "target"),
    question="doc.question | doc.query | doc.input",
    id="doc.id | doc.query_id | doc.question_id | doc_hash",
    answer="filtered_resps",
    reads={"answer": _only},
    reference="target",
    passages="doc.contexts | doc.passages | doc.documents",
    scores="exact_match | acc | f1 | em | bleu | rouge*",
    example='{"doc_id": 0, "doc": {"question": "Who?"}, "target": "Ann", "filtered_resps": ["Ann"]}\n',
)
