"""Two real servers behind one endpoint: one has faults, the other is killed in mid-run and started again."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from judgekit.data.readers import read_docs, read_queries
from judgekit.data.trec import read_run
from judgekit.wire.types import Reply
from tests.programs import Run

FAULTS = ("--error-rate", "0.05", "--throttle-rate", "0.05", "--truncate-rate", "0.05", "--drop-rate", "0.05")


def test_a_run_over_a_faulty_server_and_one_that_is_killed_gets_every_reply(
    real_endpoint: Callable[..., Any], shared: Path, tmp_path: Path
) -> None:
    dev = shared / "data" / "dev"
    queries, docs = read_queries(dev / "queries.jsonl"), read_docs(dev / "docs.jsonl")
    run = read_run(dev / "runs" / "bm25.trec")
    prompts = [
        f"Does the passage answer the question? Reply with Yes or No.\n<question>{query.text}</question>\n"
        f"<passage>{doc.text}</passage>"
        for query in islice(queries.values(), 36)
        for doc in docs.get(run.top(query.query_id, 5))
    ]
    faulty, killed = real_endpoint(*FAULTS), real_endpoint("--fault-seed", "7")
    restarted: list[subprocess.Popen[bytes]] = []

    def kill_and_start() -> None:
        while sum(killed.get("/stats")["requests"].values()) < 30:
            time.sleep(0.02)
        killed.process.kill()
        killed.process.wait()
        restarted.append(subprocess.Popen(killed.process.args))

    killing = threading.Thread(target=kill_and_start)
    killing.start()
    urls = (faulty.base_url, killed.base_url)
    settings: dict[str, Any] = {"model": "minilm-l6-reader", "params": {"max_tokens": 8}, "concurrency": 4}
    both = Run(urls[0], prompts, tmp_path / "both", base_urls=urls, **settings)
    killing.join()
    try:
        assert both.error is None
        assert all(isinstance(outcome, Reply) for outcome in both.outcomes.values()), "nothing is lost"
        assert sum(killed.get("/stats")["requests"].values()) > 30, "it takes part again"
        assert sum(faulty.get("/stats")["faults"].values()) > 0
        assert any("is left alone" in note for note in both.notes)
        alone = Run(killed.base_url, prompts[:40], tmp_path / "alone", **settings)
        assert {unit: o.text for unit, o in alone.outcomes.items()} == {
            unit: both.outcomes[unit].text for unit in alone.outcomes
        }
    finally:
        restarted[0].kill()
        restarted[0].wait()
        killed.stopped = True
