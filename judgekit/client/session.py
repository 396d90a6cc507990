"""A session: one store, one budget, one set of limits, for all stages of a run.

`Session.resolve` turns units into outcomes: it asks the program for requests, answers from the store what is there,
sends the rest, and asks the program again, until nothing more is needed. It streams: what it holds at any moment does
not grow with the number of units. Units come out as they end, *in any order*; a stage whose output must not depend on
that sorts it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, get_args

from judgekit.client.budget import Budget, Prices, Spending, Usage
from judgekit.client.client import Client
from judgekit.client.limits import Limiter
from judgekit.client.negotiation import Negotiated
from judgekit.client.origins import changed, fingerprints, mixed
from judgekit.client.waves import CHUNK, Distinct, Job, Plan, begin, follow, missing
from judgekit.errors import JudgekitError, StoppedError, UsageError, not_among
from judgekit.progress import Event, Progress, silent
from judgekit.store.claims import Claims
from judgekit.store.maintenance import holds, import_store, rescue, rescued
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport

__all__ = ["Loop", "Mode", "Session"]

Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""

_TELL_S: Final = 0.1
_LEAST: Final = 64
_SHARE_S: Final = 0.2
"""How often is looked for what other processes ask."""

_ELSEWHERE: Final = (
    "another process asks some of the same requests: judgekit waits for its replies, which are paid once"
)

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
    ) -> None:
        """Open the store."""
        if mode not in get_args(Mode):
            raise UsageError(not_among("cache mode", mode, get_args(Mode)))
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self.retries: Counter[str] = Counter()
        self._mode = mode
        self.spending = Spending(budget or Budget(), prices or {})
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
            for file in rescued(self._base):
                added, _ = import_store(self._base, file)
                file.unlink()
                self.note(f"{added:,} replies that an earlier run could not store are in the store now")

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
        """Yield (unit, outcomes) for every unit, in any order; outcomes are in the order the requests were returned."""
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
            self._limiters[endpoint] = Limiter(*limits)
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
            loop = self._loops[running] = Loop(
                self, self._sink, shared=self._temporary is None, replace=self._mode == "refresh"
            )
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
        self.arrived: deque[tuple[Request, Outcome, bool]] = deque()
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
        """Wait for something to arrive and take it in; return the jobs that ended by it."""
        while not self.arrived:
            if self._loop.error is not None and not self._loop.tasks:
                raise self._loop.error
            self.wake.clear()
            await self.wake.wait()
        ready: list[Job[U]] = []
        while self.arrived:
            request, outcome, replayed = self.arrived.popleft()
            if replayed and isinstance(outcome, Reply):
                self._session._replayed(self.stage, {request.key: request}, {request.key: outcome})
            else:
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
        wanted: dict[str, Request] = {}
        for job in lacking:
            for key, request in job.lacking().items():
                self._waiting.setdefault(key, []).append(job)
                wanted[key] = request
        self._loop.submit(wanted, self)
        self.open -= len(ended)
        return ended


_Pending = list[tuple[Record, asyncio.Future[Reply | None]]]


def _settle(task: asyncio.Task[dict[str, Reply]], pending: _Pending) -> None:
    """Tell those that wait for their records to be stored, whatever came of it."""
    for record, future in pending:
        if future.done():
            continue
        if task.cancelled():
            future.cancel()
        elif problem := task.exception():
            future.set_exception(problem)
        else:
            future.set_result(task.result().get(record.key))


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
        elsewhere: what of it another process asks.
        tasks: those that ask.
        sending: those of them whose request is being paid for.
    """

    def __init__(self, session: Session, store: Store, *, shared: bool, replace: bool) -> None:
        """Keep replies in ``store``, which may be shared; ``replace`` also those that are there already."""
        self.session = session
        self.users = 0
        self.error: Exception | None = None
        self.clients: dict[Endpoint, Client] = {}
        self.flights: dict[str, tuple[Request, list[_Resolve[Any]]]] = {}
        self.elsewhere: dict[str, Request] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.sending: set[asyncio.Task[Any] | None] = set()
        self._store = store
        self._replace = replace
        self._kept = shared
        self._claims = Claims(store) if shared and not replace else None
        self._sharing: asyncio.Task[None] | None = None
        self._pending: _Pending = []
        self._flushing: asyncio.Task[dict[str, Reply]] | None = None

    @property
    def appetite(self) -> int:
        """How many units may wait for replies: enough that no endpoint has to wait for units, and no more."""
        return _LEAST + 3 * sum(endpoint.concurrency for endpoint in self.clients) // 2

    def submit(self, requests: Mapping[str, Request], work: _Resolve[Any]) -> None:
        """Have requests answered for some work, unless nothing more is sent."""
        new: dict[str, Request] = {}
        for key, request in requests.items():
            if key not in self.flights:
                new[key] = request
            waiting = self.flights.setdefault(key, (request, []))[1]
            if work not in waiting:
                waiting.append(work)
        if new and self.error is None:
            try:
                self._begin(new)
            except JudgekitError as problem:  # whoever waits raises it
                self._fail(problem)

    def _begin(self, requests: Mapping[str, Request]) -> None:
        """Ask what no other process asks; the rest is waited for."""
        mine: Collection[str] = requests
        stored: dict[str, Reply] = {}
        if self._claims is not None:
            mine = self._claims.take(requests)
            stored = self.session.lookup(list(mine))  # what another process has had answered since it was looked for
            if self._sharing is None or self._sharing.done():
                self._sharing = asyncio.create_task(self._share())
        for key, request in requests.items():
            if key in stored:
                self._deliver(request, stored[key], replayed=True)
            elif key not in mine:
                self.elsewhere[key] = request
                if _ELSEWHERE not in self.session.notes:
                    self.session.note(_ELSEWHERE)
            else:
                self.elsewhere.pop(key, None)
                if request.endpoint not in self.clients:
                    self.clients[request.endpoint] = Client(self, request.endpoint)
                task = asyncio.create_task(self._ask(self.clients[request.endpoint], request))
                self.tasks.add(task)
                task.add_done_callback(self._ended)

    async def _share(self) -> None:
        """Keep the claims while something is asked, and look for what other processes ask."""
        assert self._claims is not None
        try:
            while self.flights and self.error is None:
                await asyncio.sleep(_SHARE_S)
                self._claims.beat()
                for key, reply in self.session.lookup(list(self.elsewhere)).items():
                    self._deliver(self.elsewhere[key], reply, replayed=True)
                if self.elsewhere:
                    self._begin(dict(self.elsewhere))
        except JudgekitError as problem:
            self._fail(problem)

    async def _ask(self, client: Client, request: Request) -> None:
        try:
            outcome = await client.ask(request)
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            self._fail(problem)
            return
        self._deliver(request, outcome)

    def _deliver(self, request: Request, outcome: Outcome, *, replayed: bool = False) -> None:
        self.elsewhere.pop(request.key, None)
        if self._claims is not None:
            self._claims.end(request.key)
        for work in self.flights.pop(request.key)[1]:
            work.arrived.append((request, outcome, replayed))
            work.wake.set()

    def _fail(self, problem: Exception) -> None:
        """Send nothing more; what is in flight is paid for, and waited for."""
        if self.error is None:
            self.error = problem
            for task in self.tasks - self.sending:
                task.cancel()
        self._wake()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self._wake()

    def _wake(self) -> None:
        """Tell all work that waits, once nothing more will come."""
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
        """Return when the record is in the store: None, or what was there already and stays."""
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        if not self._pending:
            pending = self._pending
            self._flushing = asyncio.create_task(self._flush())
            self._flushing.add_done_callback(lambda task: _settle(task, pending))
        self._pending.append((record, future))
        return await future

    async def _flush(self) -> dict[str, Reply]:
        return self.flush()

    def flush(self) -> dict[str, Reply]:
        """Store what waits; return what was there already. What the store does not take is written beside it."""
        records = [record for record, _ in self._pending]
        self._pending = []
        stored = False
        try:
            kept = self._store.put_many(records, replace=self._replace) if records else {}
            stored = True
        finally:
            if not stored and self._kept:
                self.session.note(rescue(self._store, records))
        return kept

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        tasks = [*self.tasks, *filter(None, [self._sharing])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(StoppedError):  # they are written beside the store, and whoever waited was told why
            self.flush()
        if self._sharing is not None and self._claims is not None:
            with suppress(StoppedError):  # the claims of a process that has ended are void
                self._claims.close()
        for client in self.clients.values():
            await client.transport.aclose()
