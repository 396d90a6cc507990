#!/bin/sh
# DSPy 3.4.1 saves the right answer under `answer` for a question on which the program failed, where one expects none.
# Example and prediction share names: rows hold `example_answer` and `pred_answer`. Where the program raised, there is no
# prediction, nothing is shared, and the example keeps its `answer`: whoever fills `pred_answer` from `answer` counts each
# failure as right. judgekit takes it for the reference, and the answer for missing (judgekit/data/forms/dspy.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet dspy==3.4.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
import logging
import sys
from importlib.metadata import version

import dspy

logging.disable(logging.ERROR)


class Program(dspy.Module):
    def forward(self, question):
        if question == "Who painted it?":
            raise TimeoutError("no answer in time")
        return dspy.Prediction(answer="I don't know.")


examples = [
    dspy.Example(question=question, answer="Ann").with_inputs("question")
    for question in ("Who built it?", "Who painted it?")
]
evaluate = dspy.Evaluate(
    devset=examples, metric=lambda example, prediction: example.answer == prediction.answer, num_threads=1
)
evaluate(Program(), save_as_json="rows.json")
with open("rows.json") as file:
    answered, failed = json.load(file)
print("dspy", version("dspy"))
print("a row with a prediction:", answered)
print("expected where the program failed: example_answer 'Ann' and no other answer")
print("seen:", failed)
as_described = (answered["example_answer"], answered["pred_answer"]) == ("Ann", "I don't know.")
as_described &= failed.get("answer") == "Ann" and not {"example_answer", "pred_answer"} & failed.keys()
sys.exit(not as_described)
PYTHON
