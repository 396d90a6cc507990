#!/bin/sh
# Langfuse 5.0.4 leaves questions on which the task failed out of an experiment's results, where one expects them to count.
# Evaluators of the run see only what succeeded: the mean of an application that answers one question of four and fails on
# the others is 1. Two runs are then compared on different questions. judgekit says how many questions each run lacks, and
# an answer that is missing is no answer (docs/answers.md).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet langfuse==5.0.4
"$folder/venv/bin/python" - <<'PYTHON'
import logging
import sys
from importlib.metadata import version

from langfuse import Evaluation, Langfuse

logging.disable(logging.ERROR)
langfuse = Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", tracing_enabled=False)


def task(*, item, **context):
    if item["input"] != "question 0":
        raise TimeoutError("no answer in time")
    return "Ann"


def exact(*, output, expected_output, **context):
    return Evaluation(name="exact", value=float(output == expected_output))


def mean(*, item_results, **context):
    values = [evaluation.value for result in item_results for evaluation in result.evaluations]
    return Evaluation(name="mean", value=sum(values) / len(values))


result = langfuse.run_experiment(
    name="halls",
    data=[{"input": f"question {number}", "expected_output": "Ann"} for number in range(4)],
    task=task,
    evaluators=[exact],
    run_evaluators=[mean],
)
seen = (len(result.item_results), result.run_evaluations[0].value)
print("langfuse", version("langfuse"))
print("expected of four questions, of which one is answered: (4, 0.25), or an error; seen:", seen)
sys.exit(seen != (1, 1.0))
PYTHON
