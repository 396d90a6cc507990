"""A session: one store, one budget, one set of limits, for all stages of a run.

`Session.resolve` turns units into outcomes: it asks the program for requests, answers from the store what is there,
sends the rest, and asks the program again, until nothing more is needed. It streams: what it holds at any moment does
not grow with the number of units. Units come out as they end, *in any order*; a stage whose output must not depend on
that sorts it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

from judgekit.client.attempt import Shared
from judgekit.client.budget import Budget, Prices, Spending, Usage
from judgekit.client.inflight import InFlight, Waiter
from judgekit.client.model_drift import changed, fingerprints, mixed
from judgekit.client.waves import CHUNK, Job, Plan, SeenKeys, begin, follow, missing
from judgekit.progress import Event, Progress, silent
from judgekit.store.modes import Mode, SessionStore
from judgekit.store.replies import Store
from judgekit.wire.quirks import ServerQuirks
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport

__all__ = ["Mode", "Session"]

_TELL_S: Final = 0.1

U = TypeVar("U")
Answered = tuple[Request, Outcome, bool]
"""A request, its outcome, and whether it was replayed."""


@dataclass
class _Stage:
    """What one stage took so far by endpoint, without remembering every request, and how far it is."""

    name: str
    total: int | None = 0
    done: int = 0
    wall_s: float = 0.0
    usages: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    seen: SeenKeys = field(default_factory=SeenKeys)
    origins: defaultdict[Endpoint, Counter[Origin]] = field(default_factory=lambda: defaultdict(Counter))
    told_at: float = float("-inf")

    @property
    def usage(self) -> Usage:
        """What it took from all endpoints."""
        return sum(self.usages.values(), Usage(wall_s=self.wall_s))


class Session:
    """See the module's docstring. A context manager; used from one event loop at a time, one after another.

    Attributes:
        notes: the messages for the user so far.
        doubts: those of them that cast doubt on what was learned, not only on the way there.
        shared: what its clients share: spending, retries and what was learned of servers.
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
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self._progress = progress
        self._stages: dict[str, _Stage] = {}
        self._parts: dict[str, _Stage] = {}
        self._in_flight: dict[asyncio.AbstractEventLoop, InFlight] = {}
        self._store = SessionStore(store_path, mode, self.note)
        self.lookup = self._store.lookup
        spending = Spending(budget or Budget(), prices or {})
        self.shared = Shared(spending, self.note, self._store.knows, transports, backoff_s, wait_s)

    @property
    def folder(self) -> Path:
        """Where replies are kept, or what is kept for this session only."""
        return self._store.sink.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        in_flight = self._in_flight.pop(asyncio.get_running_loop(), None)
        if in_flight is not None:  # somebody left a loop over `resolve` before its end
            await in_flight.aclose()
        self.close()

    def close(self) -> None:
        """Close the store; what was kept for this session only is deleted."""
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
        begun = time.perf_counter()
        in_flight = self._enter()
        work = _Resolve(self, in_flight, program, state)
        source = iter(units)
        more = True
        try:
            while more or work.open:
                if more and work.open < in_flight.appetite:
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
                if time.monotonic() - state.told_at > _TELL_S:
                    self._tell(state)
            self._tell(state)
            self._tell_drift(state)
        finally:
            state.wall_s += time.perf_counter() - begun
            await self._leave(in_flight)

    def plan(self, units: Iterable[U], program: Program[U]) -> Plan:
        """Count what `resolve` would take, sending nothing; see `missing`."""
        plan = Plan()
        for _ in missing(units, program, self.lookup, plan):
            pass
        return plan

    def book(self, part: str, endpoint: Endpoint, outcomes: Sequence[Outcome]) -> None:
        """Count an endpoint's replies also under the name of a part of a stage, each once: what it takes standalone."""
        stage = self._parts.setdefault(part, _Stage(part))
        replies = {outcome.key: outcome for outcome in outcomes if isinstance(outcome, Reply)}
        price, usage = self.shared.spending.price(endpoint), stage.usages[endpoint.name]
        for reply, new in zip(replies.values(), stage.seen.add(replies), strict=True):
            if new:
                usage.standalone.add(reply.usage, price, reply.seconds)

    def usage(self, stage: str) -> Usage:
        """Return what a stage, or a part of one, took so far."""
        named = [stages[stage].usage for stages in (self._stages, self._parts) if stage in stages]
        return sum(named, Usage())

    def totals(self) -> dict[str, Usage]:
        """Return what was taken from each endpoint, by its name; a reply that stages share counts in each."""
        totals: defaultdict[str, Usage] = defaultdict(Usage)
        for stage in self._stages.values():
            for name, usage in stage.usages.items():
                totals[name] += usage
        return dict(totals)

    def mixed(self) -> list[str]:
        """Return a sentence for every stage whose replies come from more than one model at one endpoint."""
        return [f"{name}: {text}" for name, stage in self._stages.items() for text in mixed(stage.origins)]

    def learned(self, endpoint: Endpoint) -> ServerQuirks:
        """Return what is known of the model behind an endpoint."""
        return self.shared.learned(endpoint)[0]

    def _count(self, stage: _Stage, answered: Sequence[Answered]) -> None:
        """Count outcomes, each once a stage."""
        last: Endpoint | None = None
        fresh = stage.seen.add([request.key for request, _, _ in answered])
        for (request, outcome, replayed), new in zip(answered, fresh, strict=True):
            if not new:
                continue
            if request.endpoint is not last:
                last = request.endpoint
                price, usage, origins = self.shared.spending.price(last), stage.usages[last.name], stage.origins[last]
                quirks = self.learned(last)
            if isinstance(outcome, Failure):
                usage.failed += 1
                continue
            usage.standalone.add(outcome.usage, price, outcome.seconds)
            usage.again += request.again
            origins[outcome.origin] += 1
            if replayed:
                usage.cached += 1
                quirks.replies += 1
            else:
                usage.sent += 1

    def note(self, text: str, doubt: bool = False, once: bool = False) -> None:
        """Tell the user something, and whether it casts doubt on what replies say; ``once`` however often it comes."""
        if once and text in self.notes:
            return
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
        usage, spending = stage.usage, self.shared.spending
        counts = stage.done, stage.total, usage.sent, usage.cached, usage.failed
        self._progress(Event(stage.name, *counts, note, spending.money, spending.budget.max_cost))

    def _tell_drift(self, stage: _Stage) -> None:
        before = [other.origins for other in self._stages.values() if other is not stage]
        for text in (*mixed(stage.origins), *changed(before, stage.origins), *fingerprints(stage.origins)):
            self.note(f"{stage.name}: {text}", doubt=True)

    def _enter(self) -> InFlight:
        """Return what is in flight in the running event loop, which lives until as many left as entered."""
        running = asyncio.get_running_loop()
        in_flight = self._in_flight.get(running)
        if in_flight is None or in_flight.error is not None:
            in_flight = self._in_flight[running] = InFlight(self.shared, self._store)
        in_flight.users += 1
        return in_flight

    async def _leave(self, in_flight: InFlight) -> None:
        """Close the connections if nobody else in the event loop uses them."""
        in_flight.users -= 1
        if in_flight.users:
            return
        running = asyncio.get_running_loop()
        if self._in_flight.get(running) is in_flight:
            del self._in_flight[running]
        await in_flight.aclose()


class _Resolve(Generic[U]):
    """The work of one `Session.resolve`: which jobs wait for which request, and what has arrived for them."""

    def __init__(self, session: Session, in_flight: InFlight, program: Program[U], stage: _Stage) -> None:
        self.open = 0
        self._count = partial(session._count, stage)
        self._lookup = session.lookup
        self._in_flight = in_flight
        self._program = program
        self._waiter = Waiter(stage.usages)
        self._waiting: dict[str, list[Job[U]]] = {}

    def start(self, units: Iterable[U]) -> list[Job[U]]:
        """Begin with further units; return the jobs that ended at once."""
        jobs = begin(units, self._program)
        self.open += len(jobs)
        return self._advance(jobs)

    async def proceed(self) -> list[Job[U]]:
        """Wait for something to arrive and take it in; return the jobs that ended by it."""
        waiter = self._waiter
        while not waiter.arrived:
            if self._in_flight.ended and self._in_flight.error is not None:
                raise self._in_flight.error
            waiter.wake.clear()
            await waiter.wake.wait()
        answered, ready = list(waiter.arrived), list[Job[U]]()
        waiter.arrived.clear()
        self._count(answered)
        for request, outcome, _ in answered:
            for job in self._waiting.pop(request.key):
                job.got[request.key] = outcome
                if not job.lacking():
                    job.next_wave(self._program)
                    ready.append(job)
        return self._advance(ready)

    def _advance(self, jobs: list[Job[U]]) -> list[Job[U]]:
        """Follow the waves in the store and submit what it lacks; return the jobs that ended."""
        followed = follow(jobs, self._program, self._lookup)
        if followed.replies:
            self._count([(followed.wanted[key], reply, True) for key, reply in followed.replies.items()])
        unsent: dict[str, Request] = {}
        for job in followed.waiting:
            for key, request in job.lacking().items():
                self._waiting.setdefault(key, []).append(job)
                unsent[key] = request
        if unsent:
            self._in_flight.submit(unsent, self._waiter)
        self.open -= len(followed.ended)
        return followed.ended
