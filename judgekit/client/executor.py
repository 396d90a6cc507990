"""The local executor: many requests at once, each reply in the store before it is told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable

from judgekit.client.client import Brake, Client
from judgekit.errors import StoppedError
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint, Outcome, Reply, Request

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs requests against their endpoints from this process. Belongs to one event loop.

    Args:
        make_client: makes the client of an endpoint, which saves its replies here.
        store: where the replies go.
        replace: whether they replace what is there already.
    """

    def __init__(self, make_client: Callable[[Endpoint], Client], store: Store, *, replace: bool = False) -> None:
        self.brake = Brake()
        self.clients: dict[Endpoint, Client] = {}
        self._make_client = make_client
        self._store = store
        self._replace = replace
        self._pending: list[tuple[Record, asyncio.Future[Reply | None]]] = []

    def _client(self, endpoint: Endpoint) -> Client:
        client = self.clients.get(endpoint)
        if client is None:
            client = self.clients[endpoint] = self._make_client(endpoint)
        return client

    async def save(self, record: Record) -> Reply | None:
        """Return when the record is in the store: None, or what was there already and stays.

        All that one turn of the event loop brings is stored together, in one short transaction.

        Raises:
            StoreError: it cannot be stored.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply | None] = loop.create_future()
        if not self._pending:
            loop.call_soon(self.flush)
        self._pending.append((record, future))
        return await future

    def flush(self) -> None:
        """Store what waits."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            kept = self._store.put_many([record for record, _ in pending], replace=self._replace)
        except StoppedError as problem:
            for _, future in pending:
                if not future.done():
                    future.set_exception(problem)
            return
        for record, future in pending:
            if not future.done():
                future.set_result(kept.get(record.key))

    async def run(self, requests: AsyncIterable[Request]) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Yield (key, outcome) for every request, in the order in which they end.

        No more requests are taken than keep the endpoints busy. When the run must stop, what is in flight is waited
        for (it is paid for), yielded, and then the error is raised.

        Raises:
            StoppedError: the run had to stop.
        """
        brake = self.brake
        ended: deque[tuple[str, Outcome]] = deque()
        crashes: list[BaseException] = []
        wake, room = asyncio.Event(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        window: dict[str, int] = {}

        async def one(client: Client, request: Request) -> None:
            try:
                ended.append((request.key, await client.ask(request)))
            except StoppedError as problem:
                if brake.error is None:
                    brake.error = problem
                    feeder.cancel()
                    for task in tasks - brake.sending:
                        if task is not asyncio.current_task():
                            task.cancel()

        def done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if not task.cancelled() and (crash := task.exception()) is not None:
                crashes.append(crash)
            wake.set()
            room.set()

        async def feed() -> None:
            async for request in requests:
                client = self._client(request.endpoint)
                window[request.endpoint.name] = 2 * request.endpoint.concurrency
                while len(tasks) >= sum(window.values()):
                    room.clear()
                    await room.wait()
                task = asyncio.create_task(one(client, request))
                tasks.add(task)
                task.add_done_callback(done)

        feeder = asyncio.create_task(feed())
        feeder.add_done_callback(lambda _: wake.set())
        try:
            while True:
                while ended:
                    yield ended.popleft()
                if crashes or (feeder.done() and not tasks):
                    break
                wake.clear()
                await wake.wait()
            if crashes:
                raise crashes[0]
            if brake.error is not None:
                raise brake.error
            feeder.result()
        finally:
            feeder.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(feeder, *tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Store what came, and close all connections."""
        self.flush()
        for client in self.clients.values():
            await client.servers.aclose()
