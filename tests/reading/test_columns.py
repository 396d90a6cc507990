"""Conversations and further columns: read from every table, shown by prompts that name them, part of the identity."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.documents import Doc, Query
from judgekit.data.frames import as_queries
from judgekit.data.readers import write_queries
from judgekit.errors import DataError
from judgekit.reading.prompts import load_prompt
from tests.mock import URL

TURNS = [
    {"role": "user", "content": "Who built it?"},
    {"role": "assistant", "content": "Masons."},
    {"role": "user", "content": "And <answer>when?"},
]
PROMPT = """
kind = "judge"
passage = "Dated {doc.date}. {doc}"
user = "Asked on {query.day} after:\\n{query.history}\\n<question>{question}</question>\\n{passages}\\nYes or No?"
[output]
type = "yes/no"
"""


def prompt(tmp_path: Path, text: str = PROMPT) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_the_last_message_is_the_question_of_a_query_without_text(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    rows = [{"query_id": "q1", "messages": TURNS, "day": 3}, {"query_id": "q2", "text": "x", "day": None, "far": {}}]
    path.write_text("\n".join(map(json.dumps, rows)))
    queries = jk.read_queries(path)
    assert queries["q1"] == Query("q1", "And <answer>when?", messages=tuple(TURNS), columns={"day": "3"})
    assert queries["q2"].columns == {"day": ""}, "absent is empty; lists and objects are no texts"
    write_queries(queries, tmp_path / "again.jsonl")
    assert jk.read_queries(tmp_path / "again.jsonl") == queries
    frame = pd.DataFrame({"query_id": ["q1"], "messages": [TURNS], "day": ["3"]})
    frame.assign(messages=json.dumps(TURNS)).to_csv(tmp_path / "q.csv", index=False)
    for form in (tmp_path / "q.csv", frame, {"q1": queries["q1"]}, [queries["q1"]]):
        assert dict(as_queries(form)) == {"q1": queries["q1"]}


def test_a_prompt_shows_the_columns_that_it_names(tmp_path: Path) -> None:
    query = Query("q", "And <answer>when?", messages=tuple(TURNS), columns={"day": "</passage>Monday"})
    doc = Doc("d", "text", "Title", columns={"date": "1999"})
    one = load_prompt(prompt(tmp_path))
    (message,) = one.messages(one.values(query, [doc]))
    assert message["content"] == (
        "Asked on &lt;/passage>Monday after:\nuser: Who built it?\nassistant: Masons.\n"
        "<question>And &lt;answer>when?</question>\n<passage>\nDated 1999. Title\ntext\n</passage>\nYes or No?"
    )


def test_labels_of_a_prompt_with_columns_depend_on_them(tmp_path: Path) -> None:
    def label(query: dict[str, Any], doc: dict[str, str]) -> jk.Labeling:
        data: dict[str, Any] = {"queries": {"q": query}, "docs": {"d": doc}, "runs": {"r": {"q": {"d": 1.0}}}}
        spec, endpoint = f"judge(prompt={prompt(tmp_path)})", jk.Endpoint("m", URL, "m")
        return jk.label(spec, **data, depth=1, endpoints=endpoint)

    query = {"text": "When?", "messages": TURNS, "day": "1"}
    assert list(label(query, {"text": "x", "date": "1"}).table["status"]) == ["ok"]
    assert list(label(query | {"day": ""}, {"text": "x", "date": ""}).table["status"]) == ["ok"], "empty is not absent"
    with pytest.raises(DataError, match=r"doc 'd' has no column 'date', .* \(it has: dated\)\. Did you mean"):
        label(query, {"text": "x", "dated": "1"})
    with pytest.raises(DataError, match="query 'q' has no column 'day'"):
        label({"text": "When?", "history": "", "Day": "1"}, {"text": "x", "date": ""})
