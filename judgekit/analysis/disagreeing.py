"""On which pairs do two labelings disagree? Each pair is a passage to look at, and to ask who was right."""

from __future__ import annotations

from typing import Final

import pandas as pd

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError

LEAST: Final = 0.5
_PAIR: Final = ["query_id", "doc_id"]
_BESIDE: Final = ("raw", "answer")
"""Columns of a labels table that say what a label rests on."""


def disagreements(first: Labeling, second: Labeling, *, least: float = LEAST) -> pd.DataFrame:
    """Return the pairs on which two labelings disagree, the widest apart first.

    Labels are put on 0 to 1 by their scales: 0 is the lowest grade and 1 the highest; what is below 0, as harm is,
    stays below. Pairs of which either has no label are left out.

    Args:
        first: a labeling.
        second: another one.
        least: how far apart labels are that disagree.

    Returns:
        Columns ``query_id, doc_id``; one named as each labeling, with its label as it is; ``difference``, the second's
        minus the first's, on 0 to 1; and what the labels rest on, ``NAME raw`` and ``NAME answer``, where there is any.

    Raises:
        UsageError: both are one labeling, or the difference is not above 0.
    """
    if first.name == second.name:
        raise UsageError(f"{first.name!r} does not disagree with itself: name two labelings")
    if not least > 0:
        raise UsageError(f"labels that disagree differ by more than 0, not by {least:g}")
    both = _named(first).merge(_named(second), on=_PAIR)
    both["difference"] = _on_unit(both[second.name], second.scale) - _on_unit(both[first.name], first.scale)
    apart = both[both["difference"].abs() >= least - 1e-12]
    order = apart["difference"].abs().sort_values(ascending=False, kind="stable").index
    shown = [*_PAIR, first.name, second.name, "difference"]
    return apart.loc[order, [*shown, *(name for name in apart.columns if name not in shown)]].reset_index(drop=True)


def _named(labeling: Labeling) -> pd.DataFrame:
    table = labeling.table
    table = table[table["status"] == Status.OK.value]
    named = table[_PAIR].assign(**{labeling.name: table["relevance"].astype("float64")})
    for column in _BESIDE:
        if column in table.columns and (table[column].fillna("") != "").any():
            named[f"{labeling.name} {column}"] = table[column]
    return named.sort_values(_PAIR)


def _on_unit(labels: pd.Series[float], scale: Scale) -> pd.Series[float]:
    low = max(float(scale.low), 0.0)
    return (labels - low) / (float(scale.high) - low)
