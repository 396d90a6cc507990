"""What the analysis needs to know about measures by name: cutoffs, direction, and the best of several."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.errors import UsageError
from judgekit.metrics import Measure

WHOLE_RUN: Final = 1000
"""The depth of answers that do not state one, if no measure has a cutoff."""


def known_measure(text: str) -> Measure | None:
    """Return the measure of a spelling; None for a user's own."""
    try:
        return Measure(text)
    except UsageError:
        return None


def cutoff_of(text: str) -> int | None:
    """Return the cutoff of a measure's spelling, also of a user's own measure; None if it has none."""
    # A user's own measure may still name a cutoff.
    measure, cutoff = known_measure(text), text.rpartition("@")[2]
    return measure.cutoff if measure else int(cutoff) if cutoff.isdecimal() and cutoff != text else None


def spelled_as(text: str, names: Container[str]) -> str:
    """Return a measure as tables spell it: as given if it is among ``names``, else in its canonical spelling."""
    # A user's own measure may be spelled like one of another tool.
    measure = None if text in names else known_measure(text)
    return text if measure is None else str(measure)


def at_depth(measure: str, k: int | None) -> str:
    """Return the measure with cutoff k (or only its name); one without a cutoff stays as it is."""
    name, _, cutoff = measure.rpartition("@")
    return measure if not cutoff.isdecimal() else name if k is None else f"{name}@{k}"


def reach_of(measure: Measure, values: Floats) -> float:
    """Return the largest possible difference of two runs' scores on a query; ``values`` are scores, shape (R, Q)."""
    low, high = measure.definition.low, measure.definition.high
    if low is not None and high is not None:
        return float(high - low)
    # A measure without a fixed range can differ at least as much as observed.
    gaps = np.ptp(values[:, np.isfinite(values).all(axis=0)], axis=0)
    return max(1.0, float(gaps.max(initial=0)))


def best_measures(rows: pd.DataFrame, primary: str) -> pd.DataFrame:
    """Return Figure 1's rule: each labeling's best measure at each k, which is chosen after looking."""
    # Labels that are the outcome would always win.
    out = rows["flags"].str.contains("by_construction|unmatched_depth") | rows["value"].isna()
    best: list[tuple[object, ...]] = []
    for (labeling, k), part in rows[~out].groupby(["labeling", "depth"], sort=False):
        values = part.set_index("measure")["value"]
        fixed = values.get(at_depth(primary, int(str(k))), float("nan"))
        best.append((labeling, k, values.idxmax(), values.max(), fixed, len(values)))
    columns = ["labeling", "k", "measure", "value", "primary", "measures"]
    return pd.DataFrame(best, columns=columns).sort_values("k", kind="stable", ignore_index=True)
