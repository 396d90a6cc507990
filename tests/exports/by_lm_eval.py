# /// script
# dependencies = ["lm_eval==0.4.13", "datasets==5.2.0"]
# ///
"""lm-evaluation-harness: the samples of a generating task, and of tasks with two filters, two replies, or choices.

Each run is a model of its own; the harness puts "" where an API's reply holds no text.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ |= {"HF_HOME": str(Path("cache").resolve()), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from lm_eval.__main__ import cli_evaluate  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.api.registry import register_model  # noqa: E402

GENERATES = """
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{reference}}"
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
TASKS = {
    "halls": GENERATES,
    "halls_filters": GENERATES
    + """
filter_list:
  - name: strict-match
    filter: [{function: regex, regex_pattern: "^(\\\\w+)$"}, {function: take_first}]
  - name: flexible-extract
    filter: [{function: regex, regex_pattern: "(.+)"}, {function: take_first}]
""",
    "halls_replies": """
output_type: generate_until
repeats: 2
doc_to_text: "{{question}}"
doc_to_target: "{{[reference, reference|upper]}}"
process_results: !function scored.any_right
metric_list:
  - {metric: any_right, aggregation: mean, higher_is_better: true}
filter_list:
  - {name: both, filter: [{function: take_first_k, k: 2}]}
""",
    "halls_choice": """
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{choices.index(reference)}}"
""",
}
SCORED = """
def any_right(doc, results):
    return {"any_right": float(doc["reference"] in results[0])}
"""
CHOICES = sorted({question.reference for question in QUESTIONS})


@register_model("application")
class Application(LM):
    """Answers as the application of one run does."""

    def __init__(self, run, **options):
        """Keep the run."""
        super().__init__()
        self.asked = Counter()
        self.answers = {question.text: question.answer(run) for question in QUESTIONS}
        if run == "dense":
            (failed,) = (question.text for question in QUESTIONS if question.id == FAILS)
            self.answers[failed] = ""

    def generate_until(self, requests, disable_tqdm=False):
        """Return an answer for each request; a second one where it is asked again."""
        said = []
        for request in requests:
            self.asked[request.task_name, request.args[0]] += 1
            again = self.asked[request.task_name, request.args[0]] > 1
            said.append("I still don't know." if again else self.answers[request.args[0]])
        return said

    def loglikelihood(self, requests, disable_tqdm=False):
        """Return how likely each choice is, and whether it would be chosen of all texts."""
        return [(-1.0 - len(request.args[1]), request.args[1].strip() == CHOICES[0]) for request in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        """Return no likelihood of a text: no task asks for it."""
        raise NotImplementedError


for run in RUNS:
    here = Path(run)
    here.mkdir()
    rows = []
    for question in QUESTIONS:
        found = [passage.text for passage in question.found(run)]
        rows.append({"id": question.id, "question": question.text, "reference": question.reference, "contexts": found})
        rows[-1]["choices"] = CHOICES
    data = here / "halls.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (here / "scored.py").write_text(SCORED)
    for task, settings in TASKS.items():
        files = json.dumps({"data_files": {"test": str(data.resolve())}})
        head = f"task: {task}\ndataset_path: json\ndataset_kwargs: {files}\ntest_split: test"
        (here / f"{task}.yaml").write_text(head + settings)
    sys.argv = ["lm_eval", "run", "--model", "application", "--model_args", f"run={run}", "--include_path", run]
    sys.argv += ["--tasks", ",".join(TASKS), "--log_samples", "--output_path", f"{run}/out"]
    cli_evaluate()
    for task in TASKS:
        (logged,) = here.glob(f"out/**/samples_{task}_20*.jsonl")
        (OUT / f"{task}-{run}.jsonl").write_text(logged.read_text())
