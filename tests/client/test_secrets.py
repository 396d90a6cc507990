"""Keys appear nowhere, and nothing but the configured endpoint is ever contacted."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.batch.service import service
from judgekit.client.transports import HttpTransport
from judgekit.errors import ConfigError
from judgekit.wire.access import Secret
from judgekit.wire.types import Endpoint, Reply
from tests.programs import Run
from tests.scripted import Scripted, completion, error

KEY = "sk-VERY-secret-0123456789"
UNITS = [f"unit {i:02}" for i in range(12)]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_KEY", KEY)
    return KEY


def everything(run: Run, folder: Path) -> str:
    """Return all that a run left: files, messages, errors, reprs."""
    files = b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()).decode("utf-8", "replace")
    return files + repr(run.outcomes) + repr(run.events) + f"{run.error!r} {run.error}" + repr(run.endpoint)


def test_the_key_goes_to_the_endpoint_and_nowhere_else(fault_server, tmp_path, key, caplog, capfd):
    caplog.set_level(logging.DEBUG)

    def answer(body, seen):
        sent = fault_server.headers[-1]["authorization"]
        if body["messages"][0]["content"] == UNITS[0]:
            return completion(f"you sent {sent}")
        if body["messages"][0]["content"] == UNITS[1]:
            return error(400, f"context length exceeded by {sent}")
        return error(500, f"bad {sent}") if seen == 0 else "yes"

    fault_server.answer = answer
    run = Run(fault_server.base_url, UNITS, tmp_path, api_key_env="TEST_KEY", concurrency=1)
    assert {h["authorization"] for h in fault_server.headers} == {f"Bearer {key}"}
    assert len(run.outcomes) == len(UNITS)
    fault_server.answer = lambda body, seen: error(401, f"Incorrect API key provided: {key}.")
    stopped = Run(fault_server.base_url, ["further"], tmp_path, api_key_env="TEST_KEY")
    assert "Incorrect API key provided: ***." in str(stopped.error)
    captured = capfd.readouterr()
    for text in (everything(run, tmp_path), everything(stopped, tmp_path), captured.out, captured.err, caplog.text):
        assert key not in text


@pytest.mark.parametrize(("named", "sent"), [({}, None), ({"api_key_env": "OPENAI_API_KEY"}, f"Bearer {KEY}")])
def test_a_key_is_sent_without_white_space_where_it_is_named_and_not_elsewhere(fault_server, monkeypatch, named, sent):
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    Run(fault_server.base_url, UNITS, **named)
    assert {headers.get("authorization") for headers in fault_server.headers} == {sent}


def test_a_value_that_is_no_key_is_refused_without_being_shown(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "two words\nand a line")
    with pytest.raises(ConfigError) as caught:
        HttpTransport(Endpoint("e", "http://h/v1", "m", api_key_env="TEST_KEY"))
    assert "two words" not in str(caught.value)


def test_only_the_configured_endpoint_is_contacted(fault_server, tmp_path, monkeypatch):
    contacted: list[Any] = []

    def watch(event, arguments):
        if active and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname"):
            contacted.append((event, arguments[1] if event == "socket.connect" else arguments[:2]))

    active = True
    sys.addaudithook(watch)
    # what a careless client would follow: a proxy, a redirect
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.invalid:3128")
    fault_server.answer = lambda body, seen: (
        Scripted(302, b"", {"location": "http://elsewhere.invalid/"})
        if len(fault_server.seen) == 12
        else completion("yes")
    )
    run = Run(fault_server.base_url, [*UNITS, "one more"], tmp_path, concurrency=1)
    active = False
    port = int(fault_server.base_url.rsplit(":", 1)[1].split("/")[0])
    assert "redirects" in str(run.error)
    assert contacted
    assert set(contacted) <= {("socket.connect", ("127.0.0.1", port)), ("socket.getaddrinfo", ("127.0.0.1", port))}


def live_and_replayed(server: Any, store: Path, said: Scripted) -> list[Reply]:
    """Return the reply to one request as it came, and as it is replayed, sent once."""
    server.answer = lambda body, seen: said
    runs = [Run(server.base_url, UNITS[:1], store, api_key_env="TEST_KEY") for _ in range(2)]
    assert len(server.seen) == 1
    replies = [run.outcomes[UNITS[0]] for run in runs]
    assert all(isinstance(reply, Reply) for reply in replies)
    return replies


@pytest.mark.parametrize("dummy", ["x", "1", "message", "sk-1234"])
def test_a_key_that_is_too_short_for_a_secret_changes_no_reply(dummy, fault_server, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", dummy)
    text = f"an axe, a box and 1 test message of {dummy}"
    live, replayed = live_and_replayed(fault_server, tmp_path, completion(text))
    assert live.text == replayed.text == text


@pytest.mark.parametrize("secret", [KEY, 'sk-"quoted"/and\\more', "123456789012345", "finish_reason"])
def test_a_key_that_a_server_echoes_is_cut_out_of_the_live_reply_as_of_the_stored_one(
    secret, fault_server, tmp_path, monkeypatch
):
    monkeypatch.setenv("TEST_KEY", secret)
    said = completion(f"You sent Bearer {secret}.\n", logprobs={"content": [{"logprob": -0.123456789012345}]})
    live, replayed = live_and_replayed(fault_server, tmp_path, said)
    assert live.text == "You sent Bearer ***.\n"
    for kept in (live, replayed):
        assert (kept.text, kept.logprobs, kept.usage) == (live.text, [{"logprob": -0.123456789012345}], live.usage)
        assert secret not in json.loads(kept.raw)["choices"][0]["message"]["content"]
    if secret != "123456789012345":
        assert secret not in everything(Run(fault_server.base_url, UNITS[:1], tmp_path), tmp_path)


def test_a_key_is_found_however_json_writes_it(fault_server, tmp_path, key):
    escaped = key.replace("-", "\\u002d").replace("V", "\\u0056")
    said = f'{{"choices": [{{"message": {{"content": "Key: {escaped}"}}, "finish_reason": "stop"}}]}}'
    live, replayed = live_and_replayed(fault_server, tmp_path, Scripted(200, said.encode()))
    assert live.text == replayed.text == "Key: ***"
    fault_server.answer = lambda body, seen: error(401, f"{'x' * 290} {key}")
    run = Run(fault_server.base_url, ["further"], tmp_path, api_key_env="TEST_KEY")
    assert run.error is not None
    assert key[:4] not in str(run.error), "nor is its beginning shown, where a long message is cut"
    assert key not in repr(Secret(key))
    assert Secret(key).cut_response(f"<p>{key} or {escaped}</p>".encode()) == b"<p>*** or ***</p>", "a page, not JSON"


def test_headers_from_variables_are_sent_and_cut_out_of_what_the_server_says(fault_server, monkeypatch, tmp_path):
    token = "abcdefghij0123456789"
    monkeypatch.setenv("MY_TOKEN", f"Bearer {token}")
    headers = {"Authorization": "env:MY_TOKEN", "X-Team": "search"}
    fault_server.answer = lambda body, seen: f"I was sent {token}, as Bearer {token}."
    found = Run(fault_server.base_url, ["one"], tmp_path, headers=headers)
    assert {(h["authorization"], h["x-team"]) for h in fault_server.headers} == {(f"Bearer {token}", "search")}
    assert found.texts == ["I was sent ***, as ***."]
    assert token not in everything(found, tmp_path)
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(ConfigError, match="MY_TOKEN is not set or empty"):
        HttpTransport(Endpoint("here", fault_server.base_url, "m", headers=headers))


def test_batches_are_submitted_with_the_headers_of_the_endpoint(monkeypatch):
    monkeypatch.setenv("MY_TENANT", "tenant-0123456789")
    with service(Endpoint("here", "http://h/v1", "m", headers={"X-Tenant": "env:MY_TENANT"})) as client:
        assert client.default_headers["x-tenant"] == "tenant-0123456789"
