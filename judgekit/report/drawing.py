"""Drawing figures: panels of marks with intervals, in rows or against an axis.

Python places everything; `templates/figure.svg` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pandas as pd
from markupsafe import Markup

from judgekit.report.formatting import cut, interval, number, text_width
from judgekit.report.markup import fill
from judgekit.report.svg import NARROW, WIDTH, Figure

MARGIN: Final = 16.0
BETWEEN: Final = 28.0
TITLE: Final = 26.0
"""Pixels left at the edges of a drawing, between panels, and above a panel for its title."""

BELOW: Final = 64.0
"""Pixels below a panel, for the texts of its axis and a gap."""

SCALE: Final = 68.0
"""Pixels beside a panel, for the numbers and the title of an upright axis."""

ROW: Final = 34.0
HIGH: Final = 274.0
"""Pixels of a row, and of a panel with an upright axis."""

CELLS: Final = 28
"""The largest number of characters of a name, if there is room."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from data to pixels, with its labels.

    Attributes:
        low, high: the ends in data.
        start, end: the same in pixels.
        ticks: the marked values with their texts.
        places: the values side by side on an axis of names, whose positions are mapped.
        title: its title.
        chance: the value of chance, marked by a dotted line.
        grid: whether each tick has a line across the panel.
        cells: the largest number of characters of a tick's text.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]] = ()
    places: Sequence[float] = ()
    title: str = ""
    chance: float | None = None
    grid: bool = True
    cells: int = CELLS

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        at = self.places.index(value) if self.places else value
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Value:
    """The contents of an axis of values: its title, the value of chance, and values always included."""

    title: str
    chance: float | None = None
    held: tuple[float, ...] = (0.0,)

    def axis(self, numbers: Sequence[float], start: float, end: float) -> Axis:
        """Return an axis with a round tick about every 55 pixels that holds all finite numbers."""
        finite = [value for value in (*numbers, *self.held) if math.isfinite(value)]
        low, high = min(finite), max(finite)
        if high - low < 1e-6 * max(abs(low), abs(high), 1):
            # Practically one value: without a range, all ticks would read the same.
            low, high = low - (abs(low) / 20 or 0.05), high + (abs(high) / 20 or 0.05)
        raw = (high - low) / max(2, round(abs(end - start) / 55))
        power = 10.0 ** math.floor(math.log10(raw))
        # Steps of 1, 2, 2.5 and 5 are easy to read; others are not.
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
        digits = max(0, -math.floor(math.log10(step) + 1e-9)) + f"{step:.1e}".startswith("2.5")
        ticks = []
        for turn in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
            ticks.append((turn * step, f"{turn * step + 0.0:,.{digits}f}"))
        return Axis(low, high, start, end, ticks, title=self.title, chance=self.chance)


def bands(ticks: Sequence[tuple[float, str]], start: float, end: float, *, title: str = "", cells: int = CELLS) -> Axis:
    """Return an axis on which each value has an equal band and a name."""
    values = [value for value, _ in ticks]
    return Axis(-0.5, len(values) - 0.5, start, end, ticks, places=values, title=title, grid=False, cells=cells)


COEFFICIENTS: Final = {
    "concordance": Value("concordance", 0.5, (0.48, 0.6)),
    "tau_b": Value("Kendall’s τ-b", 0.0, (-0.04, 0.2)),
    "rho": Value("Spearman’s ρ", 0.0, (-0.04, 0.2)),
    "r": Value("Pearson’s r", 0.0, (-0.04, 0.2)),
}


@dataclass(frozen=True, slots=True)
class Dot:
    """One mark of a series: its position, its value with interval and number of cases, and its look.

    ``look`` is "" for a point and ``off`` for one that does not count; ``text`` replaces the value.
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
    digits: int = 3

    @property
    def is_drawn(self) -> bool:
        """Whether there is a value to draw."""
        return math.isfinite(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return math.isfinite(self.low + self.high)

    @property
    def shown(self) -> str:
        """Its value as text."""
        return self.text or number(self.value, self.digits)

    @property
    def place(self) -> str | float:
        """Its position, as a name or a number."""
        if self.word or math.isnan(self.at):
            return self.word
        return self.at

    @property
    def note(self) -> str:
        """Its meaning in words."""
        note = self.series
        if self.word:
            note += f", {self.word}"
        elif not math.isnan(self.at):
            note += f" at {self.at:,.10g}"
        note = f"{note}: {self.shown} {interval(self.low, self.high, self.digits)}".rstrip()
        if not math.isnan(self.n):
            note += f", n = {self.n:,.0f}"
        return note


class FigurePanel(NamedTuple):
    """A panel of a figure: its axis of values and its marks."""

    value: Value
    dots: Sequence[Dot]

    @property
    def numbers(self) -> list[float]:
        """All values that its axis must include."""
        numbers: list[float] = []
        for dot in self.dots:
            numbers += (dot.value, dot.low, dot.high)
        return numbers


class Mark(NamedTuple):
    """A placed dot: the number of its series, and its pixel on the other axis."""

    dot: Dot
    place: int
    at: float


@dataclass(frozen=True, slots=True)
class PlacedPanel:
    """A placed panel: its axes in pixels, its marks, and the points joined by lines, by series.

    Values lie on the axis ``x`` and their texts end at ``right``, or on ``y`` if that is NaN.
    """

    title: str
    left: float
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    right: float = math.nan
    paths: Sequence[tuple[int, Sequence[Mark]]] = ()
    cells: int = 44

    @property
    def in_rows(self) -> bool:
        """Whether values lie on the axis across."""
        return not math.isnan(self.right)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet: its width in pixels, and the largest numbers of panels side by side and of cells of a name."""

    width: float
    columns: int
    cells: int


SHEETS: Final = (Sheet(WIDTH, 2, CELLS), Sheet(NARROW, 1, 16))
"""A figure is drawn for a page and for a phone, on which a scaled one would be too small to read."""

Lay = Callable[[Sheet, str, float, float, float], PlacedPanel]
"""Places a titled panel on a sheet between two horizontal pixels, below a third."""


@dataclass(frozen=True)
class Chart:
    """A figure before it is drawn.

    Attributes:
        name, title, caption: as of the figure.
        panels: by title.
        order: the number of each series, which determines its colour and shape.
        across: the column of the numbers by which a series' marks differ.
        names: the names of the marks' positions; without them, positions are numbers.
    """

    name: str
    title: str
    caption: str
    panels: Mapping[str, FigurePanel]
    order: Mapping[str, int] = field(default_factory=dict)
    across: str = "run"
    names: Sequence[str] = ()

    def rows(self) -> Figure:
        """Return a row for each series of a panel, in order of appearance, with its marks on an axis across."""
        return self._figure(self._in_rows)

    def lines(self) -> Figure:
        """Return the marks of each panel on an upright axis; at numbers, those of a series are joined."""
        return self._figure(self._upright, legend=True)

    @property
    def dots(self) -> list[Dot]:
        """The marks of all panels."""
        dots: list[Dot] = []
        for panel in self.panels.values():
            dots += panel.dots
        return dots

    @property
    def series(self) -> list[str]:
        """The names of the series, by their number."""
        # In the order of the whole report, so that a labeling keeps its colour and shape in all figures.
        names = {dot.series for dot in self.dots}
        return sorted(names, key=lambda name: (self.order.get(name, 0), name))

    def _in_rows(self, sheet: Sheet, title: str, left: float, right: float, top: float) -> PlacedPanel:
        panel = self.panels[title]
        names = list(dict.fromkeys(dot.series for dot in panel.dots))
        rows = bands(list(enumerate(names)), top, top + ROW * len(names), cells=sheet.cells)
        start = left + min(240.0, 24 + max(text_width(cut(name, sheet.cells)) for name in names))
        # Room for the texts, so that none overlaps an interval.
        beside = max(60.0, 8 + max(text_width(dot.shown) for dot in panel.dots))
        x = panel.value.axis(panel.numbers, start, right - beside)
        marks = []
        for dot in panel.dots:
            marks.append(Mark(dot, self.order.get(dot.series, 0), rows(names.index(dot.series))))
        # On a phone a title begins at the left edge; beside the rows' names it would be cut off.
        heading = start if sheet.columns > 1 else left
        return PlacedPanel(title, heading, x, rows, marks, right)

    def _upright(self, sheet: Sheet, title: str, left: float, right: float, top: float) -> PlacedPanel:
        panel = self.panels[title]
        start, bottom = left + SCALE - MARGIN, top + HIGH
        # Panels with the same values share a scale.
        numbers = []
        for other in self.panels.values():
            if other.value == panel.value:
                numbers += other.numbers
        y = panel.value.axis(numbers, bottom, top)
        positions = sorted({dot.at for dot in self.dots})
        series = self.series
        band = (right - start) / len(positions)
        ticks = []
        for at in positions:
            ticks.append((at, self.names[int(at)] if self.names else f"{at:,.10g}"))
        x = bands(ticks, start, right, title=self.across, cells=max(4, round(band / 7.5)))
        # Series are side by side within a band, because intervals of equal values would hide each other.
        apart = min(9.0, 0.7 * band / len(series))
        marks, paths = [], []
        for turn, name in enumerate(series):
            shift = (turn - (len(series) - 1) / 2) * apart
            own = []
            for dot in panel.dots:
                if dot.series == name and dot.is_drawn:
                    own.append(Mark(dot, self.order.get(name, 0), x(dot.at) + shift))
            # The outcome by construction is not a point of a curve.
            joined = [mark for mark in own if not mark.dot.look]
            if len(joined) > 1 and not self.names:
                paths.append((joined[0].place, joined))
            marks += own
        return PlacedPanel(title, start, x, y, marks, paths=paths)

    def _figure(self, lay: Lay, *, legend: bool = False) -> Figure:
        svg, narrow = (self._drawn(sheet, lay, legend=legend) for sheet in SHEETS)
        return Figure(self.name, self.title, self.caption, self.alt, self.data, svg, narrow)

    def _drawn(self, sheet: Sheet, lay: Lay, *, legend: bool) -> Markup:
        """Draw the panels on a sheet from left to right and from top to bottom, and the names of the series below."""
        columns = min(sheet.columns, len(self.panels))
        width = (sheet.width - MARGIN - BETWEEN * (columns - 1)) / columns
        top = bottom = 0.0
        panels = []
        for place, title in enumerate(self.panels):
            column = place % columns
            if column == 0:
                top = bottom
            left = MARGIN / 2 + column * (width + BETWEEN)
            panel = lay(sheet, title, left, left + width, top + TITLE)
            panels.append(panel)
            bottom = max(bottom, max(panel.y.start, panel.y.end) + BELOW)
        names = []
        series = self.series
        if legend and len(series) > 1:
            for place, name in enumerate(series):
                row, column = divmod(place, sheet.columns)
                at = MARGIN + column * sheet.width / sheet.columns
                names.append((name, self.order.get(name, 0), at, bottom + 20 * row))
            bottom = names[-1][-1] + 36
        return fill(
            "figure.svg",
            key=f"{self.name}-{sheet.width:.0f}",
            title=self.title,
            alt=self.alt,
            panels=panels,
            legend=names,
            width=sheet.width,
            height=bottom - 20,
        )

    @property
    def alt(self) -> str:
        """A description for those who cannot see it."""
        parts = []
        for title, panel in self.panels.items():
            # Every number in words, since screen readers cannot read a drawing.
            notes = "; ".join(dot.note for dot in panel.dots if dot.is_drawn)
            parts.append(f"{title}: {notes}" if title else notes)
        return ". ".join(parts) + "."

    @property
    def data(self) -> pd.DataFrame:
        """The numbers shown, without columns that tell nothing."""
        rows = []
        for title, panel in self.panels.items():
            for dot in panel.dots:
                rows.append((title, dot.series, dot.place, dot.value, dot.low, dot.high, dot.n))
        columns = ("panel", "labeling", self.across, "value", "low", "high", "n")
        data = pd.DataFrame(rows, columns=columns)
        # A figure without intervals, or of one panel, has no columns for them.
        data = data.loc[:, (data.notna() & (data != "")).any()]
        titles = {panel.value.title for panel in self.panels.values()}
        return data.rename(columns={"value": titles.pop()}) if len(titles) == 1 else data
