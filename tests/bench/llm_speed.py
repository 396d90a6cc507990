"""Throughput, CPU, the warm re-run and memory of the endpoint room, against raw aiohttp and openai's client in one run.

    python tests/bench/llm_speed.py [--pairs N] [--concurrency 64 256] [--memory N]

A fast mock server with 50 ms of latency runs as a process of its own. CPU is that of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from judgekit.llm.session import Session
from judgekit.llm.types import Endpoint, Outcome, Reply, Request, chat

HERE = Path(__file__).resolve().parent
RUBRIC = "You judge whether a passage answers a question. " * 6
PASSAGE = "Canberra is the capital of Australia, founded following the federation of the colonies. " * 8


@contextmanager
def server(latency_ms: float = 50) -> Iterator[str]:
    """Yield the base URL of the mock server."""
    command = [sys.executable, str(HERE / "fast_server.py"), str(latency_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.stdin.close()


class Judge:
    """A judge as labelers are: a unit is a number, its verdict is read from the reply."""

    one_wave = True

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def requests(self, unit: int, replies: Sequence[Outcome], /) -> list[Request]:
        if replies:
            return []
        return [chat(self.endpoint, messages(unit), max_tokens=8, temperature=0)]

    def label(self, replies: Sequence[Outcome]) -> float | None:
        reply = replies[0]
        return float(reply.text.startswith("Yes")) if isinstance(reply, Reply) else None


def messages(unit: int) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": RUBRIC},
        {"role": "user", "content": f"<question>What is the capital of country {unit}?</question>\n{PASSAGE}"},
    ]


@dataclass
class Speed:
    """Pairs a second, and CPU milliseconds of this process a pair."""

    pairs: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.pairs / self.seconds

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu / self.pairs

    def __str__(self) -> str:
        return f"{self.rate:9,.0f} pairs/s  {self.cpu_ms:7.3f} ms CPU a pair"


@contextmanager
def timed(pairs: int) -> Iterator[Speed]:
    gc.collect()
    speed = Speed(pairs, 0.0, 0.0)
    wall, cpu = time.perf_counter(), time.process_time()
    yield speed
    speed.seconds, speed.cpu = time.perf_counter() - wall, time.process_time() - cpu


async def raw_aiohttp(base_url: str, pairs: int, concurrency: int) -> Speed:
    """The least that can be done: serialise, post, read, parse."""
    numbers = iter(range(pairs))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def worker() -> None:
            for number in numbers:
                body = json.dumps({"model": "m", "messages": messages(number), "max_tokens": 8, "temperature": 0})
                async with client.post(f"{base_url}/chat/completions", data=body.encode()) as response:
                    json.loads(await response.read())["choices"][0]["message"]["content"]

        with timed(pairs) as speed:
            await asyncio.gather(*(worker() for _ in range(concurrency)))
    return speed


async def openai_client(base_url: str, pairs: int, concurrency: int) -> Speed:
    """openai's own client, over its default transport."""
    import openai

    numbers = iter(range(pairs))
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:

        async def worker() -> None:
            for number in numbers:
                reply = await client.chat.completions.create(
                    model="m",
                    messages=messages(number),  # type: ignore[arg-type]
                    max_tokens=8,
                    temperature=0,
                )
                assert reply.choices[0].message.content

        with timed(pairs) as speed:
            await asyncio.gather(*(worker() for _ in range(concurrency)))
    return speed


async def units(pairs: int) -> AsyncIterator[int]:
    for unit in range(pairs):
        yield unit


async def ours(base_url: str, pairs: int, concurrency: int, store: Path) -> tuple[Speed, int]:
    """The whole path: requests, identities, store, limits, replies, verdicts. Returns the requests sent, too."""
    endpoint = Endpoint("here", base_url, "m", concurrency=concurrency)
    judge = Judge(endpoint)
    with Session(store) as session, timed(pairs) as speed:
        labelled = 0
        async for _, outcomes in session.resolve(range(pairs), judge, "judge", pairs):
            labelled += judge.label(outcomes) is not None
    assert labelled == pairs
    return speed, session.usage("judge").incurred.requests


def memory_mib() -> float:
    """Return the resident memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--memory", type=int, default=0, help="stream that many pairs, cold and warm, and show memory")
    options = parser.parse_args()
    with server() as base_url, tempfile.TemporaryDirectory() as folder:
        for concurrency in options.concurrency:
            pairs = options.pairs
            print(f"concurrency {concurrency}, ideal {20 * concurrency:,} a second")
            raw = asyncio.run(raw_aiohttp(base_url, pairs, concurrency))
            print(f"  raw aiohttp   {raw}")
            store = Path(folder) / str(concurrency)
            cold, sent = asyncio.run(ours(base_url, pairs, concurrency, store))
            print(
                f"  judgekit      {cold}  {cold.rate / raw.rate:.2f} x raw,"
                f" CPU {cold.cpu_ms / raw.cpu_ms:.2f} x, {sent} sent"
            )
            warm, sent = asyncio.run(ours(base_url, pairs, concurrency, store))
            print(f"  warm re-run   {warm}  {warm.rate / cold.rate:.1f} x cold, {sent} sent")
            client = asyncio.run(openai_client(base_url, min(pairs, 3000), concurrency))
            print(f"  openai client {client}  {client.rate / raw.rate:.2f} x raw")
        if options.memory:
            show_memory(base_url, options.memory, Path(folder) / "memory")


def show_memory(base_url: str, pairs: int, store: Path) -> None:
    """Print the resident memory while pairs stream through."""
    for name in ("cold", "warm"):
        start = time.perf_counter()
        samples = asyncio.run(stream(base_url, pairs, store))
        rate = pairs / (time.perf_counter() - start)
        shown = "  ".join(f"{mib:.0f}" for mib in samples)
        print(f"  {name}: {pairs:,} pairs, {rate:,.0f} a second, MiB at each tenth: {shown}")


async def stream(base_url: str, pairs: int, store: Path, concurrency: int = 256) -> list[float]:
    """Resolve pairs and return the resident memory, MiB, at each tenth of the way."""
    judge = Judge(Endpoint("here", base_url, "m", concurrency=concurrency))
    samples = []
    done = 0
    with Session(store) as session:
        async for _ in session.resolve(range(pairs), judge, "judge", pairs):
            done += 1
            if done % (pairs // 10) == 0:
                samples.append(memory_mib())
    return samples


if __name__ == "__main__":
    main()
