"""Records that do not stand for one question each: epochs, filters and replies, rows of passages, lone responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from judgekit.data.fields import Source
from judgekit.data.records import DataRecord
from judgekit.errors import DataError, UsageError, not_among
from judgekit.registry import DataForm
from judgekit.spec import Spec


def one_of_several(
    form: DataForm, source: Source, records: Iterable[DataRecord], options: Mapping[str, Any]
) -> Iterator[DataRecord]:
    """Yield the records with the chosen value of each column that tells a question's records apart; ask without one."""
    rows = list(records)
    for column in form.apart:
        values: dict[str, DataRecord] = {}
        for row in rows:
            values.setdefault(str(row.fields.get(column)), row)
        wanted = options.get(column)
        if wanted is not None and str(wanted) not in values:
            raise UsageError(f"{source.path}: {not_among(column, str(wanted), [*values])}")
        if wanted is not None:
            rows = [row for row in rows if str(row.fields.get(column)) == str(wanted)]
        elif len(values) > 1 and options.get("run") != column:
            first, other, *_ = values
            value = int(first) if first.isdecimal() and str(int(first)) == first else first
            one = Spec(form.name, tuple(({**options, column: value}).items()))
            each = Spec(form.name, tuple(({**options, "run": column}).items()))
            raise source.error(
                values[other],
                f"each question has several records, which {column!r} tells apart ({', '.join(values)}): write"
                f" {one}:{source.path or 'FILE'} to take one of them, or {each}:{source.path or 'FILE'} if each is a"
                " run",
            )
    yield from rows


def _one_each(rows: list[DataRecord], number: int) -> list[DataRecord]:
    """Return a record for each query; vector stores answer several at once with lists of as many lists."""
    if not all(len(row.fields) == 1 for row in rows[1:]):
        return rows
    fields: dict[str, Any] = {}  # a large object is read by its members
    for row in rows:
        fields |= row.fields
    several = {}
    for name, lists in fields.items():
        if isinstance(lists, list) and len(lists) == number and all(isinstance(inner, list) for inner in lists):
            several[name] = lists
    if not several:
        return rows
    return [rows[0].of({name: [lists[place]] for name, lists in several.items()}) for place in range(number)]


def in_order_of(queries: str, source: Source, records: Iterable[DataRecord]) -> Iterator[DataRecord]:
    """Yield records with the ids of the queries, a file beside theirs in the same order."""
    from judgekit.data.readers import read_queries  # which reads forms

    ids = list(read_queries((source.path or Path()).parent / queries))
    rows = _one_each(list(records), len(ids))
    if len(rows) != len(ids):
        raise DataError(
            f"holds {len(rows)} responses, {queries} {len(ids)} queries: there must be one for each", source.path
        )
    for query_id, row in zip(ids, rows, strict=True):
        if row.fields.get("query_id", query_id) != query_id:
            raise source.error(
                row, f"its query is {row.fields['query_id']!r}, and the one in its place in {queries} {query_id!r}"
            )
        yield row.of({**row.fields, "query_id": query_id}, row.inside)


def together(form: DataForm, records: Iterable[DataRecord]) -> Iterator[DataRecord]:
    """Yield a record for each question and run of a table that has a row for each passage."""
    groups: dict[tuple[str, ...], list[DataRecord]] = {}
    for row in records:
        groups.setdefault(tuple(str(row.fields.get(name)) for name in form.together), []).append(row)
    for rows in groups.values():
        fields = dict(rows[0].fields)
        for name in fields:
            values = [row.fields.get(name) for row in rows]
            if name in form.lists:
                lists = [value if isinstance(value, list) else [value] for value in values]
                fields[name] = [*chain(*lists)]
            else:  # the answer stands in one of the rows
                fields[name] = next(filter(None, values), "")
        yield rows[0].of(fields, rows[0].inside)
