"""How the report writes numbers, texts and flags: one place, so that terminal and page say the same."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from judgekit.analysis.flags import FLAGS
from judgekit.metrics import DEFINITIONS

__all__ = [
    "MARKS",
    "clean",
    "count",
    "interval",
    "marks",
    "meaning",
    "money",
    "number",
    "p_value",
    "rewards",
    "seconds",
    "split_flags",
    "times",
]

UNDEFINED: Final = "undefined"
UNKNOWN: Final = "–"
MARKS: Final[dict[str, str]] = {
    "by_construction": "≡",
    "equals_outcome": "≡",
    "same_model": "m",
    "same_family": "m",
}
"""The mark that stands next to a number for a flag of the comparison table; any other flag has ``!``. A note in words
below the table says what is meant, and of what."""

_BIDI: Final = "[\u202a-\u202e\u2066-\u2069]"
_CONTROL: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]|{_BIDI}")


def number(value: float | None, digits: int = 3) -> str:
    """Return a coefficient or a score with fixed decimals; ``undefined`` for NaN.

    >>> number(0.61249), number(-0.0001), number(float("nan"))
    ('0.612', '0.000', 'undefined')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def interval(low: float, high: float) -> str:
    """Return ``[low, high]``, or "" where there is no interval.

    >>> interval(0.5, 0.61), interval(0.5, float("nan"))
    ('[0.500, 0.610]', '')
    """
    return "" if math.isnan(low) or math.isnan(high) else f"[{number(low)}, {number(high)}]"


def count(value: float | None, lower_bound: bool = False) -> str:
    """Return a whole number with thousands separators; a dash where it is unknown.

    >>> count(1234567), count(88, lower_bound=True), count(None)
    ('1,234,567', '≥ 88', '–')
    """
    return UNKNOWN if value is None or math.isnan(value) else f"{'≥ ' * lower_bound}{value:,.0f}"


def money(value: float | None, currency: str = "", lower_bound: bool = False) -> str:
    """Return an amount with its currency, with more decimals the smaller it is; a dash where there is no price.

    >>> money(12.3456, "USD"), money(0.00123, "USD"), money(0.0), money(None)
    ('12.35 USD', '0.0012 USD', '0.00', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    digits = 2 if value == 0 or value >= 0.1 else min(8, 1 - math.floor(math.log10(value)))
    return f"{'≥ ' * lower_bound}{value:,.{digits}f} {currency}".rstrip()


def times(value: float | None) -> str:
    """Return a factor; a dash where it is unknown.

    >>> times(2.468), times(12.0), times(None)
    ('2.47 times', '12 times', '–')
    """
    return UNKNOWN if value is None else f"{value:.3g} times"


def p_value(value: float) -> str:
    """Return a p-value with three decimals, never as zero.

    >>> p_value(0.0001), p_value(0.0312), p_value(float("nan"))
    ('< 0.001', '0.031', 'undefined')
    """
    return "< 0.001" if value < 0.0005 else number(value)


def seconds(value: float | None, lower_bound: bool = False) -> str:
    """Return a duration in the unit that suits it; a dash where it is unknown.

    >>> seconds(0.034), seconds(4.2), seconds(75), seconds(7300, lower_bound=True), seconds(None)
    ('0.03 s', '4.2 s', '1 min 15 s', '≥ 2 h 2 min', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    whole, minutes = round(value), round(value / 60)
    if value < 59.95:
        text = f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    elif whole < 3600:
        text = f"{whole // 60} min {whole % 60} s"
    else:
        text = f"{minutes // 60:,} h {minutes % 60} min"
    return f"{'≥ ' * lower_bound}{text}"


def clean(text: str) -> str:
    r"""Return a text with control characters and direction overrides made visible.

    HTML has no form for most control characters, a terminal obeys them, and an override such as U+202E makes the text
    behind it read backwards. Right-to-left scripts themselves are left alone; so are tabs and line ends.

    >>> clean("a\x1b[31mb\u202ec")
    'a␛[31mb⟨U+202E⟩c'
    """

    def visible(match: re.Match[str]) -> str:
        code = ord(match[0])
        return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"

    return _CONTROL.sub(visible, text.replace("\r\n", "\n"))


def split_flags(flags: str) -> list[str]:
    """Return the flags of a comparison row: words separated by white space, ``,`` or ``;``."""
    return [f for f in re.split(r"[\s,;]+", flags.replace("-", "_")) if f]


def marks(flags: Iterable[str]) -> str:
    """Return the marks that stand next to a number."""
    return "".join(dict.fromkeys(MARKS.get(flag, "!") for flag in flags))


def meaning(flag: str) -> str:
    """Return what a flag says, in words."""
    return FLAGS.get(flag, flag.replace("_", " "))


def rewards(measure: str) -> str:
    """Return what a measure rewards in a line, or "" for one that is not in judgekit's catalogue."""
    definition = DEFINITIONS.get(re.split(r"[(@]", measure, maxsplit=1)[0])
    return definition.rewards if definition else ""
