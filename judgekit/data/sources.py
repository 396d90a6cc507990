"""From a file to records of one kind, or to columns of pairs: its path, form and columns.

A form is recognised by content, in `judgekit.data.forms`; columns without a header by their number. If content is not
enough, name the form in front of the path, ``FORM:PATH``: ``jsonl(id=qid, text=question):queries.jsonl``. The table of
forms is in ``docs/formats.md``.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from judgekit.data.columns import (
    NOT_PLAIN,
    Pairs,
    TextTable,
    keep_freed_memory,
    pairs_of,
    parquet_batches,
    run_lengths,
    strings,
    text_batches,
)
from judgekit.data.fields import DECLARED, Names, Source, rows_of
from judgekit.data.forms import (
    flat_form,
    flat_records,
    form_named,
    forms,
    inside,
    nested_form,
    spelled_form,
    telling,
)
from judgekit.data.forms.delimited import CSV, TREC, TSV, commented, delimiter_of, ranked_lists, trec_records
from judgekit.data.forms.sheets import PARQUET
from judgekit.data.records import DataRecord, as_number, parquet_columns
from judgekit.data.streams import Beginning, note_read
from judgekit.errors import DataError, UsageError, not_among
from judgekit.registry import DataForm
from judgekit.spec import Spec, form_of, split_file, split_form

_AUTO: Final = Spec("auto")


class Located(NamedTuple):
    """The path of data, and its form; ``auto`` if none is named."""

    path: Path
    format: Spec


def located(source: str | Path, kind: str) -> Located:
    """Return the location of data of one kind: ``FORM:PATH`` and, in a BEIR folder, the file of that kind."""
    if os.path.isfile(source):
        return Located(Path(source), _AUTO)
    spec, text = form_of(source)
    path = Path(text)
    why = "" if text else ", since it is empty"
    try:
        os.lstat(text)
    except ValueError:
        why = ", since it holds a character that no name may hold"
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # of a missing file its reader tells
            why = f": {error.strerror}"
    if why:
        raise DataError(f"{text[:40]!r} is not the name of a file{why}; expected {DECLARED[kind].expected}")
    of_beir = spec.name in ("auto", "beir") and path.is_dir() and any(path.glob("corpus.jsonl*"))
    if not of_beir:
        if spec.name == "beir":
            raise DataError("is not a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv)", path)
        return Located(path, spec)
    options = dict(spec.params)
    wanted = DECLARED[kind].beir.format(split=options.pop("split", "test"))
    for file in (path / wanted, path / f"{wanted}.gz"):
        if wanted and file.exists():
            return Located(file, Spec("auto", tuple(options.items())))
    hint = ""
    if kind == "qrels":
        splits = sorted(file.name.split(".")[0] for file in path.glob("qrels/*.tsv*"))
        hint = f" (beir(split=…); it has: {', '.join(splits) or 'none'})"
    raise DataError(f"this BEIR folder lacks {wanted or kind}{hint}", path)


def stem(path: str | Path) -> str:
    """Return a file's name without its endings: ``bm25`` for ``runs/bm25.trec.gz``."""
    return _ENDINGS.sub("", Path(path).name)


_ENDINGS: Final = re.compile(
    r"(?<=.)(?:\.(?:trec|run|txt|qrels?|tsv|csv|parq(?:uet)?|(?:nd)?jsonl?|eval))?(?:(?<=.)\.(?:gz|bz2|zstd?))?$",
    re.DOTALL,
)
"""Endings of names for kinds of files and compression."""


def resolved(text: str | Path, base: Path) -> Path:
    """Return a path relative to a folder, with the form in front of it; ``~`` is the home folder."""
    form, rest = split_form(text)
    path = base / os.path.expanduser(rest)
    file, name = split_file(form)
    if file is not None:
        form = f"{base / os.path.expanduser(file)}:{name}"
    return Path(f"{form}:{path}") if form else path


class _Layout(NamedTuple):
    """The layout of a file: its form, the possible names of fields, and its columns if known."""

    form: DataForm
    names: Names
    table: TextTable | None = None
    """The layout of a text file's cells."""


def _layout(path: Path, spec: Spec, kind: str) -> _Layout:
    """Return the layout of a file, by its content if the form does not tell."""
    declared = DECLARED[kind]
    form = named = None if spec.name == "auto" else form_named(spec.name)
    beginning = None
    # Other named forms may have their own compression.
    if form is None or form.nested or form in (TREC, CSV, TSV):
        beginning = Beginning.of(path, declared.expected)
        if form is None or form.nested:
            # Named columns mean a table, even if its rows look like TREC's.
            form = flat_form(beginning, (kind,) if spec == _AUTO else ())
    names = declared.names
    for key, value in spec.params:
        if key in names and not (named and key in named.options):
            names = {**names, key: (str(value),)}
        elif key not in (*form.options, *(named.options if named else ())):
            raise UsageError(f"format '{spec}': {not_among('option', key, [*names, *form.options])}")
    if beginning is None or form not in (TREC, CSV, TSV) or beginning.row.startswith("sep="):
        return _Layout(form, names)
    skip = commented(beginning.start) if form is TREC else 0
    delimiter = delimiter_of(form.name, beginning.start.split(b"\n", skip)[-1])
    table = TextTable(declared.trec, delimiter, header=False, packing=beginning.packing, trec=form is TREC, skip=skip)
    if form is TREC:
        return _Layout(form, names, table)
    cells = beginning.row.split(delimiter)
    columns: tuple[str, ...]
    if "header" in spec.options:
        columns = tuple(name.strip() for name in str(spec.options["header"]).split(","))
    elif ranked_lists(beginning, delimiter):
        columns = ("query_id", "doc_id", "rank", "score")[: len(cells)]
    else:
        columns = _without_header(path, kind, names, cells, form.name)
    return _Layout(form, names, table._replace(columns=columns or cells, header=not columns))


class NoHeader(DataError):
    """Rows of three cells with a number of unknown meaning."""


def _without_header(path: Path, kind: str, names: Names, cells: Sequence[str], syntax: str) -> tuple[str, ...]:
    """Return the columns of a TSV file of queries, docs or answers without a header; () if it has one."""
    declared = DECLARED[kind]
    cells = [cell.strip().strip('"') for cell in cells]
    for known in (names, *(other.names for other in DECLARED.values())):
        if {*cells} & {*chain(*known.values())}:
            return ()
    # A third column of numbers may be ranks, scores or grades. Ranks read as scores would turn each list upside down,
    # and a header with unknown names ("topic_no,para,bm25_score") would become a row.
    if len(cells) == 3 and (declared.number or math.isfinite(as_number(cells[2]))):
        number = declared.number or "score"
        raise NoHeader(
            "has no header with known names of columns, and numbers may be ranks, scores or grades: write"
            f" {syntax}(header='query_id,doc_id,{number}'):{path}, or rank or relevance in its place. If this line"
            f" is a header, say which column is which: {syntax}(query=…,doc=…,{number}=…):{path}",
            path,
            1,
        )
    if syntax == "csv":
        return ()
    return next((columns for columns in declared.bare if len(columns) == len(cells)), ())


def opened(source: str | Path, kind: str) -> tuple[Source, Iterator[DataRecord]]:
    """Open a named source for the records of one kind."""
    return contents(located(source, kind), kind)


def contents(place: Located, kind: str) -> tuple[Source, Iterator[DataRecord]]:
    """Open a file for the records of one kind."""
    path, spec = place
    declared = DECLARED[kind]
    layout = _layout(path, spec, kind)
    names = layout.names
    origin = Source(path, layout.form.name, names, declared.one)
    note_read(path)
    if layout.form is TREC:
        return origin, trec_records(path, declared.trec, declared.expected)
    options = {key: value for key, value in spec.params if key in layout.form.options}
    if layout.table is not None and not layout.table.header:
        options["header"] = ",".join(layout.table.columns)
    first, rows = telling(flat_records(layout.form, path, Spec(layout.form.name, tuple(options.items()))))
    form = None
    if (spec.name in forms() or split_file(spec.name)[0] is not None) and form_named(spec.name).nested:
        form = spelled_form(spec)
    elif names is declared.names and (told := nested_form(first)):
        form = told[0]
    if form is None:
        return origin, rows
    if form.refused:
        raise DataError(form.refused, path)
    if kind not in form.holds:
        reason = f"is of the form {form.name!r}, which holds no {declared.many}; expected {declared.expected}"
        raise DataError(reason, path)
    return inside(form, origin, rows, kind, spec.options)


class PairColumns(NamedTuple):
    """Where the query, doc and number of each row of a run or of qrels stand, if they can be read column by column."""

    path: Path
    table: TextTable | None
    """How the cells of a text file stand; None of Parquet."""
    wanted: Sequence[str]
    """The names of the three columns."""
    ranked: bool
    """Whether the number is a rank, where lower is better."""

    def ways(self) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """Return the ways to read its rows in batches of Arrow, the fastest first.

        Each raises one of `NOT_PLAIN` for rows that it cannot read.
        """
        if self.table is None:
            return [partial(parquet_batches, self.path, self.wanted)]
        batches = partial(text_batches, self.path, self.table, self.wanted)
        if not self.table.trec:
            return [batches]
        return [batches, partial(batches, spaced=True)]

    def of(self, batches: Iterable[pa.RecordBatch]) -> Pairs:
        """Return the rows of some batches."""
        rows = pairs_of(batches)
        # Where files were joined, the second one's byte order mark stands in front of a query.
        if any("\ufeff" in query for query in rows.queries.ids):
            raise ValueError("not plain")
        return rows._replace(values=-rows.values) if self.ranked else rows

    def pairs(self) -> Pairs | None:
        """Return all rows; None where they have to be read record by record."""
        for batches in self.ways():
            with suppress(*NOT_PLAIN):
                return self.of(batches())
        return None


def by_columns(place: Located, kind: str) -> PairColumns | None:
    """Return where the columns of a run or of qrels stand; None where records have to be read."""
    keep_freed_memory()
    path, spec = place
    if spec.name not in ("auto", "csv", "tsv", "trec", "parquet") or "quote" in dict(spec.params):
        return None
    layout = _layout(path, spec, kind)
    table = layout.table
    columns: Sequence[str] = ()
    if table is not None:
        columns = table.columns
    elif layout.form is PARQUET:
        columns = parquet_columns(path)
    held, names, number = {*columns}, layout.names, DECLARED[kind].number
    ranked = kind == "run" and not held.intersection(names[number])
    if ranked:
        number = "rank"
    roles = [*map(held.intersection, (names["query"], names["doc"], names[number]))]
    # For a repeated column, or one with several runs, reading by record gives the line.
    twice = table is not None and table.header and len(held) < len(columns)
    several = kind == "run" and "run" in columns
    if [*map(len, roles)] != [1, 1, 1] or twice or several:
        return None
    return PairColumns(path, table, [*chain(*roles)], ranked)


def pairs(place: Located, kind: str, *, may_be_empty: bool = False) -> Pairs:
    """Return the query, doc and number of each row of a run or of qrels, column by column if possible."""
    columns = by_columns(place, kind)
    rows = None if columns is None else columns.pairs()
    if rows is None:
        rows = pairs_by_record(place, kind)
    if not len(rows.values) and not may_be_empty:
        form = contents(place, kind)[0].form
        reason = f"is of the form {form!r}, and its records hold no {DECLARED[kind].many}" if form else "is empty"
        raise DataError(f"{reason}; expected {DECLARED[kind].expected}", place.path)
    return rows


def pairs_by_record(place: Located, kind: str, problem: Callable[[float], str | None] = lambda _: None) -> Pairs:
    """Return the same from records, checking each; ``problem`` checks the numbers."""
    origin, records = contents(place, kind)
    queries, docs, values = rows_of(origin, records, DECLARED[kind].number, problem)
    return Pairs(run_lengths(strings(queries)), strings(docs), np.array(values, np.float64))
