"""What carries requests: our client, openai's, an object of the user's; and bodies without end."""

from __future__ import annotations

import asyncio
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web

import judgekit as jk
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.client.transports import HttpTransport, OpenAITransport
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import load
from judgekit.wire.types import Endpoint, Reply, TooLargeError, Transport
from tests.programs import Ask, Run, collect, texts
from tests.scripted import Scripted, completion, error
from tests.servers import Stream
from tests.small import EXPERIMENT, URL

FILE = """
import json

class Quiet:
    def __init__(self):
        self.closed = False

    async def send(self, endpoint, body):
        text = json.loads(body)["messages"][0]["content"]
        message = {"role": "assistant", "content": f"{endpoint.model} heard {text}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"Content-Type": "application/json"}, json.dumps({"choices": [choice]}).encode()

    async def aclose(self):
        raise SystemError("closed")


class Mute:
    pass
"""


class Carrier:
    """Fails at first, as networks do; says the header in capitals that a retry waits for."""

    def __init__(self, *failures: Any) -> None:
        self.failures, self.bodies = list(failures), list[bytes]()

    async def send(self, endpoint: jk.Endpoint, body: bytes) -> Any:
        self.bodies.append(body)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        return 200, {}, completion("yes").body


def asked(endpoint: jk.Endpoint, store: Path | None = None) -> list[str]:
    async def work() -> list[str]:
        async with Session(store, mode="on" if store else "off") as session:
            return texts((await collect(session, ["a"], Ask(endpoint)))["a"])

    return run_sync(work())


def endpoint(transport: Any, **more: Any) -> jk.Endpoint:
    return jk.Endpoint("mine", "http://nowhere.example/v1", "m", transport=transport, max_retries=3, **more)


def test_an_object_carries_requests_and_network_errors_are_tried_again() -> None:
    busy = (503, {"Retry-After": "0"}, b"{}")
    carrier = Carrier(ConnectionError("cut"), busy)
    assert asked(endpoint(carrier)) == ["yes"]
    assert len(carrier.bodies) == 3
    assert len(set(carrier.bodies)) == 1


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            KeyError("token"),
            r"endpoint 'mine': send\(\) of its transport: KeyError: 'token' \(test_transports.py, line",
        ),
        ("yes", r"must return \(status, headers, bytes\), not 'yes'"),
        ((200, {}, "text"), r"must return \(status, headers, bytes\), not \(200, \{\}, 'text'\)"),
    ],
)
def test_a_mistake_in_it_is_a_sentence_with_its_line(failure: Any, message: str) -> None:
    carrier = Carrier(failure)
    with pytest.raises(UsageError, match=message):
        asked(endpoint(carrier))
    assert len(carrier.bodies) == 1, "it is not tried again"


def test_a_file_brings_a_class_which_is_closed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    with pytest.raises(SystemError, match="closed"):
        asked(endpoint(f"{path}:Quiet"))
    path.write_text(FILE.replace('raise SystemError("closed")', "self.closed = True"))
    assert asked(endpoint(f"{path}:Quiet")) == ["m heard a"]
    with pytest.raises(UsageError, match=r"mine.py:Mute has no method send\(endpoint, body\)"):
        asked(endpoint(f"{path}:Mute"))
    with pytest.raises(UsageError, match=r"mine.py:Loud has no method send"):
        asked(endpoint(f"{path}:Loud"))


def test_an_experiment_file_names_it_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace('raise SystemError("closed")', "self.closed = True"))
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.replace('model = "mock"', 'model = "mock"\ntransport = "mine.py:Quiet"'))
    server = load(path).servers()["local"]
    assert (server.transport, server.base_url) == (f"{tmp_path / 'mine.py'}:Quiet", URL)
    assert asked(server) == ["mock heard a"]


@pytest.mark.parametrize(
    ("settings", "said"), [({"transport": Carrier()}, "cannot be combined"), ({"api": "completions"}, "is for LLMs")]
)
def test_what_is_an_llms_does_not_go_with_a_function(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        jk.Endpoint("app", kind="callable", target=lambda question, documents: "", revision="1", **settings)


def test_nothing_else_is_asked_of_its_server(tmp_path: Path) -> None:
    from judgekit.client.routes import count_tokens, wait_ready

    own = endpoint(Carrier())
    asyncio.run(wait_ready(own, 0))
    assert asyncio.run(count_tokens(own, [b"{}"])) is None


EIGHT = [f"unit {i:02}" for i in range(8)]


def over_its_client(base_url: str, store: Path | None = None, **options: Any) -> Run:
    def make(_: object) -> OpenAITransport:
        return OpenAITransport(openai.AsyncOpenAI(base_url=base_url, api_key="sk-test", timeout=5))

    return Run(base_url, EIGHT, store, session={"transports": make}, **options)


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
    found = over_its_client(fault_server.base_url, tmp_path)
    assert found.error is None
    assert found.texts == ["yes"] * 8
    assert len(fault_server.seen) == 16
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-test"}


def test_errors_keep_the_servers_words(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: error(401, "Wrong key.")
    assert "401: Wrong key." in str(over_its_client(fault_server.base_url).error)
    assert "no connection was made" in str(over_its_client("http://127.0.0.1:9/v1").error)


def test_it_sends_what_the_labeler_made(fault_server: Any, tmp_path: Path) -> None:
    over_its_client(fault_server.base_url, tmp_path, params={"temperature": 0, "max_tokens": 5})
    # They are in flight together, so that any of them may arrive first.
    assert {
        "model": "m",
        "messages": [{"role": "user", "content": EIGHT[0]}],
        "temperature": 0,
        "max_tokens": 5,
    } in fault_server.seen


def three_texts(endpoint: Endpoint, store: Path | None = None) -> list[Any]:
    """Return the texts of the replies to three units, in a loop of their own."""

    async def main() -> list[Any]:
        with Session(store, backoff_s=0.001) as session:
            found = [outcomes[0] async for _, outcomes in session.resolve(EIGHT[:3], Ask(endpoint), "s", 3)]
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
    assert three_texts(endpoint) == ["yes"] * 3
    assert len(fault_server.seen) == 6, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-abcdefghijklmnop"}
    assert {(h["x-tenant"], h["x-team"]) for h in fault_server.headers} == {("tenant-0123456789", "search")}


def test_without_a_key_the_openai_package_sends_none(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: "yes"
    assert three_texts(Endpoint("here", fault_server.base_url, "m", transport="openai")) == ["yes"] * 3
    assert not any("authorization" in h for h in fault_server.headers)


def test_a_client_of_ones_own_carries_the_requests_of_one_loop_after_the_other(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: error(500, "boom") if seen == 0 else "yes"
    client = openai.AsyncOpenAI(base_url=fault_server.base_url, api_key="sk-mine-0123456789", max_retries=5)
    endpoint = jk.Endpoint("here", fault_server.base_url, "m", transport=client)
    for _ in range(3):
        assert three_texts(endpoint) == ["yes"] * 3
    assert len(fault_server.seen) == 3 + 3 * 3, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-mine-0123456789"}
    assert not client.is_closed()
    assert "sk-mine" not in repr(endpoint)


MB = 1_000_000
LONG = 300 * MB
"""What the servers below would send in all; the buffers of two sockets hold a few MB."""

Make = Callable[[Endpoint], Transport]


def over_openai(endpoint: Endpoint) -> Transport:
    return OpenAITransport(openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="sk-test"))


@pytest.fixture(params=[HttpTransport, over_openai], ids=["ours", "openai"])
def make(request: pytest.FixtureRequest) -> Make:
    """How a transport is made, for both kinds."""
    return request.param  # type: ignore[no-any-return]  # either of the two above


def endless(sent: list[int], status: int = 200) -> Stream:
    """Return an answer that begins like a completion and goes on; ``sent`` gets the bytes that were taken from it."""

    async def write(response: web.StreamResponse) -> None:
        await response.write(b'{"choices": [{"message": {"content": "')
        for _ in range(LONG // MB):
            await response.write(b"a" * MB)
            sent.append(MB)

    return Stream(write, status=status)


def bomb(head: bytes, tail: bytes) -> Stream:
    """Return an answer of about a megabyte that unpacks to ``LONG``."""
    packer = zlib.compressobj(1, wbits=31)  # gzip
    packed = packer.compress(head) + b"".join(packer.compress(b"a" * MB) for _ in range(LONG // MB))
    packed += packer.compress(tail) + packer.flush()

    async def write(response: web.StreamResponse) -> None:
        await response.write(packed)

    return Stream(write, {"content-encoding": "gzip"})


async def _send(make: Make, endpoint: Endpoint) -> tuple[int, Any, bytes]:
    transport = make(endpoint)
    try:
        async with asyncio.timeout(60):
            return await transport.send(endpoint, b'{"messages":[],"model":"m"}')
    finally:
        await transport.aclose()


def test_a_body_without_an_end_is_read_up_to_its_limit(fault_server: Any, make: Make) -> None:
    sent: list[int] = []
    fault_server.answer = lambda body, seen: endless(sent)
    with pytest.raises(TooLargeError, match=r"more than 2 MB \(max_reply_mb\)"):
        asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m", max_reply_mb=2)))
    assert sum(sent) < LONG / 3


def test_the_limit_counts_unpacked_bytes_and_memory_stays_flat(fault_server: Any, make: Make) -> None:
    answer = bomb(b'{"choices": [{"message": {"content": "', b'"}}]}')
    fault_server.answer = lambda body, seen: answer
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m", max_reply_mb=2)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LONG / 3


def test_a_large_reply_within_the_limit_is_a_reply(fault_server: Any, make: Make) -> None:
    fault_server.answer = lambda body, seen: "a" * (3 * MB)
    endpoint = Endpoint("e", fault_server.base_url, "m", max_reply_mb=4)
    status, _, data = asyncio.run(_send(make, endpoint))
    assert (status, len(data) > 3 * MB) == (200, True)
    with pytest.raises(TooLargeError):
        asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m", max_reply_mb=3)))


def test_a_reply_that_is_too_large_once_is_asked_for_again(fault_server: Any, tmp_path: Path) -> None:
    fault_server.answer = lambda body, seen: "a" * MB if seen == 0 else "yes"
    run = Run(fault_server.base_url, ["a", "b"], tmp_path, max_reply_mb=0.5)
    assert run.texts == ["yes", "yes"]
    assert run.usage.incurred.requests == 4
    assert any("trying again after a reply of more than 0.5 MB" in note for note in run.notes)


def test_a_request_whose_replies_are_always_too_large_fails_after_the_second(fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: "a" * MB if body["messages"][0]["content"] == "d" else "yes"
    run = Run(fault_server.base_url, ["a", "b", "c", "d"], max_reply_mb=0.5, concurrency=1)
    assert run.texts == ["failed: a reply of more than 0.5 MB (max_reply_mb) (after 2 attempts)"] + ["yes"] * 3
    assert len(fault_server.seen) == 5
