"""Runs command lines in children under a watchdog: ``python -m tests.lab.bench``.

For each line ``{"argv": …, "cwd": …}`` on its standard input it forks a child that runs it (a child that is forked need
not import anything), and prints ``{"code": …, "seconds": …, "mib": …}``. What the child said is in ``said`` in its
folder. A child that does not end is killed, and its code is null or negative: after ten seconds of work, after thirty
in which it did none, or after five minutes, so that a busy machine is not taken for a command that hangs.
"""

import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow.parquet

import judgekit.api
import judgekit.experiment.run
import judgekit.people.reading
import judgekit.report
from judgekit.cli import main
from judgekit.cli.app import app_for

WORK_S = 10
IDLE_S = 30.0
LIMIT_S = 300.0
LARGEST = 4 << 30
WARM = (aiohttp, pyarrow.parquet, judgekit.api, judgekit.experiment.run, judgekit.people.reading, judgekit.report)


def child(argv: list[str], cwd: str) -> None:
    """Run a command line, and end with its code; 70 is a traceback."""
    os.chdir(cwd)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST, LARGEST))
    resource.setrlimit(resource.RLIMIT_CPU, (WORK_S, WORK_S))
    code = 0
    try:
        main(argv)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001  # what is looked for
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def watched(argv: list[str], cwd: str) -> dict[str, Any]:
    """Run a command line in a child; say how it ended."""
    began = worked = time.monotonic()
    work: list[str] = []
    number = os.fork()
    if not number:
        child(argv, cwd)
    killed = False
    while True:
        done, status, used = os.wait4(number, os.WNOHANG)
        if done:
            break
        now = time.monotonic()
        if now - worked > 1 and (spent := Path(f"/proc/{number}/stat").read_text().split()[13:15]) != work:
            worked, work = now, spent
        if not killed and (now - worked > IDLE_S or now - began > LIMIT_S):
            os.kill(number, 9)
            killed = True
        time.sleep(0.005)
    code = None if killed else os.waitstatus_to_exitcode(status)
    return {"code": code, "seconds": time.monotonic() - began, "mib": used.ru_maxrss / 1024}


if __name__ == "__main__":
    app_for()
    for line in sys.stdin:
        print(json.dumps(watched(**json.loads(line))), flush=True)
