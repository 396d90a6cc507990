"""``audit`` and ``card``: what a comparison alone does not show of a labeling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.common import console, grid, note, say, show_plan
from judgekit.cli.drawing import progress
from judgekit.cli.options import BudgetOptions, DryRun, Quiet, StoreOptions
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.audit.card import Card

__all__ = ["audit", "card"]


def audit(
    target: Annotated[Path, typer.Argument(help="Results folder of `judgekit run`, or an experiment file (TOML).")],
    checks: Annotated[
        list[str] | None,
        typer.Option(
            help="circularity, fidelity, jury, surface, overrating, self-preference (these send nothing: the default),"
            " gullibility, consistency (these ask labelers), or all; repeat, or join by commas."
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(metavar="PROBE", help="Only these probes, e.g. 'stuff(words=query)' or mine.py:shout; repeat."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LABELING",
            help="Labeling to compare the others with (default: people, else provenance); answers: answer anew.",
        ),
    ] = None,
    jury: Annotated[
        list[str] | None, typer.Option(metavar="A+B+C", help="Labelings to look at as one jury; repeat.")
    ] = None,
    attack: Annotated[float, typer.Option(help="Share of the pool that the probes attack, in per cent.")] = 5.0,
    repeats: Annotated[int, typer.Option(help="How often to ask the same, for consistency.")] = 3,
    made_by: Annotated[
        list[str] | None, typer.Option(metavar="RUN=FAMILY", help="Model family that made a run; repeat.")
    ] = None,
    docs_family: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the documents: the family that wrote each.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the results of an experiment file.")
    ] = None,
    dry_run: DryRun = False,
    *,
    replies: StoreOptions,
    money: BudgetOptions,
    quiet: Quiet = False,
) -> None:
    """Say whether labels can be fooled, are circular or biased, and whether a jury is worth it; a card for each."""
    from judgekit.audit import flow
    from judgekit.audit.probes import DEFAULT

    families = dict(item.rpartition("=")[::2] for item in made_by or ())
    if not all(families) or not all(families.values()):
        raise UsageError("--made-by: expected RUN=FAMILY, e.g. --made-by dense=minilm")
    asked = {part.strip() for item in checks or () for part in item.split(",")}
    if probe and not asked & {"gullibility", "all"}:
        raise UsageError("--probe is for the check gullibility, which asks labelers: add --checks gullibility")
    with progress(quiet) as draw:
        found = flow.audit(
            target,
            out=out,
            checks=checks or flow.FREE,
            probes=probe or DEFAULT,
            reference=reference,
            juries=jury or (),
            attack=attack,
            repeats=repeats,
            run_families=families,
            docs_family=docs_family,
            dry_run=dry_run,
            **replies.kept(),
            budget=money.budget(),
            progress=draw,
        )
    if dry_run:
        show_plan(found.planned, found.prices)
        return
    for one in found.cards.values():
        _show(one)
    note(*found.notes)
    if not checks:
        note("gullibility and consistency ask the labelers: --checks all adds them, --dry-run counts their requests.")
    say(f"cards:  {found.folder / 'cards'}", f"report: {found.folder / 'report.html'}")


def card(
    labeling: Annotated[str, typer.Argument(help="Name of a labeling that was audited.")],
    results: Annotated[Path, typer.Option("--results", "-r", help="Results folder that was audited.")] = Path(),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write: .html, or Markdown; standard output by default.")
    ] = None,
) -> None:
    """Print the card of a labeling, or write it as Markdown or HTML, to put next to published numbers."""
    from judgekit.audit import flow
    from judgekit.data.files import write_atomic

    if out is not None and out.suffix not in (".html", ".md", ".markdown"):
        raise UsageError(f"--out {out}: a card is written as .html or .md")
    text = flow.card(results, labeling, html=out is not None and out.suffix == ".html")
    if out is None:
        typer.echo(text)
    else:
        write_atomic(out, text)
        say(f"card: {out}")


def _show(found: Card) -> None:
    flags = ", ".join(found.flags) or "nothing is flagged"
    console().print(f"\n{found.labeling}: {flags}", style="bold", markup=False)
    for what, how in found.facts:
        say(f"  {what}: {how}")
    for title, (heads, *rows) in found.tables():
        grid(heads, rows, title=f"\n{title}", title_justify="left", title_style="italic")
