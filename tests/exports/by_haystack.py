# /// script
# dependencies = ["haystack-ai==3.4.1", "pandas"]
# ///
"""Haystack: ``EvaluationRunResult.detailed_report`` as CSV and JSON, with the columns of its tutorial."""

import json
import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ.update(HAYSTACK_TELEMETRY_ENABLED="False", OPENAI_API_KEY="x")

from halls import QUESTIONS, RUNS  # noqa: E402
from haystack import Document  # noqa: E402
from haystack.components.evaluators import (  # noqa: E402
    AnswerExactMatchEvaluator,
    DocumentMRREvaluator,
    FaithfulnessEvaluator,
)
from haystack.components.generators.chat import OpenAIChatGenerator  # noqa: E402
from haystack.evaluation import EvaluationRunResult  # noqa: E402

judge = OpenAIChatGenerator(model="stand-in", api_base_url=os.environ["ENDPOINT"])
for run in RUNS:
    asked = [question.asked for question in QUESTIONS]
    answers = [question.answer(run) for question in QUESTIONS]
    references = [question.reference for question in QUESTIONS]
    contexts = [[passage.text for passage in question.found(run)] for question in QUESTIONS]
    found = [[Document(id=passage.id, content=passage.text) for passage in q.found(run)] for q in QUESTIONS]
    gold = [[Document(id=question.gold.id, content=question.gold.text)] for question in QUESTIONS]
    faithful = FaithfulnessEvaluator(chat_generator=judge, raise_on_failure=False, progress_bar=False)
    results = {
        "doc_mrr": DocumentMRREvaluator().run(ground_truth_documents=gold, retrieved_documents=found),
        "exact_match": AnswerExactMatchEvaluator().run(ground_truth_answers=references, predicted_answers=answers),
        "faithfulness": faithful.run(questions=asked, contexts=contexts, predicted_answers=answers),
    }
    inputs = {"question": asked, "contexts": contexts, "answer": references, "predicted_answer": answers}
    report = EvaluationRunResult(run_name=run, inputs=inputs, results=results)
    report.detailed_report(output_format="csv", csv_file=str(OUT / f"{run}.csv"))
    (OUT / f"{run}.json").write_text(json.dumps(report.detailed_report(output_format="json")))
