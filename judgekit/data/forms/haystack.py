"""``haystack``: the detailed report of an EvaluationRunResult."""

from typing import Final

from judgekit.data.forms.tool import Tool

HAYSTACK: Final = Tool(
    "haystack",
    release="3.4.1",
    exports='`EvaluationRunResult.detailed_report(output_format="csv")`',
    tells=("predicted_answer | predicted_answers",),
    question="question | questions | query",
    id="query_id | question_id | id",
    answer="predicted_answer | predicted_answers",
    # In the tutorial `answer` is the reference.
    reference="ground_truth_answer | ground_truth_answers | ground_truth | reference | answer | answers",
    passages="contexts | context | retrieved_documents | documents",
    gold="ground_truth_documents",
    run="run",
    scores="*",
    example='{"question": "Who?", "contexts": ["by Ann"], "predicted_answer": "Ann", "answer": "Ann"}\n',
)
