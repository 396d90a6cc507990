"""Ten thousand odd values in nested forms: each is read, or refused with a sentence; none ends in a traceback."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from judgekit.data.fields import DECLARED, Source, docs_of, queries_of, rows_of
from judgekit.data.forms import inside, nested_form
from judgekit.data.forms.own import FORMS
from judgekit.data.forms.tool import rows_at
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
