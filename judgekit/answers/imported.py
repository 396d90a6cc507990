"""Imported answers and their quality: an application's answers, and ratings by people or other tools."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from judgekit.answers.declared import RATING, filled, likely_scale, named, scaled
from judgekit.answers.pairs import holds_pairs, wins
from judgekit.answers.quality import Answered, Occurrence
from judgekit.answers.reading import Answer, stated
from judgekit.answers.text import trimmed
from judgekit.data.documents import Queries
from judgekit.data.files import column_names, read_table
from judgekit.data.runs import Run
from judgekit.data.tables import ANSWERS, PAIRS, QUALITY, RATED, RATINGS, SAMPLES, UNDECLARED, NotedTable, Status, Table
from judgekit.errors import DataError
from judgekit.rules import DeclaredOutcome
from judgekit.wire.reasoning import without_reasoning

UNCHECKED: Final = "not checked"
"""The column ``contexts`` of a quality table, for answers whose documents are unknown."""


@dataclass(frozen=True)
class Imported:
    """An application's answers by one model in one mode, read from a table.

    Attributes:
        model: the answering model, or `UNDECLARED`.
        given: the answers with their runs and depths.
        mode: the mode of answering, or "" if unknown.
        contexts: the ids of the documents behind each answer, by (run, depth, query); None if unknown.
    """

    model: str
    given: Mapping[Answered, Sequence[Occurrence]]
    mode: str = ""
    contexts: Mapping[tuple[Any, Any, str], tuple[str, ...]] | None = None
    endpoint: ClassVar[None] = None


def read_answers(
    source: str | Path | pd.DataFrame | list[tuple[Path, str | None]],
    queries: Queries,
    *,
    runs: Collection[str] = (),
    depths: Collection[int] = (),
    answered_by: str | None = None,
    limited: bool = False,
) -> list[Imported]:
    """Read an application's answers by model and mode, from a table or from a file per run."""
    sources = source if isinstance(source, list) else [(source, None)]
    tables = []
    for file, run in sources:
        tables.append(_answers(file, run, queries, runs, depths, answered_by, limited=limited))
    # If only one file lacked it, its cells would be empty, as if answered without documents.
    for column in ("mode", "context", SAMPLES[0]):
        lacking = [file for (file, _), table in zip(sources, tables, strict=True) if column not in table.columns]
        if 0 < len(lacking) < len(tables):
            raise DataError(f"lacks column {column!r}, which other files have", str(lacking[0]))
    table = pd.concat(tables, ignore_index=True)
    _check_unique(table, _keys(table), "answers", None)
    if "mode" not in table.columns:
        table = table.assign(mode="")
    made = []
    for (model, mode), rows in table.sort_values("model", kind="stable").groupby(["model", "mode"], sort=False):
        texts: dict[tuple[Any, Any], dict[str, dict[int | None, str]]] = {}
        contexts: dict[tuple[Any, Any, str], tuple[str, ...]] = {}
        several = SAMPLES[0] in rows.columns
        for row in rows.to_dict("records"):
            run, depth, query_id = row.get("run"), row.get("depth"), row["query_id"]
            sample = row[SAMPLES[0]] if several else None
            texts.setdefault((run, depth), {}).setdefault(query_id, {})[sample] = row["answer"]
            context = _ids(row.get("context"))
            if contexts.setdefault((run, depth, query_id), context) != context:
                raise DataError(f"answers of run {run!r} to query {query_id!r} were made from different documents")
        # A question without an answer has one missing answer, not as many as other questions.
        nothing: dict[int | None, str | None] = {0 if several else None: None}
        given: dict[Answered, list[Occurrence]] = {}
        for (run, depth), answers in texts.items():
            for query_id, query in queries.items():
                for sample, text in (answers.get(query_id) or nothing).items():
                    answered = Answered(query, _answer(text))
                    given.setdefault(answered, []).append(Occurrence(run, depth, sample=sample))
        made.append(Imported(str(model), given, str(mode), contexts if "context" in rows.columns else None))
    return made


def _answers(
    source: str | Path | pd.DataFrame,
    run: str | None,
    queries: Queries,
    runs: Collection[str],
    depths: Collection[int],
    answered_by: str | None,
    *,
    limited: bool,
) -> pd.DataFrame:
    """Return a table of answers to the queries, with the run if its rows do not name one."""
    table, path = _read(source)
    if table.empty:
        raise DataError("holds no answers", path)
    # Labels by the answering model are marked as circular, so its name must be certain.
    if answered_by is not None and "model" in table.columns and set(table["model"]) - {"", answered_by}:
        reason = f"has a column 'model' that differs from answered_by = {answered_by!r}: leave out one of them"
        raise DataError(reason, path)
    table = _of_run(filled(table, "model", answered_by or UNDECLARED), run)
    if runs:
        table = _placed(table, "run", runs, ANSWERS, path)
        _check_known(table, "run", runs, path)
    if depths:
        table = _placed(table, "depth", depths, ANSWERS, path)
        _check_known(table, "depth", depths, path)
    table = _numbered(table)
    keys = _keys(table)
    table = table.drop_duplicates([*keys, "answer"])  # as beside several metrics
    _check_unique(table, keys, "answers", path)
    known = table["query_id"].isin(list(queries))
    # If a run only has the first questions, the file of answers need not be cut.
    if not known.all() and not (limited and known.any()):
        unknown = table[~known]
        raise DataError(f"query {unknown['query_id'].iloc[0]!r} is not among the queries", path, line_of(unknown))
    return table[known]


def _read(source: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str | Path | None]:
    """Return a table of answers with line numbers as its index, and the file."""
    if isinstance(source, pd.DataFrame):
        return ANSWERS.check(source), None
    return read_table(ANSWERS, source, numbered=True), source


def _of_run(table: pd.DataFrame, run: str | None) -> pd.DataFrame:
    """Return a table with the file's run, if its rows do not name one."""
    if run is None or "run" in table.columns:
        return table
    return table.assign(run=run)


def _numbered(answers: pd.DataFrame) -> pd.DataFrame:
    """Return answers or ratings with samples numbered from 0, if a column distinguishes several."""
    column = next((name for name in SAMPLES if name in answers.columns), None)
    if column is None:
        return answers
    names = answers[column].astype("str")
    # In numeric order: 10 comes after 9.
    order = sorted(set(names), key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
    places = {name: place for place, name in enumerate(order)}
    others = [name for name in SAMPLES[1:] if name in answers.columns]
    return answers.drop(columns=others).assign(**{SAMPLES[0]: [places[name] for name in names]})


def _keys(answers: pd.DataFrame) -> list[str]:
    """Return the columns that identify a table's answers."""
    names = ("model", "mode", "run", "depth", "query_id", SAMPLES[0])
    return [name for name in names if name in answers.columns]


def _ids(cell: object) -> tuple[str, ...]:
    """Return the ids of documents in a cell: a list, a JSON list, or ids separated by blanks."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell) if cell.startswith("[") else cell.split()
        except ValueError:
            raise DataError(f"must hold a list of document ids in column 'context': {cell[:60]!r}") from None
    if isinstance(cell, list | tuple | np.ndarray):
        return tuple(map(str, cell))
    return ()


def check_contexts(imported: Imported, runs: Mapping[str, Run]) -> None:
    """Compare the documents behind answers with the top of their runs, in any order."""
    others: list[tuple[str, int, str]] = []
    for (run, depth, query_id), context in (imported.contexts or {}).items():
        # As sets: an application may show its documents in any order.
        if run in runs and depth and set(context) != set(runs[run].top(query_id, int(depth))):
            others.append((run, int(depth), query_id))
    if not others:
        return
    run, depth, query_id = others[0]
    context = (imported.contexts or {})[run, depth, query_id]
    top = runs[run].top(query_id, depth)
    raise DataError(
        f"{len(others):,} imported answers were not made from the top of their run. The first, to query {query_id!r},"
        f" was made from {', '.join(context) or 'no documents'}, but the top {depth} of run {run!r} is"
        f" {', '.join(top) or 'empty'}. Give the runs that your application answered from"
    )


def _answer(raw: str | None) -> Answer:
    if raw is None:
        return Answer("", Status.UNASKED, reason="the imported answers lack this query")
    # An application may also have stored a thinking model's thoughts.
    text = trimmed(without_reasoning(raw))
    if text:
        return stated(text, raw)
    return Answer("", Status.FAILED, raw, "the imported answer is empty")


def read_ratings(path: str | Path, *, model: str = UNDECLARED, outcome: DeclaredOutcome | None = None) -> NotedTable:
    """Read ratings of answers by people or another tool, as a quality table with values in 0..1.

    The notes name metrics that are left out, and tell whether comparisons follow the order.
    """
    rated = read_rated(path, None if outcome is None else outcome.cluster)
    ratings = _ratings(named(rated.table, model=model), outcome, path)
    return NotedTable(ratings.table, rated.notes + ratings.notes)


def read_rated(path: str | Path, cluster: str | None = None) -> NotedTable:
    """Read a table of ratings; for answers compared in pairs, the share that each won (`judgekit.answers.pairs`)."""
    columns = column_names(path, "ratings of answers")
    if holds_pairs(sorted(columns), path):
        return wins(read_table(PAIRS, path, numbered=True), path, cluster)
    return NotedTable(read_table(RATINGS, path, numbered=True))


def _ratings(table: pd.DataFrame, outcome: DeclaredOutcome | None, path: str | Path | None) -> NotedTable:
    """Return ratings on 0 to 1 with their status, sorted; errors name the line."""
    table, notes = scaled(table, outcome, path)
    if "status" not in table.columns:
        # If nobody pressed a thumb, the rating is missing, not negative.
        unrated = table["value"].isna()
        status = np.where(unrated, Status.UNASKED.value, Status.OK.value)
        reason = np.where(unrated, "not rated", "")
        table = table.assign(status=pd.array(status, dtype="str"), reason=pd.array(reason, dtype="str"))
    if not {*SAMPLES}.isdisjoint(table.columns):
        # Tables given together number their samples alike, from 1.
        table = _numbered(table)
        table[SAMPLES[0]] += 1
    names = ("run", "depth", "query_id", "metric", "model", "mode", SAMPLES[0])
    keys = [key for key in names if key in table.columns]
    # Several people may rate an answer only if a column names them.
    if outcome is None or not outcome.several:
        _check_unique(table, keys, "values", path)
    return NotedTable(table.sort_values(keys, kind="stable"), notes)


def read_ratings_beside(
    source: str | Path | pd.DataFrame,
    run: str | None = None,
    model: str = UNDECLARED,
    outcome: DeclaredOutcome | None = None,
) -> pd.DataFrame | None:
    """Read the ratings beside answers, a metric per column; None without any."""
    answers, path = _read(source)
    table = _of_run(filled(answers, "model", model), run)
    names = ("query_id", "run", "depth", "model", "mode", "answer", "scale", *SAMPLES)
    kept = [name for name in names if name in table.columns]
    if outcome is not None and outcome.cluster in table.columns:
        kept.append(str(outcome.cluster))
    parts = []
    for column in rated_columns(table.columns, outcome):
        metric = RATING if column == "value" else column
        parts.append(table[kept].assign(value=table[column], metric=metric))
    if parts:
        return _ratings(pd.concat(parts), outcome, path).table
    return None


def rated_columns(columns: Iterable[object], outcome: DeclaredOutcome | None = None) -> list[str]:
    """Return the columns of ratings in a table of answers: the declared outcome, and those with such names."""
    # For `value`, the reader takes the metric of ratings without a named one.
    wanted = None if outcome is None else outcome.outcome
    if wanted == RATING:
        wanted = "value"
    names = [str(column) for column in columns]
    return [name for name in names if name in RATED or (name == wanted and name not in ANSWERS.columns)]


def candidates(source: str | Path, *, beside_answers: bool) -> dict[str, str | None]:
    """Return a file's ratings by metric, each with the scale to declare, or None if it needs none.

    Args:
        source: a file of ratings, or of answers.
        beside_answers: whether the ratings are columns in a table of answers.

    Raises:
        DataError: the file has no such table, or words among numbers other than thumbs.
    """
    if not beside_answers:
        ratings = named(read_rated(source).table)
        return {
            str(metric): likely_scale(rows, str(metric), source)
            for metric, rows in ratings.groupby("metric", sort=False)
        }
    answers = read_table(ANSWERS, source, numbered=True)
    scales = {}
    for column in rated_columns(answers.columns):
        metric = RATING if column == "value" else column
        scales[metric] = likely_scale(answers[["query_id"]].assign(value=answers[column]), metric, source)
    return scales


def completed(table: pd.DataFrame, runs: Collection[str], depths: Collection[int]) -> pd.DataFrame:
    """Return a table of ratings with all columns of a quality table."""
    table = _placed(named(scaled(table).table), "run", runs, QUALITY)
    return QUALITY.check(_placed(table, "depth", depths, QUALITY))


def _placed(
    table: pd.DataFrame, column: str, known: Collection[Any], kind: Table, path: str | Path | None = None
) -> pd.DataFrame:
    """Return a table with each row's run or depth; without the column it is the only one."""
    if column in table.columns:
        return table
    if len(known) != 1:
        have = f"and the {column}s are {_listed(known)}: name one in each row"
        raise DataError(f"the {kind.name} table lacks column {column!r}, {have}", path)
    return table.assign(**dict[str, Any]({column: next(iter(known))}))


def _check_known(table: pd.DataFrame, column: str, known: Collection[Any], path: str | Path | None) -> None:
    """Refuse answers of an unknown run or depth; depth 0 is the answer without documents."""
    unknown = table[~table[column].isin([*known, 0] if column == "depth" else list(known))]
    if len(unknown):
        have = f"and the {column}s are {_listed(known)}"
        raise DataError(f"holds answers of {column} {unknown[column].iloc[0]!s}, {have}", path, line_of(unknown))


def _listed(known: Collection[Any]) -> str:
    return ", ".join(map(str, sorted(known, key=str))) or "none"


def _check_unique(table: pd.DataFrame, keys: list[str], what: str, path: str | Path | None) -> None:
    if "depth" in keys and (table["depth"] < 0).any():
        raise DataError(f"depth must be a number of documents, at least 0, not {table['depth'].min()}", path)
    twice = table[table.duplicated(keys)]
    if len(twice):
        place = ", ".join(f"{key} {twice[key].iloc[0]!s}" for key in keys)
        hint = f". Several answers to a question: number them in a column {SAMPLES[0]!r}"
        raise DataError(f"two {what} for {place}{hint}", path, line_of(twice))


def line_of(rows: pd.DataFrame) -> int | None:
    """Return the line of the first of some rows; None if the table is not from a text file."""
    if rows.index.name == "line":
        return int(rows.index[0])
    return None
