"""All commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated

import typer

from judgekit import __version__
from judgekit.cli import audit, chunks, convert, flow, guard, info, serve, stages, store
from judgekit.cli.annotate import annotate
from judgekit.cli.common import group

__all__ = ["app", "app_for"]

ABOUT = "Choose how to label retrieval results: which labeling's metrics predict the quality of the answers?"

app = group(ABOUT, name="judgekit", pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgekit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Choose how to label retrieval results: which labeling's metrics predict the quality of the answers?"""


for command in (
    *(flow.demo, flow.run),
    *(stages.label, stages.answer, stages.traces, stages.score, stages.compare, stages.agree),
    *(guard.guard, flow.report, audit.audit, audit.card, chunks.chunks, chunks.carry, convert.convert),
    *(info.measures, info.labelers, info.answer_metrics, info.check_endpoint, serve.serve),
):
    app.command()(command)
app.add_typer(annotate, name="annotate")
app.add_typer(info.prompts, name="prompts")
app.add_typer(store.cache, name="cache")
app.add_typer(store.batch, name="batch")


def app_for(args: Sequence[str]) -> typer.Typer:
    """Return the commands that a command line may mean: only the one that it begins with, whose making takes time."""
    name = args[0] if args else ""
    one = copy(app)
    one.registered_commands = [
        c for c in app.registered_commands if c.callback and name in (c.name, c.callback.__name__.replace("_", "-"))
    ]
    one.registered_groups = [g for g in app.registered_groups if name == g.name]
    return one if one.registered_commands or one.registered_groups else app
