"""Ten thousand odd values in nested forms: each is read, or refused with a sentence; none ends in a traceback."""

import copy
import datetime
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from judgekit.data.fields import DECLARED, Source, docs_of, queries_of, rows_of
from judgekit.data.forms import inside, nested_form
from judgekit.data.forms.own import FORMS
from judgekit.data.forms.tool import rows_at
from judgekit.data.frames import as_docs, as_labelings, as_queries, as_runs
from judgekit.data.records import DataRecord
from judgekit.errors import JudgekitError

ODD: list[Any] = [
    *(None, True, False, 0, 7, -1, 2.5, float("nan"), float("inf"), 10**400, 1e308),
    *(
        "",
        " ",
        "\t",
        "[",
        "[]",
        "{}",
        "[1, [2]]",
        "{'a': ",
        "['a', 'b']",
        "array(['a'])",
        "page_content='a'",
        "\ud800",
        "all",
    ),
    *([], [[]], [[[]]], [None], [1], [""], [["d1"], ["d2", "d3"]], [{}], [{"text": None}], [{"id": [1], "text": {}}]),
    *({}, {"a": 1}, {"text": []}, {"id": {}}, {"answer": "Ann", "context": ["a"]}, {"content": 3, "metadata": "x"}),
    *([["d1", 0.5]], [("d1", "text")], ["d1", 2, None], {"label": ["x"]}, {"question": {"text": "Who?"}}, "x" * 5000),
]
NESTED = [form for form in FORMS.values() if form.nested]
FURTHER = {
    "ragas": {"retrieved_context_ids": ["d1"], "reference_contexts": ["by Ann"], "reference_context_ids": ["d1"]},
    "expected": {"titles": {"d1": "A"}, "answers": ["Ann"]},
    "chroma": {"distances": [[0.5]], "metadatas": [[{"a": 1}]]},
    "mlflow": {"spans": [{"attributes": {"mlflow.spanType": "RETRIEVER", "mlflow.spanOutputs": "[]"}}]},
    "promptfoo": {"namedScores": {"a": 1}, "response": {"output": "Ann", "metadata": {"context": ["by Ann"]}}},
    "llamaindex": {"metric_dict": {"mrr": {"score": 1.0}}},
    "dpr": {"answer": "Ann", "id": "q1"},
    "inspect_ai": {
        "samples": [
            {
                "id": 1,
                "epoch": 1,
                "input": [{"role": "user", "content": [{"type": "text", "text": "Who?"}]}],
                "target": ["Ann"],
                "output": {"completion": "Ann"},
                "metadata": {"contexts": ["by Ann"]},
            }
        ]
    },
    "lm_eval": {
        "arguments": {f"gen_args_{n}": {"arg_0": "Who?", "arg_1": text} for n, text in enumerate((" Ann", " Bob"))},
        "filtered_resps": [["-1.5", "True"], [-2.0, False]],
        "acc": 1.0,
    },
    "elasticsearch": {"timed_out": False, "_shards": {"failed": 0}},
}


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value inside of a record."""
    if here:
        yield here
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield from places(member, (*here, name))


def with_odd(record: dict[str, Any], place: tuple[Any, ...], odd: Any) -> dict[str, Any]:
    """Return a record with another value in one place."""
    changed: Any = copy.deepcopy(record)
    held = changed
    for name in place[:-1]:
        held = held[name]
    held[place[-1]] = odd
    return dict(changed)


def records_in(form: Any, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records that stand inside of an object; none of one that is refused."""
    rows = [row for place in form.rows for row in rows_at(record, place)] or [record]
    if form.each is None:
        return rows
    try:
        return [part for row in rows for part in form.each(row)]
    except ValueError:
        return []


def read_all(form: Any, record: dict[str, Any], file_format: str) -> int:
    """Read every kind that a form may hold; return how many were refused."""
    refused = 0
    for kind in form.holds:
        source = Source(None, file_format, DECLARED[kind].names, kind)
        try:
            origin, rows = inside(form, source, iter([DataRecord(1, record)]), kind)
            if kind in ("run", "qrels"):
                rows_of(origin, rows, DECLARED[kind].number)
            elif kind == "query":
                queries_of(origin, rows)
            elif kind == "doc":
                docs_of(origin, rows)
            else:
                for row in rows:
                    origin.get(row, "id")
        except JudgekitError:
            refused += 1
    return refused


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "frame"])
def test_odd_values_are_read_or_refused_with_a_sentence(file_format: str) -> None:
    rng = random.Random(20261129)
    tried = refused = 0
    records = {form.name: {**json.loads(form.example), **FURTHER.get(form.name, {})} for form in NESTED}
    ways = {name: [*places(record)] for name, record in records.items()}
    while tried < 3400:
        form = rng.choice(NESTED)
        record = with_odd(records[form.name], rng.choice(ways[form.name]), rng.choice(ODD))
        if rng.random() < 0.3:
            place = rng.choice([*places(record)])
            record = with_odd(record, place, rng.choice(ODD))
        nested_form([DataRecord(1, record)])
        held = records_in(form, record)
        for inner in held:
            if form.taken is not None:
                form.taken(inner)
            if form.narrows is not None and form.marks(inner):
                form.narrows(inner)
        refused += not held or sum(read_all(form, inner, file_format) for inner in held) > 0
        tried += 1
    assert 0.1 * tried < refused < tried


IN_PYTHON: list[Any] = [
    *(
        pd.NA,
        pd.NaT,
        np.float32("nan"),
        np.inf,
        np.int64(7),
        np.float32(0.5),
        np.bool_(True),
        np.str_("d9"),
        np.array(5),
    ),
    *(
        np.array([]),
        np.array(["a"]),
        np.array([[1, 2], [3, 4]]),
        np.datetime64("2020-01-01"),
        datetime.date(2020, 1, 1),
    ),
    *(
        Decimal("1.5"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Fraction(1, 3),
        1j,
        b"d1",
        set(),
        frozenset({"a"}),
        (),
        ("a", 1),
    ),
    *(object(), range(3), int, ..., pd.Series([1, 2]), pd.DataFrame({"a": [1]}), pd.Categorical(["a"]), pa.scalar(1)),
    *({"d1": {"d2": 1}}, {1: 2}, {None: 1}, [["a", "b", 1]], [{"id": "d1", "text": "t"}], {"hits": [{"id": "d1"}]}),
    *("0x1", "1_000", "1,5", "nan", "NaN", "inf", "NA", "\ufeff", "\u2028", "a\0b", "\udc80", "a b", "7.0", "x" * 9000),
]
"""What tables and objects hold beside what JSON can."""
PLAIN: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "run": (
        as_runs,
        {"query_id": "q1", "doc_id": "d1", "score": 2.0},
        {"query_id": "q2", "doc_id": "d2", "score": 1.0},
    ),
    "ranks": (as_runs, {"query_id": "q1", "doc_id": "d1", "rank": 1}, {"query_id": "q2", "doc_id": "d2", "rank": 1}),
    "qrels": (
        as_labelings,
        {"query_id": "q1", "doc_id": "d1", "relevance": 1},
        {"query_id": "q2", "doc_id": "d2", "relevance": 0},
    ),
    "queries": (as_queries, {"query_id": "q1", "text": "Who?", "answers": ["a"]}, {"query_id": "q2", "text": "What?"}),
    "docs": (as_docs, {"doc_id": "d1", "text": "t", "title": "x", "page_id": "p"}, {"doc_id": "d2", "text": "u"}),
}


def ways(row: dict[str, Any], other: dict[str, Any]) -> Iterator[Any]:
    """Yield two rows as people hold them: as dictionaries and as columns of objects."""
    yield [row, other]
    yield pd.DataFrame({name: pd.Series([row[name], other.get(name)], dtype=object) for name in row})


@pytest.mark.parametrize("kind", PLAIN)
def test_odd_values_of_objects_are_read_whole_or_refused_with_a_sentence(kind: str) -> None:
    take, row, other = PLAIN[kind]
    tried = refused = 0
    for value in (*ODD, *IN_PYTHON):
        given = [way for name in row for way in ways({**row, name: value}, other)]
        for rows in given:
            tried += 1
            try:
                found = take(rows)
            except JudgekitError:
                refused += 1
                continue
            held = found[0] if isinstance(found, list) else found
            assert len(held) == 2, f"{value!r:.80}: a row was lost"
        for whole in (value, [value], {"a": value}, {"q1": {"d1": value, "d2": 1}}):
            tried += 1
            with suppress(JudgekitError):
                take(whole)
    assert tried > 500
    assert refused > 0.2 * tried


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "x" * 9000, "q1 Q0 d1 1 2 t\n" * 400])
@pytest.mark.parametrize("take", [as_runs, as_labelings, as_queries, as_docs])
def test_texts_that_are_no_names_of_files_are_refused(take: Any, name: str) -> None:
    with pytest.raises(JudgekitError, match=r"is not the name of a file.*; expected"):
        take(name)


def test_parts_of_parquet_with_other_columns_are_refused_by_what_they_lack(tmp_path: Path) -> None:
    pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"query_id": ["q"], "doc_id": ["e"], "points": [1.0]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(JudgekitError, match="some passages of this file have a 'score' and others do not"):
        as_runs(tmp_path)
