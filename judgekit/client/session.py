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
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, Self, TypeVar, get_args

from judgekit.client.client import Client
from judgekit.client.executor import Recorder
from judgekit.client.ledger import Account, Distinct
from judgekit.client.limits import Limiter
from judgekit.client.negotiation import Negotiated
from judgekit.client.origins import changed, fingerprints, mixed
from judgekit.client.runtime import Runtime
from judgekit.client.sync import run_sync
from judgekit.client.transports import open_transport
from judgekit.client.usage import Budget, Prices, Purse, Tally, Usage
from judgekit.client.work import Job, Work
from judgekit.errors import UsageError
from judgekit.progress import Event, Progress, silent
from judgekit.store.maintenance import holds
from judgekit.store.replies import Store
from judgekit.wire.access import Secret, api_key
from judgekit.wire.types import Endpoint, Failure, Origin, Outcome, Program, Reply, Request, Transport, most_requests

__all__ = ["Mode", "Plan", "Session", "run_sync"]

Mode = Literal["on", "off", "read-only", "refresh"]
"""``on`` reads and writes the store; ``off`` touches none; ``read-only`` reads it and keeps what is new for this
session only; ``refresh`` asks everything again and stores it."""

_CHUNK = 64
"""Units that are looked up at once: more would live long enough to be work for the garbage collector, and would keep
the requests in flight waiting."""

_TELL_S = 0.1

U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage would take, counted without sending anything.

    Attributes:
        units: how many.
        requests: distinct requests.
        cached: those that the store holds.
        prompt_tokens: of those that it lacks, estimated at four bytes a token.
        up_to: the most requests that it may take: replies that are not there yet may have to be asked for again, or
            lead to other questions; None where that is not known.
    """

    units: int
    requests: int
    cached: int
    prompt_tokens: int
    up_to: int | None

    @property
    def at_least(self) -> bool:
        """Whether further requests may follow."""
        return self.up_to is None or self.up_to > self.requests


class Session:
    """See the module's docstring. A context manager; used from one event loop at a time, one after another.

    Attributes:
        notes: the messages for the user so far.
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
        """Open the store.

        Args:
            store_path: the folder of the store, or None to keep replies for this session only.
            mode: what is done with the store, see `Mode`.
            budget: the most that may be sent.
            prices: money per million tokens, by endpoint name or model id.
            progress: called with events; messages for the user are their notes.
            transports: makes the transport of an endpoint, for tests; None means `open_transport`.
            backoff_s: upper bound of the first wait before a retry; later ones double.

        Raises:
            StoreError: the store cannot be opened.
            UsageError: there is no such mode.
        """
        if mode not in get_args(Mode):
            raise UsageError(f"there is no cache mode {mode!r} (there are: {', '.join(get_args(Mode))})")
        self.notes: list[str] = []
        self._mode = mode
        self._purse = Purse(budget or Budget(), prices or {})
        self._progress = progress
        self._transports = transports
        self._backoff_s = backoff_s
        self._began = time.time()
        self._stages: dict[str, Account] = {}
        self._endpoints: dict[str, Account] = {}
        self._limiters: dict[Endpoint, Limiter] = {}
        self._negotiated: dict[tuple[str, str], Negotiated] = {}
        self._runtimes: dict[asyncio.AbstractEventLoop, Runtime] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._base: Store | None = None
        if store_path is not None and mode != "off":
            self._base = Store(store_path, readonly=mode == "read-only", note=self._note)
        if self._base is None or self._base.readonly:
            self._temporary = tempfile.TemporaryDirectory(prefix="judgekit-")
            self._sink = Store(self._temporary.name, note=self._note)
        else:
            self._sink = self._base

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        runtime = self._runtimes.pop(asyncio.get_running_loop(), None)
        if runtime is not None:  # somebody left a loop over `resolve` before its end
            await runtime.aclose()
        self.close()

    def close(self) -> None:
        """Close the store; what was kept for this session only is deleted."""
        for runtime in self._runtimes.values():
            runtime.recorder.flush()
        self._sink.close()
        if self._base is not None:
            self._base.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def lookup(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return what is stored of these requests, as far as the mode lets it be used."""
        found = self._sink.get_many(keys, self._began if self._mode == "refresh" else 0.0)
        if self._base is not None and self._base is not self._sink and len(found) < len(keys):
            found |= self._base.get_many([key for key in keys if key not in found])
        return found

    def replayed(self, account: Account, requests: dict[str, Request], replies: dict[str, Reply]) -> None:
        """Book replies from the store, each once per stage."""
        sums: dict[Endpoint, tuple[Tally, Counter[Origin]]] = {}
        last: Endpoint | None = None
        again: dict[Endpoint, int] = {}
        for (key, reply), new in zip(replies.items(), account.distinct.add(replies), strict=True):
            if new:
                endpoint = requests[key].endpoint
                if endpoint is not last:
                    last = endpoint
                    if endpoint not in sums:
                        sums[endpoint] = Tally(), account.origins[endpoint]
                    tally, origins = sums[endpoint]
                tally.count(reply.usage, reply.seconds)
                origins[reply.origin] += 1
                if requests[key].again:
                    again[endpoint] = again.get(endpoint, 0) + 1
        for endpoint, (tally, _) in sums.items():
            self._learned(endpoint).replies += tally.requests
            price = self._purse.price(endpoint)
            for book in (account, self._endpoint(endpoint)):
                book.cached += tally.requests
                book.again += again.get(endpoint, 0)
                book.standalone.include(tally, price)

    def answered(self, account: Account, request: Request, outcome: Outcome) -> None:
        """Book what an endpoint answered, once per stage."""
        if account.distinct.add([request.key]) == [False]:
            return
        endpoint = request.endpoint
        price = self._purse.price(endpoint)
        if isinstance(outcome, Reply):
            account.origins[endpoint][outcome.origin] += 1
        for book in (account, self._endpoint(endpoint)):
            if isinstance(outcome, Failure):
                book.failed += 1
            else:
                book.sent += 1
                book.again += request.again
                book.standalone.add(outcome.usage, price, outcome.seconds)

    def book(self, part: str, endpoint: Endpoint, outcomes: Sequence[Outcome]) -> None:
        """Count an endpoint's replies also under the name of a part of a stage, each once: what it takes standalone."""
        account = self._stages.setdefault(part, Account(part, total=0))
        replies = {outcome.key: outcome for outcome in outcomes if isinstance(outcome, Reply)}
        price = self._purse.price(endpoint)
        for reply, new in zip(replies.values(), account.distinct.add(replies), strict=True):
            if new:
                account.standalone.add(reply.usage, price, reply.seconds)

    def _endpoint(self, endpoint: Endpoint) -> Account:
        account = self._endpoints.get(endpoint.name)
        if account is None:
            account = self._endpoints[endpoint.name] = Account(endpoint.name)
        return account

    def _learned(self, endpoint: Endpoint) -> Negotiated:
        return self._negotiated.setdefault((endpoint.identity, endpoint.model), Negotiated())

    def _client(self, endpoint: Endpoint, runtime: Runtime) -> Client:
        self._purse.check(endpoint)
        if endpoint not in self._limiters:
            self._limiters[endpoint] = Limiter(
                endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute
            )

        def charge(request: Request, usage: tuple[int, int] | None, seconds: float) -> None:
            price = self._purse.price(endpoint)
            self._endpoint(endpoint).incurred.add(usage, price, seconds)
            if request.key in runtime.flights:
                runtime.flights[request.key].account.incurred.add(usage, price, seconds)

        return Client(
            endpoint,
            self._transport(endpoint),
            self._limiters[endpoint],
            self._purse,
            charge=charge,
            save=runtime.recorder.save,
            note=self._note,
            brake=runtime.brake,
            negotiated=self._learned(endpoint),
            known=lambda: self._base is not None and holds(self._base, endpoint.identity, endpoint.model),
            secret=Secret(api_key(endpoint)),
            backoff_s=self._backoff_s,
        )

    def _transport(self, endpoint: Endpoint) -> Transport:
        if self._transports is not None:
            return self._transports(endpoint)
        return open_transport(endpoint, self._note)

    def _note(self, text: str) -> None:
        self.notes.append(text)
        stages = list(self._stages.values())
        running = next((s for s in reversed(stages) if s.total is None or s.done < s.total), None)
        if running is None:
            self._progress(Event("endpoint", 0, None, note=text))
        else:
            self._tell(running, text)

    def _tell(self, stage: Account, note: str = "") -> None:
        stage.told_at = time.monotonic()
        self._progress(Event(stage.name, stage.done, stage.total, stage.sent, stage.cached, stage.failed, note))

    def _enter(self) -> Runtime:
        loop = asyncio.get_running_loop()
        runtime = self._runtimes.get(loop)
        if runtime is None or runtime.ended:
            recorder = Recorder(self._sink, replace=self._mode == "refresh")
            runtime = self._runtimes[loop] = Runtime(self._client, recorder)
        runtime.users += 1
        return runtime

    async def _leave(self, runtime: Runtime) -> None:
        runtime.users -= 1
        if runtime.users:
            return
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
            units: taken as needed; give them ordered by query, so that a server's prefix cache works.
            program: says which requests a unit needs.
            stage: the name under which usage and progress are kept; it may be resolved several times.
            total: how many units there are, if known.

        Raises:
            StoppedError: the endpoint, the budget or the store does not allow to go on. Units that ended before are
                yielded first; everything paid for is in the store.
            ConfigError: an endpoint's key is not in the environment.
            UsageError: there is a cost limit, and an endpoint without a price.
        """
        account = self._stages.setdefault(stage, Account(stage, total=0))
        account.total = None if total is None or account.total is None else account.total + total
        begun = time.perf_counter()
        runtime = self._enter()
        work = Work(self, program, account, runtime)
        source = iter(units)
        more = True
        try:
            while more or work.open:
                if more and work.open < runtime.appetite:
                    chunk = list(islice(source, _CHUNK))
                    more = len(chunk) == _CHUNK
                    ended = work.start(chunk)
                    if runtime.flights:
                        await asyncio.sleep(0)  # the endpoint goes on while the store answers
                else:
                    await work.box.wait()
                    ended = work.proceed()
                for job in ended:
                    account.done += 1
                    yield job.unit, job.outcomes
                if time.monotonic() - account.told_at > _TELL_S:
                    self._tell(account)
            self._tell(account)
            self._tell_origins(account)
        finally:
            account.wall_s += time.perf_counter() - begun
            await self._leave(runtime)

    def plan(self, units: Iterable[U], program: Program[U]) -> Plan:
        """Count what `resolve` would take, sending nothing.

        Waves are followed as far as the store holds the replies; what may follow is known from the program's ``most``.
        """
        distinct = Distinct()
        planned = cached = tokens = count = 0
        further: int | None = 0
        source = iter(units)
        while jobs := [Job(unit, program.requests(unit, ())) for unit in islice(source, _CHUNK)]:
            count += len(jobs)
            while jobs:
                wanted = {request.key: request for job in jobs for request in job.wave}
                stored = self.lookup(list(wanted))
                for (key, request), new in zip(wanted.items(), distinct.add(wanted), strict=True):
                    planned += new
                    cached += new and key in stored
                    tokens += len(request.body) // 4 if new and key not in stored else 0
                going = []
                for job in jobs:
                    if not all(request.key in stored for request in job.wave):
                        most = most_requests(program, job.unit)
                        if most is None or further is None:
                            further = None
                        else:
                            further += most - len(job.outcomes) - len(job.wave)
                    elif job.wave:
                        job.outcomes += [stored[request.key] for request in job.wave]
                        job.wave = program.requests(job.unit, job.outcomes)
                        going.append(job)
                jobs = going
        return Plan(count, planned, cached, tokens, None if further is None else planned + further)

    def _tell_origins(self, account: Account) -> None:
        before = [stage.origins for stage in self._stages.values() if stage is not account]
        for text in (*mixed(account.origins), *changed(before, account.origins), *fingerprints(account.origins)):
            self._note(f"{account.name}: {text}")

    def mixed(self) -> list[str]:
        """Return a sentence for every stage whose replies come from more than one model at one endpoint."""
        return [f"{name}: {text}" for name, account in self._stages.items() for text in mixed(account.origins)]

    def usage(self, stage: str) -> Usage:
        """Return what a stage took so far."""
        return self._stages.get(stage, Account(stage)).usage

    def totals(self) -> dict[str, Usage]:
        """Return what was taken from each endpoint, by its name; a reply that stages share counts in each."""
        return {name: account.usage for name, account in self._endpoints.items()}
