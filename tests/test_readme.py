"""The README begins with what to type; `test_docs` reads it as a page."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_first_commands_stand_on_the_first_screen_and_the_readme_is_read_in_one_go() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    for command in ("$ pip install .", "$ make demo", "$ make test"):
        assert next(i for i, line in enumerate(lines) if line.startswith(command)) < 20
    assert len(lines) <= 170
    shown = "\n".join(lines).split("```text\n")[1].split("```")[0]
    assert max(map(len, shown.splitlines())) <= 100, "the output does not fit 100 columns"
