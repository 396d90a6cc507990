"""``nuggets``: the facts that good answers state, as a file to edit and reuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.jobs import JobOptions
from judgekit.console.options import ENDPOINT
from judgekit.console.printing import say
from judgekit.console.results import CommandResult


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
    asked: JobOptions,
) -> None:
    """List the facts that a good answer to each question states. Edit the file before you use it.

    Reference answers are cut into facts. For questions without them, an LLM lists facts from the pooled passages.

    Examples:
        judgekit nuggets experiment.toml --dry-run
        judgekit nuggets experiment.toml --out nuggets.jsonl
    """
    from judgekit.jobs.nuggets import make_nuggets

    made = asked.carry_out("nuggets", make_nuggets, experiment, out, endpoint=endpoint)
    facts = [nugget for listed in made.nuggets.values() for nugget in listed]
    vital = sum(nugget.vital for nugget in facts)
    told = (
        f"{len(facts):,} nuggets ({vital:,} vital) for {len(made.nuggets):,} questions,"
        f" {made.from_references:,} of them from reference answers: {out}"
    )
    missing = [f"no nuggets for query {query_id!r}: {reason}" for query_id, reason in made.missing.items()]
    CommandResult(
        show=lambda: say(told),
        record={
            "nuggets": len(facts),
            "vital": vital,
            "questions": len(made.nuggets),
            "from_references": made.from_references,
        },
        files=[out],
        missing=missing,
        last=[f"note: {sentence}" for sentence in missing],
    ).end("nuggets", as_json=asked.as_json)
