"""Values of the outcome on 0 to 1: the one place that puts them there.

A *point* is a hundredth of the outcome's scale (`judgekit.rules.DeclaredOutcome`) in every table, claim and margin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.data.tables import RATINGS, UNDECLARED, UP
from judgekit.errors import DataError, UsageError
from judgekit.rules import DeclaredOutcome, OutcomeScale

RATING: Final = "rating"
"""The metric of ratings that name none."""

_DECLARE: Final = "Declare it (scale under [answers], --scale, or a column 'scale'): stars, points, or ends as 1..7"
UNIT: Final = OutcomeScale.parse("unit")
_THUMBS: Final = OutcomeScale.parse("thumbs")


def scaled(
    table: pd.DataFrame,
    outcome: DeclaredOutcome | None = None,
    path: str | Path | None = None,
    notes: list[str] | None = None,
) -> pd.DataFrame:
    """Return quality or ratings with all values on 0 to 1, column ``scale`` ``unit``; the one place that does so.

    The scale of a metric is that of its column ``scale``, else the declared one, if it is the outcome or the only
    metric. Without either, words are thumbs, and numbers must already lie within 0 and 1.

    Args:
        table: columns of `RATINGS`; an index named ``line`` holds the lines of the file.
        outcome: the declared outcome.
        path: the file, for messages.
        notes: filled with a sentence for each metric that is left out, since its scale is not known.

    Raises:
        DataError: a value lies outside its scale, a word stands among numbers, or no scale is known; with the line.
        UsageError: a scale is declared, but not for which of several metrics.
    """
    wanted = outcome or DeclaredOutcome()
    lines = table.index.tolist() if table.index.name == "line" else None
    table = filled(RATINGS.check(table, path, lines), "metric", RATING)
    metrics = list(dict.fromkeys(table["metric"]))
    chosen = wanted.outcome or (metrics[0] if len(metrics) == 1 else None)
    if wanted.scale is not None and chosen is None:
        raise UsageError(f"scale {wanted.scale!r} is that of one metric, of {', '.join(metrics)}: name the outcome")
    parts = []
    unknown: dict[str, DataError] = {}
    for metric, rows in table.groupby("metric", sort=False):
        declared = wanted.on if metric == chosen else None
        try:
            values = _values(rows, str(metric), declared, path)
        except _Undeclared as error:
            unknown[str(metric)] = error
            continue
        parts.append(rows.assign(value=values, scale=UNIT.name))
    if chosen in unknown:
        raise unknown[chosen]
    if unknown and not parts:
        raise next(iter(unknown.values()))
    if notes is not None:
        notes += [f"Left out: {error.reason}." for error in unknown.values()]
    return pd.concat(parts) if parts else table.assign(value=0.0, scale=UNIT.name)


def likely_scale(rows: pd.DataFrame, metric: str, path: str | Path | None = None) -> str | None:
    """Return the scale to propose for ratings by their values; None where none need be declared.

    Raises:
        DataError: a word stands among numbers that are no thumbs; with the line.
    """
    lines = rows.index.tolist() if rows.index.name == "line" else None
    rows = RATINGS.check(rows, path, lines)
    try:
        _values(rows, metric, None, path)
    except _Undeclared:
        values = rows["value"].dropna().to_numpy(np.float64)
    else:
        return None
    low, high = float(values.min()), float(values.max())
    if low >= 1 and high <= 5:
        return "stars"
    if low >= 0 and high <= 10:
        return "0..10" if low < 1 else "1..10"
    return "points" if low >= 0 and high <= 100 else f"{low:g}..{high:g}"


def named(table: pd.DataFrame, metric: str = RATING, model: str = UNDECLARED) -> pd.DataFrame:
    """Return a table of ratings with a model and a metric where it has no such columns."""
    return filled(filled(table, "model", model), "metric", metric)


def filled(table: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Return a table with a name in every row of a column, which may be absent."""
    texts = table[column].where(table[column] != "", name) if column in table.columns else name
    return table.assign(**dict[str, Any]({column: texts}))


class _Undeclared(DataError):
    """The scale of a metric is not known."""


def _values(
    rows: pd.DataFrame, metric: str, declared: OutcomeScale | None, path: str | Path | None
) -> npt.NDArray[np.float64]:
    """Return the values of one metric on 0 to 1."""
    cells: list[Any] = rows["value"].tolist()
    places = rows.index.tolist() if rows.index.name == "line" else None

    def fail(kind: type[DataError], row: int, reason: str) -> DataError:
        about = f"{metric} of query {rows['query_id'].iloc[row]!r}: {reason}"
        return kind(about, path, None if places is None else int(places[row]))

    words = np.array([isinstance(cell, str) for cell in cells], np.bool_)
    numbers = np.array([float(cell == UP) if isinstance(cell, str) else cell for cell in cells], np.float64)
    scale = _scale_of(rows, declared)
    if isinstance(scale, str):
        raise fail(DataError, 0, scale)
    if scale is None and words.any():
        scale = _THUMBS
    missing = np.isnan(numbers)
    if scale is None:
        odd = ~missing & ((numbers < 0) | (numbers > 1))
        if odd.any():
            row = int(np.argmax(odd))
            raise fail(_Undeclared, row, f"the value {numbers[row]:g} needs a scale. {_DECLARE}")
        return numbers
    if scale.name not in (_THUMBS.name, UNIT.name) and words.any():
        row = int(np.argmax(words))
        raise fail(DataError, row, f"the word {cells[row]!r} stands among values on the scale {scale.name}")
    odd = ~missing & ((numbers < scale.low) | (numbers > scale.high))
    if scale.name == _THUMBS.name:
        odd |= ~missing & ~np.isin(numbers, (0.0, 1.0))
    if odd.any():
        row = int(np.argmax(odd))
        ends = "up or down, 1 or 0" if scale.name == _THUMBS.name else f"{scale.low:g} to {scale.high:g}"
        beside = " stands beside words such as up and down and" if words.any() else ""
        raise fail(DataError, row, f"the value {numbers[row]:g}{beside} is not on the scale {scale.name} ({ends})")
    return np.asarray((numbers - scale.low) / (scale.high - scale.low))


def _scale_of(rows: pd.DataFrame, declared: OutcomeScale | None) -> OutcomeScale | str | None:
    """Return the scale of a metric's rows, None if nothing says it, or what contradicts itself."""
    said = sorted(set(rows["scale"]) - {""}) if "scale" in rows.columns else []
    if len(said) > 1:
        return f"column 'scale' says {' and '.join(said)}: one metric has one scale"
    if not said:
        return declared
    scale = OutcomeScale.parse(said[0])
    # What was put on 0 to 1 before says so, whatever it was declared to be.
    if declared is not None and scale not in (declared, UNIT):
        return f"column 'scale' says {scale.name}, and the outcome is declared with {declared.name}"
    return scale
