"""What servers say of themselves: parameters refused, forms ignored, models that think, prompts that are cut."""

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.client.server_warnings import Cuts
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.constraints import Way
from judgekit.wire.quirks import ServerQuirks
from judgekit.wire.types import Endpoint, Outcome, Request
from tests.programs import UNITS, Ask, Run, collect, scripted, texts
from tests.scripted import Scripted, ScriptedTransport, completion, error


def negotiated(script: Any, store: Path, units: int = 20, **params: Any) -> tuple[Run, list[dict[str, Any]]]:
    return scripted(script, store, [f"u{i}" for i in range(units)], params=params)


def refuses(*params: str, say: Any) -> Any:
    def answer(body: dict[str, Any]) -> Scripted | str:
        found = next((p for p in params if p in body), None)
        return say(found) if found else "yes"

    return answer


SHAPES = {
    "openai": lambda p: error(
        400, f"Unsupported parameter: '{p}' is not supported.", param=p, code="unsupported_parameter"
    ),
    "bare message": lambda p: Scripted(400, json.dumps({"message": f"{p} is not supported"}).encode()),
    "fastapi": lambda p: Scripted(
        422, json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", p], "msg": "Extra inputs"}]}).encode()
    ),
    "litellm": lambda p: error(400, f"litellm.UnsupportedParamsError: m does not support parameters: ['{p}']"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_max_tokens_is_sent_under_the_name_that_the_server_wants(shape, tmp_path):
    names = ("max_tokens", "max_completion_tokens")
    for old, new in (names, names[::-1]):
        found, sent = negotiated(refuses(old, say=SHAPES[shape]), tmp_path / old, **{old: 5})
        assert found.texts == ["yes"] * 20
        assert [b[new] for b in sent if old not in b] == [5] * 20
        assert found.notes == [f"here: the model 'm' refuses {old}: {old} is sent as {new} from now on"]
        assert len(sent) <= 36


def test_refused_parameters_are_left_out_and_the_body_really_sent_is_stored_under_the_same_identity(
    tmp_path,
):
    script = refuses("temperature", "logprobs", "top_logprobs", say=SHAPES["openai"])
    params = {"temperature": 0, "logprobs": True, "top_logprobs": 5, "seed": 1}
    # Fewer than eight replies: without the log-probabilities that were asked for, a longer run stops.
    found, _ = negotiated(script, tmp_path, units=7, **params)
    assert found.texts == ["yes"] * 7
    assert len(found.notes) == 2
    with closing(Store(tmp_path)) as store:
        records = [Record.parse(text) for _, text in store.texts()]
    assert [set(json.loads(record.body)) for record in records] == [{"messages", "model", *params}] * 7
    assert [set(json.loads(record.sent or "")) for record in records] == [{"messages", "model", "seed"}] * 7
    assert not negotiated("another server would take it", tmp_path, units=7, **params)[1]


def test_a_server_that_takes_neither_name_stops_the_run(tmp_path):
    found, _ = negotiated(refuses("max_tokens", "max_completion_tokens", say=SHAPES["openai"]), tmp_path, max_tokens=5)
    assert "max_completion_tokens" in str(found.error)


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"enum": [0, 1]}}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}


@pytest.mark.parametrize("params", [{"response_format": JSON_SCHEMA}, {"structured_outputs": {"choice": ["Yes"]}}])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_constraint_that_a_server_knows_by_no_name_is_left_out(params, shape, tmp_path):
    script = refuses("response_format", "structured_outputs", say=SHAPES[shape])
    found, sent = negotiated(script, tmp_path, **params)
    assert found.texts == ["yes"] * 20
    assert set(sent[-1]) == {"model", "messages"}


def test_a_constraint_of_a_kind_that_a_server_does_not_hold_to_is_left_out_too(tmp_path):
    def script(body):
        if "structured_outputs" in body:
            return error(400, "Unrecognized request argument supplied: structured_outputs")
        known = "'response_format.type' must be one of 'text', 'json_object', not 'json_schema'"
        refused = error(400, known, code="invalid_value", param="response_format.type")
        return refused if "response_format" in body else "yes"

    found, sent = negotiated(script, tmp_path, response_format=JSON_SCHEMA)
    assert found.texts == ["yes"] * 20
    assert set(sent[-1]) == {"model", "messages"}


CHOICE = {"structured_outputs": {"choice": ["relevant", "irrelevant"]}}


class Held(Ask):
    """Asks with a constraint beside each request."""

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        return [replace(request, constraint=CHOICE) for request in super().requests(unit, replies)]


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize("takes", ["no constraint", "no constraint beside max_tokens"])
def test_a_constraint_is_tried_again_once_another_parameter_is_learned(takes: str, concurrency: int) -> None:
    def script(body: dict[str, Any]) -> Scripted | str:
        if "structured_outputs" in body and (takes == "no constraint" or "max_tokens" in body):
            return error(400, "bad request")
        return SHAPES["openai"]("max_tokens") if "max_tokens" in body else "relevant"

    transport = ScriptedTransport(script)
    endpoint = Endpoint("here", "http://server.example/v1", "m", concurrency=concurrency)
    with Session(None, transports=lambda _: transport, backoff_s=0.001) as session:
        outcomes = run_sync(collect(session, UNITS, Held(endpoint, max_tokens=5)))
    assert [texts(replies) for replies in outcomes.values()] == [["relevant"]] * len(UNITS)
    left_out = takes == "no constraint"
    assert ("structured_outputs" not in transport.sent[-1]) == left_out
    assert any("a list of words (refused)" in note for note in session.notes) == left_out


def test_a_request_looks_once_for_the_way_to_state_its_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def counted(quirks: ServerQuirks, constraint: Mapping[str, Any]) -> Way | None:
        looks.append(constraint)
        return way(quirks, constraint)

    way = ServerQuirks.way
    monkeypatch.setattr(ServerQuirks, "way", counted)
    transport = ScriptedTransport(lambda body: "relevant")
    with Session(None, transports=lambda _: transport) as session:
        run_sync(collect(session, UNITS, Held(Endpoint("here", "http://server.example/v1", "m"), max_tokens=5)))
    assert len(looks) == len(transport.sent) == len(UNITS)
    assert all("structured_outputs" in body for body in transport.sent)


def cut_off(content: str | None = "", **message: Any) -> Any:
    return completion(None, finish_reason="length", message={"role": "assistant", "content": content, **message})


def hidden(tokens: int) -> Any:
    made = json.loads(cut_off().body)
    made["usage"]["completion_tokens_details"] = {"reasoning_tokens": tokens}
    return Scripted(200, json.dumps(made).encode())


THINKS = [
    cut_off(None, reasoning_content="Okay, the user"),
    cut_off("", reasoning="Okay, the user"),
    cut_off("<think>\nOkay, the user wants"),
    cut_off("<|channel|>analysis<|message|>We need to"),
    hidden(256),
]


@pytest.mark.parametrize("reply", THINKS)
def test_a_model_that_uses_up_its_room_by_thinking_is_told_once_with_the_setting_that_mends_it(reply):
    found, _ = scripted(reply)
    told = [note for note in found.notes if "thinks before it answers" in note]
    assert len(told) == 1
    assert "chat_template_kwargs = {enable_thinking = false}" in told[0]
    assert "reasoning_effort" in told[0]


def test_empty_replies_that_are_cut_off_are_proof_when_there_are_three():
    told = [any("thinks" in note for note in scripted(cut_off(), None, UNITS[:n])[0].notes) for n in (2, 3)]
    assert told == [False, True]


@pytest.mark.parametrize(
    "reply",
    [
        completion("The passage says a lot", finish_reason="length"),
        completion("Yes", message={"role": "assistant", "content": "Yes", "reasoning_content": "Well"}),
        completion("<think>Well</think>Yes, since", finish_reason="length"),
        completion(""),
        completion(None, finish_reason="length", message={"role": "assistant", "content": None, "refusal": "no"}),
    ],
)
def test_a_model_that_says_something_or_nothing_by_itself_is_left_in_peace(reply):
    assert not any("thinks" in note for note in scripted(reply)[0].notes)


def counting(count: Any) -> Any:
    """Answer as a server that reports as many prompt tokens as ``count`` says of the text."""

    def answer(body: dict[str, Any]) -> Any:
        made = json.loads(completion("Yes").body)
        made["usage"]["prompt_tokens"] = count("".join(m["content"] for m in body["messages"]))
        return Scripted(200, json.dumps(made).encode())

    return answer


def pieces(text: str) -> int:
    return len(re.findall(r"\w{1,6}|\W", text))


VOCABULARY = ["the", "of", "and", "bridge", "river", "county", "information", "international", "approximately", "1998"]


def prose(words: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(VOCABULARY, k=words))


def test_prompts_that_are_cut_in_silence_are_told_once_and_change_nothing():
    texts = [prose(200 + 40 * i, i) for i in range(60)]
    whole, _ = scripted(counting(pieces), None, texts)
    cut, _ = scripted(counting(lambda text: min(pieces(text), 1024)), None, texts)
    assert not any("part of long prompts" in note for note in whole.notes)
    told = [note for note in cut.notes if "part of long prompts" in note]
    assert len(told) == 1
    assert "1,024 tokens" in told[0]
    assert "OLLAMA_CONTEXT_LENGTH" in told[0]
    assert cut.doubts == told, "a threat to validity, not only a notice"
    assert [o.text for o in cut.outcomes.values()] == [o.text for o in whole.outcomes.values()]


def suspicious(prompts: Iterable[tuple[int, int]]) -> bool:
    cuts = Cuts()
    return any(cuts.suspects(size, tokens) for size, tokens in prompts)


def test_five_lengths_that_count_as_one_number_are_suspicious_and_four_are_not():
    sizes = [7000, 7600, 8200, 8800, 9400]
    assert suspicious([(size, 1000) for size in sizes])
    assert not suspicious([(size, 1000) for size in [*sizes[:3], sizes[-1], *sizes[:3]]])


COUNTS = {
    "pieces": pieces,
    "bytes": lambda text: len(text.encode()) // 4 + 1,
    "characters": len,
    "nothing": lambda text: 0,
}


@given(
    lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=80),
    alphabet=st.sampled_from(["abcdefghij ", "äöåxyz ", "桥梁建于年", "0123456789.", "สะพาน ", "{}();=\n "]),
    count=st.sampled_from(list(COUNTS)),
    seed=st.integers(0, 10**6),
)
def test_no_honest_count_of_tokens_draws_a_warning(lengths, alphabet, count, seed):
    rng = random.Random(seed)
    texts = ["".join(rng.choices(alphabet, k=length)) for length in lengths]
    assert not suspicious((len(text.encode()), COUNTS[count](text)) for text in texts)


@given(
    tokens=st.integers(64, 4096),
    densities=st.lists(st.floats(1.0, 5.9), min_size=1, max_size=200),
    questions=st.lists(st.integers(5, 60), min_size=1, max_size=20),
)
def test_passages_of_a_fixed_number_of_tokens_draw_no_warning(tokens, densities, questions):
    """Prompts about one question then have the same number of tokens, whatever they are about: prose, code, tables."""
    prompts = [(round(d * (tokens + q)), tokens + q) for q in questions for d in densities]
    assert not suspicious(prompts)


@given(
    limit=st.integers(256, 8192),
    over=st.lists(st.floats(1.5, 6.0), min_size=8, max_size=60, unique=True),
    density=st.floats(4.0, 5.0),
)
def test_prompts_far_beyond_a_limit_always_draw_a_warning(limit, over, density):
    over = [*over, 1.5, 1.9, 2.5, 3.0, 4.0]
    assert suspicious([(round(density * limit * factor), limit) for factor in over])


def test_prompts_a_little_beyond_a_limit_are_seen_by_what_shorter_ones_have():
    shorter = [(round(4.2 * tokens), tokens) for tokens in range(300, 900, 25)]
    beyond = [(round(4.2 * 1000 * (1.3 + 0.05 * i)), 1000) for i in range(12)]
    assert suspicious([*shorter, *beyond])
    assert not suspicious(shorter)
