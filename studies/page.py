"""How the page shows numbers: tables, sentences that must hold, and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from studies.pairs import AGREE, NOT_TOLD, OPPOSITE, Difference, Ranged

DOCS = Path(__file__).parent.parent / "docs"
# The report's colours, see judgekit/report/templates/figures.css.
COLOURS = {AGREE: "#0b62a8", OPPOSITE: "#b3410e", NOT_TOLD: "#8a929c"}
SERIES = {"by labels": "#0b62a8", "by answers": "#b3410e"}
INK, GRID = "#1b1f24", "#e6e9ed"
_BAR, _ROW, _TOP, _TICKS = 300, 22, 66, 8


def shown(number: Difference | Ranged | Sequence[float], digits: int = 1) -> str:
    """Return a number and its interval, as judgekit writes them."""
    values = (number.value, number.low, number.high) if isinstance(number, Difference) else number
    value, low, high = (plain(each, digits) for each in values)
    return f"{value} ({low} to {high})"


def plain(number: float, digits: int = 1) -> str:
    """Return a number with so many digits, and 0 without a sign."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def share(low: float, high: float) -> str:
    """Return a range of shares in percent."""
    first, last = f"{100 * low:.0f}", f"{100 * high:.0f}"
    return f"{first} %" if first == last else f"{first}–{last} %"


def holds(true: object, sentence: str) -> str:
    """Return a sentence of the page, if what it says is so."""
    if not true:
        raise AssertionError(f"the page says what is not so: {sentence}")
    return sentence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def link(repository: str) -> str:
    """Return a repository's name without its owner, with its address."""
    return f"[{repository.split('/')[1]}](https://github.com/{repository})"


def numbers(found: pd.DataFrame, name: str) -> None:
    """Write every pair with all its numbers beside the figure."""
    rounded = found.copy()
    for column in rounded.select_dtypes("float").columns:
        rounded[column] = [("" if np.isnan(value) else f"{value + 0.0:.4g}") for value in rounded[column]]
    rounded.to_csv(DOCS / "_static" / name, index=False, lineterminator="\n")


def figure(name: str, title: str, panels: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    """Draw what becomes of pairs, a bar for each repository and measure, and return the Markdown that shows it.

    Args:
        name: of the file.
        title: what is seen.
        panels: by the panel's title and the bar's name, how many pairs agree, choose the opposite, and are not told.
    """
    legend = {_LEGEND[verdict]: colour for verdict, colour in COLOURS.items()}
    drawing = _Drawing(title, legend, panels, (0, 25, 50, 75, 100))
    drawing.rows(_bar)
    return drawing.write(name, "share of the pairs of runs, in percent; numbers of pairs in the bars")


def dots(name: str, title: str, axis: str, panels: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> str:
    """Draw numbers with their intervals, a row for each setting, and return the Markdown that shows it.

    Args:
        name: of the file.
        title: what is seen.
        axis: what the numbers are, with their unit.
        panels: by the panel's title, the row's name and `SERIES`, a number, perhaps with the ends of its interval.
    """
    values = [value for row in _rows(panels) for ends in row.values() for value in ends]
    span = max(0.0, *values) - min(0.0, *values)
    step = next(step for step in (1, 2, 5, 10, 20, 50) if span / step <= _TICKS)
    ticks = range(step * math.floor(min(0.0, *values) / step), step * math.ceil(max(values) / step) + 1, step)
    legend = {name: colour for name, colour in SERIES.items() if any(name in row for row in _rows(panels))}
    drawing = _Drawing(title, legend, panels, ticks)
    drawing.rows(_dots)
    return drawing.write(name, axis)


def _rows(panels: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [row for rows in panels.values() for row in rows.values()]


_LEGEND = {AGREE: "agree", OPPOSITE: "choose opposite runs", NOT_TOLD: "too close to tell"}


class _Drawing:
    """A figure with rows in panels over one axis."""

    def __init__(
        self, title: str, legend: Mapping[str, str], panels: Mapping[str, Mapping[str, Any]], ticks: Sequence[int]
    ) -> None:
        self.title, self.panels, self.ticks = title, panels, ticks
        self.left = 16 + 6.6 * max(len(name) for rows in panels.values() for name in rows)
        self.bottom = float(_TOP)
        self.drawn = [f'<text x="8" y="18" class="h">{escape(title)}</text>']
        place = 8.0
        for words, colour in legend.items():
            self.drawn.append(f'<rect x="{place:.0f}" y="30" width="12" height="12" fill="{colour}"/>')
            self.drawn.append(f'<text x="{place + 17:.0f}" y="40">{words}</text>')
            place += 30 + 6.6 * len(words)

    def x(self, value: float) -> float:
        """Return where a value lies."""
        return self.left + _BAR * (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])

    def rows(self, row: Callable[[_Drawing, Any, float], list[str]]) -> None:
        """Draw all rows, below the titles of their panels."""
        for title, rows in self.panels.items():
            self.bottom += 8
            self.drawn.append(f'<text x="8" y="{self.bottom:.0f}" class="h">{escape(title)}</text>')
            self.bottom += 8
            for name, values in rows.items():
                self.drawn.append(f'<text x="16" y="{self.bottom + 13:.0f}">{escape(name)}</text>')
                self.drawn += row(self, values, self.bottom)
                self.bottom += _ROW
            self.bottom += 10

    def write(self, name: str, axis: str) -> str:
        """Write the figure, and return the Markdown that shows it."""
        y = self.bottom
        for tick in self.ticks:
            x = self.x(tick)
            self.drawn.insert(1, f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP - 10}" y2="{y:.0f}" stroke="{GRID}"/>')
            self.drawn.append(f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle">{tick}</text>')
        middle = self.left + _BAR / 2
        self.drawn.append(f'<text x="{middle:.0f}" y="{y + 32:.0f}" text-anchor="middle">{axis}</text>')
        style = f"text{{font:12px sans-serif;fill:{INK}}}.h{{font-weight:bold}}.w{{fill:#fff}}"
        # A title or the words at the axis may be wider than the rows.
        width = max(self.left + _BAR + 20, 16 + 7.2 * len(self.title), middle + 3.4 * len(axis))
        size = f'viewBox="0 0 {width:.0f} {y + 42:.0f}" width="{width:.0f}" height="{y + 42:.0f}"'
        whole = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(self.title)}</title>',
            f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>',
            *self.drawn,
            "</svg>",
        ]
        (DOCS / "_static" / f"{name}.svg").write_text("\n".join(whole) + "\n")
        return f"![{self.title}](_static/{name}.svg)"


def _bar(drawing: _Drawing, counted: Mapping[str, int], y: float) -> list[str]:
    """Return one bar, with the number of pairs in each part."""
    drawn: list[str] = []
    total, x = sum(counted.values()), drawing.left
    for verdict, colour in COLOURS.items():
        if not counted[verdict]:
            continue
        wide = _BAR * counted[verdict] / total
        light = "" if verdict == NOT_TOLD else ' class="w"'
        drawn.append(f'<rect x="{x:.1f}" y="{y:.0f}" width="{wide:.1f}" height="16" fill="{colour}"/>')
        drawn.append(
            f'<text x="{x + wide / 2:.1f}" y="{y + 12:.0f}" text-anchor="middle"{light}>{counted[verdict]}</text>'
        )
        x += wide
    return drawn


def _dots(drawing: _Drawing, numbers: Mapping[str, Sequence[float]], y: float) -> list[str]:
    """Return the dots of a row, each on the line of its interval."""
    drawn = []
    for place, (series, (value, *ends)) in enumerate(numbers.items()):
        at, colour = y + 5 + 8 * place, SERIES[series]
        if ends:
            low, high = (drawing.x(end) for end in ends)
            drawn.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{at:.0f}" y2="{at:.0f}" stroke="{colour}"/>')
        drawn.append(f'<circle cx="{drawing.x(value):.1f}" cy="{at:.0f}" r="3.5" fill="{colour}"/>')
    return drawn
