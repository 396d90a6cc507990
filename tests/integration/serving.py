"""Processes that the integration tests start, and real servers among them: none of them outlives the tests."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

__all__ = ["Server", "free_port", "serving", "started"]

_WITH_US = 'exec 3<&0 </dev/null; { cat <&3 >/dev/null; kill -KILL 0; } & exec 3<&-; exec "$@"'
"""Runs a command, and ends it with all that it started once our end of the pipe closes: also when we are killed."""


@contextlib.contextmanager
def started(
    command: list[str], log: Path, env: dict[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own, which ends with the block or with this process."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", _WITH_US, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin:
            process.stdin.close()


@dataclass
class Server:
    """A server that runs: its base URL, its log, and its key."""

    base_url: str
    process: subprocess.Popen[bytes]
    log: Path
    key: str = ""

    def get(self, path: str) -> Any:
        """GET a path beside ``/v1``, e.g. ``/stats``."""
        with urllib.request.urlopen(self.base_url.removesuffix("/v1") + path, timeout=10) as response:
            return json.loads(response.read())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(
    command: list[str],
    port: int,
    ready: str,
    log: Path,
    env: dict[str, str],
    key: str = "",
    wait_s: float = 120,
    give_up: Callable[[str], NoReturn] = pytest.fail,
    folder: Path | None = None,
) -> Iterator[Server]:
    """Run a server until the block ends; ready when ``ready`` answers."""
    with started(command, log, env, folder) as process:
        deadline = time.monotonic() + wait_s
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                said = f"not ready after {wait_s:g} s" if process.poll() is None else f"ended with {process.poll()}"
                print(log.read_text(errors="replace")[-3000:])
                give_up(f"{Path(command[0]).name}: {said}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{ready}", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        yield Server(f"http://127.0.0.1:{port}/v1", process, log, key)
