"""Runs and qrels: TREC files (``query Q0 doc rank score tag``, ``query 0 doc relevance``) and all other forms.

A TREC, CSV or TSV file is read by a fast columnar parser. Whatever that one does not take, and whatever turns out to be
wrong, goes through a slow reader that understands any white space (or any form) and knows the line to name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from judgekit.data.columns import (
    RunLengthIds,
    byte_lengths,
    join_run_lengths,
    numbers,
    run_lengths,
    strings,
    text_bytes,
)
from judgekit.data.labelings import STATUSES, Labeling, Scale
from judgekit.data.ordering import Ties
from judgekit.data.outputs import check_outputs
from judgekit.data.runs import Run
from judgekit.data.streams import given, head, lines, open_atomic, packing, stem, write_atomic
from judgekit.data.tables import ALL, Status, id_problem
from judgekit.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    from judgekit.data.fields import Source
    from judgekit.data.records import Record

Floats = npt.NDArray[np.float64]

__all__ = ["check_grades", "missing_path", "read_qrels", "read_run", "stem", "write_qrels", "write_run"]


class _Form(NamedTuple):
    """What the lines of a file look like."""

    kind: str
    value: str
    """What the number of a line is called."""
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
    values: npt.NDArray[np.float64]
    whole: bool
    """Whether every value is a whole number."""


_IDS: Final = {"0": pa.string(), "2": pa.string()}
# What is not used is read to notice where it is empty: two spaces in a row would make a score of the rank.
_RUN: Final = _Form("run", "score", 6, (0, 2, 4), _IDS | {"3": pa.string(), "4": pa.float64()})
_QRELS: Final = _Form("qrels", "relevance", 4, (0, 2, 3), _IDS | {"1": pa.string(), "3": pa.string()})
_EXPECTED: Final = {
    "run": "a TREC run (query Q0 doc rank score tag)",
    "qrels": "a TREC qrels file (query 0 doc relevance)",
}
_LARGE: Final = 1 << 25
_MISSING: Final = "a table of missing labels (query_id, doc_id, status, separated by tabs)"
_MISSING_HEAD: Final = "query_id\tdoc_id\tstatus"
_WORD: Final = re.compile(r"[^ \t\r\f\v]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
    found = _File.at(path, _RUN, format)
    columns = found.columns()
    try:
        name = name or stem(found.path)
        return Run.from_columns(name, columns.queries, columns.docs, columns.values, ties=Ties(ties))
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
    found = _File.at(path, _QRELS, format)
    side = missing_path(found.path)
    missing = list(_read_missing(side)) if side.exists() else []
    queries, docs, values, whole = found.columns(may_be_empty=bool(missing))
    declared = scale is not None
    if scale is None:
        if not whole or max(values.max(initial=0), -values.min(initial=0)) >= _LARGEST:
            found.slowly(_not_a_grade)
        scale = Scale.of_grades(values)
    status = np.full(len(values), STATUSES.index(Status.OK), np.int8)
    if missing:
        queries = join_run_lengths([queries, run_lengths(strings([q for q, _, _ in missing]))])
        docs = pa.concat_arrays([docs, strings([d for _, d, _ in missing])])
        values = np.concatenate([values, np.full(len(missing), np.nan)])
        status = np.concatenate([status, np.array([STATUSES.index(s) for _, _, s in missing], np.int8)])
    name = name or stem(found.path)
    try:
        return Labeling.from_columns(name, scale, queries, docs, values, status, declared=declared)
    except DataError as error:
        found.slowly(lambda text: scale.problem(float(text)))
        raise DataError(error.reason, side if missing else found.path) from None


def _labels(source: str | Path, name: str | None, scale: Scale | None) -> Labeling | None:
    """Return a table of labels that judgekit wrote; None of anything else."""
    path = given(source)
    if not path.is_file() or head(path, _EXPECTED["qrels"], 4) != b"PAR1":
        return None
    import pyarrow.parquet as pq

    from judgekit.data.files import read_table
    from judgekit.data.tables import LABELS

    try:
        if not set(LABELS.columns) <= set(pq.read_schema(path).names):
            return None
    except pa.ArrowException:
        return None
    table = read_table(LABELS, path)
    values = table["relevance"].dropna().to_numpy()
    if scale is None:
        check_grades(values, path)
    return Labeling(name or stem(path), scale or Scale.of_grades(values), table, declared=scale is not None)


class _File(NamedTuple):
    """A run or qrels in a file: read by the fast parser, else slowly by what knows the line of a mistake."""

    path: Path
    form: _Form
    trec: bool
    source: str | Path
    format: str

    @classmethod
    def at(cls, source: str | Path, form: _Form, format: str) -> _File:
        """Find out whether a file is TREC's; what else it may be is looked at only then, and imported."""
        path = given(source)
        if format == "auto" and (path.is_file() or ":" not in str(source)) and not path.is_dir():
            start = head(path, _EXPECTED[form.kind], 4096).lstrip()
            words = start.split(b"\n", 1)[0].split()
            number = words[form.places[2]].decode("ascii", "replace") if len(words) == form.columns else ""
            as_trec = _NUMBER.fullmatch(number) is not None
            table = b"\t" in start.split(b"\n", 1)[0] or (len(words) < 3 and b"," in start)
            if as_trec or not (table or start[:1] in (b"{", b"[", b"<") or start[:4] == b"PAR1"):
                return cls(path, form, True, source, format)
        from judgekit.data.forms import located

        path, spec = located(source, form.kind, format)
        return cls(path, form, spec.name == "trec", source, format)

    def columns(self, *, may_be_empty: bool = False) -> _Columns:
        """Read the columns the fast way, or the slow way, which knows what is wrong and where."""
        form: _Form | None = self.form
        if not self.trec:
            form = _delimited(self.path, self.form, self.source, self.format)
        columns = (_parse(self.path, form) if form else None) or self.slowly()
        if not len(columns.values) and not may_be_empty:
            raise DataError(f"is empty; expected {_EXPECTED[self.form.kind]}", self.path)
        return _in_order_of_rank(self, columns)

    def slowly(self, problem: Callable[[str], str | None] = lambda _: None) -> _Columns:
        """Read record by record; ``problem`` looks at each number's text."""
        if self.trec:
            return _scan(self.path, self.form, problem)
        from judgekit.data.fields import rows_of
        from judgekit.data.forms import opened

        source, found, _ = opened(self.source, self.form.kind, self.format)
        found = _of_one_run(source, found) if self.form.kind == "run" else found
        rows = rows_of(source, found, self.form.value, problem)
        values = np.array(rows.values, np.float64)
        return _Columns(run_lengths(strings(rows.queries)), strings(rows.docs), values, bool((values % 1 == 0).all()))


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


def _delimited(path: Path, form: _Form, source: str | Path, format: str) -> _Form | None:
    """Return the layout of a plain CSV or TSV file; None for everything else, quotes and told names included."""
    from judgekit.data.fields import NAMES
    from judgekit.data.forms import header, located

    spec = located(source, form.kind, format).format
    if path.is_dir() or spec.params or spec.name not in ("auto", "csv", "tsv"):
        return None
    start = head(path, _EXPECTED[form.kind], 1 << 16)
    row = start.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    if start.lstrip()[:1] in (b"{", b"[", b"<") or start[:4] == b"PAR1" or '"' in row:
        return None
    names, delimiter = NAMES[form.kind], "\t" if "\t" in row else ","
    columns = header(path, form.kind, names)
    cells = columns or row.split(delimiter)
    places = [[cells.index(name) for name in names[key] if name in cells] for key in ("query", "doc", form.value)]
    if len(set(cells)) < len(cells) or any(len(found) != 1 for found in places):
        return None
    if form.kind == "run" and "run" in cells:
        return None  # may name several runs
    query, doc, value = (found[0] for found in places)
    number = pa.float64() if form.kind == "run" else pa.string()
    types = {str(query): pa.string(), str(doc): pa.string(), str(value): number}
    return form._replace(
        columns=len(cells), places=(query, doc, value), types=types, delimiter=delimiter, skip=int(not columns)
    )


def _without_header(file: _File) -> bool:
    """Return whether a run is a table of three columns without names."""
    if file.trec or file.form.kind != "run":
        return False
    from judgekit.data.fields import NAMES
    from judgekit.data.forms import header, located

    path, spec = located(file.source, "run", file.format)
    return spec.name in ("auto", "csv", "tsv") and not spec.params and bool(header(path, "run", NAMES["run"]))


def _in_order_of_rank(file: _File, columns: _Columns) -> _Columns:
    """Take the third column of a run without a header for ranks where it counts 1, 2, 3, … in each query.

    Raises:
        DataError: it holds 1 to n in another order, which may be ranks or scores.
    """
    if not _without_header(file):
        return columns
    starts = columns.queries.bounds
    lengths = np.diff(starts)
    counted = np.arange(len(columns.values)) - np.repeat(starts[:-1], lengths) + 1
    if (columns.values == counted).all():
        return columns._replace(values=-columns.values)
    by_value = np.lexsort((columns.values, np.repeat(np.arange(len(lengths)), lengths)))
    downwards = np.repeat(lengths, lengths) + 1 - counted
    if (columns.values[by_value] == counted).all() and not (columns.values == downwards).all():
        told = "tsv(header='query_id,doc_id,rank') or tsv(header='query_id,doc_id,score')"
        raise DataError(f"has no header, and its third column may be ranks or scores: say format={told}", file.path)
    return columns


def missing_path(qrels: str | Path) -> Path:
    """Return where the missing labels of a qrels file lie: ``judge.missing.tsv`` beside ``judge.qrels``."""
    return Path(qrels).with_name(stem(qrels) + ".missing.tsv")


def _parse(path: Path, form: _Form) -> _Columns | None:
    """Parse a file whose columns stand one space (or one tab) apart; None where that is not so, or anything is odd."""
    delimiter = form.delimiter
    if not delimiter:
        delimiter = "\t" if b"\t" in head(path, _EXPECTED[form.kind], 4096).split(b"\n", 1)[0] else " "
    # Arrow's own stream, not a Python file: its reading thread may let go of the stream after this returns, and one
    # that needs the interpreter for that aborts the process if the program ends just then. Nor is it closed here:
    # where the file is not read to its end that thread may be reading still, and would read from whatever file is
    # opened next under the number of this one. It is closed when the last of them lets go of it.
    stream = pa.input_stream(str(path), compression=packing(path))
    queries: list[RunLengthIds] = []
    docs: list[pa.StringArray] = []
    values: list[Floats] = []
    query, doc, place = map(str, form.places)
    whole = True
    try:
        # Batch by batch: of a large file the text is never in memory as a whole.
        reader = pacsv.open_csv(
            stream,
            pacsv.ReadOptions(
                column_names=[str(i) for i in range(form.columns)], block_size=1 << 22, skip_rows=form.skip
            ),
            pacsv.ParseOptions(
                delimiter=delimiter, quote_char=False, escape_char=False, ignore_empty_lines=not form.delimiter
            ),
            pacsv.ConvertOptions(column_types=form.types, include_columns=list(form.types), strings_can_be_null=False),
        )
        for batch in reader:
            for column in batch.columns:
                if column.null_count or (
                    column.type == pa.string() and not _plain(column, quotes=bool(form.delimiter))
                ):
                    return None
            found, integers = _values(batch[place])
            values.append(found)
            whole = whole and integers
            queries.append(run_lengths(batch[query]))
            docs.append(batch[doc])
        del reader
    except (pa.ArrowInvalid, OSError, ValueError):
        return None
    scores = np.concatenate([np.empty(0), *values])
    del values
    ids = pa.concat_arrays([strings([]), *docs])
    if ids.nbytes > _LARGE:
        # What the batches took would else stay with Arrow, while numpy needs as much again.
        del docs
        pa.default_memory_pool().release_unused()
    return _Columns(join_run_lengths(queries), ids, scores, whole)


def _values(column: pa.Array) -> tuple[Floats, bool]:
    """Return a column of numbers, and whether all are whole (of floats nobody asks).

    Raises:
        ValueError: one is none. Arrow's own parser of integers takes hexadecimal ones too.
    """
    if column.type != pa.string():
        return numbers(column, np.float64), False
    data = text_bytes(column)
    if (data - ord("0") < 10).all():
        return numbers(column.cast(pa.int64()), np.int64).astype(np.float64), True
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    if not all(map(_NUMBER.fullmatch, texts)):
        raise ValueError("a text is not a number")
    values = np.array([float(text) for text in texts], np.float64)
    return values[numbers(coded.indices, np.int32)], bool((values % 1 == 0).all())


def _plain(texts: pa.StringArray, *, quotes: bool) -> bool:
    """Return whether no text is empty or holds white space (or anything else below it), or a quote if that matters."""
    data = text_bytes(texts)
    whole = (byte_lengths(texts) > 0).all() and data.min(initial=0xFF) > ord(" ")
    return bool(whole and not (quotes and (data == ord('"')).any()))


def _scan(path: Path, form: _Form, problem: Callable[[str], str | None] = lambda _: None) -> _Columns:
    """Read a file line by line, with any white space between columns; ``problem`` looks at each number's text."""
    queries: list[str] = []
    docs: list[str] = []
    values: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for line in lines(path, _EXPECTED[form.kind]):
        words = _WORD.findall(line.text)
        if not words:
            continue
        if len(words) != form.columns:
            expected = f"expected {form.columns}: {_EXPECTED[form.kind]}"
            raise DataError(f"has {len(words)} columns, {expected}; it reads {line.text[:80]!r}", path, line.number)
        query, doc, text = words[0], words[2], words[form.places[2]]
        if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise DataError(f"the {form.value} {text!r} is not a finite number", path, line.number)
        if query == ALL:
            raise DataError(f"the query id {ALL!r} is reserved for means over queries", path, line.number)
        first = seen.setdefault((query, doc), line.number)
        if first != line.number:
            raise DataError(f"doc {doc!r} appears twice for query {query!r} (first on line {first})", path, line.number)
        wrong = problem(text)
        if wrong is not None:
            raise DataError(f"the {form.value} {wrong}", path, line.number)
        queries.append(query)
        docs.append(doc)
        values.append(text)
    found = np.array([float(v) for v in values], np.float64)
    return _Columns(run_lengths(strings(queries)), strings(docs), found, bool((found % 1 == 0).all()))


_LARGEST: Final = 2**53
"""From here on a float is not the whole number that it was read from."""


def check_grades(values: Floats, path: Path) -> None:
    """Refuse labels without a declared scale that are not whole numbers.

    Raises:
        DataError: it names the first.
    """
    odd = values[(np.abs(values) >= _LARGEST) | (values % 1 != 0)]
    if odd.size:
        raise DataError(f"the relevance {_not_a_grade(f'{odd[0]:g}')}", path)


def _not_a_grade(text: str) -> str | None:
    if abs(float(text)) >= _LARGEST:
        return f"{text} is too large for a grade"
    if float(text).is_integer():
        return None
    return (
        f"{text} is not a whole number: declare what decimals mean with a scale, unit for 0 to 1, or means:G:M for"
        " means of grades up to G that are relevant from M on (--scale NAME=means:5:2; of a labeler scale='means:5:2')"
    )


def _read_missing(path: Path) -> Iterator[tuple[str, str, Status]]:
    found = lines(path, _MISSING)
    first = next(found, None)
    if first is None or first.text != _MISSING_HEAD:
        raise DataError(f"expected {_MISSING}, with those names in the first line", path, 1)
    known = [s.value for s in STATUSES if s is not Status.OK]
    for line in found:
        cells = line.text.split("\t")
        if len(cells) != 3 or not all(cells):
            raise DataError(f"expected {_MISSING}; it reads {line.text[:80]!r}", path, line.number)
        if cells[2] not in known:
            hint = nearest(cells[2], known)
            raise DataError(
                f"{cells[2]!r} is not a status of a missing label ({', '.join(known)}).{hint}", path, line.number
            )
        yield cells[0], cells[1], Status(cells[2])


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
            stream.write(f"{_MISSING_HEAD}\n".encode())
            stream.writelines(rows(lost=True))
    with open_atomic(path) as stream:
        stream.writelines(rows(lost=False))
    if not some_lost:
        side.unlink(missing_ok=True)


def _check_word(text: str, path: str | Path) -> None:
    problem = id_problem(text)
    if problem:
        raise DataError(f"the id of a query or doc {problem}", path)
