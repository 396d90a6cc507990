"""``ragas``: a data set or the scores of an evaluation."""

from typing import Final

from judgekit.data.forms.tool import Tool

RAGAS: Final = Tool(
    "ragas",
    release="0.4.3",
    exports="`evaluate(…).to_pandas()`, `EvaluationDataset.to_csv`, `to_jsonl`",
    tells=("user_input", "response | reference | retrieved_contexts | retrieved_context_ids"),
    question="user_input",
    id="query_id | question_id | id",
    answer="response",
    reference="reference",
    passages="retrieved_contexts",
    passage_ids="retrieved_context_ids",
    gold="reference_contexts",
    gold_ids="reference_context_ids",
    run="run",
    scores="*",
    lower="noise_sensitivity*",
    example='{"user_input": "Who?", "retrieved_contexts": ["by Ann"], "response": "Ann", "reference": "Ann"}\n',
)
