"""The small experiment, the command line in its folder, and a store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.store.replies import Store
from tests.small import folder, judgekit

__all__ = ["folder", "judgekit"]  # a fixture is found where its name is


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "store")) as opened:
        yield opened
