"""Real servers for the integration tests: a small real model, and a proxy that others wrote."""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.serving import Server, free_port, serving


@pytest.fixture(scope="session")
def real_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start the small real model with flags, e.g. ``real_endpoint("--error-rate", "0.1")``, once for the same flags."""
    folder, python = (os.environ.get(name) for name in ("JUDGEKIT_SMALL_MODEL", "JUDGEKIT_ENDPOINT_PYTHON"))
    if not folder or not python:
        pytest.skip("needs JUDGEKIT_SMALL_MODEL, a folder with serve.py, and JUDGEKIT_ENDPOINT_PYTHON to run it")
    script = Path(folder) / "serve.py"
    servers: dict[tuple[str, ...], Server] = {}
    with contextlib.ExitStack() as stack:

        def start(*flags: str) -> Server:
            if flags not in servers or servers[flags].process.poll() is not None:
                port = free_port()
                log = tmp_path_factory.mktemp("endpoint") / "log"
                command = [python, str(script), "--port", str(port), *flags]
                servers[flags] = stack.enter_context(serving(command, port, "/health", log, dict(os.environ)))
            return servers[flags]

        yield start


MOCKS = {
    "mock": "Yes",
    "throttled": "litellm.RateLimitError",
    "too-long": "litellm.ContextWindowExceededError",
    "broken": "litellm.InternalServerError",
}
"""The proxy's models, and what each answers."""


@pytest.fixture(scope="session")
def litellm_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A LiteLLM proxy with mock answers, which needs no network. ``server.key`` is its key."""
    executable = os.environ.get("JUDGEKIT_LITELLM")
    if not executable or shutil.which(executable) is None:
        pytest.skip("needs JUDGEKIT_LITELLM, the executable of a LiteLLM proxy")
    folder = tmp_path_factory.mktemp("litellm")
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": answer}}
        for name, answer in MOCKS.items()
    ]
    settings = {"num_retries": 0, "telemetry": False}
    config = folder / "config.yaml"
    config.write_text(
        json.dumps({"model_list": models, "litellm_settings": settings, "router_settings": {"num_retries": 0}})
    )
    key = f"sk-{secrets.token_hex(24)}"
    port = free_port()
    env = {**os.environ, "LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder)}
    command = [executable, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    with serving(command, port, "/health/liveliness", folder / "log", env, key) as server:
        yield server
