"""Completions ask the same with the same prompts, in their own shape, and are read to the same verdicts."""

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

import judgekit as jk
from judgekit.answers.answerer import make_answerer
from judgekit.client.batch.files import export_batch
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.data.documents import Unit
from judgekit.labelers.base import build
from judgekit.reading.asker import Asker
from judgekit.reading.prompts import load_prompt
from judgekit.store.maintenance import find
from judgekit.store.replies import Store
from judgekit.wire.quirks import Accepted, read_response
from judgekit.wire.types import ROUTES, SHOWN, Endpoint, Reply, Request, chat, identity
from judgekit.wire.usage import Tokens
from tests.labelers.scripted import DOC, OTHER, PARIS, Here
from tests.mock import URL, MockTransport
from tests.programs import Ask, collect
from tests.scripted import Scripted, ScriptedTransport, error

PROBABLE = {"logprobs": True, "top_logprobs": 20}
VALUES = {"question": "Where?", "passages": "<passage>\nHere.\n</passage>"}
QUESTION = "What is the capital of France?"
DATA: dict[str, Any] = {
    "queries": {
        "q1": {"text": QUESTION, "answers": ["Paris"]},
        "q2": {"text": "Who wrote Emma, the novel?", "answers": ["Jane Austen"]},
    },
    "docs": {"d1": "Paris is the capital of France.", "d2": "Emma, the novel, was written by Jane Austen in 1815."},
    "runs": {"a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 2.0, "d1": 1.0}}},
}


PROMPTED = ("chat", "completions")
"""The APIs of LLMs, which are asked by prompts."""


def at(api: str, base_url: str = "http://e/v1", **more: Any) -> Endpoint:
    return Endpoint("e", base_url, "m", api=api, **more)


HERE = Endpoint("e", "http://e/v1", "m")


def body(request: Request) -> Any:
    return json.loads(request.body)


def test_the_same_prompt_is_another_request_in_each_api_and_chat_asks_what_it_always_asked():
    asked = {api: Asker(at(api), load_prompt("binary")).request(VALUES) for api in PROMPTED}
    assert len({request.key for request in asked.values()}) == 2
    assert asked["chat"].key == chat(HERE, load_prompt("binary").messages(VALUES), max_tokens=256, temperature=0).key
    assert [request.key[:16] for request in asked.values()] == GOLDEN


GOLDEN = ["1f3a325b6fcc6fb6", "bd66eaac7fe5e5aa"]
"""Frozen as those of tests/reading/test_identities.py are: another identity loses what was paid for."""


def test_a_base_model_gets_one_text_with_a_cue_and_ends_where_its_reply_ends():
    told = body(Asker(at("completions"), load_prompt("binary")).request(VALUES))
    user = load_prompt("binary").messages(VALUES)[-1]["content"]
    assert told["prompt"] == f"{user}\n\nReply:"
    assert (told["max_tokens"], told["temperature"], told["stop"]) == (256, 0, ["\n"])
    assert body(Asker(at("completions"), load_prompt("graded")).request(VALUES))["stop"] == ["\n\n"]
    assert body(Asker(at("completions"), load_prompt("binary"), PROBABLE).request(VALUES))["logprobs"] == 5
    mine = at("completions", params={"stop": ["###"], "max_tokens": 9})
    assert body(Asker(mine, load_prompt("binary")).request(VALUES))["stop"] == ["###"]


def test_what_is_no_verdict_is_asked_again_in_the_next_turn():
    asker = Asker(at("completions"), load_prompt("binary"))
    reply = Reply("k", json.dumps(completed("Perhaps.")))
    assert asker.unsettled(reply)
    told = json.dumps(body(asker.again(VALUES, reply)))
    assert "Perhaps." in told
    assert asker.prompt.output.form.again[:20] in told


def completed(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None, **more}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}, "model": "m-1"}


SAID = Scripted(200, json.dumps(completed("Yes")).encode())
TOP = {" Yes": -0.2231435513, " No": -1.609437912}


def test_log_probabilities_are_read_in_the_shape_of_completions():
    raw = completed(" Yes", logprobs={"tokens": [" Yes"], "token_logprobs": [TOP[" Yes"]], "top_logprobs": [TOP]})
    assert isinstance(read_response(200, {}, json.dumps(raw).encode()), Accepted)
    judge = build("judge(read=logprobs)", Here())
    unit = Unit(PARIS, (DOC,))
    (label,) = judge.label(unit, [Reply(judge.requests(unit, [])[0].key, json.dumps(raw))])
    assert label.relevance == pytest.approx(0.8)
    reply = Reply("k", json.dumps(raw))
    assert (reply.text, reply.usage, reply.origin, reply.finish_reason) == (" Yes", Tokens(7, 2), ("m-1", ""), "stop")


def test_log_probabilities_of_a_completion_in_the_shape_of_a_chat_are_read():
    """llama-server b10434 answers /v1/completions so."""
    tops = [{"id": i, "token": token, "logprob": p} for i, (token, p) in enumerate({" Yes": -0.3, " No": -1.5}.items())]
    raw = completed(" Yes", logprobs={"content": [{**tops[0], "top_logprobs": tops}]})
    judge = build("judge(read=logprobs)", Here())
    (label,) = judge.label(Unit(PARIS, (DOC,)), [Reply("k", json.dumps(raw))])
    assert label.relevance == pytest.approx(0.7685, abs=1e-4)


@pytest.mark.parametrize("spec", ["judge", "judge(prompt=graded-json)", "judge(read=logprobs)", "utility"])
def test_labels_are_the_same_through_every_api_of_the_mock(spec, tmp_path):
    columns = ["query_id", "doc_id", "relevance", "status"]
    chats, completions = (
        jk.label(spec, **DATA, endpoints=at(api, base_url=URL), asking=jk.Asking(cache=tmp_path)).table[columns]
        for api in PROMPTED
    )
    assert completions.equals(chats)
    assert set(chats["status"]) == {"ok"}


def mocked(asked: Mapping[str, Any], seen: int) -> Scripted:
    status, _, data = run_sync(MockTransport().send(at("chat"), json.dumps(asked).encode()))
    return Scripted(status, data)


@pytest.mark.parametrize("transport", ["http", "openai"])
@pytest.mark.parametrize("api", PROMPTED)
def test_answers_go_to_the_route_of_the_api_and_are_paid_for_once(api, transport, fault_server, tmp_path):
    fault_server.answer = mocked
    here = at(api, fault_server.base_url, transport=transport)
    tables = [
        jk.answer(**DATA, depths=[0, 2], endpoints=here, metrics="em", asking=jk.Asking(cache=tmp_path))
        for _ in range(2)
    ]
    assert tables[0]["answer"].equals(tables[1]["answer"])
    assert fault_server.paths == [ROUTES[api]] * 4, "two questions, with documents and without"
    assert all(SHOWN[api] in body for body in fault_server.seen)
    with closing(Store(tmp_path)) as store:
        assert len(find(store, query=QUESTION).replies) == 2


@pytest.mark.parametrize("api", PROMPTED)
def test_a_batch_asks_the_route_of_the_api(api, tmp_path):
    answerer = make_answerer(at(api), "answer-short", Here())
    with closing(Store(tmp_path / "store")) as store:
        export_batch(store, [Unit(PARIS, (DOC, OTHER))], answerer, tmp_path / "batch.jsonl")
    line = json.loads((tmp_path / "batch.jsonl").read_text())
    assert line["url"] == ROUTES[api]
    assert SHOWN[api] in line["body"]
    assert identity("http://e/v1", 0, json.dumps(line["body"], separators=(",", ":"), sort_keys=True).encode())


def test_what_one_api_of_a_server_refuses_another_is_sent():
    def refusing(asked):
        refused = error(400, "Unsupported parameter: 'temperature'", param="temperature")
        return "Yes" if "messages" in asked else refused if "temperature" in asked else SAID

    transport = ScriptedTransport(refusing)
    with Session(transports=lambda _: transport) as session:
        for api in ("completions", "chat"):
            run_sync(collect(session, ["a"], Ask(at(api), temperature=0)))
    assert ["temperature" in asked for asked in transport.sent] == [True, False, True]
