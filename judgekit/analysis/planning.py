"""How many queries it takes: what the intervals of a larger experiment would be like, from a pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from judgekit.analysis.comparison import Comparison
from judgekit.errors import DataError, UsageError

__all__ = ["plan_queries"]


def plan_queries(comparison: Comparison, queries: Sequence[int] | None = None) -> pd.DataFrame:
    """Return how wide the intervals of the verdict would be with other numbers of queries.

    A standard error shrinks with the root of the number of queries; that the new queries are like the old ones is
    taken for granted. All queries count, also those on which runs do not differ.

    Args:
        comparison: the pilot.
        queries: numbers of queries; by default half, once, twice, 4 and 10 times those of the pilot.

    Returns:
        Rows ``labeling, queries, concordance_width, gain_width`` (in the unit of quality, NaN where there is no gain).

    Raises:
        DataError: there is no verdict to start from.
        UsageError: fewer than 2 queries are asked for.
    """
    found = comparison.verdict.found
    if found is None:
        raise DataError("there is no interval in the primary cell to plan from")
    numbers = list(queries or [max(round(found.queries * times), 2) for times in (0.5, 1, 2, 4, 10)])
    if min(numbers) < 2:
        raise UsageError(f"at least 2 queries are needed, not {min(numbers)}")
    rows = []
    for one in found.standings:
        low, high = (math.nan, math.nan) if one.gain is None else one.gain.interval(comparison.settings["confidence"])
        for number in numbers:
            shrink = math.sqrt(found.queries / number)
            rows.append((one.labeling, number, (one.high - one.low) * shrink, (high - low) * shrink))
    return pd.DataFrame(rows, columns=["labeling", "queries", "concordance_width", "gain_width"])
