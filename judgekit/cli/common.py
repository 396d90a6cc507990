"""What all commands share: options, errors as sentences, and the drawing of progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core

from judgekit.errors import UsageError, not_among
from judgekit.progress import Event, Progress
from judgekit.spec import parse, split_form, split_named

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from judgekit.data.manifest import Source
    from judgekit.wire.types import Endpoint

__all__ = [
    "Api",
    "ApiKeyEnv",
    "BaseUrl",
    "Cache",
    "CacheMode",
    "Commands",
    "Concurrency",
    "DocsFile",
    "FormatIn",
    "Limit",
    "Mode",
    "Model",
    "Prompts",
    "QueriesFile",
    "Quiet",
    "Runs",
    "Transport",
    "advice",
    "console",
    "endpoints",
    "group",
    "in_forms",
    "inputs_of",
    "leave",
    "made_from",
    "named",
    "progress",
    "store_path",
]

QueriesFile = Annotated[
    Path, typer.Option("--queries", metavar="[FORM:]FILE", help="Queries: query_id, text, answers; docs/formats.md.")
]
DocsFile = Annotated[
    list[Path],
    typer.Option("--docs", metavar="[FORM:]FILE", help="Documents: doc_id, text, title; repeat for several."),
]
FormatIn = Annotated[
    list[str] | None,
    typer.Option(
        "--format-in",
        metavar="[ROLE=]FORM",
        help="Form of an input where its content does not tell, e.g. 'queries=jsonl(id=qid,text=question)'; a role is"
        " queries, docs, qrels, run, or the name of one; repeat.",
    ),
]
Runs = Annotated[list[str], typer.Option("--run", metavar="[NAME=]FILE", help="TREC run; repeat for several.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N queries.")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", envvar="JUDGEKIT_CACHE", help="Folder of the reply store (default: your cache folder)."),
]
Mode = Literal["on", "off", "read-only", "refresh"]
CacheMode = Annotated[Mode, typer.Option(help="Reply cache: on, off, read-only or refresh (ask everything again).")]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FOLDER", help="Your own prompts, found before ours by short names."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not draw progress.")]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="OpenAI-compatible server, e.g. http://localhost:8000/v1; repeat for several servers of the same model; or"
        " mock:, which is not an LLM.",
    ),
]
Model = Annotated[str | None, typer.Option(help="Id of the model to ask.")]
Transport = Annotated[Literal["http", "openai"], typer.Option(help="Client to send with: our own, or openai's.")]
Api = Annotated[
    Literal["chat", "completions", "responses"],
    typer.Option(help="API of the server; completions is for base models without a chat template."),
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="Name of the environment variable that holds the key.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Number of requests in flight at most.")]


class Commands(typer.core.TyperGroup):
    """Commands, each with its whole first paragraph, which typer cuts off where rich does not draw it."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands (typer's types are those of click, or its own copy of it)."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        texts = [(name, " ".join((one.help or "").split("\n\n")[0].split())) for name, one in commands if one]
        with formatter.section("Commands"):
            formatter.write_dl(texts)


def group(about: str, **settings: Any) -> typer.Typer:
    """Return an app of commands whose help is plain text: importing what draws it richly takes longer than the rest."""
    return typer.Typer(
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

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: 80 columns would cut tables, so lines are as long as they need to be.
    return Console(stderr=stderr, width=None if stream.isatty() else 200, soft_wrap=not stream.isatty())


def named(items: list[str], what: str) -> dict[str, Path]:
    """Read ``[NAME=]FILE`` arguments; the file's stem is the default name.

    Raises:
        UsageError: two files have the same name.
    """
    out: dict[str, Path] = {}
    for item in items:
        name, file = split_named(item)
        if not file:
            raise UsageError(f"{what} {item}: the name of the file is missing behind '='")
        path = Path(file)
        name = name or Path(split_form(path)[1]).name.removesuffix(".gz").rsplit(".", 1)[0]
        if name in out:
            raise UsageError(f"two {what}s are named {name!r} ({out[name]} and {path}): name them, {what}=NAME=FILE")
        out[name] = path
    return out


def in_forms(forms: list[str] | None, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return inputs by role (``queries``, ``docs``, ``run NAME``, …), each with the form that ``--format-in`` names.

    Raises:
        UsageError: a form is for no input.
    """
    from judgekit.data.forms import told

    out = dict(files)
    for item in forms or ():
        role, form = split_named(item)
        parse(form)
        names = [name for name in files if role in (None, name, *name.split(" ", 1))]
        if not names:
            raise UsageError(f"--format-in {item}: {not_among('input', role or '', files)}")
        out |= {name: told(files[name], form) for name in names}
    return out


def inputs_of(
    forms: list[str] | None, queries: Path, docs: list[Path], runs: Mapping[str, Path]
) -> tuple[Path, list[Path], dict[str, Path], dict[str, Path]]:
    """Return queries, docs, runs by name, and all of them by role, in the forms that the user names."""
    files = {"queries": queries} | {f"docs {i}" if i > 1 else "docs": path for i, path in enumerate(docs, 1)}
    files = in_forms(forms, files | {f"run {name}": path for name, path in runs.items()})
    found = [path for role, path in files.items() if role.split()[0] == "docs"]
    return files["queries"], found, {name: files[f"run {name}"] for name in runs}, files


def endpoints(
    base_urls: list[str] | None,
    model: str | None,
    api_key_env: str | None = None,
    concurrency: int = 16,
    transport: Literal["http", "openai"] = "http",
    api: Literal["chat", "completions", "responses"] = "chat",
) -> dict[str, Endpoint]:
    """Return the one endpoint that the options describe, or none.

    Raises:
        UsageError: the endpoint is half described.
    """
    from judgekit.wire.types import Endpoint

    if not base_urls and model is None:
        return {}
    if not base_urls or model is None:
        raise UsageError("--base-url and --model belong together: an endpoint needs both")
    one = Endpoint("default", base_urls[0], model, api_key_env, concurrency=concurrency, transport=transport, api=api)
    return {one.name: replace(one, base_urls=tuple(base_urls))}


def store_path(cache: Path | None) -> Path:
    """Return the folder of the reply store: the option or variable, else the user's cache folder."""
    from judgekit.store.replies import default_store_path

    return default_store_path() if cache is None else cache


def leave(counts: Mapping[str, int], what: str, where: Path, *, asked: bool = True) -> None:
    """Leave with exit code 1 if something is missing, saying how much, where it is listed and what to do.

    Args:
        counts: by status, how many; those that are excused are not counted.
        what: the plural of what is missing.
        where: the file that lists the reasons.
        asked: whether an LLM was asked.
    """
    from judgekit.data.tables import NO_FAILURE

    missing = sum(n for status, n in counts.items() if status not in NO_FAILURE)
    if missing:
        verb = "is" if missing == 1 else "are"
        noun = what.removesuffix("s") if missing == 1 else what
        told = advice(counts if asked else {}, {} if asked else counts)
        sys.stderr.write(f"judgekit: {missing:,} {noun} {verb} missing; the reasons are in {where}. {told}\n")
        raise typer.Exit(1)


def advice(asked: Mapping[str, int], read: Mapping[str, int]) -> str:
    """Return what to do about missing labels or answers, counted by status.

    Args:
        asked: those that an LLM was asked for.
        read: the others.
    """
    from judgekit.data.tables import NO_FAILURE, Status

    given, others = ({status for status, n in counts.items() if n} - set(NO_FAILURE) for counts in (asked, read))
    out = ["What failed is asked for again by the same command."] if Status.FAILED in given else []
    if others:
        out.append(
            "Where no LLM is asked, running this again changes nothing: what a file lacks has to be added to it."
        )
    if given - {Status.FAILED}:
        out.append(
            "Where the model replied (unparsed, truncated, refused) its reply is kept, and the same command finds it"
            " again: try another prompt or model, or --cache-mode refresh, which asks for everything anew."
        )
    return " ".join(out)


def made_from(named: Mapping[str, Path], read: Iterable[Path]) -> dict[str, Source]:
    """Hash what a command reads, for the manifest of what it writes; say where its inputs do not belong together.

    Args:
        named: inputs by role, as in `judgekit.data.manifest.sources`.
        read: all files that were read.
    """
    from judgekit.data.manifest import mismatches, sources

    inputs = sources(named, read)
    for line in mismatches(inputs):
        console(stderr=True).print(f"note: {line}", markup=False, highlight=False)
    return inputs


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """Draw events: a bar per stage on a terminal, one line per finished stage otherwise; all on stderr."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        drawer = _Bars()
        with drawer.bars:
            yield drawer
    else:
        yield _Lines()


def _details(event: Event) -> str:
    parts = [f"{event.sent:,} sent", f"{event.cached:,} from the store"]
    if event.failed:
        parts.append(f"{event.failed:,} failed")
    return ", ".join(parts) if event.sent or event.cached or event.failed else ""


class _Bars:
    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.bars: Bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[details]}"),
            console=console(stderr=True),
        )
        self.tasks: dict[str, TaskID] = {}
        self.started: dict[str, float] = {}
        self.notes: set[str] = set()

    def __call__(self, event: Event) -> None:
        if event.stage not in self.tasks:
            self.tasks[event.stage] = self.bars.add_task(event.stage, total=event.total, rate="", details="")
            self.started[event.stage] = time.monotonic()
        seconds = time.monotonic() - self.started[event.stage]
        self.bars.update(
            self.tasks[event.stage],
            completed=event.done,
            total=event.total,
            rate=f"{event.done / seconds:,.0f}/s" if seconds > 0.5 else "",
            details=_details(event),
        )
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            self.bars.console.print(f"note: {event.note}", markup=False)


class _Lines:
    def __init__(self) -> None:
        self.started: dict[str, float] = {}
        self.finished: set[str] = set()
        self.notes: set[str] = set()

    def __call__(self, event: Event) -> None:
        started = self.started.setdefault(event.stage, time.monotonic())
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            sys.stderr.write(f"note: {event.note}\n")
        if event.total is not None and event.done >= event.total and event.stage not in self.finished:
            self.finished.add(event.stage)
            details = _details(event)
            seconds = time.monotonic() - started
            sys.stderr.write(f"{event.stage}: {event.done:,} in {seconds:.1f} s{', ' + details if details else ''}\n")
        sys.stderr.flush()
