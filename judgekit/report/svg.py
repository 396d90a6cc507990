"""A few lines of SVG: elements that escape everything put into them, axes, and the marks that stand on them.

Colours and strokes come from `figures.css` by class, so that a figure follows the light or dark scheme of a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from rich.cells import cell_len, set_cell_size

from judgekit.report.formatting import clean

__all__ = [
    "Axis",
    "across",
    "bands",
    "colour",
    "cut",
    "document",
    "join",
    "legend",
    "line",
    "linear",
    "logarithmic",
    "mark",
    "marker",
    "tag",
    "text_width",
    "upright",
]

SERIES = 8
"""How many series colours the style sheet has; more series repeat them with other markers."""

WIDTH = 760.0

Point = tuple[float, float]


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; texts and attribute values are escaped, `Markup` children are not.

    ``class_`` is written ``class``, other underscores become hyphens; None leaves an attribute out; numbers are
    rounded to two decimals.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(children)}</{name}>")  # values and children are escaped, names are ours


def _value(value: str | float) -> str:
    return clean(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def join(parts: Sequence[str]) -> Markup:
    """Return the parts one after the other, escaped unless they are `Markup`."""
    return Markup("".join(p if isinstance(p, Markup) else escape(clean(p)) for p in parts))


def document(key: str, title: str, description: str, height: float, body: Sequence[Markup]) -> Markup:
    """Return a whole figure with its title and description for those who do not see it."""
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", description, id=f"{key}-desc"),
        *body,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_="figure",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        width=WIDTH,
        height=height,
    )


def text_width(text: str, per_cell: float = 7.6) -> float:
    """Return roughly how wide a text is in the figures' font size."""
    return cell_len(clean(text)) * per_cell


def cut(text: str, cells: int) -> str:
    """Return the text in at most ``cells`` terminal cells, cut in the middle: names differ at both ends."""
    text = clean(text)
    if cell_len(text) <= cells:
        return text
    end = (cells - 1) // 3
    return set_cell_size(text, cells - 1 - end).rstrip() + "…" + set_cell_size(text[::-1], end).strip()[::-1]


def colour(index: int) -> str:
    """Return the class that colours series ``index``."""
    return f"s{index % SERIES}"


def marker(x: float, y: float, index: int, *, extra: str = "") -> Markup:
    """Return the point of series ``index``: colour and shape, so that colour is not the only difference."""
    style = f"{colour(index)} point{extra}"
    shape = (index + index // SERIES) % 4
    if shape == 0:
        return tag("circle", cx=x, cy=y, r=5, class_=style)
    if shape == 1:
        return tag("rect", x=x - 4.25, y=y - 4.25, width=8.5, height=8.5, class_=style)
    diamond, triangle = [(0, -6.25), (6.25, 0), (0, 6.25), (-6.25, 0)], [(0, -6), (5.75, 4.5), (-5.75, 4.5)]
    points = " ".join(f"{x + dx:.2f},{y + dy:.2f}" for dx, dy in (diamond if shape == 2 else triangle))
    return tag("polygon", points=points, class_=style)


def mark(at: Point, ends: tuple[Point, Point], index: int, note: str, *, hollow: bool = False) -> Markup:
    """Return the point of series ``index`` with its interval and, on hovering, its numbers in words.

    ``ends`` are those of the interval, NaN where there is none; a ``hollow`` point is drawn as one that does not count.
    """
    extra = " off" if hollow else ""
    body = [tag("title", note)]
    (x1, y1), (x2, y2) = ends
    if math.isfinite(x1 + y1 + x2 + y2):
        body.append(tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=f"whisker {colour(index)}{extra}"))
    return tag("g", *body, marker(*at, index, extra=extra))


def line(points: Sequence[Point], class_: str) -> Markup:
    """Return a line through points."""
    return tag("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in points), class_=class_)


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from data (or its logarithm) to pixels, and the values that are marked, each with its text."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...] = ()
    scale: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (self.scale(value) - self.low) / (self.high - self.low) * (self.end - self.start)


def linear(
    values: Sequence[float], start: float, end: float, *, floor: float = -math.inf, ceiling: float = math.inf
) -> Axis:
    """Return an axis with a round tick about every 55 pixels that holds all finite values within floor and ceiling."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(finite), max(finite)
    if high - low < 1e-6 * max(abs(low), abs(high), 1):  # as good as one value
        low, high = low - (abs(low) or 1) / 20, high + (abs(high) or 1) / 20
    raw = (high - low) / max(2, round(abs(end - start) / 55))
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    low, high = max(math.floor(low / step) * step, floor), min(math.ceil(high / step) * step, ceiling)
    first = math.ceil(low / step - 1e-9)
    marks = [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + f"{step:.1e}".startswith("2.5")
    return Axis(low, high, start, end, tuple((v, f"{v + 0.0:,.{digits}f}") for v in marks))


def logarithmic(values: Sequence[float], start: float, end: float, marks: Sequence[float] = ()) -> Axis:
    """Return a logarithmic axis around positive values, with the given marks or else round ones."""
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    known = list(marks) or [f * 10.0**power for power in powers for f in factors]
    below = [m for m in known if m <= min(values) * 1.0001][-1:]
    above = [m for m in known if m >= max(values) * 0.9999][:1]
    shown = [m for m in known if [*below, -math.inf][0] <= m <= [*above, math.inf][0]]
    low, high = math.log10(min(*values, *shown)), math.log10(max(*values, *shown))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Axis(low, high, start, end, tuple((m, f"{m:,.10g}") for m in shown), math.log10)


def bands(names: Sequence[str], start: float, end: float) -> Axis:
    """Return an axis with an equal band for each name; the value of the i-th is i."""
    cells = max(4, round((end - start) / len(names) / 7.5))
    return Axis(-0.5, len(names) - 0.5, start, end, tuple((i, cut(name, cells)) for i, name in enumerate(names)))


def across(x: Axis, top: float, bottom: float, title: str, *, chance: float = math.nan, grid: bool = True) -> Markup:
    """Return a horizontal axis: grid lines, ticks and title, with chance dotted."""
    body = []
    for value, text in x.ticks:
        if grid:
            body.append(tag("line", x1=x(value), x2=x(value), y1=top, y2=bottom, class_="grid"))
        body.append(tag("text", text, x=x(value), y=bottom + 17, class_="tick middle"))
    if math.isfinite(chance):
        body.append(tag("line", x1=x(chance), x2=x(chance), y1=top, y2=bottom, class_="chance"))
    body.append(tag("text", title, x=(x.start + x.end) / 2, y=bottom + 36, class_="quiet middle"))
    return join(body)


def upright(y: Axis, left: float, right: float, title: str = "", *, chance: float = math.nan) -> Markup:
    """Return a vertical axis; without a title its ticks are not named either, as beside another panel."""
    body = []
    for value, text in y.ticks:
        body.append(tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="grid"))
        if title:
            body.append(tag("text", text, x=left - 8, y=y(value) + 4, class_="tick end"))
    if math.isfinite(chance):
        body.append(tag("line", x1=left, x2=right, y1=y(chance), y2=y(chance), class_="chance"))
    if title:
        at, middle = left - 50, (y.start + y.end) / 2
        turned = f"rotate(-90 {at:.0f} {middle:.0f})"
        body.append(tag("text", title, x=at, y=middle, class_="quiet middle", transform=turned))
    return join(body)


def legend(series: Mapping[str, int], y: float) -> tuple[Markup, float]:
    """Return markers with their names in rows from ``y`` on, and where the last row ends."""
    body, x = [], 20.0
    for name, index in series.items():
        label = cut(name, 40)
        wide = 46 + text_width(label)
        if x > 20 and x + wide > WIDTH:
            x, y = 20.0, y + 20
        body += [marker(x, y, index), tag("text", label, x=x + 12, y=y + 4)]
        x += wide
    return join(body), y + 14
