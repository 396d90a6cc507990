"""``azure``: the results of an evaluation with Azure AI Evaluation."""

from typing import Final

from judgekit.data.forms.entry import listed_in
from judgekit.data.forms.tool import Tool

AZURE: Final = Tool(
    "azure",
    release="1.18.10",
    exports="`evaluate(…, output_path=…)`",
    tells=("inputs.query | inputs.question", "inputs.response | inputs.answer | outputs.response"),
    question="inputs.query | inputs.question",
    id="inputs.query_id | inputs.question_id | inputs.id",
    answer="outputs.response | inputs.response | inputs.answer",
    reference="inputs.ground_truth",
    passages="inputs.context",
    scores="outputs.*",
    # A context of one text was joined by the application, so its passages are unknown.
    reads={"passages": listed_in},
    rows="rows",
    example='{"inputs.query": "Who?", "inputs.response": "Ann", "inputs.ground_truth": "Ann"}\n',
)
