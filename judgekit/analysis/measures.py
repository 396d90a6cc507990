"""What the analysis needs to know of a measure's name: its cutoff, and whether small values are the good ones."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Final

from judgekit.errors import UsageError
from judgekit.metrics import Measure
from judgekit.spec import parse

__all__ = ["WHOLE_RUN", "cutoff_of", "known_measure", "lower_is_better", "spelled_as"]

WHOLE_RUN: Final = 1000
"""The depth that stands for answers of which nothing says it, where no measure has a cutoff."""


def known_measure(text: str) -> Measure | None:
    """Return the measure of a spelling; None for a user's own."""
    try:
        return Measure(text)
    except UsageError:
        return None


def cutoff_of(text: str) -> int | None:
    """Return the cutoff of a measure's spelling, also of a user's own measure; None if it has none."""
    measure = known_measure(text)
    if measure is not None:
        return measure.cutoff
    try:
        return parse(text).cutoff
    except UsageError:
        return None


def lower_is_better(text: str, named: Collection[str] = ()) -> bool:
    """Return whether small values are good: of a measure named by the user, or known to be of that kind."""
    measure = known_measure(text)
    return text in named or (measure is not None and measure.lower_is_better)


def spelled_as(text: str, names: Container[str]) -> str:
    """Return a measure as tables spell it: as given if it is among ``names``, else in its canonical spelling."""
    measure = None if text in names else known_measure(text)
    return text if measure is None else str(measure)
