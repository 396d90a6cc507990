"""Differences between labelings in the same coefficient, on the same queries and the same resamples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.levels import Estimate
from judgekit.analysis.resampling import interval, spread

DIFFERENCE_COLUMNS: Final[dict[str, str]] = {
    **dict.fromkeys(("first", "second", "measure", "run", "level"), "str"),
    "depth": "int",
    **dict.fromkeys(("quality_metric", "model", "coefficient"), "str"),
    **dict.fromkeys(("difference", "ci_low", "ci_high"), "float"),
    "ci_method": "str",
    **dict.fromkeys(("p", "p_holm"), "float"),
    "n": "int",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two estimates with what the resamples say of it.

    Attributes:
        value: first minus second.
        low, high: two-sided interval, NaN where undefined.
        p: two-sided p-value of no difference, NaN where undefined.
        method: how the interval was made, "" where undefined.
    """

    value: float
    low: float
    high: float
    p: float
    method: str


def differences(first: Estimate, second: Estimate, confidence: float) -> dict[str, Difference]:
    """Return the difference of two estimates at one level, in each coefficient that both have."""
    both = second.names if len(second.names) < len(first.names) else first.names
    size, n = len(both), min(first.units, second.units)
    draws = first.draws[:size] - second.draws[:size]
    values = first.values[:size] - second.values[:size]
    return {
        name: difference(float(value), drawn, confidence, n)
        for name, value, drawn in zip(both, values, draws, strict=True)
    }


def difference(value: float, draws: Floats, confidence: float, n: int) -> Difference:
    """Return what the paired resampled differences ``draws``, shape (B,), say of a difference over n queries."""
    from scipy.special import stdtr

    ends = interval(value, draws, confidence, "t", n)
    defined = draws[np.isfinite(draws)]
    if not ends.method:
        p = math.nan
    elif (error := float(spread(defined, n))) == 0:
        p = float(value == 0)
    else:
        p = 2 * float(stdtr(max(n - 1, 1), -abs(value) / error))
    return Difference(value, ends.low, ends.high, p, ends.method)


def compared(
    pairs: Iterable[tuple[Mapping[str, object], Estimate, Estimate]], confidence: float
) -> Iterator[dict[str, object]]:
    """Yield a row per coefficient of every two estimates, with what is said about the two."""
    for about, one, other in pairs:
        for name, gap in differences(one, other, confidence).items():
            found = {"coefficient": name, "difference": gap.value, "ci_low": gap.low, "ci_high": gap.high}
            yield {**about, **found, "ci_method": gap.method, "p": gap.p, "n": one.n}


def difference_table(rows: Iterable[dict[str, object]], columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows as a table; Holm over the rows of each ``family``, and none for those of no family (None)."""
    table = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, "family", "coefficient"])))
    adjusted = table.groupby(["family", "coefficient"])["p"].transform(holm) if len(table) else table["p"]
    return table.assign(p_holm=adjusted)[list(columns)]


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return Holm's adjusted p-values, the first axis being the family; NaN stays NaN and is not counted in it."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, axis=0, kind="stable")
    left = np.isfinite(p).sum(axis=0) - np.arange(len(p)).reshape(-1, *[1] * (p.ndim - 1))
    steps = np.take_along_axis(p, order, axis=0) * left
    out = np.empty_like(p)
    np.put_along_axis(out, order, np.minimum(np.maximum.accumulate(steps, axis=0), 1), axis=0)
    return out
