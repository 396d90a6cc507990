"""Checking an endpoint: what works is what the reply shows, not what the server accepts."""

from typing import Any

import pytest

from judgekit.client.sync import run_sync
from judgekit.errors import ConfigError
from judgekit.reading.check import check_endpoint
from judgekit.wire.types import Endpoint
from tests.scripted import Scripted, ScriptedTransport, completion, error

HERE = Endpoint("here", "http://h/v1", "m")


def checks(script: Any) -> dict[str, tuple[str, str]]:
    found = run_sync(check_endpoint(HERE, ScriptedTransport(script)))
    return {check.name.split(" (")[0]: (check.works, check.detail) for check in found}


def capable(body: dict[str, Any]) -> Scripted | str:
    if body.get("logprobs"):
        top = [{"token": t, "logprob": -1.0} for t in ("Yes", "No")]
        return completion("Yes", logprobs={"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]})
    return "Yes"


def test_a_capable_server_passes_everything() -> None:
    transport = ScriptedTransport(capable)
    names = ("chat completion", "log-probabilities")
    found = run_sync(check_endpoint(HERE, transport))
    assert [(check.name.split(" (")[0], check.works) for check in found] == [(name, "yes") for name in names]
    assert {(body["max_tokens"], body["temperature"]) for body in transport.sent} == {(32, 0)}, "short replies"


def test_a_server_that_ignores_what_it_does_not_know_is_found_out() -> None:
    found = checks("Yes")
    assert found["log-probabilities"] == ("no", "accepted, but the reply has none")


def test_an_unknown_finish_reason_is_told() -> None:
    works, detail = checks(completion("Yes", finish_reason="Paused"))["chat completion"]
    assert works == "yes"
    assert "ended by 'Paused', which is not known to mean complete" in detail


def test_what_is_refused_is_said_in_the_servers_words_and_the_rest_goes_on() -> None:
    def script(body: dict[str, Any]) -> Any:
        for name in ("max_tokens", "temperature", "logprobs"):
            if name in body:
                return error(400, f"No {name} here.", param=name, code="unsupported_parameter")
        return "Yes"

    found = checks(script)
    works, detail = found["chat completion"]
    assert works == "partly"
    assert "max_tokens is sent as max_completion_tokens; temperature is left out" in detail
    assert found["log-probabilities"] == ("no", "400: No logprobs here.")


def test_without_a_chat_completion_nothing_further_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(error(401, "Wrong key.")) == {"chat completion": ("no", "401: Wrong key.")}
    assert checks(TimeoutError()) == {"chat completion": ("no", "no answer within 120 s")}
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(ConfigError, match="NO_KEY"):
        run_sync(check_endpoint(Endpoint("here", "http://h/v1", "m", api_key_env="NO_KEY")))


def test_models_are_listed_and_a_server_that_is_down_is_said(fault_server: Any) -> None:
    found = run_sync(check_endpoint(Endpoint("here", fault_server.base_url, "m")))
    assert (found[0].name, found[0].works) == ("list of models", "no")
    assert found[1].works == "yes"
    assert all("authorization" not in headers for headers in fault_server.headers)
    many = [f"model-{i}" for i in range(9)]
    lacking = f"m is not among them: {', '.join(many[:8])}"
    for names, works, detail in (
        (["m", "x"], "yes", "m is one of 2"),
        (many[:8], "partly", f"{lacking}."),
        (many, "partly", f"{lacking}, …."),
    ):
        fault_server.other = lambda path, body, names=names: (200, {"data": [{"id": name} for name in names]})
        listed = run_sync(check_endpoint(Endpoint("here", fault_server.base_url, "m")))[0]
        assert (listed.works, listed.detail) == (works, detail)
    down = run_sync(check_endpoint(Endpoint("here", "http://127.0.0.1:9/v1", "m")))
    assert [check.works for check in down] == ["no", "no"]
    assert down[1].detail.endswith("Is the server running, and are its address and port right?")
    assert down[0].detail == "127.0.0.1:9: Connection refused"
    try:
        raise KeyError("mine")
    except KeyError:
        assert run_sync(check_endpoint(Endpoint("here", "http://127.0.0.1:9/v1", "m"))) == down
