"""``trulens``: the frame of an application's records; each version is a run."""

from typing import Final

from judgekit.data.forms.tool import Tool

TRULENS: Final = Tool(
    "trulens",
    release="2.16.0",
    exports="`session.get_records_and_feedback()`",
    tells=("app_version", "record_id", "input", "output"),
    question="input",
    answer="output",
    run="app_version",
    scores="*",
    own="app_* | type | *_id | tags | ts | latency | total_* | eval_* | cost_currency | num_events | sample*",
    example='{"app_version": "v1", "record_id": "r1", "input": "Who?", "output": "Ann"}\n',
)
