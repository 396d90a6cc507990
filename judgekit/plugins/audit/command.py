"""``audit``: weaknesses of a labeling that a comparison does not show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.bars import progress
from judgekit.console.dry_run import show_plan
from judgekit.console.options import RunOptions
from judgekit.console.printing import console, grid, note, say
from judgekit.registry import register

if TYPE_CHECKING:
    from judgekit.plugins.audit.numbers import Card


@register.command("audit")
def audit(
    results: Annotated[Path, typer.Argument(help="Results folder of `judgekit run`.")],
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROBE",
            help="Tamper with passages and ask the labelers again: all, or a probe, e.g. 'stuff(words=query)' or"
            " mine.py:shout; repeat.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LABELING",
            help="Labeling to compare the others with (default: people, else provenance).",
        ),
    ] = None,
    *,
    asked: RunOptions,
) -> None:
    """Check labels for circularity, bias, gullibility and the value of a jury.

    Examples:
        judgekit audit results
        judgekit audit results --probe all --dry-run
    """
    from judgekit.experiment.file import config_of
    from judgekit.plugins.audit import flow

    probes = probe or []
    if asked.dry_run:
        plans = flow.plan_audit(results, probes, reference, asked.cache)
        show_plan(plans, config_of(results).price_list())
        return
    with progress() as draw:
        audited = flow.audit(results, probes=probes, reference=reference, asking=asked.asking(draw))
    for card in audited.cards.values():
        _show(card)
    note(*audited.notes)
    if not probes:
        note("The labelers were not probed: add --probe all, and count its requests with --dry-run.")
    say(f"cards:  {results / 'cards'}", f"report: {results / 'report.html'}")


def _show(card: Card) -> None:
    flags = ", ".join(card.flags) or "nothing is flagged"
    console().print(f"\n{card.labeling}: {flags}", style="bold", markup=False)
    for what, how in card.facts:
        say(f"  {what}: {how}")
    for title, (heads, *rows) in card.tables():
        grid(heads, rows, title=f"\n{title}", title_justify="left", title_style="italic")
