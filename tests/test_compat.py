"""What the pages of the release before show still works: each command and snippet, with the numbers that it prints."""

# ruff: noqa: F811  # fixtures

import re
from pathlib import Path

import pytest

from judgekit.metrics.measures import DEFINITIONS
from tests.test_docs import _read, folder, material, server  # noqa: F401  # fixtures

DECISION = re.compile(r"^Choose {4}.*\n(?:(?:[A-Z]| {10}).*\n)*", re.MULTILINE)
KEEP = re.compile(r"^Keep {6}.*\n(?: {10}.*\n)*", re.MULTILINE)
"""What a decision says of the labels to keep: 0.4.0 holds it against free rivals, which its changelog names."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
PAGES = sorted((Path(__file__).parent / "compat" / "0.3.0").glob("*.md"))


def numbers_of(decision: re.Match[str]) -> str:
    """Return the numbers of a decision, whose words 0.4.0 wrote anew, each as a piece that has to be shown."""
    return "".join(f"…\n{number}\n" for number in NUMBER.findall(KEEP.sub("", decision[0]))) + "…\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_snippets_of_0_3_0_work(
    page: Path,
    folder: Path,
    server: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A measure that a page declares is of that page alone.
    for name in [name for name, known in DEFINITIONS.items() if known.author]:
        monkeypatch.delitem(DEFINITIONS, name)
    copy = tmp_path / "pages" / page.name
    copy.parent.mkdir()
    copy.write_text(KEEP.sub("…\n", DECISION.sub(numbers_of, page.read_text())))
    try:
        _read(copy, folder, capfd, server)
    finally:
        for name in [name for name, known in DEFINITIONS.items() if known.author]:
            del DEFINITIONS[name]
