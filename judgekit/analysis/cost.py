"""Cost beside concordance: an order by cost, and the frontier of what is not both more expensive and worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.data.tables import Table
from judgekit.errors import DataError

if TYPE_CHECKING:
    from judgekit.analysis.verdict import Verdict

__all__ = ["COSTS", "check_costs", "cost_order", "frontier"]

COSTS: Final = Table(
    "costs",
    {"labeling": "str"},
    {
        "requests": "float",
        "prompt_tokens": "float",
        "completion_tokens": "float",
        "money": "float",
        "request_seconds": "float",
    },
)
"""Standalone cost per labeling: what it would take with an empty store. NaN is unknown, never 0. ``request_seconds`` is
the time of all requests added up, as if they had been sent one after the other."""


def check_costs(costs: pd.DataFrame | None) -> pd.DataFrame:
    """Return the costs as a checked table with all columns; empty if there are none.

    Raises:
        DataError: a labeling is there twice or a cost is negative.
    """
    frame = COSTS.empty() if costs is None else COSTS.check(costs)
    twice = frame["labeling"][frame["labeling"].duplicated()]
    if len(twice):
        raise DataError(f"the costs table has two rows for labeling {twice.iloc[0]!r}")
    columns = {name: frame.get(name, np.nan) for name in COSTS.optional}
    frame = pd.DataFrame({"labeling": frame["labeling"], **columns})
    if (frame[list(COSTS.optional)] < 0).any(axis=None):
        raise DataError("the costs table holds a negative cost")
    return frame


def _basis(costs: pd.DataFrame) -> pd.Series:
    """Return what labelings are ordered by: money if known for all that have any cost, else tokens, else requests."""
    known = costs[list(COSTS.optional)].notna().any(axis=1)
    tokens = costs["prompt_tokens"] + costs["completion_tokens"]
    for column in (costs["money"], tokens, costs["requests"]):
        if known.any() and column[known].notna().all():
            return column
    return costs["requests"]


def cost_order(costs: pd.DataFrame) -> dict[str, int]:
    """Return each labeling's position by cost, the cheapest 1, equal costs alike; without those of unknown cost."""
    ranks = _basis(costs).rank(method="dense")
    return {str(n): int(r) for n, r in zip(costs["labeling"], ranks, strict=True) if np.isfinite(r)}


def frontier(costs: pd.DataFrame, verdict: Verdict) -> pd.DataFrame:
    """Return costs beside concordance with a column ``frontier``: nothing cheaper or as cheap is better.

    Returns:
        One row per labeling that has a concordance, the cheapest first, those of unknown cost last:
        ``labeling, requests, prompt_tokens, completion_tokens, money, request_seconds, concordance, ci_low, ci_high,
        frontier``.
    """
    standings = verdict.found.standings if verdict.found else ()
    rows = [(one.labeling, one.concordance, one.low, one.high, one.order) for one in standings]
    frame = pd.DataFrame(rows, columns=["labeling", "concordance", "ci_low", "ci_high", "rank"])
    frame = frame.astype({"labeling": "str", "rank": "float64"}).merge(costs, on="labeling", how="left")
    rank = frame["rank"]
    best = [
        bool(np.isfinite(r)) and not ((rank <= r) & (frame["concordance"] > value)).any()
        and not ((rank < r) & (frame["concordance"] >= value)).any()
        for r, value in zip(rank, frame["concordance"], strict=True)
    ]  # fmt: skip
    frame = frame.assign(frontier=best)
    frame = frame.sort_values(["rank", "concordance", "labeling"], ascending=[True, False, True], ignore_index=True)
    return frame[["labeling", *COSTS.optional, "concordance", "ci_low", "ci_high", "frontier"]]
