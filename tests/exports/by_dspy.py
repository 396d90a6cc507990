# /// script
# dependencies = ["dspy==3.4.1"]
# ///
"""DSPy: what an evaluation saves as JSON, where the program fails on a question, and as CSV, where it does not."""

import sys
from pathlib import Path

import dspy
from halls import FAILS, QUESTIONS, RUNS

OUT = Path(sys.argv[1])
BY_TEXT = {question.text: question for question in QUESTIONS}


class Application(dspy.Module):
    """Answers as a run does."""

    def __init__(self, run, fails):
        super().__init__()
        self.run, self.fails = run, fails

    def forward(self, question):
        """Return passages and an answer."""
        asked = BY_TEXT[question]
        if asked.id == self.fails:
            raise TimeoutError("no answer in time")
        return dspy.Prediction(context=[found.text for found in asked.found(self.run)], answer=asked.answer(self.run))


def exact(example, prediction, trace=None):
    """Return whether an answer is the reference."""
    return float(example.answer == prediction.answer)


examples = [
    dspy.Example(id=question.id, question=question.text, answer=question.reference).with_inputs("question")
    for question in QUESTIONS
]
for run in RUNS:
    evaluate = dspy.Evaluate(devset=examples, metric=exact, num_threads=1, display_progress=False)
    evaluate(Application(run, FAILS if run == "dense" else ""), save_as_json=f"{OUT / run}.json")
    evaluate(Application(run, ""), save_as_csv=f"{OUT / run}.csv")
