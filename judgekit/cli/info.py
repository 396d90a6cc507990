"""``measures``, ``labelers``, ``prompts`` and ``check-endpoint``: what there is, and whether a server will do."""

from __future__ import annotations

from typing import Annotated

import typer

from judgekit.cli.common import console

__all__ = ["labelers", "measures", "prompts"]

prompts = typer.Typer(help="The prompts that judgekit ships.", no_args_is_help=True)


def measures(
    name: Annotated[str | None, typer.Argument(help="Only this measure, with its parameters.")] = None,
) -> None:
    """List all measures: formula, source, range, what each rewards, and the scales it is defined on."""
    from judgekit.metrics import catalog, parse_measure

    chosen = None if name is None else parse_measure(name).name
    out = console()
    for entry in catalog():
        if chosen not in (None, entry.name):
            continue
        high = "no fixed end" if entry.high is None else f"{entry.high:g}"
        better = ", lower is better" if entry.lower_is_better else ""
        lines = [
            f"{entry.name}: {entry.title}",
            f"  formula   {entry.formula}",
            f"  rewards   {entry.rewards}",
            f"  range     {entry.low:g} to {high}{better}",
            f"  scales    {entry.scales}",
            f"  source    {entry.source}",
        ]
        if entry.aliases:
            lines.append(f"  aliases   {', '.join(entry.aliases)}")
        lines += [f"  {key + '=':<9} {param.what}" for key, param in entry.params.items()]
        out.print("\n".join(lines) + "\n", markup=False, highlight=False)


def labelers() -> None:
    """List all labelers, installed ones included, with what each needs and costs per pair."""
    from judgekit.labelers.base import kinds

    for kind, factory in sorted(kinds().items()):
        text = (factory.__doc__ or "").strip().splitlines()
        console().print(f"{kind:<12} {text[0] if text else ''}", markup=False, highlight=False)
