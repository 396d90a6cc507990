"""Slices of the comparison table, shaped as the report shows them, and as Tables 1 and 2 of the eRAG paper do.

Salemi and Zamani, SIGIR 2024.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

import pandas as pd

from judgekit.analysis.primary import Primary
from judgekit.data.tables import ALL
from judgekit.report.formatting import marks, meaning, number, split_flags
from judgekit.report.model import Cost, Results

HEADLINE: Final = "concordance"
"""The main coefficient of every cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One labeling under one measure: the main coefficient with its interval, and tau-b.

    ``value`` is NaN if the coefficient is undefined; ``reason`` then says why.
    """

    labeling: str
    measure: str
    value: float
    low: float
    high: float
    method: str
    n: int
    reason: str
    flags: tuple[str, ...]
    tau_b: float = math.nan

    @property
    def defined(self) -> bool:
        """Whether there is a main value."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Flagged:
    """The flags of a table's cells with their labelings, for the marks beside numbers and the notes below."""

    cells: Sequence[tuple[str, Sequence[str]]]

    @cached_property
    def everywhere(self) -> tuple[str, ...]:
        """The flags shared by all of several cells: a note tells, and nothing is marked."""
        # A mark beside every number would hide those that differ.
        if len(self.cells) < 2:
            return ()
        _, first = self.cells[0]
        return tuple(flag for flag in first if all(flag in flags for _, flags in self.cells))

    def own(self, flags: Iterable[str]) -> tuple[str, ...]:
        """Return the flags beside a cell's number."""
        everywhere = self.everywhere
        return tuple(flag for flag in flags if flag not in everywhere)

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Each flag's mark and meaning with its labelings; those of all cells have no mark."""
        labelings: dict[str, dict[str, None]] = {}
        for labeling, flags in self.cells:
            for flag in flags:
                labelings.setdefault(flag, {})[labeling] = None
        notes, everywhere = [], self.everywhere
        for flag, names in labelings.items():
            if flag in everywhere:
                notes.append(("", meaning(flag)))
            else:
                notes.append((marks([flag]), f"{meaning(flag)} ({', '.join(names)})"))
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class Grid:
    """Labelings x measures at one level, against the answers of one model.

    ``cells[labeling, measure]`` holds every computed combination; ``primary`` tells whether one of them is the primary
    cell.
    """

    level: str
    model: str
    primary: bool
    labelings: list[str]
    measures: list[str]
    cells: dict[tuple[str, str], Cell]

    @property
    def _flagged(self) -> Flagged:
        return Flagged([(cell.labeling, cell.flags) for cell in self.cells.values()])

    def own(self, cell: Cell) -> tuple[str, ...]:
        """Return the flags beside a cell's number."""
        return self._flagged.own(cell.flags)

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Each flag's mark and meaning, see `Flagged`."""
        return self._flagged.notes

    @property
    def reasons(self) -> list[str]:
        """The reasons why cells are undefined, each once."""
        reasons: dict[str, None] = {}
        for cell in self.cells.values():
            if not cell.defined and cell.reason:
                reasons[cell.reason] = None
        return list(reasons)

    @property
    def sizes(self) -> str:
        """The number of queries (or runs) behind the defined cells: ``300`` or ``280 to 300``; "" without any."""
        sizes = [cell.n for cell in self.cells.values() if cell.defined]
        if not sizes:
            return ""
        least, most = min(sizes), max(sizes)
        return f"{least:,}" if least == most else f"{least:,} to {most:,}"

    @property
    def methods(self) -> tuple[str, ...]:
        """Its interval methods."""
        methods = {cell.method for cell in self.cells.values()}
        return tuple(sorted(methods - {""}))


def grids(results: Results, coefficient: str = HEADLINE) -> list[Grid]:
    """Return labelings x measures at the depth, metric and run of the primary cell, its model first."""
    # Labelings are in the order of `results.labelings`, measures in that of `results.scores`; others follow in order of
    # appearance.
    taus: dict[tuple[str, ...], float] = {}
    parts: dict[tuple[str, str], dict[tuple[str, str], Cell]] = {}
    for row in records(at_primary(results.comparison, results.primary)):
        table, place = (row["level"], row["model"]), (row["labeling"], row["measure"])
        if row["coefficient"] == "tau_b":
            taus[table + place] = row["value"]
        elif row["coefficient"] == coefficient:
            parts.setdefault(table, {})[place] = Cell(
                *place,
                value=row["value"],
                low=row["ci_low"],
                high=row["ci_high"],
                method=row["ci_method"],
                n=row["n"],
                reason=row["undefined_reason"],
                flags=tuple(split_flags(row["flags"])),
            )
    # Tau-b may come before or after the main coefficient in the table, so it is added afterwards.
    made = []
    for (level, model), cells in parts.items():
        for place, cell in cells.items():
            cells[place] = replace(cell, tau_b=taus.get((level, model, *place), math.nan))
        labelings = _in_order((labeling for labeling, _ in cells), [info.name for info in results.labelings])
        measures = _in_order((measure for _, measure in cells), results.scores["measure"])
        primary = (level, model) == (results.primary.level, results.primary.model)
        made.append(Grid(level, model, primary=primary, labelings=labelings, measures=measures, cells=cells))
    return sorted(made, key=lambda grid: not grid.primary)


def _in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return names, each once, in a given order; others follow in order of appearance."""
    present = dict.fromkeys(names)
    return [name for name in dict.fromkeys([*order, *present]) if name in present]


def where(frame: pd.DataFrame, **fixed: object) -> pd.DataFrame:
    """Return the rows of a table with these values in its columns."""
    for column, value in fixed.items():
        frame = frame[frame[column] == value]
    return frame


def at_primary(frame: pd.DataFrame, primary: Primary, **more: object) -> pd.DataFrame:
    """Return the rows of a comparison at the depth, metric and run of the primary cell, if ``more`` holds."""
    fixed = {"depth": primary.depth, "quality_metric": primary.metric, "run": primary.run}
    return where(frame, **fixed, **more)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries of plain Python values."""
    return cast("list[dict[str, Any]]", frame.to_dict("records"))


COEFFICIENTS = {"tau_b": "τ", "rho": "ρ"}


@dataclass(frozen=True, slots=True)
class PerRun:
    """Table 1.

    Attributes:
        labelings: each labeling and its rows (labeling, measure).
        datasets: each data set and how many columns it has.
        columns: (data set, run), in each of which every coefficient has one.
        cells: text and reason by (labeling, measure, data set, run, coefficient).
        flags: the flags that stand beside a cell, likewise.
        notes: for each flag its mark and what it says, see `Flagged`.
        reasons: why cells have no number, each reason once.
    """

    labelings: dict[str, list[tuple[str, str]]]
    datasets: dict[str, int]
    columns: list[tuple[str, str]]
    cells: dict[tuple[str, ...], tuple[str, str]]
    flags: dict[tuple[str, ...], tuple[str, ...]]
    notes: tuple[tuple[str, str], ...]
    reasons: list[str]
    coefficients: dict[str, str]


def table_1(frame: pd.DataFrame, labelings: Iterable[str] = (), measures: Iterable[str] = ()) -> PerRun:
    """Shape comparison rows as Table 1: labelings x measures against runs x data sets, tau and rho."""
    frame = frame[frame["coefficient"].isin(list(COEFFICIENTS))]
    cells: dict[tuple[str, ...], tuple[str, str]] = {}
    flags: dict[tuple[str, ...], list[str]] = {}
    rows, columns = dict[tuple[str, str], None](), dict[tuple[str, str], None]()
    for row in records(frame):
        why = row.get("undefined_reason", "")
        # Containment of a long answer is no number that is lacking; the paper leaves these cells empty.
        text = "not applicable" if why.startswith("not applicable") else number(row["value"])
        left, above = (row["labeling"], row["measure"]), (row.get("dataset", ""), row["run"])
        cells[(*left, *above, row["coefficient"])] = text, why
        flags[(*left, *above, row["coefficient"])] = split_flags(row.get("flags", ""))
        rows[left] = columns[above] = None
    grouped: dict[str, list[tuple[str, str]]] = {}
    for left in _ordered(rows, labelings, measures):
        grouped.setdefault(left[0], []).append(left)
    ordered = _ordered(columns)
    datasets = Counter(dataset for dataset, _ in ordered)
    reasons = list(dict.fromkeys(why for _, why in cells.values() if why))
    flagged = Flagged([(labeling, own) for (labeling, *_), own in flags.items()])
    return PerRun(
        grouped,
        datasets,
        columns=ordered,
        cells=cells,
        flags={place: flagged.own(own) for place, own in flags.items()},
        notes=flagged.notes,
        reasons=reasons,
        coefficients=COEFFICIENTS,
    )


def _ordered(
    pairs: Collection[tuple[str, str]], first: Iterable[str] = (), second: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return pairs of names ordered by each; names in a given order come first, then those in order of appearance."""
    if not pairs:
        return []
    lefts, rights = zip(*pairs, strict=True)
    left, right = _in_order(lefts, first), _in_order(rights, second)
    return sorted(pairs, key=lambda pair: (left.index(pair[0]), right.index(pair[1])))


def per_run_rows(results: Results) -> pd.DataFrame:
    """Return the rows of Table 1: the primary depth, metric and model at query level, of single runs."""
    primary = results.primary
    fixed = {"level": "query", "depth": primary.depth, "quality_metric": primary.metric, "model": primary.model}
    # Single runs only: the paper's Table 1 has no mean over retrievers.
    rows = where(results.comparison, **fixed)
    return rows[rows["run"] != ALL]


def per_run(results: Results) -> PerRun | None:
    """Return Table 1 of a result, or None where no single run is there."""
    rows = per_run_rows(results)
    if rows.empty:
        return None
    return table_1(rows, [info.name for info in results.labelings], results.scores["measure"])


def labelled(results: Results) -> str:
    """Return which labels the labelings' requests and money are for, since the decision counts those it needs only."""
    words = f"labels for the runs' top {results.facts.depth}"
    if results.primary.depth >= results.facts.depth:
        return words
    return f"{words} (the decision counts the top {results.primary.depth})"


def speed_up(results: Results, cost: Cost) -> float | None:
    """Return Table 2's speed-up: request time of the answers that the decision is about, over a labeling's."""
    # None where either is not known in full, or where nothing was asked for.
    if not cost.request_seconds or cost.untimed:
        return None
    seconds = 0.0
    for answers in results.answers:
        answered = answers.at_decision
        if answered is None:
            continue
        if answered.untimed or answered.request_seconds is None:
            return None
        seconds += answered.request_seconds
    return seconds / cost.request_seconds if seconds else None
