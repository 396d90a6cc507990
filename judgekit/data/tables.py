"""Every table that judgekit reads or writes: its columns, dtypes, status values and schema version.

All readers and writers use this module, so that a table made by one stage, by a user in pandas or by another
tool means the same everywhere. Column names are those of ir_measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pandas as pd

from judgekit.errors import DataError, nearest

__all__ = [
    "ALL",
    "COMPARISON",
    "LABELS",
    "PAIRS",
    "QUALITY",
    "RUN",
    "SCHEMA_VERSION",
    "SCORES",
    "Status",
    "Table",
]

SCHEMA_VERSION: Final = 1
"""Raised when the meaning of a stored column or of a request's identity changes."""

ALL: Final = "all"
"""Reserved id: as query_id the mean over queries, as run the mean over runs (or about all runs together)."""


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
    """No usable reply was had (endpoint, time-out, context too small)."""
    NOT_APPLICABLE = "not_applicable"
    """The method makes no sense for this query (containment of a yes/no answer, no reference answer)."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and its columns with their kinds (``str``, ``int``, ``float``)."""

    name: str
    columns: dict[str, str]
    optional: dict[str, str]

    def check(self, frame: pd.DataFrame, path: str | None = None) -> pd.DataFrame:
        """Return ``frame`` with this table's columns first, in order, with their dtypes.

        Ids become strings (a column of ints is refused: "007" may have been lost on the way).
        Further columns are kept behind the known ones. Optional columns that are absent stay absent.

        Raises:
            DataError: a column is missing or cannot be read as its kind.
        """
        missing = [c for c in self.columns if c not in frame.columns]
        if missing:
            have = ", ".join(map(str, frame.columns)) or "none"
            hint = nearest(missing[0], map(str, frame.columns))
            raise DataError(f"the {self.name} table lacks column {missing[0]!r} (it has: {have}).{hint}", path)
        known = {**self.columns, **{c: k for c, k in self.optional.items() if c in frame.columns}}
        out = {c: self._column(frame[c], kind, path) for c, kind in known.items()}
        out.update({str(c): frame[c] for c in frame.columns if c not in known})
        return pd.DataFrame(out)

    def _column(self, column: pd.Series, kind: str, path: str | None) -> pd.Series:
        where = f"column {column.name!r} of the {self.name} table"
        if kind == "str":
            if pd.api.types.is_numeric_dtype(column.dtype):
                raise DataError(f"{where} holds numbers; ids and names are strings (read them with dtype=str)", path)
            if str(column.dtype) in ("str", "string", "category"):
                return column.astype("str")
            bad = [v for v in column if not isinstance(v, str) and not pd.isna(v)]
            if bad:
                raise DataError(f"{where} holds {bad[0]!r}, which is no string", path)
            return column.astype("str")
        try:
            numbers = pd.to_numeric(column)
        except (ValueError, TypeError) as error:
            raise DataError(f"{where} is not numeric: {error}", path) from error
        if kind == "int":
            if numbers.isna().any() or not np.array_equal(numbers, np.trunc(numbers)):
                raise DataError(f"{where} must hold whole numbers", path)
            return numbers.astype("int64")
        return numbers.astype("float64")

    def empty(self) -> pd.DataFrame:
        """Return the table without rows."""
        dtypes = {"str": "str", "int": "int64", "float": "float64"}
        return pd.DataFrame({c: pd.Series([], dtype=dtypes[k]) for c, k in self.columns.items()})


RUN: Final = Table("run", {"query_id": "str", "doc_id": "str", "score": "float"}, {})
PAIRS: Final = Table("pairs", {"query_id": "str", "doc_id": "str"}, {})
LABELS: Final = Table(
    "labels",
    {"query_id": "str", "doc_id": "str", "relevance": "float", "status": "str"},
    {"raw": "str", "reason": "str"},
)
SCORES: Final = Table(
    "scores",
    {"labeling": "str", "run": "str", "measure": "str", "query_id": "str", "value": "float"},
    {},
)
QUALITY: Final = Table(
    "quality",
    {
        "run": "str",
        "depth": "int",
        "model": "str",
        "query_id": "str",
        "metric": "str",
        "value": "float",
    },
    {"answer": "str", "status": "str", "reason": "str"},
)
COMPARISON: Final = Table(
    "comparison",
    {
        "labeling": "str",
        "measure": "str",
        "run": "str",
        "level": "str",
        "depth": "int",
        "quality_metric": "str",
        "model": "str",
        "coefficient": "str",
        "value": "float",
        "ci_low": "float",
        "ci_high": "float",
        "ci_method": "str",
        "n": "int",
        "undefined_reason": "str",
        "flags": "str",
    },
    {},
)
