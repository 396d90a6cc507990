"""Labeling on a Ray cluster on this machine with 1, 2 and 4 workers, against the local executor, in one run.

    python -m benchmarks.ray_scaling [--queries 2000] [--latency-ms 50] [--concurrency 256]

A fast mock server runs as a process of its own. Seconds are from the first label to the last, as the driver sees them;
``start`` is what comes before: partitions, actors and imports. CPU is that of all workers together, or of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.llm_speed import TEXT, server
from judgekit import stages
from judgekit.client.session import Session
from judgekit.experiment.cluster import run_on_cluster
from judgekit.experiment.file import Config, load
from judgekit.experiment.prepare import prepare
from judgekit.progress import Event

TICK = os.sysconf("SC_CLK_TCK")
DEPTH = 10


def experiment(folder: Path, base_url: str, queries: int, concurrency: int) -> Config:
    """Write an experiment with ten pairs a query, whose answers are imported, so that labels alone ask."""
    docs = ({"doc_id": f"d{n}", "title": f"Canberra {n}", "text": f"{TEXT}{n}"} for n in range(queries * DEPTH))
    asked = ({"query_id": f"q{n}", "text": f"What is the capital of {n}?", "answers": ["x"]} for n in range(queries))
    run = (f"q{n // DEPTH} Q0 d{n} 1 {DEPTH - n % DEPTH} x" for n in range(queries * DEPTH))
    answers = ({"query_id": f"q{n}", "run": "a", "depth": DEPTH, "answer": "x"} for n in range(queries))
    for name, rows in {"docs": docs, "queries": asked, "answers": answers}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "a.trec").write_text("\n".join(run))
    (folder / "x.toml").write_text(f"""
        [data]
        queries = "queries.jsonl"
        docs = "docs.jsonl"
        depth = {DEPTH}
        [runs]
        a = "a.trec"
        [endpoints.e]
        base_url = "{base_url}"
        model = "m"
        concurrency = {concurrency}
        [[labelers]]
        kind = "judge"
        name = "judge"
        [answers]
        import = "answers.jsonl"
        depths = [{DEPTH}]
        [metrics]
        measures = ["nDCG"]
        [executor]
        kind = "ray"
        pairs = {queries * DEPTH // 6}
    """)
    return load(folder / "x.toml")


@dataclass
class Timed:
    """When the first and the last label came."""

    began: float
    first: float = 0.0
    at_first: int = 0
    last: float = 0.0
    done: int = 0

    def __call__(self, event: Event) -> None:
        if event.stage == "label judge" and event.done > self.done:
            self.last, self.done = time.perf_counter(), event.done
            if not self.first:
                self.first, self.at_first = self.last, event.done

    def told(self, what: str, cpu: float) -> str:
        rate = (self.done - self.at_first) / (self.last - self.first)
        cpu_ms = 1000 * cpu / self.done
        return f"{what:<14}{rate:8,.0f} pairs/s{cpu_ms:9.3f} ms CPU a pair{self.first - self.began:8.1f} s start"


def cpu_of(name: str) -> Iterator[float]:
    """Yield the CPU seconds of each process that shows this in its command line."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if name in (path / "cmdline").read_text():
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                yield (int(fields[11]) + int(fields[12])) / TICK
        except OSError:
            continue


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, default=256)
    asked = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    import ray

    with tempfile.TemporaryDirectory() as made, server(asked.latency_ms) as base_url:
        folder = Path(made)
        config = experiment(folder, base_url, asked.queries, asked.concurrency)
        prepared = prepare(config, cache=folder / "index")
        print(
            f"{asked.queries * DEPTH:,} pairs, {asked.latency_ms:g} ms latency, {asked.concurrency} at once", flush=True
        )
        timed, before = Timed(time.perf_counter()), time.process_time()
        async with Session(folder / "local", progress=timed) as session:
            await stages.label_pool(prepared.labelers["judge"], prepared.collection, session, "judge")
        print(timed.told("local", time.process_time() - before), flush=True)
        ray.init(num_cpus=2, object_store_memory=80_000_000, log_to_driver=False, logging_level=logging.ERROR,
                 include_dashboard=False)  # fmt: skip
        for workers in (1, 2, 4):
            executor = config.executor.model_copy(update={"workers": workers})
            one, cpu = prepare(config.model_copy(update={"executor": executor}), cache=folder / "index"), 0.0

            timed = Timed(time.perf_counter())

            def tell(event: Event, timed: Timed = timed) -> None:
                nonlocal cpu
                timed(event)
                cpu = max(cpu, sum(cpu_of("MapWorker")))

            async with Session(folder / f"ray{workers}", progress=tell) as session:
                await run_on_cluster(one, session, folder / f"out{workers}", [], None, tell)
            print(timed.told(f"ray, {workers} worker{'s'[: workers - 1]}", cpu), flush=True)
        ray.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
