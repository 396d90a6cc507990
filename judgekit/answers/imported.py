"""Answers and their quality from elsewhere: what an application answered, what people or other tools think of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import pandas as pd

from judgekit.answers.quality import Answered
from judgekit.answers.reading import Answer, stated
from judgekit.answers.text import trimmed
from judgekit.data.documents import Queries
from judgekit.data.files import read_table
from judgekit.data.tables import ANSWERS, QUALITY, RATINGS, UNDECLARED, Status, Table
from judgekit.errors import DataError
from judgekit.wire.reasoning import without_reasoning

__all__ = ["Imported", "completed", "named", "read_answers", "read_ratings"]

_METRIC: Final = "rating"


@dataclass(frozen=True)
class Imported:
    """The answers of one model, in one mode, that an application gave, as read from a table.

    Attributes:
        model: who answered, `UNDECLARED` where nobody said.
        found: the answers, each with the (run, depth) that it was given for; None where the table does not say.
        mode: of answering, "" where the table does not say.
    """

    model: str
    found: Mapping[Answered, Sequence[tuple[Any, Any]]]
    mode: str = ""
    endpoint: ClassVar[None] = None


def read_answers(
    source: str | Path | pd.DataFrame,
    queries: Queries,
    *,
    runs: Collection[str] = (),
    depths: Collection[int] = (),
    answered_by: str | None = None,
    limited: bool = False,
) -> list[Imported]:
    """Read what an application answered, by model and mode of answering.

    As with answers of our own, reasoning and leaked end tokens are left out of what it says. An empty answer is
    missing, and so is that to a query which the table leaves out.

    Args:
        source: CSV, TSV, JSON lines or Parquet, or a DataFrame, with ``query_id, answer`` and, where there are several,
            ``run, depth, model, mode``.
        queries: the queries.
        runs: the runs that there are, if they are known: any other is an error, and the only one need not be named.
        depths: likewise the numbers of documents.
        answered_by: the model that answered, where the table does not say.
        limited: whether the queries are only some, so that answers to others are left out.

    Raises:
        DataError: it is not such a table, or is about an unknown query, run or depth.
    """
    path = None if isinstance(source, pd.DataFrame) else source
    table = ANSWERS.check(source) if isinstance(source, pd.DataFrame) else read_table(ANSWERS, source)
    if table.empty:
        raise DataError("holds no answers", path)
    if answered_by is not None and "model" in table.columns and set(table["model"]) - {"", answered_by}:
        reason = f"has a column 'model' that differs from answered_by = {answered_by!r}: leave one of them out"
        raise DataError(reason, path)
    table = _placed(_filled(table, "model", answered_by or UNDECLARED), runs, depths, ANSWERS, path)
    whose = [column for column in ("model", "mode") if column in table.columns]
    places = whose + [column for column in ("run", "depth") if column in table.columns]
    table = table.drop_duplicates([*places, "query_id", "answer"])  # as beside several metrics
    _check_unique(table, [*places, "query_id"], "answers", path)
    unknown = ~table["query_id"].isin(list(queries))
    if unknown.any() and not (limited and not unknown.all()):
        raise DataError(f"query {table['query_id'][unknown].iloc[0]!r} is not among the queries", path)
    made = []
    for (model, *mode), rows in table[~unknown].sort_values("model", kind="stable").groupby(whose, sort=False):
        found: dict[Answered, list[tuple[Any, Any]]] = {}
        answers: dict[tuple[Any, Any], dict[str, str]] = {}
        for row in rows.to_dict("records"):
            answers.setdefault((row.get("run"), row.get("depth")), {})[row["query_id"]] = row["answer"]
        for asked, texts in answers.items():
            for query_id, query in queries.items():
                found.setdefault(Answered(query, _answer(texts.get(query_id))), []).append(asked)
        made.append(Imported(str(model), found, *map(str, mode)))
    return made


def _answer(raw: str | None) -> Answer:
    if raw is None:
        return Answer("", Status.UNASKED, reason="the imported answers leave this query out")
    text = trimmed(without_reasoning(raw))
    return stated(text, raw) if text else Answer("", Status.FAILED, raw, "the imported answer is empty")


def read_ratings(path: str | Path, metric: str = _METRIC, model: str = UNDECLARED) -> pd.DataFrame:
    """Read how good the answers were in the eyes of people or of another tool, as a quality table.

    Args:
        path: CSV, TSV, JSON lines or Parquet with the columns ``query_id, value``. A value is a number, or a word such
            as ``up``, ``down``, ``yes``, ``no``, ``good``, ``bad``; an empty one is missing. ``run``, ``depth``,
            ``metric``, ``model``, ``mode`` and ``answer`` may be there too, see `completed`.
        metric: the metric's name where the file has none.
        model: who answered, where the file does not say.

    Raises:
        DataError: a column is missing or a value makes no sense; with file and line.
    """
    table = named(read_table(RATINGS, path), metric, model)
    if "status" not in table.columns:
        unrated = table["value"].isna()
        status = unrated.map({True: Status.UNASKED.value, False: Status.OK.value}).astype("str")
        table = table.assign(status=status, reason=unrated.map({True: "not rated", False: ""}).astype("str"))
    keys = [key for key in ("run", "depth", "query_id", "metric", "model", "mode") if key in table.columns]
    _check_unique(table, keys, "values", path)
    return table.sort_values(keys, ignore_index=True)


def named(table: pd.DataFrame, metric: str = _METRIC, model: str = UNDECLARED) -> pd.DataFrame:
    """Return a table of ratings with a model and a metric where it has no such columns."""
    return _filled(_filled(table, "model", model), "metric", metric)


def _filled(table: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Return a table with a name in every row of a column, which may be absent."""
    texts = table[column].where(table[column] != "", name) if column in table.columns else name
    return table.assign(**dict[str, Any]({column: texts}))


def completed(table: pd.DataFrame, runs: Collection[str], depths: Collection[int]) -> pd.DataFrame:
    """Return a table of ratings with all columns of a quality table: what it does not say is the only thing it can be.

    Args:
        table: columns of `RATINGS`.
        runs: the runs that there are.
        depths: the numbers of documents that an answer may be from.

    Raises:
        DataError: it does not say of which run or from how many documents the answers are, and there are several.
    """
    return QUALITY.check(_placed(named(RATINGS.check(table)), runs, depths, QUALITY))


def _placed(
    table: pd.DataFrame,
    runs: Collection[str],
    depths: Collection[int],
    kind: Table,
    path: str | Path | None = None,
) -> pd.DataFrame:
    """Return a table with the run and the depth that its rows are about: what it does not say is the only one.

    Of answers, runs and depths that are not known are not asked for, and those that it names must be known.
    """
    for column, known, what in (("run", runs, "runs"), ("depth", depths, "depths")):
        if kind is ANSWERS and not known:
            continue
        have = ", ".join(map(str, sorted(known, key=str))) or "none"
        if column not in table.columns:
            if len(known) != 1:
                told = f"and the {what} are {have}: say which each row is about"
                raise DataError(f"the {kind.name} table lacks column {column!r}, {told}", path)
            table = table.assign(**dict[str, Any]({column: next(iter(known))}))
        odd = ~table[column].isin([*known, 0] if column == "depth" else list(known))
        if kind is ANSWERS and odd.any():
            raise DataError(
                f"holds answers of {column} {table[column][odd].iloc[0]!s}, and the {what} are {have}", path
            )
    return table


def _check_unique(table: pd.DataFrame, keys: list[str], what: str, path: str | Path | None) -> None:
    if "depth" in keys and (table["depth"] < 0).any():
        raise DataError(f"depth is a number of documents from 0 up, not {table['depth'].min()}", path)
    twice = table.duplicated(keys)
    if twice.any():
        told = ", ".join(f"{key} {table.loc[twice, key].iloc[0]!s}" for key in keys)
        raise DataError(f"two {what} for {told}", path)
