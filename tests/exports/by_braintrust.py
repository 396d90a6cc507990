# /// script
# dependencies = ["braintrust==0.48.1", "autoevals==0.4.1"]
# ///
"""Braintrust: the results of an evaluation that is not sent, a line each; the application fails on a question."""

import json
import sys
from pathlib import Path

from autoevals import ExactMatch
from braintrust import Eval
from halls import FAILS, QUESTIONS, RUNS

OUT = Path(sys.argv[1])
BY_TEXT = {question.text: question for question in QUESTIONS}


def exact(input, output, expected):
    """Return whether the answer is the reference."""
    return ExactMatch()(output["answer"], expected)


def application(run):
    """Return a task that answers as a run does."""

    def answer(input):
        asked = BY_TEXT[input["question"]]
        if asked.id == FAILS and run == "dense":
            raise TimeoutError("no answer in time")
        return {"answer": asked.answer(run), "context": [passage.text for passage in asked.found(run)]}

    return answer


for run in RUNS:
    evaluated = Eval(
        "halls",
        data=[{"input": {"question": question.text}, "expected": question.reference} for question in QUESTIONS],
        task=application(run),
        scores=[exact],
        experiment_name=run,
        no_send_logs=True,
        max_concurrency=1,
    )
    rows = [{**result.as_dict(), "exc_info": None} for result in evaluated.results]
    (OUT / f"{run}.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
