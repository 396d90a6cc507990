"""What the pages of the release before show still works: each command and snippet, with the numbers that it prints."""

# ruff: noqa: F811  # fixtures

from pathlib import Path

import pytest

from tests.test_docs import _read, folder, material, server  # noqa: F401  # fixtures

PAGES = sorted((Path(__file__).parent / "compat" / "0.3.0").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_snippets_of_0_3_0_work(
    page: Path,
    folder: Path,
    server: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    _read(page, folder, capfd, server)
