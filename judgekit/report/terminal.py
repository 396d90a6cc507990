"""The terminal tables: verdict, labelings x measures, what each labeling needs and costs.

On a terminal the tables fit its width: measures that do not fit go to a further table. Elsewhere (a pipe, a file, CI)
the same tables come without colour codes and without truncation, and fit `PLAIN` columns; sentences are not wrapped.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judgekit.analysis.measures import WHOLE_RUN
from judgekit.analysis.resampling import percent
from judgekit.report.formatting import UNDEFINED, clean, count, interval, marks, money, number, seconds
from judgekit.report.grids import Cell, Grid, grids
from judgekit.report.model import Cost, Results, Spending

__all__ = ["print_tables"]

WIDE = 100_000
"""Columns of a console that is not a terminal, so that no sentence is ever cut or wrapped."""

PLAIN = 100
"""Columns that its tables fit into."""


def print_tables(results: Results, console: Console | None = None) -> None:
    """Print the verdict, the primary table, and what each labeling needs and costs.

    Args:
        results: what to show.
        console: where to; standard output by default.
    """
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
    yield Text.assemble(("Verdict: ", "bold"), clean(results.verdict[0]))
    for sentence in results.verdict[1:]:
        yield Padding(Text(clean(sentence)), (0, 0, 0, 2), expand=False)
    yield Text()
    for part in (g for g in grids(results) if g.primary):
        yield from _grid(part, results, width)
    yield Constrain(_needs(results), width)
    yield Constrain(_costs(results, width), width)


def _grid(part: Grid, results: Results, width: int) -> Iterator[RenderableType]:
    primary = results.primary
    depth = "" if primary.depth == WHOLE_RUN else f"answers from the top {primary.depth}, "
    where = f"{part.level} level, {depth}{primary.metric}" + (f", {part.model}" if part.model else "")
    yield Text.assemble(("Concordance with answer quality ", "bold"), clean(f"({where}; 0.5 is chance)"))
    names = max([8, *(cell_len(f"{n} {marks(part.shared(n))}") for n in part.labelings)])
    # A column is at least as wide as a mark and "0.000 [0.000, 0.000]", and as its name; beside it is padding.
    column = max([22, *(cell_len(m) + 1 for m in part.measures)]) + 2
    fit = max(1, (width - min(names, 40) - 2) // column)
    for start in range(0, len(part.measures), fit):
        yield _cells(part, part.measures[start : start + fit], results.primary.measure)
    yield from _legend(part, results)


def _cells(part: Grid, measures: Sequence[str], primary: str) -> Table:
    table = _table("", "labeling")
    for measure in measures:
        style = "bold" if measure == primary else ""
        table.add_column(_text(measure + "*" * (measure == primary)), justify="right", style=style)
    for labeling in part.labelings:
        shown = [_cell(part, part.cells.get((labeling, measure))) for measure in measures]
        table.add_row(_text(f"{labeling} {marks(part.shared(labeling))}".rstrip()), *shown)
    return table


def _cell(part: Grid, cell: Cell | None) -> Text:
    if cell is None:
        return Text(UNDEFINED, style="dim")
    mark = marks(part.own(cell))
    text = Text((f"{mark} " if mark else "") + number(cell.value), style="dim" if cell.constructed else "")
    if cell.defined:
        text.append(" no interval" if cell.bare else f" {interval(cell.low, cell.high)}", style="dim not bold")
    return text


def _legend(part: Grid, results: Results) -> Iterator[Text]:
    if results.primary.measure in part.measures:
        yield Text("* the primary measure, fixed in advance: the verdict is about it", style="dim")
    if part.methods:
        kind = f"{percent(results.facts.confidence)} interval"
        yield Text(f"[low, high]: {kind} ({', '.join(part.methods)}), n = {part.sizes}", style="dim")
    for mark, note in part.notes:
        yield Text(clean(f"{mark} {note}".lstrip()), style="dim")
    for reason in part.reasons:
        yield Text(clean(f"{UNDEFINED}: {reason}"), style="dim")
    yield Text()


def _needs(results: Results) -> Table:
    table = _table("What each labeling needs and gave", "labeling", "references", "LLM", "shares with the answers")
    for name in ("labels", "missing"):
        table.add_column(name, overflow="fold", justify="right")
    for info in results.labelings:
        needs = (info.name, "yes" if info.references else "no", info.model or "none", info.shares)
        table.add_row(*map(_text, needs), count(sum(info.counts.values())), count(info.missing))
    return table


def _costs(results: Results, width: int) -> Group:
    table = _table("What it takes with nothing cached", "")
    for name in ("requests", "prompt tokens", "completion tokens", "money", "request seconds", "sent now", "time now"):
        table.add_column(name.replace(" ", "\n"), justify="right", overflow="fold", no_wrap=width >= PLAIN)
    for info in results.labelings:
        table.add_row(_text(info.name), *_spent(info.spending, results.currency))
    for answers in results.answers:
        name = f"end to end: {answers.name}" if len(results.answers) > 1 and answers.name else "end to end"
        if answers.at_verdict is not None:
            cells = _cost(answers.at_verdict, results.currency)
            table.add_row(_text(f"{name}, top {results.primary.depth}"), *cells, "", "")
        table.add_row(_text(f"{name}, all depths"), *_spent(answers.spending, results.currency))
    return Group(Text(), table, Text())


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title=title or None)
    table.title_justify, table.title_style = "left", "bold"
    for column in table.columns:
        column.overflow = "fold"
    return table


def _text(text: str) -> Text:
    return Text(clean(text))


def _spent(spending: Spending, currency: str) -> tuple[str, ...]:
    requests, *rest = _cost(spending.standalone, currency)
    again = f" ({count(spending.again)} again)" if spending.again else ""
    return (requests + again, *rest, count(spending.incurred.requests), seconds(spending.incurred.wall_s))


def _cost(cost: Cost, currency: str) -> tuple[str, ...]:
    return (
        count(cost.requests),
        count(cost.prompt_tokens, cost.unreported > 0),
        count(cost.completion_tokens, cost.unreported > 0),
        money(cost.money, currency, cost.unreported > 0),
        seconds(cost.request_seconds, cost.untimed > 0),
    )
