"""The store for other tools, as a process that tools of others talk to; the endpoint behind it counts its requests."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web

from judgekit.client import serve as serving_room
from judgekit.client.session import Session, run_sync
from judgekit.errors import UsageError
from judgekit.wire.types import Endpoint, Request
from tests.programs import Ask, Run, texts
from tests.scripted import Scripted, completion
from tests.servers import FaultServer, Stream, openai_error, serving

ROOT = Path(__file__).resolve().parent.parent.parent
KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789"

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")


class Serve:
    """A process of `judgekit serve`."""

    def __init__(self, store: Path, *options: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "judgekit", "serve", "--cache", str(store), "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("serving "):
                break
            assert line.startswith("store: "), line + self.process.stderr.read()
        self.base_url = line.split()[1].removesuffix(";")
        self.port = int(self.base_url.split(":")[2].split("/")[0])

    @cache  # noqa: B019  # there are few
    def client(self, key: str = KEY) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.base_url, api_key=key, max_retries=0)

    def say(self, text: str, key: str = KEY, **fields: Any) -> Any:
        messages = [{"role": "user", "content": text}]
        return self.client(key).chat.completions.create(**{"model": "m", "messages": messages, **fields})

    def begin(
        self, body: Any = b"", path: str = "/v1/chat/completions", method: str = "POST", **headers: str
    ) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, data, {"content-type": "application/json", **names})
        except OSError:
            connection.close()
            raise
        return connection

    def send(self, *args: Any, **options: str) -> tuple[int, dict[str, str], Any]:
        return self.end(self.begin(*args, **options))

    def arrived(self) -> None:
        """Wait until what was begun has come: the server reads it before what is sent now."""
        for _ in range(2):
            self.send(path="/health", method="GET")

    def end(self, connection: http.client.HTTPConnection) -> tuple[int, dict[str, str], Any]:
        with closing(connection):
            response = connection.getresponse()
            text = response.read().decode()
        known = {name.lower(): value for name, value in response.getheaders()}
        return response.status, known, json.loads(text) if text.startswith("{") else text

    def stop(self, sign: int = signal.SIGINT) -> str:
        """Stop it; return what it said since it began."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        return self.process.communicate(timeout=30)[1] or ""


def body(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


def held(server: FaultServer, answer: Callable[[], Scripted] = lambda: completion("yes")) -> threading.Event:
    """Have the server hold its answers back until the event is set."""
    go = threading.Event()

    def hold(body: dict[str, Any], seen: int) -> Stream:
        said = answer()

        async def write(response: web.StreamResponse) -> None:
            await asyncio.to_thread(go.wait, 60)
            await response.write(said.body)

        return Stream(write, {"content-type": "application/json"}, said.status)

    server.answer = hold
    return go


Start = Callable[..., Serve]


@pytest.fixture
def start(fault_server: FaultServer, tmp_path: Path) -> Iterator[Start]:
    """Start a server in front of the fault server; further options go to it."""
    with ExitStack() as stack:

        def one(*options: str, store: str = "store", env: dict[str, str] | None = None) -> Serve:
            given = options if "--base-url" in options else ("--base-url", fault_server.base_url, *options)
            made = Serve(tmp_path / store, *given, "--model", "m", env=env)
            stack.callback(made.stop, signal.SIGKILL)
            return made

        yield one


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serve, FaultServer]]:
    """One for the tests that need none of their own: each asks for something else."""
    with serving(FaultServer()) as server:
        made = Serve(tmp_path_factory.mktemp("serve"), "--base-url", server.base_url, "--model", "m")
        yield made, server
        made.stop()


@pytest.fixture
def serve(pair: tuple[Serve, FaultServer]) -> Serve:
    return pair[0]


@pytest.fixture
def behind(pair: tuple[Serve, FaultServer]) -> FaultServer:
    """The fault server behind `serve`, which has seen nothing yet."""
    server = pair[1]
    server.seen.clear()
    server.headers.clear()
    server.answer = lambda body, seen: "yes"
    return server


def counted(serve: Serve, name: str) -> dict[str, float]:
    _, _, text = serve.send(path="/metrics", method="GET")
    return {
        line.split("{")[1].split("}")[0]: float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith(f"judgekit_{name}{{")
    }


def test_the_openai_client_asked_a_second_time_sends_nothing_upstream(start: Start, fault_server: FaultServer) -> None:
    fault_server.answer = lambda body, seen: completion(body["messages"][0]["content"].upper())
    serve = start()
    said = []
    for _ in range(2):
        said.append([serve.say(f"unit {i}", temperature=0, seed=1) for i in range(20)])
        assert len(fault_server.seen) == 20
    assert [one.choices[0].message.content for one in said[0]] == [f"UNIT {i}" for i in range(20)]
    assert said[0] == said[1]
    serve.stop(signal.SIGKILL)
    again = start()
    assert [again.say(f"unit {i}", temperature=0, seed=1) for i in range(20)] == said[0]
    assert len(fault_server.seen) == 20
    assert counted(again, "requests_total") == {
        'endpoint="default",source="store"': 20,
        'endpoint="default",source="joined"': 0,
        'endpoint="default",source="sent"': 0,
        'endpoint="default",source="failed"': 0,
    }
    assert [model.id for model in again.client().models.list()] == ["m"]


def test_the_same_request_of_several_tools_in_flight_is_paid_once(serve: Serve, behind: FaultServer) -> None:
    go = held(behind)
    before = sum(counted(serve, "attempts_total").values())
    asked = [serve.begin(body("joined?"), authorization=f"Bearer {i}") for i in range(8)]
    serve.arrived()
    go.set()
    answers = [serve.end(one) for one in asked]
    assert {status for status, _, _ in answers} == {200}
    assert Counter(headers["x-judgekit-source"] for _, headers, _ in answers) == {"joined": 7, "sent": 1}
    assert len(behind.seen) == 1
    assert sum(counted(serve, "attempts_total").values()) == before + 1


def test_every_field_of_the_body_tells_requests_apart(serve: Serve, behind: FaultServer) -> None:
    fields: list[dict[str, Any]] = [
        {},
        {"temperature": 0},
        {"temperature": 1},
        {"seed": 1},
        {"max_tokens": 5},
        {"n": 2},
        {"logprobs": True},
        {"user": "u"},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"key": {}}}}}]},
        {"response_format": {"type": "json_object"}},
        {"of_some_server": {"nested": [1, None]}},
    ]
    for given in fields:
        for _ in range(2):
            assert serve.send(body("?", **given))[0] == 200
    assert behind.seen == [body("?", **given) for given in fields], "they arrive as they were sent"
    for given in ({"stream": False}, {"stream": None}):
        assert serve.send(body("?", **given))[1]["x-judgekit-source"] == "store"
    reordered = dict(reversed(body("?", seed=1).items()))
    assert serve.send(reordered)[1]["x-judgekit-source"] == "store"
    assert serve.send(body("?"), x_judgekit_sample="1")[1]["x-judgekit-source"] == "sent"
    assert serve.send(body("?"), x_judgekit_sample="one")[0] == 400


def test_completions_are_served_where_the_endpoint_asks_for_them(start: Start, fault_server: FaultServer) -> None:
    said = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    choice = {"index": 0, "text": "yes", "finish_reason": "stop", "logprobs": None}
    fault_server.answer = lambda body, seen: Scripted(200, json.dumps({**said, "choices": [choice]}).encode())
    serve = start("--api", "completions")
    found = [serve.client().completions.create(model="m", prompt=["a", "b"]).choices[0].text for _ in range(2)]
    assert (found, fault_server.seen) == (["yes", "yes"], [{"model": "m", "prompt": ["a", "b"]}])
    with pytest.raises(openai.NotFoundError, match="no model 'm' is served at /v1/chat/completions"):
        serve.say("?")
    with pytest.raises(openai.BadRequestError, match="an object with a prompt"):
        serve.client().completions.create(model="m", prompt=None)


@pytest.mark.parametrize(
    "error",
    [
        openai_error(429, "slow down", headers={"retry-after": "7", "x-request-id": "r-1"}),
        openai_error(429, "quota", code="insufficient_quota"),
        openai_error(400, "max_tokens is too large", param="max_tokens"),
        openai_error(400, "Unsupported parameter: seed", param="seed"),
        openai_error(401, "who are you?"),
        openai_error(404, "no such model", code="model_not_found"),
        openai_error(500, "oops"),
        openai_error(503, "draining", headers={"retry-after": "1"}),
        Scripted(502, b"<html>bad gateway</html>", {"content-type": "text/html"}),
    ],
    ids=lambda error: f"{error.status}",
)
def test_errors_are_passed_on_and_not_stored(serve: Serve, behind: FaultServer, error: Scripted) -> None:
    behind.answer = lambda body, seen: error if seen < 2 else completion("yes")
    asked = body(f"{error.status} {error.body!r}", seed=1)
    for number in (1, 2):
        status, headers, said = serve.send(asked)
        assert (status, len(behind.seen)) == (error.status, number)
        assert said == (json.loads(error.body) if b"{" in error.body else error.body.decode())
        for name in ("retry-after", "x-request-id"):
            assert headers.get(name) == error.headers.get(name)
    assert serve.send(asked)[1]["x-judgekit-source"] == "sent"
    assert serve.send(asked)[1]["x-judgekit-source"] == "store"
    assert len(behind.seen) == 3


def test_what_is_no_completion_or_does_not_come_is_a_bad_gateway(
    serve: Serve, behind: FaultServer, start: Start
) -> None:
    answers: list[Any] = [
        Scripted(200, b'{"choices": ['),
        Scripted(200, b'{"error": {"message": "overloaded"}}'),
        Scripted(302, b"", {"location": "http://elsewhere/"}),
        b'{"cut": ',
    ]
    behind.answer = lambda body, seen: answers[int(body["messages"][0]["content"])]
    for number in range(len(answers)):
        status, _, said = serve.send(body(str(number)))
        assert status == 502
        assert behind.base_url in said["error"]["message"]
    nowhere = start("--base-url", "http://127.0.0.1:9/v1", store="other")
    status, _, said = nowhere.send(body("?"))
    assert status == 502
    assert "no connection" in said["error"]["message"]


def test_keys_pass_through_and_are_neither_stored_nor_part_of_a_request(
    start: Start, fault_server: FaultServer, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any], seen: int) -> Scripted:
        key = fault_server.headers[-1].get("authorization", "").removeprefix("Bearer ")
        return completion(f"your key is {key}") if "refuse" not in key else openai_error(401, f"no such key: {key}")

    fault_server.answer = answer
    serve = start()
    assert serve.say("?").choices[0].message.content == "your key is ***"
    assert fault_server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert serve.say("?", key=f"{KEY}-of-another").choices[0].message.content == "your key is ***"
    assert len(fault_server.seen) == 1
    with pytest.raises(openai.AuthenticationError, match="no such key"):
        serve.say("another?", key=f"{KEY}-refuse")
    assert serve.send(body("without?"))[0] == 200
    assert "authorization" not in fault_server.headers[-1]
    status, _, said = serve.send(body("?", metadata={"api_key": KEY}))
    assert status == 400
    assert "api_key looks like a key" in said["error"]["message"]
    told = serve.stop()
    files = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    assert KEY.encode() not in files + told.encode()


def test_a_key_of_the_endpoint_goes_before_that_of_the_tool(start: Start, fault_server: FaultServer) -> None:
    serve = start("--api-key-env", "MINE", env={"MINE": "sk-mine-is-the-one-that-counts"})
    serve.say("?")
    assert fault_server.headers[0]["authorization"] == "Bearer sk-mine-is-the-one-that-counts"


def test_what_fails_with_one_key_is_asked_again_with_the_other_that_waits(serve: Serve, behind: FaultServer) -> None:
    def answer() -> Scripted:
        return completion("yes") if behind.headers[-1]["authorization"] == "Bearer good" else openai_error(401, "no")

    go = held(behind, answer)
    bad = serve.begin(body("whose?"), authorization="Bearer bad")
    while not behind.seen:
        time.sleep(0.01)
    good = serve.begin(body("whose?"), authorization="Bearer good")
    serve.arrived()
    go.set()
    assert (serve.end(bad)[0], serve.end(good)[0]) == (401, 200)


@pytest.mark.parametrize(
    ("given", "headers", "status", "said"),
    [
        (body("?", stream=True), {}, 400, "does not stream"),
        (body("?", model="x"), {}, 404, "no model 'x' is served at /v1/chat/completions (there are: m)"),
        ({"messages": []}, {}, 404, "no model None is served"),
        (body("?", model=["m"]), {}, 404, "no model ['m'] is served"),
        ({"model": "m"}, {}, 400, "list of messages"),
        ([1], {}, 400, "list of messages"),
        (b"{", {}, 400, "not JSON"),
        (b'{"model": "m", "messages": [], "seed": NaN}', {}, 400, "cannot be sent"),
        (body("?"), {"content_type": "text/plain"}, 415, "application/json"),
        (body("?"), {"host": "attacker.example"}, 403, "only this machine"),
    ],
)
def test_requests_that_cannot_be_served_are_refused_in_words(
    serve: Serve, given: Any, headers: dict[str, str], status: int, said: str
) -> None:
    found, _, answer = serve.send(given, **headers)
    assert (found, answer["error"]["type"]) == (status, "judgekit_error")
    assert said in answer["error"]["message"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/chat/completions"), ("POST", "/v1/embeddings")])
def test_what_is_not_served_is_said_with_what_is(serve: Serve, method: str, path: str) -> None:
    status, _, answer = serve.send(method=method, path=path)
    assert status == 404
    assert f"{method} {path} is not served; POST /v1/chat/completions" in answer["error"]["message"]


def test_other_machines_need_a_token(start: Start, fault_server: FaultServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "judgekit", "serve", "--base-url", fault_server.base_url, "--model", "m"]
    options = ["--cache", str(tmp_path / "other"), "--port", "0", "--host"]
    for host in ("0.0.0.0", "0"):
        refused = subprocess.run([*command, *options, host], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2
        assert f"--host {host} lets other machines in: give --token-env VAR" in refused.stderr

    serve = start("--host", "0.0.0.0", "--token-env", "TOKEN", env={"TOKEN": "let-me-in"})
    for key in ("", "Bearer wrong", "let-me-in"):
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/metrics")):
            assert serve.send(body("?"), path, method, authorization=key)[0] == 401
    assert serve.send(path="/health", method="GET")[0] == 200
    assert serve.send(body("?"), authorization="Bearer let-me-in", host="judge.example")[0] == 200
    assert len(fault_server.seen) == 1
    assert "authorization" not in fault_server.headers[0], "the token is not the endpoint's key"


def test_a_budget_that_is_used_up_stops_sending_and_no_more(start: Start, fault_server: FaultServer) -> None:
    serve = start("--max-requests", "3")
    assert [serve.send(body(f"{i}"))[0] for i in range(5)] == [200, 200, 200, 402, 402]
    assert serve.send(body("1"))[0] == 200
    _, headers, said = serve.send(body("4"))
    assert "the budget of 3 requests is used up" in said["error"]["message"]
    assert headers["x-should-retry"] == "false"
    assert len(fault_server.seen) == 3


def test_replies_that_a_run_has_paid_for_are_given_and_a_run_finds_those_of_the_tools(
    start: Start, fault_server: FaultServer, tmp_path: Path
) -> None:
    fault_server.answer = lambda body, seen: completion(f"{body['messages'][0]['content']}, {len(fault_server.seen)}")
    units = [f"unit {i}" for i in range(5)]
    direct = Run(fault_server.base_url, units, tmp_path / "store", params={"temperature": 0})
    serve = start()
    for unit in units:
        given = serve.send(body(unit, temperature=0))
        assert given[1]["x-judgekit-source"] == "store"
    others = [f"unit {i}" for i in range(5, 9)]
    served = [serve.send(body(unit, temperature=0))[2]["choices"][0]["message"]["content"] for unit in others]
    also = Run(fault_server.base_url, [*units, *others], tmp_path / "store", params={"temperature": 0})
    assert (also.usage.sent, also.usage.cached) == (0, 9), "a run beside it shares the store"
    assert also.texts == sorted([*direct.texts, *served])
    assert len(fault_server.seen) == 9
    Run(fault_server.base_url, ["of the run"], tmp_path / "store")
    assert serve.send(body("of the run"))[1]["x-judgekit-source"] == "store"


class Samples(Ask):
    """Three replies to one body."""

    def requests(self, unit: str, replies: Any, /) -> list[Request]:
        return [Request(one.endpoint, one.body, n) for one in super().requests(unit, replies) for n in range(3)]


def test_samples_of_one_request_stay_apart_on_their_way_through(
    start: Start, fault_server: FaultServer, tmp_path: Path
) -> None:
    fault_server.answer = lambda body, seen: completion(f"reply {seen}")
    serve = start()

    async def ask(base_url: str, store: str, transport: Any) -> list[str]:
        endpoint = Endpoint("e", base_url, "m", transport=transport)
        async with Session(tmp_path / store) as session:
            return [said async for _, got in session.resolve(["?"], Samples(endpoint), "s") for said in texts(got)]

    direct = run_sync(ask(fault_server.base_url, "store", "http"))
    assert sorted(direct) == ["reply 0", "reply 1", "reply 2"]
    for transport in ("http", "openai"):
        assert run_sync(ask(serve.base_url, transport, transport)) == direct
    assert len(fault_server.seen) == 3


def test_without_its_packages_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with Session(None) as session, socket.socket() as none, pytest.raises(UsageError, match=r"judgekit\[serve\]"):
        run_sync(serving_room.serve(session, [Endpoint("e", "mock:", "m")], none, None, print))


def test_a_second_one_on_the_same_store_says_so(start: Start, tmp_path: Path) -> None:
    first = start()
    command = [sys.executable, "-m", "judgekit", "serve", "--base-url", "mock:", "--model", "m", "--port", "0"]
    options = ["--cache", str(tmp_path / "store")]
    second = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert second.returncode == 2
    assert second.stderr.startswith("judgekit: another `judgekit serve` uses the store")
    first.stop(signal.SIGKILL)
    start().stop()


def test_an_interrupt_waits_for_what_is_in_flight_and_refuses_what_waits(
    start: Start, fault_server: FaultServer
) -> None:
    go = held(fault_server)
    serve = start("--concurrency", "2")
    asked = [serve.begin(body(str(i))) for i in range(6)]
    while len(fault_server.seen) < 2:
        time.sleep(0.01)
    serve.arrived()
    serve.process.send_signal(signal.SIGINT)
    assert serve.process.stderr is not None
    while "stopping" not in serve.process.stderr.readline():
        pass
    go.set()
    told = serve.process.communicate(timeout=60)[1]
    assert Counter(serve.end(one)[0] for one in asked) == {200: 2, 503: 4}
    assert serve.process.returncode == 0
    assert "default: 0 from the store, 0 joined, 2 sent, 4 failed" in told
    again = start()
    stored = [again.send(body(str(i)))[1]["x-judgekit-source"] for i in range(6)]
    assert Counter(stored) == {"store": 2, "sent": 4}


def test_a_second_interrupt_leaves_at_once(start: Start, fault_server: FaultServer) -> None:
    fault_server.answer = lambda body, seen: completion("yes", delay_s=60)
    serve = start()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(serve.send, body("?"))
        while not fault_server.seen:
            time.sleep(0.01)
        serve.process.send_signal(signal.SIGINT)
        assert serve.process.stderr is not None
        while "again leaves at once" not in serve.process.stderr.readline():
            pass
        told = serve.stop()
        assert asked.result()[0] == 503
    assert told == "default: 0 from the store, 0 joined, 0 sent, 1 failed\n"


def test_a_killed_one_loses_at_most_what_was_in_flight(start: Start, fault_server: FaultServer) -> None:
    fault_server.answer = lambda body, seen: completion("yes", delay_s=0.02)
    serve = start("--concurrency", "4")
    answered: list[str] = []

    def ask(number: int) -> None:
        try:
            if serve.send(body(str(number)))[0] == 200:
                answered.append(str(number))
        except (OSError, http.client.HTTPException):
            pass

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, number) for number in range(200)]
        while len(answered) < 50:
            time.sleep(0.005)
        serve.process.kill()
        for one in asked:
            one.result()
    paid = len(fault_server.seen)
    again = start()
    for number in range(200):
        again.send(body(str(number)))
    assert len(fault_server.seen) - 200 <= 4, "paid twice is at most what was in flight"
    assert paid >= len(answered) >= 50
    assert all(again.send(body(number))[1]["x-judgekit-source"] == "store" for number in answered)


def test_a_tool_that_does_not_wait_finds_its_reply_in_the_store(serve: Serve, behind: FaultServer) -> None:
    behind.answer = lambda body, seen: completion("late", delay_s=0.6)
    with pytest.raises(openai.APITimeoutError):
        serve.client().with_options(timeout=0.3).chat.completions.create(**body("late?"))
    assert serve.say("late?").choices[0].message.content == "late"
    assert len(behind.seen) == 1


def test_several_servers_stand_behind_it_as_behind_a_run(start: Start, fault_server: FaultServer) -> None:
    fault_server.answer = lambda body, seen: openai_error(503, "draining", headers={"retry-after": "60"})
    with serving(FaultServer()) as other:
        serve = start("--base-url", fault_server.base_url, "--base-url", other.base_url)
        assert {serve.send(body(str(i)))[0] for i in range(20)} == {200}
        assert len(fault_server.seen) == 1
        assert counted(serve, "in_flight") == {
            f'endpoint="default",server="{server.base_url}"': 0 for server in (fault_server, other)
        }
