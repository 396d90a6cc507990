"""Every table that judgekit reads or writes: its columns, dtypes, status values and schema version.

All readers and writers use this module, so that a table made by one stage, by a user in pandas or by another
tool means the same everywhere. Column names are those of ir_measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import byte_lengths
from judgekit.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ALL",
    "ANSWERS",
    "CELLS",
    "COMPARISON",
    "LABELS",
    "NOT_MISSING",
    "NO_FAILURE",
    "QUALITY",
    "RATINGS",
    "RUN",
    "SCHEMA_VERSION",
    "SCORES",
    "UNDECLARED",
    "Status",
    "Table",
    "id_problem",
]

SCHEMA_VERSION: Final = 1
"""Raised when the meaning of a column changes. Stored replies and identities have fixed versions of their own."""

ALL: Final = "all"
"""Reserved id: as query_id the mean over queries, as run the mean over runs (or about all runs together)."""

UNDECLARED: Final = "undeclared"
"""The model of answers of which nobody said who gave them, so that labels of the same model cannot be marked."""

_UNFIT: Final = re.compile(r"[\s\0]")


def id_problem(text: str) -> str | None:
    """Return why a string cannot be the id of a query or doc, or None."""
    if not text:
        return "is empty"
    if _UNFIT.search(text):
        return f"{text!r} holds white space, which a TREC file cannot hold"
    return None


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
    """Nobody was asked (a document that people did not see, an answer that they did not rate), and that is missing."""


_THUMBS: Final = {
    **dict.fromkeys(("up", "yes", "true", "good", "right", "correct", "👍", "+"), 1.0),
    **dict.fromkeys(("down", "no", "false", "bad", "wrong", "incorrect", "👎", "-"), 0.0),
}


def _rating(cell: Any) -> Any:
    if isinstance(cell, str):
        return _THUMBS.get(cell.strip().casefold(), cell)
    return float(cell) if isinstance(cell, bool) else cell


def _text(cell: Any) -> Any:
    """Return a number as text: 0 is an answer."""
    return str(cell) if isinstance(cell, bool | int | float) and cell == cell else cell


CELLS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {"rating": (_rating, "float"), "text": (_text, "str")}
"""Kinds of columns whose cells people write in several ways: what makes them a plain kind, and which."""

NOT_MISSING: Final = (Status.OK.value, Status.NOT_APPLICABLE.value)
"""Statuses of what is there, or cannot be asked for: everything else is missing."""
NO_FAILURE: Final = (*NOT_MISSING, Status.UNASKED.value)
"""Statuses of what did not go wrong: everything else was asked for and not obtained."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and its columns with their kinds.

    Kinds are ``id`` (a string that is never empty), ``str`` (absent is ""), ``int`` and ``float`` (absent is NaN;
    never infinite), ``rating`` (a float, or a word such as up or down) and ``text`` (a string, or a number as one).
    """

    name: str
    columns: dict[str, str]
    optional: dict[str, str]

    def known(self, columns: Iterable[object], path: str | Path | None = None) -> dict[str, str]:
        """Return this table's columns and their kinds, with those optional ones that ``columns`` holds.

        Raises:
            DataError: a column is missing or there twice.
        """
        names = [str(c) for c in columns]
        for name in self.columns:
            if name not in names:
                have = ", ".join(names) or "none"
                hint = nearest(name, names)
                raise DataError(f"the {self.name} table lacks column {name!r} (it has: {have}).{hint}", path)
        known = {**self.columns, **{c: kind for c, kind in self.optional.items() if c in names}}
        twice = [c for c in known if names.count(c) > 1]
        if twice:
            raise DataError(f"the {self.name} table has column {twice[0]!r} twice", path)
        return known

    def check(self, frame: pd.DataFrame, path: str | Path | None = None) -> pd.DataFrame:
        """Return ``frame`` with this table's columns first, in order, with their dtypes.

        A column of ids that are numbers is refused ("007" may have been lost on the way). Further columns are
        kept behind the known ones. Optional columns that are absent stay absent.

        Raises:
            DataError: a column is missing or cannot be read as its kind; the message names column and row.
        """
        import pandas as pd

        return pd.DataFrame(self.checked(frame, path))

    def checked(self, frame: pd.DataFrame, path: str | Path | None = None) -> dict[str, pd.Series]:
        """Return the columns that `check` makes a table of, without the cost of a table.

        Raises:
            DataError: as for `check`.
        """
        known = self.known(frame.columns, path)
        out = {c: self._column(frame[c], kind, path) for c, kind in known.items()}
        out.update({str(c): frame[c].copy() for c in frame.columns if c not in known})
        return out

    def _column(self, column: pd.Series, kind: str, path: str | Path | None) -> pd.Series:
        import pandas as pd

        where = f"column {column.name!r} of the {self.name} table"

        def fail(bad: npt.ArrayLike, reason: str) -> DataError:
            return DataError(f"{where}, row {int(np.argmax(bad)) + 1}: {reason}", path)

        if kind in CELLS:
            plain, kind = CELLS[kind]
            if kind == "str" or not pd.api.types.is_numeric_dtype(column.dtype):
                column = column.map(plain)
        if kind in ("id", "str"):
            if _in_arrow(column):
                empty = byte_lengths(pa.array(column)) == 0 if kind == "id" else np.zeros(0)
                if empty.any():
                    raise fail(empty, "is empty")
                return column
            kinds = column.cat.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
            if len(column) and pd.api.types.is_numeric_dtype(kinds) and not column.isna().all():
                raise DataError(f"{where} holds numbers; ids and names are strings (read them with dtype=str)", path)
            if str(kinds) not in ("str", "string"):
                odd = np.array([not isinstance(v, str) and np.any(pd.notna(v)) for v in column], dtype=bool)
                if odd.any():
                    raise fail(odd, f"{column.iloc[int(np.argmax(odd))]!r} is not a string")
            missing = column.isna()
            if missing.any():
                column = column.astype("object").mask(missing, "")
            try:
                texts = column.astype("str")
                if texts.dtype == "object":  # pandas 2 keeps Python's strings, also those that cannot be encoded
                    pa.array(texts, pa.string())
            except UnicodeEncodeError:
                # A reply that was cut off inside of an emoji ends in half of a surrogate pair, which no file can hold.
                texts = column.map(_printable).astype("str")
            if kind == "id" and (texts == "").any():
                raise fail(texts == "", "is empty")
            return texts
        try:
            # Copied: whoever changes the table later changes no run or labeling made of it.
            numbers = column.copy() if column.dtype == np.float64 else pd.to_numeric(column).astype("float64")
        except (ValueError, TypeError) as error:
            raise DataError(f"{where} is not numeric: {error}", path) from error
        infinite = np.isinf(numbers.to_numpy())
        if infinite.any():
            raise fail(infinite, "is infinite")
        if kind == "int":
            odd = (numbers != np.trunc(numbers)).to_numpy()
            if odd.any():
                raise fail(odd, f"{numbers.iloc[int(np.argmax(odd))]} is not a whole number")
            return numbers.astype("int64")
        return numbers

    def empty(self) -> pd.DataFrame:
        """Return the table without rows."""
        import pandas as pd

        dtypes = {"id": "str", "str": "str", "text": "str", "int": "int64", "float": "float64", "rating": "float64"}
        return pd.DataFrame({c: pd.Series([], dtype=dtypes[k]) for c, k in self.columns.items()})


def _in_arrow(column: pd.Series) -> bool:
    """Return whether a column is a ``str`` column without nulls in Arrow memory, which is as it should be."""
    return bool(column.dtype == "str") and getattr(column.dtype, "storage", "") == "pyarrow" and not column.hasnans


def _printable(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


RUN: Final = Table("run", {"query_id": "id", "doc_id": "id", "score": "float"}, {})
SPAN: Final = {"page_id": "str", "start": "float", "end": "float"}
"""Columns that say where on its page a document stands, in characters; "" and NaN where nobody says it."""
LABELS: Final = Table(
    "labels",
    {"query_id": "id", "doc_id": "id", "relevance": "float", "status": "str"},
    {"raw": "str", "reason": "str", "reply_model": "str", "fingerprint": "str", **SPAN, "evidence": "str"},
)
SCORES: Final = Table(
    "scores",
    {"labeling": "id", "run": "id", "measure": "id", "query_id": "id", "value": "float"},
    {},
)
QUALITY: Final = Table(
    "quality",
    {
        "run": "id",
        "depth": "int",
        "model": "str",
        "query_id": "id",
        "metric": "id",
        "value": "float",
    },
    {"answer": "str", "status": "str", "reason": "str", "mode": "str", "reply_model": "str", "fingerprint": "str"},
)
RATINGS: Final = Table(
    QUALITY.name,
    {"query_id": "id", "value": "rating"},
    {"run": "id", "depth": "int", "model": "str", "metric": "str", **QUALITY.optional},
)
"""A quality table as people keep one: what there is only one of need not stand in every row."""
ANSWERS: Final = Table(
    "answers", {"query_id": "id", "answer": "text"}, {"run": "id", "depth": "int", "model": "str", "mode": "str"}
)
"""What an application answered; likewise."""
COMPARISON: Final = Table(
    "comparison",
    {
        "labeling": "id",
        "measure": "id",
        "run": "id",
        "level": "id",
        "depth": "int",
        "quality_metric": "id",
        "model": "str",
        "coefficient": "id",
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
