"""Throughput, CPU, the warm re-run and memory of the endpoint room, against raw aiohttp and openai's client in one run.

    python -m tests.bench.llm_speed [--pairs N] [--concurrency 64 256] [--memory N]

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from judgekit.llm.session import Session
from judgekit.llm.types import Endpoint, Outcome, Reply, Request, chat
from tests.bench.fast_server import COMPLETION

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


@dataclass
class Comparison:
    """One run of all contestants at one concurrency."""

    concurrency: int
    raw: Speed
    cold: Speed
    warm: Speed
    client: Speed
    sent: tuple[int, int]

    @property
    def throughput(self) -> float:
        """Our throughput as a share of raw aiohttp's."""
        return self.cold.rate / self.raw.rate

    @property
    def cpu(self) -> float:
        """Our CPU a pair as a multiple of raw aiohttp's a request."""
        return self.cold.cpu_ms / self.raw.cpu_ms

    @property
    def rerun(self) -> float:
        """How many times as fast as the cold run the warm one is."""
        return self.warm.rate / self.cold.rate

    def __str__(self) -> str:
        return (
            f"concurrency {self.concurrency}, ideal {20 * self.concurrency:,} a second\n"
            f"  raw aiohttp    {self.raw}\n"
            f"  judgekit       {self.cold}  {self.throughput:.2f} x raw, CPU {self.cpu:.2f} x, {self.sent[0]:,} sent\n"
            f"  warm re-run    {self.warm}  {self.rerun:.1f} x cold, {self.sent[1]:,} sent\n"
            f"  openai client  {self.client}  {self.client.rate / self.raw.rate:.2f} x raw"
        )


def compare(base_url: str, pairs: int, concurrency: int, store: Path) -> Comparison:
    """Run all contestants, one after another, against one server."""
    raw = asyncio.run(raw_aiohttp(base_url, pairs, concurrency))
    cold, sent = asyncio.run(ours(base_url, pairs, concurrency, store))
    warm, again = asyncio.run(ours(base_url, pairs, concurrency, store))
    client = asyncio.run(openai_client(base_url, min(pairs, 2500), concurrency))
    return Comparison(concurrency, raw, cold, warm, client, (sent, again))


class Instant:
    """A transport that answers at once."""

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, dict[str, str], bytes]:
        await asyncio.sleep(0)
        return 200, {}, COMPLETION

    async def aclose(self) -> None:
        pass


async def stream(pairs: int, store: Path, base_url: str | None = None) -> list[float]:
    """Resolve pairs, at once without a ``base_url``; return the resident memory, MiB, at each tenth of the way."""
    judge = Judge(Endpoint("here", base_url or "http://instant.invalid/v1", "m", concurrency=256))
    samples = []
    done = 0
    with Session(store, transports=None if base_url else lambda _: Instant()) as session:
        async for _ in session.resolve(range(pairs), judge, "judge", pairs):
            done += 1
            if done % (pairs // 10) == 0:
                samples.append(memory_mib())
    return samples


def memory_mib() -> float:
    """Return the resident memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--memory", type=int, default=0, help="stream that many pairs, cold and warm, and show memory")
    parser.add_argument("--instant", action="store_true", help="stream them from a transport in this process")
    parser.add_argument("--folder", help="where the stores are made (default: a temporary folder)")
    options = parser.parse_args()
    with server() as base_url, tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for concurrency in options.concurrency:
            print(compare(base_url, options.pairs, concurrency, Path(folder) / str(concurrency)), flush=True)
        for name in ("cold", "warm") if options.memory else ():
            begun = time.perf_counter()
            samples = asyncio.run(
                stream(options.memory, Path(folder) / "memory", None if options.instant else base_url)
            )
            rate = options.memory / (time.perf_counter() - begun)
            shown = " ".join(f"{mib:.0f}" for mib in samples)
            print(f"{name}: {options.memory:,} pairs, {rate:,.0f} a second, MiB at each tenth: {shown}", flush=True)


if __name__ == "__main__":
    main()
