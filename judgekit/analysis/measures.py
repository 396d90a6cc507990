"""What the analysis needs to know of a measure's name: its cutoff, and whether small values are the good ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from judgekit.errors import UsageError
from judgekit.spec import parse

__all__ = ["cutoff_of", "lower_is_better"]

_LOWER: Final = frozenset({"MeanRank"})


def cutoff_of(measure: str) -> int | None:
    """Return the cutoff of a measure's spelling; None if it has none or is a user's own name of another form."""
    try:
        return parse(measure).cutoff
    except UsageError:
        return None


def lower_is_better(measure: str, named: Collection[str] = ()) -> bool:
    """Return whether small values are good: of a measure named by the user, or known to be of that kind."""
    if measure in named:
        return True
    try:
        return parse(measure).name in _LOWER
    except UsageError:
        return False
