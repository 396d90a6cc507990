# /// script
# dependencies = [
#     "open-rag-eval==0.3.0", "omegaconf==2.4.0", "openai==2.7.2", "pandas==2.2.3", "numpy==2.4.6",
#     "matplotlib==3.11.2", "tenacity==9.1.4", "requests==2.34.2", "tqdm==4.70.1",
# ]
# [tool]
# bare = ["open-rag-eval"]
# ///
"""open-rag-eval: what a connector saves of an application's answers, and the table of their scores, by a stand-in.

The clients of other services and the frameworks of its other connectors are not installed; its model against
hallucinations, which it would download, says .5 of everything.
"""

import csv
import importlib.abc
import os
import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest.mock import MagicMock

OUT = Path(sys.argv[1])
os.environ |= {"OPENAI_API_KEY": "none", "HF_TOKEN": "none"}
ABSENT = ("torch", "transformers", "torchmetrics", "rouge", "llama_index", "google", "anthropic", "together")


class Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of packages that are absent, with nothing in them."""

    def find_spec(self, name, path=None, target=None):
        """Return a module that may have further ones."""
        package = name.partition(".")[0]
        return ModuleSpec(name, self, is_package=True) if package in ABSENT or "langchain" in package else None

    def create_module(self, spec):
        """Return a module that has whatever is asked of it."""
        return MagicMock(__path__=[])

    def exec_module(self, module):
        """Run nothing."""


sys.meta_path.insert(0, Empty())

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from open_rag_eval.connectors.connector import Connector  # noqa: E402
from open_rag_eval.metrics import factuality_backends  # noqa: E402
from open_rag_eval.run_eval import run_eval  # noqa: E402
from open_rag_eval.utils.constants import API_ERROR  # noqa: E402

loaded = factuality_backends.AutoModelForSequenceClassification.from_pretrained.return_value
loaded.predict.return_value.item.return_value = 0.5
CONFIG = """
results_folder: {run}
input_queries: queries.csv
generated_answers: answers.csv
eval_results_file: results.csv
metrics_file: metrics.png
evaluator:
  - type: TRECEvaluator
    model: {{type: OpenAIModel, name: stand-in, api_key: none, base_url: "{endpoint}"}}
    options: {{k_values: [1, 3], run_consistency: false, metrics_to_run_consistency: []}}
"""


class Application(Connector):
    """Asks the application of one run; numbers its passages as the connectors of open-rag-eval do."""

    def process_query(self, query, run_idx=1):
        """Return a row for each passage, or one if the application fails."""
        run = Path(self.output_path).parent.name
        about = {"query_id": query["queryId"], "query": query["query"], "query_run": run_idx}
        if (query["queryId"], run) == (FAILS, "dense"):
            return [{**about, "passage_id": "ERROR", "passage": "no connection", "generated_answer": API_ERROR}]
        question = next(question for question in QUESTIONS if question.id == query["queryId"])
        rows = []
        for place, passage in enumerate(question.found(run), 1):
            said = f"{question.answer(run)} [{place}]" if question.answer(run) in passage.text else ""
            rows.append({**about, "passage_id": f"[{place}]", "passage": passage.text, "generated_answer": said})
        if not any(row["generated_answer"] for row in rows):
            rows[0]["generated_answer"] = question.answer(run)
        return rows


with Path("queries.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(("query_id", "query"))
    writer.writerows((question.id, question.asked) for question in QUESTIONS)
for run in RUNS:
    Application("queries.csv", f"{run}/answers.csv", max_workers=1).fetch_data()
    Path(f"{run}.yaml").write_text(CONFIG.format(run=run, endpoint=os.environ["ENDPOINT"]))
    run_eval(f"{run}.yaml")
    shutil.copy(f"{run}/answers.csv", OUT / f"answers-{run}.csv")
    shutil.copy(f"{run}/TRECEvaluator-results.csv", OUT / f"scored-{run}.csv")
