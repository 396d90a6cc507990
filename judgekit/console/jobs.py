"""The options of every command that asks, and the one place where its job is carried out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar

import typer

from judgekit.client.asking import Asking
from judgekit.console.bars import progress
from judgekit.console.dry_run import show_plan
from judgekit.console.options import ENDPOINT, Cache, EndpointOptions, Wait, declared_option
from judgekit.console.printing import note, say
from judgekit.errors import UsageError
from judgekit.progress import Event, Progress, silent

if TYPE_CHECKING:
    from judgekit.client.budget import Prices
    from judgekit.job import Job, JobFunction

T = TypeVar("T")


@dataclass(frozen=True)
class JobOptions:
    """How models are asked, as `Asking` declares it, and what is done with the job."""

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

    def asking(self, draw: Progress = silent, prices: Prices | None = None) -> Asking:
        """Return how models are asked."""
        declared = {setting.name for setting in fields(Asking)}
        given = {option.name: getattr(self, option.name) for option in fields(self) if option.name in declared}
        return Asking(**given, progress=draw, prices=prices or {})

    def carry_out(self, function: JobFunction[..., T], /, *args: Any, **options: Any) -> T:
        """Do a job with its progress drawn; a dry run shows what it would send, and ends the command."""
        return self._carried_out(function, {}, *args, **options)

    def _carried_out(self, function: JobFunction[..., T], prices: Prices, /, *args: Any, **options: Any) -> T:
        # Each answers another question: doing only one of two would be taken for both.
        if self.part is not None and self.dry_run:
            raise UsageError("--part fills the store: use it without --dry-run")
        from judgekit.job import part_of

        part = None if self.part is None else part_of(self.part)
        with progress() as draw:
            job = function.job(*args, **options, asking=self.asking(draw, prices))
            # Drawn as progress, so that a job which says them of itself does not repeat them.
            for line in job.notes:
                draw(Event("inputs", 0, None, note=line))
            if part is not None:
                _end_part(job, *part)
            if not self.dry_run:
                return job.run()
            # A folder for results is looked at when there are some; a single file is named for this one purpose.
            if not job.files.is_folder:
                job.files.check()
            plans = job.plan()
        show_plan(plans, job.asking.prices)
        if job.about_plan:
            note(job.about_plan)
        raise typer.Exit


def _end_part(job: Job[Any], number: int, of: int) -> NoReturn:
    """Have a part of a job answered, say what it took, and end the command: a part makes no results."""
    taken = job.part(number, of).values()
    sent, cached, failed = (sum(getattr(usage, what) for usage in taken) for what in ("sent", "cached", "failed"))
    say(f"part {number} of {of}: {sent:,} requests sent, {cached:,} answered from the store, {failed:,} failed")
    raise typer.Exit(1 if failed else 0)


@dataclass(frozen=True)
class AskOptions(JobOptions, EndpointOptions):
    """Everything that is said of one endpoint and of asking it."""

    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of requests in flight (default: 16).", rich_help_panel=ENDPOINT),
    ] = None

    def carry_out(self, function: JobFunction[..., T], /, *args: Any, **options: Any) -> T:
        """Do a job with the endpoints that the options name."""
        # A wrong server is told before a large collection is read.
        servers = self.servers()
        endpoints = list(servers.endpoints.values())
        if self.dry_run:  # a run says so itself
            from judgekit.experiment.prepare import check_access

            check_access(endpoints)
        return self._carried_out(function, servers.prices, *args, endpoints=endpoints or None, **options)
