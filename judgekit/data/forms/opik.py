"""``opik``: the items of an experiment, as objects or as the rows of its page on exports."""

from typing import Final

from judgekit.data.forms.rag import ASKED, RIGHT, SAID, within
from judgekit.data.forms.tool import Tool

OPIK: Final = Tool(
    "opik",
    release="2.2.122",
    exports="items of `experiment.get_items()`, as rows of CSV (page on exports) or objects",
    tells=(within("dataset | dataset_item_data", ASKED), "output | evaluation_task_output"),
    question=within("dataset | dataset_item_data", ASKED),
    id="dataset_item_id",
    answer=f"{within('output | evaluation_task_output', SAID)} | output | evaluation_task_output",
    reference=within("dataset | dataset_item_data", f"{RIGHT} | answer"),
    passages=within("output | evaluation_task_output", "context | contexts | documents | retrieved_contexts"),
    scores="feedback_scores.*",
    example='{"dataset.question": "Who?", "dataset.expected_output": "Ann", "output": "Ann"}\n',
)
