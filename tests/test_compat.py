"""What the pages of the release before show still works: each command and snippet, with the numbers that it prints."""

# ruff: noqa: F811  # fixtures

import re
from pathlib import Path

import pytest

from judgekit.metrics.measures import DEFINITIONS
from tests.test_docs import _read, folder, material, server  # noqa: F401  # fixtures

KEEP = re.compile(r"^Keep {6}.*\n(?: {10}.*\n)*", re.MULTILINE)
"""What a decision says of the labels to keep: 0.4.0 holds it against free rivals, which its changelog names."""
PAGES = sorted((Path(__file__).parent / "compat" / "0.3.0").glob("*.md"))


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
    copy.write_text(KEEP.sub("…\n", page.read_text()))
    try:
        _read(copy, folder, capfd, server)
    finally:
        for name in [name for name, known in DEFINITIONS.items() if known.author]:
            del DEFINITIONS[name]
