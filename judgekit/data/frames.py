"""DataFrames in, DataFrames out: queries, docs and runs for those who work in a notebook."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.data.documents import Docs, Queries
from judgekit.data.fields import DOC, QUERY, Source, docs_of, queries_of
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.records import Record
from judgekit.data.runs import Run
from judgekit.data.trec import read_run
from judgekit.errors import UsageError

__all__ = ["as_docs", "as_queries", "as_runs"]


def _records(frame: pd.DataFrame) -> Iterator[Record]:
    """Yield the rows of a table; what pandas takes for missing is None, arrays and tuples are lists."""

    def plain(value: object) -> object:
        if isinstance(value, np.ndarray | tuple):
            return list(value)
        return None if value is pd.NA or (isinstance(value, float) and math.isnan(value)) else value

    names = [str(c) for c in frame.columns]
    for row, values in enumerate(frame.itertuples(index=False, name=None), 1):
        yield Record(row, dict(zip(names, map(plain, values), strict=True)))


def as_queries(source: Queries | pd.DataFrame | str | Path) -> Queries:
    """Return queries from a file, a table ``query_id, text, answers, language`` or what `read_queries` returned.

    The rules for a table are those of the files (see `judgekit.data.readers`); ``answers`` may be absent, a cell is a
    list of str or missing, under the name ``answer`` also one str.

    Raises:
        DataError: a column is missing, an id is there twice or reserved, an answer is no string; with the row.
    """
    if isinstance(source, str | Path):
        return read_queries(source)
    if isinstance(source, pd.DataFrame):
        return queries_of(Source(None, "frame", QUERY, "query"), _records(source))
    return source


def as_docs(source: Docs | pd.DataFrame | str | Path) -> Docs:
    """Return docs from a file, a table ``doc_id, text, title, page_id`` (the last two optional), or a look-up.

    Raises:
        DataError: a column is missing or an id is there twice; with the row.
    """
    if isinstance(source, str | Path):
        return read_docs(source)
    if isinstance(source, pd.DataFrame):
        return docs_of(Source(None, "frame", DOC, "doc"), _records(source))
    return source


def as_runs(source: Mapping[str, Run | pd.DataFrame | str | Path] | Sequence[Run]) -> list[Run]:
    """Return runs from a dictionary of names to files, tables ``query_id, doc_id, score`` or runs, or from runs.

    In a dictionary the names of the runs are its keys.

    Raises:
        UsageError: something else was given.
        DataError: a file or table is not a run.
    """
    if not isinstance(source, Mapping):
        if not all(isinstance(run, Run) for run in source):
            raise UsageError("runs must be Run objects, or a dictionary of names to files, tables or Run objects")
        return list(source)
    runs = []
    for name, run in source.items():
        if isinstance(run, pd.DataFrame):
            runs.append(Run.from_frame(run, name))
        elif isinstance(run, Run):
            runs.append(copy.copy(run))
            runs[-1].name = name
        else:
            runs.append(read_run(run, name))
    return runs
