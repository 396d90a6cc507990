"""Answer quality from elsewhere: thumbs, human ratings, and another system's answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.answers.quality import AnswerMetric, metric
from judgekit.answers.reading import Answer, stated
from judgekit.answers.text import trimmed
from judgekit.data.frames import AsQueries, as_queries
from judgekit.data.records import Record, as_number, records
from judgekit.data.tables import QUALITY, RATINGS, Status
from judgekit.errors import DataError, UsageError
from judgekit.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["completed", "named", "read_answers", "read_ratings"]

_THUMBS: Final = {
    **dict.fromkeys(("up", "yes", "true", "good", "right", "correct", "👍", "+"), 1.0),
    **dict.fromkeys(("down", "no", "false", "bad", "wrong", "incorrect", "👎", "-"), 0.0),
}
_MODEL: Final = "imported"
_METRIC: Final = "rating"


def read_ratings(path: str | Path, metric: str = _METRIC) -> pd.DataFrame:
    """Read how good the answers were in the eyes of people or of another tool, as a quality table.

    Args:
        path: CSV, TSV, JSON lines or Parquet with the columns ``query_id, value``. A value is a number, or a word such
            as ``up``, ``down``, ``yes``, ``no``, ``good``, ``bad``; an empty one is missing. ``run``, ``depth``,
            ``metric``, ``model`` and ``answer`` may be there too, see `completed`.
        metric: the metric's name where the file has none.

    Raises:
        DataError: a column is missing or a value makes no sense; with file and line.
    """
    source = Path(path)
    rows: list[dict[str, Any]] = []
    for record in _records(source, ("query_id", "value")):
        value, reason = record.fields["value"], ""
        if value is None or (isinstance(value, str) and not value.strip()):
            number, reason = float("nan"), "not rated"
        else:
            number = _number(value, record, source)
        status = Status.UNASKED if reason else Status.OK
        rows.append({**_where(record, source, metric), "value": number, "status": status.value, "reason": reason})
    return _table(rows, source)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of ratings with a model and a metric where it has no such columns."""
    for column, name in (("model", _MODEL), ("metric", _METRIC)):
        if column not in table.columns:
            table = table.assign(**dict[str, Any]({column: name}))
    return table


def completed(table: pd.DataFrame, runs: Collection[str], depths: Collection[int]) -> pd.DataFrame:
    """Return a table of ratings with all columns of a quality table: what it does not say is the only thing it can be.

    Args:
        table: columns of `RATINGS`.
        runs: the runs that there are.
        depths: the numbers of documents that an answer may be from.

    Raises:
        DataError: it does not say of which run or from how many documents the answers are, and there are several.
    """
    table = named(RATINGS.check(table))
    for column, known, what in (("run", runs, "runs"), ("depth", depths, "depths")):
        if column not in table.columns:
            if len(known) != 1:
                have = ", ".join(map(str, sorted(known, key=str))) or "none"
                raise DataError(
                    f"the quality table lacks column {column!r}, and the {what} are {have}: say which each row is about"
                )
            table = table.assign(**dict[str, Any]({column: next(iter(known))}))
    return QUALITY.check(table)


def read_answers(
    path: str | Path, queries: AsQueries, metrics: Sequence[str | AnswerMetric] = ("em", "f1")
) -> pd.DataFrame:
    """Read another system's answers and rate them, as a quality table for `judgekit.compare`.

    Args:
        path: CSV, TSV, JSON lines or Parquet with the columns ``run, depth, query_id, answer``; ``model`` may be
            there too. An empty answer is missing.
        queries: the queries with their references, as for `judgekit.label`.
        metrics: answer metrics that ask no LLM: spellings, or your own.

    Raises:
        DataError: a column is missing, or a query is unknown; with file and line.
        UsageError: a metric asks an LLM.
    """
    source = Path(path)
    known, built = as_queries(queries), [metric(one) for one in metrics]
    named = [(one.name, one) for one in built]
    asking = next((name for name, one in named if one.endpoint is not None), None)
    if asking is not None:
        raise UsageError(f"the metric {asking} asks an LLM; answers that are read from a file are rated without one")
    rows: list[dict[str, Any]] = []
    for record in _records(source, ("run", "depth", "query_id", "answer")):
        where = _where(record, source, "")
        query = known.get(where["query_id"])
        if query is None:
            raise DataError(f"query {where['query_id']!r} is not among the queries", source, record.line)
        text = trimmed(_text(record.fields["answer"]))
        answer = stated(text, text) if text else Answer("", Status.FAILED, reason="there is no answer in the file")
        for name, one in named:
            score = one.score(answer, query)
            value = float("nan") if score.value is None else score.value
            row = {"metric": name, "value": value, "status": score.status.value, "reason": score.reason}
            counted = {"abstained": int(answer.abstained), "seems_abstained": int(answer.seems_abstained)}
            rows.append({**where, **row, "answer": text, **counted})
    return _table(rows, source)


def _records(path: Path, columns: Sequence[str]) -> list[Record]:
    expected = f"a table with the columns {', '.join(columns)}"
    found = list(records(path, Spec("auto"), expected)[1])
    for record in found:
        lacking = next((c for c in columns if c not in record.fields), None)
        if lacking is not None:
            have = ", ".join(map(str, record.fields))
            raise DataError(f"lacks {lacking!r} (it has: {have}); expected {expected}", path, record.line)
    return found


def _where(record: Record, path: Path, metric: str) -> dict[str, Any]:
    """Return the columns of the quality table that say what was answered."""
    fields = record.fields
    where: dict[str, Any] = {}
    for key in ("run", "query_id"):
        if key in fields:
            if not isinstance(fields[key], str) or not fields[key]:
                raise DataError(f"{key} must be a text, is {fields[key]!r}", path, record.line)
            where[key] = fields[key]
    if "depth" in fields:
        depth = as_number(fields["depth"])
        if not (depth.is_integer() and depth >= 0):
            raise DataError(f"depth must be a whole number from 0 up, is {fields['depth']!r}", path, record.line)
        where["depth"] = int(depth)
    return where | {
        "model": str(fields.get("model") or _MODEL),
        "metric": str(fields.get("metric") or metric),
        "answer": _text(fields.get("answer")),
    }


def _text(value: Any) -> str:
    """Return a cell as text; the number 0 is one, nothing is none."""
    return "" if value is None else str(value)


def _number(value: Any, record: Record, path: Path) -> float:
    if isinstance(value, str):
        word = _THUMBS.get(value.strip().casefold())
        if word is not None:
            return word
    rating = as_number(value)
    if not math.isfinite(rating):
        raise DataError(f"value must be a number or a word such as up or down, is {value!r}", path, record.line)
    return rating


def _table(rows: Sequence[dict[str, Any]], path: Path) -> pd.DataFrame:
    import pandas as pd

    if not rows:
        return QUALITY.empty()
    table = RATINGS.check(pd.DataFrame(rows))
    keys = [key for key in ("run", "depth", "query_id", "metric", "model") if key in table.columns]
    table = table.sort_values(keys, ignore_index=True)
    twice = table.duplicated(keys)
    if twice.any():
        told = ", ".join(f"{key} {table.loc[twice, key].iloc[0]!s}" for key in keys)
        raise DataError(f"there are two values for {told}", path)
    return table
