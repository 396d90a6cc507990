"""What an experiment asks, before its steps are walked: counted by a dry run, or answered into the store part by part.

All parts together ask what the steps ask: labels, answers, the ratings of those answers, and whatever follows a reply.
A plain run then finds every reply in the store. Nothing but the store is shared, so that any scheduler will do, and a
part that was killed is started again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from judgekit.client.budget import Budget, Usage
from judgekit.client.session import Session
from judgekit.client.waves import Plan
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import Config, load
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.run import steps
from judgekit.progress import Progress, silent
from judgekit.stages import AllStages, StageUnit, with_session
from judgekit.store.replies import default_store_path, has_store


def asked(prepared: Prepared) -> dict[str, Callable[[], Iterator[StageUnit]]]:
    """Return what all steps ask, by stage."""
    return {stage: units for step in steps() for stage, units in step.asks(prepared).items()}


def everything(prepared: Prepared) -> Iterator[StageUnit]:
    """Yield what all steps ask, one stage after the other."""
    return chain.from_iterable(units() for units in asked(prepared).values())


def count(asked: Mapping[str, Callable[[], Iterator[StageUnit]]], cache: str | Path | None = None) -> dict[str, Plan]:
    """Count what stages would take against a store, by name and, under ``all``, together; nothing is sent."""
    store = default_store_path() if cache is None else cache
    with Session(store if has_store(store) else None, mode="read-only") as session:
        plans = {name: session.plan(units(), AllStages()) for name, units in asked.items()}
        plans["all"] = session.plan(chain.from_iterable(units() for units in asked.values()), AllStages())
    return plans


def part_of(text: str) -> tuple[int, int]:
    """Read ``2/8``, the second of eight parts."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UsageError(f"--part {text}: give the part and the number of parts, e.g. 2/8; the first part is 1/8")
    return int(number), int(of)


def budget_of(budget: Budget, number: int, of: int) -> Budget:
    """Return a part's share of a budget."""
    requests, tokens, money = budget.limits
    return Budget(
        None if requests is None else _piece(requests, number, of),
        None if tokens is None else _piece(tokens, number, of),
        None if money is None else money / of,
    )


def part(prepared: Prepared, number: int, of: int) -> Iterator[StageUnit]:
    """Yield a part of what all steps ask; questions of the same text, which share requests, are in the same part."""
    texts = {query.text.encode(errors="surrogatepass") for query in prepared.collection.queries.values()}
    mine = {text.decode(errors="surrogatepass") for text in texts if zlib.crc32(text) % of == number - 1}
    return (unit for unit in everything(prepared) if unit[1].query.text in mine)


def _share(config: Config, number: int, of: int) -> Config:
    """Return the experiment with a part's share of each endpoint's limits."""
    endpoints = {}
    for name, endpoint in config.servers().items():
        if endpoint.concurrency < of:
            reason = f"is {endpoint.concurrency}, which {of} parts cannot share: raise it or use fewer parts"
            raise ConfigError(reason, config.path, f"endpoints.{name}.concurrency")
        rates = ("requests_per_minute", "tokens_per_minute")
        less = {rate: limit / of for rate in rates if (limit := getattr(endpoint, rate)) is not None}
        less["concurrency"] = _piece(endpoint.concurrency, number, of)
        endpoints[name] = config.endpoints[name].model_copy(update=less)
    return config.model_copy(update={"endpoints": endpoints})


def _piece(whole: int, number: int, of: int) -> int:
    """Return a part's piece of a whole number, so that all pieces make up the whole."""
    return whole // of + (number <= whole % of)


def warm(
    experiment: Config | str | Path,
    number: int,
    of: int,
    *,
    cache: str | Path | None = None,
    budget: Budget | None = None,
    progress: Progress = silent,
    wait_s: float = 0.0,
) -> dict[str, Usage]:
    """Have a part of what the steps ask answered into the store, with its share of rates and concurrency."""
    config = _share(experiment if isinstance(experiment, Config) else load(experiment), number, of)
    prepared, prices = prepare(config, cache=cache), config.price_list()

    async def answered(session: Session) -> dict[str, Usage]:
        async for _ in session.resolve(part(prepared, number, of), AllStages(), f"part {number} of {of}"):
            pass
        return session.totals()

    return with_session(answered, cache=cache, budget=budget, prices=prices, progress=progress, wait_s=wait_s)
