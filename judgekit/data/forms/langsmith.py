"""``langsmith``: the results of an experiment as a table."""

from typing import Final

from judgekit.data.forms.tool import Tool

LANGSMITH: Final = Tool(
    "langsmith",
    release="0.15.1",
    exports="`evaluate(…).to_pandas()`",
    tells=("example_id", "feedback.* | reference.* | execution_time | error", "id"),
    question="inputs.question | inputs.query | inputs.input | inputs.text | inputs.*",
    # `id` belongs to a run, so two experiments would never share a question.
    id="example_id",
    answer="outputs.answer | outputs.output | outputs.response | outputs.result | outputs.*",
    reference="reference.answer | reference.output | reference.response | reference.reference | reference.*",
    passages="outputs.documents | outputs.contexts | outputs.context | outputs.source_documents | outputs.docs",
    scores="feedback.*",
    failed="error",
    example='{"inputs.question": "Who?", "outputs.answer": "Ann", "error": null, "example_id": "e1", "id": "r1"}\n',
)
