"""A command line, and a script that belongs to no package, in this process."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

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
    """Return a function that runs a command line, and holds it to its exit status where that is given as ``code``."""

    def call(*args: object, code: int | None = None) -> Said:
        capfd.readouterr()
        left = 0
        try:
            main([str(arg) for arg in args])
        except SystemExit as ended:
            left = ended.code if isinstance(ended.code, int) else 1
        captured = capfd.readouterr()
        assert code in (None, left), (left, captured.err)
        return Said(left, captured.out, captured.err)

    return call


def script(path: Path) -> ModuleType:
    """Return the module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
