"""How a figure is drawn: panels of dots with intervals, bars and lines, each of which says its numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pandas as pd
from markupsafe import Markup

from judgekit.report.formatting import interval, number
from judgekit.report.svg import (
    NARROW,
    WIDTH,
    Axis,
    Figure,
    Point,
    bands,
    colour,
    cut,
    join,
    linear,
    logarithmic,
    marker,
    ruled,
    tag,
    text_width,
)

LEFT, MARGIN, BETWEEN = 64.0, 16.0, 28.0
ROW = 34.0


class Value(NamedTuple):
    """An axis of values: its title, what is chance on it, what it always holds, and where it ends."""

    title: str
    chance: float = math.nan
    held: tuple[float, ...] = (0.0,)
    floor: float = -math.inf
    ceiling: float = math.inf


COEFFICIENTS: Final = {
    "concordance": Value("concordance", 0.5, (0.48, 0.6), 0.0, 1.0),
    "tau_b": Value("Kendall’s τ-b", 0.0, (-0.04, 0.2), -1.0, 1.0),
    "rho": Value("Spearman’s ρ", 0.0, (-0.04, 0.2), -1.0, 1.0),
    "r": Value("Pearson’s r", 0.0, (-0.04, 0.2), -1.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class Dot:
    """One mark of a series: where it stands, its value with interval and number of cases, and how it looks.

    ``look`` is "" for a point, ``off`` for one that does not count, ``single`` for one of several behind others,
    ``mean`` for a bend of a line without a point, ``circle`` for one as large as ``size``, and ``bar``, ``share`` or
    ``lost`` for a bar from ``low`` to ``high``. ``text`` stands for the value where a number does not say it.
    """

    series: str
    at: float
    value: float
    low: float = math.nan
    high: float = math.nan
    n: float = math.nan
    word: str = ""
    look: str = ""
    text: str = ""
    size: float = 5.0
    digits: int = 3

    @property
    def bar(self) -> bool:
        """Whether it is drawn from ``low`` to ``high``."""
        return self.look in ("bar", "share", "lost")

    @property
    def note(self) -> str:
        """What it says, in words."""
        where = f", {self.word}" if self.word else "" if math.isnan(self.at) else f" at {self.at:,.10g}"
        ends = "" if self.bar else interval(self.low, self.high, self.digits)
        cases = "" if math.isnan(self.n) else f", n = {self.n:,.0f}"
        return f"{self.series}{where}: {self.text or number(self.value, self.digits)} {ends}".rstrip() + cases

    def drawn(self, at: Point, ends: tuple[Point, Point], index: int) -> Markup:
        """Return its mark, which says its numbers to whoever points at it."""
        (x1, y1), (x2, y2) = ends
        body, style = [tag("title", self.note)], f"{colour(index)} {self.look}".rstrip()
        if self.bar:
            style = style if self.look == "bar" else self.look
            opacity = self.size if self.look == "share" else None
            body.append(
                tag("rect", x=x1, y=y1 - 11, width=max(x2 - x1, 1), height=22, class_=style, fill_opacity=opacity)
            )
        elif self.look == "single":
            body.append(tag("line", x1=at[0], x2=at[0], y1=at[1] + 7, y2=at[1] + 13, class_=style))
        elif self.look == "circle":
            body.append(tag("circle", cx=at[0], cy=at[1], r=self.size, class_=f"{style} point", fill_opacity=0.45))
        else:
            if math.isfinite(x1 + y1 + x2 + y2):
                body.append(tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=f"whisker {style}"))
            body.append(marker(*at, index, extra=" off" * (self.look == "off")))
        return tag("g", *body, class_="mark")


Panels = Mapping[str, tuple[Value, Sequence[Dot]]]
"""The panels of a figure by title: what their values are, and their dots."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a figure is drawn on: its width in pixels, panels side by side at most, cells of a row's name at most."""

    width: float
    columns: int
    cells: int

    def frames(self, panels: Panels, left: float, columns: int, high: float) -> Iterator[Frame]:
        """Yield the frame of each panel, of which ``columns`` at most stand side by side, each ``high`` pixels high."""
        columns = min(columns, self.columns, len(panels))
        wide = (self.width - MARGIN - left - BETWEEN * (columns - 1)) / columns
        for place, (title, (value, dots)) in enumerate(panels.items()):
            row, column = divmod(place, columns)
            start = left + column * (wide + BETWEEN)
            yield Frame(title, value, dots=dots, start=start, end=start + wide, top=row * high)

    def room(self, names: Sequence[str]) -> float:
        """Return how much room the names of rows need on their left."""
        return min(240.0, 24 + max(text_width(cut(name, self.cells)) for name in names))


class Frame(NamedTuple):
    """A panel in its place: from ``start`` to ``end`` across the sheet, and ``top`` down from its upper edge."""

    title: str
    value: Value
    dots: Sequence[Dot]
    start: float
    end: float
    top: float


SHEETS: Final = (Sheet(WIDTH, 3, 28), Sheet(NARROW, 1, 16))
"""A figure is drawn for a page and for a phone, where one scaled to the width would be too small to read."""

Drawing = Callable[[Sheet], tuple[float, list[Markup]]]
"""Draws a figure on a sheet: its height, and its elements."""


def rows(
    name: str,
    title: str,
    caption: str,
    panels: Panels,
    order: Mapping[str, int],
    across: str = "run",
    *,
    shared: bool = True,
) -> Figure:
    """Return a row for each series, in order of appearance, with its dots and bars in each panel.

    Panels share their rows, or each has rows of its own.
    """
    every = list(dict.fromkeys(dot.series for _, dots in panels.values() for dot in dots))
    own = {heading: list(dict.fromkeys(dot.series for dot in dots)) for heading, (_, dots) in panels.items()}
    high = 24 + ROW * max(len(every) if shared else len(names) for names in own.values())

    def draw(sheet: Sheet) -> tuple[float, list[Markup]]:
        left = sheet.room(every) if shared else MARGIN
        body: list[Markup] = []
        bottom = high
        for frame in sheet.frames(panels, left, len(panels), high + 64):
            names, start = every, frame.start
            if not shared:
                names = own[frame.title]
                start += sheet.room(names) - MARGIN
            # Side by side, panels end at the same height; below each other, each where its rows end.
            bottom = frame.top + (high if sheet.columns > 1 else 24 + ROW * len(names))
            places = {series: frame.top + 24 + ROW * (i + 0.5) for i, series in enumerate(names)}
            if not shared or frame.start == left:  # panels that share their rows name them once, on their left
                for series, y in places.items():
                    full = tag("title", series)
                    body.append(tag("text", cut(series, sheet.cells), full, x=start - 12, y=y + 4, class_="end"))
            x = _across(frame, start)
            body.append(_heading(start if sheet.columns > 1 else MARGIN, frame.top + 14, frame.title))
            body.append(ruled(x, frame.top + 24, bottom, frame.value.title, chance=frame.value.chance))
            for dot in frame.dots:
                body += _in_row(dot, x, places[dot.series], frame.end, order.get(dot.series, 0))
        return bottom + 44, body

    return _figure(name, title, caption=caption, panels=panels, draw=draw, across=across)


def _across(frame: Frame, start: float) -> Axis:
    """Return the axis of a panel of rows, which leaves room for the texts behind the rows."""
    beside = [dot for dot in frame.dots if dot.look in ("", "off", "bar") and math.isfinite(dot.value)]
    room = max([60.0, *(text_width(dot.text) + 8 for dot in beside)])
    values = [*_numbers(frame.dots), *frame.value.held]
    return linear(values, start, frame.end - room, floor=frame.value.floor, ceiling=frame.value.ceiling)


def _in_row(dot: Dot, x: Axis, y: float, end: float, index: int) -> Iterator[Markup]:
    """Yield a dot or a bar in its row, and its text where there is room: at the end, behind the bar, or in it."""
    text = dot.text or number(dot.value, dot.digits)
    if not math.isfinite(dot.value):
        yield tag("text", text, x=x.start + 6, y=y + 4, class_="quiet")
        return
    yield dot.drawn((x(dot.value), y), ((x(dot.low), y), (x(dot.high), y)), index)
    if dot.look in ("", "off"):
        yield tag("text", text, x=end, y=y + 4, class_="end quiet")
    elif dot.look == "bar":
        yield tag("text", text, x=x(dot.high) + 6, y=y + 4, class_="quiet")
    elif dot.bar and text_width(dot.word) + 6 <= x(dot.high) - x(dot.low):
        yield tag("text", dot.word, x=x(dot.low) + 6, y=y + 4)


def lines(
    name: str,
    title: str,
    caption: str,
    panels: Panels,
    order: Mapping[str, int],
    across: str,
    *,
    names: Sequence[str] = (),
    straight: bool = False,
    high: float = 274.0,
    columns: int = 2,
) -> Figure:
    """Return the dots of each panel against names, or against numbers on a logarithmic or a ``straight`` axis."""
    every = [dot for _, dots in panels.values() for dot in dots]
    series = sorted({dot.series: order[dot.series] for dot in every}.items(), key=lambda item: item[1])
    positions = sorted({dot.at for dot in every})

    def draw(sheet: Sheet) -> tuple[float, list[Markup]]:
        body: list[Markup] = []
        bottom = 0.0
        for frame in sheet.frames(panels, LEFT, columns, high + 76):
            start, end, value = frame.start, frame.end, frame.value
            top = frame.top + 26
            bottom = top + high
            # Panels of the same values share their scale.
            shown = [one for other, dots in panels.values() if other == value for one in _numbers(dots)]
            y = linear([*shown, *value.held], bottom, top, floor=value.floor, ceiling=value.ceiling)
            if straight:
                x = linear([*positions, 0, 1], start + 12, end - 12)
            elif names:
                x = bands(names, start, end)
            else:
                room = min(40.0, (end - start) / 8)
                x = logarithmic(positions, start + room, end - room)
            body += [_heading(start, frame.top + 14, frame.title), ruled(x, top, bottom, across, grid=False)]
            body.append(ruled(y, start, end, value.title * (start == LEFT), upright=True, chance=value.chance))
            apart = 0.0 if straight else min(9.0, 0.7 * (end - start) / max(len(x.ticks), 1) / len(series))
            for turn, (labeling, index) in enumerate(series):
                shift = (turn - (len(series) - 1) / 2) * apart
                mine = [dot for dot in frame.dots if dot.series == labeling and math.isfinite(dot.value)]
                body += _series(mine, x, y, shift, index, joined=not names)
        if len(series) > 1 and not straight:
            return _legend(body, series, bottom + 60, sheet.width)
        return bottom + (50 if straight else 74), body

    return _figure(name, title, caption=caption, panels=panels, draw=draw, across=across)


def _series(dots: Sequence[Dot], x: Axis, y: Axis, shift: float, index: int, joined: bool) -> Iterator[Markup]:
    """Yield the dots of one series in one panel, ``shift`` pixels beside their place, and the line that joins them."""
    path = [f"{x(dot.at) + shift:.2f},{y(dot.value):.2f}" for dot in dots if dot.look in ("", "mean")]
    if joined and len(path) > 1:
        yield tag("polyline", points=" ".join(path), class_=f"path {colour(index)}")
    for dot in dots:
        if dot.look != "mean":
            at = x(dot.at) + shift
            yield dot.drawn((at, y(dot.value)), ((at, y(dot.low)), (at, y(dot.high))), index)


def _legend(
    body: list[Markup], series: Sequence[tuple[str, int]], bottom: float, width: float
) -> tuple[float, list[Markup]]:
    """Return a drawing with the names of its series below, in as many lines as they take."""
    at = 20.0
    for name, index in series:
        label = cut(name, 40)
        wide = 46 + text_width(label)
        if at > 20 and at + wide > width:
            at, bottom = 20.0, bottom + 20
        body += [marker(at, bottom, index), tag("text", label, x=at + 12, y=bottom + 4)]
        at += wide
    return bottom + 14, body


def _heading(start: float, y: float, title: str) -> Markup:
    return tag("text", cut(title, 44), tag("title", title), x=start, y=y, class_="strong") if title else join([])


def _numbers(dots: Sequence[Dot]) -> list[float]:
    return [value for dot in dots for value in (dot.value, dot.low, dot.high)]


def _figure(name: str, title: str, caption: str, panels: Panels, draw: Drawing, across: str) -> Figure:
    """Return the figure with its words for those who do not see it, and its numbers."""
    parts = []
    for heading, (_, dots) in panels.items():
        notes = [dot.note for dot in dots if dot.look not in ("single", "circle") and math.isfinite(dot.value)]
        parts.append(f"{heading}: " * bool(heading) + "; ".join(notes))
    alt = ". ".join(parts) + "."
    held = ("panel", "labeling", across, "value", "low", "high", "n")
    data = pd.DataFrame(
        [
            (heading, d.series, d.word or ("" if math.isnan(d.at) else d.at), d.value, d.low, d.high, d.n)
            for heading, (_, dots) in panels.items()
            for d in dots
        ],
        columns=held,
    )
    empty = [column for column in held if data[column].isna().all() or (data[column] == "").all()]
    (value, *others) = {one.title for one, _ in panels.values()}
    data = data.drop(columns=empty).rename(columns={} if others else {"value": value})
    drawn = []
    for sheet in SHEETS:
        height, body = draw(sheet)
        key = f"{name}-{sheet.width:.0f}"
        drawn.append(
            tag(
                "svg",
                tag("title", title, id=f"{key}-title"),
                tag("desc", alt, id=f"{key}-desc"),
                *body,
                role="img",
                aria_labelledby=f"{key}-title {key}-desc",
                class_="figure",
                viewBox=f"0 0 {sheet.width:.0f} {height:.0f}",
                width=sheet.width,
                height=height,
            )
        )
    svg, narrow = drawn
    return Figure(name, title, caption, alt, data, svg=svg, narrow=narrow)
