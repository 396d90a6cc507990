"""All commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from os import environ
from typing import Annotated, Final

import typer

from judgekit import __version__
from judgekit.cli import flow, stages, tools
from judgekit.cli.annotate import annotate, build
from judgekit.cli.audit import audit
from judgekit.cli.batch import batch
from judgekit.cli.chunks import carry, chunks
from judgekit.cli.guard import guard
from judgekit.cli.judge_test import judge_test
from judgekit.cli.names import TAKEN, taken_by
from judgekit.cli.nuggets import nuggets
from judgekit.cli.traces import traces
from judgekit.console.help import Command, command_with, group
from judgekit.console.options import expanded
from judgekit.errors import DISTRIBUTION
from judgekit.registry import register
from judgekit.settings import docstring

ABOUT: Final = (
    "Choose how to label retrieval results: find the labels whose metrics predict the quality of the answers."
)
COMMANDS: Final[dict[str, tuple[Callable[..., None] | typer.Typer, ...]]] = {
    "Journey": (flow.demo, flow.init, flow.plan, flow.run, flow.choose, flow.report, annotate, build),
    "Stages": (stages.label, stages.answer, stages.score, stages.compare, stages.agree),
    "More": (audit, batch, carry, chunks, guard, judge_test, nuggets, traces),
    "Plug-ins": (),
    "Tools": (tools.trust, tools.check_endpoint, tools.list_, tools.convert, tools.cache),
}
"""Commands and groups of commands by heading of the help. Commands of plug-ins come from the register."""


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


def app_for(args: Sequence[str] | None = None) -> typer.Typer:
    """Return an app with the commands that a command line may call; without a line, with all of them.

    Building all commands takes longer than a small ``score``, and a loop would pay for that each time. So if the line
    begins with a command, only that one is built. For any other line, such as ``--help``, commands that it does not
    name are listed without their options.
    """
    ours = {_name(command) for commands in COMMANDS.values() for command in commands}
    app = group(ABOUT, name="judgekit", pretty_exceptions_enable=False)
    app.callback(help=ABOUT)(_root)
    only = {*args[:1]} & ours if args else set()
    mentioned = None if args is None else {*args, *_to_complete()}
    for heading, commands in COMMANDS.items():
        named = {_name(command): command for command in commands}
        # Import plug-ins, which takes time, only if the command is not one of ours.
        if heading == "Plug-ins" and not only:
            named = register.load().commands
        for name, command in named.items():
            if only and name not in only:
                continue
            if mentioned is not None and name not in mentioned:
                command = _listed(command)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=heading)
            else:
                listed = command_with(partial(taken_by, name)) if name in TAKEN else Command
                app.command(name, cls=listed, rich_help_panel=heading)(expanded(command))
    return app


def _to_complete() -> list[str]:
    """Return the words that a shell wants completed; typer reads them from these variables."""
    if "_JUDGEKIT_COMPLETE" not in environ:
        return []
    return [word for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS") for word in environ.get(name, "").split()]


def _listed(command: Callable[..., None] | typer.Typer) -> Callable[..., None] | typer.Typer:
    """Return a stand-in for a command or group, with its name and help but without its options or commands."""
    if isinstance(command, typer.Typer):
        group_ = copy(command)
        group_.registered_commands, group_.registered_groups, group_.registered_callback = [], [], None
        return group_

    def nothing() -> None:
        raise AssertionError("it is on no command line")

    nothing.__name__, nothing.__doc__ = command.__name__, docstring(command)
    return nothing


def _name(command: Callable[..., None] | typer.Typer) -> str:
    if isinstance(command, typer.Typer):
        return str(command.info.name)
    return command.__name__.rstrip("_").replace("_", "-")
