"""What belongs to one event loop while a session is used in it: clients, connections, requests in flight."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from judgekit.client.client import Brake, Client
from judgekit.client.executor import LocalExecutor, Recorder
from judgekit.client.ledger import Account
from judgekit.wire.types import Endpoint, Outcome, Request

__all__ = ["Flight", "Mailbox", "Runtime"]


_LEAST = 64


class Mailbox:
    """Where the outcomes for one `resolve` arrive, and why no more will."""

    def __init__(self) -> None:
        self.arrived: deque[tuple[Request, Outcome]] = deque()
        self.error: BaseException | None = None
        self.wake = asyncio.Event()

    async def wait(self) -> None:
        """Return when something arrived.

        Raises:
            BaseException: what ended the run, once everything that arrived before has been taken.
        """
        while not self.arrived:
            if self.error is not None:
                raise self.error
            self.wake.clear()
            await self.wake.wait()


@dataclass
class Flight:
    """A request on its way, the account that pays for it and the mailboxes that wait for it."""

    request: Request
    account: Account
    boxes: list[Mailbox]


class Runtime:
    """Runs one executor for all that a session resolves in one event loop, so that nothing is sent twice.

    It lives while it has users, and closes its connections with the last, so that none outlives its loop.

    Args:
        make_client: makes the client of an endpoint.
        recorder: stores the replies.
    """

    def __init__(self, make_client: Callable[[Endpoint, Runtime], Client], recorder: Recorder) -> None:
        self.users = 0
        self.flights: dict[str, Flight] = {}
        self.recorder = recorder
        self.brake = Brake()
        self._make_client = make_client
        self._clients: dict[Endpoint, Client] = {}
        self._queue: deque[Request] = deque()
        self._more = asyncio.Event()
        self._consumer: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether an error ended it, so that whoever comes now needs another one."""
        return self._error is not None or self.brake.error is not None

    @property
    def appetite(self) -> int:
        """How many units may wait for replies: enough that no endpoint has to wait for units, and no more."""
        return _LEAST + 3 * sum(endpoint.concurrency for endpoint in self._clients) // 2

    def submit(self, request: Request, account: Account, box: Mailbox) -> None:
        """Have a request answered into a mailbox."""
        if self._error is not None:
            box.error = self._error
            return
        flight = self.flights.get(request.key)
        if flight is not None:
            if box not in flight.boxes:
                flight.boxes.append(box)
            return
        self.flights[request.key] = Flight(request, account, [box])
        self._queue.append(request)
        self._more.set()
        if self._consumer is None:
            self._consumer = asyncio.create_task(self._consume())

    async def _requests(self) -> AsyncIterator[Request]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            self._more.clear()
            await self._more.wait()

    async def _consume(self) -> None:
        outcomes = LocalExecutor(self._client, self.brake).run(self._requests())
        try:
            async for key, outcome in outcomes:
                flight = self.flights.pop(key)
                for box in flight.boxes:
                    box.arrived.append((flight.request, outcome))
                    box.wake.set()
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            self._error = problem
        finally:
            await outcomes.aclose()
            for flight in self.flights.values():
                for box in flight.boxes:
                    box.error = self._error
                    box.wake.set()

    def _client(self, endpoint: Endpoint) -> Client:
        client = self._clients.get(endpoint)
        if client is None:
            client = self._clients[endpoint] = self._make_client(endpoint, self)
        return client

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        if self._consumer is not None:
            self._consumer.cancel()
            await asyncio.gather(self._consumer, return_exceptions=True)
        self.recorder.flush()
        for client in self._clients.values():
            await client.transport.aclose()
