# /// script
# dependencies = ["mlflow==3.17.2"]
# [tool]
# durations = ["execution_duration", "start_time_unix_nano", "end_time_unix_nano", "request_time"]
# ///
"""MLflow: ``result_df`` of ``mlflow.genai.evaluate`` as CSV and JSON lines, a run per retriever."""

import os
import sys
import warnings
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = "1"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["LOGNAME"] = "somebody"
warnings.filterwarnings("ignore")

import mlflow  # noqa: E402
from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from mlflow.entities import Document, Feedback, SpanType  # noqa: E402
from mlflow.genai.scorers import scorer  # noqa: E402

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("halls")
BY_TEXT = {question.text: question for question in QUESTIONS}


@scorer
def correct(inputs, outputs, expectations) -> bool:
    """Return whether the answer is the expected one; fail on one question, as a judge would."""
    if BY_TEXT[inputs["question"]].id == FAILS:
        raise RuntimeError("content filter")
    return outputs["answer"] == expectations["expected_response"]


@scorer
def hallucination(outputs) -> Feedback:
    """Return a score of which less is better."""
    return Feedback(name="hallucination", value=0.7 if "know" in outputs["answer"] else 0.1)


for run in RUNS:

    @mlflow.trace(name=run, span_type=SpanType.RETRIEVER)
    def retrieve(question: str) -> list[Document]:
        """Return the passages of a question."""
        return [Document(page_content=found.text, id=found.id) for found in BY_TEXT[question].found(run)]  # noqa: B023

    @mlflow.trace(name="application")
    def application(question: str) -> dict[str, str]:
        """Answer a question."""
        retrieve(question)
        return {"answer": BY_TEXT[question].answer(run)}  # noqa: B023

    data = []
    for question in QUESTIONS:
        data.append({"inputs": {"question": question.text}, "expectations": {"expected_response": question.reference}})
    with mlflow.start_run(run_name=run):
        result = mlflow.genai.evaluate(data=data, predict_fn=application, scorers=[correct, hallucination])
    table = result.result_df.copy()
    table["order"] = [list(BY_TEXT).index(request["question"]) for request in table["request"]]
    table = table.sort_values("order").drop(columns="order")
    # Paths of the machine, the checkout's commit, times in any order: a user's table has them, nothing reads them.
    table = table.drop(columns=["trace", "trace_metadata", "tags", "assessments"])
    table = table[sorted(table.columns)]  # those of scorers come in any order
    table.to_csv(OUT / f"{run}.csv", index=False)
