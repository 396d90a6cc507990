"""Any tool's scores in one wide table: a row per answer, a column per metric and one for the outcome.

ragas, deepeval, trulens, MLflow and Phoenix export such tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from judgekit.answers.direction import AS_NAMED, Direction, Directions, question
from judgekit.data.fields import QUERY
from judgekit.data.forms import nested_form, records
from judgekit.data.forms.entry import hashed
from judgekit.data.forms.tool import ROLES, at
from judgekit.data.records import NULLS, READABLE, DataRecord, as_number
from judgekit.data.sources import stem
from judgekit.data.tables import SAMPLES, UP, thumb_of
from judgekit.errors import DataError, UsageError, not_among
from judgekit.rules import DeclaredOutcome
from judgekit.spec import form_of

MEASURE: Final = "score"
"""The measure of all columns: each is a labeling with one score per answer."""
_IDS: Final = ("example_id", *QUERY["id"])
"""LangSmith's ``id`` identifies a run's answer; the question's id is ``example_id``."""
_QUESTIONS: Final = ("user_input", *QUERY["text"], "input", "prompt")
_RUNS: Final = ("run", "system", "retriever")
_VERDICTS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters: correct, partly, incorrect, no answer."""
_DIRECTION: Final = " direction"
_LISTS: Final = ("metrics_data", "metricsData")
"""Lists of an answer's metrics, each with score, threshold and whether it passed (deepeval)."""
_OF_THE_TEST: Final = ("name", "success", "conversational", "multimodal", "flaky")
_EXPECTED: Final = f"a table with a row for each answer ({READABLE})"


@dataclass(frozen=True)
class WideTable:
    """The parts of a wide table.

    Attributes:
        scores: columns of `judgekit.data.tables.SCORES`, a labeling for each numeric column; missing scores have
            infinite bounds.
        quality: columns of `judgekit.data.tables.RATINGS`, the outcome.
        unused: columns without numbers, which are not compared.
        lower: labelings, and perhaps the outcome, for which lower is better.
        asked: columns whose direction must be declared first; they are not compared.
        book_keeping: columns with an answer's costs; they are not compared.
        odd: sentences about failed answers, texts in columns of numbers, and numbers of a tool that are no scores.
    """

    scores: pd.DataFrame
    quality: pd.DataFrame
    unused: tuple[str, ...]
    lower: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    book_keeping: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Sentences about columns that are not compared."""
        notes = [f"{sentence}." for sentence in self.odd]
        if self.unused:
            notes.append(f"Columns without numbers are not compared: {', '.join(self.unused)}.")
        if self.book_keeping:
            verb = "is" if len(self.book_keeping) == 1 else "are"
            notes.append(f"{', '.join(self.book_keeping)} {verb} book-keeping: not compared.")
        notes += [f"{name}: lower counts as better." for name in self.lower]
        for name in self.asked:
            notes.append(f"{name}: tools disagree on its direction; {question(name)}. Until then it is not compared.")
        return notes


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a wide table to compare.

    Attributes:
        metrics: only these; if empty, all with numbers.
        skipped: not these.
    """

    metrics: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def check(self, columns: Sequence[str]) -> None:
        """Refuse names without a column.

        Raises:
            UsageError: there is no such column.
        """
        for name in (*self.metrics, *self.skipped):
            if name not in columns:
                raise UsageError(not_among("column", name, columns))

    def takes(self, name: str) -> bool:
        """Return whether a column is compared."""
        return name not in self.skipped and (not self.metrics or name in self.metrics)


_ALL: Final = ChosenColumns()


def taken_apart(
    tables: Mapping[str, str | Path | pd.DataFrame],
    outcome: DeclaredOutcome,
    directions: Directions = AS_NAMED,
    only: ChosenColumns = _ALL,
) -> WideTable:
    """Return wide tables as scores and quality.

    A question is identified by a column of ids (``query_id``, ``id``, …), else by its text (``question``,
    ``user_input``, …). The run is the column ``run``, ``system`` or ``retriever``, else the name of the table. Every
    other column whose cells are numbers is a labeling; an empty cell is a missing score, never 0. In a known tool's
    export, its form says where id, question, run, failures and scores stand, also inside of objects.

    Args:
        tables: files or tables by name.
        outcome: the declared outcome; its ``outcome`` names the column.
        directions: the user's directions of columns. A column ``NAME direction`` of the table also declares it: False
            or ``lower`` if lower is better.
        only: the columns to compare.

    Raises:
        DataError: no column identifies questions, or two rows have the same question and run; with the line.
        UsageError: the outcome's column is missing or unknown.
    """
    table, tool = _joined(tables, outcome.outcome)
    columns = [column for column in table.columns if column not in _OURS]
    if outcome.outcome is None:
        raise UsageError(f"name the column that says how good an answer was: --outcome COLUMN ({', '.join(columns)})")
    if outcome.outcome not in columns:
        raise UsageError(not_among("column", outcome.outcome, columns))
    # A tool may number the answers in a column that elsewhere holds the id of a question.
    ids = [name for name in _IDS if name != "id"] if tool.form else _IDS
    id_column = _first_of((tool.column(ROLES["id"]), *ids), columns)
    run_column = _first_of((*_RUNS, tool.column(ROLES["run"])), columns)
    texts = _first_of((tool.column(ROLES["question"]), *_QUESTIONS), columns)
    column = id_column or texts
    if column is None:
        raise DataError(f"no column tells questions apart: expected one of {', '.join((*QUERY['id'], *_QUESTIONS))}")
    sample = _first_of(SAMPLES, columns)
    keys = _keys(table, column, run_column, sample, by_text=id_column is None)

    # A row's name and its settings are not scores.
    others = {
        column,
        run_column,
        sample,
        outcome.outcome,
        outcome.cluster,
        *_QUESTIONS,
        *tool.keys,
        "depth",
        "model",
    }
    others |= {name for name in columns if name.endswith(_DIRECTION) and name.removesuffix(_DIRECTION) in columns}
    only.check([name for name in columns if name not in others])
    directions.check(name for name in columns if name not in others or name == outcome.outcome)
    turned = {name: directions.of(name, _in_file(table, name)) for name in columns}
    if turned[outcome.outcome] == "asked":
        raise UsageError(f"{outcome.outcome}: tools disagree on its direction; {question(outcome.outcome)}")
    scores: list[pd.DataFrame] = []
    unused: list[str] = []
    asked: list[str] = []
    book_keeping: list[str] = []
    lower = [outcome.outcome] if turned[outcome.outcome] == "lower" else []
    failed = table[_FAILED]
    no_scores: list[str] = []
    odd: list[str] = []
    if failed.any():
        first = table[_PLACE][failed].iloc[0]
        odd.append(f"Answers that failed are missing: {failed.sum():,} of {len(table):,}, first {first}")
    for name in columns:
        if name in others or not only.takes(name):
            continue
        values = _numbers(table[name].where(~failed, None))
        if values is None:
            unused.append(name)
        elif turned[name] == "asked":
            asked.append(name)
        elif turned[name] == "not a score" and name not in only.metrics:
            book_keeping.append(name)
        elif not tool.may_be_score(name) and name not in only.metrics:
            no_scores.append(name)
        else:
            if turned[name] == "lower":
                lower.append(name)
            without = [place for place, text in zip(table[_PLACE], _is_text(table[name]), strict=True) if text]
            if without:
                told = f"{len(without):,} of {len(table):,} cells hold no number and are missing"
                odd.append(f"{name}: {told}, first {without[0]}")
            # An empty cell is a missing score, which could be any number; 0 would count against the answer.
            low, high = values.fillna(-np.inf), values.fillna(np.inf)
            scores.append(keys.assign(labeling=name, measure=MEASURE, value=values, low=low, high=high))
    if no_scores:
        told = f"{', '.join(no_scores)}: no scores of {tool.form}, not compared"
        odd.append(f"{told}; `--metric NAME` compares them")
    if not scores:
        if asked:
            raise UsageError(f"{asked[0]}: tools disagree on its direction; {question(asked[0])}")
        left = f" ({odd[-1]})" if no_scores else ""
        raise DataError(
            f"has no numeric column beside the outcome {outcome.outcome!r}; it has: {', '.join(columns)}{left}"
        )
    rated = table[outcome.outcome].where(~failed, None)
    quality = keys.assign(metric=outcome.outcome, value=_verdicts(rated))
    if texts is not None:
        quality["text"] = table[texts].map(lambda cell: cell if isinstance(cell, str) else "")
    if outcome.cluster is not None:
        quality[outcome.cluster] = table[outcome.cluster] if outcome.cluster in columns else None
    joined = pd.concat(scores, ignore_index=True)
    return WideTable(
        scores=joined[["labeling", *keys.columns, "measure", "value", "low", "high"]],
        quality=quality,
        unused=tuple(unused),
        lower=tuple(lower),
        asked=tuple(asked),
        book_keeping=tuple(book_keeping),
        odd=tuple(odd),
    )


def _in_file(table: pd.DataFrame, name: str) -> Direction | None:
    """Return a column's direction as declared in the table, or None."""
    column = name + _DIRECTION
    if column not in table.columns:
        return None
    cells = {str(cell).strip().casefold() for cell in table[column] if cell is not None and str(cell) not in NULLS}
    if cells <= {"false", "lower", "0", "minimize"} and cells:
        return "lower"
    if cells <= {"true", "higher", "1", "maximize"} and cells:
        return "higher"
    raise DataError(f"column {column!r} must say True or False (or higher or lower), the same in all rows")


_PLACE, _TABLE, _FAILED = "\0place", "\0table", "\0failed"
_SCORE: Final = "score"
"""The beginning of a form's words for a score."""
_KEYS: Final = (ROLES["question"], ROLES["id"], ROLES["run"])
_OURS: Final = (_PLACE, _TABLE, _FAILED)
"""Columns for a row's place, its table's run, and whether its answer failed; no column of a file has these names."""


@dataclass
class _Tool:
    """What a known tool's form says of the columns of a table.

    Attributes:
        form: its name; "" for other tables.
        roles: the meaning of each place of a record, as in `judgekit.data.forms.tool`.
    """

    form: str = ""
    roles: dict[str, str] = field(default_factory=dict)

    def column(self, role: str) -> str:
        """Return the column of a part, "" if there is none."""
        return next((name for name, own in self.roles.items() if own == role), "")

    @property
    def keys(self) -> list[str]:
        """The columns that name an answer: question, id and run."""
        return [name for name, role in self.roles.items() if role in _KEYS]

    def may_be_score(self, name: str) -> bool:
        """Return whether a column may be a score; a form that names scores names all."""
        role = self.roles.get(name, "")
        if role.startswith(_SCORE):
            return True
        return not role and not any(other.startswith(_SCORE) for other in self.roles.values())

    def row(self, fields: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Any]:
        """Return the columns of a record: its own, and the parts and scores that stand inside of objects."""
        row = dict(fields)
        for place, role in roles.items():
            value = at(fields, place)
            if role == ROLES["failed"]:
                row[_FAILED] = row.get(_FAILED, False) or _is_reason(value)
            elif role.startswith(_SCORE):
                row[place] = _verdict_in(value)
            elif role in _KEYS:
                # Alternatives of one part are one column.
                row[self.column(role)] = str(value) if isinstance(value, int) else value
        return row


def _joined(tables: Mapping[str, str | Path | pd.DataFrame], outcome: str | None) -> tuple[pd.DataFrame, _Tool]:
    """Return the rows of all tables with their places, and what a known tool's form says of them."""
    tool = _Tool()
    rows: list[dict[Any, Any]] = []
    for name, source in tables.items():
        given: list[tuple[Mapping[str, Any], str]] = []
        if isinstance(source, str | Path):
            spec, path = form_of(source)
            for record in records(Path(path), spec, _EXPECTED)[1]:
                given.append((_unfolded(record.fields), f"{path}, line {record.line}"))
            run = name or stem(path)
        else:
            frame = source.rename(columns=str).astype(object)
            for number, cells in enumerate(frame.where(frame.notna(), None).to_dict("records"), 1):
                plain: dict[str, Any] = {}
                for column, cell in cells.items():
                    plain[str(column)] = cell.tolist() if isinstance(cell, np.ndarray) else cell
                given.append((plain, f"row {number}"))
            run = name or "run"
        rows += [{**row, _TABLE: run} for row in _as_tool_means(given, tool, outcome)]
    if not rows:
        raise DataError(f"the table holds no rows; expected {_EXPECTED}")
    table = pd.DataFrame(rows, dtype=object)
    if _FAILED not in table:
        table[_FAILED] = False
    return table.assign(**{_FAILED: table[_FAILED].eq(True)}), tool


def _as_tool_means(
    given: Sequence[tuple[Mapping[str, Any], str]], tool: _Tool, outcome: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, with their places; ``tool`` learns the roles of its columns."""
    known = nested_form(DataRecord(number, fields) for number, (fields, _) in enumerate(given, 1))
    taken = None if known is None else known[0].taken
    if known is None or taken is None:
        yield from ({**fields, _PLACE: place} for fields, place in given)
        return
    tool.form = known[0].name
    roles = [taken(fields) for fields, _ in given]
    for of_record in roles:
        for place, role in of_record.items():
            if role or place not in tool.roles:
                tool.roles[place] = role
    for (fields, place), of_record in zip(given, roles, strict=True):
        row = tool.row(fields, of_record)
        # The outcome may be a verdict that the form does not name.
        if outcome is not None and outcome not in row:
            told = at(fields, outcome)
            if told is not None:
                row[outcome] = _verdict_in(told)
        yield {**row, _PLACE: place}


def _unfolded(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a row, with a column for each metric in a list, as deepeval writes them.

    An entry tells on which side of its threshold an answer passes, and so its direction, whatever the tool's version.
    """
    column = _first_of(_LISTS, [*fields])
    listed = None if column is None else fields[column]
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if not any("name" in entry and "score" in entry for entry in entries):
        return fields
    # The tool's result of the whole test is not a metric of the answer.
    columns = {name: value for name, value in fields.items() if name != column and name not in _OF_THE_TEST}
    for entry in entries:
        name, score = str(entry.get("name")), entry.get("score")
        columns[name] = score
        threshold, passed = as_number(entry.get("threshold")), entry.get("success")
        apart = as_number(score) - threshold
        if isinstance(passed, bool) and abs(apart) > 0:
            columns[name + _DIRECTION] = "higher" if passed == (apart > 0) else "lower"
    return columns


def _keys(
    table: pd.DataFrame, column: str, run_column: str | None, sample: str | None, *, by_text: bool
) -> pd.DataFrame:
    """Return each row's query id, run and, if there are several, sample; no two rows agree in all."""
    places: dict[tuple[str, str, str], str] = {}
    samples = [""] * len(table) if sample is None else table[sample].astype(str)
    runs = table[_TABLE] if run_column is None else table[run_column].fillna("")
    cells = zip(table[column], runs, table[_TABLE], samples, table[_PLACE], strict=True)
    for value, run, table_run, number, place in cells:
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{place}: {column} must be a text that tells questions apart, not {value!r}")
        # Ids have no white space; equal texts are the same question in all tables.
        query_id = hashed("q", " ".join(value.split())) if by_text else value.strip()
        key = query_id, str(run or table_run), number
        # With two answers of a run to a question, it is unclear which counts.
        if key in places:
            same = f"{places[key]} ({column} {value[:60]!r}, run {key[1]!r})"
            cure = f"Several answers to a question: number them in a column {SAMPLES[0]!r}"
            raise DataError(f"{place}: the same question and run as {same}. {cure}")
        places[key] = place
    keys = pd.DataFrame(list(places), columns=["query_id", "run", SAMPLES[0]])
    return keys if sample is not None else keys.drop(columns=SAMPLES[0])


def _verdict_in(value: Any) -> Any:
    """Return a score, also of an object that holds it beside its explanation (Inspect, Pydantic, LlamaIndex)."""
    if not isinstance(value, Mapping):
        return value
    return next((value[name] for name in ("value", "score") if name in value), None)


def _is_reason(value: Any) -> bool:
    """Return whether a place for the reason of a failure holds one."""
    return value is not None and not (isinstance(value, str) and value in NULLS)


def _first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


_MOSTLY: Final = 0.9
"""The required share of numbers in a column of numbers; tools write N/A or an error into other cells."""


def _numbers(cells: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return a column as numbers, with NaN for empty cells and texts; None if many cells are not numbers."""
    present = cells[cells.notna() & ~cells.isin(NULLS)]
    present = _verdicts(present)
    thumbs = present.map(thumb_of)
    if len(present) and thumbs.notna().all():
        return (thumbs == UP).astype(np.float64).reindex(cells.index)
    numbers = present.map(_number).astype(np.float64)
    if numbers.empty or numbers.notna().mean() < _MOSTLY:
        return None
    return numbers.reindex(cells.index)


def _verdicts(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return Inspect's letters as numbers; other cells as they are."""
    told = {cell for cell in cells if isinstance(cell, str) and cell not in NULLS}
    return cells.map(lambda cell: _VERDICTS.get(cell, cell)) if told and told <= _VERDICTS.keys() else cells


def _is_text(cells: pd.Series[Any]) -> list[bool]:
    """Return which cells of a column of numbers are not numbers."""
    told = _verdicts(cells)
    return [not (cell is None or cell != cell or cell in NULLS) and bool(np.isnan(_number(cell))) for cell in told]


def _number(cell: Any) -> float:
    return {"true": 1.0, "false": 0.0}.get(str(cell).casefold(), as_number(cell))
