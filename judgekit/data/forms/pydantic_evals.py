"""``pydantic_evals``: the report of an evaluation."""

from typing import Final

from judgekit.data.forms.tool import Tool

PYDANTIC_EVALS: Final = Tool(
    "pydantic_evals",
    release="2.62.0",
    exports="`EvaluationReportAdapter.dump_json(report)`",
    tells=("inputs", "output", "assertions", "scores"),
    question="inputs | inputs.question | inputs.query | inputs.input",
    id="name",
    answer="output | output.answer",
    reference="expected_output | expected_output.answer",
    passages="output.documents | output.contexts | attributes.documents | attributes.contexts",
    scores="scores.* | assertions.* | metrics.*",
    rows="cases",
    example='{"name": "q1", "inputs": "Who?", "output": "Ann", "expected_output": "Ann", "scores": {},'
    ' "assertions": {}}\n',
)
