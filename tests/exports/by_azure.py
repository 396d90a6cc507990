# /// script
# dependencies = ["azure-ai-evaluation==1.18.10"]
# ///
"""Azure AI Evaluation: the file that ``evaluate(…, output_path=…)`` writes, with an evaluator that asks no model."""

import json
import sys
from pathlib import Path

from azure.ai.evaluation import F1ScoreEvaluator, evaluate
from halls import QUESTIONS, RUNS

OUT = Path(sys.argv[1])

if __name__ == "__main__":
    for run in RUNS:
        rows = [
            {"id": question.id, "query": question.text, "response": question.answer(run)}
            | {"ground_truth": question.reference}
            | {"context": "\n".join(passage.text for passage in question.found(run))}
            for question in QUESTIONS
        ]
        Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        evaluate(data="data.jsonl", evaluators={"f1_score": F1ScoreEvaluator()}, output_path=str(OUT / f"{run}.json"))
