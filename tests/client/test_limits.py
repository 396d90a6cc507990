"""How fast an endpoint is asked, how long it may fail, what the user is told meanwhile, and that it ends."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from judgekit.client import limits
from judgekit.client.limits import Limiter, RetryPolicy, Watch
from judgekit.errors import EndpointError
from judgekit.wire.quirks import THROTTLED, Retry
from judgekit.wire.types import Endpoint
from tests.programs import Run
from tests.scripted import Scripted, error
from tests.servers import Stream


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(concurrency: int, clock: Callable[[], float] = time.monotonic, **rates: float) -> Limiter:
    return Limiter(Endpoint("e", "http://h/v1", "m", concurrency=concurrency, **rates), clock)


def test_further_tries_get_slots_before_new_requests_and_waiting_takes_none(fault_server):
    fault_server.answer = lambda body, seen: "yes" if seen else error(500, "Boom.")
    run = Run(fault_server.base_url, UNITS[:6], concurrency=1, session={"backoff_s": 0.0})
    assert run.texts == ["yes"] * 6
    order = [UNITS.index(text) for text in fault_server.texts()]
    # A slot goes on to a new request at once; the next one that is free, to a request that waits for its second try.
    assert order == [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]


def test_who_left_is_offered_no_slot():
    limiter, line, got = limited(2), ["first", "second", "third", "fourth"], list[str]()

    def start():
        while line and limiter.take():
            got.append(line.pop(0))

    limiter.join(start)
    start()
    assert (got, limiter.active) == (["first", "second"], 2)
    limiter.release()
    assert (got, limiter.active) == (["first", "second", "third"], 2)
    limiter.leave(start)
    limiter.release()
    assert line == ["fourth"]


def test_fewer_slots_than_are_taken_let_nobody_go_on_with_one():
    limiter = limited(4)
    assert [limiter.take() for _ in range(5)] == [True] * 4 + [False]
    assert limiter.keeps()
    limiter.overloaded(1.0)
    assert not limiter.keeps()
    limiter.release()
    limiter.release()
    assert (limiter.keeps(), limiter.take()) == (True, False)


def test_concurrency_doubles_until_the_first_overload_then_grows_by_one_a_round():
    clock = Clock()
    limiter = limited(100, clock=clock)
    assert (limiter.limit, limited(400).limit) == (32, 100)
    for _ in range(32):
        limiter.succeeded()
    assert limiter.limit == 64
    clock.now = 101
    limiter.overloaded(started_at=100.5)
    assert limiter.limit == 32
    limiter.overloaded(100.9)
    assert limiter.limit == 32, "signs of one round count once"
    for _ in range(32):
        limiter.succeeded()
    assert limiter.limit == pytest.approx(33, abs=0.1)
    clock.now = 102
    for _ in range(20):
        clock.now += 1
        limiter.overloaded(clock.now - 0.5)
    assert limiter.limit == 1
    for _ in range(100_000):
        limiter.succeeded()
    assert limiter.limit == 100


async def _times(limiter: Limiter, requests: int) -> list[float]:
    begun, times = time.monotonic(), []
    for _ in range(requests):
        await limiter.turn()
        times.append(time.monotonic() - begun)
    return times


def test_requests_a_minute_are_spread_evenly():
    times = asyncio.run(_times(limited(10, requests_per_minute=3000), 20))
    assert 19 * 0.02 - 0.005 <= times[-1] < 1


def test_a_pause_holds_everybody_and_the_longest_counts():
    async def main():
        limiter = limited(10)
        limiter.pause(0.2)
        limiter.pause(0.1)
        return await _times(limiter, 2)

    assert 0.19 <= asyncio.run(main())[0] < 1


UNITS = [f"unit {i:02}" for i in range(40)]
PATIENT = {"max_retries": 10_000, "timeout_s": 0.1}
"""So many retries that nothing but patience ends them."""


async def drip(response: web.StreamResponse) -> None:
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


FAULTS: dict[str, Callable[[], Scripted | Stream]] = {
    "429": lambda: error(429, "Slow down."),
    "503": lambda: error(503, "Overloaded."),
    "500": lambda: error(500, "Boom."),
    "429 that asks for a wait": lambda: error(429, "Slow down.", headers={"retry-after-ms": "30"}),
    "slow drip": lambda: Stream(drip),
    "never": lambda: Scripted(200, b"", delay_s=30.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails_from_the_start_stops_the_run_with_a_sentence(fault_server, fault, monkeypatch):
    fault_server.answer = lambda body, seen: FAULTS[fault]()
    monkeypatch.setattr(Endpoint, "patience_s", 2.0)
    run = Run(fault_server.base_url, UNITS, **PATIENT)
    assert "without a single answer: " in run.stopped
    assert "all replies so far are kept" in str(run.error)
    assert any(re.search(r"; gives up at \d\d:\d\d:\d\d$", note) for note in run.notes)
    assert not run.outcomes


def test_a_server_that_fails_from_some_moment_on_stops_the_run_when_patience_ends(fault_server, monkeypatch):
    fault_server.answer = lambda body, seen: error(503, "Down.") if len(fault_server.seen) > 10 else "yes"
    monkeypatch.setattr(Endpoint, "patience_s", 0.3)
    run = Run(fault_server.base_url, UNITS, concurrency=1, **PATIENT)
    assert "without a single answer: 503: Down." in str(run.error)
    assert run.texts.count("yes") == 10


def test_a_silent_server_is_told_of_before_its_timeout(fault_server, monkeypatch):
    monkeypatch.setattr(limits, "_SILENT_S", 0.05)
    fault_server.answer = lambda body, seen: Scripted(200, b"", delay_s=30.0)
    run = Run(fault_server.base_url, UNITS[:1], timeout_s=1.0, max_retries=0)
    assert re.search(r"here: no answer for 0 s; waits until \d\d:\d\d:\d\d at the latest \(timeout_s\)", run.notes[0])


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(clock: Clock, proven: bool = True, **settings: Any) -> tuple[Watch, RetryPolicy, list[str]]:
    """Return what watches an endpoint, the patience with one request, and what the user is told."""
    endpoint, told = Endpoint("e", "http://h/v1", "m", **settings), list[str]()
    return Watch(endpoint, told.append, lambda: proven, clock), RetryPolicy(endpoint), told


def says_a_time(text: str, moment: float) -> bool:
    """Say whether a text names the time of day of a moment, or one up to a minute later, as tests may be slow."""
    return any(time.strftime("%H:%M:%S", time.localtime(moment + late)) in text for late in range(60))


BUSY = Retry("429: busy", THROTTLED)
BROKEN = Retry("500: boom")


@pytest.mark.parametrize(("proven", "limit"), [(True, 900.0), (False, 90.0)])
def test_an_endpoint_may_fail_for_its_patience_and_for_a_tenth_before_its_first_answer(clock, proven, limit):
    watch, _, _told = make(clock, proven)
    assert watch.failed(BUSY) is None
    clock.now += limit
    assert watch.failed(BUSY) is None
    clock.now += 0.1
    assert "429: busy" in (watch.failed(BUSY) or "")
    watch.answered()
    assert watch.failed(BUSY) is None, "any answer begins the patience anew"


def test_no_wait_goes_beyond_the_end_of_patience(clock):
    watch, retry_policy, _told = make(clock, proven=False)
    for waited, left in ((0, 90), (80, 10), (10, 0)):
        clock.now += waited
        retry_policy.failed(BUSY, clock.now)
        watch.failed(BUSY)
        assert watch.left(retry_policy) == left


def test_the_last_attempt_of_a_run_that_waits_long_in_between_comes_when_patience_ends(fault_server, monkeypatch):
    # a wait between two attempts would be a thousand times as long as patience
    fault_server.answer = lambda body, seen: error(503, "Down.")
    monkeypatch.setattr(Endpoint, "patience_s", 2.0)
    run = Run(fault_server.base_url, UNITS[:1], session={"backoff_s": 2000.0}, **PATIENT)
    assert isinstance(run.error, EndpointError)
    assert run.seconds < 60


def test_a_request_is_tried_again_as_long_as_the_next_attempt_lies_within_its_patience(clock, monkeypatch):
    monkeypatch.setattr(Endpoint, "patience_s", 100)
    _, retry_policy, _ = make(clock, max_retries=50)
    for late in (0, 90):
        retry_policy.failed(BROKEN, clock.now + late)
        assert not retry_policy.over(100 - late)
        assert retry_policy.over(101 - late)
    assert retry_policy.told == " (after 2 attempts in 90 s)"


def test_being_throttled_counts_a_quarter(clock):
    _, retry_policy, _ = make(clock, max_retries=2)
    over = []
    for _ in range(9):
        retry_policy.failed(BUSY, clock.now)
        over.append(retry_policy.over(0))
    assert over == [False] * 8 + [True]


def test_what_is_waited_for_and_until_when_is_told_but_not_at_every_attempt(clock, monkeypatch):
    monkeypatch.setattr(Endpoint, "patience_s", 600)
    watch, retry_policy, told = make(clock)
    begun = time.time()
    for _ in range(30):
        retry_policy.failed(BROKEN, clock.now)
        watch.failed(BROKEN)
        watch.tell_retry(retry_policy)
        clock.now += 1
    assert len(told) == 2
    assert told[0].startswith("e: trying again after 500: boom; gives up at ")
    assert says_a_time(told[0], begun + 600)
    assert says_a_time(told[1], begun + 600 - 20), "20 s later by the clock that the test turns"


def test_a_little_throttling_is_not_told_and_lasting_throttling_is(clock):
    watch, retry_policy, told = make(clock)
    for seconds in (0, 4):
        clock.now += seconds
        retry_policy.failed(BUSY, clock.now)
        watch.failed(BUSY)
        watch.tell_retry(retry_policy)
    assert not told
    clock.now += 2
    watch.tell_retry(retry_policy)
    assert "trying again after 429: busy" in told[0]


def test_a_wait_that_a_server_asks_for_is_told_with_an_end_that_is_not_before_it(clock):
    watch, retry_policy, told = make(clock, proven=False)
    asked = Retry("429: busy", THROTTLED, after=300.0)
    retry_policy.failed(asked, clock.now)
    assert watch.failed(asked) is None
    before = time.time()
    watch.tell_retry(retry_policy)
    assert "e asks to wait 5 minutes (429: busy); gives up at " in told[0]
    assert says_a_time(told[0], before + 300)


def test_a_silence_is_told_unless_others_are_answered(clock):
    watch, _, told = make(clock)
    begun = clock.now
    clock.now += 10
    watch.heard(5)
    clock.now += 10
    assert watch.tell_silence(begun) == clock.now + 10
    assert not told
    clock.now += 10
    assert watch.tell_silence(begun) == clock.now + 20
    assert "e: no answer for 20 s; waits until" in told[0]
    watch.heard(30)
    assert watch.tell_silence(begun) == clock.now + 60, "where answers take their time, silence begins later"
