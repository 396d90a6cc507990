"""The llm room against a real model, with the faults that real servers have."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.sync import run_sync
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.trec import read_run
from judgekit.reading.check import check_endpoint
from judgekit.wire.types import Endpoint, Reply
from tests.programs import Run

MODEL = "minilm-l6-reader"


@pytest.fixture(scope="module")
def questions(shared: Path) -> list[str]:
    """Real judging prompts: 12 questions, each with the five passages that one retriever ranks highest."""
    dev = shared / "data" / "dev"
    queries, docs = read_queries(dev / "queries.jsonl"), read_docs(dev / "docs.jsonl")
    run = read_run(sorted((dev / "runs").glob("bm25*.trec"))[0])
    prompts = []
    for query in islice(queries.values(), 12):
        for doc in docs.get(run.top(query.query_id, 5)):
            prompts.append(
                "Does the passage answer the question? Reply with Yes or No.\n"
                f"<question>{query.text}</question>\n<passage>{doc.text}</passage>"
            )
    return prompts


def said(run: Run) -> dict[str, str]:
    return {unit: o.text if isinstance(o, Reply) else f"failed: {o.reason}" for unit, o in run.outcomes.items()}


def ask(server: Any, questions: list[str], store: Path | None = None, model: str = MODEL, **options: Any) -> Run:
    return Run(server.base_url, questions, store, model=model, timeout_s=60.0, **options)


def test_a_real_model_is_asked_once_for_each_pair(
    real_endpoint: Callable[..., Any], questions: list[str], tmp_path: Path
) -> None:
    server = real_endpoint()
    before = sum(server.get("/stats")["requests"].values())
    run = ask(server, questions, tmp_path, params={"max_tokens": 8, "temperature": 0})
    assert run.error is None
    assert set(said(run).values()) == {"Yes", "No"}
    assert run.usage.incurred.prompt_tokens > 100 * len(questions)
    again = ask(server, questions, tmp_path, params={"max_tokens": 8, "temperature": 0})
    assert (again.usage.sent, again.usage.cached) == (0, len(questions))
    assert said(again) == said(run)
    assert sum(server.get("/stats")["requests"].values()) - before == len(questions)


def test_faults_change_no_reply_and_lose_none(
    real_endpoint: Callable[..., Any], questions: list[str], tmp_path: Path
) -> None:
    whole = said(ask(real_endpoint(), questions))
    faults = ["--error-rate", "0.1", "--truncate-rate", "0.1", "--drop-rate", "0.1", "--throttle-rate", "0.02"]
    server = real_endpoint(*faults)
    run = ask(server, questions, tmp_path)
    assert run.error is None
    assert said(run) == whole
    counts = server.get("/stats")["faults"]
    assert {"500", "truncated", "dropped"} <= set(counts)
    assert run.usage.incurred.requests == len(questions) + sum(counts.values())
    assert ask(server, questions, tmp_path).usage.sent == 0


def test_the_check_says_what_it_can_do(real_endpoint: Callable[..., Any]) -> None:
    found = run_sync(check_endpoint(Endpoint("real", real_endpoint().base_url, MODEL)))
    works = {check.name.split(" (")[0]: check.works for check in found}
    assert works["list of models"] == works["chat completion"] == works["log-probabilities"] == "yes"
    assert works["JSON schema"] == "yes"
    assert works["choice"] == "no"
