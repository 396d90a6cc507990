"""Numbers and names in sentences: each has one spelling, and numbers come with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

_SMALL: Final = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


class Ranged(NamedTuple):
    """A number with its interval, or NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan


UNKNOWN: Final = Ranged(math.nan)


def points(quality: float) -> str:
    """Return a difference of quality in points, without the unit."""
    text = f"{100 * quality:.1f}"
    # A loss that rounds to 0 is not a loss of 0.
    return "0.0" if text == "-0.0" else text


def correlation(value: float) -> str:
    """Return a correlation as it is printed, .44."""
    text = f"{value:.2f}"
    return ".00" if text == "-0.00" else text.replace("0.", ".", 1)


def times(share: float) -> str:
    """Return a share as times in 100."""
    return f"{100 * share:.0f}"


FEW_DIFFER: Final = "too few questions differ for an interval"
FEW_GROUPS: Final = "too few groups for an interval"
UNBOUNDED: Final = "no interval: missing scores have no bounds"


def ranged(number: Ranged, written: Callable[[float], str], unit: str = "", *, without: str = FEW_DIFFER) -> str:
    """Return a number with its interval: ``2.6 points (0.5 to 4.7)``; ``without`` says why it has none."""
    # A number never appears without its interval.
    if math.isnan(number.low):
        return f"{written(number.value)}{unit} ({without})"
    return f"{written(number.value)}{unit} ({written(number.low)} to {written(number.high)})"


def with_r(number: Ranged, without: str = FEW_DIFFER) -> str:
    """Return r with its interval: ``r = .44 (.30 to .56)``."""
    return f"r = {ranged(number, correlation, without=without)}"


def names_of(names: Sequence[str], joint: str = "and") -> str:
    """Return names as a list in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {joint} {names[-1]}"


def some_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first names of a list, and how many more there are."""
    if len(names) <= most:
        return names_of(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def counted(number: int) -> str:
    """Return a small number as a word."""
    return _SMALL[number] if number < len(_SMALL) else f"{number:,}"


def rounded(number: float, *, down: bool = False) -> int:
    """Return a number with two significant digits, rounded up by default."""
    # Upper limits are rounded up, savings down.
    unit: int = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return (math.floor(number / unit) if down else math.ceil(number / unit)) * unit


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 answer``, ``12 answers``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plural_points(number: float) -> str:
    """Return a number of points, such as a margin, with its unit."""
    return f"{number:g} point{'' if number == 1 else 's'}"
