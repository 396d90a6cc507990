"""Completions ask the same with the same prompts, in their own shape, and are read to the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.answers.answerer import make_answerer
from judgekit.client.sync import run_sync
from judgekit.data.documents import Unit
from judgekit.labelers.base import build
from judgekit.plugins.batch.files import export_batch
from judgekit.reading.asker import Asker
from judgekit.reading.check import check_endpoint
from judgekit.reading.prompts import load_prompt
from judgekit.store.maintenance import find
from judgekit.store.replies import Store
from judgekit.wire.quirks import Accepted, Retry, read_response
from judgekit.wire.shapes import APIS, ROUTES, SHOWN
from judgekit.wire.types import Endpoint, Reply, Request, chat, identity
from tests.labelers.scripted import DOC, OTHER, PARIS, Here
from tests.mock import URL, MockTransport
from tests.scripted import Scripted, ScriptedTransport, error
from tests.servers import FaultServer

PROBABLE = {"logprobs": True, "top_logprobs": 20}
VALUES = {"question": "Where?", "passages": "<passage>\nHere.\n</passage>"}
DATA = {
    "queries": {"q1": "What is the capital of France?", "q2": "Who wrote Emma, the novel?"},
    "docs": {"d1": "Paris is the capital of France.", "d2": "Emma, the novel, was written by Jane Austen in 1815."},
    "runs": {"a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 2.0, "d1": 1.0}}},
}


def at(api: str, **more: Any) -> Endpoint:
    return Endpoint("e", "http://e/v1", "m", api=api, **more)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(request.body)
    return parsed


def test_the_same_prompt_is_another_request_in_each_api_and_chat_asks_what_it_always_asked() -> None:
    asked = {api: Asker(at(api), load_prompt("binary")).request(VALUES) for api in APIS}
    assert len({request.key for request in asked.values()}) == 2
    plain = chat(
        Endpoint("e", "http://e/v1", "m"), load_prompt("binary").messages(VALUES), max_tokens=256, temperature=0
    )
    assert asked["chat"].key == plain.key
    assert [request.key[:16] for request in asked.values()] == GOLDEN


GOLDEN = ["1f3a325b6fcc6fb6", "bd66eaac7fe5e5aa"]
"""Frozen as those of tests/reading/test_identities.py are: another identity loses what was paid for."""


def test_a_base_model_gets_one_text_with_a_cue_and_ends_where_its_reply_ends() -> None:
    told = body(Asker(at("completions"), load_prompt("binary")).request(VALUES))
    user = load_prompt("binary").messages(VALUES)[-1]["content"]
    assert told["prompt"] == f"{user}\n\nReply:"
    assert (told["max_tokens"], told["temperature"], told["stop"]) == (256, 0, ["\n"])
    assert body(Asker(at("completions"), load_prompt("graded")).request(VALUES))["stop"] == ["\n\n"]
    assert body(Asker(at("completions"), load_prompt("binary"), PROBABLE).request(VALUES))["logprobs"] == 5
    mine = at("completions", params={"stop": ["###"], "max_tokens": 9})
    assert body(Asker(mine, load_prompt("binary")).request(VALUES))["stop"] == ["###"]


def test_what_is_no_verdict_is_asked_again_in_the_next_turn() -> None:
    asker = Asker(at("completions"), load_prompt("binary"))
    reply = Reply("k", json.dumps(completed("Perhaps.")))
    assert asker.unsettled(reply)
    told = json.dumps(body(asker.again(VALUES, reply)))
    assert "Perhaps." in told
    assert asker.prompt.output.form.again[:20] in told


def completed(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None, **more}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}, "model": "m-1"}


TOP = {" Yes": -0.2231435513, " No": -1.609437912}


def test_log_probabilities_are_read_in_the_shape_of_completions() -> None:
    raw = completed(" Yes", logprobs={"tokens": [" Yes"], "token_logprobs": [TOP[" Yes"]], "top_logprobs": [TOP]})
    assert isinstance(read_response(200, {}, json.dumps(raw).encode()), Accepted)
    judge = build("judge(read=logprobs)", Here())
    unit = Unit(PARIS, (DOC,))
    (label,) = judge.label(unit, [Reply(judge.requests(unit, [])[0].key, json.dumps(raw))])
    assert label.relevance == pytest.approx(0.8)
    reply = Reply("k", json.dumps(raw))
    assert (reply.text, reply.usage, reply.origin, reply.finish_reason) == (" Yes", (7, 2), ("m-1", ""), "stop")


@pytest.mark.parametrize("raw", [{}, {"output": "x"}, {"choices": []}, {"output": []}, {"choices": 3}])
def test_what_is_no_reply_of_any_api_is_tried_again(raw: dict[str, Any]) -> None:
    assert isinstance(read_response(200, {}, json.dumps(raw).encode()), Retry)


LABELERS = (
    "judge",
    "judge(prompt=graded-json)",
    "judge(read=logprobs)",
    "utility",
)


@pytest.mark.parametrize("spec", LABELERS)
def test_labels_are_the_same_through_every_api_of_the_mock(spec: str, tmp_path: Path) -> None:
    queries = [{"query_id": q, "text": text, "answers": ["Paris"]} for q, text in DATA["queries"].items()]
    tables = {
        api: jk.label(
            spec, **{**DATA, "queries": queries}, endpoints=Endpoint("e", URL, "m", api=api), cache=tmp_path
        ).table[["query_id", "doc_id", "relevance", "status"]]  # type: ignore[arg-type]
        for api in APIS
    }
    assert tables["completions"].equals(tables["chat"])
    assert set(tables["chat"]["status"]) == {"ok"}


def mocked(asked: Mapping[str, Any], seen: int) -> Scripted:
    status, _, data = run_sync(MockTransport().send(at("chat"), json.dumps(asked).encode()))
    return Scripted(status, data)


def answered(here: Endpoint, cache: Path) -> list[str]:
    queries = [{"query_id": q, "text": text, "answers": ["Paris"]} for q, text in DATA["queries"].items()]
    table = jk.answer(**{**DATA, "queries": queries}, depths=2, endpoints=here, metrics="em", cache=cache)
    return list(table["answer"])


@pytest.mark.parametrize("transport", ["http", "openai"])
@pytest.mark.parametrize("api", APIS)
def test_answers_go_to_the_route_of_the_api_and_are_paid_for_once(
    api: str, transport: str, fault_server: FaultServer, tmp_path: Path
) -> None:
    fault_server.answer = mocked
    here = Endpoint("e", fault_server.base_url, "m", api=api, transport=transport)  # type: ignore[arg-type]
    first = answered(here, tmp_path)
    asked = len(fault_server.paths)
    assert asked == 4, "two questions, with documents and without"
    assert answered(here, tmp_path) == first
    assert len(fault_server.paths) == asked
    assert set(fault_server.paths) == {ROUTES[api]}  # type: ignore[index]
    assert all(SHOWN[api] in body for body in fault_server.seen)
    with closing(Store(tmp_path)) as store:
        assert len(find(store, query=DATA["queries"]["q1"]).replies) == 2


@pytest.mark.parametrize("api", APIS)
def test_a_batch_asks_the_route_of_the_api(api: str, tmp_path: Path) -> None:
    answerer = make_answerer(at(api), "answer-short", Here())
    with closing(Store(tmp_path / "store")) as store:
        export_batch(store, [Unit(PARIS, (DOC, OTHER))], answerer, tmp_path / "batch.jsonl")
    line = json.loads((tmp_path / "batch.jsonl").read_text())
    assert line["url"] == ROUTES[api]  # type: ignore[index]
    assert SHOWN[api] in line["body"]
    assert identity("http://e/v1", 0, json.dumps(line["body"], separators=(",", ":"), sort_keys=True).encode())


def test_a_check_tells_of_the_api_that_the_model_is_served_by() -> None:
    def base(asked: dict[str, Any]) -> Any:
        wrong = error(400, "As of v4.44, default chat template is no longer allowed")
        return Scripted(200, json.dumps(completed("Yes")).encode()) if "prompt" in asked else wrong

    found = run_sync(check_endpoint(at("chat"), ScriptedTransport(base)))
    assert [(one.name, one.works) for one in found] == [("chat completion", "no"), ("completion", "yes")]
    assert 'Use api = "completions"' in found[1].detail
    assert run_sync(check_endpoint(at("completions"), ScriptedTransport(base)))[0].works == "yes"


def test_a_run_whose_completions_all_lack_log_probabilities_is_stopped(
    fault_server: FaultServer, tmp_path: Path
) -> None:
    fault_server.answer = lambda asked, seen: Scripted(200, json.dumps(completed(" Yes")).encode())
    here = Endpoint("e", fault_server.base_url, "m", api="completions")
    many = {f"q{i}": f"Question {i}?" for i in range(12)}
    runs = {"a": {query: {"d1": 1.0} for query in many}}
    with pytest.raises(jk.JudgekitError, match="gives no log-probabilities"):
        jk.label("judge(read=logprobs)", queries=many, docs=DATA["docs"], runs=runs, endpoints=here, cache=tmp_path)


def test_what_one_api_of_a_server_refuses_another_is_sent(fault_server: FaultServer, tmp_path: Path) -> None:
    def refusing(asked: dict[str, Any], seen: int) -> Scripted:
        if "prompt" in asked and "temperature" in asked:
            return error(400, "Unsupported parameter: 'temperature'", param="temperature")
        return mocked(asked, seen)

    fault_server.answer = refusing
    url = fault_server.base_url
    base, instruct = (Endpoint(api, url, "m", api=api) for api in ("completions", "chat"))  # type: ignore[arg-type]
    jury = "judge(jury=completions+chat)"
    jk.label(
        jury, queries=DATA["queries"], docs=DATA["docs"], runs=DATA["runs"], endpoints=[base, instruct], cache=tmp_path
    )
    assert all("temperature" in asked for asked in fault_server.seen if "messages" in asked)
