"""openai's client fits behind the transport seam: the same outcomes, errors and retries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

import judgekit as jk
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.client.transports import OpenAITransport
from judgekit.wire.types import Endpoint, Reply
from tests.programs import Ask, Run
from tests.scripted import Scripted, completion, error

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


def asked(endpoint: Endpoint, store: Path | None = None) -> list[Any]:
    """Return the texts of the replies to three units, in a loop of their own."""

    async def main() -> list[Any]:
        with Session(store, backoff_s=0.001) as session:
            found = [outcomes[0] async for _, outcomes in session.resolve(UNITS[:3], Ask(endpoint), "s", 3)]
        return [outcome.text if isinstance(outcome, Reply) else outcome.reason for outcome in found]

    return run_sync(main())


def test_an_endpoint_may_ask_for_the_openai_package_and_sends_its_own_key_and_headers(
    fault_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-abcdefghijklmnop")
    monkeypatch.setenv("MY_TENANT", "tenant-0123456789")
    fault_server.answer = lambda body, seen: error(500, "boom") if seen == 0 else "yes"
    headers = {"X-Tenant": "env:MY_TENANT", "X-Team": "search"}
    endpoint = Endpoint("here", fault_server.base_url, "m", "MY_KEY", transport="openai", headers=headers)
    assert asked(endpoint) == ["yes"] * 3
    assert len(fault_server.seen) == 6, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-abcdefghijklmnop"}
    assert {(h["x-tenant"], h["x-team"]) for h in fault_server.headers} == {("tenant-0123456789", "search")}


def test_without_a_key_the_openai_package_sends_none(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: "yes"
    assert asked(Endpoint("here", fault_server.base_url, "m", transport="openai")) == ["yes"] * 3
    assert not any("authorization" in h for h in fault_server.headers)


def test_a_client_of_ones_own_carries_the_requests_of_one_loop_after_the_other(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: error(500, "boom") if seen == 0 else "yes"
    client = openai.AsyncOpenAI(base_url=fault_server.base_url, api_key="sk-mine-0123456789", max_retries=5)
    endpoint = jk.Endpoint("here", fault_server.base_url, "m", transport=client)
    for _ in range(3):
        assert asked(endpoint) == ["yes"] * 3
    assert len(fault_server.seen) == 3 + 3 * 3, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-mine-0123456789"}
    assert not client.is_closed()
    assert "sk-mine" not in repr(endpoint)
