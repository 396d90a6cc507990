"""The speed that the endpoint room promises, each as a ratio of two things measured in one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.llm_speed import compare, server

pytestmark = pytest.mark.bench

PAIRS = 6_000


@pytest.mark.parametrize("concurrency", [64, 256, 1024])
def test_labeling_takes_little_more_than_raw_aiohttp(
    tmp_path: Path, concurrency: int, say: Callable[[str], None]
) -> None:
    with server() as base_url:
        found = compare(base_url, PAIRS, concurrency, tmp_path)
    say(str(found))  # requests a second are told, not held to: other work takes them
    assert found.sent == (PAIRS, 0)
    assert found.cpu <= 3
    assert found.rerun >= 8
