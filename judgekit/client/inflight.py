"""What is in flight in one event loop: who waits for which request, its attempts, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from judgekit.client.attempt import Attempt, Client, Shared
from judgekit.client.budget import Usage
from judgekit.errors import JudgekitError, StoppedError
from judgekit.store.claims import Claims
from judgekit.store.modes import SessionStore
from judgekit.wire.types import Endpoint, Outcome, Request

__all__ = ["InFlight", "Waiter"]

_LEAST: Final = 64
_SHARE_S: Final = 0.2
"""How often is looked for what other processes ask."""

_ELSEWHERE: Final = (
    "another process asks some of the same requests: judgekit waits for its replies, which are paid once"
)


class Waiter:
    """Whoever waits for outcomes.

    Attributes:
        usages: what is charged for attempts, by the name of the endpoint.
        arrived: (request, outcome, whether it was replayed) of what came.
        wake: set when something came, or nothing more will.
    """

    def __init__(self, usages: defaultdict[str, Usage]) -> None:
        self.usages = usages
        self.arrived: deque[tuple[Request, Outcome, bool]] = deque()
        self.wake = asyncio.Event()


class InFlight:
    """The attempts of one event loop while a session is used in it.

    Everything that is resolved in the loop shares them, so that nothing is sent twice. It lives while it has users, and
    closes its connections with the last, so that none outlives its loop.

    Attributes:
        users: how many use it.
        error: why nothing more is sent, if so; whoever comes then needs another one.
        clients: by endpoint.
        flights: what is asked, by its identity, and who waits for it; the first pays.
    """

    def __init__(self, shared: Shared, store: SessionStore) -> None:
        """Keep what comes in ``store``."""
        self.users = 0
        self.error: Exception | None = None
        self.clients: dict[Endpoint, Client] = {}
        self.flights: dict[str, tuple[Request, list[Waiter]]] = {}
        self._shared = shared
        self._store = store
        self._elsewhere: dict[str, Request] = {}
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}
        self._claims = Claims(store.sink) if store.shared and not store.refreshes else None
        self._sharing: asyncio.Task[None] | None = None
        self._pending: list[tuple[Attempt, Outcome | None]] = []
        self._flushing: asyncio.Task[None] | None = None

    @property
    def appetite(self) -> int:
        """How many units may wait for replies: enough that no endpoint has to wait for units, and no more."""
        return _LEAST + 3 * sum(endpoint.concurrency for endpoint in self.clients) // 2

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.error is not None and not (self._tasks or self._pending)

    def submit(self, requests: Mapping[str, Request], waiter: Waiter) -> None:
        """Have requests answered, unless nothing more is sent."""
        new: dict[str, Request] = {}
        for key, request in requests.items():
            flight = self.flights.get(key)
            if flight is None:
                new[key] = request
                self.flights[key] = (request, [waiter])
            elif waiter not in flight[1]:
                flight[1].append(waiter)
        if new and self.error is None:
            try:
                self._begin(new)
            except JudgekitError as problem:  # whoever waits raises it
                self._fail(problem)

    def _begin(self, requests: Mapping[str, Request]) -> None:
        """Ask what no other process asks; the rest is waited for."""
        mine: Collection[str] = requests
        if self._claims is not None:
            mine = self._claims.take(requests)
            if self._sharing is None or self._sharing.done():
                self._sharing = asyncio.create_task(self._share())
        # What another process has had answered since it was looked for is not asked again.
        stored = self._store.lookup(list(mine)) if self._claims is not None else {}
        for key, request in requests.items():
            if key in stored:
                self._deliver(request, stored[key], replayed=True)
            elif key not in mine:
                self._elsewhere[key] = request
            else:
                self._elsewhere.pop(key, None)
                if request.endpoint not in self.clients:
                    self.clients[request.endpoint] = Client(request.endpoint, self._shared)
                usage = self.flights[key][1][0].usages[request.endpoint.name]
                attempt = Attempt(self.clients[request.endpoint], request, usage.incurred)
                self._tasks[attempt] = asyncio.create_task(self._run(attempt))
        if self._elsewhere:
            self._shared.note(_ELSEWHERE, once=True)

    async def _run(self, attempt: Attempt | None) -> None:
        """Carry out an attempt, or without one store what came."""
        try:
            if attempt is None:
                self.flush()
            else:
                await self._ask(attempt)
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            self._fail(problem)
        finally:
            if attempt is not None:
                del self._tasks[attempt]
            self._wake()

    async def _ask(self, attempt: Attempt) -> None:
        outcome: Outcome | None = None
        try:
            outcome = await attempt.run()
        finally:
            if attempt.record is not None:
                if not self._pending:
                    self._flushing = asyncio.create_task(self._run(None))
                self._pending.append((attempt, outcome))
            elif outcome is not None:
                self._deliver(attempt.request, outcome)

    def flush(self) -> None:
        """Store what came, all at once, and then hand it to those who wait."""
        pending, self._pending = self._pending, []
        there = self._store.keep([attempt.record for attempt, _ in pending if attempt.record is not None])
        for attempt, outcome in pending:
            if outcome is not None:
                self._deliver(attempt.request, there.get(attempt.request.key, outcome))

    async def _share(self) -> None:
        """Keep the claims while something is asked, and look for what other processes ask."""
        assert self._claims is not None
        try:
            while self.flights and self.error is None:
                await asyncio.sleep(_SHARE_S)
                self._claims.beat()
                for key, reply in self._store.lookup(list(self._elsewhere)).items():
                    self._deliver(self._elsewhere[key], reply, replayed=True)
                if self._elsewhere:
                    self._begin(dict(self._elsewhere))
        except JudgekitError as problem:
            self._fail(problem)

    def _deliver(self, request: Request, outcome: Outcome, *, replayed: bool = False) -> None:
        self._elsewhere.pop(request.key, None)
        if self._claims is not None:
            self._claims.end(request.key)
        for waiter in self.flights.pop(request.key)[1]:
            waiter.arrived.append((request, outcome, replayed))
            waiter.wake.set()

    def _fail(self, problem: Exception) -> None:
        """Send nothing more; what is in flight is paid for, and waited for."""
        if self.error is None:
            self.error = problem
            for attempt in self._tasks:
                attempt.stop(paid=False)
        self._wake()

    def _wake(self) -> None:
        """Tell all that wait, once nothing more will come."""
        if self.ended:
            for _, waiting in self.flights.values():
                for waiter in waiting:
                    waiter.wake.set()

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        if self._sharing is not None:
            self._sharing.cancel()
        while self._tasks:
            for attempt in self._tasks:
                attempt.stop()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        with suppress(StoppedError):  # they are written beside the store, and whoever waited was told why
            self.flush()
        if self._sharing is not None and self._claims is not None:
            with suppress(StoppedError):  # the claims of a process that has ended are void
                self._claims.close()
        for client in self.clients.values():
            await client.transport.aclose()
