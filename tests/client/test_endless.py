"""Replies that do not end: none is read beyond its limit, and a server that sends only such stops the run."""

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

from judgekit.client.transports import HttpTransport, OpenAITransport
from judgekit.wire.types import Endpoint, TooLargeError, Transport
from tests.programs import Run
from tests.servers import Stream

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
