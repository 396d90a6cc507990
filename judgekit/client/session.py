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
from functools import wraps
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, get_args

from judgekit.client.budget import Budget, Prices, Spending, Usage
from judgekit.client.client import Client
from judgekit.client.leases import Lease
from judgekit.client.limits import Limiter
from judgekit.client.negotiation import Negotiated
from judgekit.client.origins import changed, fingerprints, mixed
from judgekit.client.waves import CHUNK, Distinct, Job, Plan, begin, follow, missing
from judgekit.errors import StoppedError, UsageError, not_among
from judgekit.progress import Event, Progress, silent
from judgekit.store.maintenance import holds
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport

__all__ = ["Loop", "Mode", "Session", "run_sync", "synchronous"]

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
    """What one stage took so far, without remembering every request, and how far it is."""

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
        retries: how often a request was sent again because no reply came, by endpoint and kind of reason.
        spending: what keeps to the budget.
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
            mode: how the store is used, see `Mode`.
            budget: the most that may be sent.
            prices: money per million tokens, by endpoint name or model id.
            progress: called with events; messages for the user are their notes.
            transports: makes the transport of an endpoint, for tests; None means `open_transport`.
            backoff_s: upper bound of the first wait before a retry; later ones double.
            wait_s: how long to wait for a server that is not ready before the first request; 0 means not at all.
            lease: limits and a budget that are shared with other sessions, instead of its own.

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
        self.spending = lease.spend(prices or {}) if lease else Spending(budget or Budget(), prices or {})
        self.transports = transports
        self.backoff_s = backoff_s
        self.wait_s = wait_s
        self._progress = progress
        self._began = time.time()
        self._stages: dict[str, _Stage] = {}
        self._totals: defaultdict[str, Usage] = defaultdict(Usage)
        self._limiters: dict[Endpoint, Limiter] = {}
        self._negotiated: dict[tuple[str, str, str], Negotiated] = {}
        self._loops: dict[asyncio.AbstractEventLoop, Loop] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._base: Store | None = None
        if isinstance(store_path, Store):
            self._base = store_path
        elif store_path is not None and mode != "off":
            self._base = Store(store_path, readonly=mode == "read-only", note=self.note)
        if self._base is None or self._base.readonly:
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self._sink = Store(self._temporary.name, note=self.note)
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
            loop.flush()
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
            StoppedError: the endpoint, the budget or the store stops the run. Units that ended before are yielded
                first; everything paid for is in the store.
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
        price = self.spending.price(endpoint)
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
            self.spending.count(usage.incurred)
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
            amount, price = usage.standalone, self.spending.price(endpoint)
            amount.money = price.of(amount.prompt_tokens, amount.completion_tokens) if price else None
            usage.cached = amount.requests
            self.learned(endpoint).replies += amount.requests
            stage.usage += usage
            self._totals[endpoint.name] += usage

    def _answered(self, stage: _Stage, request: Request, outcome: Outcome) -> None:
        """Count what an endpoint answered, once per stage."""
        if stage.distinct.add([request.key]) == [False]:
            return
        endpoint = request.endpoint
        price = self.spending.price(endpoint)
        if isinstance(outcome, Reply):
            stage.origins[endpoint][outcome.origin] += 1
        for usage in (stage.usage, self._totals[endpoint.name]):
            if isinstance(outcome, Failure):
                usage.failed += 1
            else:
                usage.sent += 1
                usage.again += request.again
                usage.standalone.add(outcome.usage, price, outcome.seconds)

    def learned(self, endpoint: Endpoint) -> Negotiated:
        """Return what is known of the model behind an endpoint."""
        return self._negotiated.setdefault((endpoint.identity, endpoint.model, endpoint.api), Negotiated())

    def knows(self, endpoint: Endpoint) -> bool:
        """Say whether the store holds a reply of the model."""
        return self._base is not None and holds(self._base, endpoint.identity, endpoint.model)

    def limiter(self, endpoint: Endpoint) -> Limiter:
        """Return the gate in front of an endpoint."""
        if endpoint not in self._limiters:
            limits = (endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute)
            self._limiters[endpoint] = self._lease.limiter(endpoint) if self._lease else Limiter(*limits)
        return self._limiters[endpoint]

    def note(self, text: str, doubt: bool = False) -> None:
        """Tell the user something, and whether it casts doubt on what replies say."""
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
        usage, money = stage.usage, self.spending
        counts = stage.done, stage.total, usage.sent, usage.cached, usage.failed
        self._progress(Event(stage.name, *counts, note, money.money, money.budget.max_cost))

    def _tell_origins(self, stage: _Stage) -> None:
        before = [other.origins for other in self._stages.values() if other is not stage]
        for text in (*mixed(stage.origins), *changed(before, stage.origins), *fingerprints(stage.origins)):
            self.note(f"{stage.name}: {text}", doubt=True)

    def enter(self) -> Loop:
        """Return what the running event loop has of the session, which lives until as many left as entered."""
        running = asyncio.get_running_loop()
        loop = self._loops.get(running)
        if loop is None or loop.error is not None:
            loop = self._loops[running] = Loop(self, self._sink, replace=self._mode == "refresh")
        loop.users += 1
        return loop

    async def leave(self, loop: Loop) -> None:
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

    def __init__(self, session: Session, loop: Loop, program: Program[U], stage: _Stage) -> None:
        self.open = 0
        self.stage = stage
        self.arrived: deque[tuple[Request, Outcome]] = deque()
        self.wake = asyncio.Event()
        self._session = session
        self._loop = loop
        self._program = program
        self._waiting: dict[str, list[Job[U]]] = {}

    def start(self, units: Iterable[U]) -> list[Job[U]]:
        """Begin with further units; return the jobs that ended at once."""
        jobs = begin(units, self._program)
        self.open += len(jobs)
        return self._advance(jobs)

    async def proceed(self) -> list[Job[U]]:
        """Wait for something to arrive and take it in; return the jobs that ended by it.

        Raises:
            Exception: what ended the loop's work, once everything that was in flight has been taken.
        """
        while not self.arrived:
            if self._loop.error is not None and not self._loop.tasks:
                raise self._loop.error
            self.wake.clear()
            await self.wake.wait()
        ready: list[Job[U]] = []
        while self.arrived:
            request, outcome = self.arrived.popleft()
            self._session._answered(self.stage, request, outcome)
            for job in self._waiting.pop(request.key):
                job.got[request.key] = outcome
                if not job.lacking():
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
            for key, request in job.lacking().items():
                self._waiting.setdefault(key, []).append(job)
                self._loop.submit(request, self)
        self.open -= len(ended)
        return ended


class Loop:
    """What belongs to one event loop while a session is used in it: its clients, and the requests in flight.

    Everything that is resolved in the loop shares them, so that nothing is sent twice. It lives while it has users, and
    closes its connections with the last, so that none outlives its loop.

    Attributes:
        session: whose it is.
        users: how many use it.
        error: why nothing more is sent, if so; whoever comes then needs another loop.
        clients: by endpoint.
        flights: what is asked, by its identity, and who waits for it; the first pays.
        tasks: those that ask.
        sending: those of them whose request is being paid for.
    """

    def __init__(self, session: Session, store: Store, *, replace: bool) -> None:
        """Keep replies in ``store``; ``replace`` also those that are there already."""
        self.session = session
        self.users = 0
        self.error: Exception | None = None
        self.clients: dict[Endpoint, Client] = {}
        self.flights: dict[str, tuple[Request, list[_Resolve[Any]]]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.sending: set[asyncio.Task[Any] | None] = set()
        self._store = store
        self._replace = replace
        self._pending: list[tuple[Record, asyncio.Future[Reply | None]]] = []

    @property
    def appetite(self) -> int:
        """How many units may wait for replies: enough that no endpoint has to wait for units, and no more."""
        return _LEAST + 3 * sum(endpoint.concurrency for endpoint in self.clients) // 2

    def submit(self, request: Request, work: _Resolve[Any]) -> None:
        """Have a request answered for some work, unless nothing more is sent."""
        if request.key in self.flights:
            waiting = self.flights[request.key][1]
            if work not in waiting:
                waiting.append(work)
            return
        if self.error is None:
            if request.endpoint not in self.clients:
                self.clients[request.endpoint] = Client(self, request.endpoint)
            task = asyncio.create_task(self._ask(self.clients[request.endpoint], request))
            self.tasks.add(task)
            task.add_done_callback(self._ended)
        self.flights[request.key] = request, [work]

    async def _ask(self, client: Client, request: Request) -> None:
        try:
            outcome = await client.ask(request)
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            if self.error is None:
                self.error = problem
                for task in self.tasks - self.sending:  # what is in flight is paid for, and waited for
                    task.cancel()
            return
        for work in self.flights.pop(request.key)[1]:
            work.arrived.append((request, outcome))
            work.wake.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self.error is not None and not self.tasks:
            for _, waiting in self.flights.values():
                for work in waiting:
                    work.wake.set()

    def charge(self, request: Request, tokens: tuple[int, int] | None, seconds: float) -> None:
        """Count an attempt that was sent: the tokens that the server reported, and how long it took."""
        price = self.session.spending.price(request.endpoint)
        usages = [self.session._totals[request.endpoint.name]]
        if request.key in self.flights:
            usages.append(self.flights[request.key][1][0].stage.usage)
        for usage in usages:
            usage.incurred.add(tokens, price, seconds)

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

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.flush()
        for client in self.clients.values():
            await client.servers.aclose()


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
