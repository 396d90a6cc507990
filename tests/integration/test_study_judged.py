"""The comparison that the study lacks, from end to end on 40 questions with a small real model."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from studies import judged
from tests.integration.serving import Server

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif("STUDIES" not in os.environ, reason="STUDIES names no folder with copies of the repositories"),
]


def test_forty_questions_are_labelled_and_published(real_endpoint: Callable[..., Server], tmp_path: Path) -> None:
    given = [real_endpoint().base_url, "--model", "minilm-l6-reader", "--limit", "40", "--concurrency", "4", "--yes"]
    assert judged.main([*given, "--out", str(tmp_path)]) == 0
    table = (tmp_path / "published" / "table.md").read_text()
    assert "; 40 questions." in table
    assert all(f"| {labels} | nDCG@5 |" in table for labels in ("judge", "graded", "eRAG", "gold"))
    labels = (tmp_path / "published" / "judge.qrels").read_text().splitlines()
    assert len(labels) > 400
    assert {line.split()[3] for line in labels} == {"0", "1"}
