"""Options shared by several commands, each declared once: files, an endpoint, a budget.

Options that go together are a dataclass. A command under `expanded` takes them as one parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_origin

import typer

from judgekit.client.asking import Asking
from judgekit.errors import UsageError, not_among
from judgekit.settings import attributes, bounds_of, docstring
from judgekit.spec import split_form, split_named

if TYPE_CHECKING:
    from judgekit.experiment.servers import Servers

ENDPOINT: Final = "Endpoint and store"
"""The heading of the options about endpoints, limits and the reply store."""


def declared_option(kind: type, name: str, *names: str, **display: Any) -> Any:
    """Return the option declared by a dataclass's field: a range (checked by the class), a short form, and help."""
    (field,) = (field for field in fields(kind) if field.name == name)
    text = attributes(kind)[name].replace("``", "").removesuffix(".")
    bounds = str(bounds_of(field)).removeprefix(" of").strip()
    if bounds:
        text += f" ({bounds})"
    long = names or (f"--{name.replace('_', '-')}",)
    short = filter(None, [field.metadata.get("short")])
    return typer.Option(*long, *short, help=f"{text[:1].upper()}{text[1:]}.", **display)


QueriesFile = Annotated[
    Path, typer.Option("--queries", metavar="[FORM:]FILE", help="Queries: query_id, text, answers; docs/formats.md.")
]
DocsFile = Annotated[
    list[Path] | None,
    typer.Option("--docs", metavar="[FORM:]FILE", help="Documents: doc_id, text, title; repeat for several."),
]
Runs = Annotated[list[str] | None, typer.Option("--run", metavar="[NAME=]FILE", help="TREC run; repeat for several.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N queries.")]
Cache = Annotated[Path | None, declared_option(Asking, "cache", envvar="JUDGEKIT_CACHE", rich_help_panel=ENDPOINT)]
Wait = Annotated[float, declared_option(Asking, "wait_s", "--wait", metavar="SECONDS", rich_help_panel=ENDPOINT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object; see docs/cli.md.")]
ScaleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scale", metavar="NAME=SCALE", help="Scale of a qrels file: binary, grades:3, means:5:2, unit or signed."
    ),
]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with each dataclass parameter replaced by the options that it declares."""
    plain = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for name, parameter in plain.parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            options += _parameters(groups[name])
        else:
            options.append(parameter)
    # A dataclass's fields have defaults, and a plain option without one may follow them.
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    def called(**given: Any) -> None:
        for name, group in groups.items():
            own = [field.name for field in fields(group) if field.name in given]
            given[name] = group(**{field: given.pop(field) for field in own})
        command(**given)

    called.__name__, called.__doc__ = command.__name__, docstring(command)
    called.__annotations__ = {option.name: option.annotation for option in options}
    called.__signature__ = plain.replace(parameters=options)  # type: ignore[attr-defined]  # typer reads the command's options off it
    return called


def _parameters(group: type) -> list[inspect.Parameter]:
    """Return the parameters of a dataclass; fields absent from the command line come from its settings."""
    parameters = inspect.signature(group, eval_str=True).parameters
    if any(get_origin(parameter.annotation) is Annotated for parameter in parameters.values()):
        return list(parameters.values())
    options = []
    for field in fields(group):
        if field.metadata.get("option", True):
            parameter = parameters[field.name]
            declared = declared_option(group, field.name)
            options.append(parameter.replace(annotation=Annotated[parameter.annotation, declared]))
    return options


@dataclass(frozen=True)
class EndpointOptions:
    """The endpoint to ask."""

    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Server to ask: its address, http://localhost:8000/v1; a spelling, local(base_url=…, model=m,"
            " api_key_env=KEY); a name in experiment.toml; or a TOML file with endpoints and prices. See"
            " docs/endpoints.md.",
            rich_help_panel=ENDPOINT,
        ),
    ] = None
    model: Annotated[str | None, typer.Option(help="Id of the model to ask there.", rich_help_panel=ENDPOINT)] = None

    def servers(self) -> Servers:
        """Return the endpoints in the options, with the prices from a file."""
        from judgekit.experiment.servers import Servers, servers_of

        changes: dict[str, Any] = {}
        for name in ("model", "concurrency"):
            value = getattr(self, name, None)
            if value is not None:
                changes[name] = value
        # Many labelers ask no model, so a missing server is not an error by itself.
        if self.endpoint is None:
            if changes:
                raise UsageError(f"--{next(iter(changes))} sets an option of a server: name the server with --endpoint")
            return Servers({}, {})
        servers = servers_of(self.endpoint, changes)
        for name, endpoint in servers.endpoints.items():
            # A limit without a price would never be reached, and spending would not end.
            priced = name in servers.prices or endpoint.model in servers.prices
            if not priced and getattr(self, "max_cost", None) is not None:
                table = f"[prices.{endpoint.model!r}]"
                raise UsageError(f"--max-cost needs prices: name a TOML file with a table {table} with --endpoint")
        return servers


def named(items: list[str] | None, what: str) -> dict[str, Path]:
    """Read ``[NAME=]FILE`` arguments; the file's stem is the default name."""
    files: dict[str, Path] = {}
    for item in items or ():
        name, file = split_named(item)
        if not file:
            raise UsageError(f"{what} {item}: the file name is missing after '='")
        path = Path(file)
        # Name a `.trec.gz` like its `.trec`, so that results do not depend on compression.
        name = name or Path(split_form(path)[1]).name.removesuffix(".gz").rsplit(".", 1)[0]
        if name in files:
            raise UsageError(
                f"two {what}s are named {name!r} ({files[name]} and {path}): give each a name, {what}=NAME=FILE"
            )
        # A file given twice agrees with itself, which would look like a result.
        for other, other_path in files.items():
            if other_path == path:
                raise UsageError(f"{what} {item}: {other!r} is the same file; leave one out")
        files[name] = path
    return files


def scales_of(items: list[str] | None, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the scales of qrels files by name; `--scale` of a single file may omit its name."""
    scales: dict[str, str] = {}
    for item in items or ():
        name, _, scale = item.rpartition("=")
        if not name and len(files) == 1:
            name = next(iter(files))
        if name not in files:
            raise UsageError(f"--scale {item}: {not_among('qrels', name, files)}")
        scales[name] = scale
    return scales
