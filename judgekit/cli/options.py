"""The options that several commands share, each declared once, and what they describe: files, an endpoint, a budget.

Options that go together are a dataclass. A command under `expanded` takes them as one parameter.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from judgekit.cli.common import show_plan
from judgekit.cli.drawing import progress
from judgekit.errors import UsageError, not_among
from judgekit.spec import parse, split_form, split_named

if TYPE_CHECKING:
    from judgekit.client.budget import Budget, Price, Usage
    from judgekit.client.session import Session
    from judgekit.wire.types import Endpoint

T = TypeVar("T")

__all__ = [
    "Api",
    "ApiKeyEnv",
    "AsJson",
    "AskOptions",
    "BudgetOptions",
    "Cache",
    "DocsFile",
    "DryRun",
    "Format",
    "FormatIn",
    "FormatOption",
    "Limit",
    "PriceOptions",
    "Prompts",
    "QueriesFile",
    "Quiet",
    "RunOptions",
    "Runs",
    "ScaleOption",
    "ServerOptions",
    "StoreOptions",
    "Transport",
    "Wait",
    "expanded",
    "in_forms",
    "inputs_of",
    "named",
    "scales_of",
]

QueriesFile = Annotated[
    Path, typer.Option("--queries", metavar="[FORM:]FILE", help="Queries: query_id, text, answers; docs/formats.md.")
]
DocsFile = Annotated[
    list[Path] | None,
    typer.Option("--docs", metavar="[FORM:]FILE", help="Documents: doc_id, text, title; repeat for several."),
]
Runs = Annotated[list[str] | None, typer.Option("--run", metavar="[NAME=]FILE", help="TREC run; repeat for several.")]
FormatIn = Annotated[
    list[str] | None,
    typer.Option(
        "--format-in",
        metavar="[ROLE=]FORM",
        help="Form of an input where its content does not tell, e.g. 'queries=jsonl(id=qid,text=question)'; a role is"
        " queries, docs, qrels, run, or the name of one; repeat.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N queries.")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", envvar="JUDGEKIT_CACHE", help="Folder of the reply store (default: your cache folder)."),
]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FOLDER", help="Your own prompts, found before ours by short names."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not draw progress.")]
Transport = Annotated[Literal["http", "openai"], typer.Option(help="Client to send with: our own, or openai's.")]
Api = Annotated[
    Literal["chat", "completions", "responses"],
    typer.Option(help="API of the server; completions is for base models without a chat template."),
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="Name of the environment variable that holds the key.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would be sent, and its price; ask no model.")]
Wait = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Wait that long for a server that is not ready yet.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines; see docs/terminal.md.")]
Format = Literal["table", "csv", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="Format of the output.")]
ScaleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scale", metavar="NAME=SCALE", help="Scale of a qrels file: binary, grades:3, means:5:2, unit or signed."
    ),
]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes, in place of each parameter that is a dataclass of options, these options."""
    plain = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in plain.parameters.items() if is_dataclass(one.annotation)
    }
    options: list[inspect.Parameter] = []
    for name, one in plain.parameters.items():
        kinds = inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [one]
        options += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in kinds]

    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {option.name: option.annotation for option in options}
    called.__signature__ = plain.replace(parameters=options)  # type: ignore[attr-defined]  # typer reads the command's options off it
    return called


@dataclass(frozen=True)
class ServerOptions:
    """The endpoint that is asked."""

    base_url: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="OpenAI-compatible server, e.g. http://localhost:8000/v1; repeat for several servers of the same"
            " model; or mock:, which is not an LLM.",
        ),
    ] = None
    model: Annotated[str | None, typer.Option(help="Id of the model to ask.")] = None
    api_key_env: ApiKeyEnv = None
    transport: Transport = "http"
    api: Api = "chat"
    concurrency: Annotated[int, typer.Option(min=1, help="Number of requests in flight at most.")] = 16
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Further setting of the endpoint, as in an experiment file, e.g. timeout_s=300,"
            " params.temperature=0.7 or tokens_per_minute=90000; repeat.",
        ),
    ] = None

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the one endpoint that the options describe, or none.

        Raises:
            ConfigError, UsageError: the endpoint is half described, or a setting is not one.
        """
        from judgekit.wire.types import Endpoint

        further = _table(self.settings or ())
        if not self.base_url and self.model is None and not further:
            return {}
        if not self.base_url or self.model is None:
            raise UsageError("--base-url and --model belong together: an endpoint needs both")
        own: dict[str, Any] = {"base_url": self.base_url[0]}
        own |= {key: getattr(self, key) for key in ("model", "api_key_env", "concurrency", "transport", "api")}
        if twice := next((key for key in (*own, "base_urls") if key in further), None):
            raise UsageError(f"--set {twice}: it has an option of its own, --{twice.rstrip('s').replace('_', '-')}")
        if further:
            from judgekit.experiment.file import endpoint_of

            one = endpoint_of("default", own | further)
        else:
            one = Endpoint("default", **own)
        return {one.name: replace(one, base_urls=tuple(self.base_url))}


@dataclass(frozen=True)
class StoreOptions:
    """Where replies are kept and looked up."""

    cache: Cache = None
    cache_mode: Annotated[
        Literal["on", "off", "read-only", "refresh"],
        typer.Option(help="Reply cache: on, off, read-only or refresh (ask everything again)."),
    ] = "on"

    def kept(self) -> dict[str, Any]:
        """Return the options as the stages call them."""
        return {"cache": self.cache, "mode": self.cache_mode}


@dataclass(frozen=True)
class BudgetOptions:
    """Where asking stops."""

    max_requests: Annotated[int | None, typer.Option(min=0, help="Stop before sending more requests.")] = None
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Stop before using more tokens.")] = None
    max_cost: Annotated[float | None, typer.Option(min=0, help="Stop before spending more (needs prices).")] = None

    def budget(self) -> Budget:
        """Return the budget that the options describe."""
        from judgekit.client.budget import Budget

        return Budget(self.max_requests, self.max_tokens, self.max_cost)


@dataclass(frozen=True)
class PriceOptions(BudgetOptions):
    """Where asking stops, and what the one endpoint costs."""

    price: Annotated[
        str | None,
        typer.Option(metavar="PROMPT,COMPLETION", help="Money per million tokens, e.g. 0.15,0.60."),
    ] = None

    def prices(self) -> dict[str, Price]:
        """Return the price of the one endpoint.

        Raises:
            UsageError: the price is not two numbers, or a cost is limited and there is none.
        """
        from judgekit.client.budget import Price

        if self.price is None:
            if self.max_cost is not None:
                raise UsageError("--max-cost needs the price of a token: add --price PROMPT,COMPLETION")
            return {}
        try:
            prompt, completion = (float(part) for part in self.price.split(","))
            if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
                raise ValueError
        except ValueError:
            reason = "expected two numbers, of prompt and completion, e.g. 0.15,0.60"
            raise UsageError(f"--price {self.price}: {reason}") from None
        return {"default": Price(prompt, completion)}


@dataclass(frozen=True)
class RunOptions(StoreOptions, BudgetOptions):
    """How a command that asks an LLM about many things goes about it."""

    wait: Wait = 0.0
    dry_run: DryRun = False
    limit: Limit = None
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class AskOptions(RunOptions, PriceOptions, ServerOptions):
    """Everything that is said of one endpoint and of asking it."""

    def count(
        self, command: str, units: Mapping[str, Callable[[], Iterator[Any]]], answering: Mapping[str, Any]
    ) -> None:
        """Show what stages would send; see `judgekit.experiment.run.count`.

        Raises:
            ConfigError: the variable with a key is not set.
        """
        from judgekit.experiment.run import count
        from judgekit.wire.access import Secret

        for endpoint in self.endpoints().values():
            Secret.of(endpoint)
        show_plan(count(units, answering, self.cache), self.prices(), command, as_json=self.as_json)

    def session(self, work: Callable[[Session], Awaitable[T]]) -> tuple[T, dict[str, Usage]]:
        """Return what ``work`` returns, given a session, and what it took by endpoint."""
        from judgekit.stages import with_session

        async def inside(session: Session) -> tuple[T, dict[str, Usage]]:
            return await work(session), session.totals()

        with progress(self.quiet) as draw:
            return with_session(
                inside,
                **self.kept(),
                budget=self.budget(),
                prices=self.prices(),
                progress=draw,
                wait_s=self.wait,
            )


def _table(settings: Iterable[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` as lines of TOML; a value that is not TOML is a text."""
    if not settings:
        return {}
    import tomllib

    lines = []
    for item in settings:
        key, equals, value = item.partition("=")
        if not (equals and key.strip()):
            raise UsageError(f"--set {item}: expected KEY=VALUE, e.g. timeout_s=300")
        try:
            tomllib.loads(item)
            lines.append(item)
        except tomllib.TOMLDecodeError:
            lines.append(f"{key}={json.dumps(value)}")
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"--set: {problem}") from None


def named(items: list[str] | None, what: str) -> dict[str, Path]:
    """Read ``[NAME=]FILE`` arguments; the file's stem is the default name.

    Raises:
        UsageError: two files have the same name.
    """
    out: dict[str, Path] = {}
    for item in items or ():
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
    out = dict(files)
    for item in forms or ():
        from judgekit.data.forms import with_form  # here, for most commands name no form, and it takes time

        role, form = split_named(item)
        parse(form)
        names = [name for name in files if role in (None, name, *name.split(" ", 1))]
        if not names:
            raise UsageError(f"--format-in {item}: {not_among('input', role or '', files)}")
        out |= {name: with_form(files[name], form) for name in names}
    return out


def inputs_of(
    forms: list[str] | None, queries: Path, docs: list[Path] | None, run: list[str] | None
) -> tuple[Path, list[Path], dict[str, Path], dict[str, Path]]:
    """Return queries, docs, runs by name, and all of them by role, in the forms that the user names."""
    from judgekit.data.manifest import by_role, of_roles

    files = in_forms(forms, by_role(queries, docs or (), named(run, "--run")))
    return *of_roles(files), files


def scales_of(items: list[str] | None, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the scales of qrels files by name; of a single file the name may be left out.

    Raises:
        UsageError: there is no such file.
    """
    scales: dict[str, str] = {}
    for item in items or ():
        name, _, scale = item.rpartition("=")
        if not name and len(files) == 1:
            name = next(iter(files))
        if name not in files:
            raise UsageError(f"--scale {item}: {not_among('qrels', name, files)}")
        scales[name] = scale
    return scales
