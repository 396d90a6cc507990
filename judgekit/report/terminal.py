"""The terminal: the decision, and one table of what each labeling is worth and takes.

On a terminal the table fits its width. Elsewhere (a pipe, a file, CI) it comes without colour codes and without
truncation, and fits `PLAIN` columns; only the decision's sentences are wrapped.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

from rich import box
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from judgekit.analysis.claims import INDENT, wrapped
from judgekit.analysis.resampling import percent
from judgekit.data.outputs import clean
from judgekit.report.formatting import UNDEFINED, UNKNOWN, count, interval, marks, money, number
from judgekit.report.grids import Cell, Grid, grids, labelled
from judgekit.report.model import Cost, LabelingInfo, Results

WIDE = 100_000
"""Columns of a console that is not a terminal, so that no sentence is ever cut or wrapped."""

PLAIN = 100
"""Columns that its tables fit into."""


def print_tables(results: Results, console: Console | None = None) -> None:
    """Print the decision, and what each labeling is worth and takes."""
    console = console or Console(highlight=False)
    if console.is_terminal:
        console.print(Group(*_parts(results, console.width)), highlight=False)
        return
    buffer = io.StringIO()
    plain = Console(file=buffer, width=WIDE, color_system=None, force_terminal=False, legacy_windows=False)
    plain.print(Group(*_parts(results, PLAIN)), highlight=False)
    text = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())
    console.file.write(text + "\n")


def _parts(results: Results, width: int) -> Iterator[RenderableType]:
    if results.note:
        yield Text(clean(results.note), style="bold yellow")
        yield Text()
    for warning in results.warnings:
        yield Text.assemble(("Warning: ", "bold yellow"), clean(warning))
    if results.warnings:
        yield Text()
    for row in wrapped([(title, clean(text)) for title, text in results.decision], width).splitlines():
        yield Text.assemble((row[:INDENT], "bold"), row[INDENT:])
    yield Text()
    for whole in (g for g in grids(results) if g.primary):
        cells = {key: cell for key, cell in whole.cells.items() if cell.measure == results.primary.measure}
        part = replace(whole, cells=cells)
        yield Text(clean(f"{results.primary} ({part.level} level; 0.5 is chance)"), style="bold")
        yield Constrain(_labelings(part, results, width), width)
        yield from _legend(part, results)


def _labelings(part: Grid, results: Results, width: int) -> Table:
    """Return a row for each labeling, and for answering: how it follows the answers, what it takes, what is missing."""
    primary, infos = results.primary, {info.name: info for info in results.labelings}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("labeling", overflow="fold", min_width=8)
    columns = ("concordance", "requests", "tokens", "money", "missing") if width >= 76 else ("concordance", "missing")
    for name in columns:
        table.add_column(name, justify="right", overflow="fold", no_wrap=name == "concordance")
    for labeling in part.labelings:
        info = infos.get(labeling, LabelingInfo(labeling, ""))
        cells = {"concordance": _cell(part, part.cells.get((labeling, primary.measure)))}
        cells |= _spent(info.spending.standalone, results.currency)
        cells["missing"] = _text(count(info.missing) if info.counts else UNKNOWN)
        table.add_row(_text(labeling), *(cells[name] for name in columns))
    for answers in results.answers:
        if answers.at_decision is not None:
            cells = _spent(answers.at_decision, results.currency)
            table.add_row(f"answers, top {primary.depth}", *(cells.get(name, "") for name in columns))
    return table


def _cell(part: Grid, cell: Cell | None) -> Text:
    if cell is None:
        return Text(UNDEFINED, style="dim")
    style = "dim" if "by_construction" in cell.flags else ""
    text = Text(f"{marks(part.own(cell))} {number(cell.value)}".strip(), style=style)
    if cell.defined:
        text.append(f" {interval(cell.low, cell.high) or 'no interval'}", style="dim not bold")
    return text


def _legend(part: Grid, results: Results) -> Iterator[Text]:
    if part.methods:
        kind = f"{percent(results.facts.confidence)} interval"
        yield Text(f"[low, high]: {kind} ({', '.join(part.methods)}), n = {part.sizes}", style="dim")
    for mark, note in part.notes:
        yield Text(clean(f"{mark} {note}".lstrip()), style="dim")
    for reason in part.reasons:
        yield Text(clean(f"{UNDEFINED}: {reason}"), style="dim")
    yield Text(f"requests to money: {labelled(results)}, with nothing cached", style="dim")
    yield Text("every measure and run: report.html", style="dim")
    yield Text()


def _text(text: str) -> Text:
    return Text(clean(text))


def _spent(cost: Cost, currency: str) -> dict[str, Text]:
    spent = money(cost.money, currency, cost.unreported > 0)
    return {
        "requests": _text(count(cost.requests)),
        "tokens": _text(count(cost.tokens, cost.unreported > 0)),
        "money": _text(spent),
    }
