"""``deepeval``: a data set, the file of a test run, or an EvaluationResult as JSON."""

from typing import Final

from judgekit.data.forms.tool import Tool

DEEPEVAL: Final = Tool(
    "deepeval",
    release="4.3.1",
    exports="`EvaluationDataset.save_as`, `test_run_*.json`, `EvaluationResult.model_dump_json()`",
    tells=("input", "actual_output | actualOutput"),
    question="input",
    id="query_id | question_id | id",
    answer="actual_output | actualOutput",
    reference="expected_output | expectedOutput",
    passages="retrieval_context | retrievalContext",
    gold="context",
    run="run",
    rows="testCases | test_results",
    mark="|",
    options=("split",),
    example='{"input": "Who?", "actual_output": "Ann", "expected_output": "Ann", "retrieval_context": ["by Ann"]}\n',
)
