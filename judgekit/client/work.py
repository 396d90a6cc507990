"""The work of one `Session.resolve`: units, the waves of requests they wait for, and what has come of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from judgekit.client.ledger import Account
from judgekit.client.runtime import Mailbox, Runtime
from judgekit.wire.types import Outcome, Program, Reply, Request

__all__ = ["Books", "Job", "Work"]

U = TypeVar("U")


class Books(Protocol):
    """What the work needs of a session."""

    def lookup(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return what is stored of these requests."""
        ...

    def replayed(self, account: Account, requests: dict[str, Request], replies: dict[str, Reply]) -> None:
        """Book replies from the store."""
        ...

    def answered(self, account: Account, request: Request, outcome: Outcome) -> None:
        """Book what an endpoint answered."""
        ...


class Job(Generic[U]):
    """A unit on its way: its outcomes so far, the wave that is being waited for, and what of it has come."""

    __slots__ = ("got", "lacking", "outcomes", "unit", "wave")

    def __init__(self, unit: U, wave: list[Request]) -> None:
        self.unit = unit
        self.wave = wave
        self.outcomes: list[Outcome] = []
        self.got: list[Outcome | None] = []
        self.lacking = 0


class Work(Generic[U]):
    """The work of one `Session.resolve`: which jobs wait for which request."""

    def __init__(self, books: Books, program: Program[U], account: Account, runtime: Runtime) -> None:
        self.books = books
        self.program = program
        self.account = account
        self.runtime = runtime
        self.box = Mailbox()
        self.open = 0
        self._waiting: dict[str, list[tuple[Job[U], int]]] = {}

    def start(self, units: Iterable[U]) -> list[Job[U]]:
        """Begin with further units; return the jobs that ended at once."""
        jobs = [Job(unit, self.program.requests(unit, ())) for unit in units]
        self.open += len(jobs)
        return self._advance(jobs)

    def proceed(self) -> list[Job[U]]:
        """Take in what arrived; return the jobs that ended by it."""
        ready: list[Job[U]] = []
        while self.box.arrived:
            request, outcome = self.box.arrived.popleft()
            self.books.answered(self.account, request, outcome)
            for job, index in self._waiting.pop(request.key):
                job.got[index] = outcome
                job.lacking -= 1
                if not job.lacking:
                    self._next_wave(job)
                    ready.append(job)
        return self._advance(ready)

    def _next_wave(self, job: Job[U]) -> None:
        job.outcomes.extend(job.got)  # type: ignore[arg-type]  # nothing is lacking any more
        job.wave = self.program.requests(job.unit, job.outcomes)

    def _advance(self, jobs: list[Job[U]]) -> list[Job[U]]:
        """Answer waves from the store and submit what it lacks; return the jobs that ended."""
        ended: list[Job[U]] = []
        while jobs:
            wanted = {request.key: request for job in jobs for request in job.wave}
            replies = self.books.lookup(list(wanted))
            self.books.replayed(self.account, wanted, replies)
            going: list[Job[U]] = []
            for job in jobs:
                got: list[Outcome | None] = []
                job.lacking = 0
                for request in job.wave:
                    reply = replies.get(request.key)
                    got.append(reply)
                    if reply is None:
                        job.lacking += 1
                job.got = got
                if job.lacking:
                    self._await(job)
                    continue
                if job.wave:
                    self._next_wave(job)
                (going if job.wave else ended).append(job)
            jobs = going
        self.open -= len(ended)
        return ended

    def _await(self, job: Job[U]) -> None:
        for index, (request, got) in enumerate(zip(job.wave, job.got, strict=True)):
            if got is None:
                self._waiting.setdefault(request.key, []).append((job, index))
                self.runtime.submit(request, self.account, self.box)
