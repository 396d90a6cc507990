"""Time and memory of scoring runs in Parquet that are larger than memory, against scoring them all at once.

    python -m benchmarks.score_parts [--rows 50000000] [--runs 1] [--at-once]

A run holds 100 documents a query, a labeling 20. Memory is the most that the process of `judgekit score` had resident.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DEPTH, JUDGED, CHUNK = 100, 20, 10_000


def table(first: int, queries: int, per: int, value: str, seed: int) -> pa.Table:
    """Return rows of some queries, each with so many different documents of a pool of 1,000 of its own."""
    dice = np.random.default_rng((seed, first))
    number = np.repeat(np.arange(first, first + queries), per)
    ranks = (dice.integers(1000, size=(queries, 1)) + np.arange(per) * (7 if value == "score" else 29)) % 1000
    docs = pc.cast(pa.array(number * 1000 + ranks.ravel()), pa.string())
    values = dice.random(len(number)) if value == "score" else dice.integers(4, size=len(number)).astype(float)
    ids = pc.cast(pa.array(number), pa.string())
    d = pc.binary_join_element_wise("d", docs, "")
    return pa.table({"query_id": pc.binary_join_element_wise("q", ids, ""), "doc_id": d, value: values})


def write(path: Path, queries: int, per: int, value: str, seed: int) -> None:
    """Write a table in chunks of queries."""
    writer = None
    for first in range(0, queries, CHUNK):
        part = table(first, min(CHUNK, queries - first), per, value, seed)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def score(folder: Path, runs: int, *more: str) -> tuple[float, float, str]:
    """Return seconds, megabytes and what was printed."""
    command = [sys.executable, "-m", "judgekit", "score", f"--qrels={folder / 'judge.parquet'}", *more]
    command += [f"--run={folder / f'run{n}.parquet'}" for n in range(runs)]
    printed = folder / "printed"
    begun = time.perf_counter()
    with printed.open("wb") as out:
        pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return time.perf_counter() - begun, usage.ru_maxrss / 1024, printed.read_text()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000_000, help="of all runs together")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--at-once", action="store_true", help="also without partitions")
    asked = parser.parse_args()
    queries = asked.rows // asked.runs // DEPTH
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for number in range(asked.runs):
            write(folder / f"run{number}.parquet", queries, DEPTH, "score", number)
        write(folder / "judge.parquet", queries, JUDGED, "relevance", 99)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(
            f"{asked.rows:,} rows, {asked.runs} runs, {queries:,} queries, {queries * JUDGED:,} labels, {size:,.0f} MB"
        )
        seconds, megabytes, said = score(folder, asked.runs)
        print(f"in partitions  {seconds:7.1f} s  {megabytes:7,.0f} MB")
        if asked.at_once:
            seconds, megabytes, other = score(folder, asked.runs, "--partitions", "1")
            print(
                f"all at once    {seconds:7.1f} s  {megabytes:7,.0f} MB  {'the same' if said == other else 'DIFFERENT'}"
            )


if __name__ == "__main__":
    main()
