from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.store.replies import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "store")) as opened:
        yield opened
