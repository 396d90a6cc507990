# /// script
# dependencies = ["ragas==0.4.3", "langchain-community<0.4.2", "langchain-openai"]
# ///
"""ragas: ``evaluate(...).to_pandas()`` as CSV and JSON lines, and ``EvaluationDataset.to_csv``/``to_jsonl``."""

import os
import sys
import warnings
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ.update(RAGAS_DO_NOT_TRACK="true", OPENAI_API_KEY="x", OPENAI_BASE_URL=os.environ["ENDPOINT"])
warnings.filterwarnings("ignore")

from halls import QUESTIONS, RUNS  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate  # noqa: E402
from ragas.llms import LangchainLLMWrapper  # noqa: E402
from ragas.metrics import ExactMatch, LLMContextPrecisionWithoutReference, NoiseSensitivity, faithfulness  # noqa: E402

judge = LangchainLLMWrapper(ChatOpenAI(model="stand-in"))
for run in RUNS:
    samples = [
        SingleTurnSample(
            user_input=question.asked,
            retrieved_contexts=[passage.text for passage in question.found(run)],
            retrieved_context_ids=[passage.id for passage in question.found(run)],
            reference_contexts=[question.gold.text],
            reference_context_ids=[question.gold.id],
            response=question.answer(run),
            reference=question.reference,
        )
        for question in QUESTIONS
    ]
    dataset = EvaluationDataset(samples=samples)
    dataset.to_csv(OUT / f"dataset-{run}.csv")
    dataset.to_jsonl(OUT / f"dataset-{run}.jsonl")
    result = evaluate(
        dataset,
        metrics=[faithfulness, LLMContextPrecisionWithoutReference(), ExactMatch(), NoiseSensitivity()],
        llm=judge,
        raise_exceptions=False,
        show_progress=False,
        run_config=RunConfig(max_retries=1, timeout=30, max_workers=2),
    )
    table = result.to_pandas()
    table.to_csv(OUT / f"{run}.csv", index=False)
    table.to_json(OUT / f"{run}.jsonl", orient="records", lines=True)
