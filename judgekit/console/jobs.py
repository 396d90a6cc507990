"""The options of all commands that ask models, and the execution of their jobs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar

import typer

from judgekit.client.asking import Asking
from judgekit.console.bars import progress
from judgekit.console.batches import fetched_batches, submitted_batches
from judgekit.console.dry_run import counted, show_plan
from judgekit.console.options import ENDPOINT, AsJson, Cache, EndpointOptions, Wait, declared_option
from judgekit.console.printing import say
from judgekit.console.results import CommandResult
from judgekit.errors import UsageError
from judgekit.progress import Event, Progress, silent

if TYPE_CHECKING:
    from judgekit.client.budget import Prices
    from judgekit.job import Job, JobFunction

T = TypeVar("T")


@dataclass(frozen=True)
class JobOptions:
    """How to ask models, as declared by `Asking`, and what to do with the job."""

    max_cost: Annotated[float | None, declared_option(Asking, "max_cost", rich_help_panel=ENDPOINT)] = None
    max_requests: Annotated[int | None, declared_option(Asking, "max_requests", rich_help_panel=ENDPOINT)] = None
    wait_s: Wait = 0.0
    cache: Cache = None
    ask_again: Annotated[Literal["unread"] | None, declared_option(Asking, "ask_again", rich_help_panel=ENDPOINT)] = (
        None
    )
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the requests and estimate their price; ask no model.")
    ] = False
    part: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Fetch only the replies of part I of N, e.g. 2/8, with its share of limits and budget. When all parts"
            " are done, run without this option.",
        ),
    ] = None
    batch: Annotated[
        Literal["submit", "fetch"] | None,
        typer.Option(
            help="Use the endpoint's batch service: submit the requests that have no stored reply, or fetch their"
            " replies into the store. When all are there, run without this option."
        ),
    ] = None
    as_json: AsJson = False

    def asking(self, draw: Progress = silent, prices: Prices | None = None) -> Asking:
        """Return the settings for asking models."""
        declared = {setting.name for setting in fields(Asking)}
        given = {option.name: getattr(self, option.name) for option in fields(self) if option.name in declared}
        return Asking(**given, progress=draw, prices=prices or {})

    def carry_out(self, command: str, function: JobFunction[..., T], /, *args: Any, **options: Any) -> T:
        """Do a job and draw its progress; a dry run shows what it would send, and ends the command."""
        return self._carried_out(command, function, {}, *args, **options)

    def _carried_out(
        self, command: str, function: JobFunction[..., T], prices: Prices, /, *args: Any, **options: Any
    ) -> T:
        from judgekit.job import part_of

        self._check_one_way()
        part = None if self.part is None else part_of(self.part)
        with progress() as draw:
            job = function.job(*args, **options, asking=self.asking(draw, prices))
            # Draw notes as progress, so that a job that also reports them does not repeat them.
            for line in job.notes:
                draw(Event("inputs", 0, None, note=line))
            if part is not None:
                self._end(command, _of_part(job, *part))
            if self.batch == "submit":
                self._end(command, submitted_batches(job.submit()))
            if self.batch == "fetch":
                self._end(command, fetched_batches(job.fetch(), as_json=self.as_json))
            if not self.dry_run:
                return job.run()
            # Check a single file now, since it has only this purpose. A results folder is checked with its results.
            if not job.files.is_folder:
                job.files.check()
            plans = job.plan()
        about = [job.about_plan] if job.about_plan else []
        record = {"plan": counted(plans, job.asking.prices)} if self.as_json else {}
        self._end(command, CommandResult(lambda: show_plan(plans, job.asking.prices), record, warnings=about))

    def _check_one_way(self) -> None:
        """Refuse several ways to do a job, and limits that do not apply to one of them."""
        # They do different things, and doing only one would look like both.
        ways = [name for name in ("dry_run", "part", "batch") if getattr(self, name)]
        if len(ways) > 1:
            first, second = (f"--{name.replace('_', '-')}" for name in ways[:2])
            raise UsageError(f"{second} fills the store: use it without {first}")
        limits = [name for name in ("max_cost", "max_requests") if getattr(self, name) is not None]
        # A batch is sent as a whole: its cost is known before submission, and cannot be limited afterwards.
        if self.batch is not None and limits:
            name = f"--{limits[0].replace('_', '-')}"
            raise UsageError(f"--batch submits all requests: leave out {name}, and see with --dry-run what they cost")

    def _end(self, command: str, result: CommandResult) -> NoReturn:
        """End the command without the results of its job."""
        result.end(command, as_json=self.as_json)
        raise typer.Exit


def _of_part(job: Job[Any], number: int, of: int) -> CommandResult:
    """Answer a part of a job, and return its cost; a part has no results."""
    taken = job.part(number, of).values()
    counts = {what: sum(getattr(usage, what) for usage in taken) for what in ("sent", "cached", "failed")}
    told = (
        f"part {number} of {of}: {counts['sent']:,} requests sent, {counts['cached']:,} answered from the store,"
        f" {counts['failed']:,} failed"
    )
    record = {"part": {"number": number, "of": of, **counts}}
    return CommandResult(lambda: say(told), record, exit_code=1 if counts["failed"] else 0)


@dataclass(frozen=True)
class AskOptions(JobOptions, EndpointOptions):
    """All options for an endpoint and for asking it."""

    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of requests in flight (default: 16).", rich_help_panel=ENDPOINT),
    ] = None

    def carry_out(self, command: str, function: JobFunction[..., T], /, *args: Any, **options: Any) -> T:
        """Do a job with the endpoints in the options."""
        # Report a wrong server before reading a large collection.
        servers = self.servers()
        endpoints = list(servers.endpoints.values())
        if self.dry_run:  # a run reports it itself
            from judgekit.experiment.prepare import check_access

            check_access(endpoints)
        return self._carried_out(command, function, servers.prices, *args, endpoints=endpoints or None, **options)
