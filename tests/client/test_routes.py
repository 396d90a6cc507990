"""What a server has beside chat completions: whether it is ready, and how many tokens a prompt has."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from judgekit.client.estimates import by_script
from judgekit.client.routes import count_tokens, observed_by, wait_ready
from judgekit.client.waves import Unsent
from judgekit.errors import EndpointError
from judgekit.wire.types import Endpoint
from tests.mock import URL
from tests.programs import Run

DOWN = "http://127.0.0.1:9/v1"


def ready(endpoint: Endpoint, wait_s: float = 20) -> list[str]:
    notes: list[str] = []
    asyncio.run(wait_ready(endpoint, wait_s, notes.append))
    return notes


@pytest.mark.parametrize(
    "answers",
    [
        {"/v1/models": [(503, {}), (200, {"data": [{"id": "m"}]})]},
        {"/v1/models": [(404, {})], "/health": [(503, {}), (500, {}), (200, {})]},
        {"/v1/models": [(404, {})], "/health": [(404, {})]},
        {"/v1/models": [(401, {})]},
        {"/v1/models": [(429, {}), (200, {"data": []})]},
        {"/v1/models": [(200, {"data": [{"id": "m", "meta": None}]}), (200, {"data": [{"id": "m", "meta": {}}]})]},
        {"/v1/models": [(200, [])]},
    ],
)
def test_a_server_is_ready_once_its_models_or_its_health_say_so(fault_server, answers):
    def other(path, body):
        return answers[path].pop(0) if len(answers[path]) > 1 else answers[path][0]

    fault_server.other = other
    late = any(len(each) > 1 for each in answers.values())
    assert len(ready(Endpoint("here", fault_server.base_url, "m"))) == late
    assert all(len(each) == 1 for each in answers.values())


def test_a_server_that_does_not_come_up_ends_the_run_and_says_why():
    begun = time.monotonic()
    with pytest.raises(EndpointError, match=r"not ready after 0.3 s \(--wait\): 127.0.0.1:9: Connection refused"):
        ready(Endpoint("here", DOWN, "m"), 0.3)
    assert time.monotonic() - begun < 10
    assert "not ready after 0.2 s" in str(Run(DOWN, ["a", "b"], session={"wait_s": 0.2}).error)


def test_a_run_waits_before_its_first_request_only(fault_server):
    asked: list[str] = []

    def other(path, body):
        asked.append(path)
        return (503, {}) if len(asked) < 3 else (200, {"data": []})

    fault_server.other = other
    found = Run(fault_server.base_url, [f"unit {i}" for i in range(20)], session={"wait_s": 20})
    assert asked == ["/v1/models"] * 3
    assert found.usage.sent == 20
    assert "waiting for the server" in " ".join(found.notes)


def body(*texts: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}).encode()


def chats(path: str, asked: Any) -> tuple[int, Any]:
    """Count as vLLM does, a chat with its template or a text."""
    if path != "/tokenize":
        return 404, {}
    words = " ".join(m["content"] for m in asked.get("messages", [])) or asked["prompt"]
    return 200, {"count": 5 + len(words.split()), "max_model_len": 4096, "tokens": []}


def texts(path: str, asked: Any) -> tuple[int, Any]:
    """Count as SGLang does: a text only."""
    return (200, {"tokens": [], "count": len(asked["prompt"].split())}) if "prompt" in asked else (422, {})


def llama(path: str, asked: Any) -> tuple[int, Any]:
    """Count as llama.cpp does, which takes no notice of what it does not know."""
    return 200, {"tokens": [1] * len(asked.get("content", "").split())}


@pytest.mark.parametrize(("other", "counts"), [(chats, [7, 9]), (texts, [2, 4]), (llama, [2, 4])])
def test_a_server_that_counts_tokens_is_asked_for_its_count(fault_server, other, counts):
    fault_server.other = other
    endpoint = Endpoint("here", fault_server.base_url, "m")
    assert asyncio.run(count_tokens(endpoint, [body("one two"), body("one two", "three four")])) == counts
    assert fault_server.seen == [], "no model was asked"


@pytest.mark.parametrize(
    "said", [(404, {}), (200, {}), (200, {"count": -1}), (200, {"count": 10**9}), (200, {"count": True}), (500, "no")]
)
def test_no_prompt_goes_to_a_server_that_does_not_count(fault_server, said):
    seen: list[Any] = []

    def other(path, asked):
        seen.append(asked)
        return said

    fault_server.other = other
    assert asyncio.run(count_tokens(Endpoint("here", fault_server.base_url, "m"), [body("secret text")])) is None
    assert "secret" not in str(seen)
    assert asyncio.run(count_tokens(Endpoint("here", DOWN, "m"), [body("secret text")])) is None


def test_a_sample_is_spread_over_all_requests_and_stays_small():
    lacking = Unsent()
    for i in range(1000):
        lacking.add(body(f"word {i}"))
    assert 16 <= len(lacking.sample) <= 32
    assert lacking.sample[0] == body("word 0")
    assert json.loads(lacking.sample[-1])["messages"][0]["content"] > "word 9"
    assert lacking.room is None
    endpoint = Endpoint("mock", URL, "m")
    share = asyncio.run(observed_by({endpoint: lacking}))[endpoint].prompt_share(1000)
    assert share.about == pytest.approx(2 / by_script(body("word 500")), rel=0.05)
    assert share.low < share.about < share.high < 1.1 * share.about


@contextmanager
def serving(get: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Yield the address of a server that answers by ``get``."""
    quiet = {"do_GET": get, "log_message": lambda *_: None}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (BaseHTTPRequestHandler,), quiet)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_a_key_goes_to_the_server_and_not_where_it_redirects(monkeypatch):
    seen: list[tuple[str, str | None]] = []

    def redirect(asked):
        seen.append((asked.path, asked.headers.get("authorization")))
        asked.send_response(302)
        asked.send_header("location", "/elsewhere")
        asked.end_headers()

    monkeypatch.setenv("ROUTES_KEY", "sk-0123456789abcdef")
    with serving(redirect) as url:
        ready(Endpoint("here", f"{url}?v=2", "m", api_key_env="ROUTES_KEY"))
    assert seen == [("/v1/models?v=2", "Bearer sk-0123456789abcdef")]


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    def endless(asked):
        asked.send_response(200)
        asked.end_headers()
        with suppress(OSError):
            while True:
                asked.wfile.write(b"x" * 100_000)

    monkeypatch.setattr(Endpoint, "max_reply_bytes", 1_000_000)
    with serving(endless) as url, pytest.raises(EndpointError, match="a reply of more than 1 MB"):
        ready(Endpoint("here", url, "m"), 0.1)
