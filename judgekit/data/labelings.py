"""A labeling: all labels of one labeler, with the scale that it declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.data.tables import ALL, LABELS, Status
from judgekit.errors import DataError, UsageError

__all__ = ["Labeling", "Scale"]

Kind = Literal["binary", "grades", "unit", "signed"]


@dataclass(frozen=True, slots=True)
class Scale:
    """What the numbers of a labeling mean. Declared, never guessed from the values.

    Spelled ``binary``, ``grades:3`` (0 to 3), ``grades:3:2`` (relevant from 2 on), ``grades:-2..3:1``, ``unit``
    (floats in [0, 1]) or ``signed`` (floats in [-1, 1]).

    Attributes:
        kind: binary, grades, unit or signed.
        high: the largest grade (1 for all kinds but grades).
        low: the smallest grade (0; may be negative for imported grades; -1 for signed).
        min_rel: grades and binary: the least relevance that counts as relevant. None for unit and signed, where
            measures that need a binary label are undefined unless they say ``rel=``.
    """

    kind: Kind
    high: int = 1
    low: int = 0
    min_rel: int | None = None

    def __post_init__(self) -> None:
        if self.kind in ("binary", "grades") and self.min_rel is None:
            object.__setattr__(self, "min_rel", 1)
        if self.kind == "signed":
            object.__setattr__(self, "low", -1)
        if self.kind == "grades" and not (self.low < self.high and self.high >= 1):
            raise UsageError(f"grades from {self.low} to {self.high}: the largest must be at least 1")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``binary``, ``grades:3``, ``grades:3:2``, ``grades:-2..3:1``, ``unit`` or ``signed``."""
        if text in ("binary", "unit", "signed"):
            return cls(text)  # type: ignore[arg-type]
        match = re.fullmatch(r"grades:(?:(-?\d+)\.\.)?(\d+)(?::(\d+))?", text)
        if match is None:
            raise UsageError(
                f"{text!r} is no scale: expected binary, unit, signed or grades:MAX"
                " (e.g. grades:3, grades:3:2 where relevance starts at 2, grades:-2..3)"
            )
        return cls("grades", int(match[2]), int(match[1] or 0), int(match[3]) if match[3] else None)

    def __str__(self) -> str:
        if self.kind != "grades":
            return self.kind
        low = f"{self.low}.." if self.low else ""
        return f"grades:{low}{self.high}" + (f":{self.min_rel}" if self.min_rel != 1 else "")

    @property
    def integral(self) -> bool:
        """Whether all values are whole numbers."""
        return self.kind in ("binary", "grades")

    def problem(self, value: float) -> str | None:
        """Return why ``value`` is not on the scale, or None."""
        if not np.isfinite(value):
            return f"{value} is not finite"
        if self.integral and value != int(value):
            return f"{value:g} is no whole number, as the scale {self} demands"
        if not self.low <= value <= self.high:
            return f"{value:g} is outside of the scale {self} ({self.low} to {self.high})"
        return None


class Labeling:
    """All labels of one labeler over a pool.

    Attributes:
        name: how the labeling is called in tables (the labeler's spelling by default).
        scale: the declared scale.
        query_ids, doc_ids: ids per row, shape (N,), sorted by query, then doc.
        relevance: 64-bit value per row, NaN unless the status is ok.
        status: `Status` value per row.
    """

    def __init__(self, name: str, scale: Scale, frame: pd.DataFrame) -> None:
        """Build a labeling from a labels table ``query_id, doc_id, relevance, status``.

        A table without ``status`` has only obtained labels.

        Raises:
            DataError: a pair is there twice, a value is off the scale, a status is unknown, an obtained label has
                no value or a missing one has.
        """
        if "status" not in frame.columns:
            frame = frame.assign(status=Status.OK.value)
        frame = LABELS.check(frame).sort_values(["query_id", "doc_id"], ignore_index=True)
        self.name = name
        self.scale = scale
        self.table = frame
        self.query_ids = frame["query_id"].to_numpy(dtype=object)
        self.doc_ids = frame["doc_id"].to_numpy(dtype=object)
        self.relevance: npt.NDArray[np.float64] = frame["relevance"].to_numpy(dtype=np.float64)
        self.status = frame["status"].to_numpy(dtype=object)
        self._validate()

    def _validate(self) -> None:
        def pair(row: int) -> str:
            return f"labeling {self.name!r}: query {self.query_ids[row]!r}, doc {self.doc_ids[row]!r}"

        if ALL in self.query_ids:
            raise DataError(f"labeling {self.name!r} has a query with the reserved id {ALL!r}")
        same = (self.query_ids[1:] == self.query_ids[:-1]) & (self.doc_ids[1:] == self.doc_ids[:-1])
        if same.any():
            raise DataError(f"{pair(int(np.flatnonzero(same)[0]))} is labelled twice")
        unknown = set(self.status) - {s.value for s in Status}
        if unknown:
            raise DataError(f"labeling {self.name!r}: unknown status {sorted(unknown)[0]!r}")
        ok = self.status == Status.OK.value
        off = np.flatnonzero(~ok & ~np.isnan(self.relevance))
        if off.size:
            raise DataError(f"{pair(int(off[0]))} has status {self.status[off[0]]!r} and yet a relevance")
        for value in np.unique(self.relevance[ok]):
            reason = self.scale.problem(float(value))
            if reason is not None:
                same_value = self.relevance == value if np.isfinite(value) else ~np.isfinite(self.relevance)
                row = int(np.flatnonzero(ok & same_value)[0])
                raise DataError(f"{pair(row)}: relevance {reason}")

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Which rows were asked for and not obtained (not_applicable is not among them)."""
        excused = np.isin(self.status, [Status.OK.value, Status.NOT_APPLICABLE.value])
        return np.asarray(~excused, dtype=np.bool_)

    def counts(self) -> dict[str, int]:
        """Return how many labels have each status, every status named."""
        return {s.value: int((self.status == s.value).sum()) for s in Status}

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        return f"Labeling({self.name!r}, scale={self.scale}, labels={len(self)})"
