"""A job: a command's requests and their evaluation, with everything read and checked.

It can be counted, split into parts to be answered elsewhere, or run.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, cast

from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Budget, Usage
from judgekit.client.stages import AllStages, StageUnit
from judgekit.client.sync import with_session
from judgekit.data.result_files import NOWHERE, ResultFiles
from judgekit.data.streams import recording_inputs
from judgekit.errors import UsageError
from judgekit.progress import Event

if TYPE_CHECKING:
    from judgekit.client.batch.files import BatchExport
    from judgekit.client.batch.service import Fetched
    from judgekit.client.session import Session
    from judgekit.client.waves import Lookup, Plan
    from judgekit.store.replies import Store
    from judgekit.wire.types import Endpoint

P = ParamSpec("P")
T = TypeVar("T")

Asks = Mapping[str, Callable[[], Iterator[StageUnit]]]
"""The requests to models by stage: functions that yield programs and their units."""


@dataclass(frozen=True)
class Job(Generic[T]):
    """A command with everything read and checked; nothing was sent or written.

    Attributes:
        asks: its requests.
        do: asks the session, writes the files, and returns the result.
        asking: the budget, the prices, and where replies are kept.
        files: the files that it writes.
        notes: sentences that a reader should know before anything is asked.
        about_plan: sentences about the number of requests.
    """

    asks: Asks
    do: Callable[[Session, ResultFiles], Awaitable[T]]
    asking: Asking = UNLIMITED
    files: ResultFiles = NOWHERE
    notes: tuple[str, ...] = ()
    about_plan: str = ""

    def plan(self) -> dict[str, Plan]:
        """Count what it would send, by stage and, under ``all``, together."""

        def note(text: str) -> None:
            self.asking.progress(Event("inputs", 0, None, note=text))

        return count(self.asks, self.asking.cache, again=self.asking.ask_again is not None, note=note)

    def part(self, number: int, of: int) -> dict[str, Usage]:
        """Have a part answered into the store, with its share of the budget and of the servers' limits.

        Nothing is written: once all parts are done, the job itself finds every reply in the store.

        Raises:
            UsageError: a server allows fewer requests at once than there are parts.
            StoppedError: as of the job.
        """
        asking = self.asking.within(budget_of(self.asking.budget, number, of))
        return replace(self, asking=asking).answered_part(number, of)

    def answered_part(self, number: int, of: int) -> dict[str, Usage]:
        """Have a part answered like `part`, with a budget for the part alone."""
        from judgekit.client.waves import planned

        def units() -> Iterator[StageUnit]:
            return part(self.asks, number, of)

        async def answered(session: Session) -> dict[str, Usage]:
            for endpoint in planned(units(), AllStages(), session.lookup).lacking:
                if endpoint.concurrency < of:
                    raise UsageError(
                        f"the concurrency of endpoint {endpoint.name!r} is {endpoint.concurrency}, which {of} parts"
                        " cannot share: raise it or use fewer parts"
                    )
            async for _ in session.resolve(units(), AllStages(), f"part {number} of {of}"):
                pass
            return session.totals()

        forget_unread(units(), self.asking)
        return with_session(answered, self.asking, (number, of))

    def submit(self) -> BatchExport:
        """Have the requests that the store lacks asked by their endpoints' batch services, usually at half the price.

        Nothing is written: once the replies are fetched, the job itself finds them in the store. Replies may lead to
        further requests; submit again then. What is under way is not submitted twice.

        Raises:
            UsageError: an endpoint has no batch service.
            EndpointError: a service refused the requests.
        """
        from judgekit.client.batch.service import submit

        forget_unread(everything(self.asks), self.asking)
        with self._store() as store:
            return submit(store, everything(self.asks), AllStages(), self._submitted_to(store))

    def fetch(self) -> Iterator[Fetched]:
        """Import the replies of batches that have ended into the store, and yield how far each is once it is read.

        Raises:
            EndpointError: a service refused to tell.
        """
        from judgekit.client.batch.service import fetch

        with self._store() as store:
            yield from fetch(store, self._submitted_to(store))

    def _store(self) -> closing[Store]:
        from judgekit.store.replies import Store, default_store_path

        path = default_store_path() if self.asking.cache is None else self.asking.cache
        return closing(Store(path))

    def _submitted_to(self, store: Store) -> list[Endpoint]:
        """Return its endpoints with a batch service."""
        from judgekit.client.batch.service import working_on
        from judgekit.client.waves import wanted

        requests = wanted(everything(self.asks), AllStages(), store.get_many)
        return working_on(store, (request.endpoint for request in requests))

    def writing(self, files: ResultFiles, write: Callable[[T, ResultFiles], None]) -> Job[T]:
        """Return the job that also writes its result, into files whose paths the command prints."""
        from judgekit.data.manifest import mismatches

        async def do(session: Session, files: ResultFiles) -> T:
            for line in mismatches(files.inputs):
                self.asking.progress(Event("inputs", 0, None, note=line))
            result = await self.do(session, files)
            write(result, files)
            files.close()
            return result

        return replace(self, do=do, files=files)

    def run(self) -> T:
        """Do it; works under a running event loop (a notebook) too."""
        # Before paying: a read-only folder would make the job fail at the end.
        self.files.check()
        forget_unread(everything(self.asks), self.asking)
        return with_session(lambda session: self.do(session, self.files), self.asking)


@dataclass(frozen=True)
class Settled(Job[T]):
    """A finished job without requests: it opens no store, and writes its result if wanted."""

    result: T | None = None
    write: Callable[[T, ResultFiles], None] | None = None

    @classmethod
    def of(cls, result: T) -> Settled[T]:
        """Return the job with this result."""

        async def do(_: Session, __: ResultFiles) -> T:
            return result

        return cls({}, do, result=result)

    def writing(self, files: ResultFiles, write: Callable[[T, ResultFiles], None]) -> Settled[T]:
        """Return the job that also writes its result."""
        return replace(self, files=files, write=write)

    def run(self) -> T:
        """Return the result, written if wanted."""
        result = cast(T, self.result)
        if self.write is not None:
            self.files.check()
            self.write(result, self.files)
            self.files.close()
        return result


class JobFunction(Protocol[P, T]):
    """A function of the Python API that does a job: ``build(…)``; ``build.plan(…)`` counts what it would send."""

    def __call__(self, *args: P.args, **options: P.kwargs) -> T:
        """Do the job."""

    def plan(self, *args: P.args, **options: P.kwargs) -> dict[str, Plan]:
        """Count what the job would send, by stage and, under ``all``, together; nothing is sent or written."""

    def job(self, *args: P.args, **options: P.kwargs) -> Job[T]:
        """Read and check everything."""


def job(read: Callable[P, Job[T]]) -> JobFunction[P, T]:
    """Turn a function that reads, checks and returns a job into one that does it."""

    def made(*args: P.args, **options: P.kwargs) -> Job[T]:
        # Files read later, such as recorded replies, are not inputs of the results.
        with recording_inputs() as noted:
            prepared = read(*args, **options)
            return replace(prepared, files=replace(prepared.files, read=tuple(noted)))

    @wraps(read)
    def done(*args: P.args, **options: P.kwargs) -> T:
        return made(*args, **options).run()

    def plan(*args: P.args, **options: P.kwargs) -> dict[str, Plan]:
        return made(*args, **options).plan()

    # Readers of the signature (help, Sphinx, notebooks) want the final result, not the job.
    signature = inspect.signature(read)
    returned = str(signature.return_annotation).removeprefix("Job[").removesuffix("]")
    done.__annotations__ = {**read.__annotations__, "return": returned}
    function = cast(Any, done)
    function.__signature__ = signature.replace(return_annotation=returned)
    function.plan, function.job = plan, made
    for name in ("plan", "job"):
        facet = getattr(function, name)
        described = getattr(JobFunction, name)
        facet.__name__, facet.__qualname__ = name, f"{read.__qualname__}.{name}"
        facet.__module__, facet.__doc__ = read.__module__, described.__doc__
        answer = inspect.signature(described).return_annotation if name == "plan" else signature.return_annotation
        facet.__signature__ = signature.replace(return_annotation=answer)
    return cast(JobFunction[P, T], done)


def everything(asks: Asks) -> Iterator[StageUnit]:
    """Yield the requests of all stages, one after the other."""
    return chain.from_iterable(units() for units in asks.values())


def forget_unread(units: Iterable[StageUnit], asking: Asking) -> None:
    """Forget the stored replies to these units that could not be read, if they are to be asked again."""
    # Imported here, since it is rarely needed.
    from judgekit.client.unread import unread_keys
    from judgekit.store.replies import Store, default_store_path, has_store

    path = default_store_path() if asking.cache is None else asking.cache
    if asking.ask_again is None or not has_store(path):
        return
    with closing(Store(path)) as store:
        keys = unread_keys(units, store.get_many)
        store.forget(keys)
    many = "no stored reply" if not keys else f"{len(keys):,} stored {'reply' if len(keys) == 1 else 'replies'}"
    again = f": {'it is' if len(keys) == 1 else 'they are'} asked for again" if keys else ""
    asking.progress(Event("inputs", 0, None, note=f"{many} could not be read{again}"))


def count(
    asks: Asks,
    cache: str | Path | None = None,
    *,
    again: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Plan]:
    """Count the requests of stages that a store lacks, by name and, under ``all``, together; nothing is sent.

    With ``again``, stored replies that could not be read count as missing. ``note`` gets the store's messages, for
    example about lost replies.
    """
    # Imported here, since labelling and answering need no counts.
    from judgekit.client.waves import planned
    from judgekit.store.replies import Store, default_store_path, has_store

    path = default_store_path() if cache is None else cache
    with ExitStack() as opened:
        lookup: Lookup = lambda _: {}  # noqa: E731  # nothing is stored yet
        if has_store(path):
            lookup = opened.enter_context(closing(Store(path, readonly=True, note=note))).get_many
        if again:
            lookup = _without_unread(asks, lookup)
        plans = {name: planned(units(), AllStages(), lookup) for name, units in asks.items()}
        plans["all"] = planned(everything(asks), AllStages(), lookup)
    # The length of one stage's stored replies predicts another stage's.
    for plan in plans.values():
        plan.elsewhere = plans["all"].observed
    return plans


def _without_unread(asks: Asks, lookup: Lookup) -> Lookup:
    """Return a look-up that skips replies that could not be read."""
    from judgekit.client.unread import unread_keys

    unread = frozenset(unread_keys(everything(asks), lookup))
    return lambda keys: lookup([key for key in keys if key not in unread])


def part_of(text: str) -> tuple[int, int]:
    """Read ``2/8``, the second of eight parts."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UsageError(f"--part {text}: give the part and the number of parts, e.g. 2/8; the first part is 1/8")
    return int(number), int(of)


def part(asks: Asks, number: int, of: int) -> Iterator[StageUnit]:
    """Yield a part of all requests; questions with the same text, which share requests, are in the same part."""
    # By text, not by id: questions with the same text share requests, which two parts would pay twice.
    for program, unit in everything(asks):
        if zlib.crc32(unit.query.text.encode(errors="surrogatepass")) % of == number - 1:
            yield program, unit


def budget_of(budget: Budget, number: int, of: int) -> Budget:
    """Return a part's share of a budget."""
    from judgekit.client.limits import piece_of

    requests, money = budget.max_requests, budget.max_cost
    if requests is not None:
        requests = piece_of(requests, number, of)
    if money is not None:
        money /= of
    return Budget(requests, money)
