"""What a server has beside chat completions: whether it is ready, and how many tokens a prompt has."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from judgekit.client.routes import wait_ready
from judgekit.errors import EndpointError
from judgekit.wire.types import Endpoint
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
