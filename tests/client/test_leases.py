"""Sessions that share limits: however they come, go and die, they never have more together than there is."""

from __future__ import annotations

import asyncio
import math
import random

import pytest

from judgekit.client import leases as room
from judgekit.client.budget import Budget
from judgekit.client.leases import Lease, Leases, shares
from judgekit.errors import BudgetError
from judgekit.progress import Event
from judgekit.wire.types import Endpoint

NOTHING = ("", {}, [])
NO_RATES = (math.inf, math.inf)


def test_slots_go_by_need_and_evenly_where_all_need_more() -> None:
    assert shares(10, {"a": 2, "b": 50, "c": 50}) == {"a": 2, "b": 4, "c": 4}
    assert shares(10, {"a": 50, "b": 50, "c": 50}) == {"a": 3, "b": 3, "c": 4}
    assert shares(2, {"a": 5, "b": 5, "c": 5}) == {"a": 0, "b": 1, "c": 1}
    assert shares(10, {"a": 0}) == {"a": 0}


def test_one_that_comes_later_gets_what_the_first_has_let_go_of() -> None:
    leases = Leases({"e": (10, *NO_RATES)})

    def slots(who: str, active: int, waiting: int) -> int:
        given = leases.renew(who, {"e": (active, waiting)}, NOTHING)
        assert given is not None
        return given["e"][0]

    assert slots("a", 0, 20) == 10
    assert slots("b", 0, 20) == 0, "the first holds them all"
    assert slots("a", 10, 20) == 5
    assert slots("b", 0, 20) == 0, "and what it has in flight is not free before it ends"
    assert slots("a", 5, 20) == 5
    assert slots("b", 0, 20) == 5


def test_the_slots_of_the_dead_go_to_the_others_and_never_more_than_there_are() -> None:
    now = 0.0
    leases = Leases({"e": (7, 600.0, math.inf)}, clock=lambda: now)
    dice = random.Random(1)
    held: dict[str, tuple[float, int, float]] = {}
    for _ in range(3000):
        now += dice.random() / 4
        who = dice.choice("abcd")
        if dice.random() < 0.003:
            now += 6  # everybody is dead
        held = {name: one for name, one in held.items() if now - one[0] <= 5}
        active = min(held.get(who, (0, 0, 0.0))[1], dice.randint(0, 7))
        given = leases.renew(who, {"e": (active, dice.randint(0, 9))}, NOTHING)
        assert given is not None
        held[who] = (now, max(given["e"][0], active), given["e"][1])
        assert sum(slots for _, slots, _ in held.values()) <= 7
        assert sum(rate for *_, rate in held.values()) <= 600.0 + 1e-6


def test_who_is_not_answered_sends_nothing_more_before_others_get_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_DEAD_S", 0.1)
    monkeypatch.setattr(room, "_RENEW_S", 0.02)
    answers = [{"e": (3, *NO_RATES)}]

    async def call(method: str, *args: object) -> object:
        return answers.pop() if answers else await asyncio.Event().wait()

    async def go() -> None:
        lease = Lease("a", call, Budget())
        limiter = lease.limiter(Endpoint("e", "http://localhost:1/v1", "m"))
        keeping = asyncio.create_task(lease.keep(NOTHING))
        await limiter.acquire()
        async with asyncio.timeout(60):
            while limiter.maximum:  # noqa: ASYNC110  # it tells nobody
                await asyncio.sleep(0.01)
        keeping.cancel()

    asyncio.run(go())


def test_of_a_budget_little_lies_idle_and_what_the_dead_had_drawn_is_spent() -> None:
    now = 0.0
    leases = Leases({}, (1000, None, None), clock=lambda: now)
    assert leases.draw("a", (1, 10, 0.0)) == (31, 0, 0), "a part of what is left"
    assert leases.draw("b", (1, 10, 0.0)) == (15, 0, 0)
    leases.leave("a", (11, 0, 0), NOTHING)
    now = 10.0
    drawn = 0.0
    while (more := leases.draw("c", (1, 0, 0))) is not None:
        drawn += more[0]
    assert drawn == 1000 - 11 - 15


def test_events_of_the_same_stage_add_up_and_a_partition_counts_once() -> None:
    leases = Leases({})
    leases.renew("a", {}, ("part-1", {"label x": Event("label x", 3, 10, sent=3, spent=1.0)}, ["slow"]))
    leases.renew("b", {}, ("part-2", {"label x": Event("label x", 1, 5, cached=1, spent=0.5)}, ["slow"]))
    leases.renew("c", {}, ("part-1", {"label x": Event("label x", 4, 10, sent=4, spent=2.0)}, []))
    assert leases.status() == ([Event("label x", 5, 15, sent=4, cached=1, spent=2.5)], ["slow"], None)
    leases.stop("BudgetError", "used up")
    leases.stop("EndpointError", "later")
    assert leases.renew("a", {}, NOTHING) is None
    assert leases.status()[2] == ("BudgetError", "used up")


def test_sessions_that_draw_on_one_budget_stop_together_within_it() -> None:
    endpoint = Endpoint("e", "http://localhost:1/v1", "m")

    async def spend() -> tuple[int, str]:
        leases = Leases({}, (None, 1000, None))

        async def call(method: str, *args: object) -> object:
            return getattr(leases, method)(*args)

        used = 0
        said = ""
        spendings = [Lease(name, call, Budget(max_tokens=1000)).spend({}) for name in "abc"]

        async def one(number: int) -> None:
            nonlocal used
            await spendings[number % 3].reserve(endpoint, (5, 5))
            await asyncio.sleep(0)
            spendings[number % 3].settle(endpoint, (5, 5), (5, 4))
            used += 9

        for result in await asyncio.gather(*map(one, range(200)), return_exceptions=True):
            if isinstance(result, BudgetError):
                said = str(result)
            else:
                assert result is None
        return used, said

    used, said = asyncio.run(spend())
    assert 950 <= used <= 1000
    assert said == "the budget that all workers share is used up: 1000 tokens"


@pytest.mark.parametrize("budget", [Budget(), Budget(max_requests=0)])
def test_without_a_budget_nothing_is_drawn(budget: Budget) -> None:
    async def spend() -> None:
        leases = Leases({}, (budget.max_requests, None, None))

        async def call(method: str, *args: object) -> object:
            assert budget, "nobody is asked"
            return getattr(leases, method)(*args)

        await Lease("a", call, budget).spend({}).reserve(Endpoint("e", "http://localhost:1/v1", "m"), (1, 1))

    if budget:
        with pytest.raises(BudgetError, match="0 requests"):
            asyncio.run(spend())
    else:
        asyncio.run(spend())
