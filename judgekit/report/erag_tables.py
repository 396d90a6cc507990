"""The forms in which the eRAG paper (Salemi and Zamani, SIGIR 2024) reports: its Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from operator import itemgetter

import pandas as pd

from judgekit.data.tables import ALL
from judgekit.report.formatting import UNDEFINED, number
from judgekit.report.grids import records, where
from judgekit.report.model import Cost, Results

__all__ = ["PerRun", "per_run", "per_run_rows", "speed_up", "table_1"]

COEFFICIENTS = {"tau_b": "τ", "rho": "ρ"}


@dataclass(frozen=True, slots=True)
class PerRun:
    """Table 1: rows (labeling, measure), columns (data set, run, coefficient); a cell is its text and reason."""

    rows: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    coefficients: dict[str, str]
    cells: dict[tuple[str, ...], tuple[str, str]]

    def cell(self, row: tuple[str, str], column: tuple[str, str], coefficient: str) -> tuple[str, str]:
        """Return (text, reason); a combination that is not in the table is ("", "")."""
        return self.cells.get((*row, *column, coefficient), ("", ""))

    @property
    def reasons(self) -> list[str]:
        """Why cells have no number, each reason once."""
        return list(dict.fromkeys(reason for _, reason in self.cells.values() if reason))

    @property
    def labelings(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The rows by labeling, for row groups."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, itemgetter(0))]

    @property
    def datasets(self) -> list[tuple[str, int]]:
        """Each data set and how many runs it has, for column groups."""
        return [(name, len(list(columns))) for name, columns in groupby(self.columns, itemgetter(0))]


def table_1(frame: pd.DataFrame, labelings: Sequence[str] = (), measures: Sequence[str] = ()) -> PerRun:
    """Shape comparison rows as Table 1: labelings x measures against runs x data sets, tau and rho."""
    frame = frame[frame["coefficient"].isin(list(COEFFICIENTS))]
    frame = frame.assign(**{c: "" for c in ("dataset", "undefined_reason") if c not in frame.columns})
    order = [[*dict.fromkeys([*first, *frame[c]])] for c, first in (("labeling", labelings), ("measure", measures))]
    present = set(zip(frame["labeling"], frame["measure"], strict=True))
    rows = tuple(row for row in product(*order) if row in present)
    held = set(zip(frame["dataset"], frame["run"], strict=True))
    columns = tuple(c for c in product(dict.fromkeys(frame["dataset"]), dict.fromkeys(frame["run"])) if c in held)
    keys = ("labeling", "measure", "dataset", "run", "coefficient")
    cells = {
        tuple(row[k] for k in keys): (_text(row["value"], row["undefined_reason"]), row["undefined_reason"])
        for row in records(frame)
    }
    return PerRun(rows, columns, COEFFICIENTS, cells)


def _text(value: float, reason: str) -> str:
    text = number(value)
    return "not applicable" if text == UNDEFINED and reason.startswith("not applicable") else text


def per_run_rows(results: Results) -> pd.DataFrame:
    """Return the rows of Table 1: the primary depth, metric and model at query level, of single runs."""
    primary = results.primary
    fixed = {"level": "query", "depth": primary.depth, "quality_metric": primary.metric, "model": primary.model}
    rows = where(results.comparison, **fixed)
    return rows[rows["run"] != ALL]


def per_run(results: Results) -> PerRun | None:
    """Return Table 1 of a result, or None where no single run is there."""
    rows = per_run_rows(results)
    return None if rows.empty else table_1(rows, [i.name for i in results.labelings], list(results.scores["measure"]))


def speed_up(results: Results, cost: Cost) -> float | None:
    """Return Table 2's speed-up: request time of the answers that the decision is about, over a labeling's."""
    # None where either is not known in full, or where nothing was asked for.
    whole = [a.at_decision for a in results.answers if a.at_decision is not None]
    times = [None if one.untimed else one.request_seconds for one in (cost, *whole)]
    if not whole or not times[0] or None in times:
        return None
    return sum(time or 0.0 for time in times[1:]) / times[0]
