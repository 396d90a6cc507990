"""JSON that is nested without end is a reply that cannot be read: kept, done, and no end of the run."""

import json
from typing import Any

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.data.tables import Status
from judgekit.errors import ConfigError
from judgekit.labelers.base import build
from judgekit.labelers.contract import checked
from judgekit.reading.prompts import load_prompt
from judgekit.wire.jsontext import canonical, parse_json
from tests.labelers.scripted import Here
from tests.labelers.test_judge import UNIT
from tests.programs import collect
from tests.scripted import Scripted, ScriptedTransport, completion

PLACES = {
    "in the content": '{{"choices": [{{"message": {{"content": {0}}}}}]}}',
    "beside the message": '{{"choices": [{{"message": {{"content": ""}}, "finish_reason": "stop", "x": {0}}}]}}',
    "in the usage": '{{"choices": [{{"message": {{"content": "Hm."}}}}], "usage": {0}}}',
    "in the log-probabilities": '{{"choices": [{{"message": {{"content": "Hm."}}, "logprobs": {{"content": {0}}}}}]}}',
    "in the text": None,
}


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def body(place: str, levels: int) -> bytes:
    form = PLACES[place]
    return completion(deep(levels)).body if form is None else form.format(deep(levels)).encode()


@pytest.mark.parametrize("place", PLACES)
def test_such_a_reply_leaves_its_label_missing(place):
    labeler = build("judge(prompt='graded-json')", Here())
    transport = ScriptedTransport(Scripted(200, body(place, 20_000)))
    with Session(transports=lambda _: transport, backoff_s=0.001) as session:
        outcomes = run_sync(collect(session, [UNIT], labeler))[UNIT]
    assert checked(labeler, UNIT, outcomes)[0].status in (Status.UNPARSED, Status.FAILED)


@pytest.mark.parametrize("levels", [5, 100, 200])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_json_is_parsed_as_deep_as_python_can_walk(levels, kind):
    text = f'{{"a": "[[\\"{{", "deep": {deep(levels)}, "b": [1, {{"c": "]"}}]}}'
    value = parse_json(kind(text))
    assert (value["a"], value["b"]) == ('[["{', [1, {"c": "]"}])
    repr(value)
    json.dumps(value)


@pytest.mark.parametrize("levels", [300, 1_100, 100_000])
def test_what_is_nested_without_end_is_not_parsed(levels):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(deep(levels))


@pytest.mark.parametrize("text", ["[" * 5_000, "]" * 5_000, '["' * 5_000, '{"a":' * 5_000 + "1", "[" * 200 + "}" * 200])
def test_what_is_deep_and_not_json_is_not_json(text):
    with pytest.raises(ValueError):  # noqa: PT011  # whatever the parser says
        parse_json(text)


def test_what_is_too_deep_to_be_sent_or_to_be_a_prompt_is_said(tmp_path):
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical(value)
    (tmp_path / "own.toml").write_text(f"kind = {deep(5_000)}")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_prompt(tmp_path / "own.toml")
