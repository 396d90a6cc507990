"""``nuggets``: the facts that good answers state, as a file to edit and reuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.bars import progress
from judgekit.console.dry_run import show_plan
from judgekit.console.options import ENDPOINT, RunOptions
from judgekit.console.printing import note, say
from judgekit.registry import register


@register.command("nuggets")
def nuggets(
    experiment: Annotated[Path, typer.Argument(help="Experiment file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File of nuggets to write (JSON lines).")] = Path(
        "nuggets.jsonl"
    ),
    endpoint: Annotated[
        str | None,
        typer.Option(help="Endpoint of the experiment; optional if only one is defined.", rich_help_panel=ENDPOINT),
    ] = None,
    *,
    asked: RunOptions,
) -> None:
    """List the facts that a good answer to each question states. Edit the file before you use it.

    Reference answers are cut into facts. For questions without them, an LLM lists facts from the pooled passages.

    Examples:
        judgekit nuggets experiment.toml --dry-run
        judgekit nuggets experiment.toml --out nuggets.jsonl
    """
    from judgekit.plugins.nuggets import making

    if asked.dry_run:
        plans, prices = making.plan_nuggets(experiment, endpoint, asked.cache)
        show_plan(plans, prices)
        return
    with progress() as draw:
        made = making.make_nuggets(experiment, out, endpoint=endpoint, asking=asked.asking(draw))
    facts = [nugget for listed in made.nuggets.values() for nugget in listed]
    vital = sum(nugget.vital for nugget in facts)
    say(
        f"{len(facts):,} nuggets ({vital:,} vital) for {len(made.nuggets):,} questions,"
        f" {made.from_references:,} of them from reference answers: {out}"
    )
    note(*(f"no nuggets for query {query_id!r}: {reason}" for query_id, reason in made.missing.items()))
    if made.missing:
        raise typer.Exit(1)
