"""Stores to be filled, changed from outside and read, also by the processes that tests start."""

import random
import signal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import identity


def record(number: int, size: int = 300, endpoint: str = "http://e/v1") -> Record:
    noise = random.Random(number).randbytes(size).hex()  # so that it is not compressed to nothing
    body = f'{{"model":"m","messages":[{{"content":"{number} {noise}","role":"user"}}]}}'
    reply = f'{{"choices":[{{"message":{{"content":"é {number}"}}}}]}}'
    return Record(identity(endpoint, 0, body.encode()), endpoint, 0, body, None, reply, (number, 1), 1.5)


def fill(path: Path | str, numbers: Iterable[int], size: int = 300) -> list[Record]:
    records = [record(n, size) for n in numbers]
    with closing(Store(path)) as store:
        for start in range(0, len(records), 100):
            store.put_many(records[start : start + 100])
    return records


def read(path: Path, records: list[Record], **options: Any) -> list[Record]:
    """Return those records that the store gives back."""
    with closing(Store(path, **options)) as store:
        found = store.get_many([r.key for r in records])
    assert all(r.key not in found or found[r.key].raw == r.reply for r in records)
    return [r for r in records if r.key in found]


def write(path: Path, statement: str, *values: object) -> None:
    """Change a store's rows as a broken disk or another program might."""
    with closing(sqlite3.connect(path / "cache.db")) as rows, rows:
        rows.execute(statement, values)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise an error if it takes longer."""

    def late(*_: Any) -> None:
        raise TimeoutError("it does not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
