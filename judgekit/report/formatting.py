"""The formats of numbers, texts and flags, the same for terminal and page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

from markupsafe import Markup
from rich.cells import cell_len, set_cell_size

from judgekit.analysis.flags import FLAGS
from judgekit.data.outputs import clean
from judgekit.metrics import DEFINITIONS

UNDEFINED: Final = "undefined"
UNKNOWN: Final = "–"
MARKS: Final[dict[str, str]] = {
    "by_construction": "≡",
    "equals_outcome": "≡",
    "same_model": "m",
    "same_family": "m",
}
"""The mark beside a number for a flag of the comparison table; other flags have ``!``. A note below the table explains
it."""


def shown(value: Any) -> Any:
    """Make control characters visible in every output text; autoescaping follows."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def number(value: float | None, digits: int = 3) -> str:
    """Return a coefficient or a score with fixed decimals; ``undefined`` for NaN."""
    if value is None or math.isnan(value):
        return UNDEFINED
    # -0.000 reads like a loss.
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def interval(low: float, high: float, digits: int = 3) -> str:
    """Return ``[low, high]``, or "" without an interval."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(value: float | None, lower_bound: bool = False) -> str:
    """Return a whole number with thousands separators; a dash if unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return _bounded(f"{value:,.0f}", lower_bound)


def _bounded(text: str, lower_bound: bool) -> str:
    return f"≥ {text}" if lower_bound else text


def money(value: float | None, currency: str = "", lower_bound: bool = False) -> str:
    """Return an amount with its currency, with more decimals if small; a dash without a price."""
    if value is None or math.isnan(value):
        return UNKNOWN
    # A label costs fractions of a cent, and 0.00 would look free.
    digits = 2
    if 0 < value < 0.1:
        digits = min(8, 1 - math.floor(math.log10(value)))
    return _bounded(f"{value:,.{digits}f} {currency}".rstrip(), lower_bound)


def times(value: float | None) -> str:
    """Return a factor; a dash if unknown."""
    return UNKNOWN if value is None else f"{value:.3g} times"


def p_value(value: float) -> str:
    """Return a p-value with three decimals, never as zero."""
    # 0.000 would look certain, which resampling never is.
    return "< 0.001" if value < 0.0005 else number(value)


def seconds(value: float | None, lower_bound: bool = False) -> str:
    """Return a duration in a suitable unit; a dash if unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    whole, minutes = round(value), round(value / 60)
    if value < 1:
        text = f"{value:.2f} s"
    elif value < 59.95:
        text = f"{value:.1f} s"
    elif whole < 3600:
        text = f"{whole // 60} min {whole % 60} s"
    else:
        text = f"{minutes // 60:,} h {minutes % 60} min"
    return _bounded(text, lower_bound)


def pixels(value: float) -> str:
    """Return a position in a drawing, with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text_width(text: str) -> float:
    """Return the approximate width of a text in the figures' font size."""
    # By terminal cells, so that Chinese and Japanese names get enough room.
    return cell_len(clean(text)) * 7.6


def cut(text: str, cells: int) -> str:
    """Return the text in at most ``cells`` terminal cells, cut in the middle, since names differ at both ends."""
    text = clean(text)
    if cell_len(text) <= cells:
        return text
    end = (cells - 1) // 3
    return set_cell_size(text, cells - 1 - end).rstrip() + "…" + set_cell_size(text[::-1], end).strip()[::-1]


def split_flags(flags: str) -> list[str]:
    """Return the flags of a comparison row: words separated by white space, ``,`` or ``;``."""
    return [f for f in re.split(r"[\s,;]+", flags.replace("-", "_")) if f]


def marks(flags: Iterable[str]) -> str:
    """Return the marks beside a number."""
    return "".join(dict.fromkeys(MARKS.get(flag, "!") for flag in flags))


def meaning(flag: str) -> str:
    """Return a flag's meaning in words."""
    return FLAGS.get(flag, flag.replace("_", " "))


def in_words(name: str) -> str:
    """Return an answer metric in words if its name is an abbreviation, else its name."""
    return {"em": "exact match", "f1": "token F1"}.get(name, name)


def rewards(measure: str) -> str:
    """Return what a measure rewards, in a line, or "" for one outside judgekit's catalogue."""
    definition = DEFINITIONS.get(re.split(r"[(@]", measure, maxsplit=1)[0])
    return definition.rewards if definition else ""


FILTERS: Final = (
    *(count, number, interval, money, seconds, marks, meaning, in_words, rewards, times),
    *(pixels, cut),
)
"""The functions that templates use, by their own names."""
