"""``audit``: weaknesses of a labeling that a comparison does not show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.options import BudgetOptions, Cache, DryRun
from judgekit.console.printing import console, grid, note, progress, say, show_plan
from judgekit.errors import UsageError
from judgekit.registry import register

if TYPE_CHECKING:
    from judgekit.plugins.audit.numbers import Card


@register.command("audit")
def audit(
    results: Annotated[Path, typer.Argument(help="Results folder of `judgekit run`.")],
    checks: Annotated[
        list[str] | None,
        typer.Option(
            help="Checks: circularity, jury, surface, overrating (the default; ask no model),"
            " gullibility, consistency (ask labelers), or all; repeat, or separate by commas."
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROBE", help="Use only these probes, e.g. 'stuff(words=query)' or mine.py:shout; repeat."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LABELING",
            help="Labeling to compare the others with (default: people, else provenance).",
        ),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(
            metavar="LABELING", help="Print the card of this labeling from the last audit, and check nothing."
        ),
    ] = None,
    dry_run: DryRun = False,
    *,
    cache: Cache = None,
    money: BudgetOptions,
) -> None:
    """Check labels for circularity, bias, gullibility and the value of a jury.

    Examples:
        judgekit audit results
        judgekit audit results --checks all --dry-run
    """
    from judgekit.experiment.file import config_of
    from judgekit.plugins.audit import flow
    from judgekit.plugins.audit.probes import DEFAULT

    if card is not None:
        say(flow.card(results, card))
        return
    asked = {part.strip() for item in checks or () for part in item.split(",")}
    if probe and not asked & {"gullibility", "all"}:
        raise UsageError("--probe needs the check gullibility, which asks labelers: add --checks gullibility")
    wanted, probes = checks or flow.FREE, probe or DEFAULT
    if dry_run:
        show_plan(flow.plan_audit(results, wanted, probes, reference, cache), config_of(results).price_list())
        return
    with progress() as draw:
        found = flow.audit(
            results,
            checks=wanted,
            probes=probes,
            reference=reference,
            cache=cache,
            budget=money.budget(),
            progress=draw,
        )
    for one in found.cards.values():
        _show(one)
    note(*found.notes)
    if not checks:
        note(
            "gullibility and consistency ask the labelers. Add them with --checks all; count their requests"
            " with --dry-run."
        )
    say(f"cards:  {results / 'cards'}", f"report: {results / 'report.html'}")


def _show(found: Card) -> None:
    flags = ", ".join(found.flags) or "nothing is flagged"
    console().print(f"\n{found.labeling}: {flags}", style="bold", markup=False)
    for what, how in found.facts:
        say(f"  {what}: {how}")
    for title, (heads, *rows) in found.tables():
        grid(heads, rows, title=f"\n{title}", title_justify="left", title_style="italic")
