"""What people hold, taken as queries, docs, runs and labelings: files, tables, dictionaries, other libraries' objects.

Each function names what it takes in its error. What is inside is checked by the rules for files.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from pathlib import Path
from typing import Any, Final, TypeGuard

import numpy as np
import pandas as pd
import pyarrow as pa

from judgekit.data.checks import contradictions
from judgekit.data.disk import DiskDocs, GivenDocs
from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, Query
from judgekit.data.fields import DOC, QUERY, Source, docs_of, queries_of
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.records import DataRecord
from judgekit.data.runs import Run
from judgekit.data.streams import stem
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import split_form

__all__ = ["AsDocs", "AsLabelings", "AsQueries", "AsRuns", "as_docs", "as_labelings", "as_queries", "as_runs"]

AsQueries = Queries | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsDocs = Docs | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsRuns = Run | pd.DataFrame | str | Path | Mapping[str, Any] | Iterable[Any]
AsLabelings = Labeling | str | Path | Mapping[str, Any] | Iterable[Any]

_QUERIES: Final = (
    "queries must be a file, a DataFrame (query_id, text, answers), jk.Query objects, dictionaries with these keys, or"
    " a dictionary of query ids to texts, to such dictionaries or to jk.Query objects"
)
_DOCS: Final = (
    "docs must be a file, a DataFrame (doc_id, text, title), jk.Doc objects, dictionaries with these keys, a dictionary"
    " of doc ids to texts, to such dictionaries or to jk.Doc objects, or your own object with get(ids)"
)
_ONE_RUN: Final = (
    "a run must be a file, a DataFrame (query_id, doc_id, score), a jk.Run, a dictionary {query_id: {doc_id: score}},"
    " rows with query_id, doc_id and score (as those of ir_measures), or a run of ranx"
)
_RUNS: Final = f"runs must be a dictionary of names to runs, a list of files or jk.Run objects, or one run; {_ONE_RUN}"
_ONE_LABELING: Final = (
    "a labeling must be a TREC qrels file, a DataFrame (query_id, doc_id, relevance), a jk.Labeling, a dictionary"
    " {query_id: {doc_id: relevance}}, rows with query_id, doc_id and relevance (as those of ir_measures), or qrels"
    " of ranx"
)
_LABELINGS: Final = (
    "labelings must be a dictionary of names to labelings, a list of files or jk.Labeling objects, or one labeling; "
    + _ONE_LABELING
)


def as_queries(source: AsQueries) -> Queries:
    """Return queries by id from any form that people hold them in (see the message of the error)."""
    if _are_files(source):
        return read_queries(source)
    if isinstance(source, dict) and source and all(isinstance(q, Query) and q.query_id == i for i, q in source.items()):
        return source
    origin = Source(None, "frame", QUERY, "query")
    return queries_of(origin, _records(_framed(source), origin, _QUERIES))


def as_docs(source: AsDocs, index: str | Path | None = None) -> Docs:
    """Return docs from any form that people hold them in (see the message of the error); a look-up stays as it is."""
    if _are_files(source):
        return read_docs(source, index=index)
    if isinstance(source, MemoryDocs | DiskDocs | GivenDocs):
        return source
    held: Any = _framed(source)
    if not isinstance(held, pd.DataFrame | Mapping) and callable(getattr(held, "get", None)):
        return GivenDocs(held)
    origin = Source(None, "frame", DOC, "doc")
    return docs_of(origin, _records(held, origin, _DOCS))


def _framed(source: object) -> object:
    """Return what speaks Arrow's PyCapsule interface (polars, pyarrow, duckdb, …) as a table of pandas."""
    if isinstance(source, pd.DataFrame) or not hasattr(source, "__arrow_c_stream__"):
        return source
    return pa.table(source).to_pandas()


def _are_files(source: object) -> TypeGuard[str | Path | list[str | Path]]:
    """Return whether something is a file or a list of files."""
    if isinstance(source, list | tuple) and source:
        known = all(isinstance(one, Path) or (isinstance(one, str) and _is_there(one)) for one in source)
        return known
    return isinstance(source, str | Path)


def _is_there(text: str) -> bool:
    form, path = split_form(text)
    return bool(form) or Path(path).exists()


def as_runs(source: AsRuns, notes: list[str] | None = None) -> list[Run]:
    """Return runs from any form that people hold them in; ``notes`` is filled with what contradicts itself in them."""
    runs = []
    for held, name in _several(source, Run, _RUNS):
        run, read = _run(held, name)
        runs.append(run)
        if notes is not None and read is not None:
            notes += contradictions({run.name: read})
    return runs


def as_labelings(source: AsLabelings, scales: Mapping[str, str | Scale] | None = None) -> list[Labeling]:
    """Return labelings from any form that people hold them in (see the message of the error)."""
    left = dict(scales or {})
    labelings = []
    for held, name in _several(source, Labeling, _LABELINGS):
        name = name or _name_of(held) or "qrels"
        scale = left.pop(name, None)
        labelings.append(_labeling(held, name, Scale.parse(scale) if isinstance(scale, str) else scale))
    for name in left:
        known = [labeling.name for labeling in labelings]
        have = ", ".join(known)
        raise UsageError(f"scales names {name!r}, which is not a labeling (known: {have}).{nearest(name, known)}")
    return labelings


def _records(source: object, origin: Source, expected: str) -> Iterator[DataRecord]:
    """Yield the records of a table, of objects, or of a dictionary by id; absent values are None, sequences lists."""
    own = origin.names["id"][0]
    if isinstance(source, pd.DataFrame):
        columns = [*map(str, source.columns)]
        rows: Iterable[tuple[object, object]] = (
            (None, dict(zip(columns, values, strict=True))) for values in source.itertuples(index=False, name=None)
        )
    elif isinstance(source, Mapping):
        rows = source.items()
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        rows = ((None, item) for item in source)
    else:
        raise UsageError(f"{expected}; got {_kind(source)}")
    for number, (key, item) in enumerate(rows, 1):
        fields = {"text": item} if isinstance(item, str) and key is not None else _fields(item)
        if fields is None:
            raise UsageError(f"{expected}; got {_kind(source)}")
        record = DataRecord(number, {name: _plain(value) for name, value in fields.items()})
        if key is not None and record.fields.get(own, key) != key:
            raise origin.error(record, f"its key is {key!r}, but its {own} is {record.fields[own]!r}")
        yield record if key is None else DataRecord(number, {**record.fields, own: key})


def _fields(item: object) -> dict[str, object] | None:
    """Return an object's fields by name; None if it has none."""
    if isinstance(item, Query | Doc):
        held = {field.name: getattr(item, field.name) for field in fields(item)}
        columns: dict[str, object] = held.pop("columns")
        return {name: value for name, value in held.items() if value is not None} | columns
    if isinstance(item, Mapping):
        return {str(name): value for name, value in item.items()}
    as_dict = getattr(item, "_asdict", None)  # a named tuple, as those of ir_datasets
    return dict(as_dict()) if callable(as_dict) else None


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | tuple):
        return list(value)
    return None if value is pd.NA or (isinstance(value, float) and math.isnan(value)) else value


def _several(source: object, kind: type, expected: str) -> Iterator[tuple[object, str | None]]:
    """Yield runs or labelings, each with its name where a dictionary names it."""
    source = _framed(source)
    if isinstance(source, Mapping) and not _by_query(source):
        for name, held in source.items():
            if not isinstance(name, str):
                raise UsageError(f"{expected}; got {_kind(source)}")
            yield _framed(held), name
        return
    if isinstance(source, kind | str | Path | pd.DataFrame | Mapping) or hasattr(source, "to_dict"):
        yield source, None
        return
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        raise UsageError(f"{expected}; got {_kind(source)}")
    items = list(source)
    named = [isinstance(item, kind | str | Path) or hasattr(item, "to_dict") for item in items]
    if not any(named):
        yield items or source, None
        return
    for item, one_of_them in zip(items, named, strict=True):
        if isinstance(item, pd.DataFrame) or not one_of_them:
            raise UsageError(f"{expected}; got {_kind(items)}, where {_kind(item)} has no name")
        yield item, None


def _by_query(source: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary holds numbers by query and doc; one of names to runs does not."""
    filled = next((docs for docs in source.values() if not isinstance(docs, Mapping) or docs), None)
    return isinstance(filled, Mapping) and isinstance(next(iter(filled.values())), Real)


def _name_of(source: object) -> str | None:
    if isinstance(source, str | Path):
        return stem(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name and not isinstance(source, pd.DataFrame) else None


def _run(source: object, name: str | None) -> tuple[Run, str | Path | pd.DataFrame | None]:
    """Return a run, and the file or table that it was read from."""
    if isinstance(source, str | Path):
        return read_run(source, name), source
    if isinstance(source, Run):
        run = copy.copy(source)
        run.name = name or run.name
        return run if name else source, None
    name = name or _name_of(source) or "run"
    if isinstance(source, pd.DataFrame) and "run" in source and source["run"].nunique() > 1:
        raise UsageError(
            f"the table of run {name!r} holds {source['run'].nunique()} runs, by its column 'run': give each by its"
            " name, {name: rows for name, rows in table.groupby('run')}"
        )
    table = _rows(source, "score", _ONE_RUN, f"run {name!r}")
    return Run.from_frame(table, name), table


def _labeling(source: object, name: str, scale: Scale | None) -> Labeling:
    if isinstance(source, str | Path):
        return read_qrels(source, name, scale)
    if isinstance(source, Labeling):
        return source if source.name == name else Labeling(name, source.scale, source.table, declared=source.declared)
    return Labeling(name, scale, _rows(source, "relevance", _ONE_LABELING, f"labeling {name!r}"))


def _rows(source: Any, value: str, expected: str, whose: str) -> pd.DataFrame:
    """Return a table ``query_id, doc_id`` and a number from a table, a dictionary of dictionaries, or rows."""
    if isinstance(source, pd.DataFrame):
        return source
    columns = ["query_id", "doc_id", value]
    held = source.to_dict() if hasattr(source, "to_dict") else source
    rows: list[tuple[object, ...]]
    try:
        if isinstance(held, Mapping):
            rows = [(query_id, doc_id, number) for query_id, docs in held.items() for doc_id, number in docs.items()]
        else:
            rows = [_row(row, columns) for row in held]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise UsageError(f"{expected}; got {_kind(held)}") from None
    if not rows:
        raise DataError(f"{whose}: expected rows with {', '.join(columns)}, got {_kind(held)}")
    return pd.DataFrame(rows, columns=columns, dtype=object)


def _row(row: Any, columns: Sequence[str]) -> tuple[object, ...]:
    """Return query, doc and number of a row: a dictionary, an object with these attributes, or three values."""
    if isinstance(row, Mapping):
        return tuple(row[name] for name in columns)
    if all(hasattr(row, name) for name in columns):
        return tuple(getattr(row, name) for name in columns)
    if isinstance(row, str) or len(row) != len(columns):
        raise ValueError("not three values")
    return tuple(row)


def _kind(value: object) -> str:
    """Return what a value is, in words, for error messages."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        inside = next(iter(value.values()), None)
        return f"a dictionary of {_kind(inside)}" if value else "an empty dictionary"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        name = type(value).__name__
        return f"a {name} of {_kind(value[0])}" if value else f"an empty {name}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
