# /// script
# dependencies = ["ragelo==0.7.0"]
# ///
"""RAGElo: the CSV files that its documentation has one write for it, and the experiment and qrels that it writes."""

import asyncio  # noqa: F401 - ragelo runs its judge with it
import csv
import logging
import sys
import warnings
from pathlib import Path

OUT = Path(sys.argv[1])
warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from ragelo import Experiment, get_retrieval_evaluator  # noqa: E402
from ragelo.llm_providers.base_llm_provider import BaseLLMProvider  # noqa: E402
from ragelo.types.evaluables import Document  # noqa: E402
from ragelo.types.formats import LLMResponseType  # noqa: E402


def table(name: str, header: list[str], rows: list[tuple[str, ...]]) -> None:
    """Write a CSV file."""
    with (OUT / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


class Scripted(BaseLLMProvider):
    """A judge without a model."""

    async def call_async(self, input, response_schema):
        """Grade a passage by a word in it; fail on one question."""
        prompt = str(input.user_message or "") + str(input.messages or "")
        if f"hall {int(FAILS)}" in prompt:
            raise RuntimeError("content filter")
        fields = {}
        for name, field in response_schema.model_fields.items():
            if name == "score":
                fields[name] = 2 if "keeps" in prompt else 0
            elif field.is_required():
                fields[name] = "text"
        parsed = response_schema(**fields)
        return LLMResponseType(raw_answer=parsed.model_dump_json(), parsed_answer=parsed)


passages = [passage for question in QUESTIONS for passage in question.passages]
answers = [(question.id, run, question.answer(run)) for question in QUESTIONS for run in RUNS]
table("documents.csv", ["did", "text"], [(passage.id, passage.text) for passage in passages])
table("queries.csv", ["qid", "query"], [(question.id, question.text) for question in QUESTIONS])
table("answers.csv", ["qid", "agent", "answer"], answers)

experiment = Experiment("halls", save_path="halls.json", save_on_disk=True, rich_print=False, show_results=False)
for question in QUESTIONS:
    experiment.add_query(question.text, question.id)
    for run in RUNS:
        for rank, found in enumerate(question.found(run)):
            document = Document(qid=question.id, did=found.id, text=found.text)
            experiment.add_retrieved_doc(document, score=3.0 - rank, agent=run, exist_ok=True)
judge = get_retrieval_evaluator("reasoner", llm_provider=Scripted(), rich_print=False, n_processes=1)
judge.evaluate_experiment(experiment)
experiment.get_qrels(output_path=str(OUT / "qrels.trec"))
experiment.get_runs(output_path=str(OUT / "runs"))

(results,) = Path().rglob("*_results.jsonl")
(OUT / "results.jsonl").write_text(results.read_text())
experiment.save()
(OUT / "experiment.json").write_text(Path("halls.json").read_text())
