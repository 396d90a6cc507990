"""Several servers behind one endpoint: load, health, one limit and budget, and what the user is told."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.budget import Budget
from judgekit.client.servers import Servers
from judgekit.client.session import Session
from judgekit.errors import BudgetError, ConfigError, EndpointError
from judgekit.wire.responses import Accepted, Fatal, Response, Retry
from judgekit.wire.types import Endpoint, chat
from tests.programs import Ask, Run, texts
from tests.scripted import ScriptedTransport, completion
from tests.servers import FaultServer, openai_error, serving

ROOT = Path(__file__).resolve().parent.parent.parent
UNITS = [f"unit {i:03}" for i in range(200)]
URLS = ("http://a:1/v1", "http://b:1/v1", "http://c:1/v1")


@pytest.fixture
def two() -> Iterator[tuple[FaultServer, FaultServer]]:
    with serving(FaultServer()) as a, serving(FaultServer()) as b:
        for server in (a, b):
            server.answer = lambda body, seen: completion("yes", delay_s=0.01)
        yield a, b


def run_at(servers: Sequence[Any], units: Sequence[str] = UNITS, **options: Any) -> Run:
    urls = tuple(server.base_url for server in servers)
    return Run(urls[0], units, base_urls=urls, **{"concurrency": 8, **options})


# --- what an endpoint with several servers is


def test_its_identity_is_its_namespace_or_else_the_first_server_so_that_others_may_come_and_go() -> None:
    first, two, three = (Endpoint("e", model="m", base_urls=URLS[:n]) for n in (1, 2, 3))
    alone = Endpoint("e", URLS[0], "m")
    assert first == alone
    messages = [{"role": "user", "content": "?"}]
    assert len({chat(one, messages).key for one in (first, two, three, alone)}) == 1
    named = [Endpoint("e", model="m", base_urls=urls, namespace="pool") for urls in (URLS, URLS[::-1])]
    assert len({chat(one, messages).key for one in (*named, alone)}) == 2
    assert [one.base_url for one in three.servers] == list(URLS)
    assert {one.identity for one in three.servers} == {alone.identity}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"base_urls": ("http://a/v1", "http://a/v1/")}, "twice"),
        ({"base_urls": ("http://a/v1", "b:8000")}, "must start with http"),
        ({"base_urls": ("http://a/v1", "http://user:pw@b/v1")}, "password"),
        ({"base_urls": ("http://a/v1", "mock:")}, "must start with http"),
        ({"base_urls": "http://a/v1"}, "must be a list"),
        ({"base_urls": ("http://a/v1", 3)}, "must be a list"),
        ({"base_urls": ("http://a/v1", ""), "base_url": "http://b/v1"}, "not both"),
    ],
)
def test_addresses_that_make_no_sense_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Endpoint("e", model="m", **fields)


# --- who is asked


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def servers(clock: Clock, told: list[str]) -> Servers:
    endpoint = Endpoint("e", model="m", base_urls=URLS)
    return Servers(endpoint, lambda one: ScriptedTransport("yes"), told.append, clock)


def next_one(servers: Servers, verdict: Response | None = None) -> str:
    with servers.taken() as server:
        if verdict is not None:
            servers.heard(server, verdict, servers._clock())
    return server.url


FINE = Accepted("{}", {})
DOWN = Retry("no connection", down=True)


def test_the_server_with_the_fewest_requests_in_flight_is_asked(servers: Servers) -> None:
    assert [next_one(servers) for _ in range(6)] == [*URLS, *URLS]
    with servers.taken() as first, servers.taken() as second:
        assert {first.url, second.url, next_one(servers), next_one(servers)} == {*URLS}
        assert next_one(servers) == URLS[2]


def test_a_server_that_is_down_rests_longer_each_time_and_is_tried_by_one_request(
    servers: Servers, clock: Clock, told: list[str]
) -> None:
    for rest in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        with servers.taken() as server:
            assert server.url == URLS[0]
            assert URLS[0] not in {next_one(servers) for _ in range(5)}, "it is tried by one request"
            assert servers.heard(server, DOWN, clock.now).after is None  # type: ignore[union-attr]
        clock.now += rest - 0.1
        assert URLS[0] not in {next_one(servers) for _ in range(5)}
        clock.now += 0.1
        servers.all[0].sent = 0
    assert next_one(servers, FINE) == URLS[0]
    with servers.taken(), servers.taken(), servers.taken() as last:
        assert last.url in URLS
    assert servers.all[0].failures == 0
    assert told == [
        "e: http://a:1/v1 is left alone for now (no connection) and tried again later; the other servers go on",
        "e: http://a:1/v1 answers again",
    ]


def test_what_was_in_flight_when_a_server_failed_is_one_failure(servers: Servers, clock: Clock) -> None:
    server = servers.all[0]
    for _ in range(8):
        servers.heard(server, DOWN, clock.now - 1)
    assert (server.failures, server.rests_until) == (1, clock.now + 0.5)


def test_an_error_of_its_own_makes_a_server_rest_only_when_it_comes_again_and_again(servers: Servers) -> None:
    server = servers.all[0]
    rests = []
    for _ in range(3):
        servers.heard(server, Retry("500: oops"), servers._clock())
        rests.append(server.rests_until > servers._clock())
    assert rests == [False, False, True]
    servers.heard(server, FINE, 0)
    servers.heard(server, Retry("too much", oversized=True), servers._clock())
    assert server.failures == 0, "a reply that is too large is that request's matter"


def waits(servers: Servers, index: int, after: float | None, **fields: Any) -> float | None:
    verdict = servers.heard(servers.all[index], Retry("busy", after=after, **fields), servers._clock())
    assert isinstance(verdict, Retry)
    return verdict.after


def test_the_endpoint_waits_only_where_all_rest_and_then_for_the_first_of_them(servers: Servers, clock: Clock) -> None:
    assert waits(servers, 0, 60.0, throttled=True) is None
    assert waits(servers, 1, 20.0, throttled=True) is None
    assert waits(servers, 2, 3600.0, throttled=True) == pytest.approx(20.0)
    clock.now += 20
    assert next_one(servers) == URLS[1]


def test_a_server_that_is_down_does_not_keep_the_endpoint_from_waiting_as_another_asks(
    servers: Servers, clock: Clock
) -> None:
    waits(servers, 0, 60.0, throttled=True)
    waits(servers, 1, None, down=True)
    assert waits(servers, 2, None, down=True) == pytest.approx(0.5)


def test_one_server_alone_is_what_it_was_without_any_of_this(clock: Clock, told: list[str]) -> None:
    alone = Servers(Endpoint("e", URLS[0], "m"), lambda one: ScriptedTransport("yes"), told.append, clock)
    for verdict in (FINE, DOWN, Retry("busy", throttled=True, after=7.0), Fatal("404: no")):
        assert alone.heard(alone.all[0], verdict, clock.now) == verdict
        assert next_one(alone) == URLS[0]
    assert not told


# --- runs


def test_load_is_balanced_and_one_limit_holds_for_all_servers(two: tuple[FaultServer, FaultServer]) -> None:
    run = run_at(two)
    assert run.error is None
    assert len(run.outcomes) == len(UNITS)
    counts = [len(server.seen) for server in two]
    assert sum(counts) == len(UNITS)
    assert min(counts) >= 0.4 * len(UNITS)
    assert sum(server.most_active for server in two) <= 8


def test_one_budget_holds_for_all_servers(two: tuple[FaultServer, FaultServer]) -> None:
    run = run_at(two, session={"budget": Budget(max_requests=50)})
    assert isinstance(run.error, BudgetError)
    assert sum(len(server.seen) for server in two) == 50


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_to_wait_is_rested_alone(two: tuple[FaultServer, FaultServer], status: int) -> None:
    busy, other = two
    busy.answer = lambda body, seen: openai_error(status, "too much", headers={"retry-after": "5"})
    run = run_at(two)
    assert run.error is None
    assert Counter(run.texts) == {"yes": len(UNITS)}
    assert run.seconds < 4, "nobody waited for it"
    assert len(busy.seen) <= 4, "what was in flight when it first said so, and nothing later"
    assert other.most_active > 4, "the others go on at the full limit"
    assert any(f"{busy.base_url} is left alone" in note for note in run.notes)


def test_where_all_servers_ask_to_wait_the_shortest_wait_is_kept(two: tuple[FaultServer, FaultServer]) -> None:
    def throttle(seconds: str) -> Callable[[dict[str, Any], int], Any]:
        first = iter([openai_error(429, "too much", headers={"retry-after": seconds})])
        return lambda body, seen: next(first, completion("yes"))

    two[0].answer, two[1].answer = throttle("1"), throttle("30")
    run = run_at(two, UNITS[:20], concurrency=2)
    assert run.error is None
    assert 0.9 < run.seconds < 10
    assert len(two[1].seen) <= 2, "what was in flight when it asked, and nothing later"


@pytest.mark.parametrize(
    "said", [openai_error(404, "The model `m` does not exist", code="model_not_found"), openai_error(401, "who?")]
)
def test_a_server_without_the_model_or_the_key_stops_the_run_and_is_named(
    two: tuple[FaultServer, FaultServer], said: Any
) -> None:
    two[1].answer = lambda body, seen: said
    run = run_at(two)
    assert isinstance(run.error, EndpointError)
    assert f"{two[1].base_url}: {said.status}" in str(run.error)


def test_a_server_that_was_never_there_is_left_and_the_run_is_whole(two: tuple[FaultServer, FaultServer]) -> None:
    run = run_at([FaultServer(f"http://127.0.0.1:{free_port()}/v1"), *two])
    assert run.error is None
    assert Counter(run.texts) == {"yes": len(UNITS)}


def test_a_server_that_is_down_does_not_end_a_run_before_a_slow_one_has_answered(
    two: tuple[FaultServer, FaultServer],
) -> None:
    two[0].answer = lambda body, seen: completion("yes", delay_s=1.5)
    run = run_at([two[0], FaultServer(f"http://127.0.0.1:{free_port()}/v1")], UNITS[:2], patience_s=3.0)
    assert run.error is None
    assert run.texts == ["yes", "yes"]
    assert len(run.notes) == 1
    assert "is left alone for now" in run.notes[0]


def test_where_no_server_is_there_the_run_stops_as_with_one() -> None:
    absent = [FaultServer(f"http://127.0.0.1:{free_port()}/v1") for _ in range(2)]
    run = run_at(absent, UNITS[:4])
    assert isinstance(run.error, EndpointError)
    assert all(server.base_url in str(run.error) for server in absent)
    assert "Is the server running" in str(run.error)


def test_a_server_that_hangs_costs_one_round_of_time_outs(two: tuple[FaultServer, FaultServer]) -> None:
    two[0].answer = lambda body, seen: completion("late", delay_s=30)
    run = run_at(two, UNITS[:60], timeout_s=0.5)
    assert run.error is None
    assert Counter(run.texts) == {"yes": 60}
    assert len(two[0].seen) <= 4 + run.seconds / 0.5
    assert run.seconds < 10


# --- processes


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Replica:
    """A process of `tests/client/replica.py`."""

    def __init__(self, file: Path, seconds: float) -> None:
        self.port, self.file, self._seconds = free_port(), file, seconds
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.client.replica", str(self.port), str(self.file), str(self._seconds)]
        self.process = subprocess.Popen(command, cwd=ROOT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.02)
        raise AssertionError("it did not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def seen(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[Replica]]:
    made = [Replica(tmp_path / f"seen {name}", 0.05) for name in "ab"]
    yield made
    for one in made:
        one.kill()


def test_a_server_that_is_killed_and_started_again_loses_nothing_and_takes_part_again(
    replicas: list[Replica], tmp_path: Path
) -> None:
    killed, other = replicas
    before: list[int] = []
    asked: list[str] = []

    def kill_and_start() -> None:
        while len(killed.seen()) < 60:
            time.sleep(0.005)
        killed.kill()
        before.append(len(killed.seen()))
        while len(other.seen()) < 120:
            time.sleep(0.005)
        killed.start()

    def units() -> Iterator[str]:
        """Go on until the server that was killed has taken part again."""
        while len(asked) < 10_000 and not (before and len(killed.seen()) >= before[0] + 50):
            asked.append(f"unit {len(asked):04}")
            yield asked[-1]

    async def run() -> dict[str, str]:
        endpoint = Endpoint("e", model="m", base_urls=tuple(r.base_url for r in replicas), concurrency=8)
        killing = asyncio.create_task(asyncio.to_thread(kill_and_start))
        got = {}
        async with Session(tmp_path / "store", backoff_s=0.02) as session:
            async for unit, outcomes in session.resolve(units(), Ask(endpoint), "s"):
                [got[unit]] = texts(outcomes)
        await killing
        return got

    assert asyncio.run(run()) == {unit: unit.upper() for unit in asked}, "nothing is lost"
    seen = Counter(killed.seen() + other.seen())
    assert seen.total() - len(asked) <= 8, "paid twice is at most what was in flight"
    assert len(killed.seen()) >= before[0] + 50, "it takes part again"
