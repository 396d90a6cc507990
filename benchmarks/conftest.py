"""Processor time of one core, and all figures once more at the end."""

import os
from collections.abc import Callable

import pytest

# The threads of a BLAS library burn the time of others while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a figure, now and at the end of the run."""

    def say(text: str) -> None:
        print(f"\n{text}", end="", flush=True)
        request.config.stash.setdefault(_FIGURES, []).append(text)

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = terminalreporter.config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("figures")
    for text in figures:
        terminalreporter.write_line(text)
