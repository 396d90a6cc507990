"""The terminal: the decision, and one table of each labeling's worth and cost.

On a terminal the table fits its width. Elsewhere (a pipe, a file, CI) it has no colour codes and no truncation, and
fits `PLAIN` columns; only the decision's sentences are wrapped.
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
from judgekit.analysis.levels import POOLED
from judgekit.analysis.resampling import percent
from judgekit.data.outputs import clean
from judgekit.report.formatting import UNDEFINED, UNKNOWN, count, interval, marks, money, number
from judgekit.report.grids import HEADLINE, Cell, Grid, grids, labelled
from judgekit.report.model import Cost, LabelingInfo, Results

WIDE = 100_000
"""The width of a console that is not a terminal, so that no sentence is cut or wrapped."""

PLAIN = 100
"""The width of its tables."""


def print_tables(results: Results, console: Console | None = None) -> None:
    """Print the decision, and each labeling's worth and cost."""
    console = console or Console(highlight=False)
    if console.is_terminal:
        console.print(Group(*_parts(results, console.width)), highlight=False)
        return
    # Rich fills lines with blanks up to the width, which would be noise in every diff of a file.
    buffer = io.StringIO()
    plain = Console(file=buffer, width=WIDE, color_system=None, force_terminal=False, legacy_windows=False)
    plain.print(Group(*_parts(results, PLAIN)), highlight=False)
    for line in buffer.getvalue().splitlines():
        console.file.write(f"{line.rstrip()}\n")


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
    # One number per use: r for choosing runs, as in *Keep*, and concordance for finding failing questions.
    by_r = [grid for grid in grids(results, POOLED) if grid.primary]
    for grid in by_r or grids(results):
        if grid.primary:
            # Only the decision's measure; the page has the others.
            cells = {key: cell for key, cell in grid.cells.items() if cell.measure == results.primary.measure}
            part = replace(grid, cells=cells)
            meaning = "0 is none, 1 is perfect" if by_r else "0.5 is chance"
            yield Text(clean(f"{results.primary} ({part.level} level; {meaning})"), style="bold")
            yield Constrain(_labelings(part, results, "r" if by_r else HEADLINE), width)
            for line in _legend(part, results):
                yield Text(clean(line), style="dim")
            yield Text()


def _labelings(part: Grid, results: Results, follows: str) -> Table:
    """Return a row for each labeling and for answering: how it follows the answers, its cost, and what is missing."""
    primary, infos = results.primary, {info.name: info for info in results.labelings}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("labeling", overflow="fold", min_width=8)
    table.add_column(follows, justify="right", no_wrap=True)
    for name in ("requests", "tokens", "money", "missing"):
        table.add_column(name, justify="right", overflow="fold")
    for labeling in part.labelings:
        info = infos.get(labeling, LabelingInfo(labeling, ""))
        spent = _spent(info.spending.standalone, results.currency)
        missing = count(info.missing) if info.counts else UNKNOWN
        cell = _cell(part, part.cells.get((labeling, primary.measure)))
        table.add_row(Text(clean(labeling)), cell, *spent, missing)
    # Answering is among the labelings, since it can also be bought and is often better.
    for answers in results.answers:
        if answers.at_decision is not None:
            spent = _spent(answers.at_decision, results.currency)
            table.add_row(f"answers, top {primary.depth}", "", *spent, "")
    return table


def _cell(part: Grid, cell: Cell | None) -> Text:
    if cell is None:
        return Text(UNDEFINED, style="dim")
    text = Text(f"{marks(part.own(cell))} {number(cell.value)}".strip())
    if "by_construction" in cell.flags:
        text.style = "dim"
    if cell.defined:
        text.append(f" {interval(cell.low, cell.high) or 'no interval'}", style="dim not bold")
    return text


def _legend(part: Grid, results: Results) -> Iterator[str]:
    if part.methods:
        kind = f"{percent(results.facts.confidence)} interval"
        yield f"[low, high]: {kind} ({', '.join(part.methods)}), n = {part.sizes}"
    for mark, note in part.notes:
        yield f"{mark} {note}".lstrip()
    for reason in part.reasons:
        yield f"{UNDEFINED}: {reason}"
    yield f"requests to money: {labelled(results)}, with nothing cached"
    yield "every measure and run: report.html"


def _spent(cost: Cost, currency: str) -> list[Text]:
    """Return the requests, tokens and money of a cost."""
    partly = cost.unreported > 0
    texts = (count(cost.requests), count(cost.tokens, partly), money(cost.money, currency, partly))
    return [Text(clean(text)) for text in texts]
