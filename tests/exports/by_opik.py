# /// script
# dependencies = ["opik==2.2.122"]
# ///
"""Opik: an evaluation without a server; its items as the SDK reads them, and as rows of its page on exports."""

import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path

from halls import FAILS, QUESTIONS, RUNS
from opik.api_objects.experiment.experiment_item import ExperimentItemContent
from opik.evaluation.evaluator import evaluate_on_dict_items
from opik.evaluation.metrics import Equals, base_metric, score_result

OUT = Path(sys.argv[1])
BY_TEXT = {question.text: question for question in QUESTIONS}


class Judge(base_metric.BaseMetric):
    """Fails on one question."""

    def __init__(self):
        super().__init__(name="judge", track=False)

    def score(self, output, question, **ignored):
        """Return the same score for every other answer."""
        if BY_TEXT[question].id == FAILS:
            raise TimeoutError("the judge did not answer")
        return score_result.ScoreResult(name=self.name, value=0.5, reason="so so")


def application(run):
    """Return a task that answers as a run does."""

    def answer(item):
        asked = BY_TEXT[item["question"]]
        context = [passage.text for passage in asked.found(run)]
        return {"output": asked.answer(run), "context": context, "reference": asked.reference}

    return answer


def content(result, number):
    """Return an item as the SDK makes it of a server's reply."""
    scores = [score for score in result.score_results if not score.scoring_failed]
    return ExperimentItemContent.from_compare_dict(
        {
            "id": f"item-{number}",
            "dataset_item_id": f"dataset-item-{number}",
            "trace_id": f"trace-{number}",
            "output": result.test_case.task_output,
            "feedback_scores": [{"name": score.name, "value": score.value, "reason": score.reason} for score in scores],
        },
        {name: value for name, value in result.test_case.dataset_item_content.items() if name != "id"},
    )


def row(item):
    """Return an item as a row, as the page on exports makes it."""
    cells = {f"dataset.{name}": value for name, value in item.dataset_item_data.items()}
    scores = {f"feedback_scores.{score['name']}": score["value"] for score in item.feedback_scores}
    return {**cells, "output": item.evaluation_task_output, **scores}


for run in RUNS:
    evaluated = evaluate_on_dict_items(
        items=[{"question": question.text, "expected_output": question.reference} for question in QUESTIONS],
        task=application(run),
        scoring_metrics=[Equals(track=False), Judge()],
        scoring_threads=1,
    )
    order = {question.text: number for number, question in enumerate(QUESTIONS)}
    results = sorted(
        evaluated.test_results, key=lambda result: order[result.test_case.dataset_item_content["question"]]
    )
    items = [content(result, number) for number, result in enumerate(results)]
    (OUT / f"{run}.jsonl").write_text("".join(json.dumps(asdict(item)) + "\n" for item in items))
    rows = [row(item) for item in items]
    with (OUT / f"{run}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=sorted({name for cells in rows for name in cells}))
        writer.writeheader()
        writer.writerows(rows)
