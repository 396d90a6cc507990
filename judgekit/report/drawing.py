"""How a figure is drawn: panels of dots with intervals, bars and lines, each of which says its numbers in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pandas as pd
from markupsafe import Markup

from judgekit.report.formatting import interval, number
from judgekit.report.svg import (
    WIDTH,
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

LEFT, RIGHT = 64.0, WIDTH - 16
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
    left = _room(every) if shared else 16.0
    bottom = 24 + ROW * max(len(every) if shared else len(names) for names in own.values())
    body: list[Markup] = []
    for place, (start, end, _, heading) in enumerate(_frames(panels, left, len(panels))):
        names = every if shared else own[heading]
        places = {series: 24 + ROW * (i + 0.5) for i, series in enumerate(names)}
        if not shared:
            start += _room(names) - 16
        if not shared or place == 0:
            for series, y in places.items():
                full = tag("title", series)
                body.append(tag("text", cut(series, 28), full, x=start - 12, y=y + 4, class_="end"))
        value, dots = panels[heading]
        beside = [dot for dot in dots if dot.look in ("", "off", "bar") and math.isfinite(dot.value)]
        room = max([60.0, *(text_width(dot.text) + 8 for dot in beside)])
        x = linear([*_numbers(dots), *value.held], start, end - room, floor=value.floor, ceiling=value.ceiling)
        body += [_heading(start, 14, heading), ruled(x, 24, bottom, value.title, chance=value.chance)]
        for dot in dots:
            y, said = places[dot.series], dot.text or number(dot.value, dot.digits)
            if not math.isfinite(dot.value):
                body.append(tag("text", said, x=start + 6, y=y + 4, class_="quiet"))
                continue
            body.append(dot.drawn((x(dot.value), y), ((x(dot.low), y), (x(dot.high), y)), order.get(dot.series, 0)))
            if dot.look in ("", "off"):
                body.append(tag("text", said, x=end, y=y + 4, class_="end quiet"))
            elif dot.look == "bar":
                body.append(tag("text", said, x=x(dot.high) + 6, y=y + 4, class_="quiet"))
            elif dot.bar and text_width(dot.word) + 6 <= x(dot.high) - x(dot.low):
                body.append(tag("text", dot.word, x=x(dot.low) + 6, y=y + 4))
    return _figure(name, title, caption, panels, bottom + 44, body, across)


def _room(names: Sequence[str]) -> float:
    """Return how much room the names of rows need on their left."""
    return min(240.0, 24 + max(text_width(cut(name, 28)) for name in names))


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
    body: list[Markup] = []
    bottom = 0.0
    for start, end, drop, heading in _frames(panels, LEFT, columns, high + 76):
        value, dots = panels[heading]
        shown = [number for other, some in panels.values() if other == value for number in _numbers(some)]
        top, bottom, room = drop + 26, drop + 26 + high, min(40.0, (end - start) / 8)
        y = linear([*shown, *value.held], bottom, top, floor=value.floor, ceiling=value.ceiling)
        if straight:
            x = linear([*positions, 0, 1], start + 12, end - 12)
        else:
            x = bands(names, start, end) if names else logarithmic(positions, start + room, end - room)
        body += [_heading(start, drop + 14, heading), ruled(x, top, bottom, across, grid=False)]
        body.append(ruled(y, start, end, value.title * (start == LEFT), upright=True, chance=value.chance))
        step = min(9.0, 0.7 * (end - start) / max(len(x.ticks), 1) / len(series)) * (not straight)
        for turn, (one, index) in enumerate(series):
            shift = (turn - (len(series) - 1) / 2) * step
            mine = [(x(dot.at) + shift, dot) for dot in dots if dot.series == one and math.isfinite(dot.value)]
            path = [f"{px:.2f},{y(dot.value):.2f}" for px, dot in mine if dot.look in ("", "mean")]
            if len(path) > 1 and not names:
                body.append(tag("polyline", points=" ".join(path), class_=f"path {colour(index)}"))
            for px, dot in mine:
                ends = (px, y(dot.low)), (px, y(dot.high))
                body += [dot.drawn((px, y(dot.value)), ends, index)] * (dot.look != "mean")
    at, bottom = 20.0, bottom + (36 if straight else 60)
    for one, index in series if len(series) > 1 and not straight else ():
        label = cut(one, 40)
        wide = 46 + text_width(label)
        if at > 20 and at + wide > WIDTH:
            at, bottom = 20.0, bottom + 20
        body += [marker(at, bottom, index), tag("text", label, x=at + 12, y=bottom + 4)]
        at += wide
    return _figure(name, title, caption, panels, bottom + 14, body, across)


def _frames(panels: Panels, left: float, columns: int, high: float = 0.0) -> Iterator[tuple[float, float, float, str]]:
    """Yield where each panel begins and ends, how far down it stands, and its title."""
    columns = min(columns, len(panels))
    wide = (RIGHT - left - 28 * (columns - 1)) / columns
    for place, title in enumerate(panels):
        start = left + place % columns * (wide + 28)
        yield start, start + wide, place // columns * high, title


def _heading(start: float, y: float, title: str) -> Markup:
    return tag("text", cut(title, 44), tag("title", title), x=start, y=y, class_="strong") if title else join([])


def _numbers(dots: Sequence[Dot]) -> list[float]:
    return [value for dot in dots for value in (dot.value, dot.low, dot.high)]


def _figure(
    name: str, title: str, caption: str, panels: Panels, height: float, body: Sequence[Markup], across: str
) -> Figure:
    """Return the figure with its words for those who do not see it, and its numbers."""
    told = []
    for heading, (_, dots) in panels.items():
        notes = [dot.note for dot in dots if dot.look not in ("single", "circle") and math.isfinite(dot.value)]
        told.append(f"{heading}: " * bool(heading) + "; ".join(notes))
    alt = ". ".join(told) + "."
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
    svg = tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", alt, id=f"{name}-desc"),
        *body,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="figure",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        width=WIDTH,
        height=height,
    )
    return Figure(name, title, caption, alt, svg, data)
