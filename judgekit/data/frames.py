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

from judgekit.data.disk import DiskDocs, GivenDocs
from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, Query
from judgekit.data.fields import DOC, QUERY, Names, Source, docs_of, queries_of
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.records import Record
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
    """Return queries by id from any form that people hold them in (see the message of the error).

    ``answers`` may be absent; under the name ``answer`` one str is enough. What `read_queries` returned stays as it is.

    Raises:
        UsageError: it is something else.
        DataError: a field is missing, an id is there twice or reserved, an answer is not a string; with the row.
    """
    if _are_files(source):
        return read_queries(source)
    if isinstance(source, dict) and source and all(isinstance(q, Query) and q.query_id == i for i, q in source.items()):
        return source
    origin = Source(None, "frame", QUERY, "query")
    return queries_of(origin, _records(source, origin, _QUERIES))


def as_docs(source: AsDocs, index: str | Path | None = None) -> Docs:
    """Return docs from any form that people hold them in (see the message of the error); a look-up stays as it is.

    The index of a large file lies in the folder ``index``, by default the user's cache folder.

    Raises:
        UsageError: it is something else.
        DataError: a field is missing or an id is there twice; with the row.
    """
    if _are_files(source):
        return read_docs(source, index=index)
    if isinstance(source, MemoryDocs | DiskDocs | GivenDocs):
        return source
    if not isinstance(source, pd.DataFrame | Mapping) and callable(getattr(source, "get", None)):
        return GivenDocs(source)
    origin = Source(None, "frame", DOC, "doc")
    return docs_of(origin, _records(source, origin, _DOCS))


def _are_files(source: object) -> TypeGuard[str | Path | list[str | Path]]:
    """Return whether something is a file or a list of files."""
    if isinstance(source, list | tuple) and source:
        known = all(isinstance(one, Path) or (isinstance(one, str) and _is_there(one)) for one in source)
        return known
    return isinstance(source, str | Path)


def _is_there(text: str) -> bool:
    form, path = split_form(text)
    return bool(form) or Path(path).exists()


def as_runs(source: AsRuns) -> list[Run]:
    """Return runs from any form that people hold them in (see the message of the error).

    In a dictionary of names to runs its keys are their names. One that has no name is called ``run``.

    Raises:
        UsageError: it is something else.
        DataError: a file or table does not hold a run, or two have one name.
    """
    return [_run(one, name) for one, name in _several(source, Run, _RUNS)]


def as_labelings(source: AsLabelings, scales: Mapping[str, str | Scale] | None = None) -> list[Labeling]:
    """Return labelings from any form that people hold them in (see the message of the error).

    Args:
        source: as for `as_runs`; one that has no name is called ``qrels``.
        scales: scale by the labeling's name. Without one, whole numbers are grades up to the largest, as in a file.

    Raises:
        UsageError: it is something else, or a scale is for no labeling.
        DataError: a file or table does not hold labels, a label is off its scale, or fractions have no scale.
    """
    named = list(_several(source, Labeling, _LABELINGS))
    left = dict(scales or {})
    found = []
    for one, name in named:
        name = name or _name_of(one) or "qrels"
        scale = left.pop(name, None)
        found.append(_labeling(one, name, Scale.parse(scale) if isinstance(scale, str) else scale))
    for name in left:
        known = [labeling.name for labeling in found]
        have = ", ".join(known)
        raise UsageError(f"scales names {name!r}, which is not a labeling (known: {have}).{nearest(name, known)}")
    return found


def _records(source: object, origin: Source, expected: str) -> Iterator[Record]:
    """Yield the records of a table, of objects, or of a dictionary by id; absent values are None, sequences lists."""
    names: Names = origin.names
    if isinstance(source, pd.DataFrame):
        columns = [str(c) for c in source.columns]
        rows: Iterator[tuple[object, object]] = (
            (None, dict(zip(columns, values, strict=True))) for values in source.itertuples(index=False, name=None)
        )
    elif isinstance(source, Mapping):
        rows = iter(source.items())
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        rows = ((None, item) for item in source)
    else:
        raise UsageError(f"{expected}; got {_kind(source)}")
    for number, (key, item) in enumerate(rows, 1):
        found = {"text": item} if isinstance(item, str) and key is not None else _fields(item)
        if found is None:
            raise UsageError(f"{expected}; got {_kind(source)}")
        record = Record(number, {name: _plain(value) for name, value in found.items()})
        if key is not None:
            own = record.fields.get(names["id"][0], key)
            if own != key:
                raise origin.error(record, f"its key is {key!r}, but its {names['id'][0]} is {own!r}")
            record = Record(number, {**record.fields, names["id"][0]: key})
        yield record


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
    if isinstance(source, Mapping) and not _by_query(source):
        for name, one in source.items():
            if not isinstance(name, str):
                raise UsageError(f"{expected}; got {_kind(source)}")
            yield one, name
    elif isinstance(source, kind | str | Path | pd.DataFrame | Mapping) or hasattr(source, "to_dict"):
        yield source, None
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        items = list(source)
        if not any(isinstance(one, kind | str | Path) or hasattr(one, "to_dict") for one in items):
            yield (items, None) if items else (source, None)
            return
        for one in items:
            if isinstance(one, pd.DataFrame) or not (isinstance(one, kind | str | Path) or hasattr(one, "to_dict")):
                raise UsageError(f"{expected}; got {_kind(items)}, where {_kind(one)} has no name")
            yield one, None
    else:
        raise UsageError(f"{expected}; got {_kind(source)}")


def _by_query(source: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary holds numbers by query and doc; one of names to runs does not."""
    filled = next((docs for docs in source.values() if not isinstance(docs, Mapping) or docs), None)
    return isinstance(filled, Mapping) and isinstance(next(iter(filled.values())), Real)


def _name_of(source: object) -> str | None:
    if isinstance(source, str | Path):
        return stem(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name and not isinstance(source, pd.DataFrame) else None


def _run(source: object, name: str | None) -> Run:
    if isinstance(source, str | Path):
        return read_run(source, name)
    if isinstance(source, Run):
        run = copy.copy(source)
        run.name = name or run.name
        return run if name else source
    name = name or _name_of(source) or "run"
    if isinstance(source, pd.DataFrame) and "run" in source and source["run"].nunique() > 1:
        raise UsageError(
            f"the table of run {name!r} holds {source['run'].nunique()} runs, by its column 'run': give each by its"
            " name, {name: rows for name, rows in table.groupby('run')}"
        )
    return Run.from_frame(_rows(source, "score", _ONE_RUN, f"run {name!r}"), name)


def _labeling(source: object, name: str, scale: Scale | None) -> Labeling:
    if isinstance(source, str | Path):
        return read_qrels(source, name, scale)
    if isinstance(source, Labeling):
        return source if source.name == name else Labeling(name, source.scale, source.table, declared=source.declared)
    return Labeling(name, scale, _rows(source, "relevance", _ONE_LABELING, f"labeling {name!r}"))


def _rows(source: object, value: str, expected: str, whose: str) -> pd.DataFrame:
    """Return a table ``query_id, doc_id`` and a number from a table, a dictionary of dictionaries, or rows."""
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "to_dict"):
        source = source.to_dict()
    columns = ["query_id", "doc_id", value]
    rows: list[Sequence[object]] = []
    if isinstance(source, Mapping):
        for query_id, docs in source.items():
            if not isinstance(docs, Mapping):
                raise UsageError(f"{expected}; got {_kind(source)}")
            rows.extend((query_id, doc_id, number) for doc_id, number in docs.items())
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for row in source:
            if isinstance(row, Mapping) and all(name in row for name in columns):
                rows.append([row[name] for name in columns])
            elif all(hasattr(row, name) for name in columns):
                rows.append([getattr(row, name) for name in columns])
            elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(columns):
                rows.append(row)
            else:
                raise UsageError(f"{expected}; got {_kind(source)}")
    else:
        raise UsageError(f"{expected}; got {_kind(source)}")
    if not rows:
        raise DataError(f"{whose}: expected rows with {', '.join(columns)}, got {_kind(source)}")
    return pd.DataFrame(rows, columns=columns, dtype=object)


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
