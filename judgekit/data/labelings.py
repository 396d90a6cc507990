"""A labeling: all labels of one labeler, with the scale that it declares."""

from __future__ import annotations

import math
import mmap
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.columns import (
    Bools,
    Floats,
    Ints,
    Pairs,
    gather,
    grouped,
    numbers,
    order_ids,
    pairs_of,
    repeated,
    row_keys,
    sorted_codes,
    strings,
    take,
)
from judgekit.data.tables import ALL, LABELS, NO_FAILURE, REPLIES, Status, Table
from judgekit.errors import DataError, UsageError
from judgekit.notebook import NotebookRepr

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["binary", "grades", "means", "unit", "signed"]

STATUSES: Final = tuple(Status)
"""The statuses in the order of their codes: a status code is an index into this."""

_CODES: Final = {status.value: code for code, status in enumerate(STATUSES)}
_OK: Final = _CODES["ok"]
_OBTAINED: Final = Table(LABELS.name, {c: k for c, k in LABELS.columns.items() if c != "status"}, LABELS.optional)
"""The labels table without a status: every label was obtained."""
_SORTED: Final = 262_144
"""Number of rows sorted at a time."""
_LARGEST: Final = 2**53
"""From here on, floats do not hold every whole number."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the numbers of a labeling mean: declared, never guessed from the values.

    Spelled ``binary``, ``grades:3`` (0 to 3), ``grades:3:2`` (relevant from 2 on), ``grades:-2..3:1``,
    ``means:5:2`` (means of such grades, so fractions on 0 to 5), ``unit`` (floats in [0, 1]) or ``signed`` (floats in
    [-1, 1]).

    Attributes:
        kind: binary, grades, means, unit or signed.
        high: the largest grade (1 for all kinds but grades and means).
        low: the smallest grade (0; may be negative for imported grades; -1 for signed).
        min_rel: smallest label that counts as relevant, for binary, grades and means. None for unit and signed: there,
            measures that need binary labels are undefined without ``rel=``.
    """

    kind: Kind
    high: int = 1
    low: int = 0
    min_rel: int | None = None

    def __post_init__(self) -> None:
        if self.kind in ("binary", "grades", "means") and self.min_rel is None:
            object.__setattr__(self, "min_rel", 1)
        if self.kind == "signed":
            object.__setattr__(self, "low", -1)
        if self.kind in ("grades", "means") and not (self.low < self.high and self.high >= 1):
            raise UsageError(f"{self.kind} from {self.low} to {self.high}: the largest must be at least 1")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``binary``, ``grades:3``, ``grades:-2..3:1``, ``means:5``, ``means:5:2``, ``unit`` or ``signed``."""
        match = re.fullmatch(r"(binary|unit|signed)|(grades|means):(?:(-?\d+)\.\.)?(\d+)(?::(\d+))?", text)
        if match is None:
            raise UsageError(
                f"{text!r} is not a scale: expected binary, unit, signed, grades:MAX (e.g. grades:3, grades:3:2 where"
                " relevance starts at 2, grades:-2..3) or means:MAX for fractions between such grades (e.g. means:5:2)"
            )
        plain, graded, low, high, min_rel = match.groups()
        if plain:
            return cls(cast(Kind, plain))
        return cls(cast(Kind, graded), int(high), int(low or 0), int(min_rel) if min_rel else None)

    @classmethod
    def of_grades(cls, values: Floats) -> Self:
        """Return the scale of undeclared whole numbers: grades up to the largest.

        Raises:
            DataError: some are not whole numbers.
        """
        # A fraction may be a mean, a probability or a gain: a wrong guess would change every measure.
        odd = values[(np.abs(values) >= _LARGEST) | (values != np.trunc(values))]
        if odd.size:
            raise DataError(f"the relevance {grade_problem(float(odd[0]))}")
        return cls("grades", int(values.max(initial=1)), int(values.min(initial=0)))

    def __str__(self) -> str:
        if self.kind not in ("grades", "means"):
            return self.kind
        text = f"{self.kind}:{self.high}"
        if self.low:
            text = f"{self.kind}:{self.low}..{self.high}"
        if self.min_rel != 1:
            text += f":{self.min_rel}"
        return text

    @property
    def integral(self) -> bool:
        """Whether all values are whole numbers."""
        return self.kind in ("binary", "grades")

    @property
    def threshold(self) -> float:
        """The smallest label that counts as relevant: as declared, else the middle of the scale."""
        return (self.low + self.high) / 2 if self.min_rel is None else float(self.min_rel)

    def lowered(self, values: Floats) -> Scale:
        """Return the scale extended to a file's negative grades; scales that do not begin at 0 stay as they are."""
        # TREC's qrels have -2 for spam, below every grade; users declare the largest grade.
        least = np.floor(values.min(initial=0))
        if self.kind != "grades" or self.low != 0 or not -_LARGEST < least < 0:
            return self
        return replace(self, low=int(least))

    def holds(self, values: Floats) -> Bools:
        """Return which values are on the scale."""
        inside = (values >= self.low) & (values <= self.high)
        if self.integral:
            inside &= values == np.trunc(values)
        return inside

    def problem(self, value: float) -> str | None:
        """Return why ``value`` is not on the scale, or None."""
        if not math.isfinite(value):
            return f"{value} is not finite"
        if self.integral and value != int(value):
            cure = ""
            if self.kind == "grades":
                cure = f" (for means of such grades declare {replace(self, kind='means')})"
            return f"{value:g} is not a whole number, which the scale {self} needs{cure}"
        if not self.low <= value <= self.high:
            return f"{value:g} is outside the scale {self} ({self.low} to {self.high})"
        return None


def grade_problem(value: float) -> str | None:
    """Return why a label without a declared scale is not a grade, or None."""
    if abs(value) >= _LARGEST:
        return f"{value:g} is too large for a grade"
    if value.is_integer():
        return None
    return (
        f"{value:g} is not a whole number: declare what decimals mean with a scale: unit for 0 to 1, or means:G:M for"
        " means of grades up to G that are relevant from M on (--scale means:5:2; for one of several files"
        " --scale NAME=means:5:2; for a labeler scale='means:5:2'; in Python scales={'NAME': 'means:5:2'})"
    )


def _status_codes(name: str, texts: pa.StringArray) -> npt.NDArray[np.int8]:
    coded = texts.dictionary_encode()
    known = coded.dictionary.to_pylist()
    unknown = sorted(set(known) - set(_CODES))
    if unknown:
        raise DataError(f"labeling {name!r}: unknown status {unknown[0]!r}")
    return np.array([_CODES[s] for s in known], np.int8)[numbers(coded.indices, np.int32)]


class LabelFile:
    """Labels in the order in which they are made, in an unnamed temporary file: they may not fit into memory.

    A context manager; what `table` returned stays.

    Args:
        folder: the folder of the file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Any = None
        self._ends = [0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, frame: pd.DataFrame) -> None:
        """Append the rows of a labels table."""
        made = _arrow(LABELS.check(frame))
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed at the end of the block
            # A stream for each piece: later ones may have further columns, such as a reason.
            with pa.ipc.new_stream(self._file, made.schema) as stream:
                stream.write_table(made)
        except OSError as error:
            raise DataError(f"labels cannot be written here: {error.strerror or error}", self._folder) from error
        self._ends.append(self._file.tell())

    def table(self, last: pd.DataFrame) -> pa.Table:
        """Return all added rows, then ``last``, without reading the file into memory."""
        tables = []
        if self._file is not None:
            self._file.flush()
            mapped = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
            for start, end in pairwise(self._ends):
                tables.append(pa.ipc.open_stream(mapped.slice(start, end - start)).read_all())
        return pa.concat_tables([*tables, _arrow(LABELS.check(last))], promote_options="permissive")


def _arrow(frame: pd.DataFrame) -> pa.Table:
    """Return a checked table of labels as Arrow's."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except pa.ArrowException:  # a further column of mixed kinds
        return _arrow(frame.astype(dict.fromkeys(frame.columns[frame.dtypes == "object"], "str")))
    # With the type of `strings`, so that a mapped file is read without a copy.
    for name in {"query_id", "doc_id", "status"}.intersection(table.column_names):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


_CORE: Final = ("query_id", "doc_id", "relevance", "status")


def _further(table: pa.Table) -> pa.Table:
    """Return the other columns of a labels table as in `LABELS.check`: known ones first, with "" or NaN for null."""
    held = {*table.column_names} - {*_CORE}
    names = [*filter(held.__contains__, LABELS.optional), *sorted(held - {*LABELS.optional})]
    columns = {}
    for name in names:
        column = table[name]
        if column.null_count and LABELS.optional.get(name) == "str":
            column = pc.fill_null(column, "")
        elif column.null_count and pa.types.is_integer(column.type):
            column = column.cast(pa.float64())
        columns[name] = column
    return pa.table(columns)


class Labeling(NotebookRepr):
    """All labels of one labeler over a pool.

    Rows keep the order of the input; attributes that sort by id sort at first use.

    Attributes:
        name: its name in tables (the labeler's spelling by default).
        scale: the declared scale.
        declared: whether the scale was declared; False if a reader took the largest grade seen.
        made: how the labels were made, if known (`judgekit.labelers.made`).
        row_replies: what the replies behind each row took, with the columns of `judgekit.client.exchanges.Exchange`;
            None where nobody was asked.
        subtopics: the largest number of subtopics of a query in column 2 of the file, or 0; no measure tells them
            apart.
        below: number of negative grades under a scale declared from 0.
        row_queries: the distinct query ids in order of appearance.
        row_codes: index into ``row_queries`` per row, shape (N,).
        row_docs: doc id per row as Arrow strings, shape (N,).
        row_keys: hash of query and doc per row (`columns.row_keys`), shape (N,).
        row_relevance: 64-bit value per row, NaN unless the status is ok, shape (N,).
        row_status: index into `STATUSES` per row, shape (N,).
    """

    def __init__(
        self,
        name: str,
        scale: Scale | None,
        rows: pd.DataFrame | pa.Table | Pairs,
        *,
        declared: bool = True,
        negative: bool = False,
    ) -> None:
        """Build a labeling from a labels table ``query_id, doc_id, relevance, status``.

        Args:
            name: the labeling's name.
            scale: what the numbers mean; by default they are grades up to the largest.
            rows: the table; an Arrow table may be larger than memory (`LabelFile`). Or pairs with their relevance.
            declared: whether the scale was declared.
            negative: whether a scale of grades from 0 on is lowered to hold negative grades.

        Raises:
            DataError: a label is repeated, is not on the scale, or is missing but has a relevance.
        """
        if not name.strip():
            raise DataError("the name of a labeling is empty")
        self._further = pa.table({})
        status = None
        if not isinstance(rows, Pairs):
            if not isinstance(rows, pa.Table):
                rows = _arrow((LABELS if "status" in rows.columns else _OBTAINED).named(name).check(rows))
            self._further = _further(rows)
            if "status" in rows.column_names:
                status = _status_codes(name, strings(rows["status"]))
            relevance = rows["relevance"].fill_null(math.nan)
            rows = pairs_of(rows.select(_CORE[:2]).append_column("relevance", relevance).to_batches())
        queries, docs, labels = rows
        if status is None:
            status = np.full(len(docs), _OK, np.int8)
        obtained = status == _OK
        if scale is None:
            declared = False
            try:
                scale = Scale.of_grades(labels[obtained & ~np.isnan(labels)])
            except DataError as error:
                raise DataError(f"labeling {name!r}: {error.reason}") from None
        self.made: dict[str, Any] = {}
        self.row_replies: pa.Table | None = None
        self.below = 0
        self.subtopics = 0
        if negative and scale.lowered(labels[obtained]) != scale:
            scale = scale.lowered(labels[obtained])
            self.below = int((labels[obtained] < 0).sum()) if declared else 0
        keys = row_keys(queries, docs)
        if ALL in queries.ids:
            raise DataError(f"labeling {name!r} has a query with the reserved id {ALL!r}")
        # Two labels of one pair would both count, and nobody knows which is right.
        if twice := repeated(rows, keys):
            raise DataError(f"labeling {name!r}: query {twice[0]!r}, doc {twice[1]!r} is labelled twice")
        # A label that was not obtained must not carry a number: somebody would read it as one.
        right = np.where(obtained, scale.holds(labels), np.isnan(labels))
        if not right.all():
            row = int(np.argmin(right))
            query_id, doc_id = rows.at(row)
            if obtained[row]:
                why = f": relevance {scale.problem(float(labels[row]))}"
            else:
                why = f" has a relevance, but status {STATUSES[status[row]].value!r}"
            raise DataError(f"labeling {name!r}: query {query_id!r}, doc {doc_id!r}{why}")
        self.name, self.scale, self.declared = name, scale, declared
        self.row_queries, self.row_codes = queries.ids, queries.by_row()
        self.row_docs, self.row_keys, self.row_relevance, self.row_status = docs, keys, labels, status

    @cached_property
    def _sorted(self) -> Ints:
        """The rows sorted by query id, then doc id."""
        place = sorted_codes(self.row_queries)[1].astype(np.int32)[self.row_codes]
        order = grouped(np.arange(len(place)), place)
        # Whole queries at a time: sorting the ids of all documents at once takes four times the memory.
        ends = np.cumsum(np.bincount(place, minlength=1))
        edges = ends[np.searchsorted(ends, np.append(np.arange(_SORTED, len(order), _SORTED), len(order)))]
        for start, stop in pairwise([0, *np.unique(edges).tolist()]):
            rows = order[start:stop]
            by_doc = order_ids(take(self.row_docs, rows))
            order[start:stop] = rows[grouped(by_doc, place[rows])]
        return order

    @cached_property
    def table(self) -> pd.DataFrame:
        """The labels table, rows sorted by query, then doc, with all columns that the labeling was built from."""
        return self._frame(self._sorted)

    def blocks(self, *names: str, rows: int = 1 << 16) -> Iterator[pd.DataFrame]:
        """Yield `table`, or some of its columns, in blocks of rows, so that memory never holds all of it.

        Columns that the labeling lacks are left out.
        """
        for start in range(0, max(len(self), 1), rows):
            yield self._frame(self._sorted[start : start + rows], names)

    def _frame(self, rows: Ints, names: Sequence[str] = ()) -> pd.DataFrame:
        """Return the given rows of the labels table, with all columns or those of some names."""
        names = names or (*_CORE, *self._further.column_names)
        core: dict[str, Any] = {}
        if "query_id" in names:
            core["query_id"] = take(strings(self.row_queries), self.row_codes[rows])
        if "doc_id" in names:
            core["doc_id"] = take(self.row_docs, rows)
        if "relevance" in names:
            core["relevance"] = self.row_relevance[rows]
        if "status" in names:
            core["status"] = take(strings([*_CODES]), self.row_status[rows])
        labels: pd.DataFrame = pa.table(core).to_pandas()
        further = [*filter(names.__contains__, self._further.column_names)]
        if further:
            labels = labels.join(gather(self._further.select(further), rows).to_pandas())
        return labels

    def replies(self) -> pd.DataFrame:
        """Return a `REPLIES` table of the labels that come from replies, sorted by query, then doc."""
        if self.row_replies is None:
            return REPLIES.empty()
        taken = gather(self.row_replies, self._sorted).to_pandas()
        rows = self._frame(self._sorted, ("query_id", "doc_id")).join(taken)
        return REPLIES.check(rows[rows["requests"].notna()].assign(labeling=self.name).reset_index(drop=True))

    def failed(self) -> pd.DataFrame:
        """Return the rows of `table` whose label was asked for and not obtained: pair, status and reason."""
        failed = np.isin(self.row_status, [code for status, code in _CODES.items() if status not in NO_FAILURE])
        return self._frame(self._sorted[failed[self._sorted]], ("query_id", "doc_id", "status", "reason"))

    def columns(self, rows: Ints, *names: str) -> list[list[Any]]:
        """Return further columns of some rows, in the order of the input; None for columns that it lacks."""
        labels = self._frame(rows, ("query_id", *names))
        return [labels[name].tolist() if name in labels else [None] * len(rows) for name in names]

    def column(self, name: str) -> pd.Series | None:
        """Return a further column of all rows, in the order of the input; None if the labeling lacks it."""
        if name not in self._further.column_names:
            return None
        column: pd.Series = self._further[name].to_pandas()
        return column

    def at(self, pairs: Iterable[tuple[str, str]]) -> Floats:
        """Return the label of each (query id, doc id), NaN if there is none, shape (P,)."""
        queries = map(self.row_queries.__getitem__, self.row_codes.tolist())
        relevance = dict(zip(zip(queries, self.row_docs.to_pylist(), strict=True), self.row_relevance, strict=True))
        return np.array([relevance.get(pair, math.nan) for pair in pairs], np.float64)

    def counts(self) -> dict[str, int]:
        """Return the number of labels by status, zeros included."""
        counted = np.bincount(self.row_status, minlength=len(STATUSES))
        # Zeros are included, to show that nothing is missing.
        return {s.value: int(n) for s, n in zip(STATUSES, counted, strict=True)}

    def shares(self) -> dict[str, int]:
        """Return how often each label was given, least relevant first; fractions in ten steps of the scale."""
        relevance = self.row_relevance[self.row_status == _OK]
        values, counts = np.unique(relevance, return_counts=True)
        if self.scale.integral or len(values) <= 10:
            return {f"{value:g}": int(n) for value, n in zip(values, counts, strict=True)}
        counts, edges = np.histogram(relevance, 10, (self.scale.low, self.scale.high))
        return {f"{low:.2g} to {high:.2g}": int(n) for n, low, high in zip(counts, edges, edges[1:], strict=False)}

    def __len__(self) -> int:
        return len(self.row_relevance)

    def __repr__(self) -> str:
        return f"Labeling({self.name!r}, scale={self.scale}, labels={len(self)})"
