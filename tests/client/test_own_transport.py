"""A transport of the user's own: an object, or a class in a file, that carries bytes as it likes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import load
from tests.programs import Ask, collect, texts
from tests.scripted import completion
from tests.small import EXPERIMENT, URL

FILE = """
import json

class Quiet:
    def __init__(self):
        self.closed = False

    async def send(self, endpoint, body):
        text = json.loads(body)["messages"][0]["content"]
        message = {"role": "assistant", "content": f"{endpoint.model} heard {text}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"Content-Type": "application/json"}, json.dumps({"choices": [choice]}).encode()

    async def aclose(self):
        raise SystemError("closed")


class Mute:
    pass
"""


class Carrier:
    """Fails at first, as networks do; says the header in capitals that a retry waits for."""

    def __init__(self, *failures: Any) -> None:
        self.failures, self.bodies = list(failures), list[bytes]()

    async def send(self, endpoint: jk.Endpoint, body: bytes) -> Any:
        self.bodies.append(body)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        return 200, {}, completion("yes").body


def asked(endpoint: jk.Endpoint, store: Path | None = None) -> list[str]:
    async def work() -> list[str]:
        async with Session(store, mode="on" if store else "off") as session:
            return texts((await collect(session, ["a"], Ask(endpoint)))["a"])

    return run_sync(work())


def endpoint(transport: Any, **more: Any) -> jk.Endpoint:
    return jk.Endpoint("mine", "http://nowhere.example/v1", "m", transport=transport, max_retries=3, **more)


def test_an_object_carries_requests_and_network_errors_are_tried_again() -> None:
    busy = (503, {"Retry-After": "0"}, b"{}")
    carrier = Carrier(ConnectionError("cut"), busy)
    assert asked(endpoint(carrier)) == ["yes"]
    assert len(carrier.bodies) == 3
    assert len(set(carrier.bodies)) == 1


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            KeyError("token"),
            r"endpoint 'mine': send\(\) of its transport: KeyError: 'token' \(test_own_transport.py, line",
        ),
        ("yes", r"must return \(status, headers, bytes\), not 'yes'"),
        ((200, {}, "text"), r"must return \(status, headers, bytes\), not \(200, \{\}, 'text'\)"),
    ],
)
def test_a_mistake_in_it_is_a_sentence_with_its_line(failure: Any, message: str) -> None:
    carrier = Carrier(failure)
    with pytest.raises(UsageError, match=message):
        asked(endpoint(carrier))
    assert len(carrier.bodies) == 1, "it is not tried again"


def test_a_file_brings_a_class_which_is_closed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    with pytest.raises(SystemError, match="closed"):
        asked(endpoint(f"{path}:Quiet"))
    path.write_text(FILE.replace('raise SystemError("closed")', "self.closed = True"))
    assert asked(endpoint(f"{path}:Quiet")) == ["m heard a"]
    with pytest.raises(UsageError, match=r"mine.py:Mute has no method send\(endpoint, body\)"):
        asked(endpoint(f"{path}:Mute"))
    with pytest.raises(UsageError, match=r"mine.py:Loud has no method send"):
        asked(endpoint(f"{path}:Loud"))


def test_an_experiment_file_names_it_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace('raise SystemError("closed")', "self.closed = True"))
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.replace('model = "mock"', 'model = "mock"\ntransport = "mine.py:Quiet"'))
    server = load(path).servers()["local"]
    assert (server.transport, server.base_url) == (f"{tmp_path / 'mine.py'}:Quiet", URL)
    assert asked(server) == ["mock heard a"]


@pytest.mark.parametrize(
    ("settings", "said"), [({"transport": Carrier()}, "cannot be combined"), ({"api": "completions"}, "is for LLMs")]
)
def test_what_is_an_llms_does_not_go_with_a_function(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        jk.Endpoint("app", kind="callable", target=lambda question, documents: "", revision="1", **settings)


def test_nothing_else_is_asked_of_its_server(tmp_path: Path) -> None:
    from judgekit.client.routes import count_tokens, wait_ready

    own = endpoint(Carrier())
    asyncio.run(wait_ready(own, 0))
    assert asyncio.run(count_tokens(own, [b"{}"])) is None
