"""What holds a model to its form goes beside a request: it is sent where a server takes it, and is no part of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.reading.asker import Asker, next_wave
from judgekit.reading.prompts import Prompt, load_prompt
from judgekit.reading.verdict import Verdict
from judgekit.wire.constraints import unconstrained
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import CONSTRAINTS, Endpoint, Outcome, Reply, Request
from tests.programs import collect
from tests.scripted import Scripted, ScriptedTransport, completion, error

ENDPOINT = Endpoint("here", "http://server.example/v1", "m")
BINARY = load_prompt("binary")
HELD = {"choice": ["Yes", "No"]}
VALUES = {"question": "q", "passages": "p"}


class Judging:
    def __init__(self, endpoint: Endpoint, prompt: Prompt = BINARY) -> None:
        self.asker = Asker(endpoint, prompt)

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        return [] if replies else [self.asker.request({"question": unit, "passages": "p"})]


class Twice(Judging):
    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        values = {"question": unit, "passages": "p"}
        return next_wave([(self.asker, 0)], lambda: [values], replies)


def ask(
    script: Callable[[dict[str, Any]], Scripted | str], store: Path, endpoint: Endpoint = ENDPOINT
) -> tuple[list[Any], Session, list[dict[str, Any]]]:
    transport = ScriptedTransport(script)
    program = Judging(endpoint)
    with Session(store, transports=lambda _: transport, backoff_s=0.001) as session:
        found = run_sync(collect(session, [f"u{i}" for i in range(8)], program))
    verdicts = [program.asker.stated(outcome) for (outcome,) in found.values()]
    labels = [verdict.value if isinstance(verdict, Verdict) else None for verdict in verdicts]
    return labels, session, transport.sent


def test_a_server_that_honours_it_is_sent_it_and_the_store_counts_for_both(tmp_path: Path) -> None:
    labels, session, sent = ask(lambda body: body["structured_outputs"]["choice"][0], tmp_path)
    assert labels == [1] * 8
    assert [body["structured_outputs"] for body in sent] == [HELD] * 8
    assert session.notes == []
    for endpoint in (ENDPOINT, replace(ENDPOINT, thinks=True)):
        labels, _, sent = ask(lambda body: pytest.fail("it was paid for"), tmp_path, endpoint)
        assert (labels, sent) == ([1] * 8, [])


REFUSALS = {
    "named": error(400, "Unrecognized request argument supplied: structured_outputs"),
    "not understood": error(400, "bad request"),
    "other field": error(422, "Extra inputs are not permitted"),
    "broken": error(500, "KeyError"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_that_does_not_take_it_is_asked_without(refusal: str, tmp_path: Path) -> None:
    labels, session, sent = ask(lambda body: REFUSALS[refusal] if "structured_outputs" in body else "No", tmp_path)
    assert labels == [0] * 8
    assert len(session.notes) == 1
    assert sum("structured_outputs" not in body for body in sent) == 8
    assert len(sent) <= 8 + ENDPOINT.concurrency


def test_what_was_rejected_for_another_reason_is_held_to_its_form_again(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Scripted | str:
        return error(400, "the context length is exceeded") if "u0\n" in body["messages"][0]["content"] else "No"

    labels, session, _ = ask(script, tmp_path, replace(ENDPOINT, concurrency=1))
    assert labels.count(0) == 7
    learned, body = session.learned(replace(ENDPOINT, concurrency=1)), b'{"messages":[]}'
    assert b"structured_outputs" in learned.apply(body, {"structured_outputs": HELD})


def test_as_first_asked_the_form_is_all_of_it_and_asked_again_the_verdict_alone() -> None:
    def keys(request: Request) -> set[str]:
        return set(request.constraint["response_format"]["json_schema"]["schema"]["properties"])

    asker = Asker(ENDPOINT, replace(load_prompt("graded-json"), params={}))
    reply = Reply("k", '{"choices": [{"message": {"content": "Hm."}, "finish_reason": "stop"}]}')
    assert keys(asker.request(VALUES)) == {"reason", "score"}
    assert keys(asker.again(VALUES, reply)) == {"score"}


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_it_has_the_shape_of_the_api(api: Literal["chat", "completions"]) -> None:
    prompt = replace(load_prompt("graded-json"), params={})
    request = Asker(replace(ENDPOINT, api=api), prompt).request(VALUES)
    assert set(request.constraint) == {"response_format"}
    assert "response_format" not in json.loads(request.body)


@pytest.mark.parametrize("own", [{"thinks": True}, {"params": {"grammar": "x"}}, {"params": {"logprobs": True}}])
def test_nothing_goes_beside_reasoning_probabilities_or_a_constraint_of_ones_own(own: dict[str, Any]) -> None:
    held = [Asker(each, BINARY).request(VALUES).constraint for each in (ENDPOINT, replace(ENDPOINT, **own))]
    assert held == [{"structured_outputs": HELD}, {}]


BLANKS = {
    "cut": completion('{"reason": "x", "score":' + " \n" * 60, finish_reason="length"),
    "empty": completion(""),
    "blank": completion(" \n" * 60),
}


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("name", ["graded-json", "binary"])
def test_what_a_constraint_made_blank_is_asked_again_without_it(name: str, blank: str, tmp_path: Path) -> None:
    good = '{"reason": "x", "score": 3}' if name == "graded-json" else "Yes"

    def script(body: dict[str, Any]) -> Scripted | str:
        return BLANKS[blank] if CONSTRAINTS & body.keys() else good

    transport, program = ScriptedTransport(script), Twice(ENDPOINT, load_prompt(name))
    with Session(tmp_path, transports=lambda _: transport, backoff_s=0.001) as session:
        found = run_sync(collect(session, ["u0", "u1"], program))
    verdicts = [program.asker.stated(outcomes[-1]) for outcomes in found.values()]
    assert [verdict.value for verdict in verdicts if isinstance(verdict, Verdict)] == [3 if name != "binary" else 1] * 2
    assert [bool(CONSTRAINTS & body.keys()) for body in transport.sent].count(True) == 2
    assert len(transport.sent) == 4


def test_the_identity_of_what_is_asked_again_stays() -> None:
    cut = Reply("k", '{"choices": [{"message": {"content": "{"}, "finish_reason": "length"}]}')
    again = Asker(ENDPOINT, load_prompt("graded-json")).again(VALUES, cut)
    assert again.free
    assert again.constraint == {}
    fields = json.loads(again.body)
    assert (fields["max_tokens"], "response_format" in fields) == (8 * 512, True)
    assert unconstrained(again.body) == canonical({k: v for k, v in fields.items() if k != "response_format"})
    assert unconstrained(b'{"a":1}') == b'{"a":1}'
    free = b'{"response_format":{"type":"text"}}'
    assert unconstrained(free) == free, "text holds a reply to no form, and says that none is wanted"
    assert unconstrained(b'{"grammar":"g","response_format":{"type":"text"}}') == free


def test_an_answer_keeps_the_constraint_of_its_user() -> None:
    own = replace(ENDPOINT, params={"response_format": {"type": "json_object"}})
    cut = Reply("k", '{"choices": [{"message": {"content": "{"}, "finish_reason": "length"}]}')
    assert not Asker(own, load_prompt("answer-short")).again(VALUES, cut).free
    assert Asker(own, BINARY).again(VALUES, cut).free
