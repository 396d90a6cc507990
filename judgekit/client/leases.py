"""Limits that several sessions share: every half second each session asks for its part of them.

`Leases` answers them. It gives out slots (requests in flight) and rates by need, and never more than there are: what a
session has to give up goes to another only after the first has confirmed that it uses less. A budget is drawn in small
amounts. A session that has not asked for five seconds counts as dead: its slots go to the others, and what it had drawn
without accounting for it counts as spent, since nobody knows what it sent last.

`Lease` is one session's side. Neither side knows how they reach each other.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from judgekit.client.budget import Amounts, Budget, Prices, Spending
from judgekit.client.limits import Limiter
from judgekit.errors import BudgetError
from judgekit.progress import Event
from judgekit.wire.types import Endpoint

__all__ = ["Lease", "Leases", "Owner", "shares"]

_RENEW_S: Final = 0.5
_DEAD_S: Final = 5.0
_DRAWS: Final = 32
"""A draw is at most this part of what is left, divided by the number of sessions, so that little lies idle."""

Told = tuple[str, dict[str, Event], list[str]]
"""What a session works on, how far each of its stages is, and new messages for the user."""


def shares(total: int, wants: Mapping[str, int]) -> dict[str, int]:
    """Divide slots by need: nobody gets more than it wants, and those who want more get an even share."""
    out: dict[str, int] = {}
    left = total
    for number, name in enumerate(sorted(wants, key=lambda name: (wants[name], name))):
        out[name] = min(wants[name], left // (len(wants) - number))
        left -= out[name]
    return out


@dataclass
class _Holder:
    """What one session has: slots and rates by endpoint, what it wants and has in flight, what it drew."""

    seen: float
    wants: dict[str, int] = field(default_factory=dict)
    active: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    rates: dict[str, tuple[float, float]] = field(default_factory=dict)
    drawn: Amounts = (0.0, 0.0, 0.0)


class Leases:
    """Gives out what there is; see the module's docstring. Also keeps what the sessions tell of how far they are.

    Args:
        limits: by endpoint name, the most requests in flight, and requests and tokens per minute (infinity: no limit).
        budget: requests, tokens and money; None means no limit.
        clock: seconds from any moment on.
    """

    def __init__(
        self,
        limits: Mapping[str, tuple[int, float, float]],
        budget: Sequence[float | None] = (None, None, None),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = dict(limits)
        self._left = [None if most is None else float(most) for most in budget]
        self._clock = clock
        self._holders: dict[str, _Holder] = {}
        self._events: dict[str, dict[str, Event]] = {}
        self._notes: dict[str, None] = {}
        self._stop: tuple[str, str] | None = None

    def renew(
        self,
        who: str,
        needs: Mapping[str, tuple[int, int]],
        told: Told,
    ) -> dict[str, tuple[int, float, float]] | None:
        """Return the slots and rates of a session by endpoint, or None if it has to stop.

        Args:
            who: the session.
            needs: by endpoint name, how many requests are in flight and how many wait.
            told: how far it is.
        """
        now = self._clock()
        for name in [name for name, holder in self._holders.items() if now - holder.seen > _DEAD_S]:
            del self._holders[name]
        holder = self._holders.setdefault(who, _Holder(now))
        holder.seen = now
        holder.active = {name: active for name, (active, _) in needs.items()}
        holder.wants = {name: active + waiting for name, (active, waiting) in needs.items()}
        work, events, notes = told
        self._events[work] = events
        self._notes |= dict.fromkeys(notes)
        for name in needs:
            self._share(name, who)
        if self._stop is not None:
            return None
        # Without any rate there is nothing to send by.
        return {name: (holder.slots[name] if all(holder.rates[name]) else 0, *holder.rates[name]) for name in needs}

    def _share(self, name: str, who: str) -> None:
        """Give a session its part of an endpoint, as far as the others have released it."""
        most, *rates = self._limits[name]
        mine, others = self._holders[who], [h for key, h in self._holders.items() if key != who]
        wanted = {key: holder.wants[name] for key, holder in self._holders.items() if name in holder.wants}
        fair = shares(most, wanted)
        held = sum(max(h.slots.get(name, 0), h.active.get(name, 0)) for h in others)
        mine.slots[name] = max(0, min(fair[who], most - held))
        part = fair[who] / max(1, sum(fair.values()))
        given = []
        for at, rate in enumerate(rates):
            free = rate if math.isinf(rate) else rate - sum(h.rates.get(name, (0.0, 0.0))[at] for h in others)
            aim = rate if math.isinf(rate) else rate * part
            # A session that starts at a trickle would still wait long after the others released their part.
            given.append(min(aim, free) if free >= aim / 2 else 0.0)
        mine.rates[name] = given[0], given[1]

    def draw(self, who: str, need: Amounts) -> Amounts | None:
        """Return a part of the budget, at least what is needed; None if not that much is left."""
        holder = self._holders.setdefault(who, _Holder(self._clock()))
        if any(left is not None and left < one for left, one in zip(self._left, need, strict=True)):
            return None
        part = _DRAWS * len(self._holders)
        given = [0.0 if left is None else max(one, left // part) for left, one in zip(self._left, need, strict=True)]
        self._left = [None if left is None else left - one for left, one in zip(self._left, given, strict=True)]
        drawn = [one + more for one, more in zip(holder.drawn, given, strict=True)]
        holder.drawn = (drawn[0], drawn[1], drawn[2])
        return given[0], given[1], given[2]

    def leave(self, who: str, spent: Amounts, told: Told) -> None:
        """Take back everything from a session that ended."""
        self.renew(who, {}, told)
        holder = self._holders.pop(who)
        rest = [drawn - used for drawn, used in zip(holder.drawn, spent, strict=True)]
        self._left = [None if left is None else left + one for left, one in zip(self._left, rest, strict=True)]

    def stop(self, kind: str, text: str) -> None:
        """Have every session end: the name of an error, and what it says. The first one stands."""
        self._stop = self._stop or (kind, text)

    def status(self) -> tuple[list[Event], list[str], tuple[str, str] | None]:
        """Return how far each stage is in all sessions, all messages, and why everything has to stop, if it has."""
        out: dict[str, Event] = {}
        spent = [e.spent for events in self._events.values() for e in [*events.values()][-1:] if e.spent is not None]
        for events in self._events.values():
            for stage, one in events.items():
                other = out.get(stage, Event(stage, 0, 0))
                out[stage] = Event(
                    stage,
                    other.done + one.done,
                    None if other.total is None or one.total is None else other.total + one.total,
                    other.sent + one.sent,
                    other.cached + one.cached,
                    other.failed + one.failed,
                    spent=sum(spent) if spent else None,
                )
        return list(out.values()), list(self._notes), self._stop


class Owner(Protocol):
    """How a session reaches `Leases`, wherever they are."""

    def __call__(self, method: str, *args: Any) -> Awaitable[Any]:
        """Call one of their methods."""
        ...


class _Drawn(Spending):
    """A budget that is drawn a little at a time."""

    def __init__(self, lease: Lease, prices: Prices) -> None:
        begin: list[Any] = [None if most is None else 0 for most in lease.budget.limits]
        super().__init__(Budget(*begin), prices)
        self._lease, self._one = lease, asyncio.Lock()

    async def reserve(self, endpoint: Endpoint, estimate: tuple[int, int]) -> None:
        """Set aside what the next request may cost, drawing more where what was drawn leaves no room."""
        need = self.needed(endpoint, estimate)
        async with self._one:
            while not self._fits(need):
                more = await self._lease.owner("draw", self._lease.who, need)
                if more is not None:
                    self.budget = self.budget.plus(more)
                    continue
                try:
                    return await super().reserve(endpoint, estimate)  # waits for what those in flight really take
                except BudgetError:
                    raise BudgetError(f"the budget that all workers share is used up: {self._lease.budget}") from None

    def _fits(self, need: Amounts) -> bool:
        try:
            return self._reserved(need)
        except BudgetError:
            return False


class Lease:
    """One session's part of limits that it shares: give it to `judgekit.client.session.Session`, and `keep` it.

    Args:
        who: a name that no other session has.
        owner: calls the methods of `Leases`.
        budget: the whole budget, of all sessions together.
    """

    def __init__(self, who: str, owner: Owner, budget: Budget) -> None:
        self.who, self.owner, self.budget = who, owner, budget
        self.limiters: dict[Endpoint, Limiter] = {}
        self.spending: Spending | None = None
        self._wake = asyncio.Event()

    def limiter(self, endpoint: Endpoint) -> Limiter:
        """Return the gate in front of an endpoint, which lets nothing through before the first renewal."""
        self._wake.set()
        return self.limiters.setdefault(endpoint, Limiter(0))

    def spend(self, prices: Prices) -> Spending:
        """Return what keeps to the budget."""
        self.spending = _Drawn(self, prices)
        return self.spending

    async def keep(self, told: Told) -> None:
        """Renew for ever, until everything has to stop; then wait for what is in flight, which is paid for."""
        while True:
            self._wake.clear()
            needs = {e.name: (limiter.active, limiter.waiting) for e, limiter in self.limiters.items()}
            # A session that is silent for long counts as dead and its slots go to others: it stops before that.
            late = asyncio.get_running_loop().call_later(_DEAD_S - 2 * _RENEW_S, self._resize, {})
            try:
                given = await self.owner("renew", self.who, needs, told)
            finally:
                late.cancel()
            self._resize(given or {})
            if given is None and not any(limiter.active for limiter in self.limiters.values()):
                return
            try:
                async with asyncio.timeout(_RENEW_S):
                    await self._wake.wait()
                await asyncio.sleep(0.02)  # until what waits for the new gate does
            except TimeoutError:
                pass

    def _resize(self, given: Mapping[str, tuple[int, float, float]]) -> None:
        for endpoint, limiter in self.limiters.items():
            limiter.resize(*given.get(endpoint.name, (0, math.inf, math.inf)))

    async def leave(self, told: Told) -> None:
        """Give everything back."""
        await self.owner("leave", self.who, self.spending.spent if self.spending else (0.0, 0.0, 0.0), told)
