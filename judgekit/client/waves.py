"""The waves of a program: its requests about a unit, and the further ones after the replies.

This module follows them as far as a store answers. A session sends missing requests and continues with their replies; a
plan counts them, and a batch file holds them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

from judgekit.client.budget import Price
from judgekit.client.estimates import Foreseen, Observed, by_script, exactly
from judgekit.errors import UsageError
from judgekit.wire.types import (
    Endpoint,
    Outcome,
    Program,
    Reply,
    Request,
    about,
    most_requests,
    next_requests,
)

CHUNK: Final = 64
"""Number of units looked up at once. More would burden the garbage collector, and keep requests in flight waiting."""

_WAVES: Final = 100
"""After this many waves, a program seems endless; ours have a few."""
_ROOM: Final = re.compile(rb'"max_(?:completion_)?tokens":(\d+)')
_ROUNDED: Final = 16

U = TypeVar("U")
Lookup = Callable[[Sequence[str]], dict[str, Reply]]


@dataclass(slots=True, eq=False)
class PendingUnit(Generic[U]):
    """A unit in progress: its outcomes so far, and what its present wave has and lacks."""

    unit: U
    wave: list[Request]
    outcomes: list[Outcome] = field(default_factory=list)
    got: dict[str, Outcome] = field(default_factory=dict)
    lacking: dict[str, Request] = field(default_factory=dict)
    waves: int = 1

    def next_wave(self, program: Program[U]) -> None:
        """Go on to the next wave, once this one lacks nothing."""
        self.go_on([self.got[request.key] for request in self.wave], program)

    def go_on(self, outcomes: Sequence[Outcome], program: Program[U]) -> None:
        """Go on to the next wave with the outcomes of this one."""
        self.outcomes.extend(outcomes)
        self.wave = next_requests(program, self.unit, self.outcomes)
        self.waves += 1
        if self.waves > _WAVES and self.wave:
            raise UsageError(
                f"{about(program, self.unit)}: requests asked {_WAVES} times for more about one unit. It must return []"
                " once `replies` holds all that it needs"
            )


def begin(units: Iterable[U], program: Program[U]) -> list[PendingUnit[U]]:
    """Return a job for each unit, with its first wave."""
    return [PendingUnit(unit, next_requests(program, unit, ())) for unit in units]


@dataclass(slots=True)
class Followed(Generic[U]):
    """The waves of jobs, as far as a store answers them.

    Attributes:
        ended: the finished jobs.
        waiting: those that lack replies.
        wanted: all requests of their waves, by key.
        replies: the stored replies among them.
    """

    ended: list[PendingUnit[U]] = field(default_factory=list)
    waiting: list[PendingUnit[U]] = field(default_factory=list)
    wanted: dict[str, Request] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)


def follow(jobs: list[PendingUnit[U]], program: Program[U], lookup: Lookup) -> Followed[U]:
    """Answer waves from a store as far as it goes."""
    followed = Followed[U]()
    while jobs:
        wanted = {request.key: request for job in jobs for request in job.wave}
        replies = lookup(list(wanted))
        followed.wanted |= wanted
        followed.replies |= replies
        going: list[PendingUnit[U]] = []
        stored_reply = replies.get
        for job in jobs:
            if not job.wave:
                followed.ended.append(job)
                continue
            stored = [reply for request in job.wave if (reply := stored_reply(request.key)) is not None]
            if len(stored) < len(job.wave):
                job.got = {reply.key: reply for reply in stored}
                job.lacking = {request.key: request for request in job.wave if request.key not in replies}
                followed.waiting.append(job)
                continue
            job.go_on(stored, program)
            if job.wave:
                going.append(job)
            else:
                followed.ended.append(job)
        jobs = going
    return followed


@dataclass(slots=True)
class Unsent:
    """Requests to one endpoint that a store lacks.

    Attributes:
        requests: how many.
        expected: the tokens that their script makes of them, see `by_script`.
        room: the limit on their replies' tokens; None if a request sets no limit.
        sizes: numbers of requests by expected tokens (rounded up) and room, to see which are too long for a server.
    """

    requests: int = 0
    expected: float = 0.0
    room: int | None = 0
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, body: bytes) -> None:
        """Count a request."""
        self.requests += 1
        expected = by_script(body)
        self.expected += expected
        limit = _ROOM.search(body)  # quotes inside of texts have a backslash, so no text matches
        room = int(limit[1]) if limit else 0
        if limit is None:
            self.room = None
        elif self.room is not None:
            self.room += room
        self.sizes[math.ceil(expected / _ROUNDED) * _ROUNDED, room] += 1


@dataclass(slots=True)
class Plan:
    """The cost of a stage, counted without sending anything.

    Attributes:
        units: how many.
        requests: distinct requests.
        cached: those that the store holds.
        further: the largest number of requests that may follow: replies may have to be requested again, or lead to
            other questions; None if unknown.
        lacking: those that the store lacks, by endpoint.
        observed: the endpoints' reports about the stored requests.
        elsewhere: the same for other stages, whose prompts reveal the tokenizer, but whose replies reveal nothing.
    """

    units: int = 0
    requests: int = 0
    cached: int = 0
    further: int | None = 0
    lacking: dict[Endpoint, Unsent] = field(default_factory=dict)
    observed: dict[Endpoint, Observed] = field(default_factory=dict)
    elsewhere: Mapping[Endpoint, Observed] = field(default_factory=dict)

    @property
    def tokens(self) -> Foreseen:
        """The tokens of the requests that the store lacks, and of their replies."""
        total = Foreseen()
        for endpoint in self.lacking:
            prompts, replies = self._tokens(endpoint)
            total += prompts + replies
        return total

    @property
    def is_reported(self) -> bool:
        """Whether there are enough reports on the tokens of requests to these endpoints."""
        return any(self.observed[endpoint].enough for endpoint in self.lacking if endpoint in self.observed)

    def money(self, price: Callable[[Endpoint], Price | None]) -> Foreseen | None:
        """Return the cost of these requests and their replies; None if a price is unknown."""
        spent = Foreseen()
        for endpoint in self.lacking:
            known = price(endpoint)
            if known is None:
                return None
            prompts, replies = self._tokens(endpoint)
            spent += prompts.times(exactly(known.of(1, 0))) + replies.times(exactly(known.of(0, 1)))
        return spent

    def _share(self, endpoint: Endpoint, requests: int) -> Foreseen:
        """Return the tokens of prompts as a share of those expected from their script."""
        observed = self.observed.get(endpoint, Observed())
        elsewhere = self.elsewhere.get(endpoint, Observed())
        if elsewhere.prompts.count > observed.prompts.count:
            return elsewhere.prompt_share(requests)
        return observed.prompt_share(requests)

    def _tokens(self, endpoint: Endpoint) -> tuple[Foreseen, Foreseen]:
        """Return the tokens of prompts and of replies."""
        unsent, observed = self.lacking[endpoint], self.observed.get(endpoint, Observed())
        requests = unsent.requests
        room = None if unsent.room is None else unsent.room / requests
        again = observed.asked_again(requests, self.further)
        prompts = exactly(unsent.expected).times(self._share(endpoint, requests))
        reply = exactly(0) if endpoint.scores else observed.reply(requests, room)
        replies = exactly(requests).times(reply)
        # A repeated request holds the prompt again, together with the reply.
        return prompts.times(exactly(1) + again + again), replies.times(exactly(1) + again)

    def too_long(self, endpoint: Endpoint, most: int) -> tuple[int, int]:
        """Return how many requests, with replies, exceed a server's context, and the tokens of the longest."""
        share = self._share(endpoint, 1).about
        requests = longest = 0
        for (expected, room), count in self.lacking.get(endpoint, Unsent()).sizes.items():
            tokens = round(expected * share) + room
            longest = max(longest, tokens)
            if tokens > most:
                requests += count
        return requests, longest

    @property
    def up_to(self) -> int | None:
        """The largest number of requests that it may take; None if unknown."""
        return None if self.further is None else self.requests + self.further

    @property
    def at_least(self) -> bool:
        """Whether further requests may follow."""
        return self.further is None or self.further > 0


def missing(units: Iterable[U], program: Program[U], lookup: Lookup, plan: Plan) -> Iterator[list[Request]]:
    """Yield the requests that a store lacks, each once, some units at a time; count everything in ``plan``."""
    seen: set[int] = set()
    source = iter(units)
    while jobs := begin(islice(source, CHUNK), program):
        plan.units += len(jobs)
        followed, unsent = follow(jobs, program, lookup), []
        for job in followed.waiting:
            most = most_requests(program, job.unit)
            if plan.further is not None:
                plan.further = None if most is None else plan.further + most - len(job.outcomes) - len(job.wave)
        for (key, request), new in zip(followed.wanted.items(), add_new(seen, followed.wanted), strict=True):
            plan.requests += new
            if new and (reply := followed.replies.get(key)):
                plan.cached += 1
                observed = plan.observed.setdefault(request.endpoint, Observed())
                observed.add(request.body, reply.usage, again=request.again)
            elif new:
                plan.lacking.setdefault(request.endpoint, Unsent()).add(request.body)
                unsent.append(request)
        yield unsent


def wanted(units: Iterable[U], program: Program[U], lookup: Lookup) -> Iterator[Request]:
    """Yield all requests, as far as stored replies lead to them; shared ones are yielded for each unit."""
    source = iter(units)
    while jobs := begin(islice(source, CHUNK), program):
        yield from follow(jobs, program, lookup).wanted.values()


def planned(units: Iterable[U], program: Program[U], lookup: Lookup) -> Plan:
    """Count the cost of a stage, given a store."""
    plan = Plan()
    for _ in missing(units, program, lookup, plan):
        pass
    return plan


def add_new(seen: set[int], keys: Iterable[str]) -> list[bool]:
    """Add keys to the seen ones; return for each whether it is new.

    Keys are kept as hashes of 64 bits, half of their size; the chance that two of a million collide is 3e-8.
    """
    fresh = []
    for key in keys:
        before = len(seen)
        seen.add(hash(key))
        fresh.append(len(seen) > before)
    return fresh
