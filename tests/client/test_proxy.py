"""The proxy that the environment names: when it is used, what is said of it, and that .netrc is never read."""

import asyncio
import base64
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from judgekit.errors import ConfigError
from judgekit.reading.check import check_endpoint
from judgekit.wire.access import proxy_for
from judgekit.wire.types import Endpoint
from tests.programs import Run

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD")
BEHIND = "http://llm.example/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no proxy, to begin with."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(
    ("variables", "url", "expected"),
    [
        ({}, BEHIND, None),
        ({"http_proxy": "http://p:3128"}, BEHIND, "http://p:3128"),
        ({"http_proxy": "p:3128"}, BEHIND, "http://p:3128"),
        ({"http_proxy": ""}, BEHIND, None),
        ({"http_proxy": "http://p:3128"}, "https://llm.example/v1", None),
        ({"https_proxy": "http://p:3128"}, "https://llm.example/v1", "http://p:3128"),
        ({"all_proxy": "http://p:1", "https_proxy": "http://p:2"}, "https://llm.example/v1", "http://p:2"),
        ({"all_proxy": "http://p:1", "https_proxy": "http://p:2"}, BEHIND, "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "*"}, BEHIND, None),
        ({"all_proxy": "http://p:1", "no_proxy": "example"}, BEHIND, None),
        ({"all_proxy": "http://p:1", "no_proxy": "a.example, .llm.example"}, BEHIND, None),
        ({"all_proxy": "http://p:1", "no_proxy": "lm.example"}, BEHIND, "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "llm.example:8000"}, "http://llm.example:8000/v1", None),
        ({"all_proxy": "http://p:1", "no_proxy": "llm.example:8000"}, "http://llm.example:8001/v1", "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "10.1.2.3"}, "http://10.1.2.3:8000/v1", None),
        ({"all_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://10.1.2.3:8000/v1", None),
        ({"all_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://11.1.2.3:8000/v1", "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "x,fd00::/8"}, "http://[fd00::1]:8000/v1", None),
    ],
)
def test_the_proxy_is_the_one_that_the_environment_names_by_the_usual_rules(
    environment, variables, upper, url, expected
):
    for name, value in variables.items():
        environment.setenv(name.upper() if upper else name, value)
    assert proxy_for(url) == expected


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.1", "127.1", "0.0.0.0", "[::1]", "[::]",
             "[::ffff:127.0.0.1]"]
)  # fmt: skip
def test_this_machine_is_never_reached_through_a_proxy(environment, host):
    environment.setenv("ALL_PROXY", "http://p:1")
    assert proxy_for(f"http://{host}:8000/v1") is None


@pytest.mark.parametrize("proxy", ["socks5://u:hush@p:1080", "http://u:hush@", "http://u:hush@p:port", "ftp://p"])
def test_a_proxy_that_is_not_spoken_to_is_an_error_that_shows_no_password(environment, proxy):
    environment.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match=r"ALL_PROXY must name .* llm\.example .* NO_PROXY=llm\.example") as caught:
        proxy_for(BEHIND)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("password", ["someone:hush", ""])
def test_requests_go_through_the_proxy_with_its_password_alone_and_it_is_said_once_without(
    fault_server, environment, tmp_path, password
):
    place = fault_server.base_url.removeprefix("http://").removesuffix("/v1")
    environment.setenv("HTTP_PROXY", f"http://{password}{'@' if password else ''}{place}")
    netrc = tmp_path / "netrc"
    netrc.write_text("default login nobody password nothing\nmachine llm.example login nobody password nothing\n")
    netrc.chmod(0o600)
    environment.setenv("NETRC", str(netrc))
    run = Run(BEHIND, ["a", "b", "c"], tmp_path / "store")
    assert run.texts == ["yes"] * 3
    expected = "Basic " + base64.b64encode(password.encode()).decode() if password else None
    assert {headers.get("proxy-authorization") for headers in fault_server.headers} == {expected}
    assert {headers["host"] for headers in fault_server.headers} == {"llm.example"}
    assert all("authorization" not in headers for headers in fault_server.headers), "nothing is read from netrc"
    (note,) = (note for note in run.notes if "proxy" in note)
    assert f"http://{place}" in note
    assert "hush" not in repr(run.events)


def test_the_openai_client_too_reaches_this_machine_without_a_proxy(fault_server, environment, tmp_path):
    environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    run = Run(fault_server.base_url, ["a"], tmp_path / "store", transport="openai", max_retries=0)
    assert run.texts == ["yes"], run.error


def test_an_endpoint_is_checked_through_the_proxy(fault_server, environment):
    environment.setenv("HTTP_PROXY", fault_server.base_url.removesuffix("/v1"))
    checks = {check.name: check for check in asyncio.run(check_endpoint(Endpoint("e", BEHIND, "m")))}
    assert "through the proxy http://127.0.0.1" in checks["proxy"].detail
    assert checks["chat completion"].works == "yes"
    assert "404" in checks["list of models"].detail, "asked there as well, where the test's server has no such list"


@pytest.fixture
def tunnel() -> Iterator[tuple[int, list[str]]]:
    """A proxy that refuses a tunnel with a 407: its port, and what it was sent."""
    sent: list[str] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            sent.append(connection.recv(65536).decode())
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        served = pool.submit(serve)
        yield listener.getsockname()[1], sent
        served.result(10)


def test_a_proxy_that_refuses_or_is_not_there_is_named_and_never_sees_the_key(tunnel, environment):
    port, sent = tunnel
    environment.setenv("HTTPS_PROXY", f"http://someone:hush@127.0.0.1:{port}")
    environment.setenv("HTTP_PROXY", "http://someone:hush@127.0.0.1:9")
    environment.setenv("TEST_KEY", "sk-VERY-secret-0123456789")
    for url, said in ((f"https{BEHIND[4:]}", f"{port} answered 407"), (BEHIND, "9: Connection refused")):
        run = Run(url, ["a"], api_key_env="TEST_KEY", max_retries=0)
        assert f"no connection was made: the proxy 127.0.0.1:{said}" in str(run.error)
        assert "hush" not in str(run.error) + repr(run.events)
    assert sent[0].startswith("CONNECT llm.example:443 HTTP/1.1")
    assert "secret" not in "".join(sent)
