"""The options that several commands share, each declared once, and what they describe: files, an endpoint, a budget.

Options that go together are a dataclass. A command under `expanded` takes them as one parameter.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_origin

import typer

from judgekit.console.printing import progress, show_plan
from judgekit.errors import UsageError, not_among
from judgekit.settings import attributes, settings_of
from judgekit.spec import split_form, split_named

if TYPE_CHECKING:
    from judgekit.client.budget import Budget, Price, Usage
    from judgekit.client.session import Session
    from judgekit.wire.types import Endpoint

T = TypeVar("T")

ENDPOINT: Final = "Endpoint and store"
"""The heading of the options that say whom to ask, up to where, and where replies are kept."""

QueriesFile = Annotated[
    Path, typer.Option("--queries", metavar="[FORM:]FILE", help="Queries: query_id, text, answers; docs/formats.md.")
]
DocsFile = Annotated[
    list[Path] | None,
    typer.Option("--docs", metavar="[FORM:]FILE", help="Documents: doc_id, text, title; repeat for several."),
]
Runs = Annotated[list[str] | None, typer.Option("--run", metavar="[NAME=]FILE", help="TREC run; repeat for several.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N queries.")]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        envvar="JUDGEKIT_CACHE",
        help="Folder of the reply store (default: your cache folder).",
        rich_help_panel=ENDPOINT,
    ),
]
Transport = Annotated[
    Literal["http", "openai"],
    typer.Option(help="HTTP client: judgekit's own, or the openai package.", rich_help_panel=ENDPOINT),
]
Api = Annotated[
    Literal["chat", "completions"],
    typer.Option(
        help="API of the server; use completions for base models without a chat template.", rich_help_panel=ENDPOINT
    ),
]
BASE_URL: Final = typer.Option(
    metavar="URL", help="OpenAI-compatible server, e.g. http://localhost:8000/v1.", rich_help_panel=ENDPOINT
)
MODEL: Final = typer.Option(help="Id of the model.", rich_help_panel=ENDPOINT)
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(metavar="VAR", help="Environment variable that holds the API key.", rich_help_panel=ENDPOINT),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count the requests and estimate their price; ask no model.")]
Wait = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long to wait for a server that is not ready.", rich_help_panel=ENDPOINT
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object; see docs/cli.md.")]
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
        kinds = _parameters(groups[name]) if name in groups else [one]
        options += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in kinds]

    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {option.name: option.annotation for option in options}
    called.__signature__ = plain.replace(parameters=options)  # type: ignore[attr-defined]  # typer reads the command's options off it
    return called


def _parameters(group: type) -> list[inspect.Parameter]:
    """Return the parameters of a dataclass; what it does not say to the command line is taken from its settings."""
    parameters = list(inspect.signature(group, eval_str=True).parameters.values())
    if any(get_origin(one.annotation) is Annotated for one in parameters):
        return parameters
    told, known = attributes(group), {one.field: one for one in settings_of(group).values()}
    found = []
    for one in parameters:
        bounds = known[one.name].bounds
        text = told[one.name].replace("``", "")
        # A flag is only ever switched on.
        flag = [f"--{one.name.replace('_', '-')}"] if known[one.name].type is bool else []
        option = typer.Option(*flag, min=bounds.least, max=bounds.most, help=f"{text[:1].upper()}{text[1:]}")
        found.append(one.replace(annotation=Annotated[one.annotation, option]))
    return found


@dataclass(frozen=True)
class ModelOptions:
    """The model that is asked, and where."""

    base_url: Annotated[str | None, BASE_URL] = None
    model: Annotated[str | None, MODEL] = None
    api_key_env: ApiKeyEnv = None

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the one endpoint that the options describe, or none."""
        from judgekit.wire.types import Endpoint

        further = _table(getattr(self, "settings", None) or ())
        if not self.base_url and self.model is None and not further:
            return {}
        if not self.base_url or self.model is None:
            raise UsageError("an endpoint needs both --base-url and --model")
        keys = ("base_url", "model", "api_key_env", "concurrency", "transport", "api")
        own: dict[str, Any] = {key: getattr(self, key) for key in keys if hasattr(self, key)}
        if twice := next((key for key in own if key in further), None):
            raise UsageError(f"--set {twice}: use its own option, --{twice.replace('_', '-')}")
        if further:
            from judgekit.experiment.file import endpoint_of

            one = endpoint_of("default", own | further)
        else:
            one = Endpoint("default", **own)
        return {one.name: one}


@dataclass(frozen=True)
class BudgetOptions:
    """Where asking stops."""

    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Stop after this many requests.", rich_help_panel=ENDPOINT)
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Stop before spending more than this (needs prices).", rich_help_panel=ENDPOINT),
    ] = None

    def budget(self) -> Budget:
        """Return the budget that the options describe."""
        from judgekit.client.budget import Budget

        return Budget(self.max_requests, max_cost=self.max_cost)


@dataclass(frozen=True)
class RunOptions(BudgetOptions):
    """How a command that asks an LLM about many things goes about it."""

    cache: Cache = None
    cache_mode: Annotated[
        Literal["on", "off", "read-only", "refresh"],
        typer.Option(
            help="Use of the reply store: on, off, read-only or refresh (ask everything again).",
            rich_help_panel=ENDPOINT,
        ),
    ] = "on"
    dry_run: DryRun = False
    limit: Limit = None
    as_json: AsJson = False

    def kept(self) -> dict[str, Any]:
        """Return where replies are kept and looked up, as the stages call it."""
        return {"cache": self.cache, "mode": self.cache_mode}


@dataclass(frozen=True)
class AskOptions(RunOptions, ModelOptions):
    """Everything that is said of one endpoint and of asking it."""

    transport: Transport = "http"
    api: Api = "chat"
    concurrency: Annotated[
        int, typer.Option(min=1, help="Largest number of requests in flight.", rich_help_panel=ENDPOINT)
    ] = 16
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Another setting of the endpoint, as in an experiment file, e.g. timeout_s=300,"
            " params.temperature=0.7 or tokens_per_minute=90000; repeat.",
            rich_help_panel=ENDPOINT,
        ),
    ] = None
    price: Annotated[
        str | None,
        typer.Option(
            metavar="PROMPT,COMPLETION", help="Money per million tokens, e.g. 0.15,0.60.", rich_help_panel=ENDPOINT
        ),
    ] = None

    def prices(self) -> dict[str, Price]:
        """Return the price of the one endpoint."""
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
            reason = "expected two numbers, for prompt and completion tokens, e.g. 0.15,0.60"
            raise UsageError(f"--price {self.price}: {reason}") from None
        return {"default": Price(prompt, completion)}

    def count(self, command: str, units: Mapping[str, Callable[[], Iterator[Any]]]) -> None:
        """Show what stages would send; see `judgekit.experiment.run.count`."""
        from judgekit.experiment.prepare import check_access
        from judgekit.experiment.run import count

        check_access(self.endpoints().values())
        show_plan(count(units, self.cache), self.prices(), command, as_json=self.as_json)

    def session(self, work: Callable[[Session], Awaitable[T]]) -> tuple[T, dict[str, Usage]]:
        """Return what ``work`` returns, given a session, and what it took by endpoint."""
        from judgekit.stages import with_session

        async def inside(session: Session) -> tuple[T, dict[str, Usage]]:
            return await work(session), session.totals()

        with progress() as draw:
            return with_session(inside, **self.kept(), budget=self.budget(), prices=self.prices(), progress=draw)


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
        except (ValueError, RecursionError):
            lines.append(f"{key}={json.dumps(value)}")
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"--set: {problem}") from None


def named(items: list[str] | None, what: str) -> dict[str, Path]:
    """Read ``[NAME=]FILE`` arguments; the file's stem is the default name."""
    out: dict[str, Path] = {}
    for item in items or ():
        name, file = split_named(item)
        if not file:
            raise UsageError(f"{what} {item}: the file name is missing after '='")
        path = Path(file)
        name = name or Path(split_form(path)[1]).name.removesuffix(".gz").rsplit(".", 1)[0]
        same = next((one for one, file in out.items() if file == path), None)
        if same is not None and same != name:
            raise UsageError(f"{what} {item}: {same!r} is the same file; leave one out")
        if name in out:
            raise UsageError(
                f"two {what}s are named {name!r} ({out[name]} and {path}): give each a name, {what}=NAME=FILE"
            )
        out[name] = path
    return out


def scales_of(items: list[str] | None, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the scales of qrels files by name; of a single file the name may be left out."""
    scales: dict[str, str] = {}
    for item in items or ():
        name, _, scale = item.rpartition("=")
        if not name and len(files) == 1:
            name = next(iter(files))
        if name not in files:
            raise UsageError(f"--scale {item}: {not_among('qrels', name, files)}")
        scales[name] = scale
    return scales
