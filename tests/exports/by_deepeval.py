# /// script
# dependencies = ["deepeval==4.3.1"]
# [tool]
# durations = ["runDuration", "evaluationCost", "testRunDuration"]
# ///
"""deepeval: the file of a test run, its EvaluationResult, and ``EvaluationDataset.save_as`` in three formats."""

import os
import shutil
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", CONFIDENT_OPEN_BROWSER="0", OPENAI_API_KEY="x")
os.environ["DEEPEVAL_RESULTS_FOLDER"] = "results"

from deepeval import evaluate  # noqa: E402
from deepeval.dataset import EvaluationDataset  # noqa: E402
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.metrics import FaithfulnessMetric, HallucinationMetric  # noqa: E402
from deepeval.models import GPTModel  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402
from halls import QUESTIONS, RUNS  # noqa: E402

judge = GPTModel(model="gpt-4o", base_url=os.environ["ENDPOINT"], api_key="x")
for run in RUNS:
    cases = [
        LLMTestCase(
            name=question.id,
            input=question.asked,
            actual_output=question.answer(run),
            expected_output=question.reference,
            retrieval_context=[passage.text for passage in question.found(run)],
            context=[question.gold.text],
        )
        for question in QUESTIONS
    ]
    dataset = EvaluationDataset()
    for case in cases:
        dataset.add_test_case(case)
    for form in ("csv", "json", "jsonl"):
        dataset.save_as(file_type=form, directory=str(OUT / "dataset"), file_name=run, include_test_cases=True)
    result = evaluate(
        cases,
        [FaithfulnessMetric(model=judge, include_reason=False), HallucinationMetric(model=judge, include_reason=False)],
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    (OUT / f"result-{run}.json").write_text(result.model_dump_json(indent=1))
    (file,) = Path("results").glob("test_run_*.json")
    (OUT / "test-run").mkdir(exist_ok=True)
    shutil.move(file, OUT / "test-run" / f"test_run_{run}.json")
