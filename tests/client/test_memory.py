"""Pairs stream through: what is held does not grow with their number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
import asyncio, json, sys
from pathlib import Path
from benchmarks.llm_speed import stream
print(json.dumps(asyncio.run(stream(20_000, Path(sys.argv[1])))))
"""


@pytest.mark.more
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see the memory of a process")
def test_memory_does_not_grow_with_the_number_of_pairs(tmp_path: Path) -> None:
    for name in ("cold", "warm"):
        command = [sys.executable, "-c", CODE, str(tmp_path / "store")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        samples = json.loads(done.stdout)
        growth = samples[-1] - samples[2]
        print(f"{name}: {samples[2]:.0f} MiB after 6,000 pairs, {growth:+.1f} MiB after 20,000")
        assert growth < 4, samples
