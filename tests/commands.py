"""A command line that runs in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from judgekit.cli import main


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


Judgekit = Callable[..., Said]


def in_process(capfd: pytest.CaptureFixture[str]) -> Judgekit:
    """Return a function that runs a command line: ``judgekit("score", "--run", ...)``."""

    def call(*args: object) -> Said:
        capfd.readouterr()
        code = 0
        try:
            main([str(arg) for arg in args])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        captured = capfd.readouterr()
        return Said(code, captured.out, captured.err)

    return call
