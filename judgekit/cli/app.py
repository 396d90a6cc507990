"""All commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer

from judgekit import __version__
from judgekit.cli import flow, stages, tools
from judgekit.cli.annotate import annotate, build
from judgekit.console.help import group
from judgekit.console.options import expanded
from judgekit.errors import DISTRIBUTION
from judgekit.registry import register

ABOUT: Final = (
    "Choose how to label retrieval results: find the labels whose metrics predict the quality of the answers."
)
COMMANDS: Final[dict[str, tuple[Callable[..., None] | typer.Typer, ...]]] = {
    "Journey": (flow.demo, flow.init, flow.plan, flow.run, flow.choose, flow.report, annotate, build),
    "Stages": (stages.label, stages.answer, stages.score, stages.compare, stages.agree),
    "Plug-ins": (),
    "Tools": (tools.trust, tools.check_endpoint, tools.list_, tools.convert, tools.cache),
}
"""The commands, and groups of commands, under the headings of the help; those of plug-ins come from the register."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgekit {__version__} (distribution {DISTRIBUTION})")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def app_for(args: Sequence[str] = ()) -> typer.Typer:
    """Return the commands that a command line may mean: only the one that it begins with, whose making takes time."""
    named = {_name(one): (one, heading) for heading, commands in COMMANDS.items() for one in commands}
    app = group(ABOUT, name="judgekit", pretty_exceptions_enable=False)
    app.callback(help=ABOUT)(_root)
    if not set(args[:1]) & {*named}:
        named = {name: (one, "Plug-ins") for name, one in register.load().commands.items()} | named
        named = dict(sorted(named.items(), key=lambda item: [*COMMANDS].index(item[1][1])))
    for name in set(args[:1]) & {*named} or named:
        one, heading = named[name]
        if isinstance(one, typer.Typer):
            app.add_typer(one, name=name, rich_help_panel=heading)
        else:
            app.command(name, rich_help_panel=heading)(expanded(one))
    return app


def _name(one: Callable[..., None] | typer.Typer) -> str:
    return str(one.info.name) if isinstance(one, typer.Typer) else one.__name__.rstrip("_").replace("_", "-")
