"""openai's client fits behind the transport seam: the same outcomes, errors and retries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from judgekit.client.mock import Scripted, completion, error
from judgekit.client.transports import OpenAITransport
from tests.llm.programs import Run

UNITS = [f"unit {i:02}" for i in range(8)]


def run(base_url: str, store: Path | None = None, **options: Any) -> Run:
    def make(_: object) -> OpenAITransport:
        return OpenAITransport(openai.AsyncOpenAI(base_url=base_url, api_key="sk-test", timeout=5))

    return Run(base_url, UNITS, store, session={"transports": make}, **options)


@pytest.mark.parametrize(
    "fault",
    [
        error(500, "boom"),
        Scripted(200, b"<html>"),
        completion("yes").body[:40],
        error(429, "slow", headers={"retry-after-ms": "10"}),
    ],
    ids=["500", "html", "dropped", "429"],
)
def test_faults_are_handled_as_over_our_own_client(fault_server: Any, fault: Any, tmp_path: Path) -> None:
    fault_server.answer = lambda body, seen: fault if seen == 0 else "yes"
    found = run(fault_server.base_url, tmp_path)
    assert found.error is None
    assert found.texts == ["yes"] * 8
    assert len(fault_server.seen) == 16
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-test"}


def test_errors_keep_the_servers_words(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: error(401, "Wrong key.")
    assert "401: Wrong key." in str(run(fault_server.base_url).error)
    assert "no connection was made" in str(run("http://127.0.0.1:9/v1").error)


def test_it_sends_what_the_labeler_made(fault_server: Any, tmp_path: Path) -> None:
    run(fault_server.base_url, tmp_path, params={"temperature": 0, "max_tokens": 5})
    # They are in flight together, so that any of them may arrive first.
    assert {
        "model": "m",
        "messages": [{"role": "user", "content": UNITS[0]}],
        "temperature": 0,
        "max_tokens": 5,
    } in fault_server.seen
