"""``promptfoo``: the results of an evaluation, a row for each test and provider."""

from typing import Final

from judgekit.data.forms.tool import Tool

PROMPTFOO: Final = Tool(
    "promptfoo",
    release="0.121.20",
    exports="`promptfoo eval --output out.jsonl` or `out.json`",
    tells=("promptIdx", "testIdx", "provider"),
    question="vars.question | vars.query | vars.input | vars.user_input | prompt.raw",
    # `id` is random for each row.
    id="vars.id | vars.query_id | vars.question_id",
    answer="response.output.answer | response.output",
    reference="vars.reference | vars.expected | vars.answer | vars.ground_truth | vars.expected_answer",
    passages="response.metadata.context | response.metadata.documents | response.output.context | metadata.context",
    run="provider.label | provider.id | provider",
    scores="score | namedScores.*",
    failed="response.error",
    rows="results.results",
    example='{"vars": {"question": "Who?"}, "response": {"output": "Ann"},'
    ' "provider": {"label": "a"}, "promptIdx": 0, "testIdx": 0}\n',
)
