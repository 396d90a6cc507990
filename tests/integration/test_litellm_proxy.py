from typing import Any

import pytest

from judgekit.client.sync import run_sync
from judgekit.errors import EndpointError
from judgekit.reading.check import check_endpoint
from judgekit.wire.types import Endpoint
from tests.programs import Run

UNITS = [f"unit {i:02}" for i in range(12)]


@pytest.fixture(autouse=True)
def _key(litellm_proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_KEY", litellm_proxy.key)
    monkeypatch.setenv("WRONG_KEY", "sk-wrong")


def ask(server: Any, model: str = "mock", **options: Any) -> Run:
    return Run(server.base_url, UNITS, **{"model": model, "api_key_env": "PROXY_KEY", "timeout_s": 30.0, **options})


def test_the_proxy_answers_and_reports_tokens(litellm_proxy: Any) -> None:
    run = ask(litellm_proxy, params={"temperature": 0, "max_tokens": 5})
    assert run.texts == ["Yes"] * 12
    assert run.usage.incurred.prompt_tokens == 120


def test_its_errors_are_understood(litellm_proxy: Any) -> None:
    too_long = ask(litellm_proxy, "too-long")
    assert too_long.error is None
    assert all("context window exceeded" in text for text in too_long.texts)
    broken = ask(litellm_proxy, "broken", max_retries=1)
    assert isinstance(broken.error, EndpointError)
    assert "failed in the same way: 500: litellm.InternalServerError" in str(broken.error)
    throttled = ask(litellm_proxy, "throttled", max_retries=0)
    assert "429: litellm.RateLimitError" in str(throttled.error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "nope"}, "400: /chat/completions: Invalid model name passed in model=nope"),
        ({"api_key_env": "WRONG_KEY"}, "No connected db"),
        ({"api_key_env": None, "max_retries": 1}, "500: Internal Server Error"),
    ],
)
def test_what_cannot_work_stops_the_run_whatever_the_status(
    litellm_proxy: Any, options: dict[str, Any], words: str
) -> None:
    run = ask(litellm_proxy, **options)
    assert isinstance(run.error, EndpointError)
    assert words in str(run.error)
    assert not any(litellm_proxy.key in note for note in run.notes)


def test_the_check_finds_out_what_it_ignores(litellm_proxy: Any) -> None:
    endpoint = Endpoint("proxy", litellm_proxy.base_url, "mock", api_key_env="PROXY_KEY")
    works = {check.name.split(" (")[0]: check.works for check in run_sync(check_endpoint(endpoint))}
    assert works["list of models"] == works["chat completion"] == "yes"
    assert works["log-probabilities"] == "no"
