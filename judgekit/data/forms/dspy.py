"""``dspy``: the table of an evaluation, in which names that example and prediction share say whose they are."""

from typing import Final

from judgekit.data.forms.rag import ASKED, IDENTIFIED
from judgekit.data.forms.tool import Tool

DSPY: Final = Tool(
    "dspy",
    release="3.4.1",
    exports="`Evaluate(…, save_as_json=…)` or `save_as_csv`",
    tells=("example_answer | example_response | example_output", "pred_answer | pred_response | pred_output"),
    question=ASKED,
    id=IDENTIFIED,
    answer="pred_answer | pred_response | pred_output",
    # A row whose program failed has no prediction, so that the example keeps its own name.
    reference="example_answer | example_response | example_output | answer | response | output",
    passages="context | contexts | passages | documents",
    scores="*",
    example='{"question": "Who?", "example_answer": "Ann", "context": ["by Ann"], "pred_answer": "Ann"}\n',
)
