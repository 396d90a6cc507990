"""A whole run that is killed at random moments ends, once it is let through, with the same files."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STABLE = ("labels/*", "answers/*", "scores.parquet", "comparison.csv", "differences.csv", "resolved.toml")


def demo(out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "judgekit", "demo", "--out", str(out)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def files(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for pattern in STABLE for p in sorted(out.glob(pattern))}


@pytest.mark.many
def test_a_demo_that_is_killed_again_and_again_ends_with_the_same_files(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert demo(tmp_path / "whole").wait() == 0
    seconds = time.monotonic() - begun
    whole = files(tmp_path / "whole")
    assert len(whole) > 8
    rng = random.Random(4)
    killed = 0
    while killed < 10:
        process = demo(tmp_path / "killed")
        time.sleep(rng.uniform(0.1, 0.9) * seconds)
        process.kill()
        killed += process.wait() == -9
        for name, content in files(tmp_path / "killed").items():
            assert content == whole[name], f"{name} is neither absent nor whole"
    assert demo(tmp_path / "killed").wait() == 0
    assert files(tmp_path / "killed") == whole
