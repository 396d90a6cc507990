"""What a partition takes: time, bytes on disk and memory of dividing, labeling and bringing together; without Ray.

    python -m benchmarks.scale_costs [--queries 10000]

A query has ten pairs with passages of about 700 characters; a fast mock server answers. Each step is a process of its
own, of which the most resident memory is told.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.llm_speed import server
from benchmarks.ray_scaling import DEPTH, experiment
from judgekit.client.budget import Budget
from judgekit.client.leases import Lease, Leases
from judgekit.experiment.file import load
from judgekit.experiment.partitions import Folder, Job, collect_tables, read_done, run_partition, write_partitions
from judgekit.experiment.prepare import prepare


def job_of(folder: Path) -> tuple[Any, Job]:
    config = load(folder / "x.toml")
    executor = config.executor.model_copy(update={"pairs": 10**9})
    prepared = prepare(config.model_copy(update={"executor": executor}), cache=folder / "index")
    return prepared, Job.of(prepared, str(folder / "parts"), [])


def divide(folder: Path) -> Callable[[], object]:
    prepared, job = job_of(folder)
    return lambda: write_partitions(prepared, job, 10**9)


def label(folder: Path) -> Callable[[], object]:
    _, job = job_of(folder)

    async def all_of_it() -> None:
        leases = Leases({"e": (256, float("inf"), float("inf"))})

        async def call(method: str, *args: Any) -> Any:
            return getattr(leases, method)(*args)

        await run_partition(job, "part-00000-of-00001", Lease("one", call, Budget()))

    return lambda: asyncio.run(all_of_it())


def gather(folder: Path) -> Callable[[], object]:
    prepared, job = job_of(folder)
    partitions = write_partitions(prepared, job, 10**9)
    assert read_done(Folder(job.folder), partitions[0].name, partitions[0].digest)
    return lambda: collect_tables(prepared, job, partitions, folder)


def measured(step: Callable[[Path], Callable[[], object]], folder: Path, out: Any) -> None:
    """Run a step that is prepared first; tell its time, its CPU, and the memory before and at most."""
    do = step(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter(), time.process_time()
    do()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    out.put((wall, cpu, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=10_000)
    asked = parser.parse_args()
    pairs = asked.queries * DEPTH
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as made, server(5) as base_url:
        folder = Path(made)
        experiment(folder, base_url, asked.queries, 256)
        print(f"{pairs:,} pairs")
        for step in (divide, label, gather):
            out = context.SimpleQueue()
            process = context.Process(target=measured, args=(step, folder, out))
            process.start()
            wall, cpu, before, most = out.get()
            process.join()
            print(
                f"{step.__name__:<8}{wall:7.1f} s {1e6 * cpu / pairs:8.1f} us CPU a pair,"
                f" memory {before:6,.0f} MB prepared, {most:6,.0f} MB at most",
                flush=True,
            )
        for name in ("partitions", "replies", "labels", "scores"):
            size = sum(path.stat().st_size for path in (folder / "parts" / name).rglob("*") if path.is_file())
            print(f"{name:<12}{size / pairs:8.1f} bytes a pair")


if __name__ == "__main__":
    main()
