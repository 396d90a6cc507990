"""What carries requests: our client, openai's, an object of the user's; and bodies without end."""

import asyncio
import contextlib
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
from judgekit.wire.quirks import decoded
from judgekit.wire.types import Endpoint, TooLargeError, Transport
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

    def __init__(self, *answers: Any) -> None:
        self.answers, self.bodies = [*answers, (200, {}, completion("yes").body)], list[bytes]()

    async def send(self, endpoint: jk.Endpoint, body: bytes) -> Any:
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked(endpoint: jk.Endpoint, store: Path | None = None) -> list[str]:
    async def work() -> list[str]:
        async with Session(store) as session:
            return texts((await collect(session, ["a"], Ask(endpoint)))["a"])

    return run_sync(work())


def endpoint(transport: Any, **more: Any) -> jk.Endpoint:
    return jk.Endpoint("mine", "http://nowhere.example/v1", "m", transport=transport, max_retries=3, **more)


def test_an_object_carries_requests_and_network_errors_are_tried_again():
    busy = (503, {"Retry-After": "0"}, b"{}")
    carrier = Carrier(ConnectionError("cut"), busy)
    assert asked(endpoint(carrier)) == ["yes"]
    assert len(carrier.bodies) == 3
    assert len(set(carrier.bodies)) == 1


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (KeyError("token"), r"'mine': send\(\) of its transport: KeyError: 'token' \(test_transports.py, line"),
        ("yes", r"must return \(status, headers, bytes\), not 'yes'"),
        ((200, {}, "text"), r"must return \(status, headers, bytes\), not \(200, \{\}, 'text'\)"),
    ],
)
def test_a_mistake_in_it_is_a_sentence_with_its_line(failure, message):
    carrier = Carrier(failure)
    with pytest.raises(UsageError, match=message):
        asked(endpoint(carrier))
    assert len(carrier.bodies) == 1, "it is not tried again"


def test_a_file_brings_a_class_which_is_closed_at_the_end(tmp_path):
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


def test_an_experiment_file_names_it_beside_itself(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.replace('model = "mock"', 'model = "mock"\ntransport = "mine.py:Quiet"'))
    server = load(path).servers()["local"]
    assert (server.transport, server.base_url) == (f"{tmp_path / 'mine.py'}:Quiet", URL)


@pytest.mark.parametrize(
    ("settings", "said"), [({"transport": Carrier()}, "cannot be combined"), ({"api": "completions"}, "is for LLMs")]
)
def test_what_is_an_llms_does_not_go_with_a_function(settings, said):
    with pytest.raises(ConfigError, match=said):
        jk.Endpoint("app", target=lambda question, documents: "", revision="1", **settings)


def test_nothing_else_is_asked_of_its_server(tmp_path):
    from judgekit.client.routes import wait_ready

    asyncio.run(wait_ready(endpoint(Carrier()), 0))


EIGHT = list("abcdefgh")


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
def test_over_the_openai_package_faults_are_handled_and_keys_and_headers_sent_as_over_our_own_client(
    fault_server, monkeypatch, fault, tmp_path
):
    monkeypatch.setenv("MY_KEY", "sk-abcdefghijklmnop")
    monkeypatch.setenv("MY_TENANT", "tenant-0123456789")
    fault_server.answer = lambda body, seen: fault if seen == 0 else "yes"
    headers = {"X-Tenant": "env:MY_TENANT", "X-Team": "search"}
    more = {"transport": "openai", "api_key_env": "MY_KEY", "headers": headers, "params": {"max_tokens": 5}}
    assert Run(fault_server.base_url, EIGHT, tmp_path, **more).texts == ["yes"] * 8
    assert len(fault_server.seen) == 16, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-abcdefghijklmnop"}
    assert {(h["x-tenant"], h["x-team"]) for h in fault_server.headers} == {("tenant-0123456789", "search")}
    assert {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 5} in fault_server.seen
    fault_server.answer = lambda body, seen: error(401, "Wrong key.")
    assert "401: Wrong key." in Run(fault_server.base_url, ["i"], **more).stopped
    assert "no connection was made" in Run("http://127.0.0.1:9/v1", EIGHT, **more).stopped


def test_without_a_key_the_openai_package_sends_none(fault_server):
    assert Run(fault_server.base_url, EIGHT, transport="openai").texts == ["yes"] * 8
    assert not any("authorization" in headers for headers in fault_server.headers)


def test_a_client_of_ones_own_carries_the_requests_of_one_loop_after_the_other(fault_server):
    fault_server.answer = lambda body, seen: error(500, "boom") if seen == 0 else "yes"
    client = openai.AsyncOpenAI(base_url=fault_server.base_url, api_key="sk-mine-0123456789", max_retries=5)
    for _ in range(3):
        run = Run(fault_server.base_url, EIGHT, transport=client)
        assert run.texts == ["yes"] * 8
    assert len(fault_server.seen) == 8 + 3 * 8, "judgekit retries, not the package"
    assert {h["authorization"] for h in fault_server.headers} == {"Bearer sk-mine-0123456789"}
    assert not client.is_closed()
    assert "sk-mine" not in repr(run.endpoint)


MB = 1_000_000
LONG = 300 * MB
"""What the servers below would send in all; the buffers of two sockets hold a few MB."""

Make = Callable[[Endpoint], Transport]


def over_openai(endpoint: Endpoint) -> Transport:
    return OpenAITransport(openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="sk-test"))


@pytest.fixture(params=[HttpTransport, over_openai], ids=["ours", "openai"])
def make(request: pytest.FixtureRequest) -> Make:
    """How a transport is made, for both kinds."""
    return request.param


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
    async with contextlib.aclosing(transport), asyncio.timeout(60):
        status, headers, data = await transport.send(endpoint, b'{"messages":[],"model":"m"}')
        return status, headers, decoded(data, endpoint.max_reply_bytes)


def test_a_body_without_an_end_is_read_up_to_its_limit(fault_server, make, monkeypatch):
    sent: list[int] = []
    fault_server.answer = lambda body, seen: endless(sent)
    monkeypatch.setattr(Endpoint, "max_reply_bytes", int(2 * MB))
    with pytest.raises(TooLargeError, match=r"more than 2 MB"):
        asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m")))
    assert sum(sent) < LONG / 3


def test_the_limit_counts_unpacked_bytes_and_memory_stays_flat(fault_server, make, monkeypatch):
    answer = bomb(b'{"choices": [{"message": {"content": "', b'"}}]}')
    fault_server.answer = lambda body, seen: answer
    tracemalloc.start()
    try:
        monkeypatch.setattr(Endpoint, "max_reply_bytes", int(2 * MB))
        with pytest.raises(TooLargeError):
            asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LONG / 3


def test_a_large_reply_within_the_limit_is_a_reply(fault_server, make, monkeypatch):
    fault_server.answer = lambda body, seen: "a" * (3 * MB)
    monkeypatch.setattr(Endpoint, "max_reply_bytes", int(4 * MB))
    endpoint = Endpoint("e", fault_server.base_url, "m")
    status, _, data = asyncio.run(_send(make, endpoint))
    assert (status, len(data) > 3 * MB) == (200, True)
    monkeypatch.setattr(Endpoint, "max_reply_bytes", int(3 * MB))
    with pytest.raises(TooLargeError):
        asyncio.run(_send(make, Endpoint("e", fault_server.base_url, "m")))


def test_a_reply_that_is_too_large_is_asked_for_once_more(fault_server, tmp_path, monkeypatch):
    def answer(body, seen):
        text = body["messages"][0]["content"]
        return "a" * MB if text == "d" or (text == "a" and seen == 0) else "yes"

    fault_server.answer = answer
    monkeypatch.setattr(Endpoint, "max_reply_bytes", int(0.5 * MB))
    run = Run(fault_server.base_url, ["a", "b", "c", "d"], tmp_path, concurrency=1)
    assert run.texts == ["failed: a reply of more than 0.5 MB (after 2 attempts)"] + ["yes"] * 3
    assert run.usage.incurred.requests == len(fault_server.seen) == 6
    assert any("trying again after a reply of more than 0.5 MB" in note for note in run.notes)
