"""DataFrames in, DataFrames out: queries, docs and runs for those who work in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, Query
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, Table
from judgekit.data.trec import read_run
from judgekit.errors import DataError, UsageError

__all__ = ["as_docs", "as_queries", "as_runs"]

Default = TypeVar("Default")

_QUERIES = Table("queries", {"query_id": "str", "text": "str"}, {})
_DOCS = Table("docs", {"doc_id": "str", "text": "str"}, {"title": "str", "page_id": "str"})


def as_queries(source: Queries | pd.DataFrame | str | Path) -> Queries:
    """Return queries from a file, a table ``query_id, text, answers`` or what `read_queries` returned.

    ``answers`` may be absent; a cell is a list of str, one str, or empty.

    Raises:
        DataError: a column is missing, an id is there twice or reserved, an answer is no string.
    """
    if isinstance(source, str | Path):
        return read_queries(source)
    if not isinstance(source, pd.DataFrame):
        return source
    frame = _QUERIES.check(source)
    answers = frame["answers"] if "answers" in frame.columns else [()] * len(frame)
    queries: dict[str, Query] = {}
    for row, (query_id, text, given) in enumerate(zip(frame["query_id"], frame["text"], answers, strict=True)):
        if query_id in queries or query_id == ALL:
            reason = "is there twice" if query_id in queries else "is reserved: it marks means over queries"
            raise DataError(f"queries table, row {row}: query id {query_id!r} {reason}")
        queries[query_id] = Query(query_id, text, _answers(given, row))
    return queries


def _answers(given: object, row: int) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if given is None or (isinstance(given, float) and pd.isna(given)):
        return ()
    found = tuple(given) if hasattr(given, "__iter__") else (given,)
    if not all(isinstance(answer, str) for answer in found):
        raise DataError(f"queries table, row {row}: answers must be strings, got {given!r}")
    return found


def as_docs(source: Docs | pd.DataFrame | str | Path) -> Docs:
    """Return docs from a file, a table ``doc_id, text, title, page_id`` (the last two optional), or a look-up."""
    if isinstance(source, str | Path):
        return read_docs(source)
    if not isinstance(source, pd.DataFrame):
        return source
    frame = _DOCS.check(source)
    for column in ("title", "page_id"):
        if column not in frame.columns:
            frame[column] = None
    rows = zip(frame["doc_id"], frame["text"], frame["title"], frame["page_id"], strict=True)
    return MemoryDocs(Doc(i, text, _or(title, ""), _or(page, None)) for i, text, title, page in rows)


def _or(value: object, default: Default) -> str | Default:
    return value if isinstance(value, str) else default


def as_runs(source: Mapping[str, Run | pd.DataFrame | str | Path] | Sequence[Run]) -> list[Run]:
    """Return runs from a dictionary of names to files, tables ``query_id, doc_id, score`` or runs, or from runs.

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
        else:
            runs.append(run if isinstance(run, Run) else read_run(run, name))
    return runs
