"""``ragchecker``: the input and the results of RAGChecker."""

from typing import Final

from judgekit.data.forms.tool import Tool

RAGCHECKER: Final = Tool(
    "ragchecker",
    release="0.1.9",
    exports="`RAGResults.to_json()`",
    tells=("query", "gt_answer", "response | retrieved_context"),
    question="query",
    id="query_id",
    answer="response",
    reference="gt_answer",
    passages="retrieved_context",
    scores="metrics.*",
    lower="metrics.noise_sensitivity*",
    rows="results",
    example='{"query_id": "q1", "query": "Who?", "gt_answer": "Ann", "response": "Ann",'
    ' "retrieved_context": [{"doc_id": "d1", "text": "by Ann"}]}\n',
)
