"""Runs and qrels: TREC files (``query Q0 doc rank score tag``, ``query 0 doc relevance``) and all other forms.

A TREC, CSV or TSV file is read by a fast columnar parser. Whatever that one does not take, and whatever turns out to be
wrong, goes through the reader of records, which understands any form and knows the line to name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from judgekit.data.columns import (
    Floats,
    RunLengthIds,
    byte_lengths,
    compiled,
    join_run_lengths,
    numbers,
    run_lengths,
    strings,
    text_bytes,
)
from judgekit.data.labelings import STATUSES, Labeling, Scale, check_grades, grade_problem
from judgekit.data.ordering import Ties
from judgekit.data.outputs import check_outputs
from judgekit.data.records import EXPECTED, as_number, records
from judgekit.data.runs import Run
from judgekit.data.streams import given, head, open_atomic, packing, read_bytes, stem, write_atomic
from judgekit.data.tables import LABELS, Status, id_problem
from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import Spec

if TYPE_CHECKING:
    from judgekit.data.fields import Names, Source
    from judgekit.data.records import Record


__all__ = ["missing_path", "read_qrels", "read_run", "stem", "write_qrels", "write_run"]


class _Layout(NamedTuple):
    """What the lines of a file look like that the fast parser takes."""

    columns: int
    places: tuple[int, int, int]
    """The columns of query, doc and number."""
    types: dict[str, pa.DataType]
    """Arrow types of the columns that are read, by place."""
    delimiter: str = ""
    """Of CSV and TSV; TREC files have any white space."""
    skip: int = 0
    """Lines of header."""


class _Columns(NamedTuple):
    queries: RunLengthIds
    docs: pa.StringArray
    values: Floats


_IDS: Final = {"0": pa.string(), "2": pa.string()}
# What is not used is read to notice where it is empty: two spaces in a row would make a score of the rank.
_TREC: Final = {
    "run": _Layout(6, (0, 2, 4), _IDS | {"3": pa.string(), "4": pa.float64()}),
    "qrels": _Layout(4, (0, 2, 3), _IDS | {"1": pa.string(), "3": pa.string()}),
}
_VALUES: Final = {"run": "score", "qrels": "relevance"}
_LARGE: Final = 1 << 25
_WORTH: Final = 1 << 29
"""Bytes of a file from which on compiled code saves more than loading it takes: at half of that it is even."""
_MISSING: Final = ("query_id", "doc_id", "status")
"""The columns of a table of missing labels."""
_SPACE: Final = re.compile(rb"[ \t\r\f\v]+")
_ENDS: Final = re.compile(rb" ?\n[ \n]*")


def read_run(path: str | Path, name: str | None = None, ties: Ties = Ties.DOC_DESC, format: str = "auto") -> Run:
    """Read a run: a TREC file, or any other form that holds one (``docs/formats.md``).

    The rank column of a TREC file is ignored: the score decides, and the tie rule.

    Args:
        path: the file, plain or packed (recognised by content), or ``FORM:FILE``.
        name: the run's name; by default the file's name without its endings.
        ties: how documents with equal scores are ordered.
        format: the form, where content does not tell.

    Raises:
        DataError: the file is missing or empty; a line does not have six columns, its score is not a finite number,
            its document is there twice for its query (with file and line).
    """
    found = _File.at(path, "run", format)
    columns = found.columns()
    try:
        return Run.from_columns(name or stem(found.path), *columns, ties=Ties(ties))
    except DataError as error:
        found.slowly()
        raise DataError(error.reason, found.path) from None


def read_qrels(path: str | Path, name: str | None = None, scale: Scale | None = None, format: str = "auto") -> Labeling:
    """Read qrels: a TREC file, or any other form that holds them (``docs/formats.md``).

    Beside a file may lie ``NAME.missing.tsv``, where `write_qrels` left the missing labels; they are read as well.

    A Parquet table of labels that judgekit wrote is read with all its columns: statuses, and where documents stand.

    Args:
        path: the file, plain or packed (recognised by content), or ``FORM:FILE``.
        name: the labeling's name; by default the file's name without its endings.
        scale: what the numbers mean. Without it whole numbers are grades up to the largest seen (`Labeling.declared`
            is then False), and a file with fractions is an error: what they mean is never guessed.
        format: the form, where content does not tell.

    Raises:
        DataError: the file is missing or empty; a line does not have four columns, its relevance is not a number or
            not on the scale, its pair is there twice (with file and line); fractions without a declared scale.
    """
    labels = _labels(path, name, scale) if format == "auto" else None
    if labels is not None:
        return labels
    found = _File.at(path, "qrels", format)
    side = missing_path(found.path)
    missing = _read_missing(side) if side.exists() else []
    queries, docs, values = found.columns(may_be_empty=bool(missing))
    status = np.full(len(values), STATUSES.index(Status.OK), np.int8)
    if missing:
        queries = join_run_lengths([queries, run_lengths(strings([query for query, _, _ in missing]))])
        docs = pa.concat_arrays([docs, strings([doc for _, doc, _ in missing])])
        values = np.append(values, np.full(len(missing), np.nan))
        status = np.append(status, np.array([STATUSES.index(s) for _, _, s in missing], np.int8))
    try:
        return Labeling.from_columns(name or stem(found.path), scale, queries, docs, values, status)
    except DataError as error:
        found.slowly(lambda value: grade_problem(value) if scale is None else scale.problem(value))
        raise DataError(error.reason, side if missing else found.path) from None


def _labels(source: str | Path, name: str | None, scale: Scale | None) -> Labeling | None:
    """Return a table of labels that judgekit wrote; None of anything else."""
    path = given(source)
    if not path.is_file() or head(path, EXPECTED["qrels"], 4) != b"PAR1":
        return None
    import pyarrow.parquet as pq

    from judgekit.data.files import read_table

    try:
        if not set(LABELS.columns) <= set(pq.read_schema(path).names):
            return None
    except pa.ArrowException:
        return None
    table = read_table(LABELS, path)
    if scale is None:
        check_grades(table["relevance"].dropna().to_numpy(), path)
    return Labeling(name or stem(path), scale, table)


class _File(NamedTuple):
    """A run or qrels in a file: read by the fast parser, else slowly by what knows the line of a mistake."""

    path: Path
    kind: str
    source: str | Path
    format: str
    layout: _Layout | None
    """None where the fast parser does not take it."""
    may_be_ranks: bool = False
    """Whether it has three columns without names."""

    @classmethod
    def at(cls, source: str | Path, kind: str, format: str) -> _File:
        """Find out whether a file is TREC's; what else it may be is looked at only then, and imported."""
        path, trec = given(source), _TREC[kind]
        if format == "auto" and (path.is_file() or ":" not in str(source)) and not path.is_dir():
            start = head(path, EXPECTED[kind], 4096).lstrip()
            row = start.split(b"\n", 1)[0]
            words = row.split()
            number = words[trec.places[2]].decode("ascii", "replace") if len(words) == trec.columns else ""
            table = b"\t" in row or (len(words) < 3 and b"," in start)
            if not math.isnan(as_number(number)) or not (table or _is_marked(start)):
                return cls(path, kind, path, "trec", trec)
        from judgekit.data.fields import NAMES
        from judgekit.data.forms import header, located

        path, spec = located(source, kind, format)
        if spec.name == "trec":
            return cls(path, kind, path, "trec", trec)
        if path.is_dir() or spec.params or spec.name not in ("auto", "csv", "tsv"):
            return cls(path, kind, source, format, None)
        columns = header(path, kind, NAMES[kind])
        layout = _delimited(path, kind, NAMES[kind], columns)
        return cls(path, kind, source, format, layout, bool(columns) and kind == "run")

    def columns(self, *, may_be_empty: bool = False) -> _Columns:
        """Read the columns the fast way, or the slow way, which knows what is wrong and where."""
        columns = (_parse(self.path, self.layout) if self.layout else None) or self.slowly()
        if not len(columns.values) and not may_be_empty:
            raise DataError(f"is empty; expected {EXPECTED[self.kind]}", self.path)
        return _in_order_of_rank(columns, self.path) if self.may_be_ranks else columns

    def slowly(self, problem: Callable[[float], str | None] = lambda _: None) -> _Columns:
        """Read record by record; ``problem`` looks at each number."""
        from judgekit.data.fields import rows_of
        from judgekit.data.forms import opened

        source, found, _ = opened(self.source, self.kind, self.format)
        found = _of_one_run(source, found) if self.kind == "run" else found
        queries, docs, values = rows_of(source, found, _VALUES[self.kind], problem)
        return _Columns(run_lengths(strings(queries)), strings(docs), np.array(values, np.float64))


def _is_marked(start: bytes) -> bool:
    """Return whether a file begins as JSON, TREC topics or Parquet does."""
    return start[:1] in (b"{", b"[", b"<") or start[:4] == b"PAR1"


def _of_one_run(source: Source, records: Iterator[Record]) -> Iterator[Record]:
    """Pass records on, and refuse a table of several runs, which would be taken for one.

    Raises:
        DataError: the column ``run`` holds two names.
    """
    first = None
    for record in records:
        run = record.fields.get("run")
        first = run if first is None else first
        if isinstance(run, str) and run != first:
            reason = f"the column 'run' holds {first!r} and {run!r}: write each run into a file of its own"
            raise source.error(record, reason)
        yield record


def _delimited(path: Path, kind: str, names: Names, columns: list[str]) -> _Layout | None:
    """Return the layout of a CSV or TSV file, with these columns or a header; None for everything else."""
    start = head(path, EXPECTED[kind], 1 << 16)
    row = start.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    if _is_marked(start.lstrip()) or '"' in row:
        return None
    delimiter = "\t" if "\t" in row else ","
    cells = columns or row.split(delimiter)
    places = [[cells.index(name) for name in names[key] if name in cells] for key in ("query", "doc", _VALUES[kind])]
    if len(set(cells)) < len(cells) or any(len(found) != 1 for found in places):
        return None
    if kind == "run" and "run" in cells:
        return None  # may name several runs
    query, doc, value = (found[0] for found in places)
    number = pa.float64() if kind == "run" else pa.string()
    types = {str(query): pa.string(), str(doc): pa.string(), str(value): number}
    return _Layout(len(cells), (query, doc, value), types, delimiter, int(not columns))


def _in_order_of_rank(columns: _Columns, path: Path) -> _Columns:
    """Take the third column of a run without a header for ranks where it counts 1, 2, 3, … in each query.

    Raises:
        DataError: it holds 1 to n in another order, which may be ranks or scores.
    """
    starts = columns.queries.bounds
    lengths = np.diff(starts)
    counted = np.arange(len(columns.values)) - np.repeat(starts[:-1], lengths) + 1
    if (columns.values == counted).all():
        return columns._replace(values=-columns.values)
    by_value = np.lexsort((columns.values, np.repeat(np.arange(len(lengths)), lengths)))
    downwards = np.repeat(lengths, lengths) + 1 - counted
    if (columns.values[by_value] == counted).all() and not (columns.values == downwards).all():
        told = "tsv(header='query_id,doc_id,rank') or tsv(header='query_id,doc_id,score')"
        raise DataError(f"has no header, and its third column may be ranks or scores: say format={told}", path)
    return columns


def missing_path(qrels: str | Path) -> Path:
    """Return where the missing labels of a qrels file lie: ``judge.missing.tsv`` beside ``judge.qrels``."""
    return Path(qrels).with_name(stem(qrels) + ".missing.tsv")


def _parse(path: Path, layout: _Layout) -> _Columns | None:
    """Parse a file whose columns stand one delimiter apart, in TREC files any white space; None if anything is odd."""
    delimiter = layout.delimiter or ("\t" if b"\t" in head(path, size=4096).split(b"\n", 1)[0] else " ")
    packed = packing(path)
    kernels = None if layout.delimiter or packed else compiled(worth=path.stat().st_size >= _WORTH)
    if kernels:
        blocks = kernels.read(path, layout.columns, layout.places[2], delimiter)
        columns = _joined(None if block is None else _Columns(*block) for block in blocks)
        if columns is not None:
            return columns
    # Arrow's own streams, not Python's: its reading thread may let go of the stream after this returns, and one that
    # needs the interpreter for that aborts the process if the program ends just then. Nor is it closed here: where the
    # file is not read to its end that thread may be reading still, and would read from whatever file is opened next
    # under the number of this one. It is closed when the last of them lets go of it.
    columns = _joined(_batches(pa.input_stream(str(path), compression=packed), layout, delimiter))
    if columns is not None or layout.delimiter:
        return columns
    copy = pa.BufferOutputStream()
    copy.write(_ENDS.sub(b"\n", _SPACE.sub(b" ", read_bytes(path))).strip() + b"\n")
    return _joined(_batches(pa.BufferReader(copy.getvalue()), layout, " "))


def _joined(parts: Iterator[_Columns | None]) -> _Columns | None:
    """Return the rows of all parts; None where there is none of one."""
    found = []
    try:
        for part in parts:
            if part is None:
                return None
            found.append(part)
    except (pa.ArrowInvalid, OSError, ValueError):
        return None
    scores = np.concatenate([np.empty(0), *(part.values for part in found)])
    docs = pa.concat_arrays([strings([]), *(part.docs for part in found)])
    queries = join_run_lengths([part.queries for part in found])
    if docs.nbytes > _LARGE:
        # What the parts took would else stay with Arrow, while numpy needs as much again.
        del found, part
        pa.default_memory_pool().release_unused()
    return _Columns(queries, docs, scores)


def _batches(stream: pa.NativeFile, layout: _Layout, delimiter: str) -> Iterator[_Columns | None]:
    """Yield what Arrow's parser reads, batch by batch: of a large file the text is never in memory as a whole."""
    reader = pacsv.open_csv(
        stream,
        pacsv.ReadOptions(
            column_names=[str(i) for i in range(layout.columns)], block_size=1 << 22, skip_rows=layout.skip
        ),
        pacsv.ParseOptions(
            delimiter=delimiter, quote_char=False, escape_char=False, ignore_empty_lines=not layout.delimiter
        ),
        pacsv.ConvertOptions(column_types=layout.types, include_columns=list(layout.types), strings_can_be_null=False),
    )
    query, doc, place = map(str, layout.places)
    for batch in reader:
        for column in batch.columns:
            if column.null_count or (column.type == pa.string() and not _plain(column, quotes=bool(layout.delimiter))):
                yield None
        yield _Columns(run_lengths(batch[query]), batch[doc], _floats(batch[place]))


def _floats(column: pa.Array) -> Floats:
    """Return a column of numbers.

    Raises:
        ValueError: one is not a number. Arrow's own parser of integers takes hexadecimal ones too.
    """
    if column.type != pa.string():
        return numbers(column, np.float64)
    if (text_bytes(column) - ord("0") < 10).all():
        return numbers(column.cast(pa.int64()), np.int64).astype(np.float64)
    coded = column.dictionary_encode()
    values = np.array([as_number(text) for text in coded.dictionary.to_pylist()], np.float64)
    if np.isnan(values).any():
        raise ValueError("a text is not a number")
    return values[numbers(coded.indices, np.int32)]


def _plain(texts: pa.StringArray, *, quotes: bool) -> bool:
    """Return whether no text is empty or holds white space (or anything else below it), or a quote if that matters."""
    data = text_bytes(texts)
    whole = (byte_lengths(texts) > 0).all() and data.min(initial=0xFF) > ord(" ")
    return bool(whole and not (quotes and (data == ord('"')).any()))


def _read_missing(path: Path) -> list[tuple[str, str, Status]]:
    """Read a table of missing labels."""
    from judgekit.data.fields import Source

    source = Source(path, "tsv", {name: (name,) for name in _MISSING}, "row")
    known = [s.value for s in STATUSES if s is not Status.OK]
    rows: list[tuple[str, str, Status]] = []
    for record in records(path, Spec("tsv", (("quote", "none"),)), "a table of missing labels")[1]:
        query, doc, status = (source.id(record, name) for name in _MISSING)
        if status not in known:
            reason = f"{status!r} is not a status of a missing label ({', '.join(known)}).{nearest(status, known)}"
            raise source.error(record, reason)
        rows.append((query, doc, Status(status)))
    if not rows:
        raise source.nothing("missing labels")
    return rows


def write_run(run: Run, path: str | Path) -> None:
    """Write a run as a TREC file: queries in ascending order, best document first, all digits of the scores.

    Raises:
        DataError: an id holds white space, or the file cannot be written.
    """
    tag = "_".join(run.name.split()) or "run"
    out: list[str] = []
    for query, start, count in zip(run.query_ids, run.starts, run.counts, strict=True):
        _check_word(query, path)
        docs = run.top(query)
        scores = run.ranked_scores[start : start + count].tolist()
        for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1):
            _check_word(doc, path)
            out.append(f"{query} Q0 {doc} {rank} {score!r} {tag}\n")
    write_atomic(path, "".join(out))


def write_qrels(labeling: Labeling, path: str | Path, min_grade: float | None = None) -> None:
    """Write a labeling as a TREC qrels file, sorted by query, then doc; missing labels go to a file beside it.

    Labels of binary and graded labelings are written as integers, which trec_eval and ir_measures read; others
    with all their digits. Missing labels are left out, since nothing in a qrels file can stand for
    them, and listed with their status in ``NAME.missing.tsv``, which `read_qrels` reads. Where there are none, such
    a file left from before is removed.

    Args:
        labeling: what to write.
        path: where to; compressed if it ends in ``.gz``.
        min_grade: write 1 for labels of at least this much and 0 for the others.

    Raises:
        DataError: an id holds white space, or the file cannot be written.
        UsageError: ``min_grade`` is not a number.
    """
    if min_grade is not None and math.isnan(min_grade):
        raise UsageError("the lowest grade that counts as relevant must be a number")
    whole = labeling.scale.integral or min_grade is not None

    def rows(*, lost: bool) -> Iterator[bytes]:
        for block in labeling.blocks("query_id", "doc_id", "relevance", "status"):
            out: list[str] = []
            for query, doc, relevance, status in zip(*(block[c].tolist() for c in block), strict=True):
                _check_word(query, path)
                _check_word(doc, path)
                if lost and status != Status.OK.value:
                    out.append(f"{query}\t{doc}\t{status}\n")
                elif not lost and status == Status.OK.value:
                    value = relevance if min_grade is None else relevance >= min_grade
                    out.append(f"{query} 0 {doc} {int(value) if whole else repr(value)}\n")
            yield "".join(out).encode()

    side = missing_path(path)
    check_outputs(Path(path), side)
    some_lost = bool((labeling.row_status != STATUSES.index(Status.OK)).any())
    if some_lost:
        with open_atomic(side) as stream:
            stream.write("\t".join(_MISSING).encode() + b"\n")
            stream.writelines(rows(lost=True))
    with open_atomic(path) as stream:
        stream.writelines(rows(lost=False))
    if not some_lost:
        side.unlink(missing_ok=True)


def _check_word(text: str, path: str | Path) -> None:
    problem = id_problem(text)
    if problem:
        raise DataError(f"the id of a query or doc {problem}", path)
