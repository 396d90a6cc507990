"""How the page shows what judgekit says: decisions word for word, differences with intervals, one kind of figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import judgekit as jk

DOCS = Path(__file__).parent.parent / "docs"
Ranged = tuple[float, float, float]


def means(per_question: pd.Series) -> Ranged:
    """Return a mean with its 95 % interval (Student's t over questions), times 100."""
    values = 100 * per_question.to_numpy(float)
    if np.isnan(values).any():
        raise AssertionError(f"{int(np.isnan(values).sum())} of {len(values)} questions have no value")
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def shown(ranged: Sequence[float], digits: int = 1) -> str:
    """Return a number and its interval, as the decision writes them."""
    value, low, high = (f"{number:.{digits}f}".replace("-0." + "0" * digits, "0." + "0" * digits) for number in ranged)
    return f"{value} ({low} to {high})"


def holds(true: object, sentence: str) -> str:
    """Return a sentence of the page, if what it says is so."""
    if not true:
        raise AssertionError(f"the page says what is not so: {sentence}")
    return sentence


def decision(comparison: jk.Comparison, about: str = "") -> str:
    """Return the decision as judgekit prints it, below the name of what it is about."""
    fence = f"<!-- not run: make study writes it -->\n```text\n{comparison.decision.text}\n```"
    return f"{about}:\n\n{fence}" if about else fence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def per_question(values: pd.DataFrame, **of: str) -> pd.DataFrame:
    """Return the values of some rows of a table, a row for each question and a column for each run."""
    for column, value in of.items():
        values = values[values[column] == value]
    return values.pivot(index="query_id", columns="run", values="value")


def figure(
    name: str,
    title: str,
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    middle: float = 0,
    digits: int = 1,
    same: bool = True,
) -> str:
    """Draw numbers with intervals, a panel beside the other, and return the Markdown that shows them.

    Args:
        name: of the file.
        title: what the numbers are.
        panels: by the panel's title and the row's name, a number with the ends of its interval.
        middle: where the line of no effect stands.
        digits: of the numbers.
        same: whether the panels share one scale.
    """
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    left, width, gap, high = 8 + 6.6 * max(map(len, names)), 185.0, 20.0, 22.0
    total, bottom = left + len(panels) * (width + gap), 58 + high * len(names)
    every = [number for rows in panels.values() for ends in rows.values() for number in ends]
    drawn = [f'<text x="8" y="18" class="h">{escape(title)}</text>']
    for row, label in enumerate(names):
        drawn.append(f'<text x="8" y="{66 + high * row:.0f}">{escape(label)}</text>')
    for column, (panel, rows) in enumerate(panels.items()):
        numbers = [middle, *(every if same else [number for ends in rows.values() for number in ends])]
        low, span = np.nanmin(numbers), (np.nanmax(numbers) - np.nanmin(numbers)) or 1.0
        start = left + column * (width + gap)

        def at(number: float, start: float = start, low: float = low, span: float = span) -> str:
            return f"{start + 6 + (width - 75) * (number - low) / span:.1f}"

        line = at(middle)
        drawn.append(f'<text x="{start:.0f}" y="42" class="h">{escape(panel)}</text>')
        drawn.append(f'<line x1="{line}" x2="{line}" y1="50" y2="{bottom - 6:.0f}" class="z"/>')
        for row, label in enumerate(names):
            if label not in rows or np.isnan(rows[label][0]):
                continue
            value, first, last = rows[label]
            y = f"{61.5 + high * row:.1f}"
            if not np.isnan(first):
                drawn.append(f'<line x1="{at(first)}" x2="{at(last)}" y1="{y}" y2="{y}" class="i"/>')
            drawn.append(f'<circle cx="{at(value)}" cy="{y}" r="4"/>')
            number = f"{value:.{digits}f}"
            drawn.append(f'<text x="{start + width - 58:.0f}" y="{66 + high * row:.0f}">{number}</text>')
    style = (
        "text{font:12px sans-serif;fill:#222}.h{font-weight:bold}circle{fill:#1f5fa8}"
        ".i{stroke:#1f5fa8;stroke-width:2}.z{stroke:#999;stroke-dasharray:3 3}"
    )
    size = f'viewBox="0 0 {total:.0f} {bottom:.0f}" width="{total:.0f}" height="{bottom:.0f}"'
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>',
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>',
        *drawn,
        "</svg>",
    ]
    (DOCS / "_static" / f"study-{name}.svg").write_text("\n".join(whole) + "\n")
    return f"![{title}](_static/study-{name}.svg)"
