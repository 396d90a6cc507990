"""Modes of answering side by side: whose answers do the labels follow, on the same questions (the paper's Figure 3)?

A decision is about the answers of one mode, and the comparison looks at no others. Here each mode is compared in the
same way, on the questions with a value in all modes, so that their numbers are comparable.
"""

from __future__ import annotations

import pandas as pd

from judgekit.analysis.primary import Primary
from judgekit.analysis.samples import means_of
from judgekit.data.tables import ALL, QUALITY
from judgekit.errors import UsageError, not_among


def modes_of(quality: pd.DataFrame) -> list[str]:
    """Return the modes of answering that a quality table names, in the order of its rows."""
    return [str(mode) for mode in _mode(quality).unique() if mode]


def _mode(quality: pd.DataFrame) -> pd.Series:
    """Return the mode of each row; "" if there is none, as for answers of an application."""
    return quality["mode"].fillna("") if "mode" in quality.columns else pd.Series("", quality.index, dtype="str")


def of_mode(quality: pd.DataFrame, mode: str | None = None) -> pd.DataFrame:
    """Return the quality of answers of one mode (by default that of the first row) and of answers without a mode."""
    modes = modes_of(quality)
    if mode is not None and mode not in modes:
        raise UsageError(f"the quality table: {not_among('mode', mode, modes)}")
    # Answers without a mode, such as an application's, go with every mode.
    return quality[_mode(quality).isin(["", mode or modes[0]])] if len(modes) > 1 else quality


def on_common_questions(quality: pd.DataFrame, cell: Primary) -> dict[str, pd.DataFrame]:
    """Return the primary cell's quality by mode of answering, on the questions that have a value in all modes."""
    modes = modes_of(quality)
    rows = QUALITY.check(quality)
    rows = rows[(rows["metric"] == cell.metric) & (rows["model"] == cell.model) & (rows["depth"] == cell.depth)]
    rows = rows[(rows["query_id"] != ALL) & (rows["mode"] != "")].dropna(subset=["value"])
    # Otherwise modes would also differ by their questions.
    in_all = rows.groupby(["run", "query_id"])["mode"].transform("nunique") == len(modes)
    common = means_of(rows[in_all])
    if common.empty:
        return {}
    return {mode: common[common["mode"] == mode] for mode in modes}
