"""``inspect_ai``: the log of an evaluation with Inspect, a record for each sample."""

from typing import Final

from judgekit.data.forms.tool import Tool

INSPECT: Final = Tool(
    "inspect_ai",
    release="0.3.285",
    exports='the log as JSON, `log_format="json"` or `inspect log convert --to json`',
    tells=("epoch", "input", "target", "output.completion"),
    question="input",
    id="id",
    answer="output.completion",
    reference="target",
    passages="metadata.contexts | metadata.documents | metadata.retrieved_contexts",
    scores="scores.*",
    failed="error.message",
    rows="samples",
    apart=("epoch",),
    example='{"samples": [{"id": 1, "epoch": 1, "input": "Who?", "target": "Ann", "output": {"completion": "Ann"}}]}\n',
)
