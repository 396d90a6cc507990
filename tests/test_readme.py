"""The README begins with what to type; `test_docs` reads it as a page. The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_first_commands_stand_on_the_first_screen_and_the_readme_is_read_in_one_go() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    for command in ("$ pip install .", "$ make demo", "$ make test"):
        assert next(i for i, line in enumerate(lines) if line.startswith(command)) < 20
    assert len(lines) <= 170
    shown = "\n".join(lines).split("```text\n")[1].split("```")[0]
    assert max(map(len, shown.splitlines())) <= 100, "the output does not fit 100 columns"


@pytest.mark.parametrize(
    "path", [path for path in sorted((ROOT / "judgekit").rglob("*.py")) if ">>> " in path.read_text()], ids=str
)
def test_the_examples_in_docstrings_are_true(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
