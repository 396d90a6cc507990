"""Exports of tools that judgekit does not know: what is proposed, and that it reads them where it is followed."""

import json

import pandas as pd
import pytest

from judgekit.data.files import read_table
from judgekit.data.proposed import proposed
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import recognise
from judgekit.data.tables import ANSWERS
from judgekit.data.trec import read_run
from judgekit.errors import DataError

TEXTS = ["Built by Ann.", "Built in 1912."]
OBJECTS = [{"id": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
STORED = [{"key": f"d{number}", "payload": {"text": text}} for number, text in enumerate(TEXTS)]
MESSAGES = [{"role": "assistant", "content": "Ann"}]

RECORDS = {
    "plain": (
        {"input": "Who?", "output": "Ann", "expected": "Ann B.", "retrieved_docs": TEXTS},
        "rag(question=input,answer=output,reference=expected,contexts=retrieved_docs)",
    ),
    "nested": (
        {"case": {"query": "Who?", "groundTruth": "Ann B."}, "result": {"response": "Ann", "hits": OBJECTS}},
        "rag(question=case.query,answer=result.response,reference=case.groundTruth,contexts=result.hits)",
    ),
    "names of a question that speak of a reference": (
        {"reference_question": "Who?", "reference_answer": "Ann B.", "llm_answer": "Ann", "llm_context": TEXTS},
        "rag(question=reference_question,answer=llm_answer,reference=reference_answer,contexts=llm_context)",
    ),
    "payloads": (
        {"asked": "Who?", "found": STORED, "response": "Ann"},
        "rag(question=asked,answer=response,contexts=found[].payload)",
    ),
    "messages": (
        {"prompt": [{"role": "user", "content": "Who?"}], "output": MESSAGES, "ideal": ["Ann B."]},
        "rag(question=prompt[].content,answer=output[].content,reference=ideal)",
    ),
    "gold passages": (
        {"question": "Who?", "prediction": "Ann", "gold_passages": TEXTS, "chunks": OBJECTS},
        "rag(question=question,answer=prediction,contexts=chunks,gold=gold_passages)",
    ),
    "texts in cells": (
        {"asked": "Who?", "output": str({"answer": "Ann", "context": TEXTS})},
        "rag(question=asked,answer=output.answer,contexts=output.context)",
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_parts_are_proposed_by_their_names_and_contents(name):
    record, spelled = RECORDS[name]
    assert proposed(record) == [spelled]


@pytest.mark.parametrize(
    "record",
    [
        {"question": "Who?"},
        {"output": "Ann", "contexts": TEXTS},
        {"question_type": "simple", "answer_relevancy": "high", "prompt_tokens": "12"},
        {"question": "Who?", "numbers": [1, 2], "mixed": ["a b", 1], "empty": []},
    ],
    ids=["a question alone", "no question", "facts about questions and answers", "other lists"],
)
def test_nothing_is_proposed_where_too_little_tells(record):
    assert proposed(record) == []


def test_where_either_text_may_be_the_applications_both_ways_are_proposed():
    assert proposed({"question": "Who?", "answer": "Ann B.", "docs": OBJECTS, "output": "Ann"}) == [
        "rag(question=question,answer=answer,contexts=docs,reference=output)",
        "rag(question=question,answer=output,contexts=docs,reference=answer)",
    ]


def test_of_several_applications_in_a_row_each_is_proposed():
    """As in Opik's comparison of experiments."""
    row = {"dataset.question": "Who?", "dataset.expected": "Ann B.", "base.output": "Ann", "new.output": "Bob"}
    assert proposed(row) == [
        f"rag(question=dataset.question,answer={run}.output,reference=dataset.expected)" for run in ("base", "new")
    ]


@pytest.mark.parametrize("name", ["matches", "chunks", "data"])
def test_passages_without_their_question_are_refused_with_what_to_write(name, tmp_path):
    path = tmp_path / "found.jsonl"
    path.write_text(json.dumps({name: STORED, "usage": 3}) + "\n")
    assert "nothing says what was asked" in recognise(path).why
    path.write_text(json.dumps({"query_id": "q1", "question": "Who?", name: STORED, "usage": 3}) + "\n")
    spelled = f"rag(question=question,contexts={name}[].payload):{path}"
    assert {*recognise(spelled).kinds} == {"query", "doc", "run"}


def test_turns_of_a_conversation_are_no_passages(tmp_path):
    """As in the results of an evaluation by Bedrock."""
    path = tmp_path / "output.jsonl"
    turn = {"inputRecord": {"prompt": {"content": [{"text": "Who?"}]}}, "output": {"text": "Ann"}}
    path.write_text(json.dumps({"conversationTurns": [turn]}) + "\n")
    assert "an object whose 'conversationTurns' lists records (inputRecord, output)" in recognise(path).why


def _wrapped(rows):
    return {"version": 3, "totals": {"mean": 0.5}, "rows": rows}


WRITTEN = {
    "json": lambda rows: json.dumps(rows),
    "jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "csv": lambda rows: pd.DataFrame(rows).to_csv(index=False),
    "wrapped.json": lambda rows: json.dumps(_wrapped(rows), indent=1),
    "deep.json": lambda rows: json.dumps({"report": _wrapped(rows)}),
}


@pytest.mark.parametrize("ending", WRITTEN)
def test_a_proposal_that_is_followed_reads_questions_passages_runs_and_answers(ending, tmp_path):
    rows = [
        {"case": {"asked": f"Who built {number}?", "truth": "Ann B."}, "reply": {"response": "Ann", "docs": OBJECTS}}
        for number in range(2)
    ]
    path = tmp_path / f"export.{ending}"
    path.write_text(WRITTEN[ending](rows))
    found = recognise(path)
    assert not found.kinds
    assert f"{found.proposed}:{path}" in found.why
    spelled = f"{found.proposed}:{path}"
    assert {*recognise(spelled).kinds} == {"query", "doc", "run", "answer"}
    assert [query.text for query in read_queries(spelled).values()] == ["Who built 0?", "Who built 1?"]
    assert {query.answers for query in read_queries(spelled).values()} == {("Ann B.",)}
    assert sorted(doc.text for doc in read_docs(spelled)) == TEXTS
    assert [read_run(spelled).top(query) for query in read_queries(spelled)] == [["d0", "d1"]] * 2
    assert [*read_table(ANSWERS, spelled)["answer"]] == ["Ann", "Ann"]


def test_places_join_ids_runs_and_gold_passages(tmp_path):
    path = tmp_path / "export.jsonl"
    record = {"no": 7, "q": "Who?", "hits": STORED, "said": "Ann", "right": ["d1"], "meta": {"app": "dense"}}
    path.write_text(json.dumps(record) + "\n")
    parts = "id=no,question=q,contexts=hits[].payload,context_ids=hits[].key,gold_ids=right,answer=said,run=meta.app"
    spelled = f"rag({parts}):{path}"
    assert {*recognise(spelled).kinds} == {"query", "doc", "run", "qrels", "answer"}
    assert [*read_queries(spelled)] == ["7"]
    assert read_run(spelled).top("7") == ["d0", "d1"]
    assert read_table(ANSWERS, spelled).to_dict("records") == [{"query_id": "7", "answer": "Ann", "run": "dense"}]


def test_a_column_that_is_named_for_one_part_is_not_taken_for_another(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps({"question": "Who?", "answer": "Ann B.", "chunks": TEXTS}) + "\n")
    found = recognise(f"rag(reference=answer,contexts=chunks):{path}")
    assert {*found.kinds} == {"query", "doc", "run"}
    assert [query.answers for query in read_queries(f"rag(reference=answer):{path}").values()] == [("Ann B.",)]


@pytest.mark.parametrize("spelled", ["rag(answer=output.txt)", "rag(rows=items,answer=output.text)"])
def test_a_place_that_no_record_has_is_named(spelled, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"question": "Who?", "output": {"text": "Ann"}}]))
    if "rows" in spelled:
        assert recognise(f"{spelled}:{path}").why == "holds no list of objects at 'items'; it has: question, output"
        return
    with pytest.raises(DataError, match=r"unknown place 'output\.txt': choose from question, output\.text"):
        recognise(f"{spelled}:{path}")


def test_known_tools_take_places_too(tmp_path):
    """Users choose the names of what LangSmith calls inputs and outputs."""
    path = tmp_path / "export.jsonl"
    row = {"example_id": "e1", "id": "r1", "error": None, "inputs.a": "Who?", "inputs.b": "de", "outputs.x": "Ann"}
    path.write_text(json.dumps(row) + "\n")
    (query,) = read_queries(f"langsmith(question=inputs.a):{path}").values()
    assert (query.query_id, query.text) == ("e1", "Who?")
