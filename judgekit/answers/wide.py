"""Any tool's scores: one wide table, a row for each answer, a column for each metric and one for the outcome.

ragas, deepeval, trulens, MLflow and Phoenix export such tables. Which of the metrics follow the outcome?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.data.fields import QUERY
from judgekit.data.forms import records
from judgekit.data.forms.entry import hashed
from judgekit.data.frames import framed
from judgekit.data.records import READABLE, as_number
from judgekit.data.sources import stem
from judgekit.data.tables import NULLS
from judgekit.errors import DataError, UsageError, not_among
from judgekit.rules import DeclaredOutcome
from judgekit.spec import form_of

MEASURE: Final = "score"
"""The measure of all columns: each is a labeling with one score for an answer."""
_IDS: Final = (*QUERY["id"], "question_id", "example_id")
_QUESTIONS: Final = ("user_input", *QUERY["text"], "input", "prompt")
_RUNS: Final = ("run", "system", "retriever")
_EXPECTED: Final = f"a table with a row for each answer ({READABLE})"


@dataclass(frozen=True)
class WideTable:
    """A wide table, taken apart.

    Attributes:
        scores: columns of `judgekit.data.tables.SCORES`, a labeling for each numeric column.
        quality: columns of `judgekit.data.tables.RATINGS`, the outcome.
        unused: columns that hold no numbers, and so are not compared.
    """

    scores: pd.DataFrame
    quality: pd.DataFrame
    unused: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """What to say of columns that are not compared."""
        return [f"Columns without numbers are not compared: {', '.join(self.unused)}."] if self.unused else []


@dataclass
class _TableRows:
    """The rows of all tables: where each stands, its cells, and the run of its table."""

    places: list[str] = field(default_factory=list)
    cells: list[Mapping[str, Any]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)


def taken_apart(tables: Mapping[str, str | Path | pd.DataFrame], outcome: DeclaredOutcome) -> WideTable:
    """Return wide tables as scores and quality.

    A question is known by a column of ids (``query_id``, ``id``, …), else by its text (``question``, ``user_input``,
    …). The run is the column ``run``, ``system`` or ``retriever``, else the name of the table. Every other column whose
    cells are numbers is a labeling; an empty cell is a missing score, never 0.

    Args:
        tables: files or tables by name.
        outcome: what is declared of the outcome; ``outcome`` names its column.

    Raises:
        DataError: no column tells questions apart, or two rows are about the same question and run; with the line.
        UsageError: no column, or an unknown one, is named as the outcome.
    """
    rows = _read(tables)
    columns = list(dict.fromkeys(column for cells in rows.cells for column in cells))
    if outcome.outcome is None:
        raise UsageError(f"name the column that says how good an answer was: --outcome COLUMN ({', '.join(columns)})")
    if outcome.outcome not in columns:
        raise UsageError(not_among("column", outcome.outcome, columns))
    named = _first_of(_IDS, columns)
    text = None if named else _first_of(_QUESTIONS, columns)
    if named is None and text is None:
        raise DataError(f"no column tells questions apart: expected one of {', '.join((*_IDS, *_QUESTIONS))}")
    run_column = _first_of(_RUNS, columns)
    keys = _keys(rows, named or text or "", run_column, by_text=named is None)
    about = {named, text, run_column, outcome.outcome, outcome.cluster, *_QUESTIONS, "depth", "model"}
    candidates: list[str] = []
    unused: list[str] = []
    for column in columns:
        if column not in about:
            (candidates if _is_numeric(column, rows.cells) else unused).append(column)
    if not candidates:
        raise DataError(f"has no numeric column beside the outcome {outcome.outcome!r}; it has: {', '.join(columns)}")
    scores = []
    for (query_id, run), cells in zip(keys, rows.cells, strict=True):
        for column in candidates:
            value = _number(cells.get(column))
            if not math.isnan(value):
                scores.append((column, run, MEASURE, query_id, value))
    quality = pd.DataFrame(keys, columns=["query_id", "run"])
    quality["metric"] = outcome.outcome
    quality["value"] = [cells.get(outcome.outcome) for cells in rows.cells]
    if outcome.cluster is not None:
        quality[outcome.cluster] = [cells.get(outcome.cluster) for cells in rows.cells]
    table = pd.DataFrame(scores, columns=["labeling", "run", "measure", "query_id", "value"])
    return WideTable(table, quality, tuple(unused))


def _read(tables: Mapping[str, str | Path | pd.DataFrame]) -> _TableRows:
    rows = _TableRows()
    for name, source in tables.items():
        if isinstance(source, str | Path):
            spec, path = form_of(source)
            for record in records(Path(path), spec, _EXPECTED)[1]:
                rows.places.append(f"{path}, line {record.line}")
                rows.cells.append(record.fields)
                rows.runs.append(name or stem(path))
        else:
            for number, cells in enumerate(framed(source).to_dict("records"), 1):
                rows.places.append(f"row {number}")
                rows.cells.append({str(column): value for column, value in cells.items()})
                rows.runs.append(name or "run")
    if not rows.cells:
        raise DataError(f"the table holds no rows; expected {_EXPECTED}")
    return rows


def _keys(rows: _TableRows, column: str, run_column: str | None, *, by_text: bool) -> list[tuple[str, str]]:
    """Return query id and run of each row; two rows may not have the same."""
    keys: dict[tuple[str, str], str] = {}
    for place, cells, table_name in zip(rows.places, rows.cells, rows.runs, strict=True):
        value = cells.get(column)
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{place}: {column} must be a text that tells questions apart, not {value!r}")
        # Ids hold no white space; the same text is the same question in every table.
        query_id = hashed("q", " ".join(value.split())) if by_text else value.strip()
        run = table_name if run_column is None else str(cells.get(run_column) or table_name)
        key = (query_id, run)
        if key in keys:
            raise DataError(f"{place}: the same question and run as {keys[key]} ({column} {value[:60]!r}, run {run!r})")
        keys[key] = place
    return list(keys)


def _first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _is_numeric(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all cells of a column are numbers or empty, and not all are empty."""
    cells = [row.get(column) for row in rows]
    present = [cell for cell in cells if not _is_empty(cell)]
    return bool(present) and not any(math.isnan(_number(cell)) for cell in present)


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or (isinstance(cell, str) and cell in NULLS)


def _number(cell: Any) -> float:
    if _is_empty(cell) or isinstance(cell, list | dict):
        return math.nan
    if isinstance(cell, str):
        words = {"true": 1.0, "false": 0.0}
        return words.get(cell.casefold(), as_number(cell))
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
