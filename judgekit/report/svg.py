"""A few lines of SVG: elements that escape everything put into them, axes, points, and the figure made of them.

Colours and strokes come from `figures.css` by class, so that a figure follows the light or dark scheme of a page.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self

import pandas as pd
from markupsafe import Markup, escape
from rich.cells import cell_len, set_cell_size

from judgekit.data.outputs import clean
from judgekit.data.streams import write_atomic
from judgekit.errors import UsageError, install, not_among

SERIES = 8
"""How many series colours the style sheet has; more series repeat them with other markers."""

WIDTH = 760.0
NARROW = 360.0
"""Pixels of a drawing on a page, and on a phone."""

Point = tuple[float, float]


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; texts and attribute values are escaped, `Markup` children are not."""
    # `class_` is written `class`, other underscores become hyphens; None leaves an attribute out; numbers are rounded
    # to two decimals.
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


def text_width(text: str) -> float:
    """Return roughly how wide a text is in the figures' font size."""
    return cell_len(clean(text)) * 7.6


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
    corners = (
        [(-4.25, -4.25), (4.25, -4.25), (4.25, 4.25), (-4.25, 4.25)],
        [(0, -6.25), (6.25, 0), (0, 6.25), (-6.25, 0)],
        [(0, -6), (5.75, 4.5), (-5.75, 4.5)],
    )
    return tag("polygon", points=" ".join(f"{x + dx:.2f},{y + dy:.2f}" for dx, dy in corners[shape - 1]), class_=style)


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
        low, high = low - (abs(low) / 20 or 0.05), high + (abs(high) / 20 or 0.05)
    raw = (high - low) / max(2, round(abs(end - start) / 55))
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    # An axis ends at a fifth of a step: whole steps would leave most of a narrow panel empty.
    end_step = step / 5
    low = max(math.floor(low / end_step) * end_step, floor)
    high = min(math.ceil(high / end_step) * end_step, ceiling)
    first = math.ceil(low / step - 1e-9)
    marks = [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + f"{step:.1e}".startswith("2.5")
    return Axis(low, high, start, end, tuple((v, f"{v + 0.0:,.{digits}f}") for v in marks))


def logarithmic(values: Sequence[float], start: float, end: float) -> Axis:
    """Return a logarithmic axis on which each of some ascending positive values is marked."""
    low, high = math.log10(values[0]), math.log10(values[-1])
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Axis(
        low, high, start=start, end=end, ticks=tuple((value, f"{value:,.10g}") for value in values), scale=math.log10
    )


def bands(names: Sequence[str], start: float, end: float) -> Axis:
    """Return an axis with an equal band for each name; the value of the i-th is i."""
    cells = max(4, round((end - start) / len(names) / 7.5))
    return Axis(-0.5, len(names) - 0.5, start, end, tuple((i, cut(name, cells)) for i, name in enumerate(names)))


def ruled(
    axis: Axis,
    near: float,
    far: float,
    title: str,
    *,
    upright: bool = False,
    chance: float = math.nan,
    grid: bool = True,
) -> Markup:
    """Return an axis with its ticks, grid and title; without a title, as beside another panel, ticks have no names."""
    # `near` and `far` are where its grid lines begin and end, `far` the lower edge of a horizontal axis.
    across, along = (("x1", "x2"), ("y1", "y2")) if upright else (("y1", "y2"), ("x1", "x2"))
    lines = [(value, "grid") for value, _ in axis.ticks if grid] + [(chance, "chance")] * math.isfinite(chance)
    body = [
        tag("line", **dict.fromkeys(along, axis(value)), **dict(zip(across, (near, far), strict=True)), class_=style)
        for value, style in lines
    ]
    for value, text in axis.ticks if title else ():
        at = {"x": near - 8, "y": axis(value) + 4} if upright else {"x": axis(value), "y": far + 17}
        body.append(tag("text", text, **at, class_=f"tick {'end' if upright else 'middle'}"))
    middle = (axis.start + axis.end) / 2
    x, y = (near - 50, middle) if upright else (middle, far + 36)
    turned = f"rotate(-90 {x:.0f} {y:.0f})" if upright else None
    return join([*body, tag("text", title, x=x, y=y, class_="quiet middle", transform=turned)])


@cache
def style() -> str:
    """Return the style sheet of all figures, with the colours of the light and of the dark scheme."""
    return files("judgekit.report").joinpath("templates", "figures.css").read_text(encoding="utf-8")


@cache
def _printed() -> str:
    """Return the style sheet for paper: the light colours in place of variables, which most programs do not know."""
    light = style().split("@media")[0]
    colours = dict(re.findall(r"(--\w+): (#\w+);", light))
    rules = re.sub(r"^  --.*\n|  background: [^;]*;", "", light, flags=re.MULTILINE) + style().rpartition("\n}\n")[2]
    return re.sub(r"var\((--\w+)\)", lambda match: colours[match[1]], rules)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure; in a notebook it shows itself.

    Attributes:
        name: a slug, which files go by; unique among the figures of a report.
        title: in words.
        caption: how to read it.
        alt: what it shows, for those who do not see it.
        data: the numbers that it shows, with columns in words.
        svg: the drawing, for a page that has `style`.
        narrow: the same drawing for a phone, with its panels below each other.
    """

    name: str
    title: str
    caption: str = field(repr=False)
    alt: str = field(repr=False)
    data: pd.DataFrame = field(repr=False)
    svg: Markup = field(repr=False)
    narrow: Markup = field(repr=False)

    @property
    def csv(self) -> str:
        """The numbers as CSV."""
        return str(self.data.to_csv(index=False))

    @property
    def link(self) -> str:
        """The numbers as a link that holds them, for a page that loads nothing."""
        return f"data:text/csv;base64,{b64encode(self.csv.encode(errors='replace')).decode()}"

    def file(self) -> str:
        """Return the drawing as an SVG file that needs no other file and that any program can read."""
        made = str(self.svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return made.replace("><title", f"><style>{_printed()}</style><title", 1)

    def save(self, path: str | Path) -> None:
        """Write the figure as ``.svg`` or ``.pdf``, or its numbers as ``.csv``, atomically."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".svg", ".pdf", ".csv"):
            raise UsageError(f"a figure is saved as .svg, .pdf or .csv, not as {path.name!r}")
        if kind != ".pdf":
            write_atomic(path, self.csv if kind == ".csv" else self.file())
            return
        try:
            from vl_convert import svg_to_pdf
        except ImportError:
            raise UsageError(f"PDF needs an extra: {install('pdf')}; .svg needs none") from None
        write_atomic(path, svg_to_pdf(self.file()))

    def _repr_html_(self) -> str:
        return str(
            tag("style", Markup(style())) + tag("figure", self.svg, tag("figcaption", self.caption))
        )  # our own file


class Figures(tuple[Figure, ...]):
    """Figures in a row, those that there are, which can be named; in a notebook they show themselves.

    Attributes:
        summary: what they are of in words and a table, as HTML.
    """

    summary: Markup

    def __new__(cls, figures: Iterable[Figure | None] = (), summary: str = "") -> Self:
        """Make a tuple of them."""
        self = super().__new__(cls, (one for one in figures if one is not None))
        self.summary = Markup(summary)  # made of escaped parts
        return self

    def named(self, name: str) -> Figure:
        """Return the figure of a name."""
        for one in self:
            if one.name == name:
                return one
        raise UsageError(not_among("figure", name, [one.name for one in self]))

    def save(self, folder: str | Path, formats: tuple[str, ...] = ("svg", "csv")) -> list[Path]:
        """Write all of them into a folder, which is made where it is missing, and return the files."""
        paths = [(one, Path(folder) / f"{one.name}.{kind}") for one in self for kind in formats]
        Path(folder).mkdir(parents=True, exist_ok=True)
        for one, path in paths:
            one.save(path)
        return [path for _, path in paths]

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)
