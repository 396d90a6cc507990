"""All commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from judgekit import __version__
from judgekit.cli import audit, chunks, convert, flow, guard, info, serve, stages, store
from judgekit.cli.annotate import annotate
from judgekit.cli.common import group
from judgekit.cli.options import expanded

__all__ = ["app_for"]

ABOUT: Final = "Choose how to label retrieval results: which labeling's metrics predict the quality of the answers?"
COMMANDS: Final = (
    *(flow.demo, flow.run),
    *(stages.label, stages.answer, stages.traces, stages.score, stages.compare, stages.agree),
    *(guard.guard, flow.report, audit.audit, audit.card, chunks.chunks, chunks.carry, convert.convert),
    *(info.measures, info.labelers, info.answer_metrics, info.check_endpoint, serve.serve),
)
GROUPS: Final = {"annotate": annotate, "prompts": info.prompts, "cache": store.cache, "batch": store.batch}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgekit {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def app_for(args: Sequence[str] = ()) -> typer.Typer:
    """Return the commands that a command line may mean: only the one that it begins with, whose making takes time."""
    named = {command.__name__.replace("_", "-"): command for command in COMMANDS}
    app = group(ABOUT, name="judgekit", pretty_exceptions_enable=False)
    app.callback(help=ABOUT)(_root)
    chosen = set(args[:1]) & {*named, *GROUPS} or {*named, *GROUPS}
    for name, command in named.items():
        if name in chosen:
            app.command(name)(expanded(command))
    for name, commands in GROUPS.items():
        if name in chosen:
            app.add_typer(commands, name=name)
    return app
