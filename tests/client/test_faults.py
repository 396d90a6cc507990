"""Every fault of a server, over real sockets: what the user sees, what is sent again, and that nothing is lost."""

import gzip
import shlex
import socket
import ssl
import subprocess
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import pytest
import zstandard
from packaging.version import Version

from judgekit.data.tables import Status
from judgekit.errors import ConfigError, EndpointError
from judgekit.wire.quirks import UNUSABLE
from judgekit.wire.types import Failure
from tests.mock import Handler, serve
from tests.programs import Run
from tests.scripted import Scripted, completion, error

UNITS = [f"unit {i:02}" for i in range(40)]


@pytest.mark.parametrize(
    "fault",
    [
        error(500, "The server had an error."),
        Scripted(502, b"<html><title>502 Bad Gateway</title></html>"),
        Scripted(200, b"<html><body>Please log in</body></html>"),
        Scripted(200, completion("yes").body[:80]),
        Scripted(200, b""),
        Scripted(200, b"[]"),
        Scripted(200, b'{"choices": []}'),
        Scripted(200, b'{"error": {"message": "upstream is busy", "code": 502}}'),
        completion("yes").body[:60],
    ],
    ids=["500", "502 html", "html", "truncated", "empty", "array", "no choices", "error in 200", "dropped"],
)
def test_what_may_heal_is_tried_again_and_never_stored(fault_server, fault, tmp_path):
    fault_server.answer = lambda body, seen: fault if seen == 0 else "yes"
    run = Run(fault_server.base_url, UNITS[:5], tmp_path)
    assert run.error is None
    assert run.texts == ["yes"] * 5
    assert len(fault_server.seen) == 10
    assert (run.usage.incurred.requests, run.usage.standalone.requests, run.usage.failed) == (10, 5, 0)
    assert any("trying again after" in note for note in run.notes)
    again = Run(fault_server.base_url, UNITS[:5], tmp_path)
    assert again.texts == ["yes"] * 5
    assert len(fault_server.seen) == 10


YES = completion("yes").body
ODD: dict[str, tuple[bytes, str]] = {
    "a number of a million digits": (YES.replace(b'"choices"', b'"n":' + b"9" * 10**6 + b',"choices"'), ""),
    "latin-1": (YES.replace(b"yes", "yes, Zoë".encode("latin-1")), ""),
    "plain, called gzip": (YES, "gzip"),
    "plain, called deflate": (b" \n" + YES, "deflate"),
    "plain, called brotli": (YES, "br"),
    "gzip, called plain": (gzip.compress(YES), ""),
    "gzip, called deflate": (gzip.compress(YES), "deflate"),
    "zlib, called gzip": (zlib.compress(YES), "gzip"),
    "gzip in two members": (gzip.compress(YES[:20]) + gzip.compress(YES[20:]), "gzip"),
    "zstd": (zstandard.compress(YES), "zstd"),
    "a stream, called brotli": (b"data: " + YES + b"\n\ndata: [DONE]\n\n", "br"),
    "a stream": (b"data: " + YES + b"\n\ndata: [DONE]\n\n", ""),
}


@pytest.mark.parametrize("transport", ["http", "openai"])
@pytest.mark.parametrize("coding", ODD)
def test_a_whole_reply_in_an_odd_coding_is_paid_for_once_and_kept(fault_server, coding, transport, tmp_path):
    body, called = ODD[coding]
    fault_server.answer = lambda _, seen: Scripted(200, body, {"content-encoding": called} if called else {})
    run = Run(fault_server.base_url, UNITS[:3], tmp_path, transport=transport)
    assert len(fault_server.seen) == 3
    assert [text[:3] for text in run.texts] == ["yes"] * 3
    again = Run(fault_server.base_url, UNITS[:3], tmp_path)
    assert again.texts == run.texts
    assert len(fault_server.seen) == 3


@pytest.mark.parametrize("transport", ["http", "openai"])
def test_replies_in_brotli_stop_the_run_at_once_and_say_what_to_mend(fault_server, transport, tmp_path):
    packed = b"\x0b\x02\x80hello\x03"
    fault_server.answer = lambda _, seen: Scripted(200, packed, {"content-encoding": "br"})
    run = Run(fault_server.base_url, UNITS, tmp_path, transport=transport, concurrency=2, max_retries=5)
    assert "packed with brotli, which was not asked for" in str(run.error)
    assert "send gzip or plain text" in str(run.error)
    assert len(fault_server.seen) <= 2


LENGTH = b"content-length: %d\r\n" % len(YES)
HEADS = {
    "duplicate content-length": LENGTH + LENGTH,
    "signed content-length": LENGTH.replace(b": ", b": +"),
    "10,000 headers": b"".join(b"x-%d: a\r\n" % number for number in range(10_000)) + LENGTH,
    "a length beside chunks": b"transfer-encoding: chunked\r\n" + LENGTH,
    "NUL in a header": b"x-trace: a\0b\r\n" + LENGTH,
}


NEWEST = Version(version("aiohttp")) >= Version("3.14") and Version(version("openai")) >= Version("3")
"""Earlier aiohttp reads some of these heads, and earlier openai sends with httpx alone, which reads others."""


@pytest.mark.parametrize(
    ("head", "transport"),
    [(head, transport) for head in HEADS for transport in ("http", "openai")],
)
def test_headers_that_no_client_accepts_cost_one_request_and_say_what_to_mend(head, transport):
    class Malformed(Handler):
        asked = 0

        def reply(self, said: Any) -> None:
            Malformed.asked += 1
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + HEADS[head] + b"connection: close\r\n\r\n" + YES)
            self.close_connection = True

    url = serve(Malformed)
    run = Run(url, UNITS[:1], transport=transport, max_retries=5)
    (text,) = run.texts
    if not NEWEST and "peer unexpectedly closed" in text:
        pytest.skip("httpx alone cannot tell this from a connection that broke")
    assert Malformed.asked == run.usage.incurred.requests == 1
    if not NEWEST and text == "yes":
        return
    assert "its HTTP headers are malformed (" in text
    assert "Mend the server, or the proxy" in text
    assert "attempts" not in text


def test_bytes_that_are_no_text_are_paid_for_once(fault_server):
    fault_server.answer = lambda body, seen: Scripted(200, b"\xff\x99\x00\x01" * 50)
    run = Run(fault_server.base_url, UNITS[:1])
    assert run.texts == ["failed: 200 with 200 bytes that are no text (they begin with ff 99 00 01 ff 99 00 01)"]
    assert len(fault_server.seen) == 1


def test_what_does_not_heal_fails_its_unit_and_is_asked_again_by_the_next_run(fault_server, tmp_path):
    fault_server.answer = lambda body, seen: error(500, "boom") if body["messages"][0]["content"] == UNITS[3] else "yes"
    run = Run(fault_server.base_url, UNITS, tmp_path, max_retries=2)
    failure = run.outcomes[UNITS[3]]
    assert isinstance(failure, Failure)
    assert (failure.status, failure.reason) == (Status.FAILED, "500: boom (after 3 attempts)")
    assert len(run.outcomes) == 40
    assert (run.usage.sent, run.usage.failed, run.usage.incurred.requests) == (39, 1, 42)
    assert run.retries == [(f"here: {UNUSABLE}", 3)]
    fault_server.answer = lambda body, seen: "yes"
    fault_server.seen.clear()
    again = Run(fault_server.base_url, UNITS, tmp_path)
    assert again.texts == ["yes"] * 40
    assert fault_server.texts() == [UNITS[3]]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (error(401, "Incorrect API key provided."), "401: Incorrect API key provided."),
        (error(429, "You exceeded your current quota.", code="insufficient_quota"), "current quota"),
        (Scripted(301, b"", {"location": "https://elsewhere.example/v1"}), "redirects to https://elsewhere.example/v1"),
        (error(429, "Daily limit.", headers={"retry-after": "86400"}), "asks to wait 24 hours"),
    ],
    ids=["401", "quota", "301", "long wait"],
)
def test_what_cannot_heal_stops_at_once_with_the_servers_words(fault_server, fault, words):
    fault_server.answer = lambda body, seen: fault
    run = Run(fault_server.base_url, UNITS)
    assert words in run.stopped
    assert run.error.exit_code == 3
    assert len(fault_server.seen) <= 16


def test_what_came_and_what_is_in_flight_when_a_key_is_revoked_is_kept(fault_server, tmp_path):
    def answer(body, seen):
        return error(401, "Revoked.") if len(fault_server.seen) > 19 else completion("yes", delay_s=0.3)

    fault_server.answer = answer
    run = Run(fault_server.base_url, UNITS, tmp_path, concurrency=10)
    assert "Revoked." in run.stopped
    assert "api_key_env" in run.stopped
    assert len(fault_server.seen) <= 19 + 10
    fault_server.answer = lambda body, seen: "yes"
    assert Run(fault_server.base_url, UNITS, tmp_path).usage.cached == 19


def test_a_run_whose_first_requests_all_fail_stops_however_the_words_vary(fault_server):
    fault_server.answer = lambda body, seen: error(500, f"Include the request ID req_{uuid4()} in your report.")
    run = Run(fault_server.base_url, UNITS, max_retries=2)
    assert isinstance(run.error, EndpointError)
    assert len(fault_server.seen) < 40 * 3
    cut = completion("yes").body
    fault_server.answer = lambda body, seen: Scripted(200, cut[: 10 + len(fault_server.seen) % 20])
    assert isinstance(Run(fault_server.base_url, UNITS, max_retries=2).error, EndpointError)


def test_a_server_that_goes_down_for_good_stops_the_run(fault_server):
    units = [f"unit {i}" for i in range(300)]
    fault_server.answer = lambda body, seen: error(500, "Out of memory.") if len(fault_server.seen) > 50 else "yes"
    run = Run(fault_server.base_url, units, max_retries=1, concurrency=4)
    assert "20 requests in a row failed" in str(run.error)
    assert "Out of memory." in str(run.error)
    assert len(run.outcomes) >= 50


@pytest.mark.parametrize(("header", "least"), [("retry-after-ms", 0.65), ("retry-after", 0.95)])
def test_the_wait_that_a_server_asks_for_is_kept_and_told(fault_server, header, least):
    def answer(body, seen):
        # HTTP dates have whole seconds: two seconds ahead are between one and two
        value = "700" if header == "retry-after-ms" else formatdate(time.time() + 2, usegmt=True)
        return error(429, "Slow down.", headers={header: value}) if len(fault_server.seen) == 1 else "yes"

    fault_server.answer = answer
    run = Run(fault_server.base_url, UNITS[:6], concurrency=1)
    assert run.texts == ["yes"] * 6
    assert least < fault_server.times[1] - fault_server.times[0] < 60
    assert len(fault_server.seen) == 7
    assert len([note for note in run.notes if "asks to wait" in note]) == 1


@pytest.mark.parametrize("after", ["0", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_server_that_asks_to_wait_no_time_is_not_hammered(fault_server, after):
    def answer(body, seen):
        busy = fault_server.times[-1] - fault_server.times[0] < 0.5
        return error(429, "Slow down.", headers={"retry-after": after}) if busy else "yes"

    fault_server.answer = answer
    run = Run(fault_server.base_url, UNITS[:3], concurrency=1)
    assert run.error is None
    assert run.texts == ["yes"] * 3
    assert len(fault_server.seen) < 40


def test_being_throttled_lowers_concurrency_and_fails_nothing(fault_server):
    # more than three at a time are too many for this server
    busy = error(429, "Too many.", headers={"retry-after-ms": "20"})
    fault_server.answer = lambda body, seen: busy if fault_server.active > 3 else completion("yes", delay_s=0.01)
    run = Run(fault_server.base_url, [f"unit {i}" for i in range(200)], concurrency=64, max_retries=3)
    assert run.texts == ["yes"] * 200
    assert len(fault_server.seen) < 500


def test_a_timeout_starts_when_the_request_goes_not_while_it_waits_for_a_slot(fault_server):
    fault_server.answer = lambda body, seen: completion("yes", delay_s=0.3)
    run = Run(fault_server.base_url, UNITS[:5], concurrency=1, timeout_s=1.4, max_retries=0)
    assert run.texts == ["yes"] * 5
    assert fault_server.most_active == 1


def test_a_slow_answer_times_out_and_is_tried_again(fault_server):
    fault_server.answer = lambda body, seen: completion("yes", delay_s=3600 if seen == 0 else 0.0)
    run = Run(fault_server.base_url, UNITS[:3], timeout_s=0.5, max_retries=100)
    assert run.texts == ["yes"] * 3
    assert any("no answer within 0.5 s" in note for note in run.notes)


def test_a_connection_that_was_never_made_says_how_to_check_it():
    run = Run("http://127.0.0.1:9/v1", UNITS)
    assert "curl http://127.0.0.1:9/v1/models" in run.stopped
    assert "Is the server running" in run.stopped
    assert {kind for kind, _ in run.retries} == {"here: no connection, or no answer in time"}
    run = Run("http://no-such-host.invalid/v1", UNITS)
    assert "no-such-host.invalid" in str(run.error)


def test_https_where_a_server_speaks_http_and_a_key_that_was_not_sent_are_said(fault_server):
    run = Run(fault_server.base_url.replace("http:", "https:"), UNITS[:1], max_retries=0)
    assert "no HTTPS there (" in run.stopped
    assert "base_url begins with http://" in run.stopped
    fault_server.answer = lambda body, seen: error(401, "Incorrect API key provided.")
    assert (
        "(no key was sent: name the variable that holds it with api_key_env)" in Run(fault_server.base_url, "a").stopped
    )
    with_header = Run(fault_server.base_url, "a", headers={"X-Key": "mine"})
    assert "no key was sent" not in with_header.stopped


def test_an_untrusted_certificate_is_refused(tmp_path):
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost"
        " -addext subjectAltName=DNS:localhost"
    )
    if subprocess.run(shlex.split(command), cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("needs openssl to make a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
    with listener, ThreadPoolExecutor() as pool:
        accepted = pool.submit(listener.accept)
        run = Run(f"https://localhost:{listener.getsockname()[1]}/v1", UNITS[:1], max_retries=0)
        with pytest.raises(ssl.SSLError):
            accepted.result(10)
    assert "certificate" in str(run.error)


def test_a_missing_key_is_said_before_anything_is_sent(fault_server, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    run = Run(fault_server.base_url, UNITS, api_key_env="NO_SUCH_KEY")
    assert isinstance(run.error, ConfigError)
    assert "NO_SUCH_KEY is not set" in str(run.error)
    assert not fault_server.seen
