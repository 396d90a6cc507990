"""``mlflow``: the table of an evaluation of mlflow.genai, a row for each trace."""

from __future__ import annotations

from typing import Any, Final

from judgekit.data.forms.entry import listed_in, object_in
from judgekit.data.forms.tool import Tool


def _retrieved(spans: Any) -> list[Any] | None:
    """Return the passages of a trace's last retrieval."""
    found = None
    for span in listed_in(spans) or ():
        attributes = object_in((object_in(span) or {}).get("attributes")) or {}
        if str(attributes.get("mlflow.spanType")).strip('"') in ("RETRIEVER", "RERANKER"):
            found = listed_in(attributes.get("mlflow.spanOutputs"))
    return found


MLFLOW: Final = Tool(
    "mlflow",
    release="3.17.2",
    exports="`mlflow.genai.evaluate(…).result_df`",
    tells=("trace_id", "request", "response", "spans"),
    question="request.question | request.query | request.input | request.text | request.*",
    answer="response.answer | response.output | response.response | response.result | response.* | response",
    reference="expected_response/value | expected_answer/value",
    passages="spans",
    reads={"passages": _retrieved},
    scores="*/value",
    example='{"trace_id": "t1", "request": {"question": "Who?"}, "response": "Ann", "spans": []}\n',
)
