"""How many queries are needed: what intervals and tests of a larger experiment would be like, from a pilot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgekit.analysis.compare import Comparison
from judgekit.analysis.resampling import SCALES, claim_level, t_quantile
from judgekit.errors import DataError, UsageError

__all__ = ["plan_queries"]


def plan_queries(comparison: Comparison, queries: Sequence[int] | None = None) -> pd.DataFrame:
    """Return what the primary cell's intervals and tests would be like with other numbers of queries.

    A standard error shrinks with the root of the number of queries, on the scale on which the interval was made;
    that the new queries are like the old ones is taken for granted. The power is the chance that a difference as
    large as the one seen is told from none at the level at which a verdict claims one.

    Args:
        comparison: the pilot.
        queries: numbers of queries; by default half, once, twice, 4, 10 and 30 times those of the pilot.

    Returns:
        Rows ``labeling, second, queries, value, ci_low, ci_high, width, power``: concordance of a labeling
        (``second`` is ""), or the difference in concordance of two (only they have a power).

    Raises:
        UsageError: the verdict is about the system level, where more runs are needed rather than more queries.
        DataError: there is no interval to start from.
    """
    cell = comparison.verdict.primary
    if cell.level == "system":
        raise UsageError("planning is about queries; at the system level what is open is settled by more runs")
    table = _primary_rows(comparison.table, comparison)
    table = table[table["ci_method"] != ""]
    if table.empty:
        raise DataError("there is no interval in the primary cell to plan from")
    details = comparison.details
    total = int(details.loc[details["level"] == cell.level, "queries"].max())
    numbers = list(queries or [max(round(total * times), 2) for times in (0.5, 1, 2, 4, 10, 30)])
    if min(numbers) < 2:
        raise UsageError(f"at least 2 queries are needed, not {min(numbers)}")
    # at within-query level only the queries on which runs differ count: their share is taken to stay
    pilot = _Pilot(int(table["n"].max()), total, float(comparison.settings["confidence"]))
    rows: list[dict[str, object]] = []
    for row in table.itertuples():
        one = (str(row.labeling), "", float(str(row.value)), float(str(row.ci_low)), float(str(row.ci_high)))
        rows += list(_rows(*one, str(row.ci_method), pilot, numbers))
    found = _primary_rows(comparison.differences, comparison)
    for row in found[found["ci_method"] != ""].itertuples():
        two = (
            str(row.first),
            str(row.second),
            float(str(row.difference)),
            float(str(row.ci_low)),
            float(str(row.ci_high)),
        )
        rows += list(_rows(*two, "t", pilot, numbers))
    return pd.DataFrame(rows)


def _primary_rows(frame: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Return the rows about concordance in the primary cell; all measures where none was fixed."""
    cell = comparison.verdict.primary
    if frame.empty:
        return frame
    chosen = (
        (frame["coefficient"] == "concordance")
        & (frame["level"] == cell.level)
        & (frame["run"] == cell.run)
        & (frame["depth"] == cell.depth)
        & (frame["quality_metric"] == cell.metric)
        & (frame["model"] == cell.model)
    )
    return frame[chosen & (frame["measure"] == cell.measure)] if cell.measure else frame[chosen]


class _Pilot(NamedTuple):
    """How many queries counted in the pilot, of how many, and the confidence of its intervals."""

    counted: int
    total: int
    confidence: float


def _rows(
    labeling: str,
    second: str,
    value: float,
    low: float,
    high: float,
    method: str,
    pilot: _Pilot,
    numbers: Sequence[int],
) -> Iterator[dict[str, object]]:
    from scipy.special import ndtr, ndtri

    scale, quantile = SCALES[method], (1 + pilot.confidence) / 2
    middle, *ends = scale.to(np.array([value, low, high]), pilot.counted)
    # at a bound of the scale one end is cut off: the other one has the whole half
    se = max(abs(end - middle) for end in ends) / t_quantile(quantile, pilot.counted)
    for queries in numbers:
        n = max(round(queries * pilot.counted / pilot.total), 2)
        new = float(se * math.sqrt(max(pilot.counted - 1, 1) / (n - 1)))
        reach = t_quantile(quantile, n) * new
        near, far = (float(end) for end in scale.back(np.array([middle - reach, middle + reach])))
        power = np.nan
        if second:
            gap = abs(value) / new if new > 0 else np.inf
            edge = float(ndtri(1 - claim_level(pilot.confidence) / 2))
            power = float(ndtr(gap - edge) + ndtr(-gap - edge))
        yield {
            "labeling": labeling,
            "second": second,
            "queries": queries,
            "value": value,
            "ci_low": near,
            "ci_high": far,
            "width": far - near,
            "power": power,
        }
