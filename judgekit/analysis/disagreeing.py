"""The pairs on which two labelings disagree: passages worth a look."""

from __future__ import annotations

from typing import Final

import pandas as pd

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError

LEAST: Final = 0.5
_PAIR: Final = ["query_id", "doc_id"]
_BESIDE: Final = ("raw", "answer")
"""Columns of a labels table that explain a label."""


def disagreements(first: Labeling, second: Labeling, *, least: float = LEAST) -> pd.DataFrame:
    """Return the pairs on which two labelings disagree, the widest apart first.

    Labels are mapped to 0 to 1 by their scales: 0 is the lowest grade and 1 the highest; negative labels (harm) stay
    negative. Pairs that lack either label are left out.

    Args:
        first: a labeling.
        second: another one.
        least: the smallest difference that counts as disagreement.

    Returns:
        Columns ``query_id, doc_id``; one per labeling, with its label; ``difference``, second minus first, on 0 to 1;
        and, if known, what the labels rest on: ``NAME raw`` and ``NAME answer``.

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
