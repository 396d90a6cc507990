"""Maps values of the outcome to 0 to 1; nothing else does.

A *point* is a hundredth of the outcome's scale (`judgekit.rules.DeclaredOutcome`) in every table, claim and margin.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.answers.pairs import holds_pairs, wins
from judgekit.data.tables import RATINGS, UNDECLARED, UP, NotedTable
from judgekit.errors import DataError, UsageError
from judgekit.rules import DeclaredOutcome, OutcomeScale

RATING: Final = "rating"
"""The metric of ratings without a named one."""

_DECLARE: Final = "Declare it (scale under [answers], --scale, or a column 'scale'): stars, points, or ends as 1..7"
UNIT: Final = OutcomeScale.parse("unit")
_THUMBS: Final = OutcomeScale.parse("thumbs")


def scaled(table: pd.DataFrame, outcome: DeclaredOutcome | None = None, path: str | Path | None = None) -> NotedTable:
    """Return quality or ratings with all values on 0 to 1 and ``unit`` in the column ``scale``.

    A metric's scale is in its column ``scale``; otherwise it is the declared one, if the metric is the outcome or the
    only one. Without either, words are thumbs, and numbers must already lie within 0 and 1. The notes name metrics that
    are left out because their scale is unknown.

    Args:
        table: columns of `RATINGS`; an index named ``line`` holds the lines of the file.
        outcome: the declared outcome.
        path: the file, for messages.

    Raises:
        DataError: a value lies outside its scale, a word stands among numbers, or no scale is known; with the line.
        UsageError: a scale is declared, but not for which of several metrics.
    """
    wanted = outcome or DeclaredOutcome()
    notes: tuple[str, ...] = ()
    if holds_pairs([str(name) for name in table.columns], path):
        table, notes = wins(table, path, wanted.cluster)
    table = filled(RATINGS.check(table, path, _lines_of(table)), "metric", RATING)
    metrics = list(dict.fromkeys(table["metric"]))
    chosen = wanted.outcome
    if chosen is None and len(metrics) == 1:
        chosen = metrics[0]
    if wanted.scale is not None and chosen is None:
        raise UsageError(
            f"scale {wanted.scale!r} applies to one metric, and there are {', '.join(metrics)}: name the outcome"
        )
    parts = []
    left_out: list[_Undeclared] = []
    for metric, rows in table.groupby("metric", sort=False):
        ratings = _Ratings(rows, str(metric), path)
        try:
            values = ratings.values(wanted.on if metric == chosen else None)
        except _Undeclared as error:
            # Other columns of numbers without a scale are left out with a note; they are no reason to stop.
            if metric == chosen:
                raise
            left_out.append(error)
            continue
        parts.append(rows.assign(value=values, scale=UNIT.name))
    if left_out and not parts:
        raise left_out[0]
    notes = (*notes, *(f"Left out: {error.reason}." for error in left_out))
    if parts:
        return NotedTable(pd.concat(parts), notes)
    return NotedTable(table.assign(value=0.0, scale=UNIT.name), notes)


def turned(table: pd.DataFrame, column: str, names: Collection[str]) -> pd.DataFrame:
    """Return scores (column ``labeling``) or quality (``metric``) reversed where lower is better.

    Quality stays on 0 to 1; scores change their sign.
    """
    if not names or not len(table):
        return table
    named_rows = table[column].isin(list(names)) if column in table.columns else pd.Series(RATING in names, table.index)
    if not named_rows.any():
        return table
    top = 1.0 if column == "metric" else 0.0
    other = table.assign(value=top - table["value"])
    if "low" in table.columns and "high" in table.columns:
        other = other.assign(low=top - table["high"], high=top - table["low"])
    return table.where(~named_rows, other).astype(table.dtypes.to_dict())


def likely_scale(rows: pd.DataFrame, metric: str, path: str | Path | None = None) -> str | None:
    """Return the scale to propose for ratings by their values; None if none is needed.

    Raises:
        DataError: a word stands among numbers that are no thumbs; with the line.
    """
    rows = RATINGS.check(rows, path, _lines_of(rows))
    try:
        _Ratings(rows, metric, path).values(None)
    except _Undeclared:
        values = rows["value"].dropna().to_numpy(np.float64)
    else:
        return None
    low, high = float(values.min()), float(values.max())
    # A proposal for the user to confirm: nothing is put on a scale by its values.
    if low >= 1 and high <= 5:
        return "stars"
    if low >= 0 and high <= 10:
        if low < 1:
            return "0..10"
        return "1..10"
    if low >= 0 and high <= 100:
        return "points"
    return f"{low:g}..{high:g}"


def _lines_of(table: pd.DataFrame) -> list[int] | None:
    """Return the rows' lines in their file; None if the table is not from a text file."""
    if table.index.name == "line":
        return table.index.tolist()
    return None


def named(table: pd.DataFrame, metric: str = RATING, model: str = UNDECLARED) -> pd.DataFrame:
    """Return a table of ratings, adding columns for the model and the metric if absent."""
    return filled(filled(table, "model", model), "metric", metric)


def filled(table: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Return a table with a name in every row of a (possibly absent) column."""
    texts = table[column].where(table[column] != "", name) if column in table.columns else name
    return table.assign(**dict[str, Any]({column: texts}))


class _Undeclared(DataError):
    """The scale of a metric is not known."""


@dataclass(frozen=True)
class _Ratings:
    """The ratings by one metric, and their file."""

    rows: pd.DataFrame
    metric: str
    path: str | Path | None

    def values(self, declared: OutcomeScale | None) -> npt.NDArray[np.float64]:
        """Return the values on 0 to 1, by the rows' scale, else the declared one."""
        cells: list[Any] = self.rows["value"].tolist()
        words = np.array([isinstance(cell, str) for cell in cells], np.bool_)
        numbers = np.array([float(cell == UP) if isinstance(cell, str) else cell for cell in cells], np.float64)
        scale = self._scale(declared)
        if scale is None and words.any():
            scale = _THUMBS
        there = ~np.isnan(numbers)
        if scale is None and np.isin(numbers[there], (-1.0, 1.0)).all():
            return np.asarray((numbers + 1) / 2)  # thumbs as +1 and -1
        if scale is None:
            odd = there & ((numbers < 0) | (numbers > 1))
            if odd.any():
                row = int(np.argmax(odd))
                raise self._error(row, f"the value {numbers[row]:g} needs a scale. {_DECLARE}", _Undeclared)
            return numbers
        thumbs = scale.name == _THUMBS.name
        # 'good' among stars may be a comment that slipped into the column.
        if words.any() and not thumbs and scale.name != UNIT.name:
            row = int(np.argmax(words))
            raise self._error(row, f"the word {cells[row]!r} stands among values on the scale {scale.name}")
        odd = there & ((numbers < scale.low) | (numbers > scale.high))
        if thumbs:
            odd |= there & ~np.isin(numbers, (0.0, 1.0))
        if odd.any():
            row = int(np.argmax(odd))
            beside = " stands beside words such as up and down and" if words.any() else ""
            ends = "up or down, 1 or 0" if thumbs else f"{scale.low:g} to {scale.high:g}"
            raise self._error(row, f"the value {numbers[row]:g}{beside} is not on the scale {scale.name} ({ends})")
        return np.asarray((numbers - scale.low) / (scale.high - scale.low))

    def _scale(self, declared: OutcomeScale | None) -> OutcomeScale | None:
        """Return the rows' scale, else the declared one, or None."""
        names = sorted(set(self.rows["scale"]) - {""}) if "scale" in self.rows.columns else []
        if not names:
            return declared
        if len(names) > 1:
            raise self._error(0, f"column 'scale' says {' and '.join(names)}: one metric has one scale")
        scale = OutcomeScale.parse(names[0])
        # Values already mapped to 0 to 1 are marked so, whatever was declared.
        if declared is not None and scale not in (declared, UNIT):
            raise self._error(0, f"column 'scale' says {scale.name}, and the outcome is declared with {declared.name}")
        return scale

    def _error(self, row: int, reason: str, kind: type[DataError] = DataError) -> DataError:
        lines = _lines_of(self.rows)
        about = f"{self.metric} of query {self.rows['query_id'].iloc[row]!r}: {reason}"
        return kind(about, self.path, None if lines is None else int(lines[row]))
