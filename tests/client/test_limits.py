"""Limits: slots in order, concurrency that adapts, requests and tokens a minute, pauses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from judgekit.client.limits import Limiter
from judgekit.wire.types import Endpoint


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(concurrency: int, clock: Callable[[], float] = time.monotonic, **rates: float) -> Limiter:
    return Limiter(Endpoint("e", "http://h/v1", "m", concurrency=concurrency, **rates), clock)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_slots_are_given_in_order_and_never_more_than_there_are() -> None:
    async def main() -> None:
        limiter = limited(2)
        got: list[int] = []

        async def one(number: int) -> None:
            await limiter.acquire()
            got.append(number)

        tasks = [asyncio.create_task(one(n)) for n in range(5)]
        for expected in ([0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
            await settle()
            assert got == expected
            assert limiter.active <= 2
            limiter.release()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_further_attempt_goes_before_those_that_wait_for_their_first() -> None:
    async def main() -> None:
        limiter = limited(1)
        got: list[str] = []

        async def one(name: str, again: bool) -> None:
            await limiter.acquire(again=again)
            got.append(name)

        await limiter.acquire()
        tasks = [asyncio.create_task(one(n, n == "again")) for n in ("first", "second", "again")]
        for _ in range(3):
            await settle()
            limiter.release()
        await asyncio.gather(*tasks)
        assert got == ["again", "first", "second"]

    asyncio.run(main())


def test_a_cancelled_wait_takes_no_slot() -> None:
    async def main() -> None:
        limiter = limited(1)
        await limiter.acquire()
        waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
        await settle()
        waiting[0].cancel()
        await settle()
        limiter.release()
        waiting[1].cancel()  # it was just given the slot
        await settle()
        assert waiting[2].done()
        assert limiter.active == 1

    asyncio.run(main())


def test_concurrency_doubles_until_the_first_overload_then_grows_by_one_a_round() -> None:
    clock = Clock()
    limiter = limited(100, clock=clock)
    assert limiter.limit == 32
    for _ in range(32):
        limiter.succeeded()
    assert limiter.limit == 64
    clock.now = 101
    limiter.overloaded(started_at=100.5)
    assert limiter.limit == 32
    for started_at in (100.6, 100.9):
        limiter.overloaded(started_at)
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


async def _times(limiter: Limiter, tokens: list[int]) -> list[float]:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    times = []
    for count in tokens:
        await limiter.acquire(count)
        times.append(loop.time() - begun)
        limiter.release()
    return times


def test_requests_a_minute_are_spread_evenly() -> None:
    times = asyncio.run(_times(limited(10, requests_per_minute=3000), [0] * 20))
    assert times[-1] >= 19 * 0.02 - 0.005
    assert times[-1] < 1


def test_tokens_a_minute_delay_what_follows() -> None:
    times = asyncio.run(_times(limited(10, tokens_per_minute=60_000), [100, 200, 1]))
    assert times[0] < 0.05
    assert times[1] >= 0.095
    assert times[2] >= 0.295


def test_an_estimate_is_corrected_by_what_was_used() -> None:
    async def main() -> float:
        limiter = limited(10, tokens_per_minute=60_000)
        await limiter.acquire(5000)
        limiter.correct_tokens(5000, 50)
        return (await _times(limiter, [1]))[0]

    assert asyncio.run(main()) < 1


def test_a_pause_holds_everybody_and_the_longest_counts() -> None:
    async def main() -> list[float]:
        limiter = limited(10)
        limiter.pause(0.2)
        limiter.pause(0.1)
        return await _times(limiter, [0, 0])

    times = asyncio.run(main())
    assert 0.19 <= times[0] < 1
