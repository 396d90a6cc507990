"""The figures of the page: the primary cell, concordance against k, cost against concordance.

Each is one inline SVG that takes its colours from the page's style sheet, so that it follows the light or dark scheme.
The same numbers stand in a table of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from judgekit.report import svg
from judgekit.report.grids import Cell
from judgekit.report.svg import Axis, tag
from judgekit.report.words import interval, number

__all__ = ["Point", "by_depth", "forest", "frontier", "spark", "spark_range"]

CHANCE = 0.5
WIDTH = 760.0


def _axis_range(values: Sequence[float], ticks: int = 6) -> tuple[float, float, float]:
    """The range of a concordance axis: chance is always on it."""
    return svg.nice([*values, CHANCE - 0.02, CHANCE + 0.1], floor=0.0, ceiling=1.0, ticks=ticks)


def _ticks(low: float, high: float, step: float) -> list[float]:
    return [low + i * step for i in range(round((high - low) / step) + 1) if low + i * step <= high + 1e-9]


def _numbers(cells: Sequence[Cell]) -> list[float]:
    return [v for c in cells for v in (c.value, c.low, c.high) if math.isfinite(v)]


def spark_range(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the range on which the small pictures of one table are drawn; chance is in it."""
    low, high, _ = _axis_range(_numbers(list(cells)))
    return low, high


def spark(cell: Cell, low: float, high: float) -> Markup:
    """Return the small picture in a table cell: the interval and the point between ``low`` and ``high``."""
    if not cell.defined:
        return Markup("")
    x = Axis(low, high, 3.0, 87.0)
    body = [
        tag("line", x1=x(low), x2=x(high), y1=5, y2=5, class_="rail"),
        tag("line", x1=x(CHANCE), x2=x(CHANCE), y1=1, y2=9, class_="chance"),
    ]
    if interval(cell.low, cell.high):
        body.append(tag("line", x1=x(cell.low), x2=x(cell.high), y1=5, y2=5, class_="bar"))
    body.append(tag("circle", cx=x(cell.value), cy=5, r=2.6, class_="dot"))
    return tag("svg", *body, viewBox="0 0 90 10", width=90, height=10, class_="spark", aria_hidden="true")


def forest(
    key: str,
    cells: Sequence[Cell],
    runs: Mapping[str, Sequence[Cell]],
    order: Mapping[str, int],
    description: str,
) -> Markup:
    """Return the primary cell's picture: one row per labeling with its interval, single runs as faint ticks.

    Args:
        key: prefix of the ids inside.
        cells: one per labeling, in the order of the rows.
        runs: the same measure per labeling for single runs; may be empty.
        order: series number of each labeling, which gives colour and marker.
        description: what the figure shows, in words.
    """
    singles = [c for row in runs.values() for c in row]
    low, high, step = _axis_range(_numbers(cells) + [c.value for c in singles if c.defined])
    left = min(260.0, 24 + max(svg.text_width(svg.cut(c.labeling, 32)) for c in cells))
    x = Axis(low, high, left, WIDTH - 190)
    row_height, top = 38.0, 14.0
    bottom = top + row_height * len(cells)
    body = _x_axis(x, step, top, bottom, "concordance with answer quality")
    for i, cell in enumerate(cells):
        y = top + row_height * (i + 0.5)
        series = order[cell.labeling]
        shade = f"s{series % svg.SERIES}" + (" off" if cell.constructed else "")
        body.append(
            tag("text", svg.cut(cell.labeling, 32), tag("title", cell.labeling), x=left - 14, y=y + 4, class_="end")
        )
        body += [
            tag("line", x1=x(c.value), x2=x(c.value), y1=y + 7, y2=y + 13, class_=f"single {shade}")
            for c in runs.get(cell.labeling, ())
            if c.defined
        ]
        if not cell.defined:
            body.append(tag("text", f"undefined: {cell.reason}", x=left + 6, y=y + 4, class_="quiet"))
            continue
        between = interval(cell.low, cell.high)
        if between:
            body.append(tag("line", x1=x(cell.low), x2=x(cell.high), y1=y, y2=y, class_=f"whisker {shade}"))
        body.append(svg.marker(x(cell.value), y, series, size=5.5, extra="off" if cell.constructed else ""))
        body.append(
            tag("text", tag("tspan", number(cell.value), class_="strong"), f" {between}", x=WIDTH - 172, y=y + 4)
        )
    return svg.document(key, "Concordance of the primary measure by labeling", description, WIDTH, bottom + 44, body)


def _x_axis(x: Axis, step: float, top: float, bottom: float, label: str) -> list[Markup]:
    body = []
    for value in _ticks(x.low, x.high, step):
        body.append(tag("line", x1=x(value), x2=x(value), y1=top, y2=bottom, class_="grid"))
        body.append(tag("text", f"{value:.2f}", x=x(value), y=bottom + 17, class_="tick middle"))
    body.append(tag("line", x1=x(CHANCE), x2=x(CHANCE), y1=top, y2=bottom, class_="chance"))
    body.append(tag("text", f"{label} (0.5 is chance)", x=(x.start + x.end) / 2, y=bottom + 36, class_="quiet middle"))
    return body


def _y_axis(y: Axis, step: float, left: float, right: float) -> list[Markup]:
    body = []
    for value in _ticks(y.low, y.high, step):
        body.append(tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="grid"))
        body.append(tag("text", f"{value:.2f}", x=left - 8, y=y(value) + 4, class_="tick end"))
    body.append(tag("line", x1=left, x2=right, y1=y(CHANCE), y2=y(CHANCE), class_="chance"))
    middle = (y.start + y.end) / 2
    body.append(
        tag("text", "concordance", x=14, y=middle, class_="quiet middle", transform=f"rotate(-90 14 {middle:.0f})")
    )
    return body


def by_depth(
    key: str, series: Mapping[str, Sequence[tuple[int, Cell]]], order: Mapping[str, int], description: str
) -> Markup:
    """Return concordance against k: a line with intervals per labeling; by-construction points are hollow and apart.

    Args:
        key: prefix of the ids inside.
        series: (k, cell) per labeling, ascending.
        order: series number of each labeling.
        description: what the figure shows, in words.
    """
    depths = sorted({k for row in series.values() for k, _ in row})
    cells = [c for row in series.values() for _, c in row]
    low, high, step = _axis_range(_numbers(cells))
    left, right, top, bottom = 64.0, WIDTH - 16, 12.0, 300.0
    y = Axis(low, high, bottom, top)
    x = Axis(math.log(depths[0]), math.log(depths[-1]), left + 50, right - 50)
    body = _y_axis(y, step, left, right)
    for k in depths:
        body.append(tag("text", f"{k}", x=x(math.log(k)), y=bottom + 18, class_="tick middle"))
    body.append(
        tag("text", "k, documents that the answer is given", x=(left + right) / 2, y=bottom + 38, class_="quiet middle")
    )
    for position, (name, row) in enumerate(series.items()):
        shift = (position - (len(series) - 1) / 2) * 9
        number_ = order[name]
        shade = f"s{number_ % svg.SERIES}"
        drawn = [(x(math.log(k)) + shift, c) for k, c in row if c.defined]
        free = [(px, c) for px, c in drawn if not c.constructed]
        if len(free) > 1:
            path = " ".join(f"{px:.2f},{y(c.value):.2f}" for px, c in free)
            body.append(tag("polyline", points=path, class_=f"path {shade}"))
        for px, c in drawn:
            extra = "off" if c.constructed else ""
            if interval(c.low, c.high):
                body.append(
                    tag("line", x1=px, x2=px, y1=y(c.low), y2=y(c.high), class_=f"whisker thin {shade} {extra}")
                )
            body.append(svg.marker(px, y(c.value), number_, extra=extra))
    return svg.document(key, "Concordance against the number of documents", description, WIDTH, bottom + 48, body)


def _round_costs(costs: Sequence[float]) -> list[float]:
    """Return the round costs (1, 2 or 5 times a power of ten; powers only on a long axis) that enclose ``costs``."""
    first, last = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    marks = [f * 10.0**power for power in range(first, last + 1) for f in factors]
    below = max(i for i, mark in enumerate(marks) if mark <= min(costs) * 1.0001)
    above = min(i for i, mark in enumerate(marks) if mark >= max(costs) * 0.9999)
    return marks[below : max(above, below + 1) + 1]


@dataclass(frozen=True, slots=True)
class Point:
    """One labeling in the picture of cost against concordance."""

    cell: Cell
    cost: float
    on_frontier: bool


def frontier(
    key: str, points: Sequence[Point], unit: str, end_to_end: float | None, order: Mapping[str, int], description: str
) -> Markup:
    """Return cost (log scale, zero apart at the left) against concordance with the frontier as steps.

    Args:
        key: prefix of the ids inside.
        points: labelings with a known cost and a defined concordance; at least one.
        unit: what the costs are, e.g. ``USD``.
        end_to_end: the cost of answering end to end, drawn as a line.
        order: series number of each labeling.
        description: what the figure shows, in words.
    """
    low, high, step = _axis_range(_numbers([p.cell for p in points]))
    left, right, top, bottom = 64.0, WIDTH - 16, 18.0, 310.0
    y = Axis(low, high, bottom, top)
    positive = [c for c in (*(p.cost for p in points), end_to_end or 0.0) if c > 0]
    marks = _round_costs(positive)
    x = Axis(math.log10(marks[0]), math.log10(marks[-1]), left + 90, right - 40)

    def across(cost: float) -> float:
        return x(math.log10(cost)) if cost > 0 else left + 34

    body = _y_axis(y, step, left, right)
    body.append(tag("text", "0", x=across(0), y=bottom + 18, class_="tick middle"))
    for cost in marks:
        body.append(tag("line", x1=across(cost), x2=across(cost), y1=top, y2=bottom, class_="grid"))
        body.append(tag("text", f"{cost:,.10g}", x=across(cost), y=bottom + 18, class_="tick middle"))
    body.append(
        tag(
            "text",
            f"cost with nothing cached, {unit} (log scale)",
            x=(left + right) / 2,
            y=bottom + 38,
            class_="quiet middle",
        )
    )
    if end_to_end:
        at = across(end_to_end)
        body.append(tag("line", x1=at, x2=at, y1=top, y2=bottom, class_="reference"))
        body.append(tag("text", "end to end", x=at - 5, y=bottom - 8, class_="quiet end"))
    steps: list[str] = []
    for p in sorted((p for p in points if p.on_frontier), key=lambda p: (p.cost, p.cell.value)):
        px, py = across(p.cost), y(p.cell.value)
        steps += [f"{px:.2f},{steps[-1].split(',')[1]}"] if steps else []
        steps.append(f"{px:.2f},{py:.2f}")
    if len(steps) > 1:
        body.append(tag("polyline", points=" ".join(steps), class_="steps"))
    taken: list[tuple[float, float]] = []
    for p in sorted(points, key=lambda p: -p.cell.value):
        # Labelings of the same cost would hide each other's intervals; their names stand clear of all of them.
        base = across(p.cost)
        same = sum(abs(base - across(other.cost)) < 1 for other in points)
        px = base + 7 * sum(abs(base - near) < 1 for near, _ in taken)
        py = y(p.cell.value)
        extra = "off" if p.cell.constructed else ""
        series = order[p.cell.labeling]
        if interval(p.cell.low, p.cell.high):
            body.append(
                tag(
                    "line",
                    x1=px,
                    x2=px,
                    y1=y(p.cell.low),
                    y2=y(p.cell.high),
                    class_=f"whisker thin s{series % svg.SERIES} {extra}",
                )
            )
        body.append(svg.marker(px, py, series, size=5.5, extra=extra))
        label = svg.cut(p.cell.labeling, 28)
        right_of = base + 7 * (same - 1) + 10
        ends = right_of + svg.text_width(label) > right
        ty = py - 8
        while any(abs(ty - other) < 14 and abs(px - near) < 170 for near, other in taken):
            ty += 14
        taken.append((base, ty))
        body.append(tag("text", label, x=base - 10 if ends else right_of, y=ty, class_="end" if ends else None))
    return svg.document(key, "Cost against concordance", description, WIDTH, bottom + 48, body)
