"""Which numbers go into which figure: the primary cell, concordance against k, cost against concordance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from judgekit.analysis.resampling import percent
from judgekit.report import figures
from judgekit.report.grids import Cell, Grid
from judgekit.report.model import Cost, LabelingInfo, Results
from judgekit.report.words import count, interval, number

__all__ = ["Picture", "by_depth", "forest", "frontier", "tokens"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure for the page: the prefix of its ids, the drawing, and a caption."""

    key: str
    drawing: Markup
    caption: str


def _measure(results: Results, main: Grid) -> str:
    """The measure that is drawn: the primary one, or the first where the verdict is about each labeling's best."""
    return results.primary.measure if results.primary.measure in main.measures else main.measures[0]


def _of(main: Grid, measure: str) -> dict[str, Cell]:
    return {name: main.cells[name, measure] for name in main.labelings if (name, measure) in main.cells}


def _scope(main: Grid) -> str:
    return f" ({main.part.dataset})" if main.part.dataset else ""


def forest(
    results: Results, main: Grid, every: Sequence[Grid], order: Mapping[str, int], key: str = "forest"
) -> Picture:
    """Return the primary measure by labeling, best first, with the single runs of the same slice."""
    measure = _measure(results, main)
    found = _of(main, measure)
    cells = sorted(found.values(), key=lambda c: (c.constructed, -c.value if c.defined else math.inf))
    singles = [g for g in every if g.part.run != main.part.run and replace(g.part, run=main.part.run) == main.part]
    runs = {name: [g.cells[name, measure] for g in singles if (name, measure) in g.cells] for name in found}
    told = "; ".join(f"{c.labeling} {number(c.value)} {interval(c.low, c.high)}".rstrip() for c in cells)
    caption = f"{measure} by labeling{_scope(main)}: point and {percent(results.facts.confidence)} interval"
    caption += "; the small strokes below a point are the single runs." if any(runs.values()) else "."
    return Picture(key, figures.forest(key, cells, runs, order, f"{measure}: {told}."), caption)


def by_depth(
    results: Results, main: Grid, every: Sequence[Grid], order: Mapping[str, int], key: str = "depth"
) -> Picture | None:
    """Return concordance against k (the eRAG paper's Figure 1), or None with fewer than two depths."""
    measure = _measure(results, main)
    name, _, cutoff = measure.rpartition("@")
    cut = cutoff.isdecimal()  # a budget of tokens is the same at every k
    series: dict[str, list[tuple[int, Cell]]] = {}
    for g in sorted(every, key=lambda g: g.part.depth):
        depth = g.part.depth
        if depth < 1 or replace(g.part, depth=main.part.depth) != main.part:
            continue
        for labeling, cell in _of(g, f"{name}@{depth}" if cut else measure).items():
            series.setdefault(labeling, []).append((depth, cell))
    if len({k for row in series.values() for k, c in row if c.defined}) < 2:
        return None
    told = "; ".join(f"{n}: " + ", ".join(f"{number(c.value)} at {k}" for k, c in row) for n, row in series.items())
    caption = f"{name if cut else measure}{_scope(main)}: end to end is answered again at each k"
    caption += ", and the measure is cut off at k." if cut else "."
    if any(c.constructed for row in series.values() for _, c in row):
        caption += " Hollow grey points are the outcome by construction."
    return Picture(key, figures.by_depth(key, series, order, told + "."), caption)


def frontier(results: Results, main: Grid, order: Mapping[str, int], key: str = "frontier") -> Picture | None:
    """Return cost against concordance, or None where fewer than two labelings have a known cost or all are free."""
    measure = _measure(results, main)
    cells = {name: cell for name, cell in _of(main, measure).items() if cell.defined}
    automatic = [info for info in results.labelings if info.name in cells and not info.people]
    unit, of = _unit(automatic, results.currency)
    costs = {info.name: cost for info in automatic if (cost := of(info.spending.standalone)) is not None}
    if len(costs) < 2 or not any(costs.values()):
        return None
    fair = [name for name in costs if not cells[name].constructed]
    best = {n for n in fair if not any(_beats((costs[m], cells[m].value), (costs[n], cells[n].value)) for m in fair)}
    points = [figures.Point(cells[name], cost, name in best) for name, cost in costs.items()]
    whole = [cost for a in results.answers if a.at_verdict is not None and (cost := of(a.at_verdict)) is not None]
    told = "; ".join(f"{name} takes {count(c)} {unit} for {number(cells[name].value)}" for name, c in costs.items())
    drawing = figures.frontier(key, points, unit, sum(whole) if whole else None, order, told + ".")
    caption = (
        f"{measure}{_scope(main)}: the steps join the labelings that no other one beats at the same or a lower cost."
    )
    unplaced = [name for name in cells if name not in costs]
    return Picture(key, drawing, caption + (f" Without a known cost: {', '.join(unplaced)}." if unplaced else ""))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether (cost, value) ``one`` is at most as dear and at least as good, and better in one of the two."""
    return one[0] <= other[0] and one[1] >= other[1] and one != other


def tokens(cost: Cost) -> float | None:
    """Return prompt and completion tokens together, or None where they are unknown."""
    if cost.prompt_tokens is None or cost.completion_tokens is None:
        return None
    return float(cost.prompt_tokens + cost.completion_tokens)


def _unit(infos: Sequence[LabelingInfo], currency: str) -> tuple[str, Callable[[Cost], float | None]]:
    """The most telling unit in which every labeling's cost is known: money, else tokens, else requests."""
    spent = [info.spending.standalone for info in infos]
    if all(cost.money is not None for cost in spent):
        return currency or "money", lambda cost: cost.money
    if all(tokens(cost) is not None for cost in spent):
        return "tokens", tokens
    return "requests", lambda cost: float(cost.requests)
