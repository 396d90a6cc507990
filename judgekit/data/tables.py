"""Every table that judgekit reads or writes: its columns, dtypes, status values and schema version.

All readers and writers use this module, so that a table made by one stage, by a user in pandas or by another
tool means the same everywhere. Column names are those of ir_measures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.columns import strings
from judgekit.data.records import HALF, NULLS, as_number, kind_of
from judgekit.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION: Final = 1
"""Incremented when the meaning of a column changes. Stored replies and identities have their own fixed versions."""

MADE: Final = "judgekit"
"""The attribute of a DataFrame with the records of labels and answers, and their numbers (``pools``)."""
ALL: Final = "all"
"""Reserved id: as query_id the mean over queries, as run the mean over runs (or about all runs together)."""

UNDECLARED: Final = "undeclared"
"""The model of answers without a declared model, so that labels by the same model cannot be marked."""

_UNFIT: Final = re.compile(r"[\s\0\ufeff]")


def id_problem(text: str) -> str | None:
    """Return why a string cannot be the id of a query or doc, or None."""
    # TREC files separate columns by white space: such an id would come back as two.
    if not text:
        return "is empty"
    if "\ufeff" in text:
        return f"{text!r} holds a byte order mark, as where files were joined: delete it"
    if _UNFIT.search(text):
        return f"{text!r} holds white space, which a TREC file cannot hold"
    return None


class NotedTable(NamedTuple):
    """A table as read, with sentences on what to know about it."""

    table: pd.DataFrame
    notes: tuple[str, ...] = ()


class Status(StrEnum):
    """What became of a label or an answer. Only `OK` carries a value; nothing else is ever read as 0."""

    OK = "ok"
    UNPARSED = "unparsed"
    """The model replied, but not with a verdict."""
    TRUNCATED = "truncated"
    """The reply was cut off before its verdict."""
    REFUSED = "refused"
    """The model or a content filter declined."""
    FAILED = "failed"
    """There is no usable reply (endpoint, time-out, context too small)."""
    NOT_APPLICABLE = "not_applicable"
    """The method makes no sense for this query (containment of a yes/no answer, no reference answer, no judgment)."""
    UNASKED = "unasked"
    """Nobody was asked (a document that people did not see, an answer that they did not rate)."""


UP: Final = "up"
DOWN: Final = "down"
THUMBS: Final = {
    UP: "up yes true good right correct positive like liked + 👍 ✓ ✔ hoch ja gut richtig positiv oui bon sí si sì bueno"
    " thumbsup thumbup :+1: :thumbsup: upvote helpful useful satisfied daumenhoch hilfreich nützlich utile útil"
    " poucelevé pouceenhaut pulgararriba 役に立った 良い いいね 有用 赞 좋아요",
    DOWN: "down no false bad wrong incorrect negative dislike disliked - 👎 ✗ ✘ runter nein schlecht falsch negativ non"
    " mauvais malo thumbsdown thumbdown :-1: :thumbsdown: downvote nothelpful unhelpful notuseful dissatisfied"
    " unsatisfied daumenrunter nichthilfreich nutzlos inutile inútil noútil poucebaissé pouceenbas pulgarabajo"
    " 役に立たなかった 悪い よくないね 没用 踩 싫어요",
}
"""Words for thumbs, in many languages; `judgekit.answers.declared.scaled` gives their values.

A word of unknown direction is in neither list and is refused, never guessed.
"""
_THUMBS: Final = {word: thumb for thumb, words in THUMBS.items() for word in words.split()}
_SHADES: Final = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")
"""Code points that a phone adds to a thumb: skin tones, and the mark for drawing in colour."""
_BETWEEN_WORDS: Final = re.compile(r"(?<=\w)[\s_-]+(?=\w)")
"""The difference of ``thumbs_up``, ``Thumbs Up`` and ``thumbs-up``."""
_NEEDED: Final = ("id", "name")
_TEXTS: Final = (*_NEEDED, "str", "text")
_UNFIT_IN_COLUMN: Final = r"[\s\v\x00\x1c-\x1f\x{85}\x{feff}\p{Z}]"
"""`_UNFIT` in the syntax of Arrow's regular expressions."""


def text_cell(value: Any) -> str:
    """Return a cell that must be a string that UTF-8 can encode; raise a ValueError with the reason otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {kind_of(value)}")
    if "\0" in value:
        raise ValueError("holds a NUL character")
    if half := HALF.search(value):
        raise ValueError(f"holds {half[0]!a}, half of a surrogate pair, which is not a character")
    return value


def name_cell(value: Any) -> str:
    """Return a cell that must be a non-empty string."""
    # 7 may have been 007 before a spreadsheet or pandas read it.
    if isinstance(value, Real) and not isinstance(value, bool):
        raise ValueError(
            f'must be a string, not {kind_of(value)}; ids are strings, write "{value}" (pandas: dtype=str)'
        )
    if not text_cell(value):
        raise ValueError("is empty")
    return str(value)


def id_cell(value: Any) -> str:
    """Return a cell that must be an id: a non-empty string without white space."""
    if problem := id_problem(name_cell(value)):
        raise ValueError(problem)
    return str(value)


def number_cell(value: Any) -> float:
    """Return a cell as a number, NaN if absent; raise a ValueError with the reason otherwise."""
    # An empty cell is a missing value; as 0 it would be the worst grade.
    if value is None or (isinstance(value, str) and value in NULLS):
        return math.nan
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise ValueError(f"must be a number, not {kind_of(value)}")
    number = as_number(value)
    if isinstance(value, str) and math.isnan(number):
        raise ValueError(f"{value!r} is not a number")
    return number


def _kept_text(value: Any) -> str:
    """Return a text of any characters, "" if absent."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {kind_of(value)}")
    # A reply cut off inside of an emoji ends in half of a surrogate pair, which no file can hold.
    return value.encode("utf-8", "replace").decode()


def _answer(value: Any) -> str:
    """Return a text, or a number as one: 0 is an answer."""
    return str(value) if isinstance(value, Real) else _kept_text(value)


def thumb_of(value: object) -> str | None:
    """Return `UP` or `DOWN` for a word in any spelling; None for other cells."""
    # Phones add skin tones, and people write Ja, thumbs_up or 👍🏽.
    return _THUMBS.get(_BETWEEN_WORDS.sub("", _SHADES.sub("", str(value)).strip().casefold()))


def _rating(value: Any) -> float | str:
    """Return a cell as a number, NaN if absent, or as `UP` or `DOWN`; raise a ValueError with the reason otherwise."""
    thumb = thumb_of(value)
    if thumb is not None:
        return thumb
    try:
        return number_cell(value)
    except ValueError:
        reason = f"{value!r} is neither a number nor a thumb (up: {THUMBS[UP]}; down: {THUMBS[DOWN]})"
        raise ValueError(reason) from None


_CELLS: Final[dict[str, Callable[[Any], float | str]]] = {
    "id": id_cell,
    "name": name_cell,
    "str": _kept_text,
    "text": _answer,
    "int": number_cell,
    "float": number_cell,
    "rating": _rating,
}
"""The check of each kind of cell."""


NOT_MISSING: Final = (Status.OK.value, Status.NOT_APPLICABLE.value)
"""Statuses of existing and inapplicable values: everything else is missing."""
_VARYING: Final = re.compile(r" \(after \d+ attempts.*?\)$")
_COMMONEST: Final = 3


def stacked(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables, which have the same columns; the first table if none has rows."""
    # Columns without rows lose their types, and pandas warns about that.
    import pandas as pd

    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


def reasons(table: pd.DataFrame) -> str:
    """Return the commonest reasons for missing labels or answers, with counts; "" without any."""
    lost = table[~table["status"].isin(NO_FAILURE)]
    reason = lost["reason"].fillna("") if "reason" in lost else lost["status"]
    texts = reason.where(reason != "", lost["status"]).str.replace(_VARYING, "", regex=True).str.split().str.join(" ")
    counts = texts.value_counts()
    parts = [f"{count:,} × {text:.120}" for text, count in counts.iloc[:_COMMONEST].items()]
    more = counts.iloc[_COMMONEST:].sum()
    if more:
        parts.append(f"{more:,} for other reasons")
    return "; ".join(parts)


NO_FAILURE: Final = (*NOT_MISSING, Status.UNASKED.value)
"""Statuses without a failure: everything else was requested but not obtained."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and its columns with their kinds.

    Kinds are ``id`` (of a query or doc, which a TREC file can hold: see `id_problem`), ``name`` (a string that is never
    empty), ``str`` (absent is ""), ``int`` and ``float`` (absent is NaN; never infinite), ``rating`` (a float, or
    ``up`` or ``down``) and ``text`` (a string, or a number as one).
    """

    name: str
    columns: dict[str, str]
    optional: dict[str, str]

    def named(self, name: str) -> Self:
        """Return this table with a name added, for messages."""
        return replace(self, name=f"{self.name} {name!r}")

    def known(self, columns: Iterable[object], path: str | Path | None = None) -> dict[str, str]:
        """Return this table's columns and their kinds, with the optional ones in ``columns``."""
        have = [*map(str, columns)]
        known = {**self.columns, **{name: kind for name, kind in self.optional.items() if name in have}}
        for name in known:
            if name not in have:
                held, hint = ", ".join(have) or "none", nearest(name, have)
                raise DataError(f"the {self.name} table lacks column {name!r} (it has: {held}).{hint}", path)
            if have.count(name) > 1:
                raise DataError(f"the {self.name} table has column {name!r} twice", path)
        return known

    def check(
        self, frame: pd.DataFrame, path: str | Path | None = None, lines: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return ``frame`` with this table's columns first, in order, with their dtypes."""
        import pandas as pd

        columns = {}
        for name, kind in self.known(frame, path).items():
            try:
                columns[name] = _column(frame[name], kind)
            except _UnfitCell as unfit:
                where = f"column {name!r} of the {self.name} table, row {unfit.row + 1}"
                line = None
                if lines is not None:
                    where, line = f"column {name!r}", lines[unfit.row]
                raise DataError(f"{where}: {unfit}", path, line) from None
        for name in frame.columns:
            if name not in columns:
                columns[str(name)] = frame[name].copy()
        return pd.DataFrame(columns)

    def empty(self) -> pd.DataFrame:
        """Return the table without rows."""
        import pandas as pd

        return self.check(pd.DataFrame(columns=[*self.columns]))


class _UnfitCell(Exception):
    """Why a cell does not fit its column."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def _column(column: pd.Series, kind: str) -> pd.Series:
    """Return a column of a kind with its dtype.

    Raises:
        _UnfitCell: the first cell that does not fit.
    """
    # A column of numeric ids is refused: "007" may have been lost on the way.
    import pandas as pd

    if kind in _TEXTS and column.dtype == "str" and getattr(column.dtype, "storage", "") == "pyarrow":
        column = column.fillna("") if column.hasnans else column
        if kind in _NEEDED:
            _check_ids(strings(column), kind)
        return column
    is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if is_number and kind not in _TEXTS:
        # Copied, so that later changes to the table do not change runs or labelings made from it.
        numbers = column.astype("float64").copy()
    else:
        cells: list[str | float] = []
        for row, value in enumerate(column.astype("object").mask(column.isna(), None)):
            try:
                cells.append(_CELLS[kind](value))
            except ValueError as error:
                raise _UnfitCell(row, str(error)) from None
        if kind in _TEXTS:
            return pd.Series(cells, column.index, dtype="str")
        if any(isinstance(cell, str) for cell in cells):
            return pd.Series(cells, column.index, dtype="object")
        numbers = pd.Series(cells, column.index, dtype="float64")
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        raise _UnfitCell(int(np.argmax(infinite)), "is infinite")
    if kind != "int":
        return numbers
    odd = (numbers != np.trunc(numbers)).to_numpy()
    if odd.any():
        raise _UnfitCell(int(np.argmax(odd)), f"{numbers[odd].iloc[0]} is not a whole number")
    return numbers.astype("int64")


def _check_ids(texts: pa.StringArray, kind: str) -> None:
    """Refuse an empty name, or an id that a TREC file cannot hold."""
    unfit = pc.equal(pc.binary_length(texts), 0)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    # The expression is slow, and nearly all ids are printable ASCII.
    if kind == "id" and (data.min(initial=0x7F) <= ord(" ") or data.max(initial=0) > 0x7F):
        unfit = pc.or_(unfit, pc.match_substring_regex(texts, _UNFIT_IN_COLUMN))
    row = pc.index(unfit, True).as_py()
    if row >= 0:
        raise _UnfitCell(row, id_problem(texts[row].as_py()) or "")


RUN: Final = Table("run", {"query_id": "id", "doc_id": "id", "score": "float"}, {})
SPAN: Final = {"page_id": "str", "start": "float", "end": "float"}
"""Columns of a document's span on its page, in characters; "" and NaN if unknown."""
LABELS: Final = Table(
    "labels",
    {"query_id": "id", "doc_id": "id", "relevance": "float", "status": "str"},
    {"raw": "str", "reason": "str", "reply_model": "str", "fingerprint": "str", **SPAN, "evidence": "str"},
)
REPLIES: Final = Table(
    "replies",
    {
        "labeling": "name",
        "query_id": "id",
        "doc_id": "id",
        "requests": "int",
        "prompt_tokens": "float",
        "completion_tokens": "float",
        "seconds": "float",
        "stored_at": "float",
    },
    {},
)
"""The cost of the replies behind each label, see `judgekit.client.exchanges`."""
SAMPLE: Final = Table("sample", {"query_id": "id", "weight": "float"}, {})
"""The questions of an experiment, and how many questions each stands for in a mean."""
SCORES: Final = Table(
    "scores",
    {"labeling": "name", "run": "name", "measure": "name", "query_id": "name", "value": "float"},
    {},
)
QUALITY: Final = Table(
    "quality",
    {
        "run": "name",
        "depth": "int",
        "model": "str",
        "query_id": "name",
        "metric": "name",
        "value": "float",
    },
    {"answer": "str", "status": "str", "reason": "str", "mode": "str", "reply_model": "str", "fingerprint": "str"},
)
RATINGS: Final = Table(
    QUALITY.name,
    {"query_id": "name", "value": "rating"},
    {"run": "name", "depth": "int", "model": "str", "metric": "str", "scale": "str", **QUALITY.optional},
)
"""A quality table as people keep it: columns with a single value may be left out."""
RATED: Final = ("value", "rating", "stars", "thumb", "thumbs", "vote", "feedback")
"""Columns with people's ratings in a table of answers."""
SAMPLES: Final = ("sample", "epoch")
"""Columns that number several answers of a run to one question."""
BY_AN_LLM: Final = " (by an LLM)"
"""The ending of a metric's name if an LLM gave its values."""
BY_CODE: Final = " (by code)"
"""The ending of a rating's name if a program gave it."""
RATERS: Final = ("user", "user_id", "session", "session_id")
"""Columns of ratings that name the rater."""
ANSWERS: Final = Table(
    "answers", {"query_id": "name", "answer": "text"}, {"run": "name", "depth": "int", "model": "str", "mode": "str"}
)
"""A table of an application's answers, likewise."""
PAIRS: Final = Table(
    "pairs",
    {"query_id": "name", "run_a": "name", "run_b": "name", "winner": "str"},
    {"depth": "int", "model": "str", "metric": "str", "judge": "str"},
)
"""Answers compared in pairs; ``judge`` names the comparing model, and is blank for people."""
PAIRED: Final = frozenset({"run_a", "run_b", "winner"})
"""The columns that distinguish such a table from ratings."""
COMPARISON: Final = Table(
    "comparison",
    {
        "labeling": "name",
        "measure": "name",
        "run": "name",
        "level": "name",
        "depth": "int",
        "quality_metric": "name",
        "model": "str",
        "coefficient": "name",
        "value": "float",
        "ci_low": "float",
        "ci_high": "float",
        "ci_method": "str",
        "n": "int",
        "undefined_reason": "str",
        "flags": "str",
    },
    {"mode": "str"},
)
