"""What is learned of a server from its refusals: once for the run, told once, and never at the price of a label."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.reading.asker import Asker
from judgekit.reading.prompts import load_prompt
from judgekit.reading.verdict import Verdict
from judgekit.wire.types import Endpoint, Reply, Request
from tests.programs import UNITS, Run, collect, scripted
from tests.scripted import Scripted, ScriptedTransport, completion, error

MANY = [f"unit {i:03}" for i in range(300)]
URL = "http://server.example/v1"


def limited(most: int) -> Callable[[dict[str, Any]], Scripted | str]:
    """Answer as vLLM 0.32 with ``--max-logprobs``."""

    def answer(body: dict[str, Any]) -> Scripted | str:
        asked = body.get("top_logprobs") or 0
        if asked <= most:
            return "yes"
        said = f"Requested sample logprobs of {asked}, which is greater than max allowed: {most}"
        return error(400, f"{said} (parameter=logprobs, value={asked})", param="logprobs")

    return answer


def test_fewer_alternatives_are_asked_for_once_a_server_says_how_many_it_gives():
    found, sent = scripted(limited(5), units=MANY[:7], params={"logprobs": True, "top_logprobs": 20}, concurrency=2)
    assert found.texts == ["yes"] * 7
    assert len(found.notes) == 1
    assert "log-probabilities of 5 alternatives are asked for" in found.notes[0]
    assert sum(body["top_logprobs"] == 20 for body in sent) <= 2


def test_a_number_that_leaves_no_alternative_is_not_sent_again_and_again():
    found, sent = scripted(limited(1), units=MANY, params={"logprobs": True, "top_logprobs": 20}, concurrency=4)
    assert "max allowed: 1" in found.stopped
    assert len(sent) <= 4


def test_a_value_that_a_proven_server_refuses_each_time_stops_the_run_soon(tmp_path):
    def answer(body: dict[str, Any]) -> Scripted | str:
        return (
            error(400, "temperature must be between 0 and 2", param="temperature") if "temperature" in body else "yes"
        )

    scripted(answer, tmp_path, MANY[:30])
    found, sent = scripted(answer, tmp_path, [f"hot {unit}" for unit in MANY], params={"temperature": 3}, concurrency=4)
    assert "temperature must be between 0 and 2" in found.stopped
    assert len(sent) <= 30 + 20 + 4


def tokens(body: dict[str, Any]) -> int:
    return len(body["messages"][-1]["content"]) // 4 + 10


def short_context(context: int, exact: bool) -> Callable[[dict[str, Any]], Scripted | str]:
    """Answer as vLLM does: with the tokens of the prompt, or with no more of them than make it too long."""

    def answer(body: dict[str, Any]) -> Scripted | str:
        prompt, room = tokens(body), body["max_tokens"]
        if prompt + room <= context:
            said = json.loads(completion("yes").body)
            said["usage"]["prompt_tokens"] = prompt
            return Scripted(200, json.dumps(said).encode())
        counted = f"your request has {prompt} input tokens"
        if not exact:
            counted = f"your prompt contains at least {max(1, context - room + 1)} input tokens"
        return error(400, f"This model's maximum context length is {context} tokens. You requested {room}; {counted}.")

    return answer


@pytest.mark.parametrize("exact", [True, False])
def test_a_reply_gets_the_room_that_the_context_leaves(exact: bool, tmp_path: Path):
    units = [f"{unit} {'word ' * 100}" for unit in MANY[:40]]
    settings: dict[str, Any] = {"params": {"max_tokens": 2048}, "concurrency": 4}
    found, sent = scripted(short_context(1000, exact), tmp_path, units, **settings)
    assert found.texts == ["yes"] * 40
    assert len(found.notes) == 1
    assert "has a context of 1,000 tokens" in found.notes[0]
    assert sum(body["max_tokens"] == 2048 for body in sent) <= 4, "those in flight"
    assert len(sent) <= 40 + 2 * 4
    assert min(body["max_tokens"] for body in sent) > 500, "no less than the prompt leaves"
    assert not scripted(lambda body: pytest.fail("it was paid for"), tmp_path, units, **settings)[1]


@pytest.mark.parametrize("exact", [True, False])
def test_a_prompt_that_is_too_long_itself_fails_alone(exact: bool):
    units = [*MANY[:30], "word " * 2000]
    found, sent = scripted(short_context(1000, exact), units=units, params={"max_tokens": 64}, concurrency=1)
    assert found.texts.count("yes") == 30
    assert sum("maximum context length" in text for text in found.texts) == 1
    assert len(sent) <= 30 + 3


class Judging:
    """Judges a passage, held to the form of a prompt."""

    def __init__(self, prompt: str, **options: Any) -> None:
        endpoint = Endpoint("here", URL, "m", **options)
        self.asker = Asker(endpoint, replace(load_prompt(prompt), params={}))

    def requests(self, unit: str, replies: Any, /) -> list[Request]:
        return [] if replies else [self.asker.request({"question": unit, "passages": "p"})]


def judged(
    script: Any, prompt: str = "binary", store: Path | None = None
) -> tuple[list[int | None], list[str], list[dict[str, Any]]]:
    """Return the labels, the notes and what was sent."""
    transport, program = ScriptedTransport(script), Judging(prompt, concurrency=1)
    with Session(store, transports=lambda _: transport, backoff_s=0.001) as session:
        found = run_sync(collect(session, UNITS, program))  # type: ignore[arg-type]
    labels: list[int | None] = []
    for (outcome,) in found.values():
        verdict = program.asker.stated(outcome) if isinstance(outcome, Reply) else None
        labels.append(verdict.value if isinstance(verdict, Verdict) else None)
    return labels, session.notes, transport.sent


CHATTY = "The passage may well say something about it, one could say."
WAYS = ["structured_outputs", "response_format", "regex", "grammar"]


@pytest.mark.parametrize("held", WAYS)
@pytest.mark.parametrize("rest", ["ignored", "refused"])
def test_a_model_is_held_by_the_first_way_that_its_server_honours(held: str, rest: str):
    def script(body: dict[str, Any]) -> Scripted | str:
        if held in body:
            return '"No"' if held == "response_format" else "No"
        if rest == "refused" and any(way in body for way in WAYS):
            return error(400, f"Unrecognized request argument supplied: {next(way for way in WAYS if way in body)}")
        return CHATTY

    labels, notes, sent = judged(script)
    before = WAYS.index(held)
    lost = before if rest == "ignored" else 0
    assert labels == [None] * lost + [0] * (len(UNITS) - lost)
    assert len(notes) == min(before, 2 if rest == "ignored" else 1), "the first fault, and what is settled"
    assert "".join(notes).count(rest) == before
    assert len(sent) == len(UNITS) + before - lost
    assert all(list(filter(body.__contains__, WAYS)) == [held] for body in sent[before:])


@pytest.mark.parametrize("held", ["response_format", "grammar"])
def test_an_object_is_held_by_a_schema_or_a_grammar(held: str):
    def script(body: dict[str, Any]) -> str:
        return json.dumps({"reason": "so", "score": 2}) if held in body else CHATTY

    labels, _, sent = judged(script, "graded-json")
    assert labels[1:] == [2] * (len(UNITS) - 1)
    assert held in sent[-1]


def test_a_server_that_holds_to_nothing_is_asked_for_free_text_and_that_is_told_once():
    labels, notes, sent = judged(lambda body: CHATTY)
    assert set(labels) == {None}
    assert not set(WAYS) & set(sent[-1])
    assert len(notes) == 2
    assert "".join(notes).count("ignored") == 4
    assert "free text" in notes[1]


@pytest.mark.parametrize(
    "reply",
    [
        *(completion(text, finish_reason="length") for text in ("", " ", "Ye", '"N', '"No', "Yes")),
        completion(None, message={"refusal": "I"}),
    ],
)
def test_a_reply_that_may_go_on_in_its_form_says_nothing_of_the_constraint(reply: Scripted):
    _, notes, sent = judged(reply)
    assert "structured_outputs" in sent[-1]
    assert not any("ignored" in note for note in notes)


@pytest.mark.parametrize("text", ["The passage is not relevant to the", "Yes, sin", "No.", '"The'])
def test_a_reply_that_left_its_form_before_it_was_cut_off_shows_that_the_constraint_is_ignored(text: str):
    """Small models ramble until their room is used up, so that none of their replies need be whole."""
    cut = completion(text, finish_reason="length")
    labels, notes, sent = judged(lambda body: "No" if "regex" in body else cut)
    assert labels[2:] == [0] * (len(UNITS) - 2)
    assert "regex" in sent[-1]
    assert "".join(notes).count("ignored") == 2


@pytest.mark.parametrize(("text", "left"), [('{"reason": "it', False), ("", False), ("```json", True), ("The", True)])
def test_an_object_that_was_cut_off_had_its_form(text: str, left: bool):
    _, notes, _ = judged(completion(text, finish_reason="length"), "graded-json")
    assert any("ignored" in note for note in notes) == left


def test_an_empty_reply_does_not_have_the_form():
    """llama-server ignores a list of words for completions, and base models begin their replies with the stop."""
    labels, _, sent = judged(lambda body: "Yes" if "grammar" in body else "")
    assert labels == [None] * 3 + [1] * (len(UNITS) - 3)
    assert "grammar" in sent[-1]


def test_what_is_added_changes_no_identity_and_is_stored_as_sent(tmp_path: Path):
    labels, _, _ = judged(lambda body: "No" if "grammar" in body else CHATTY, store=tmp_path)
    again, _, sent = judged(lambda body: pytest.fail("it was paid for"), store=tmp_path)
    assert (again, sent) == (labels, [])


SETTINGS = {
    "wrong key": error(401, "Incorrect API key provided."),
    "litellm's proxy": error(400, "No connected db.", type="no_db_connection"),
    "model": error(404, "The model `m` does not exist", code="model_not_found"),
    "pinned": error(400, "Server is pinned to 'a', but the request asks for 'm'"),
    "litellm, no key": Scripted(500, b"Internal Server Error"),
}


@pytest.mark.parametrize("fault", SETTINGS)
@pytest.mark.parametrize("concurrency", [1, 16])
def test_settings_that_are_wrong_cost_no_more_requests_than_are_in_flight(fault: str, concurrency: int):
    found, sent = scripted(SETTINGS[fault], units=MANY, concurrency=concurrency)
    assert len(sent) <= concurrency
    cure = "model" if fault in ("model", "pinned") else "no key was sent: name the variable that holds it"
    assert cure in found.stopped


@pytest.mark.parametrize("fault", list(SETTINGS)[:4])
def test_one_such_refusal_in_a_row_of_good_replies_passes_and_costs_no_label(fault: str):
    def script(body: dict[str, Any]) -> Scripted | str:
        passing = len(transport.sent) % 10 == 5
        return SETTINGS[fault] if passing else "yes"

    transport = ScriptedTransport(script)
    run = Run(URL, MANY, session={"transports": lambda _: transport, "backoff_s": 0.001}, concurrency=4)
    assert run.error is None
    assert run.texts == ["yes"] * 300
    assert len(transport.sent) == 300 + len(transport.sent) // 10 + (len(transport.sent) % 10 >= 5)


@pytest.mark.parametrize("fault", list(SETTINGS)[:4])
def test_five_such_refusals_with_no_good_reply_between_stop_the_run(fault: str):
    script = ["yes"] * 20 + [SETTINGS[fault]]
    found, sent = scripted(script, units=MANY, concurrency=1)
    assert len(sent) == 25
    assert len(found.texts) == 20
    assert SETTINGS[fault].body.decode()[:30] not in found.stopped
    assert json.loads(SETTINGS[fault].body)["error"]["message"] in found.stopped


def test_a_reply_of_an_earlier_run_says_nothing_of_todays_key(tmp_path: Path):
    scripted("yes", tmp_path, MANY[:20])
    found, sent = scripted(error(401, "Revoked."), tmp_path, MANY, concurrency=4)
    assert "Revoked." in found.stopped
    assert len(sent) <= 4


LOCATED = error(
    500,
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': 'Input"
    " should be text', 'input': 'json_object'}",
)


def test_a_parameter_that_is_refused_with_500_and_its_place_is_left_out_once():
    """llama-cpp-python 0.3.36 refuses a response_format so."""

    def script(body: dict[str, Any]) -> Scripted | str:
        return LOCATED if "response_format" in body else "yes"

    form = {"response_format": {"type": "json_object"}}
    found, sent = scripted(script, units=MANY[:40], params=form, concurrency=4)
    assert found.texts == ["yes"] * 40
    assert len(sent) <= 40 + 4
    assert len(found.notes) == 1


def test_a_server_error_that_stays_when_its_parameter_is_left_out_is_retried_as_any_other():
    found, sent = scripted(LOCATED, units=UNITS[:1], params={"response_format": {}}, max_retries=2)
    assert found.texts == [] or "500" in found.texts[0]
    assert len(sent) == 1 + 3
