"""``llamaindex``: the results of a RetrieverEvaluator."""

from typing import Final

from judgekit.data.forms.tool import Tool

LLAMAINDEX: Final = Tool(
    "llamaindex",
    release="0.14.25",
    exports="`RetrievalEvalResult.model_dump_json()`",
    tells=("query", "expected_ids", "retrieved_ids"),
    question="query",
    passages="retrieved_texts",
    passage_ids="retrieved_ids",
    gold="expected_texts",
    gold_ids="expected_ids",
    scores="metric_dict.*",
    example='{"query": "Who?", "expected_ids": ["d1"], "retrieved_ids": ["d1"], "retrieved_texts": ["by Ann"]}\n',
)
