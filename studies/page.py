"""How the page shows numbers: tables, sentences that must hold, and the one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from studies.pairs import AGREE, NOT_TOLD, OPPOSITE, Difference, Ranged

DOCS = Path(__file__).parent.parent / "docs"
# The report's colours, see judgekit/report/templates/figures.css.
COLOURS = {AGREE: "#0b62a8", OPPOSITE: "#b3410e", NOT_TOLD: "#8a929c"}
INK, GRID = "#1b1f24", "#e6e9ed"
_BAR, _ROW, _TOP = 300, 22, 66


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
    names = [bar for bars in panels.values() for bar in bars]
    left = 16 + 6.6 * max(map(len, names))
    width, y = left + _BAR + 20, float(_TOP)
    drawn = [f'<text x="8" y="18" class="h">{escape(title)}</text>']
    place = 8.0
    for verdict, colour in COLOURS.items():
        drawn.append(f'<rect x="{place:.0f}" y="30" width="12" height="12" fill="{colour}"/>')
        drawn.append(f'<text x="{place + 17:.0f}" y="40">{_LEGEND[verdict]}</text>')
        place += 30 + 6.6 * len(_LEGEND[verdict])
    for panel, bars in panels.items():
        y += 8
        drawn.append(f'<text x="8" y="{y:.0f}" class="h">{escape(panel)}</text>')
        y += 8
        for bar, counted in bars.items():
            drawn += _bar(bar, counted, left, y)
            y += _ROW
        y += 10
    for percent in (0, 25, 50, 75, 100):
        x = left + _BAR * percent / 100
        drawn.insert(1, f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP - 10}" y2="{y:.0f}" stroke="{GRID}"/>')
        drawn.append(f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle">{percent}</text>')
    axis, below = left + _BAR / 2, "share of the pairs of runs, in percent; numbers of pairs in the bars"
    drawn.append(f'<text x="{axis:.0f}" y="{y + 32:.0f}" text-anchor="middle">{below}</text>')
    style = f"text{{font:12px sans-serif;fill:{INK}}}.h{{font-weight:bold}}.w{{fill:#fff}}"
    size = f'viewBox="0 0 {width:.0f} {y + 42:.0f}" width="{width:.0f}" height="{y + 42:.0f}"'
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>',
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>',
        *drawn,
        "</svg>",
    ]
    (DOCS / "_static" / f"{name}.svg").write_text("\n".join(whole) + "\n")
    return f"![{title}](_static/{name}.svg)"


_LEGEND = {AGREE: "agree", OPPOSITE: "choose opposite runs", NOT_TOLD: "not told apart"}


def _bar(name: str, counted: Mapping[str, int], left: float, y: float) -> list[str]:
    """Return one bar, with the number of pairs in each part."""
    drawn = [f'<text x="16" y="{y + 13:.0f}">{escape(name)}</text>']
    total, x = sum(counted.values()), left
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
