"""Takes files, tables, dictionaries and other libraries' objects as queries, docs, runs and labelings.

The error of each function names what it takes. Contents are checked by the rules for files.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeGuard, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from judgekit.data.checks import contradictions
from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, Query, record_of
from judgekit.data.fields import DECLARED, DOC, QUERY, Source, docs_of, queries_of, rows_of
from judgekit.data.forms import inside, nested_form, telling
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.manifest import made_of
from judgekit.data.readers import DiskDocs, read_docs, read_queries
from judgekit.data.records import DataRecord, with_class_names
from judgekit.data.runs import Run
from judgekit.data.sources import located, stem
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError, not_among

if TYPE_CHECKING:
    from judgekit.data.parts import AnyRun

T = TypeVar("T", Run, Labeling)
R = TypeVar("R")
_ROWS_AT_ONCE: Final = 1000
AsQueries = Queries | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsDocs = Docs | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsRuns = Run | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsLabelings = Labeling | str | Path | Mapping[str, Any] | Iterable[Any]

_QUERIES: Final = (
    "queries must be a file, a DataFrame (query_id, text, answers), jk.Query objects, dictionaries with these"
    " keys, or a dictionary of query ids to texts, to such dictionaries or to jk.Query objects"
)
_DOCS: Final = (
    "docs must be a file, a DataFrame (doc_id, text, title), jk.Doc objects, dictionaries with these keys, or a"
    " dictionary of doc ids to texts, to such dictionaries or to jk.Doc objects"
)
_ONE_RUN: Final = (
    "a run must be a file, a DataFrame (query_id, doc_id, score), a jk.Run, a dictionary"
    " {query_id: {doc_id: score}}, or dictionaries or objects with query_id, doc_id and score (as those of ir_measures)"
)
_RUNS: Final = f"runs must be a dictionary of names to runs, a list of files or jk.Run objects, or one run; {_ONE_RUN}"
_ONE_LABELING: Final = (
    "a labeling must be a TREC qrels file, a DataFrame (query_id, doc_id, relevance), a jk.Labeling, a"
    " dictionary {query_id: {doc_id: relevance}}, or dictionaries or objects with query_id, doc_id and relevance (as"
    " those of ir_measures)"
)
_LABELINGS: Final = (
    "labelings must be a dictionary of names to labelings, a list of files or jk.Labeling objects, or one labeling; "
    + _ONE_LABELING
)

RETRIEVES: Final = ("invoke", "retrieve", "get_relevant_documents", "run")
"""The methods of LangChain's, LlamaIndex' and Haystack's objects."""


def as_queries(source: AsQueries) -> Queries:
    """Return queries by id from any supported form (see the error's message)."""
    if _are_files(source):
        return read_queries(source)
    # Objects that were checked once pass from call to call without being read again.
    if isinstance(source, dict) and source and all(isinstance(q, Query) and q.query_id == i for i, q in source.items()):
        return source
    origin = Source(None, "frame", QUERY, "query")
    return queries_of(*_inside(origin, _records(source, origin, _QUERIES), "query"))


def as_docs(source: AsDocs, index: str | Path | None = None) -> Docs:
    """Return docs from any supported form (see the error's message); a collection stays as it is."""
    if _are_files(source):
        return read_docs(source, index=index)
    if isinstance(source, MemoryDocs | DiskDocs):
        return source
    origin = Source(None, "frame", DOC, "doc")
    return docs_of(*_inside(origin, _records(source, origin, _DOCS), "doc"))


def one_by_one(docs: Docs) -> Iterator[Doc]:
    """Return the documents of a collection in their order.

    Raises:
        UsageError: it only gives documents by id.
    """
    if not isinstance(docs, Iterable):
        raise UsageError("the documents must be a file, a table or a list, to be read one by one")
    return iter(docs)


def _are_files(source: object) -> TypeGuard[str | Path | list[str | Path]]:
    """Return whether something is a file or a list of files."""
    if isinstance(source, list | tuple) and source:
        return all(isinstance(item, str | Path) for item in source)
    return isinstance(source, str | Path)


def as_runs(source: AsRuns, *, drop_self: bool = False) -> list[Run]:
    """Return runs from any supported form (see the error's message).

    ``drop_self`` leaves out documents that are the query itself.
    """
    runs = (_as_run(held, given) for held, given in _several(source, Run, _RUNS))
    return [run.without_own() if drop_self else run for run in runs]


class NotedRuns(NamedTuple, Generic[R]):
    """Runs, with sentences on what looks wrong."""

    runs: list[R]
    notes: tuple[str, ...]


def noted_runs(source: AsRuns, depth: int | None = None, *, drop_self: bool = False) -> NotedRuns[Run]:
    """Return the same as `as_runs`, with what looks wrong; large files are cut to a depth while they are read."""
    from judgekit.data.parts import in_one_piece

    runs: list[Run] = []
    notes: list[str] = []
    for run, wrong in _lists(source, whole=depth is None, drop_self=drop_self):
        cut = run if depth is None else run.cut(depth)
        runs.append(cut if isinstance(cut, Run) else cut.whole())
        notes += [*wrong, *in_one_piece([cut])]
    return NotedRuns(runs, tuple(notes))


def noted_lists(source: AsRuns, *, drop_self: bool = False, whole: bool = False) -> NotedRuns[AnyRun]:
    """Return the same as `as_runs`, with sentences on what looks wrong.

    Large files are not read, unless ``whole``, but in parts when something is worked out of them.
    """
    found = [*_lists(source, whole=whole, drop_self=drop_self)]
    return NotedRuns([run for run, _ in found], tuple(chain.from_iterable(notes for _, notes in found)))


def _lists(source: AsRuns, *, whole: bool, drop_self: bool) -> Iterator[tuple[AnyRun, Sequence[str]]]:
    """Yield runs, each with what looks wrong in it; large files may not be read, unless ``whole``."""
    from judgekit.data.parts import DiskRun, too_large

    every = [*_several(source, Run, _RUNS)]
    in_parts = not whole and too_large(held for held, _ in every if isinstance(held, str | Path))
    for held, given in every:
        if not isinstance(held, Run | str | Path):
            held = _rows(held, "run", _ONE_RUN, f"run {given or _name_of(held, 'run')!r}")
        in_file = isinstance(held, str | Path)
        run = DiskRun(held, given) if in_parts and in_file else _as_run(held, given)
        notes = () if isinstance(held, Run) else [*contradictions({run.name: held})]
        yield run.without_own() if drop_self else run, notes


def _as_run(held: Any, given: str | None) -> Run:
    """Return one run under the given name, or its own."""
    name = given or _name_of(held, "run")
    if isinstance(held, Run):
        return _named(held, name)
    if isinstance(held, str | Path):
        return read_run(held, given)
    rows = _rows(held, "run", _ONE_RUN, f"run {name!r}")
    # Several runs read as one would be mixed by score.
    if "run" in rows and rows["run"].nunique() > 1:
        raise UsageError(
            f"the table of run {name!r} holds {rows['run'].nunique()} runs, by its column 'run': give each by"
            " its name, {name: rows for name, rows in table.groupby('run')}"
        )
    return Run.from_frame(rows, name)


def as_labelings(source: AsLabelings, scales: Mapping[str, str | Scale] | None = None) -> list[Labeling]:
    """Return labelings from any supported form (see the error's message)."""
    left = dict(scales or {})
    labelings: list[Labeling] = []
    for held, given in _several(source, Labeling, _LABELINGS):
        name = given or _name_of(held, "qrels")
        scale = left.pop(name, None)
        if isinstance(scale, str):
            scale = Scale.parse(scale)
        if isinstance(held, Labeling):
            labelings.append(_named(held, name))
        elif isinstance(held, str | Path):
            labelings.append(read_qrels(held, name, scale))
            labelings[-1].made = made_of(located(held, "qrels").path)
        else:
            rows = _rows(held, "qrels", _ONE_LABELING, f"labeling {name!r}")
            labelings.append(Labeling(name, scale, rows, negative=True))
    for name in left:
        names = [labeling.name for labeling in labelings]
        raise UsageError(f"scales: {not_among('labeling', name, names)}")
    return labelings


def as_pandas(source: Any) -> Any:
    """Return a table of another library (polars, Arrow, DuckDB, datasets) as a pandas DataFrame; others as they are."""
    # Hugging Face's datasets give tables of Arrow, whatever format their rows have, also while they are streamed.
    of_datasets = hasattr(source, "with_format") and not isinstance(source, Mapping)
    if isinstance(source, pd.DataFrame) or not (of_datasets or hasattr(source, "__arrow_c_stream__")):
        return source
    try:
        if of_datasets:
            parts = [*source.with_format("arrow").iter(batch_size=_ROWS_AT_ONCE)]
            table = pa.concat_tables(parts, promote_options="permissive")
        else:
            # All others provide their rows by Arrow's PyCapsule interface.
            table = pa.table(source)
    # A single column is not a table.
    except pa.ArrowException:
        return source
    table = with_class_names(table)
    try:
        return table.to_pandas()
    except pa.ArrowNotImplementedError:
        # Lists in polars hold views of texts, which Arrow can only turn into Python objects.
        return pd.DataFrame(table.to_pydict())


def as_table(source: Any) -> Any:
    """Return the same, and a list of rows (dictionaries or named tuples, as those of ir_measures) as a DataFrame."""
    rows = [_fields(row) for row in source] if isinstance(source, list) else []
    return pd.DataFrame(rows) if rows and None not in rows else as_pandas(source)


def _records(source: object, origin: Source, expected: str) -> Iterator[DataRecord]:
    """Yield the records of a table, of objects, or of a dictionary by id; absent values are None, sequences lists."""
    source = as_pandas(source)
    if isinstance(source, np.ndarray):
        source = source.tolist()
    own = origin.names.get("id", ("",))[0]
    if isinstance(source, pd.DataFrame):
        columns = [*map(str, source.columns)]
        source = (dict(zip(columns, cells, strict=True)) for cells in source.itertuples(index=False, name=None))
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        raise _unknown(expected, source)
    keyed = source.items() if isinstance(source, Mapping) else zip(repeat(None), source)
    for number, (key, item) in enumerate(keyed, 1):
        fields = {"text": item} if isinstance(item, str) and key is not None else _fields(item)
        if fields is None:
            raise _unknown(expected, source)
        record = DataRecord(number, {name: _plain(value) for name, value in fields.items()})
        if key is not None:
            # Nobody can tell which of the two ids is meant.
            if record.fields.get(own, key) != key:
                raise origin.error(record, f"its key is {key!r}, but its {own} is {record.fields[own]!r}")
            record = DataRecord(number, {**record.fields, own: key})
        yield record


def _fields(item: object) -> dict[str, object] | None:
    """Return an object's fields by name; None if it has none."""
    if isinstance(item, Query | Doc):
        return record_of(item)
    if isinstance(item, Mapping):
        return {str(name): value for name, value in item.items()}
    as_dict = getattr(item, "_asdict", None)  # a named tuple, as those of ir_datasets and ir_measures
    return dict(as_dict()) if callable(as_dict) else None


def _plain(value: object) -> object:
    value = as_pandas(value)
    if isinstance(value, pd.DataFrame):
        return value.to_dict("records")
    # Arrays and numbers of numpy, columns of pandas and polars.
    listed = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if callable(listed) and not isinstance(value, type):
        value = listed()
    if isinstance(value, tuple):
        return list(value)
    absent = value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return None if absent else value


def _several(source: object, kind: type, expected: str) -> Iterator[tuple[Any, str | None]]:
    """Yield runs or labelings, with names if a dictionary gives them."""
    if isinstance(source, Mapping) and not _by_query(source):
        for name, held in source.items():
            if not isinstance(name, str):
                raise _unknown(expected, source)
            yield held, name
    elif isinstance(source, list | tuple) and source and all(isinstance(item, kind | str | Path) for item in source):
        for item in source:
            yield item, None
    else:
        yield source, None


def _by_query(source: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary holds numbers by query and doc, or ids by query; one of names to runs does not."""
    for docs in source.values():
        if isinstance(docs, set | frozenset):
            return True
        if not isinstance(docs, Mapping | list):
            return False
        # A query without results does not tell; the next one does.
        for told in docs if isinstance(docs, list) else docs.values():
            return isinstance(told, str if isinstance(docs, list) else Real)
    return False


def _named(held: T, name: str) -> T:
    """Return a run or labeling under a name."""
    if held.name == name:
        return held
    named = copy.copy(held)
    named.name = name
    return named


def _name_of(source: object, otherwise: str) -> str:
    """Return the name of a file or an object."""
    if isinstance(source, str | Path):
        return stem(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name else otherwise


def _inside(origin: Source, records: Iterator[DataRecord], kind: str) -> tuple[Source, Iterator[DataRecord]]:
    """Return records of one kind: the given ones or, for a nested form, those inside."""
    first, records = telling(records)
    needs = DECLARED[kind].needs
    if first and not all(any(origin.find(first[0], key) for key in keys) for keys in needs):
        told = nested_form(first)
        if told is not None and {"query", kind} <= {*told[0].holds}:
            return inside(told[0], origin, records, kind)
    return origin, records


def _numbered(docs: Any, kind: str) -> Iterable[tuple[Any, Any]] | None:
    """Return the documents of a query with their numbers; None if they are of another kind."""
    if isinstance(docs, Mapping):
        return docs.items()
    # sentence-transformers has the relevant documents of a query as a set, LlamaIndex as a list.
    if kind == "qrels" and isinstance(docs, set | frozenset | list):
        return [(doc, 1) for doc in (docs if isinstance(docs, list) else sorted(docs))]
    if not isinstance(docs, list):
        return None
    return zip(docs, range(len(docs), 0, -1), strict=True)  # ranked, the best first


def _rows(source: Any, kind: str, expected: str, whose: str) -> pd.DataFrame:
    """Return a table ``query_id, doc_id`` and a number from a table, a dictionary of dictionaries, rows, or results."""
    source = as_pandas(source)
    value = DECLARED[kind].number
    origin = Source(None, "frame", DECLARED[kind].names, whose)
    own = ["query_id", "doc_id", value]
    if isinstance(source, Mapping):
        rows: list[tuple[Any, Any, Any]] = []
        for query_id, docs in source.items():
            pairs = _numbered(docs, kind)
            if pairs is None:
                raise _unknown(expected, source)
            rows += ((query_id, doc_id, number) for doc_id, number in pairs)
        frame = pd.DataFrame(rows, columns=own, dtype=object)
    elif isinstance(source, pd.DataFrame) and {*origin.names["doc"]} & {*source.columns, *source.index.names}:
        pair = {*origin.names["query"], *origin.names["doc"]}
        frame = source.reset_index() if pair & {*source.index.names} - {*source.columns} else source
    else:
        nested, records = _inside(origin, _records(source, origin, expected), kind)
        if nested.form:
            return pd.DataFrame(dict(zip(own, rows_of(nested, records, value), strict=True)))
        # As objects: pandas would turn ids into numbers if they are "007" in one row and 7 in the next.
        frame = pd.DataFrame([record.fields for record in records], dtype=object)
        if len(frame) and not {*chain(*origin.names.values())} & {*frame.columns}:
            raise _unknown(expected, [{}])
    if frame.empty:
        raise DataError(f"{whose}: expected rows with {', '.join(own)}, got none")
    columns = DataRecord(1, {name: name for name in frame.columns})
    renamed = {}
    for key, name in zip(("query", "doc", value), own, strict=True):
        given = origin.find(columns, key)
        if given is not None:
            renamed[given] = name
    return frame.rename(columns=renamed)


def is_retriever(source: object) -> bool:
    """Return whether something retrieves: a function, or a library's object with a known method."""
    if isinstance(source, type):
        return False
    return callable(source) or any(callable(getattr(source, method, None)) for method in RETRIEVES)


def _unknown(expected: str, value: object) -> UsageError:
    held = value[0] if isinstance(value, list | tuple) and value else value
    if expected in (_RUNS, _ONE_RUN) and is_retriever(held):
        return UsageError(
            f"{_kind(held)} retrieves, and only what takes questions and runs (label, answer, judge_test) asks it: ask"
            " it once, and give what it returned as the run"
        )
    nameless = isinstance(held, tuple | list) and len(held) > 1
    cure = ". Rows need names: pd.DataFrame(rows, columns=[…])" if nameless else ""
    return UsageError(f"{expected}; got {_kind(value)}{cure}")


def _kind(value: object) -> str:
    """Return the kind of a value in words, for error messages."""
    name = type(value).__name__
    if not isinstance(value, Mapping | Sequence) or isinstance(value, str | bytes):
        return name
    if not value:
        return f"an empty {name}"
    return f"{name} of {_kind(next(iter(value.values() if isinstance(value, Mapping) else value)))}"
