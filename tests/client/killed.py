"""The processes that `test_durability` kills: they resolve units, say which are done, write their texts at the end.

    python -m tests.client.killed

For each line ``BASE_URL STORE LOG OUT UNITS CONCURRENCY`` on its standard input it forks a child that does so (a child
that is forked need not import anything) and prints the child's process id; for ``wait ID`` how that child ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from judgekit.client.session import Session
from judgekit.data.streams import write_atomic
from judgekit.wire.types import Endpoint
from tests.programs import Ask, texts


async def work(base_url: str, store: str, log: str, out: str, units: str, concurrency: str) -> None:
    program = Ask(Endpoint("here", base_url, "m", concurrency=int(concurrency)), waves=2)
    names = [f"unit {number:04}" for number in range(int(units))]
    done = {}
    acknowledged = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Session(store) as session:
        async for unit, outcomes in session.resolve(names, program, "s", len(names)):
            os.write(acknowledged, f"{unit}\n".encode())
            done[unit] = texts(outcomes)
    write_atomic(Path(out), "".join(f"{unit}: {' | '.join(done[unit])}\n" for unit in sorted(done)))


def main() -> None:
    for line in sys.stdin:
        words = line.split()
        if words[0] == "wait":
            print(os.waitstatus_to_exitcode(os.waitpid(int(words[1]), 0)[1]), flush=True)
        elif child := os.fork():
            print(child, flush=True)
        else:
            asyncio.run(work(*words))
            os._exit(0)


if __name__ == "__main__":
    main()
