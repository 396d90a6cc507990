"""A few lines of SVG: elements that escape everything put into them, and axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from rich.cells import cell_len, set_cell_size

from judgekit.report.words import clean

__all__ = ["Axis", "cut", "document", "join", "marker", "nice", "tag", "text_width"]

SERIES = 8
"""How many series colours the style sheet has; more series repeat them with other markers."""


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


def document(key: str, title: str, description: str, width: float, height: float, body: Sequence[Markup]) -> Markup:
    """Return a whole figure with its title and description for those who do not see it."""
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", description, id=f"{key}-desc"),
        *body,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
    )


def text_width(text: str, per_cell: float = 7.2) -> float:
    """Return roughly how wide a text is in the figures' font size."""
    return cell_len(clean(text)) * per_cell


def cut(text: str, cells: int) -> str:
    """Return the text, cut with an ellipsis if it takes more than ``cells`` terminal cells."""
    text = clean(text)
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"


def marker(x: float, y: float, index: int, *, size: float = 4.5, extra: str = "") -> Markup:
    """Return the point of series ``index``: colour and shape, so that colour is not the only difference."""
    style = f"s{index % SERIES} point {extra}".strip()
    shape = (index + index // SERIES) % 4
    if shape == 0:
        return tag("circle", cx=x, cy=y, r=size, class_=style)
    if shape == 1:
        side = size * 1.7
        return tag("rect", x=x - side / 2, y=y - side / 2, width=side, height=side, class_=style)
    corners = {
        2: [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
        3: [(0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
    }[shape]
    points = " ".join(f"{x + size * dx:.2f},{y + size * dy:.2f}" for dx, dy in corners)
    return tag("polygon", points=points, class_=style)


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from data to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def nice(
    values: Sequence[float], *, floor: float = -math.inf, ceiling: float = math.inf, ticks: int = 5
) -> tuple[float, float, float]:
    """Return (low, high, step) of an axis with about ``ticks`` round ticks around the finite values.

    The axis stays within floor and ceiling.
    """
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(finite), max(finite)
    span = max(high - low, 1e-9)
    raw = span / ticks
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if low == high:
        low, high = low - step, high + step
    return max(low, floor), min(high, ceiling), step
