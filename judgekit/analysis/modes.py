"""Modes of answering side by side: whose answers do the labels follow, on the same questions (the paper's Figure 3)?

A decision is about the answers of one mode, and the comparison looks at no others. Here each mode is looked at in the
same way, on the questions that have a value in all of them, so that their numbers can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from judgekit.analysis.collect import Collector
from judgekit.analysis.primary import Primary
from judgekit.data.tables import ALL, QUALITY
from judgekit.errors import UsageError, not_among


def modes_of(quality: pd.DataFrame) -> list[str]:
    """Return the modes of answering that a quality table names, in the order of its rows."""
    return [str(mode) for mode in _mode(quality).unique() if mode]


def _mode(quality: pd.DataFrame) -> pd.Series:
    """Return the mode of each row; "" where there is none, as of answers that an application gave."""
    return quality["mode"].fillna("") if "mode" in quality.columns else pd.Series("", quality.index, dtype="str")


def of_mode(quality: pd.DataFrame, mode: str | None = None) -> pd.DataFrame:
    """Return the quality of the answers of one mode, by default that of the first row, and of those of no mode."""
    modes = modes_of(quality)
    if mode is not None and mode not in modes:
        raise UsageError(f"the quality table: {not_among('mode', mode, modes)}")
    return quality[_mode(quality).isin(["", mode or modes[0]])] if len(modes) > 1 else quality


def by_mode(
    quality: pd.DataFrame, cell: Primary, collector: Callable[[pd.DataFrame], Collector]
) -> pd.DataFrame | None:
    """Return the comparison of each mode of answering, one below the other, with a column ``mode``.

    None where no question has a value in all modes.
    """
    modes = modes_of(quality)
    quality = QUALITY.check(quality)
    for column, value in (("metric", cell.metric), ("model", cell.model), ("depth", cell.depth)):
        quality = quality[quality[column] == value]
    quality = quality[(quality["query_id"] != ALL) & quality["value"].notna() & (quality["mode"] != "")]
    in_all = quality.groupby(["run", "query_id"])["mode"].transform("nunique") == len(modes)
    if not in_all.any():
        return None
    quality = quality[in_all]
    tables = []
    for mode in modes:
        table, _ = collector(quality[quality["mode"] == mode]).tables()
        tables.append(table.assign(mode=mode))
    return pd.concat(tables, ignore_index=True)
