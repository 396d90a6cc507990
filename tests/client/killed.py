"""What the processes do that `test_durability` kills."""

import asyncio
import os
from pathlib import Path

from judgekit.client.session import Session
from judgekit.data.streams import write_atomic
from judgekit.wire.types import Endpoint
from tests.programs import Ask, texts


def work(*asked: str | int) -> None:
    """Resolve units, say which are done, and write their texts at the end."""
    asyncio.run(_work(*asked))  # type: ignore[arg-type]  # in their order


async def _work(base_url: str, store: str, log: str, out: str, units: int, concurrency: int) -> None:
    program = Ask(Endpoint("here", base_url, "m", concurrency=concurrency), waves=2)
    names = [f"unit {number:04}" for number in range(units)]
    done = {}
    acknowledged = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Session(store) as session:
        async for unit, outcomes in session.resolve(names, program, "s", len(names)):
            os.write(acknowledged, f"{unit}\n".encode())
            done[unit] = texts(outcomes)
    write_atomic(Path(out), "".join(f"{unit}: {' | '.join(done[unit])}\n" for unit in sorted(done)))
