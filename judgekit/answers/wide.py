"""Any tool's scores: one wide table, a row for each answer, a column for each metric and one for the outcome.

ragas, deepeval, trulens, MLflow and Phoenix export such tables. Which of the metrics follow the outcome?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.data.fields import QUERY
from judgekit.data.forms import records
from judgekit.data.forms.entry import hashed
from judgekit.data.frames import framed
from judgekit.data.records import NULLS, READABLE, as_number
from judgekit.data.sources import stem
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


@dataclass(frozen=True)
class _WideRow:
    """A row of a table: where it stands, its cells, and the run that its table is."""

    place: str
    cells: Mapping[str, Any]
    table_run: str


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
    rows = list(_rows(tables))
    if not rows:
        raise DataError(f"the table holds no rows; expected {_EXPECTED}")
    columns = list(dict.fromkeys(column for row in rows for column in row.cells))
    if outcome.outcome is None:
        raise UsageError(f"name the column that says how good an answer was: --outcome COLUMN ({', '.join(columns)})")
    if outcome.outcome not in columns:
        raise UsageError(not_among("column", outcome.outcome, columns))
    id_column, run_column = _first_of(_IDS, columns), _first_of(_RUNS, columns)
    column = id_column or _first_of(_QUESTIONS, columns)
    if column is None:
        raise DataError(f"no column tells questions apart: expected one of {', '.join((*_IDS, *_QUESTIONS))}")
    keys = _keys(rows, column, run_column, by_text=id_column is None)

    others = {column, run_column, outcome.outcome, outcome.cluster, *_QUESTIONS, "depth", "model"}
    numeric: list[str] = []
    unused: list[str] = []
    for name in columns:
        if name in others:
            continue
        if _is_numeric([row.cells.get(name) for row in rows]):
            numeric.append(name)
        else:
            unused.append(name)
    if not numeric:
        raise DataError(f"has no numeric column beside the outcome {outcome.outcome!r}; it has: {', '.join(columns)}")

    scores = []
    for (query_id, run), row in zip(keys, rows, strict=True):
        for name in numeric:
            value = _number(row.cells.get(name))
            if not math.isnan(value):
                scores.append((name, run, MEASURE, query_id, value))
    quality = pd.DataFrame(keys, columns=["query_id", "run"])
    quality["metric"] = outcome.outcome
    quality["value"] = [row.cells.get(outcome.outcome) for row in rows]
    if outcome.cluster is not None:
        quality[outcome.cluster] = [row.cells.get(outcome.cluster) for row in rows]
    table = pd.DataFrame(scores, columns=["labeling", "run", "measure", "query_id", "value"])
    return WideTable(table, quality, tuple(unused))


def _rows(tables: Mapping[str, str | Path | pd.DataFrame]) -> Iterator[_WideRow]:
    """Yield the rows of all tables."""
    for name, source in tables.items():
        if isinstance(source, str | Path):
            spec, path = form_of(source)
            for record in records(Path(path), spec, _EXPECTED)[1]:
                yield _WideRow(f"{path}, line {record.line}", record.fields, name or stem(path))
        else:
            for number, cells in enumerate(framed(source).to_dict("records"), 1):
                yield _WideRow(f"row {number}", {str(column): value for column, value in cells.items()}, name or "run")


def _keys(rows: Iterable[_WideRow], column: str, run_column: str | None, *, by_text: bool) -> list[tuple[str, str]]:
    """Return query id and run of each row; two rows may not have the same."""
    keys: dict[tuple[str, str], str] = {}
    for row in rows:
        value = row.cells.get(column)
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{row.place}: {column} must be a text that tells questions apart, not {value!r}")
        # Ids hold no white space; the same text is the same question in every table.
        query_id = hashed("q", " ".join(value.split())) if by_text else value.strip()
        run = row.table_run
        if run_column is not None:
            run = str(row.cells.get(run_column) or run)
        if (query_id, run) in keys:
            same = f"{keys[query_id, run]} ({column} {value[:60]!r}, run {run!r})"
            raise DataError(f"{row.place}: the same question and run as {same}")
        keys[query_id, run] = row.place
    return list(keys)


def _first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _is_numeric(cells: Iterable[Any]) -> bool:
    """Return whether all cells of a column are numbers or empty, and not all are empty."""
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
