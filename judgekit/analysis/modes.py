"""Modes of answering side by side: whose answers do the labels follow, on the same questions (the paper's Figure 3)?

A decision is about the answers of one mode, and the comparison looks at no others. Here each mode is looked at in the
same way, on the questions that have a value in all of them, so that their numbers can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from judgekit.analysis.collect import Collector
from judgekit.analysis.differences import compared, difference_table
from judgekit.analysis.levels import Estimate
from judgekit.analysis.primary import Primary
from judgekit.data.tables import ALL, QUALITY
from judgekit.errors import UsageError, not_among

_DIFFERENCES: Final = (
    "mode", "against", "labeling", "coefficient", "difference", "ci_low", "ci_high", "p", "p_holm", "n"
)  # fmt: skip


@dataclass(frozen=True)
class Modes:
    """Modes of answering, compared on the questions that have a value in all of them.

    Attributes:
        table: columns of `COMPARISON` with ``mode``, for the metric, model and depth of the primary cell.
        differences: each mode minus the primary one, for the primary cell: rows ``mode, against, labeling,
            coefficient, difference, ci_low, ci_high, p, p_holm, n`` (Holm over all rows of a coefficient).
    """

    table: pd.DataFrame
    differences: pd.DataFrame


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


def by_mode(quality: pd.DataFrame, cell: Primary, collector: Callable[[pd.DataFrame], Collector]) -> Modes | None:
    """Compare each mode of answering as the comparison compares its own, and with that one, the mode of the cell."""
    modes = modes_of(quality)
    quality = QUALITY.check(quality)
    for column, value in (("metric", cell.metric), ("model", cell.model), ("depth", cell.depth)):
        quality = quality[quality[column] == value]
    quality = quality[(quality["query_id"] != ALL) & quality["value"].notna() & (quality["mode"] != "")]
    in_all = quality.groupby(["run", "query_id"])["mode"].transform("nunique") == len(modes)
    if not in_all.any():
        return None
    quality = quality[in_all]
    tables: list[pd.DataFrame] = []
    found: dict[str, dict[str, Estimate]] = {}
    for mode in modes:
        work = collector(quality[quality["mode"] == mode])
        tables.append(work.tables()[0].assign(mode=mode))
        panel, levels = work.primary[cell.model]
        run = ALL if len(panel.runs) > 1 else panel.runs[0]
        found[mode] = {
            panel.labelings[one.labeling]: one
            for one in levels[cell.level]
            if one.run == run and not one.reason and panel.labelings[one.labeling] not in work.controls
        }
    first = found[cell.mode]
    pairs = (
        ({"mode": mode, "against": cell.mode, "labeling": labeling, "family": ""}, one, first[labeling])
        for mode, estimates in found.items()
        for labeling, one in estimates.items()
        if mode != cell.mode and labeling in first
    )
    # All modes are looked at on the same questions, so that any collector knows their groups.
    differences = compared(pairs, work.rules.confidence, work.resamples)
    return Modes(pd.concat(tables, ignore_index=True), difference_table(differences, _DIFFERENCES))
