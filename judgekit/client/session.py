"""A session: one store, one budget, one set of limits, for all stages of a run.

`Session.resolve` turns units into outcomes: it gets requests from the program, answers them from the store or sends
them, and asks the program again, until nothing more is needed. It streams: memory does not grow with the number of
units. Units come out as they end, *in any order*; a stage whose output must not depend on that sorts it. All requests
of the session in flight share one event loop (`_InFlight`).

::

    units ──> _Resolve, one a stage ──> follow: is it stored? ──yes──> next wave, or the unit ends ──> stage
                 ^                              │ no
                 │                              v
                 │            _InFlight.flights, by identity: a request that is asked twice is one flight
                 │                              │
                 │            Claims: does another process ask for it? Then look for its reply in the store
                 │                              │ no
                 │                              v
                 │            Client, one an endpoint: a queue for its slots ──> Attempt: send, retry, negotiate
                 │                              │
                 └── arrived ── pending: replies are stored some at a time, then told to all that wait
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

from judgekit.client.attempt import Attempt, Client, Shared
from judgekit.client.budget import Budget, Prices, Spending, Usage
from judgekit.client.estimates import most_tokens
from judgekit.client.model_drift import changes, mixed
from judgekit.client.waves import CHUNK, PendingUnit, add_new, begin, follow
from judgekit.errors import JudgekitError, StoppedError
from judgekit.progress import Event, Progress, silent
from judgekit.store.claims import Claims
from judgekit.store.replies import Store
from judgekit.store.rescue import SessionStore
from judgekit.wire.quirks import ServerQuirks
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport

_EVENT_S: Final = 0.1
"""Seconds between two events of progress."""

_LEAST_WAITING: Final = 64
_SHARE_S: Final = 0.2
"""Seconds between looks for replies that other processes stored."""

# Replies wait this long to be stored together, or until they are a third of the requests in flight beyond the first
# eight. So a killed process pays again for little more than it had in flight.
_GATHER_S: Final = 0.02
_STORED_ALONE: Final = 8
_GATHERED_SHARE: Final = 3

_ELSEWHERE: Final = (
    "another process asks some of the same requests: judgekit waits for its replies, which are paid once"
)

U = TypeVar("U")


@dataclass
class _Stage:
    """The progress of one stage, and its usage by endpoint; requests are counted without being kept."""

    name: str
    total: int | None = 0
    done: int = 0
    wall_s: float = 0.0
    usages: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    seen: set[int] = field(default_factory=set)
    origins: defaultdict[Endpoint, Counter[Origin]] = field(default_factory=lambda: defaultdict(Counter))
    event_at: float = float("-inf")

    @property
    def usage(self) -> Usage:
        """The usage of all endpoints."""
        return sum(self.usages.values(), Usage(wall_s=self.wall_s))


class Session:
    """See the module's docstring. A context manager; used from one event loop at a time, one after another.

    Attributes:
        notes: the messages for the user so far.
        doubts: those notes that cast doubt on the results themselves.
        shared: shared by its clients: spending, retries and what was learned about servers.
    """

    def __init__(
        self,
        store_path: str | Path | Store | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        progress: Progress = silent,
        transports: Callable[[Endpoint], Transport] | None = None,
        backoff_s: float = 1.0,
        wait_s: float = 0.0,
        part: tuple[int, int] = (1, 1),
    ) -> None:
        """Open the store."""
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self._progress = progress
        self._stages: dict[str, _Stage] = {}
        self._parts: dict[str, _Stage] = {}
        self._in_flight: dict[asyncio.AbstractEventLoop, _InFlight] = {}
        self._store = SessionStore(store_path, self.note)
        self.lookup = self._store.replies.get_many
        spending = Spending(budget or Budget(), prices or {})
        self.shared = Shared(
            spending,
            self.note,
            knows=self._store.knows,
            transports=transports,
            backoff_s=backoff_s,
            wait_s=wait_s,
            part=part,
        )

    @property
    def folder(self) -> Path:
        """The folder of the store, or of this session's temporary one."""
        return self._store.replies.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, problem: BaseException | None, __: object) -> None:
        in_flight = self._in_flight.pop(asyncio.get_running_loop(), None)
        if in_flight is not None:  # somebody left a loop over `resolve` before its end
            if isinstance(problem, JudgekitError):
                await in_flight.settle(problem)
            await in_flight.aclose()
        self.close()

    def close(self) -> None:
        """Close the store; a temporary one is deleted."""
        for in_flight in self._in_flight.values():
            in_flight.flush()
        self._store.close()

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
        source, more = iter(units), True
        async with self._entered(state) as in_flight:
            work = _Resolve(self, in_flight, program, state)
            while more or work.open:
                if more and work.open < in_flight.max_waiting:
                    chunk = list(islice(source, CHUNK))
                    more = len(chunk) == CHUNK
                    ended = work.start(chunk)
                    if in_flight.flights:
                        await asyncio.sleep(0)  # the endpoint goes on while the store answers
                else:
                    ended = await work.proceed()
                for job in ended:
                    state.done += size(job.unit)
                    yield job.unit, job.outcomes
                if time.monotonic() - state.event_at > _EVENT_S:
                    self._report(state)
            self._report(state)
            before = [other.origins for other in self._stages.values() if other is not state]
            for text in (*mixed(state.origins), *changes(before, state.origins)):
                self.note(f"{stage}: {text}", doubt=True)

    def book(self, part: str, endpoint: Endpoint, outcomes: Sequence[Outcome]) -> None:
        """Count replies, each once, also for a part of a stage, to know the part's standalone cost."""
        stage = self._parts.setdefault(part, _Stage(part))
        replies = {outcome.key: outcome for outcome in outcomes if isinstance(outcome, Reply)}
        price, usage = self.shared.spending.price(endpoint), stage.usages[endpoint.name]
        for reply in compress(replies.values(), add_new(stage.seen, replies)):
            usage.standalone.add(reply.usage, price, reply.seconds)

    def allow(self, budget: Budget) -> None:
        """Replace the rest of the budget by another one."""
        self.shared.spending.allow(budget)

    def usage(self, stage: str) -> Usage:
        """Return the usage of a stage, or of a part of one, so far."""
        named = [stages[stage].usage for stages in (self._stages, self._parts) if stage in stages]
        return sum(named, Usage())

    def totals(self) -> dict[str, Usage]:
        """Return the usage by endpoint name; a reply that several stages share counts in each."""
        totals: defaultdict[str, Usage] = defaultdict(Usage)
        for stage in self._stages.values():
            for name, usage in stage.usages.items():
                totals[name] += usage
        return dict(totals)

    def mixed(self) -> list[str]:
        """Return a sentence for every stage whose replies come from more than one model at one endpoint."""
        texts: list[str] = []
        for name, stage in self._stages.items():
            texts += (f"{name}: {text}" for text in mixed(stage.origins))
        return texts

    def learned(self, endpoint: Endpoint) -> ServerQuirks:
        """Return what is known about the model behind an endpoint."""
        return self.shared.learned(endpoint)[0]

    def _count(self, stage: _Stage, answered: Collection[tuple[Request, Outcome]]) -> None:
        """Count outcomes, each once per stage."""
        last: Endpoint | None = None
        fresh = add_new(stage.seen, [request.key for request, _ in answered])
        for request, outcome in compress(answered, fresh):
            if request.endpoint is not last:
                last = request.endpoint
                price, usage, origins = self.shared.spending.price(last), stage.usages[last.name], stage.origins[last]
                quirks = self.learned(last)
            if isinstance(outcome, Failure):
                usage.failed += 1
                continue
            most = (0, 0)
            if price is not None and (outcome.usage is None or outcome.usage.total is None):
                most = most_tokens(request.body)
            usage.standalone.add(outcome.usage, price, outcome.seconds, most)
            usage.again += request.again
            origins[outcome.origin] += 1
            if outcome.cached:
                usage.cached += 1
                quirks.replies += 1
            else:
                usage.sent += 1

    def note(self, text: str, doubt: bool = False, once: bool = False) -> None:
        """Pass a message to the user, and keep it; ``doubt`` if it casts doubt on what replies say."""
        if once and text in self.notes:
            return
        self.notes.append(text)
        if doubt:
            self.doubts.append(text)
        for stage in reversed(self._stages.values()):
            if stage.total is None or stage.done < stage.total:
                self._report(stage, text)
                return
        self._progress(Event("endpoint", 0, None, note=text))

    def _report(self, stage: _Stage, note: str = "") -> None:
        stage.event_at = time.monotonic()
        usage = stage.usage
        counts = stage.done, stage.total, usage.sent, usage.cached, usage.failed
        spending = self.shared.spending
        self._progress(Event(stage.name, *counts, note, spending.money, spending.uncounted))

    @asynccontextmanager
    async def _entered(self, stage: _Stage) -> AsyncIterator[_InFlight]:
        """Yield this loop's requests in flight; the last user closes them."""
        running, begun = asyncio.get_running_loop(), time.perf_counter()
        in_flight = self._in_flight.get(running)
        if in_flight is None or in_flight.error is not None:
            in_flight = self._in_flight[running] = _InFlight(self.shared, self._store)
        in_flight.users += 1
        try:
            yield in_flight
        except JudgekitError as problem:
            if in_flight.users == 1:
                await in_flight.settle(problem)
            raise
        finally:
            stage.wall_s += time.perf_counter() - begun
            in_flight.users -= 1
            if not in_flight.users:
                if self._in_flight.get(running) is in_flight:
                    del self._in_flight[running]
                await in_flight.aclose()


class _Resolve(Generic[U]):
    """The work of one `Session.resolve`: its jobs, and the outcomes that arrived for them.

    Attributes:
        open: the number of jobs that have not ended.
        usages: usage to which attempts are charged, by endpoint name.
        arrived: (request, outcome) of what came.
        wake: set when something came, or nothing more will.
    """

    def __init__(self, session: Session, in_flight: _InFlight, program: Program[U], stage: _Stage) -> None:
        self.open = 0
        self.usages = stage.usages
        self.arrived: list[tuple[Request, Outcome]] = []
        self.wake = asyncio.Event()
        self._count = partial(session._count, stage)
        self._lookup = session.lookup
        self._in_flight = in_flight
        self._program = program
        self._ready: list[PendingUnit[U]] = []

    def start(self, units: Iterable[U]) -> list[PendingUnit[U]]:
        """Begin with further units; return the jobs that ended at once."""
        jobs = begin(units, self._program)
        self.open += len(jobs)
        return self._advance(jobs)

    async def proceed(self) -> list[PendingUnit[U]]:
        """Wait until outcomes arrive; return the jobs that they end."""
        while not self.arrived:
            if self._in_flight.ended and self._in_flight.error is not None:
                raise self._in_flight.error
            self.wake.clear()
            await self.wake.wait()
        self._count(self.arrived)
        ready = self._ready
        self.arrived, self._ready = [], []
        for job in ready:
            job.next_wave(self._program)
        return self._advance(ready)

    def arrive(self, job: PendingUnit[U], request: Request, outcome: Outcome) -> None:
        """Take in the outcome of a request that a job waits for."""
        self.arrived.append((request, outcome))
        job.got[request.key] = outcome
        del job.lacking[request.key]
        if not job.lacking:
            self._ready.append(job)
        self.wake.set()

    def _advance(self, jobs: list[PendingUnit[U]]) -> list[PendingUnit[U]]:
        """Follow the waves in the store and submit what it lacks; return the jobs that ended."""
        followed = follow(jobs, self._program, self._lookup)
        if followed.replies:
            self._count([(followed.wanted[key], reply) for key, reply in followed.replies.items()])
        if followed.waiting:
            self._in_flight.submit(followed.waiting, self)
        self.open -= len(followed.ended)
        return followed.ended


@dataclass(slots=True)
class _Flight:
    """A request in flight, and the jobs that wait for it; the work of the first one pays."""

    request: Request
    waiting: list[tuple[_Resolve[Any], PendingUnit[Any]]] = field(default_factory=list)


class _InFlight:
    """The attempts of one event loop while a session is used in it.

    Everything resolved in the loop shares them, so that nothing is sent twice. The last user closes the connections, so
    that none outlives the loop.

    Attributes:
        users: the number of `Session.resolve` that use it.
        error: why sending ended, or None; later users need another object.
        clients: by endpoint.
        flights: by the identity of the request.
    """

    def __init__(self, shared: Shared, store: SessionStore) -> None:
        """Keep replies in ``store``."""
        self.users = 0
        self.error: Exception | None = None
        self.clients: dict[Endpoint, Client] = {}
        self.flights: dict[str, _Flight] = {}
        self._shared = shared
        self._store = store
        self._elsewhere: dict[str, Request] = {}
        self._running: dict[Attempt, asyncio.Task[None]] = {}
        self._lookup = store.replies.get_many
        self._claims = Claims(store.replies)
        self._sharing: asyncio.Task[None] | None = None
        self._pending: list[tuple[Attempt, Outcome | None]] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._stored = asyncio.Event()
        self._stored.set()

    @property
    def max_waiting(self) -> int:
        """The largest number of units that may wait for replies: enough to keep every endpoint busy."""
        return _LEAST_WAITING + 3 * sum(endpoint.concurrency for endpoint in self.clients) // 2

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.error is not None and not (self._running or self._pending)

    def submit(self, jobs: Iterable[PendingUnit[Any]], work: _Resolve[Any]) -> None:
        """Have the requests that jobs lack answered, unless nothing more is sent."""
        new: dict[str, Request] = {}
        for job in jobs:
            for key, request in job.lacking.items():
                if key not in self.flights:
                    new[key] = request
                    self.flights[key] = _Flight(request)
                self.flights[key].waiting.append((work, job))
        if new and self.error is None:
            try:
                self._ask(new)
            except JudgekitError as problem:  # whoever waits raises it
                self._fail(problem)

    def _ask(self, requests: Mapping[str, Request]) -> None:
        """Send the requests that no other process sends, and wait for its replies to the rest."""
        mine = self._claims.take(requests)
        if self._sharing is None or self._sharing.done():
            self._sharing = asyncio.create_task(self._share())
        stored: dict[str, Reply] = {}
        if self._claims.others:  # another process may have stored replies since the look-up that found none
            stored = self._lookup(list(mine))
        for key, request in requests.items():
            if key in stored:
                self._deliver(request, stored[key])
            elif key not in mine:
                self._elsewhere[key] = request
            else:
                self._elsewhere.pop(key, None)
                client = self.clients.get(request.endpoint)
                if client is None:
                    client = self.clients[request.endpoint] = Client(request.endpoint, self._shared, self._start)
                payer, _ = self.flights[key].waiting[0]
                client.add(Attempt(client, request, payer.usages[request.endpoint.name].incurred))
        for client in self.clients.values():
            client.begin()
        if self._elsewhere:
            self._shared.note(_ELSEWHERE, once=True)

    def _start(self, client: Client, attempt: Attempt) -> None:
        self._running[attempt] = asyncio.create_task(self._work(client, attempt))

    async def _work(self, client: Client, attempt: Attempt) -> None:
        """Carry out an attempt with a slot, and then others: a task for each would take longer."""
        task = self._running[attempt]
        try:
            with self._failing():
                while True:
                    # Nothing more is sent while many replies wait to be stored: a kill would lose all of them.
                    await self._stored.wait()
                    await self._run(client, attempt)
                    following = client.following()
                    if following is None:
                        break
                    attempt = following
                    self._running[attempt] = task
        finally:
            client.limiter.release()

    async def _run(self, client: Client, attempt: Attempt) -> None:
        """Carry out an attempt, and have its reply stored."""
        outcome: Outcome | None = None
        try:
            outcome = await attempt.run()
        finally:
            del self._running[attempt]
            if attempt.record is not None:
                self._pending.append((attempt, outcome))
                if self._stored.is_set():  # otherwise `_flush` is due, and takes this reply with it
                    self._schedule_flush()
            elif outcome is not None:
                self._deliver(attempt.request, outcome)
            client.unsettled -= outcome is not None

    def _schedule_flush(self) -> None:
        """Schedule storing: at once if replies are many, otherwise together with those that come soon."""
        loop, sending = asyncio.get_running_loop(), sum(len(client.sending) for client in self.clients.values())
        if len(self._pending) >= (sending - _STORED_ALONE) // _GATHERED_SHARE:
            self._stored.clear()
            loop.call_soon(self._flush)
        elif self._flushing is None:
            self._flushing = loop.call_later(_GATHER_S, self._flush)

    def _flush(self) -> None:
        with self._failing():
            self.flush()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Send nothing more after an error."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001  # every resolve that waits raises it
            self._fail(problem)
        finally:
            self._wake()

    def flush(self) -> None:
        """Store the replies in one transaction, then deliver them to the waiting jobs."""
        self._stored.set()
        pending, self._pending = self._pending, []
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        # Another process may have stored a reply to the same request; the first one counts for all.
        earlier = self._store.keep([attempt.record for attempt, _ in pending if attempt.record is not None])
        for attempt, outcome in pending:
            if outcome is not None:
                self._deliver(attempt.request, earlier.get(attempt.request.key, outcome))

    async def _share(self) -> None:
        """Keep the claims alive while requests are open, and look for replies that other processes stored."""
        try:
            while self.flights and self.error is None:
                await asyncio.sleep(_SHARE_S)
                self._claims.beat()
                for key, reply in self._lookup(list(self._elsewhere)).items():
                    self._deliver(self._elsewhere[key], reply)
                if self._elsewhere:
                    self._ask(dict(self._elsewhere))
        except JudgekitError as problem:
            self._fail(problem)

    def _deliver(self, request: Request, outcome: Outcome) -> None:
        self._elsewhere.pop(request.key, None)
        self._claims.end(request.key)
        for work, job in self.flights.pop(request.key).waiting:
            work.arrive(job, request, outcome)

    def _fail(self, problem: Exception) -> None:
        """Stop sending; wait for requests in flight, since they are paid for."""
        if self.error is None:
            self.error = problem
            self._stop(paid=False)
        self._wake()

    def _stop(self, paid: bool) -> None:
        """Begin no further attempt, and stop those that were begun."""
        for client in self.clients.values():
            client.stop()
        for attempt in self._running:
            attempt.stop(paid)

    def _wake(self) -> None:
        """Wake all who wait, once nothing more will come."""
        if self.ended:
            for flight in self.flights.values():
                for work, _ in flight.waiting:
                    work.wake.set()

    async def settle(self, problem: JudgekitError) -> None:
        """Stop sending after a caller's error, and wait for requests in flight, since they are paid for."""
        self._fail(problem)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def aclose(self) -> None:
        """Stop what runs, store what came, close all connections."""
        if self._sharing is not None:
            self._sharing.cancel()
        while self._running:
            self._stop(paid=True)
            await asyncio.gather(*self._running.values(), return_exceptions=True)
        with suppress(StoppedError):  # the replies are written beside the store, and those who waited know why
            self.flush()
        if self._sharing is not None:
            with suppress(StoppedError):  # claims of an ended process are void
                self._claims.close()
        for client in self.clients.values():
            await client.aclose()
