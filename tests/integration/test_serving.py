"""Servers that tests start end with the tests, even if these are killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
import os, sys, time
from pathlib import Path
from tests.integration.serving import free_port, serving

folder, port = Path(sys.argv[1]), free_port()
child = f'exec 4>{folder}/fifo; sleep 600 & exec {sys.executable} -m http.server --bind 127.0.0.1 {port}'
with serving(["sh", "-c", child], port, "/", folder / "log", dict(os.environ)):
    print("ready", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("seconds", [0, 600])
def test_a_server_and_its_children_end_with_the_process_that_started_them(seconds: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    held = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen([sys.executable, "-c", CODE, tmp_path, str(seconds)], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if seconds:
            process.kill()
        # What was never written to is readable once the last process that holds it has ended.
        assert select.select([held], [], [], 60)[0]
        assert os.read(held, 1) == b""
    finally:
        process.kill()
        process.communicate()
        os.close(held)
