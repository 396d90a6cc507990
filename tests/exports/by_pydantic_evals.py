# /// script
# dependencies = ["pydantic-evals==2.62.0"]
# [tool]
# durations = ["task_duration", "total_duration"]
# ///
"""pydantic-evals: the report of an evaluation as JSON."""

import sys
from pathlib import Path

from halls import QUESTIONS, RUNS
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
from pydantic_evals.reporting import EvaluationReportAdapter

OUT = Path(sys.argv[1])
BY_TEXT = {question.text: question for question in QUESTIONS}


def application(run):
    """Return a task that answers as a run does."""

    async def answer(text: str) -> str:
        return BY_TEXT[text].answer(run)

    return answer


cases = [Case(name=question.id, inputs=question.text, expected_output=question.reference) for question in QUESTIONS]
dataset = Dataset(name="halls", cases=cases, evaluators=[EqualsExpected()])
for run in RUNS:
    report = dataset.evaluate_sync(application(run), name=run, progress=False)
    (OUT / f"{run}.json").write_bytes(EvaluationReportAdapter.dump_json(report, indent=1))
