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
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial, wraps
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, get_args

from judgekit.client.budget import Budget, Prices, Spending, Usage
from judgekit.client.client import Client
from judgekit.client.executor import LocalExecutor
from judgekit.client.leases import Lease
from judgekit.client.limits import Limiter
from judgekit.client.negotiation import Negotiated
from judgekit.client.origins import changed, fingerprints, mixed
from judgekit.client.routes import count_prompt, wait_ready
from judgekit.client.servers import Servers
from judgekit.client.transports import open_transport
from judgekit.client.waves import CHUNK, Distinct, Job, Plan, begin, follow, missing
from judgekit.errors import UsageError, not_among
from judgekit.progress import Event, Progress, silent
from judgekit.store.maintenance import holds
from judgekit.store.replies import Store
from judgekit.wire.access import Secret
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport

__all__ = ["Mode", "Session", "run_sync", "synchronous"]

Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""

_TELL_S: Final = 0.1
_LEAST: Final = 64

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


@dataclass
class _Stage:
    """What one stage took so far, without a memory of every request, and how far it is."""

    name: str
    total: int | None = 0
    done: int = 0
    usage: Usage = field(default_factory=Usage)
    distinct: Distinct = field(default_factory=Distinct)
    origins: defaultdict[Endpoint, Counter[Origin]] = field(default_factory=lambda: defaultdict(Counter))
    told_at: float = float("-inf")


class Session:
    """See the module's docstring. A context manager; used from one event loop at a time, one after another.

    Attributes:
        notes: the messages for the user so far.
        doubts: those of them that cast doubt on what was learned, not only on the way there.
        retries: how often a request was sent again for want of a reply, by endpoint and kind of reason.
    """

    def __init__(
        self,
        store_path: str | Path | Store | None = None,
        mode: Mode = "on",
        budget: Budget | None = None,
        prices: Prices | None = None,
        progress: Progress = silent,
        transports: Callable[[Endpoint], Transport] | None = None,
        backoff_s: float = 1.0,
        wait_s: float = 0.0,
        lease: Lease | None = None,
    ) -> None:
        """Open the store.

        Args:
            store_path: the folder of the store, a store, or None to keep replies for this session only.
            mode: what is done with the store, see `Mode`.
            budget: the most that may be sent.
            prices: money per million tokens, by endpoint name or model id.
            progress: called with events; messages for the user are their notes.
            transports: makes the transport of an endpoint, for tests; None means `open_transport`.
            backoff_s: upper bound of the first wait before a retry; later ones double.
            wait_s: how long a server that is not ready is waited for before the first request; 0 means not at all.
            lease: limits and a budget that are shared with other sessions, in the place of its own.

        Raises:
            StoreError: the store cannot be opened.
            UsageError: there is no such mode.
        """
        if mode not in get_args(Mode):
            raise UsageError(not_among("cache mode", mode, get_args(Mode)))
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self.retries: Counter[str] = Counter()
        self._mode = mode
        self._lease = lease
        self._spending = lease.spend(prices or {}) if lease else Spending(budget or Budget(), prices or {})
        self._progress = progress
        self._transports = transports
        self._backoff_s = backoff_s
        self._wait_s = wait_s
        self._began = time.time()
        self._stages: dict[str, _Stage] = {}
        self._totals: defaultdict[str, Usage] = defaultdict(Usage)
        self._limiters: dict[Endpoint, Limiter] = {}
        self._negotiated: dict[tuple[str, str, str], Negotiated] = {}
        self._loops: dict[asyncio.AbstractEventLoop, _Loop] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._base: Store | None = None
        if isinstance(store_path, Store):
            self._base = store_path
        elif store_path is not None and mode != "off":
            self._base = Store(store_path, readonly=mode == "read-only", note=self._note)
        if self._base is None or self._base.readonly:
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self._sink = Store(self._temporary.name, note=self._note)
        else:
            self._sink = self._base

    @property
    def folder(self) -> Path:
        """Where replies are kept, or what is kept for this session only."""
        return self._sink.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = self._loops.pop(asyncio.get_running_loop(), None)
        if loop is not None:  # somebody left a loop over `resolve` before its end
            await loop.aclose()
        self.close()

    def close(self) -> None:
        """Close the store; what was kept for this session only is deleted."""
        for loop in self._loops.values():
            loop.executor.flush()
        self._sink.close()
        if self._base is not None:
            self._base.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    async def resolve(
        self,
        units: Iterable[U],
        program: Program[U],
        stage: str,
        total: int | None = None,
        size: Callable[[U], int] = lambda _: 1,
    ) -> AsyncIterator[tuple[U, list[Outcome]]]:
        """Yield (unit, outcomes) for every unit, in any order; outcomes are in the order the requests were returned.

        A request that fails is a `Failure` among the outcomes and stops nothing.

        Args:
            units: taken as needed; give them ordered by query, so that a server's prefix cache works.
            program: says which requests a unit needs.
            stage: the name under which usage and progress are kept; it may be resolved several times.
            total: how much there is to do, if known: the sizes of all units.
            size: of a unit, as progress counts it.

        Raises:
            StoppedError: the endpoint, the budget or the store does not allow to go on. Units that ended before are
                yielded first; everything paid for is in the store.
            ConfigError: an endpoint's key is not in the environment.
            UsageError: there is a cost limit, and an endpoint without a price.
        """
        state = self._stages.setdefault(stage, _Stage(stage))
        state.total = None if total is None or state.total is None else state.total + total
        begun = time.perf_counter()
        loop = self.enter()
        work = _Resolve(self, loop, program, state)
        source = iter(units)
        more = True
        try:
            while more or work.open:
                if more and work.open < loop.appetite:
                    chunk = list(islice(source, CHUNK))
                    more = len(chunk) == CHUNK
                    ended = work.start(chunk)
                    if loop.flights:
                        await asyncio.sleep(0)  # the endpoint goes on while the store answers
                else:
                    ended = await work.proceed()
                for job in ended:
                    state.done += size(job.unit)
                    yield job.unit, job.outcomes
                if time.monotonic() - state.told_at > _TELL_S:
                    self._tell(state)
            self._tell(state)
            self._tell_origins(state)
        finally:
            state.usage.wall_s += time.perf_counter() - begun
            await self.leave(loop)

    def plan(self, units: Iterable[U], program: Program[U]) -> Plan:
        """Count what `resolve` would take, sending nothing; see `missing`."""
        plan = Plan()
        for _ in missing(units, program, self.lookup, plan):
            pass
        return plan

    def book(self, part: str, endpoint: Endpoint, outcomes: Sequence[Outcome]) -> None:
        """Count an endpoint's replies also under the name of a part of a stage, each once: what it takes standalone."""
        stage = self._stages.setdefault(part, _Stage(part))
        replies = {outcome.key: outcome for outcome in outcomes if isinstance(outcome, Reply)}
        price = self._spending.price(endpoint)
        for reply, new in zip(replies.values(), stage.distinct.add(replies), strict=True):
            if new:
                stage.usage.standalone.add(reply.usage, price, reply.seconds)

    def usage(self, stage: str) -> Usage:
        """Return what a stage took so far."""
        return Usage() + self._stages[stage].usage if stage in self._stages else Usage()

    def totals(self) -> dict[str, Usage]:
        """Return what was taken from each endpoint, by its name; a reply that stages share counts in each."""
        return {name: Usage() + usage for name, usage in self._totals.items()}

    def mixed(self) -> list[str]:
        """Return a sentence for every stage whose replies come from more than one model at one endpoint."""
        return [f"{name}: {text}" for name, stage in self._stages.items() for text in mixed(stage.origins)]

    def account(self) -> dict[str, Any]:
        """Return what the stages and the endpoints took, as plain values, for `absorb`."""
        stages = {
            name: {
                "usage": asdict(stage.usage),
                "origins": [[e.name, list(one), n] for e, found in stage.origins.items() for one, n in found.items()],
            }
            for name, stage in self._stages.items()
        }
        totals = {name: asdict(usage) for name, usage in self._totals.items()}
        return {"stages": stages, "totals": totals, "notes": self.notes, "doubts": self.doubts, "retries": self.retries}

    def absorb(self, account: Mapping[str, Any], endpoints: Mapping[str, Endpoint], *, earlier: bool = False) -> None:
        """Add what another session took, as if it had been asked here.

        Args:
            account: of that session, about requests that this one does not make.
            endpoints: by name, those it asked.
            earlier: whether that was in an earlier run, so that its replies come from the store now.
        """
        for name, one in account["stages"].items():
            stage = self._stages.setdefault(name, _Stage(name))
            stage.usage += Usage.of(one["usage"], earlier=earlier)
            for endpoint, origin, count in one["origins"]:
                stage.origins[endpoints[endpoint]][tuple(origin)] += count
            self._tell_origins(stage)
        for name, values in account["totals"].items():
            usage = Usage.of(values, earlier=earlier)
            self._totals[name] += usage
            self._spending.count(usage.incurred)
        self.notes += [note for note in account["notes"] if note not in self.notes]
        self.doubts += [doubt for doubt in account["doubts"] if doubt not in self.doubts]
        self.retries.update({} if earlier else account["retries"])

    def lookup(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return what is stored of these requests, as far as the mode lets it be used."""
        found = self._sink.get_many(keys, self._began if self._mode == "refresh" else 0.0)
        if self._base is not None and self._base is not self._sink and len(found) < len(keys):
            found |= self._base.get_many([key for key in keys if key not in found])
        return found

    def _replayed(self, stage: _Stage, requests: dict[str, Request], replies: dict[str, Reply]) -> None:
        """Count replies from the store, each once per stage."""
        taken: dict[Endpoint, Usage] = {}
        last: Endpoint | None = None
        for (key, reply), new in zip(replies.items(), stage.distinct.add(replies), strict=True):
            if new:
                request = requests[key]
                if request.endpoint is not last:
                    last = request.endpoint
                    usage, origins = taken.setdefault(last, Usage()), stage.origins[last]
                usage.standalone.count(reply.usage, reply.seconds)
                usage.again += request.again
                origins[reply.origin] += 1
        for endpoint, usage in taken.items():
            amount, price = usage.standalone, self._spending.price(endpoint)
            amount.money = price.of(amount.prompt_tokens, amount.completion_tokens) if price else None
            usage.cached = amount.requests
            self._learned(endpoint).replies += amount.requests
            stage.usage += usage
            self._totals[endpoint.name] += usage

    def _answered(self, stage: _Stage, request: Request, outcome: Outcome) -> None:
        """Count what an endpoint answered, once per stage."""
        if stage.distinct.add([request.key]) == [False]:
            return
        endpoint = request.endpoint
        price = self._spending.price(endpoint)
        if isinstance(outcome, Reply):
            stage.origins[endpoint][outcome.origin] += 1
        for usage in (stage.usage, self._totals[endpoint.name]):
            if isinstance(outcome, Failure):
                usage.failed += 1
            else:
                usage.sent += 1
                usage.again += request.again
                usage.standalone.add(outcome.usage, price, outcome.seconds)

    def _learned(self, endpoint: Endpoint) -> Negotiated:
        return self._negotiated.setdefault((endpoint.identity, endpoint.model, endpoint.api), Negotiated())

    def client(self, endpoint: Endpoint, loop: _Loop, key: str = "") -> Client:
        """Return a client of an endpoint, which sends ``key`` where the endpoint names none of its own."""
        self._spending.check(endpoint)
        if endpoint not in self._limiters:
            limits = (endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute)
            self._limiters[endpoint] = self._lease.limiter(endpoint) if self._lease else Limiter(*limits)

        def charge(request: Request, tokens: tuple[int, int] | None, seconds: float) -> None:
            price = self._spending.price(endpoint)
            self._totals[endpoint.name].incurred.add(tokens, price, seconds)
            if request.key in loop.flights:
                loop.flights[request.key][1][0].stage.usage.incurred.add(tokens, price, seconds)

        return Client(
            endpoint,
            Servers(endpoint, self._transports or (lambda one: open_transport(one, self._note, key)), self._note),
            self._limiters[endpoint],
            self._spending,
            charge=charge,
            save=loop.executor.save,
            note=self._note,
            retried=lambda again: self.retries.update([f"{endpoint.name}: {again.kind}"]),
            brake=loop.executor.brake,
            negotiated=self._learned(endpoint),
            known=lambda: self._base is not None and holds(self._base, endpoint.identity, endpoint.model),
            secret=Secret.of(endpoint, key),
            backoff_s=self._backoff_s,
            count=None if self._transports else partial(count_prompt, endpoint),
            ready=(lambda: wait_ready(endpoint, self._wait_s, self._note)) if self._wait_s else None,
        )

    def _note(self, text: str, doubt: bool = False) -> None:
        self.notes.append(text)
        self.doubts += [text] * doubt
        stages = list(self._stages.values())
        running = next((s for s in reversed(stages) if s.total is None or s.done < s.total), None)
        if running is None:
            self._progress(Event("endpoint", 0, None, note=text))
        else:
            self._tell(running, text)

    def _tell(self, stage: _Stage, note: str = "") -> None:
        stage.told_at = time.monotonic()
        usage = stage.usage
        money = self._spending
        self._progress(
            Event(
                stage.name,
                stage.done,
                stage.total,
                usage.sent,
                usage.cached,
                usage.failed,
                note,
                money.money,
                money.budget.max_cost,
            )
        )

    def _tell_origins(self, stage: _Stage) -> None:
        before = [other.origins for other in self._stages.values() if other is not stage]
        for text in (*mixed(stage.origins), *changed(before, stage.origins), *fingerprints(stage.origins)):
            self._note(f"{stage.name}: {text}", doubt=True)

    def enter(self) -> _Loop:
        """Return what the running event loop has of the session, which lives until as many left as entered."""
        running = asyncio.get_running_loop()
        loop = self._loops.get(running)
        if loop is None or loop.ended:
            loop = self._loops[running] = _Loop(self)
        loop.users += 1
        return loop

    async def leave(self, loop: _Loop) -> None:
        """Close the connections if nobody else in the event loop uses them."""
        loop.users -= 1
        if loop.users:
            return
        running = asyncio.get_running_loop()
        if self._loops.get(running) is loop:
            del self._loops[running]
        await loop.aclose()


class _Resolve(Generic[U]):
    """The work of one `Session.resolve`: which jobs wait for which request, and what has arrived for them."""

    def __init__(self, session: Session, loop: _Loop, program: Program[U], stage: _Stage) -> None:
        self.open = 0
        self.stage = stage
        self.arrived: deque[tuple[Request, Outcome]] = deque()
        self.wake = asyncio.Event()
        self.error: BaseException | None = None
        self._session = session
        self._loop = loop
        self._program = program
        self._waiting: dict[str, list[tuple[Job[U], int]]] = {}

    def start(self, units: Iterable[U]) -> list[Job[U]]:
        """Begin with further units; return the jobs that ended at once."""
        jobs = begin(units, self._program)
        self.open += len(jobs)
        return self._advance(jobs)

    async def proceed(self) -> list[Job[U]]:
        """Wait for something to arrive and take it in; return the jobs that ended by it.

        Raises:
            BaseException: what ended the loop's work, once everything that arrived before has been taken.
        """
        while not self.arrived:
            if self.error is not None:
                raise self.error
            self.wake.clear()
            await self.wake.wait()
        ready: list[Job[U]] = []
        while self.arrived:
            request, outcome = self.arrived.popleft()
            self._session._answered(self.stage, request, outcome)
            for job, index in self._waiting.pop(request.key):
                job.got[index] = outcome
                job.lacking -= 1
                if not job.lacking:
                    job.next_wave(self._program)
                    ready.append(job)
        return self._advance(ready)

    def _advance(self, jobs: list[Job[U]]) -> list[Job[U]]:
        """Follow the waves in the store and submit what it lacks; return the jobs that ended."""
        session = self._session
        ended, lacking = follow(
            jobs, self._program, session.lookup, lambda wanted, stored: session._replayed(self.stage, wanted, stored)
        )
        for job in lacking:
            for index, (request, got) in enumerate(zip(job.wave, job.got, strict=True)):
                if got is None:
                    self._waiting.setdefault(request.key, []).append((job, index))
                    self._loop.submit(request, self)
        self.open -= len(ended)
        return ended


class _Loop:
    """What belongs to one event loop while a session is used in it: its executor, and the requests in flight.

    Everything that is resolved in the loop shares them, so that nothing is sent twice. It lives while it has users, and
    closes its connections with the last, so that none outlives its loop.
    """

    def __init__(self, session: Session) -> None:
        self.users = 0
        self.flights: dict[str, tuple[Request, list[_Resolve[Any]]]] = {}
        self.executor = LocalExecutor(
            lambda endpoint: session.client(endpoint, self), session._sink, replace=session._mode == "refresh"
        )
        self._queue: asyncio.Queue[Request] = asyncio.Queue()
        self._consumer: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether an error ended it, so that whoever comes now needs another one."""
        return self._error is not None or self.executor.brake.error is not None

    @property
    def appetite(self) -> int:
        """How many units may wait for replies: enough that no endpoint has to wait for units, and no more."""
        return _LEAST + 3 * sum(endpoint.concurrency for endpoint in self.executor.clients) // 2

    def submit(self, request: Request, work: _Resolve[Any]) -> None:
        """Have a request answered for some work; the first that submits it pays."""
        if self._error is not None:
            work.error = self._error
        elif request.key in self.flights:
            waiting = self.flights[request.key][1]
            if work not in waiting:
                waiting.append(work)
        else:
            self.flights[request.key] = request, [work]
            self._queue.put_nowait(request)
            if self._consumer is None:
                self._consumer = asyncio.create_task(self._consume())

    async def _requests(self) -> AsyncIterator[Request]:
        while True:
            yield await self._queue.get()

    async def _consume(self) -> None:
        outcomes = self.executor.run(self._requests())
        try:
            async for key, outcome in outcomes:
                request, waiting = self.flights.pop(key)
                for work in waiting:
                    work.arrived.append((request, outcome))
                    work.wake.set()
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            self._error = problem
        finally:
            await outcomes.aclose()
            for _, waiting in self.flights.values():
                for work in waiting:
                    work.error = self._error
                    work.wake.set()

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        if self._consumer is not None:
            self._consumer.cancel()
            await asyncio.gather(self._consumer, return_exceptions=True)
        await self.executor.aclose()


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running (a notebook).

    With a running loop it runs in a loop of its own in a thread, while the caller waits; an interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    interrupted: list[bool] = []
    found: list[T | BaseException] = []
    # The thread is waited for by a queue, which is written in C: an interrupt while one enters or leaves a lock of
    # Python's may keep it, and then both would wait for ever. Two entries, since the first may be lost to an interrupt.
    ended: SimpleQueue[None] = SimpleQueue()
    context = contextvars.copy_context()

    async def work() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        if interrupted:
            task.cancel()
        return await coroutine

    async def main() -> None:
        found.extend(await asyncio.gather(work(), return_exceptions=True))

    def whole() -> None:
        try:
            context.run(asyncio.run, main())
        finally:
            ended.put(None)
            ended.put(None)

    thread = Thread(target=whole, name="judgekit")
    try:
        thread.start()
        ended.get()
    except KeyboardInterrupt:
        interrupted.append(True)
        for loop, task in running:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)
        if thread.ident is not None:
            ended.get()
        raise
    [result] = found
    if isinstance(result, BaseException):
        raise result
    return result


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a coroutine function for synchronous code, see `run_sync`, by its name without ``_async``."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = function.__name__.removesuffix("_async")
    return call
