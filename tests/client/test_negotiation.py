"""Servers differ: parameters are negotiated from what a 400 says, told once, recorded, and change no identity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.store.records import Record
from judgekit.store.replies import Store
from tests.programs import Run, scripted
from tests.scripted import Scripted, error


def resolve(script: Any, store: Path, units: int = 20, **params: Any) -> tuple[Run, list[dict[str, Any]]]:
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
def test_max_tokens_is_sent_under_the_name_that_the_server_wants(shape: str, tmp_path: Path) -> None:
    found, sent = resolve(refuses("max_tokens", say=SHAPES[shape]), tmp_path, max_tokens=5)
    assert found.texts == ["yes"] * 20
    assert [b["max_completion_tokens"] for b in sent if "max_tokens" not in b] == [5] * 20
    assert found.notes == [
        "here: the model 'm' refuses max_tokens: max_tokens is sent as max_completion_tokens from now on"
    ]
    assert len(sent) <= 36


def test_and_the_other_way_round(tmp_path: Path) -> None:
    found, sent = resolve(refuses("max_completion_tokens", say=SHAPES["openai"]), tmp_path, max_completion_tokens=5)
    assert len(found.outcomes) == 20
    assert sent[-1]["max_tokens"] == 5


def test_refused_parameters_are_left_out_and_the_body_really_sent_is_stored(tmp_path: Path) -> None:
    script = refuses("temperature", "logprobs", "top_logprobs", say=SHAPES["openai"])
    # Fewer than eight replies: without the log-probabilities that were asked for, a longer run stops.
    found, _ = resolve(script, tmp_path, units=7, temperature=0, logprobs=True, top_logprobs=5, seed=1)
    assert found.texts == ["yes"] * 7
    assert len(found.notes) == 2
    store = Store(tmp_path)
    records = [Record.parse(text) for _, text in store.texts()]
    store.close()
    assert len(records) == 7
    for record in records:
        assert set(json.loads(record.body)) == {"messages", "model", "temperature", "logprobs", "top_logprobs", "seed"}
        assert record.sent is not None
        assert set(json.loads(record.sent)) == {"messages", "model", "seed"}


def test_the_identity_of_a_request_does_not_change_by_negotiation(tmp_path: Path) -> None:
    resolve(refuses("temperature", say=SHAPES["openai"]), tmp_path, temperature=0)
    found, sent = resolve("another server would take it", tmp_path, temperature=0)
    assert not sent
    assert found.usage.cached == 20


def test_a_server_that_takes_neither_name_stops_the_run(tmp_path: Path) -> None:
    found, _ = resolve(refuses("max_tokens", "max_completion_tokens", say=SHAPES["openai"]), tmp_path, max_tokens=5)
    assert "max_completion_tokens" in str(found.error)


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"enum": [0, 1]}}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}


def test_a_constraint_is_sent_under_the_name_that_the_server_knows(tmp_path: Path) -> None:
    found, sent = resolve(refuses("response_format", say=SHAPES["openai"]), tmp_path, response_format=JSON_SCHEMA)
    assert found.texts == ["yes"] * 20
    assert [b["structured_outputs"] for b in sent if "response_format" not in b] == [{"json": SCHEMA}] * 20
    assert found.notes == [
        "here: the model 'm' refuses response_format: response_format is sent as structured_outputs from now on"
    ]


@pytest.mark.parametrize("params", [{"response_format": JSON_SCHEMA}, {"structured_outputs": {"choice": ["Yes"]}}])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_constraint_that_a_server_knows_by_no_name_is_left_out(
    params: dict[str, Any], shape: str, tmp_path: Path
) -> None:
    script = refuses("response_format", "structured_outputs", say=SHAPES[shape])
    found, sent = resolve(script, tmp_path, **params)
    assert found.texts == ["yes"] * 20
    assert set(sent[-1]) == {"model", "messages"}


def test_a_constraint_of_a_kind_that_a_server_does_not_hold_to_is_left_out_too(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Scripted | str:
        kind = body.get("response_format", {}).get("type", "text")
        known = f"'response_format.type' must be one of 'text', 'json_object', not '{kind}'"
        if "structured_outputs" in body:
            return error(400, "Unrecognized request argument supplied: structured_outputs")
        return "yes" if kind == "text" else error(400, known, code="invalid_value", param="response_format.type")

    found, sent = resolve(script, tmp_path, response_format=JSON_SCHEMA)
    assert found.texts == ["yes"] * 20
    assert set(sent[-1]) == {"model", "messages"}
