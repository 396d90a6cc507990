"""A session: one store, one budget, one set of limits, for all stages of a run.

`Session.resolve` turns units into outcomes: it asks the program for requests, answers from the store what is there,
sends the rest, and asks the program again, until nothing more is needed. It streams: what it holds at any moment does
not grow with the number of units. Units come out as they end, *in any order*; a stage whose output must not depend on
that sorts it.
"""

from __future__ import annotations

import asyncio
import contextvars
import tempfile
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from judgekit.llm.client import Brake, Client, Negotiated
from judgekit.llm.executor import LocalExecutor, Recorder
from judgekit.llm.http import HttpTransport, api_key
from judgekit.llm.limits import Limiter
from judgekit.llm.store import Store, Stored
from judgekit.llm.types import Endpoint, Failure, Outcome, Program, Reply, Request, Transport
from judgekit.llm.usage import Budget, Prices, Purse, Tally, Usage
from judgekit.progress import Event, Progress, silent

__all__ = ["Mode", "Plan", "Session", "run_sync"]

Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""

_CHUNK = 256
_REPORT_S = 0.1

U = TypeVar("U")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage would take, counted without sending anything.

    Attributes:
        units: how many.
        requests: distinct requests.
        cached: those that the store holds.
        prompt_tokens: of those that it lacks, estimated at four bytes a token.
        at_least: whether replies that are not there yet may lead to further requests.
    """

    units: int
    requests: int
    cached: int
    prompt_tokens: int
    at_least: bool


class _Job(Generic[U]):
    """A unit on its way: its outcomes so far, and the wave that is being waited for."""

    __slots__ = ("got", "lacking", "outcomes", "unit", "wave")

    def __init__(self, unit: U, wave: list[Request]) -> None:
        self.unit = unit
        self.wave = wave
        self.outcomes: list[Outcome] = []
        self.got: list[Outcome | None] = []
        self.lacking = 0


@dataclass
class _Stage:
    name: str
    seen: set[int] = field(default_factory=set)
    standalone: Tally = field(default_factory=Tally)
    incurred: Tally = field(default_factory=Tally)
    wall_s: float = 0.0
    done: int = 0
    total: int | None = None
    sent: int = 0
    cached: int = 0
    failed: int = 0
    reported_at: float = 0.0

    def first(self, key: str) -> bool:
        """Whether this is the first time that the stage meets the key."""
        number = int(key[:16], 16)
        if number in self.seen:
            return False
        self.seen.add(number)
        return True


class _Mailbox:
    """Where the outcomes for one `resolve` arrive."""

    def __init__(self) -> None:
        self.arrived: deque[tuple[Request, Outcome]] = deque()
        self.error: BaseException | None = None
        self.wake = asyncio.Event()


@dataclass
class _Flight:
    request: Request
    stage: _Stage
    boxes: list[_Mailbox]


class _Runtime:
    """What belongs to one event loop while at least one `resolve` runs in it."""

    def __init__(self, session: Session) -> None:
        self.users = 0
        self.flights: dict[str, _Flight] = {}
        self.recorder = Recorder(session._sink)
        self.brake = Brake()
        self._session = session
        self._clients: dict[Endpoint, Client] = {}
        self._queue: deque[Request] = deque()
        self._more = asyncio.Event()
        self._consumer = asyncio.create_task(self._consume())

    def submit(self, request: Request, stage: _Stage, box: _Mailbox) -> None:
        """Have a request answered into a mailbox; one that is in flight already is not sent twice."""
        flight = self.flights.get(request.key)
        if flight is not None:
            if box not in flight.boxes:
                flight.boxes.append(box)
            return
        self.flights[request.key] = _Flight(request, stage, [box])
        self._queue.append(request)
        self._more.set()

    async def _requests(self) -> AsyncIterator[Request]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            self._more.clear()
            await self._more.wait()

    async def _consume(self) -> None:
        executor = LocalExecutor(self.client, self.brake)
        outcomes = executor.run(self._requests())
        error: BaseException | None = None
        try:
            async for key, outcome in outcomes:
                flight = self.flights.pop(key)
                for box in flight.boxes:
                    box.arrived.append((flight.request, outcome))
                    box.wake.set()
        except Exception as problem:  # noqa: BLE001  # handed to every resolve that waits, which raises it
            error = problem
        finally:
            await outcomes.aclose()  # type: ignore[attr-defined]  # an async generator
            for flight in self.flights.values():
                for box in flight.boxes:
                    box.error = error
                    box.wake.set()

    def client(self, endpoint: Endpoint) -> Client:
        """Return the client of an endpoint."""
        client = self._clients.get(endpoint)
        if client is None:
            client = self._clients[endpoint] = self._session._client(endpoint, self)
        return client

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        self._consumer.cancel()
        await asyncio.gather(self._consumer, return_exceptions=True)
        self.recorder.flush()
        for client in self._clients.values():
            await client.transport.aclose()


class Session:
    """See the module's docstring. A (sync or async) context manager; used from one event loop at a time.

    Args:
        store_path: the folder of the store, or None to keep replies for this session only.
        mode: what is done with the store, see `Mode`.
        budget: the most that may be sent.
        prices: money per million tokens, by endpoint name or model id.
        progress: called with events.
        transports: makes the transport of an endpoint, for tests and stand-ins; None means HTTP.
        backoff_s: upper bound of the first wait before a retry.
    """

    def __init__(
        self,
        store_path: str | Path | None = None,
        mode: Mode = "on",
        budget: Budget | None = None,
        prices: Prices | None = None,
        progress: Progress = silent,
        transports: Callable[[Endpoint], Transport] | None = None,
        backoff_s: float = 1.0,
    ) -> None:
        self.mode = mode
        self.notes: list[str] = []
        self._purse = Purse(budget or Budget(), prices or {})
        self._progress = progress
        self._transports = transports
        self._backoff_s = backoff_s
        self._started = time.time()
        self._stages: dict[str, _Stage] = {}
        self._totals: dict[str, _Stage] = {}
        self._limiters: dict[Endpoint, Limiter] = {}
        self._negotiated: dict[tuple[str, str], Negotiated] = {}
        self._runtimes: dict[asyncio.AbstractEventLoop, _Runtime] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._base: Store | None = None
        if store_path is not None and mode != "off":
            self._base = Store(store_path, readonly=mode == "read-only")
        if self._base is None or mode == "read-only":
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self._sink = Store(self._temporary.name)
        else:
            self._sink = self._base

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; what was kept for this session only is deleted."""
        for store in {id(s): s for s in (self._base, self._sink) if s is not None}.values():
            store.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _lookup(self, keys: Sequence[str]) -> dict[str, Stored]:
        found = self._sink.get_many(keys)
        if self.mode == "refresh":
            return {key: stored for key, stored in found.items() if stored.time >= self._started}
        if self._base is not None and self._base is not self._sink and len(found) < len(keys):
            found |= self._base.get_many([key for key in keys if key not in found])
        return found

    def _client(self, endpoint: Endpoint, runtime: _Runtime) -> Client:
        self._purse.check(endpoint)
        if endpoint not in self._limiters:
            self._limiters[endpoint] = Limiter(
                endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute
            )
        return Client(
            endpoint,
            self._transport(endpoint),
            self._limiters[endpoint],
            self._purse,
            charge=lambda request, usage: self._charge(runtime.flights.get(request.key), endpoint, usage),
            save=runtime.recorder.save,
            note=self._note,
            brake=runtime.brake,
            negotiated=self._negotiated.setdefault((endpoint.identity, endpoint.model), Negotiated()),
            secret=None if endpoint.offline else api_key(endpoint),
            backoff_s=self._backoff_s,
        )

    def _transport(self, endpoint: Endpoint) -> Transport:
        if self._transports is not None:
            return self._transports(endpoint)
        if endpoint.offline:
            from judgekit.llm.offline import OfflineTransport

            return OfflineTransport()
        return HttpTransport(endpoint)

    def _charge(self, flight: _Flight | None, endpoint: Endpoint, usage: tuple[int, int] | None) -> None:
        price = self._purse.price(endpoint)
        self._total(endpoint).incurred.add(usage, price)
        if flight is not None:
            flight.stage.incurred.add(usage, price)

    def _total(self, endpoint: Endpoint) -> _Stage:
        return self._totals.setdefault(endpoint.name, _Stage(endpoint.name))

    def _note(self, text: str) -> None:
        self.notes.append(text)
        for stage in self._stages.values():
            if stage.total is None or stage.done < stage.total:
                self._report(stage, text)
                return
        self._progress(Event("endpoint", 0, None, note=text))

    def _report(self, stage: _Stage, note: str = "") -> None:
        stage.reported_at = time.monotonic()
        self._progress(Event(stage.name, stage.done, stage.total, stage.sent, stage.cached, stage.failed, note))

    def _enter(self) -> _Runtime:
        loop = asyncio.get_running_loop()
        runtime = self._runtimes.get(loop)
        if runtime is None or runtime.brake.error is not None:
            runtime = self._runtimes[loop] = _Runtime(self)
        runtime.users += 1
        return runtime

    async def _leave(self, runtime: _Runtime) -> None:
        runtime.users -= 1
        if runtime.users == 0:
            loop = asyncio.get_running_loop()
            if self._runtimes.get(loop) is runtime:
                del self._runtimes[loop]
            await runtime.aclose()

    async def resolve(
        self, units: Iterable[U], program: Program[U], stage: str, total: int | None = None
    ) -> AsyncIterator[tuple[U, list[Outcome]]]:
        """Yield (unit, outcomes) for every unit, in any order; outcomes are in the order the requests were returned.

        A request that fails is a `Failure` among the outcomes and stops nothing.

        Args:
            units: taken as needed; send them ordered by query, so that a server's prefix cache works.
            program: says which requests a unit needs.
            stage: the name under which usage and progress are kept.
            total: how many units there are, if known.

        Raises:
            StoppedError: the endpoint, the budget or the store does not allow to go on. Units that ended before are
                yielded first; everything paid for is in the store.
        """
        state = self._stages.setdefault(stage, _Stage(stage))
        state.total = total if state.total is None or total is None else state.total + total
        begun = time.perf_counter()
        runtime = self._enter()
        box = _Mailbox()
        waiting: dict[str, list[tuple[_Job[U], int]]] = {}
        open_jobs = 0
        source = iter(units)
        more = True
        try:
            while True:
                while more and open_jobs < _CHUNK:
                    jobs = [_Job(unit, program.requests(unit, ())) for unit in islice(source, _CHUNK)]
                    more = len(jobs) == _CHUNK
                    ended = self._advance(jobs, program, state, runtime, box, waiting)
                    open_jobs += len(jobs) - len(ended)
                    for job in ended:
                        state.done += 1
                        yield job.unit, job.outcomes
                    self._tick(state)
                    if runtime.flights:
                        await asyncio.sleep(0)
                if not open_jobs and not more:
                    break
                if not box.arrived:
                    if box.error is not None:
                        raise box.error
                    box.wake.clear()
                    await box.wake.wait()
                jobs = []
                while box.arrived:
                    jobs += self._deliver(*box.arrived.popleft(), program, state, waiting)
                ended = self._advance(jobs, program, state, runtime, box, waiting)
                open_jobs -= len(ended)
                for job in ended:
                    state.done += 1
                    yield job.unit, job.outcomes
                self._tick(state)
            self._report(state)
        finally:
            state.wall_s += time.perf_counter() - begun
            await self._leave(runtime)

    def _tick(self, stage: _Stage) -> None:
        if time.monotonic() - stage.reported_at > _REPORT_S:
            self._report(stage)

    def _advance(
        self,
        jobs: list[_Job[U]],
        program: Program[U],
        stage: _Stage,
        runtime: _Runtime,
        box: _Mailbox,
        waiting: dict[str, list[tuple[_Job[U], int]]],
    ) -> list[_Job[U]]:
        """Answer waves from the store; return the jobs that ended, and have sent what the store lacks."""
        ended: list[_Job[U]] = []
        while jobs:
            stored = self._lookup(list({request.key: None for job in jobs for request in job.wave}))
            going: list[_Job[U]] = []
            for job in jobs:
                if not job.wave:
                    ended.append(job)
                    continue
                job.got = [self._replay(request, stored.get(request.key), stage) for request in job.wave]
                job.lacking = job.got.count(None)
                if job.lacking:
                    for index, request in enumerate(job.wave):
                        if job.got[index] is None:
                            waiting.setdefault(request.key, []).append((job, index))
                            runtime.submit(request, stage, box)
                    continue
                job.outcomes += job.got  # type: ignore[arg-type]  # nothing is lacking
                job.wave = program.requests(job.unit, job.outcomes)
                (going if job.wave else ended).append(job)
            jobs = going
        return ended

    def _replay(self, request: Request, stored: Stored | None, stage: _Stage) -> Reply | None:
        if stored is None:
            return None
        if stage.first(request.key):
            stage.cached += 1
            price = self._purse.price(request.endpoint)
            stage.standalone.add(stored.usage, price)
            total = self._total(request.endpoint)
            total.cached += 1
            total.standalone.add(stored.usage, price)
        return Reply(request.key, stored.reply, cached=True)

    def _deliver(
        self,
        request: Request,
        outcome: Outcome,
        program: Program[U],
        stage: _Stage,
        waiting: dict[str, list[tuple[_Job[U], int]]],
    ) -> list[_Job[U]]:
        """Hand an outcome to the jobs that wait for it; return those that have their wave, with the next one."""
        ready: list[_Job[U]] = []
        for job, index in waiting.pop(request.key):
            job.got[index] = outcome
            job.lacking -= 1
            if not job.lacking:
                job.outcomes += job.got  # type: ignore[arg-type]  # nothing is lacking
                job.wave = program.requests(job.unit, job.outcomes)
                ready.append(job)
        if stage.first(request.key):
            total = self._total(request.endpoint)
            if isinstance(outcome, Failure):
                stage.failed += 1
                total.failed += 1
            else:
                stage.sent += 1
                total.sent += 1
                price = self._purse.price(request.endpoint)
                stage.standalone.add(outcome.usage, price)
                total.standalone.add(outcome.usage, price)
        return ready

    def plan(self, units: Iterable[U], program: Program[U]) -> Plan:
        """Count what `resolve` would take, sending nothing.

        Waves are followed as far as the store holds the replies. A program whose first wave is always its last may
        say so with an attribute ``one_wave = True``; the count is then exact.
        """
        counter = _Stage("plan")
        tokens = unit_count = 0
        at_least = False
        source = iter(units)
        while jobs := [_Job(unit, program.requests(unit, ())) for unit in islice(source, _CHUNK)]:
            unit_count += len(jobs)
            while jobs:
                stored = self._lookup(list({request.key: None for job in jobs for request in job.wave}))
                going = []
                for job in jobs:
                    lacks = False
                    for request in job.wave:
                        known = stored.get(request.key)
                        lacks |= known is None
                        if counter.first(request.key):
                            counter.cached += known is not None
                            counter.sent += known is None
                            tokens += len(request.body) // 4 if known is None else 0
                    if lacks:
                        at_least |= not getattr(program, "one_wave", False)
                    elif job.wave:
                        job.outcomes += [Reply(r.key, stored[r.key].reply, cached=True) for r in job.wave]
                        job.wave = program.requests(job.unit, job.outcomes)
                        going.append(job)
                jobs = going
        return Plan(unit_count, counter.cached + counter.sent, counter.cached, tokens, at_least)

    def usage(self, stage: str) -> Usage:
        """Return what a stage took so far."""
        return _usage(self._stages.get(stage, _Stage(stage)))

    def totals(self) -> dict[str, Usage]:
        """Return what was taken from each endpoint, by its name."""
        return {name: _usage(total) for name, total in self._totals.items()}


def _usage(stage: _Stage) -> Usage:
    return Usage(stage.standalone.amount, stage.incurred.amount, stage.wall_s, stage.sent, stage.cached, stage.failed)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running (a notebook).

    With a running loop it runs in a loop of its own in a thread, while the caller waits; an interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    context = contextvars.copy_context()
    outcome: list[T] = []
    problems: list[BaseException] = []
    task: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        current = asyncio.current_task()
        assert current is not None
        task.append((asyncio.get_running_loop(), current))
        return await coroutine

    def work() -> None:
        try:
            outcome.append(context.run(asyncio.run, main()))
        except BaseException as problem:  # noqa: BLE001  # raised again in the caller's thread
            problems.append(problem)

    thread = threading.Thread(target=work, name="judgekit", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        if task:
            task[0][0].call_soon_threadsafe(task[0][1].cancel)
        thread.join()
        raise
    if problems:
        raise problems[0]
    return outcome[0]
