"""``ragelo``: what a judge of RAGElo said of each passage, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.tool import at
from judgekit.registry import DataForm


def _judged(fields: Mapping[str, Any]) -> dict[str, Any]:
    grade = at(fields, "answer.score")
    if grade is None:
        reason = str(fields.get("exception") or "no score")[:80]
        raise ValueError(f"RAGElo has no judgment of this passage ({reason}): have it judged again, or remove the line")
    return {"rows": [(fields["qid"], fields["did"], grade)]}


RAGELO: Final = DataForm(
    "ragelo",
    _judged,
    ("qrels",),
    marks=lambda fields: fields.keys() >= {"qid", "did", "evaluator_name", "answer"},
    nested=True,
    example='{"qid": "q1", "did": "d1", "evaluator_name": "reasoner", "exception": null, "answer": {"score": 2}}\n',
)
