"""Differences between labelings in the same coefficient, on the same queries and the same resamples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.levels import POOLED, Estimate, Resamples, units_apart
from judgekit.analysis.resampling import Interval, interval, spread

DIFFERENCE_COLUMNS: Final[dict[str, str]] = {
    **dict.fromkeys(("first", "second", "measure", "run", "level"), "str"),
    "depth": "int",
    **dict.fromkeys(("quality_metric", "model", "coefficient"), "str"),
    **dict.fromkeys(("difference", "ci_low", "ci_high"), "float"),
    "ci_method": "str",
    **dict.fromkeys(("p", "p_holm"), "float"),
    "n": "int",
}


def difference(value: float, draws: Floats, confidence: float, n: int) -> tuple[Interval, float]:
    """Return the interval of a difference over n queries from the paired resampled ones, shape (B,), and its p-value.

    Both are two-sided, and NaN where they are undefined.
    """
    from scipy.special import stdtr

    ends = interval(value, draws, confidence, "t", n)
    if not ends.method:
        return ends, math.nan
    # The interval has a width, so the error is not 0.
    error = float(spread(draws[np.isfinite(draws)], n))
    p = 2 * stdtr(max(n - 1, 1), -abs(value) / error)
    return ends, float(p)


def compared(
    pairs: Iterable[tuple[Mapping[str, object], Estimate, Estimate]], confidence: float, resamples: Resamples
) -> Iterator[dict[str, object]]:
    """Yield a row per coefficient that two estimates share, with the keys of the pair.

    If the two differ on few queries, resamples hardly vary, and there is neither interval nor p.
    """
    for keys, first, second in pairs:
        # Over queries, all coefficients rest on the same ranks.
        together = None if POOLED in first.names else units_apart(first, second, first.names[0], resamples)
        for name in first.names:
            if name not in second.names:
                continue
            units = units_apart(first, second, name, resamples) if together is None else together
            value = first.value(name) - second.value(name)
            ends, p = Interval(math.nan, math.nan, ""), math.nan
            # Two labelings that differ once would get an interval of almost no width.
            if units >= MIN_TELLING:
                draws = first.drawn(name) - second.drawn(name)
                ends, p = difference(value, draws, confidence, min(first.units, second.units))
            yield {
                **keys,
                "coefficient": name,
                "difference": value,
                "ci_low": ends.low,
                "ci_high": ends.high,
                "ci_method": ends.method,
                "p": p,
                "n": first.n,
            }


def difference_table(rows: Iterable[dict[str, object]], columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows as a table, with Holm's correction over each ``family`` (none if that is None)."""
    table = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, "family", "coefficient"])))
    if len(table):
        table["p_holm"] = table.groupby(["family", "coefficient"])["p"].transform(holm)
    return table.reindex(columns=list(columns))


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return Holm's adjusted p-values along the first axis; NaN stays NaN and does not count."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, axis=0, kind="stable")
    place = np.argsort(order, axis=0)
    left = np.isfinite(p).sum(axis=0) - place
    steps = np.take_along_axis(p * left, order, axis=0)
    # Adjusted p-values never decrease.
    adjusted = np.minimum(np.maximum.accumulate(steps, axis=0), 1)
    return np.take_along_axis(adjusted, place, axis=0)
