"""The parts of an experiment as tasks of a Ray cluster, one each; see `judgekit.job.Job.part`.

A part keeps its replies in the results' folder, which all nodes share, so it finds them again if its worker is killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import tomllib
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from judgekit.client.asking import Asking
from judgekit.client.budget import Amount, Budget, Spending
from judgekit.client.estimates import most_tokens
from judgekit.client.stages import AllStages
from judgekit.client.sync import run_sync
from judgekit.client.waves import Plan, missing
from judgekit.errors import JudgekitError, StoppedError, UsageError, install
from judgekit.experiment.file import Config, parse_config
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.run import asked, run
from judgekit.job import budget_of, part
from judgekit.progress import Event
from judgekit.store.maintenance import records_of
from judgekit.store.records import member
from judgekit.store.replies import Store, default_store_path
from judgekit.wire.jsontext import parse_json
from judgekit.wire.usage import tokens_used


def warm_on_ray(config: Config, parts: Path, address: str, asking: Asking) -> Amount:
    """Answer all requests of the steps into the store, in one part per CPU; return the cost."""
    prepared = prepare(config, cache=asking.cache)
    ray = _connected(address)
    # A part with less than one request in flight would wait for the others.
    concurrency = [endpoint.concurrency for endpoint in prepared.endpoints]
    number_of_parts = min([int(ray.cluster_resources().get("CPU", 1)), *concurrency])
    file = config.toml(), str(config.path.absolute())
    # Retry any number of times: losing a node is not the part's fault, and its replies are kept.
    answer_part = ray.remote(num_cpus=1, max_retries=-1)(_part)

    async def work(store: Store) -> Amount:
        tasks, spent, stopped = list[Any](), Amount(), ""
        try:
            _gather(parts, store)  # left by an earlier start
            for number in range(1, number_of_parts + 1):
                folder = parts / f"{number}-of-{number_of_parts}"
                if _seed(prepared, number, number_of_parts, store, folder):
                    share = budget_of(asking.budget, number, number_of_parts)
                    part_of = number, number_of_parts, str(folder), share
                    tasks.append(answer_part.remote(*file, *part_of, time.time(), asking.wait_s))
            waiting = asyncio.as_completed([asyncio.wrap_future(task.future()) for task in tasks])
            for done, ended in enumerate(waiting, 1):
                took, problem = await ended
                spent, stopped = spent + took, stopped or problem
                asking.progress(Event("parts", done, len(tasks)))
        finally:
            for task in tasks:
                ray.cancel(task, force=True)
            _gather(parts, store)
        if stopped:
            raise StoppedError(stopped)
        return spent

    try:
        with closing(Store(default_store_path() if asking.cache is None else asking.cache)) as store:
            return run_sync(work(store))
    finally:
        ray.shutdown()


def _connected(address: str) -> Any:
    """Return Ray, connected to its cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray

        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except ImportError:
        raise UsageError(f"--ray needs Ray: {install('ray')}") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, or use --ray local"
        ) from None
    return ray


def _seed(prepared: Prepared, number: int, of: int, store: Store, folder: Path) -> int:
    """Give a part its stored replies; return the number of missing ones."""
    plan = Plan()
    with closing(Store(folder)) as segment:

        def lookup(keys: Any) -> Any:
            there = store.get_many(keys)
            segment.put_many([*store.records(list(there)).values()])
            return there

        for _ in missing(part(asked(prepared), number, of), AllStages(), lookup, plan):
            pass
    return plan.requests - plan.cached


def _gather(parts: Path, store: Store) -> None:
    """Move the parts' replies to the store."""
    for folder in sorted(parts.glob("*-of-*")):
        with closing(Store(folder)) as segment:
            records = (record for _, record in records_of(segment) if record is not None)
            while some := list(islice(records, 500)):
                store.put_many(some)
        shutil.rmtree(folder)


def _part(
    toml: str, path: str, number: int, of: int, folder: str, share: Budget, since: float, wait_s: float
) -> tuple[Amount, str]:
    """Work on a part, on a node of the cluster; return the cost, and the reason if it was stopped."""
    config = parse_config(tomllib.loads(toml), Path(path))
    spending, earlier = Spending(Budget(), config.price_list()), Amount()
    prices = {}
    for endpoint in config.servers().values():
        prices[endpoint.identity, endpoint.model] = spending.price(endpoint)
    # A killed worker may have spent some of the part's share and left replies.
    with closing(Store(folder)) as store:
        for _, record in records_of(store):
            if record is not None and record.time >= since:
                used = None if record.reply is None else tokens_used(parse_json(record.reply))
                price = prices.get((record.endpoint, member(record.body, "model")))
                earlier.add(used, price, record.seconds, most_tokens(record.body.encode()))
    try:
        asking = Asking(cache=folder, wait_s=wait_s).within(share.less(earlier))
        taken = run.job(config, out=folder, asking=asking).answered_part(number, of)
    except JudgekitError as error:
        return earlier, str(error)
    return sum((usage.incurred for usage in taken.values()), earlier), ""
