# /// script
# dependencies = ["langsmith==0.15.1", "pandas"]
# [tool]
# durations = ["execution_time"]
# ///
"""LangSmith: ``evaluate(..., upload_results=False).to_pandas()`` as CSV and JSON lines, one for each retriever."""

import os
import sys
from pathlib import Path
from uuid import UUID

OUT = Path(sys.argv[1])
os.environ.update(LANGSMITH_TRACING="false", LANGSMITH_API_KEY="x", LANGSMITH_ENDPOINT="http://127.0.0.1:1")

from datetime import UTC, datetime  # noqa: E402

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from langsmith import Client, evaluate  # noqa: E402
from langsmith.schemas import Example  # noqa: E402

BY_TEXT = {question.text: question for question in QUESTIONS}
examples = [
    Example(
        id=UUID(int=1000 + int(question.id)),
        inputs={"question": question.text},
        outputs={"answer": question.reference},
        dataset_id=UUID(int=1),
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    for question in QUESTIONS
]


def correct(outputs: dict, reference_outputs: dict) -> bool:
    """Return whether the answer is the reference; fail on one question, as a judge would."""
    if (
        reference_outputs["answer"] == BY_TEXT[f"What is kept in hall {int(FAILS)}?"].reference
        and not outputs["documents"]
    ):
        raise RuntimeError("content filter")
    return outputs["answer"] == reference_outputs["answer"]


for run in RUNS:

    def application(inputs: dict, run: str = run) -> dict:
        """Answer a question, or fail."""
        question = BY_TEXT[inputs["question"]]
        if question.id == FAILS and run == "dense":
            raise RuntimeError("no connection")
        return {"answer": question.answer(run), "documents": [passage.text for passage in question.found(run)]}

    result = evaluate(
        application,
        data=examples,
        evaluators=[correct],
        experiment_prefix=run,
        upload_results=False,
        max_concurrency=0,
        client=Client(api_key="x", api_url="http://127.0.0.1:1", auto_batch_tracing=False),
    )
    table = result.to_pandas().sort_values("example_id", key=lambda ids: ids.astype(str))
    table.to_csv(OUT / f"{run}.csv", index=False)
    table.astype({"example_id": str, "id": str}).to_json(OUT / f"{run}.jsonl", orient="records", lines=True)
