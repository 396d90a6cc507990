"""A user's own application behind an endpoint: a function of any kind; same limits, retries and store."""

import re
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import judgekit as jk
from judgekit.errors import ConfigError

QUERIES = {"q1": {"text": "Where?", "answers": ["Rome"]}, "q2": {"text": "When?", "answers": ["1789"]}}
DATA: dict[str, Any] = {
    "queries": QUERIES,
    "docs": {"d1": {"text": "In Rome.", "title": "Place"}, "d2": "In 1789."},
    "runs": {"r": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}},
    "depths": 2,
    "metrics": "em",
}


def asked(endpoint: jk.Endpoint, tmp_path: Path, **more: Any) -> dict[str, tuple[str, str]]:
    table = jk.answer(**DATA | more, endpoints=endpoint, asking=jk.Asking(cache=tmp_path / "cache"))
    return {row["query_id"]: (row["answer"], row["status"]) for row in table.to_dict("records")}


def last_word(question: str, documents: list[dict[str, str]]) -> str:
    return documents[0]["text"].removesuffix(".").split()[-1] + "</s>"


async def last_word_later(question: str, documents: list[dict[str, str]]) -> dict[str, Any]:
    return {"answer": last_word(question, documents), "usage": {"prompt_tokens": 7, "completion_tokens": 1}}


@pytest.mark.parametrize("function", [last_word, last_word_later])
def test_functions_answer_and_lose_leaked_tokens_as_models_do(function, tmp_path):
    endpoint = jk.Endpoint("app", target=function, model="inside")
    assert asked(endpoint, tmp_path) == {"q1": ("Rome", "ok"), "q2": ("1789", "ok")}


def test_what_a_function_gets_is_the_question_and_the_documents_in_order(tmp_path):
    got: list[tuple[str, Any]] = []

    def keep(question, documents):
        got.append((question, documents))
        return "x"

    asked(jk.Endpoint("app", target=keep), tmp_path)
    first = {"doc_id": "d1", "title": "Place", "text": "In Rome."}
    second = {"doc_id": "d2", "title": "", "text": "In 1789."}
    assert sorted(got) == [("When?", [second]), ("Where?", [first, second])]


def test_an_application_that_lacks_a_key_of_its_own_is_tried_again_and_no_setting_here_is_blamed(tmp_path):
    tries: list[str] = []

    def locked(question, documents):
        tries.append(question)
        raise RuntimeError("401: invalid api key for my database")

    found = asked(jk.Endpoint("app", target=locked, max_retries=1), tmp_path)
    assert {status for _, status in found.values()} == {"failed"}
    assert len(tries) == 4


def test_what_may_pass_is_tried_again_and_a_mistake_is_not(tmp_path):
    tries: list[str] = []

    def shaky(question, documents):
        tries.append(question)
        if question == "When?":
            raise KeyError("documents")
        if len(tries) < 4:
            raise ConnectionError("gone")
        return "Rome"

    endpoint = jk.Endpoint("app", target=shaky, concurrency=1)
    assert asked(endpoint, tmp_path) == {"q1": ("Rome", "ok"), "q2": ("", "failed")}
    assert tries.count("When?") == 1
    table = jk.answer(**DATA, endpoints=endpoint, asking=jk.Asking(cache=tmp_path / "other"))
    (reason,) = table.loc[table["status"] == "failed", "reason"]
    assert re.search(r"KeyError: 'documents' \(test_applications\.py, line \d+\)", reason)


def leaves(question: str, documents: list[dict[str, str]]) -> Any:
    raise SystemExit(3) if question == "Where?" else KeyboardInterrupt


def test_a_function_runs_in_threads_as_many_at_a_time_as_declared_and_gets_further_columns(tmp_path):
    active, most, got, lock = 0, 0, [], threading.Lock()

    def slow(question, documents):
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
            got.append(documents)
        time.sleep(0.05)
        with lock:
            active -= 1
        return {"answer": "x", "model": "inside"}

    queries = {f"q{i}": {"text": f"What is {i}?"} for i in range(9)}
    runs = {"r": {query: {"d1": 1.0} for query in queries}}
    about = {"queries": queries, "runs": runs, "docs": [{"doc_id": "d1", "text": "In Rome.", "page": "7"}]}
    endpoint = jk.Endpoint("app", target=slow, concurrency=3)
    table = jk.answer(**DATA | about, endpoints=endpoint, asking=jk.Asking(cache=tmp_path / "cache"))
    assert most == 3
    assert all(documents == [{"doc_id": "d1", "title": "", "text": "In Rome.", "page": "7"}] for documents in got)
    assert set(table["reply_model"]) == {"inside"}


@pytest.mark.parametrize(
    ("function", "reason"),
    [(leaves, "it ended its thread, as SystemExit does"), (lambda question, docs: docs, "an answer is a text")],
)
def test_a_function_that_ends_the_program_or_returns_no_text_fails_its_question(function, reason, tmp_path):
    endpoint = jk.Endpoint("app", target=function, revision="1", max_retries=0)
    table = jk.answer(**DATA, endpoints=endpoint, asking=jk.Asking(cache=tmp_path))
    assert set(table["status"]) == {"failed"}
    assert reason in table["reason"][0]


def test_what_a_functions_own_client_was_answered_says_whether_it_is_tried_again(tmp_path):
    tries: list[str] = []

    def answer(question, documents):
        tries.append(question)
        request = httpx.Request("POST", "http://app.example/ask")
        said = httpx.Response(503 if len(tries) == 1 else 200, json={"answer": "Rome"}, request=request)
        return said.raise_for_status().json()

    answers = asked(jk.Endpoint("app", target=answer, concurrency=1), tmp_path)
    assert set(answers.values()) == {("Rome", "ok")}
    assert len(tries) == 3


def test_the_code_is_part_of_the_identity_unless_a_revision_stands_for_it(tmp_path):
    path = tmp_path / "my_app.py"
    identities = []
    for text in ("def answer(q, d): return 'a'", "def answer(q, d): return 'b'"):
        path.write_text(text)
        for revision in (None, "1"):
            made = jk.Endpoint("app", target=f"{path}:answer", revision=revision)
            identities.append(made.identity)
    assert identities[0] != identities[2]
    assert identities[1] == identities[3] == "callable:my_app.py:answer (revision 1)"
    with pytest.raises(ConfigError, match="its code cannot be read"):
        jk.Endpoint("app", target=print)
