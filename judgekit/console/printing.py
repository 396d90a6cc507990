"""How all commands speak: lines and notes, tables, one JSON object for machines, what a dry run counted, progress.

Progress is on standard error: bars on a terminal, lines elsewhere. The whole run stands above its stages: how much of
it is done, the time that is left, the money. What comes from the store takes no time and costs nothing, so it counts in
neither the rate nor what is still expected.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer
import typer.core

from judgekit.data.manifest import InputFile, manifest_path, mismatches, sources, write_manifest
from judgekit.data.outputs import as_json, clean
from judgekit.data.streams import check_outputs
from judgekit.errors import DataError, UsageError
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.progress import TaskID

    from judgekit.client.budget import Prices, Usage
    from judgekit.client.waves import Plan
    from judgekit.experiment.init import Draft
    from judgekit.store.replies import Store

T = TypeVar("T", bound="Callable[..., Any]")

_KINDS: Final = {
    "int": "N",
    "int range": "N",
    "list[int]": "N",
    "float range": "X",
    "float": "X",
    "path": "PATH",
    "list[Path]": "FILE",
    "str": "TEXT",
    "list[str]": "TEXT",
}
"""What typer calls the value of an option, and the word that stands for it in the help."""


class Command(typer.core.TyperCommand):
    """A command whose help shows its options under headings and ends with the examples of its docstring."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        text, _, examples = (settings.get("help") or "").partition("Examples:\n")
        super().__init__(*args, **settings | {"help": text.rstrip()})
        self.examples = dedent(examples).splitlines()

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return each parameter's name and text by heading, as the help shows them."""
        headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                panel = getattr(param, "rich_help_panel", None)
                heading = "Arguments" if param.param_type_name == "argument" else panel or "Options"
                name = re.sub(r"<(.+?)>", lambda found: _KINDS.get(found[1], found[0]), record[0])
                headings.setdefault(heading, []).append((name, record[1]))
        return {heading: rows for heading, rows in headings.items() if rows}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters by heading, and the examples."""
        for heading, rows in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':>{formatter.current_indent}}{line}\n" for line in self.examples))


class App(typer.Typer):
    """An app whose commands are each a `Command`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[T], T]:
        """Return a decorator that adds a function as a command."""
        return super().command(name, **{"cls": Command} | settings)


class Commands(typer.core.TyperGroup):
    """Commands under their headings, each with its whole first paragraph, which typer cuts off without rich."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands (typer's types are those of click, or its own copy of it)."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            if one := self.get_command(ctx, name):
                panel = getattr(one, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else "Commands"
                text = " ".join((one.help or "").split("\n\n")[0].split())
                headings.setdefault(heading, []).append((name, text))
        for heading, texts in headings.items():
            with formatter.section(heading):
                formatter.write_dl(texts)


def group(about: str, **settings: Any) -> App:
    """Return an app of commands whose help is plain text: importing what draws it richly takes longer than the rest."""
    return App(
        help=about,
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that neither truncates nor colours what is not shown on a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        """Shows what a terminal would obey; its own codes are added to what it renders here."""

        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else Segment(clean(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: 80 columns would cut tables, so lines are as long as they need to be.
    return CleanConsole(stderr=stderr, width=None if stream.isatty() else 200, soft_wrap=not stream.isatty())


def show_plan(plans: Mapping[str, Plan], prices: Prices, command: str = "", *, as_json: bool = False) -> None:
    """Print what a dry run counted, by stage; tokens as servers count them, where they do."""
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import context_lengths, observed_by
    from judgekit.client.sync import run_sync

    price = Spending(Budget(), prices).price
    counted = run_sync(observed_by(plans["all"].lacking))
    lengths = run_sync(context_lengths(plans["all"].lacking))
    rows: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        plan.elsewhere = {**plan.elsewhere, **counted}
        tokens, money = plan.tokens, plan.money(price)
        limit = None if plan.up_to is None else plan.up_to - plan.cached
        rows[name] = {
            "units": plan.units,
            "requests": plan.requests,
            "cached": plan.cached,
            "to_send": plan.requests - plan.cached,
            "to_send_at_most": limit,
            "tokens": round(tokens.about),
            "tokens_low": round(tokens.low),
            "tokens_high": round(tokens.high),
            "money": None if money is None else money.about,
            "money_low": None if money is None else money.low,
            "money_high": None if money is None else money.high,
        }
    for name, plan in plans.items():
        for endpoint, length in lengths.items() if name != "all" else ():
            many, longest = plan.too_long(endpoint, length)
            if many:
                cut = "set context_tokens under [answers.options]" if name.startswith("answer") else "shorten passages"
                note(
                    f"{name}: about {many:,} requests will not fit: with room for their replies they need up to"
                    f" {longest:,} tokens, and {endpoint.name} takes {length:,} (max_model_len). Start it with a larger"
                    f" --max-model-len, or {cut}"
                )
    if as_json:
        emit(command, dry_run=True, stages=rows, tokens_counted_by=sorted(one.name for one in counted))
        return
    priced = any(row["money"] is not None and plans[name].lacking for name, row in rows.items())
    lines = []
    for name, row in rows.items():
        further = plans[name].at_least
        least = "at least " if further else ""
        most = f"; up to {row['to_send_at_most']:,}" if further and row["to_send_at_most"] is not None else ""
        counts = [f"{row[what]:,}" for what in ("units", "requests", "cached")]
        counts += [f"{least}{row['to_send']:,}{most}", _about(row, "tokens")]
        lines.append([name, *counts, *([_about(row, "money")] if priced else [])])
    titles = ("stage", "units", "requests", "in the store", "to send", "tokens", *(["money"] if priced else ()))
    grid(titles, lines, left=1)
    say("Nothing was sent. A request that several stages share counts in each of them, and once in the total.")
    if any(plan.at_least for plan in plans.values()):
        say("More requests follow if a reply is cut off, has the wrong form or leads to others.")
    if any(row["tokens"] for row in rows.values()):
        reported = any(plan.is_reported for plan in plans.values())
        basis = (
            "what these endpoints reported of stored requests" if reported else "the length and script of the prompts"
        )
        say(f"Tokens{' and money' if priced else ''}: about, with replies, and the range; by {basis}.")
    for endpoint in counted:
        say(f"{endpoint.name} counted the tokens of some prompts (/tokenize); no model was asked.")


def _about(row: Mapping[str, Any], what: str) -> str:
    """Return what a row foresees of tokens or money, with its range."""
    from judgekit.client.estimates import rounded

    numbers = [row[what], row[f"{what}_low"], row[f"{what}_high"]]
    if None in numbers:
        return "–"
    if not any(numbers):
        return "0"
    about, low, high = (rounded(number) for number in numbers)
    return f"about {about} ({low} to {high})"


def grid(titles: Iterable[str], rows: Iterable[Iterable[str]], *, left: int | None = None, **style: Any) -> None:
    """Print a table of texts as they are; columns behind the first ``left`` are aligned to the right."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, **style)
    for number, title in enumerate(titles):
        table.add_column(clean(title), justify="left" if left is None or number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(clean(cell)) for cell in row))
    console().print(table)


def say(*lines: str, err: bool = False) -> None:
    """Print lines of any width as they are, on standard output or error."""
    typer.echo(clean("\n".join(lines)), err=err)


def note(*lines: str) -> None:
    """Print notes on standard error: what a reader of the output has to know."""
    for line in lines:
        say(f"note: {line}", err=True)


def show(table: pd.DataFrame) -> None:
    """Print a table, aligned; `--json` and files have all digits."""
    say(table.to_string(index=False, float_format=lambda x: f"{x:.4f}", na_rep="-"))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, for `emit`; what is missing is None."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15, force_ascii=False))
    return rows


def save_table(table: pd.DataFrame, out: Path, inputs: Mapping[str, InputFile]) -> None:
    """Write a table and, beside it, what it was made from."""
    from judgekit.data.files import write_table

    write_table(table, out)
    write_manifest(manifest_path(out), inputs, [out])


def emit(command: str, **fields: Any) -> None:
    """Print the one JSON object of a command; its shape is told in docs/cli.md."""
    typer.echo(as_json(json.dumps({"command": command, **fields}, ensure_ascii=False, indent=1, default=str)))


def usage_of(totals: Mapping[str, Usage]) -> dict[str, dict[str, Any]]:
    """Return by endpoint what was taken now, for `emit`."""
    return {
        name: {
            "sent": usage.sent,
            "cached": usage.cached,
            "failed": usage.failed,
            "prompt_tokens": usage.incurred.prompt_tokens,
            "completion_tokens": usage.incurred.completion_tokens,
            "money": usage.incurred.money,
        }
        for name, usage in totals.items()
    }


@contextmanager
def opened_store(*, readonly: bool) -> Iterator[Store]:
    """Open the user's reply store, and close it afterwards."""
    from judgekit.store.replies import Store, default_store_path, has_store

    path = default_store_path()
    if readonly and not has_store(path):
        raise UsageError(f"{path} holds no store: set JUDGEKIT_CACHE to the folder of yours")
    with closing(Store(path, readonly=readonly, note=note)) as store:
        yield store


def leave(table: pd.DataFrame, what: str, where: Path, *, asked: bool = True) -> None:
    """Leave with exit code 1 if something is missing, saying how much, why, where it is listed and what to do."""
    from judgekit.data.tables import NO_FAILURE, reasons

    counts = {str(status): int(n) for status, n in table["status"].value_counts().items()}

    missing = sum(n for status, n in counts.items() if status not in NO_FAILURE)
    if missing:
        verb = "is" if missing == 1 else "are"
        noun = what.removesuffix("s") if missing == 1 else what
        told = advice(counts if asked else {}, {} if asked else counts)
        say(f"judgekit: {missing:,} {noun} {verb} missing: {reasons(table)} (all are in {where}). {told}", err=True)
        raise typer.Exit(1)


def advice(asked: Mapping[str, int], read: Mapping[str, int]) -> str:
    """Return what to do about missing labels or answers, counted by status."""
    from judgekit.data.tables import NO_FAILURE, Status

    given, others = ({status for status, n in counts.items() if n} - set(NO_FAILURE) for counts in (asked, read))
    out = ["Run the same command again to retry failed requests."] if Status.FAILED in given else []
    if others:
        out.append("Without an LLM, running again changes nothing: add the missing entries to the file.")
    if given - {Status.FAILED}:
        out.append(
            "Unparsed, truncated and refused replies are kept, and the same command reuses them: try"
            " another prompt or model, or ask for everything again into another store (--cache FOLDER)."
        )
    return " ".join(out)


def made_from(named: Mapping[str, Path], read: Iterable[Path]) -> dict[str, InputFile]:
    """Hash what a command reads, for the manifest of what it writes; say where its inputs do not belong together."""
    inputs = sources(named, read)
    note(*mismatches(inputs))
    return inputs


def write_draft(made: Draft, *, overwrite: bool, first: str = "") -> None:
    """Write what was made of files, and show it below a first line."""
    from judgekit.experiment.trust import own

    width = max(len(file.name) for file in made.files)
    there = next((path for path in made.files_written if path.exists()), None)
    if there is not None and not overwrite and not made.lacking:
        raise UsageError(f"{there} already exists: replace it with --overwrite, or name another folder with --out")
    # Written before anything is shown: whoever reads the output may close it after the first line.
    if not made.lacking:
        check_outputs(*made.files_written)
        made.write()
        own(made.files_written[0])
    if first:
        say(first)
    for file in made.files:
        say(f"{file.name:<{width}}  {file.taken}", *(f"{'':<{width}}    {line}" for line in file.columns))
    note(*made.cautions)
    if made.lacking:
        raise DataError(made.lacking)
    experiment = made.files_written[0]
    needs = "Fill in base_url and model of your server" if made.asks else "It needs no server"
    say("", f"Wrote {experiment}.", f"{needs}. Then plan, which asks no model:")
    say("", f"  judgekit plan {shlex.quote(str(experiment))}")


_LINE_EVERY_S: Final = 30.0
_ENOUGH: Final = 5
"""Units that were asked for, from which on time and money are foreseen."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw events: bars on a terminal; otherwise one line per finished stage, and now and then one for the whole."""
    drawn = _Bars() if sys.stderr.isatty() else _Lines()
    with drawn.bars:
        yield drawn
    if drawn.course.spent is not None:
        sys.stderr.write(f"spent: {drawn.course.spent:,.4g}\n")


class Course:
    """How far a whole run is: its stages, those to come included, and what they take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.spent: float | None = None
        self._clock = clock
        self._ahead: dict[str, int] = {}
        self._stages: dict[str, Event] = {}
        self._times: dict[str, tuple[float, float]] = {}

    def note(self, event: Event) -> None:
        """Take in an event."""
        self._ahead |= event.ahead
        if event.spent is not None:
            self.spent = event.spent
        if event.total is not None or event.sent:
            now = self._clock()
            self._stages[event.stage] = event
            self._times[event.stage] = (self._times.get(event.stage, (now, now))[0], now)

    def seconds(self, stage: str) -> float:
        """Return how long a stage has been running."""
        begun, _ = self._times.get(stage, (self._clock(),) * 2)
        return self._clock() - begun

    def _asking(self) -> dict[str, tuple[int, int, float | None]]:
        """Return (units done, units in all, share of them that is asked for, if known) of the stages that ask."""
        found: dict[str, tuple[int, int, float | None]] = {}
        for name, total in self._ahead.items():
            found[name] = (0, total, None)
        for name, one in self._stages.items():
            requests = one.sent + one.cached + one.failed
            if name in found or requests:
                share = (one.sent + one.failed) / requests if requests and one.done else None
                found[name] = (one.done, max(one.total or 0, self._ahead.get(name, 0), one.done), share)
        return found

    @property
    def units(self) -> tuple[int, int]:
        """Units done, and in all, of the stages that ask somebody."""
        asking = self._asking().values()
        return sum(done for done, _, _ in asking), sum(total for _, total, _ in asking)

    def foreseen(self) -> tuple[float, float | None] | None:
        """Return the seconds left and the money that it will have cost in all; None while too little is known."""
        asking = self._asking()
        new = sum(done * share for done, _, share in asking.values() if share is not None)
        if new < _ENOUGH:
            return None
        known = sum(done for done, _, share in asking.values() if share is not None)
        left = sum((total - done) * (new / known if share is None else share) for done, total, share in asking.values())
        times = (self._times[name] for name, (_, _, share) in asking.items() if share)
        pace = sum(last - first for first, last in times) / new
        money = None if self.spent is None else self.spent * (1 + left / new)
        return left * pace, money

    def told(self) -> str:
        """Return it in words: ``37%, about 12 min left, 3 failed, 0.42 spent of about 1.10``."""
        done, total = self.units
        if not total:
            return ""
        foreseen = self.foreseen()
        parts = [f"{done / total:.0%}"]
        if foreseen is not None and done < total:
            parts.append(f"about {_lasting(foreseen[0])} left")
        failed = sum(event.failed for event in self._stages.values())
        if failed:
            parts.append(f"{failed:,} failed")
        if self.spent is not None:
            parts.append(f"{self.spent:,.4g} spent")
            if foreseen is not None and foreseen[1] is not None and done < total:
                parts[-1] += f" of about {foreseen[1]:,.4g}"
        limit = next((event.limit for event in reversed(self._stages.values()) if event.limit is not None), None)
        return ", ".join(parts) + ("" if limit is None else f" (at most {limit:,.4g})")


def _lasting(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _details(event: Event) -> str:
    parts = [f"{event.sent:,} sent", f"{event.cached:,} from the store"]
    if event.failed:
        parts.append(f"{event.failed:,} failed")
    return ", ".join(parts) if event.sent or event.cached or event.failed else ""


class _Told:
    """How far the run is, and which notes were shown."""

    bars: AbstractContextManager[object] = nullcontext()

    def __init__(self) -> None:
        self.course = Course()
        self.notes = {""}

    def note(self, event: Event) -> str:
        """Take in an event; return its note where that is new."""
        self.course.note(event)
        new = event.note not in self.notes
        self.notes.add(event.note)
        return event.note * new


class _Bars(_Told):
    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeElapsedColumn

        super().__init__()
        self.bars: Bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[details]}"),
            console=console(stderr=True),
        )
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        if new := self.note(event):
            self.bars.console.print(f"note: {new}", markup=False)
        told = self.course.told()
        if told:
            done, total = self.course.units
            self._draw("the whole run", done, total, "", told)
        if event.total is not None or not (event.note or event.ahead):
            seconds = self.course.seconds(event.stage)
            rate = f"{event.sent / seconds:,.1f}/s" if event.sent and seconds > 0.5 else ""
            self._draw(event.stage, event.done, event.total, rate, _details(event))

    def _draw(self, name: str, done: int, total: int | None, rate: str, details: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total, rate="", details="")
        self.bars.update(self.tasks[name], completed=done, total=total, rate=rate, details=details)


class _Lines(_Told):
    def __init__(self) -> None:
        super().__init__()
        self.started: dict[str, float] = {}
        self.finished: set[str] = set()
        self.told_at = time.monotonic()

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        started = self.started.setdefault(event.stage, now)
        if new := self.note(event):
            say(f"note: {new}", err=True)
        if event.total is not None and event.done >= event.total and event.stage not in self.finished:
            self.finished.add(event.stage)
            details = _details(event)
            say(f"{event.stage}: {event.done:,} in {now - started:.1f} s{', ' * bool(details)}{details}", err=True)
        elif now - self.told_at >= _LINE_EVERY_S and (told := self.course.told()):
            self.told_at = now
            of = "" if event.total is None else f" of {event.total:,}"
            say(f"{told}; {event.stage}: {event.done:,}{of}", err=True)
        sys.stderr.flush()
