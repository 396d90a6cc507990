"""All commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer

from judgekit import __version__
from judgekit.cli import flow, stages, tools
from judgekit.cli.annotate import annotate, build
from judgekit.cli.audit import audit
from judgekit.cli.batch import batch
from judgekit.cli.chunks import carry, chunks
from judgekit.cli.guard import guard
from judgekit.cli.nuggets import nuggets
from judgekit.cli.traces import traces
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
    "More": (audit, batch, carry, chunks, guard, nuggets, traces),
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
    ours = {_name(command) for commands in COMMANDS.values() for command in commands}
    app = group(ABOUT, name="judgekit", pretty_exceptions_enable=False)
    app.callback(help=ABOUT)(_root)
    # Making all commands takes longer than a small `score`, and a loop would pay for that each time.
    only = {*args[:1]} & ours
    for heading, commands in COMMANDS.items():
        named = {_name(command): command for command in commands}
        # Plug-ins are imported only where the command is none of ours, since importing takes time.
        if heading == "Plug-ins" and not only:
            named = register.load().commands
        for name, command in named.items():
            if only and name not in only:
                continue
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=heading)
            else:
                app.command(name, rich_help_panel=heading)(expanded(command))
    return app


def _name(command: Callable[..., None] | typer.Typer) -> str:
    if isinstance(command, typer.Typer):
        return str(command.info.name)
    return command.__name__.rstrip("_").replace("_", "-")
