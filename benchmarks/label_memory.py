"""What pairs take in memory while they are labelled and written, each size in a process of its own.

    python -m benchmarks.label_memory [PAIRS ...]

Containment labels queries of 100 documents each; memory is what the process holds of its own (``RssAnon``), the most of
each stage.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

DEPTH, DOCS = 100, 200_000


def make(pairs: int, folder: Path) -> None:
    """Write queries, documents and a run of that many rows."""
    rng = random.Random(1)
    with (folder / "docs.jsonl").open("w") as docs:
        for i in range(DOCS):
            docs.write(f'{{"doc_id": "D{i:07d}", "text": "passage {i} of a few words, number {i * 7 % 1000}"}}\n')
    with (folder / "queries.jsonl").open("w") as queries, (folder / "run.trec").open("w") as run:
        for q in range(pairs // DEPTH):
            queries.write(f'{{"query_id": "q{q}", "text": "question {q}?", "answers": ["{q % 1000}"]}}\n')
            first = rng.randrange(DOCS - DEPTH)
            run.writelines(f"q{q} Q0 D{first + i:07d} {i + 1} {DEPTH - i} r\n" for i in range(DEPTH))


def held_mib() -> float:
    """Return what this process holds of its own now."""
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in status if line.startswith("RssAnon:"))) / 1024


def child(folder: Path) -> None:
    """Label and write in this process; print the most memory of each stage as JSON."""
    from judgekit import labelling
    from judgekit.client.session import Session
    from judgekit.client.sync import run_sync
    from judgekit.collection import Collection
    from judgekit.context import Context
    from judgekit.data.files import write_labels
    from judgekit.data.labelings import Labeling
    from judgekit.data.trec import write_qrels
    from judgekit.labelers.base import build

    most, found = [held_mib()], {}

    def watch() -> None:
        while True:
            most[0] = max(most[0], held_mib())
            time.sleep(0.01)

    def ended(stage: str) -> None:
        found[stage], most[0] = max(most[0], held_mib()), held_mib()

    threading.Thread(target=watch, daemon=True).start()
    files = folder / "queries.jsonl", folder / "docs.jsonl", {"run": folder / "run.trec"}
    collection = Collection.make(*files, DEPTH, cache=folder / "cache")
    ended("read")
    labeler = build("containment", Context(docs=collection.docs))

    async def label() -> Labeling:
        async with Session(folder / "cache") as session:
            return await labelling.label_pool(labeler, collection, session)

    labeling = run_sync(label())
    ended("label")
    write_qrels(labeling, folder / "out.qrels")
    write_labels(labeling, folder / "out.parquet")
    ended("write")
    print(json.dumps(found))


def measure(pairs: int) -> dict[str, float]:
    """Return the most memory of each stage, MiB, for so many pairs."""
    with tempfile.TemporaryDirectory() as scratch:
        make(pairs, Path(scratch))
        command = [sys.executable, "-m", "benchmarks.label_memory", "child", scratch]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(sizes: list[int]) -> None:
    """Print the memory of each stage at each size."""
    for pairs in sizes:
        stages = ", ".join(f"{stage} {mib:,.0f} MiB" for stage, mib in measure(pairs).items())
        print(f"{pairs:,} pairs: {stages}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(Path(sys.argv[2]))
    else:
        main(list(map(int, sys.argv[1:])) or [1_000_000, 3_000_000])
