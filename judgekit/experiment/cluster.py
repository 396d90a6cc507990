"""An experiment on a Ray cluster: Ray Data is the scheduler, judgekit the worker.

A row of the dataset is a partition (`judgekit.experiment.partitions`), and an actor works on one at a time. All actors
share limits and budget, which one small actor beside this process leases to them (`judgekit.client.leases`); it also
hears how far they are. Nothing of a result goes through Ray's memory, and nothing rests on Ray remembering anything.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit import errors
from judgekit.client.budget import Budget
from judgekit.client.leases import Lease, Leases
from judgekit.client.session import Mode, Session, run_sync
from judgekit.data.labelings import Labeling
from judgekit.errors import ConfigError, JudgekitError, StoppedError, UsageError
from judgekit.experiment.file import Config, ExecutorConfig
from judgekit.experiment.partitions import (
    Folder,
    Job,
    Partition,
    collect_tables,
    read_done,
    run_partition,
    write_partitions,
)
from judgekit.experiment.prepare import Prepared
from judgekit.progress import Event, Progress

__all__ = ["check_cluster", "run_on_cluster"]

_TELL_S: Final = 0.5
_CONNECT_S: Final = 5.0
_LEAVE_S: Final = 15.0
"""How long an interrupted run waits for its workers to keep what they paid for."""


def check_cluster(config: Config, mode: Mode, canary: int | None) -> None:
    """Refuse what is not done on a cluster, before anything is sent.

    Raises:
        ConfigError, UsageError: it says what.
    """
    if mode != "on":
        raise UsageError(f"--cache-mode {mode} is for one machine: a cluster keeps replies beside its partitions")
    if canary is not None:
        raise UsageError("--canary asks about replies in the store of this machine: run it with --executor local")
    if config.analysis.stop is not None:
        raise ConfigError("looks at blocks one after the other, which a cluster does not", config.path, "analysis.stop")
    try:
        import ray  # noqa: F401  # only to see whether it is there
    except ImportError:
        raise UsageError("the executor ray needs Ray: pip install 'judgekit[ray]'") from None


class _Worker:
    """What Ray Data makes of each actor: it works on one partition after the other."""

    def __init__(self, job: Job, owner: Any, budget: Budget) -> None:
        self._job, self._owner, self._budget = job, owner, budget

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        run_sync(self._work(str(batch["name"][0])))
        return batch

    async def _work(self, name: str) -> None:
        async def call(method: str, *args: Any) -> Any:
            return await getattr(self._owner, method).remote(*args)

        try:
            await run_partition(self._job, name, Lease(f"{name}-{uuid.uuid4().hex[:8]}", call, self._budget))
        except asyncio.CancelledError:
            pass  # everything has to stop, and why is known where it began
        except JudgekitError as problem:
            await call("stop", type(problem).__name__, str(problem))


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Keep what is not Python's from writing beside our bars: Ray's library tells there what is no user's matter."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _connected(executor: ExecutorConfig) -> Iterator[Any]:
    """Yield Ray, connected; a connection that there is already is used and kept.

    Raises:
        ConfigError: there is no cluster at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    host, _, port = executor.address.rpartition(":")
    hint = 'start one with `ray start --head`, or set address = "local" to have one on this machine for this run'
    if "://" in executor.address:
        reason = "is Ray's remote client, which runs no datasets: run judgekit on a node, or with `ray job submit`"
        raise ConfigError(reason, key="executor.address")
    try:
        if host and port.isdigit():
            socket.create_connection((host, int(port)), _CONNECT_S).close()  # Ray would try for minutes
        with _without_stderr():
            import ray
            import ray.data

            ours = not ray.is_initialized()
            if ours:
                more = {"include_dashboard": False} if executor.address == "local" else {}
                ray.init(executor.address, log_to_driver=False, logging_level=logging.ERROR, **more)
    except (OSError, ValueError, RuntimeError) as problem:
        said = str(problem).partition("\n")[0].partition(". ")[0]
        raise ConfigError(f"no Ray cluster answers at {executor.address} ({said}): {hint}", key="executor") from None
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


async def run_on_cluster(
    prepared: Prepared,
    session: Session,
    folder: Path,
    hashes: Sequence[str],
    budget: Budget | None,
    progress: Progress,
    wait_s: float,
) -> tuple[dict[str, Labeling], dict[str, pd.DataFrame]]:
    """Return the labelings by name and the answers by stage, made on the cluster; what it took the session counts.

    Args:
        prepared: the experiment.
        session: of the run.
        folder: of the results.
        hashes: of the files that decide what labels and answers are, beside the data.
        budget: where to stop.
        progress: called with events.
        wait_s: how long a server that is not ready is waited for.

    Raises:
        ConfigError: there is no cluster.
        StoppedError: as for `judgekit.experiment.run.run`.
    """
    executor = prepared.config.executor
    job = Job.of(prepared, executor.folder or str((folder / "partitions").absolute()), hashes, wait_s)
    partitions = write_partitions(prepared, job, executor.pairs)
    place = Folder(job.folder)
    earlier = {one.name: done for one in partitions if (done := read_done(place, one.name, one.digest))}
    totals = {f"label {name}": sum(one.pairs for one in partitions) for name in prepared.labelers}
    totals |= dict.fromkeys(job.stages, sum(one.answers for one in partitions))
    asked = {endpoint.name: endpoint for endpoint in prepared.endpoints}
    for done in earlier.values():
        session.absorb(done["account"], asked, earlier=True)
    begun = {stage: (sum(_size(one, stage) for one in partitions if one.name in earlier)) for stage in totals}

    most = budget.max_cost if budget else None

    def tell(events: Sequence[Event], notes: Sequence[str]) -> None:
        for event in events:
            there = begun.get(event.stage, 0)
            cached = event.cached + sum(_replayed(done, event.stage) for done in earlier.values())
            total = totals.get(event.stage, event.total)
            progress(replace(event, done=event.done + there, total=total, cached=cached, limit=most))
        for note in notes:
            progress(Event("cluster", len(earlier), None, note=note))

    if earlier:
        tell([Event(stage, 0, 0) for stage in totals], [f"{len(earlier)} of {len(partitions)} partitions are done"])
    todo = [one.name for one in partitions if one.name not in earlier]
    if todo:
        since = time.perf_counter()
        with _connected(executor) as ray:
            await _run(ray, job, todo, prepared, budget or Budget(), tell)
        took = [read_done(place, one.name, one.digest, whole=False) or {} for one in partitions if one.name in todo]
        _share_time(took, time.perf_counter() - since)
        for done in took:
            session.absorb(done["account"], asked)
    return collect_tables(prepared, job, partitions, session.folder)


def _size(partition: Partition, stage: str) -> int:
    return partition.pairs if stage.startswith("label ") else partition.answers


def _replayed(done: Mapping[str, Any], stage: str) -> int:
    usage = done["account"]["stages"].get(stage, {}).get("usage", {})
    return int(usage.get("sent", 0) + usage.get("cached", 0))


def _share_time(took: Sequence[Mapping[str, Any]], seconds: float) -> None:
    """Divide the time of the run among its stages, which the workers went through side by side."""
    usages = [stage["usage"] for done in took for stage in done["account"]["stages"].values()]
    whole = sum(usage["wall_s"] for usage in usages)
    for usage in usages:
        usage["wall_s"] *= seconds / whole if whole else 0.0


async def _run(ray: Any, job: Job, todo: Sequence[str], prepared: Prepared, budget: Budget, tell: Any) -> None:
    """Have the cluster work on partitions, and tell how far it is."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    limits = {
        e.name: (e.concurrency, e.requests_per_minute or math.inf, e.tokens_per_minute or math.inf)
        for e in prepared.endpoints
    }
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    owner = (
        ray.remote(num_cpus=0)(Leases)
        .options(scheduling_strategy=here)
        .remote(limits, (budget.max_requests, budget.max_tokens, budget.max_cost))
    )
    cpus = ray.cluster_resources().get("CPU", 1.0)
    workers = min(len(todo), prepared.config.executor.workers or max(1, int(cpus)))
    # Actors read their partitions themselves: tasks that did it first would need memory, and CPUs, which actors hold.
    names = [{"name": name} for name in todo]
    dataset = ray.data.from_items(names, override_num_blocks=len(todo)).map_batches(
        _Worker,
        fn_constructor_args=(job, owner, budget),
        batch_size=1,
        # Half of the CPUs at most, so that an actor finds another place when its node is lost.
        num_cpus=min(0.5, cpus / 2 / workers),
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
    )

    def consume() -> None:
        for _ in dataset.iter_batches(batch_size=None):
            pass

    working = asyncio.create_task(asyncio.to_thread(consume))
    try:
        while not working.done():
            await asyncio.wait({working}, timeout=_TELL_S)
            events, notes, _ = await owner.status.remote()
            tell(events, notes)
    except asyncio.CancelledError:
        owner.stop.remote("StoppedError", "interrupted")
        await asyncio.wait({working}, timeout=_LEAVE_S)
        raise
    finally:
        *_, stopped = await owner.status.remote()
        ray.kill(owner)  # whoever still works ends by it
        if not working.done():
            working.cancel()
    if stopped is not None:
        kind, text = stopped
        raise getattr(errors, kind, StoppedError)(text)
    try:
        working.result()
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as problem:
        raise StoppedError(f"the Ray cluster ended the run ({problem}); run again to go on from there") from None
