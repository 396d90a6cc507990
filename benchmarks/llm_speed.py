"""Throughput, CPU, the warm re-run and memory of the endpoint room, against raw aiohttp and openai's client in one run.

    python -m benchmarks.llm_speed [--pairs N] [--concurrency 64 256] [--memory N]

A fast mock server with 50 ms of latency runs as a process of its own. CPU is that of the contestant's process. Raw
aiohttp and judgekit take turns, since machines are now faster and now slower, and the medians are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median

import aiohttp
import orjson

from benchmarks.fast_server import COMPLETION
from judgekit.cli import collect_seldom
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.labelers.base import Labeler, build
from judgekit.labelers.contract import checked
from judgekit.wire.types import IDENTITY_VERSION, Endpoint

HERE = Path(__file__).resolve().parent
TURNS = 5
ROWS = 64
"""Rows that are looked up at once, as units are."""

TEXT = "Canberra is the capital of Australia, founded following the federation of the colonies. " * 8


@contextmanager
def server(latency_ms: float = 50, reply: str = "Yes") -> Iterator[str]:
    """Yield the base URL of a mock server."""
    command = [sys.executable, str(HERE / "fast_server.py"), str(latency_ms), reply]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.stdin.close()


@dataclass
class Context:
    """What a labeler is built from: one endpoint."""

    only: Endpoint
    fields: Fields = "title+text"
    docs: None = None
    prompts: None = None

    def endpoint(self, name: str | None) -> Endpoint:
        return self.only

    def path(self, text: str) -> Path:
        return Path(text)


def judge(base_url: str, concurrency: int) -> Labeler:
    """Return the judge that a user gets by ``judge``."""
    return build("judge", Context(Endpoint("here", base_url, "m", concurrency=concurrency)))


def unit(number: int) -> Unit:
    """Return the pair of that number."""
    query = Query(f"q{number // 10}", f"What is the capital of country {number // 10}?")
    return Unit(query, (Doc(f"d{number}", f"{TEXT}{number}", f"Canberra {number}"),))


def messages(number: int) -> list[dict[str, str]]:
    """Return what the judge would ask, for those who have no labelers."""
    system, user = MESSAGES
    return [system, {"role": "user", "content": user["content"].replace("3.14", str(number))}]


def _messages() -> list[dict[str, str]]:
    labeler = judge("http://nowhere.invalid/v1", 1)
    body = labeler.requests(Unit(Query("q", "What is the capital of country 3.14?"), unit(1).docs), ())[0].body
    found: list[dict[str, str]] = json.loads(body)["messages"]
    return found if len(found) == 2 else [{"role": "system", "content": ""}, *found]


MESSAGES = _messages()


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

    @classmethod
    def median(cls, turns: Sequence[Speed]) -> Speed:
        """Return the medians of several turns over as many pairs."""
        return cls(turns[0].pairs, median(one.seconds for one in turns), median(one.cpu for one in turns))

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
    """The whole path of a label, from the unit to the checked verdict. Returns the requests sent, too."""
    labeler = judge(base_url, concurrency)
    with Session(store) as session, timed(pairs) as speed:
        labelled = 0
        async for asked, outcomes in session.resolve(map(unit, range(pairs)), labeler, "judge", pairs):
            labelled += checked(labeler, asked, outcomes)[0].relevance == 1.0
    assert labelled == pairs
    return speed, session.usage("judge").incurred.requests


def floor(base_url: str, pairs: int, store: Path) -> float:
    """Return the CPU milliseconds of the least that a re-run needs of a pair, in a plain loop.

    A unit is made, its body and the key of that; rows are looked up 64 at a time, their replies parsed, and a word is
    looked up in a dictionary. Nothing is checked or counted, and no request is unpacked.
    """
    asked = judge(base_url, 1).requests(unit(1), ())[0]
    body, endpoint = json.loads(asked.body), asked.endpoint.identity.encode()
    *before, last = body["messages"]
    shown = last["content"].replace(unit(1).query.text, "\0").replace(rendered(unit(1)), "\0")
    first, middle, end = shown.split("\0")
    keys: list[str] = []
    labels: list[float] = []
    relevance, marks = {"Yes": 1.0, "No": 0.0}, ",".join("?" * ROWS)
    with closing(sqlite3.connect(store / "cache.db")) as rows, timed(pairs // ROWS * ROWS) as speed:
        for number in range(speed.pairs):
            made = unit(number)
            content = f"{first}{made.query.text}{middle}{rendered(made)}{end}"
            body["messages"] = [*before, {"role": last["role"], "content": content}]
            text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
            keys.append(sha256(b"%d\n%b\n%d\n%b" % (IDENTITY_VERSION, endpoint, 0, text)).hexdigest())
            if len(keys) < ROWS:
                continue
            for (value,) in rows.execute(f"SELECT value FROM Cache WHERE key IN ({marks})", keys).fetchall():
                begun = value.index(b"\n") + 1
                reply = orjson.loads(value[begun : begun + orjson.loads(value[:begun])["reply"]])
                labels.append(relevance[reply["choices"][0]["message"]["content"]])
            keys.clear()
    assert len(labels) == speed.pairs
    return speed.cpu_ms


def rendered(made: Unit) -> str:
    """Return the passage as the judge shows it."""
    (doc,) = made.docs
    return f"{doc.title}\n{doc.text}"


@dataclass
class Comparison:
    """One run of all contestants at one concurrency."""

    concurrency: int
    raw: Speed
    cold: Speed
    warm: Speed
    client: Speed
    peer: Speed | None
    sent: tuple[int, int]
    stored: float
    """Bytes on disk a pair."""

    least: float
    """CPU milliseconds of the least that a re-run needs of a pair."""

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
        """How many times the CPU of the warm run the cold one takes."""
        return self.cold.cpu_ms / self.warm.cpu_ms

    def __str__(self) -> str:
        return (
            f"concurrency {self.concurrency}, ideal {20 * self.concurrency:,} a second\n"
            f"  raw aiohttp    {self.raw}\n"
            f"  judgekit       {self.cold}  {self.throughput:.2f} x raw, CPU {self.cpu:.2f} x, {self.sent[0]:,} sent\n"
            f"  warm re-run    {self.warm}  1/{self.rerun:.1f} of cold's CPU, {self.sent[1]:,} sent,"
            f" {self.warm.cpu_ms / self.least:.1f} x a plain loop\n"
            f"  store          {self.stored:9,.0f} bytes a pair\n"
            f"  openai client  {self.client}  {self.client.rate / self.raw.rate:.2f} x raw\n"
            f"  ragas          {f'{self.peer}  {self.peer.rate / self.raw.rate:.2f} x raw' if self.peer else '-'}"
        )


def compare(base_url: str, pairs: int, concurrency: int, store: Path) -> Comparison:
    """Run all contestants, one after another, each in a process of its own, against one server."""
    places = [store / str(turn) for turn in range(TURNS)]

    def run(name: str, pairs: int = pairs, place: Path = store) -> tuple[Speed, int, float]:
        command = [sys.executable, "-m", "benchmarks.llm_speed", "--contestant", name, base_url, str(place)]
        numbers = ["--pairs", str(pairs), "--concurrency", str(concurrency)]
        done = subprocess.run([*command, *numbers], cwd=HERE.parent, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        return Speed(pairs, found["seconds"], found["cpu"]), found["sent"], found["least"]

    turns = [(run("raw")[0], run("judgekit", place=place)) for place in places]
    raw, cold = Speed.median([raw for raw, _ in turns]), Speed.median([judged[0] for _, judged in turns])
    warm, again, least = run("judgekit", place=places[0])
    client = run("openai", min(pairs, 500))[0]
    peer = ragas(min(pairs, 1000), concurrency)
    stored = sum(file.stat().st_size for file in places[0].iterdir()) / pairs
    return Comparison(
        concurrency=concurrency,
        raw=raw,
        cold=cold,
        warm=warm,
        client=client,
        peer=peer,
        sent=(turns[0][1][1], again),
        stored=stored,
        least=least,
    )


def contestant(name: str, base_url: str, store: str, pairs: int, concurrency: int) -> None:
    """Run one contestant and print its figures as JSON."""
    sent, least = pairs, 0.0
    if name == "judgekit":
        collect_seldom()  # as the command line does
        speed, sent = run_sync(ours(base_url, pairs, concurrency, Path(store)))
        least = floor(base_url, pairs, Path(store))
    else:
        rival = {"raw": raw_aiohttp, "openai": openai_client}[name]
        speed = asyncio.run(rival(base_url, pairs, concurrency))
    print(json.dumps({"seconds": speed.seconds, "cpu": speed.cpu, "sent": sent, "least": least}))


def ragas(pairs: int, concurrency: int) -> Speed | None:
    """A peer's labeling path, in its own environment; None where there is none. See `peer_ragas`."""
    python = os.environ.get("JUDGEKIT_RAGAS")
    if not python:
        return None
    with server(reply='{"value": "Yes", "reason": "It says so."}') as base_url:
        command = [python, str(HERE / "peer_ragas.py"), base_url, str(pairs), str(concurrency)]
        environment = {**os.environ, "RAGAS_DO_NOT_TRACK": "true"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds, cpu = map(float, done.stdout.split())
    return Speed(pairs, seconds, cpu)


class Instant:
    """A transport that answers at once."""

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, dict[str, str], bytes]:
        await asyncio.sleep(0)
        return 200, {}, COMPLETION

    async def aclose(self) -> None:
        pass


async def stream(pairs: int, store: Path, base_url: str | None = None) -> list[float]:
    """Resolve pairs, at once without a ``base_url``; return the resident memory, MiB, at each tenth of the way."""
    labeler = judge(base_url or "http://instant.invalid/v1", 256)
    samples = []
    done = 0
    with Session(store, transports=None if base_url else lambda _: Instant()) as session:
        async for asked, outcomes in session.resolve(map(unit, range(pairs)), labeler, "judge", pairs):
            assert checked(labeler, asked, outcomes)[0].relevance == 1.0
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
    parser.add_argument("--pairs", type=int, default=6_000)
    parser.add_argument("--concurrency", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--memory", type=int, default=0, help="stream that many pairs, cold and warm, and show memory")
    parser.add_argument("--instant", action="store_true", help="stream them from a transport in this process")
    parser.add_argument("--folder", help="where the stores are made (default: a temporary folder)")
    parser.add_argument("--contestant", nargs=3, metavar=("NAME", "BASE_URL", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        contestant(*options.contestant, options.pairs, options.concurrency[0])
        return
    with server() as base_url, tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for concurrency in options.concurrency:
            print(compare(base_url, options.pairs, concurrency, Path(folder) / str(concurrency)), flush=True)
        for name in ("cold", "warm") if options.memory else ():
            begun = time.perf_counter()
            samples = run_sync(stream(options.memory, Path(folder) / "memory", None if options.instant else base_url))
            rate = options.memory / (time.perf_counter() - begun)
            shown = " ".join(f"{mib:.0f}" for mib in samples)
            print(f"{name}: {options.memory:,} pairs, {rate:,.0f} a second, MiB at each tenth: {shown}", flush=True)


if __name__ == "__main__":
    main()
