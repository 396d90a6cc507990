"""What a command asks: counted against the store, or cut into parts that are answered elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.client.budget import Budget
from judgekit.client.stages import AllStages, StageUnit
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.client.waves import Lookup, Plan

Asks = Mapping[str, Callable[[], Iterator[StageUnit]]]
"""What models are asked, by the name of the stage: functions that yield programs and their units."""


def everything(asks: Asks) -> Iterator[StageUnit]:
    """Yield what all stages ask, one stage after the other."""
    return chain.from_iterable(units() for units in asks.values())


def count(asks: Asks, cache: str | Path | None = None) -> dict[str, Plan]:
    """Count what stages would take against a store, by name and, under ``all``, together; nothing is sent."""
    # Imported here: whoever labels or answers counts nothing.
    from judgekit.client.waves import planned
    from judgekit.store.replies import Store, default_store_path, has_store

    path = default_store_path() if cache is None else cache
    with ExitStack() as opened:
        lookup: Lookup = lambda _: {}  # noqa: E731  # nothing is stored yet
        if has_store(path):
            lookup = opened.enter_context(closing(Store(path, readonly=True))).get_many
        plans = {name: planned(units(), AllStages(), lookup) for name, units in asks.items()}
        plans["all"] = planned(everything(asks), AllStages(), lookup)
    # What one stage's stored replies took says how long those of another will be.
    for plan in plans.values():
        plan.elsewhere = plans["all"].observed
    return plans


def part_of(text: str) -> tuple[int, int]:
    """Read ``2/8``, the second of eight parts."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UsageError(f"--part {text}: give the part and the number of parts, e.g. 2/8; the first part is 1/8")
    return int(number), int(of)


def part(asks: Asks, number: int, of: int) -> Iterator[StageUnit]:
    """Yield a part of what all stages ask; questions of the same text, which share requests, are in the same part."""
    # By the text and not by the id: questions of one text share requests, and two parts would pay for them twice.
    for program, unit in everything(asks):
        if zlib.crc32(unit.query.text.encode(errors="surrogatepass")) % of == number - 1:
            yield program, unit


def budget_of(budget: Budget, number: int, of: int) -> Budget:
    """Return a part's share of a budget."""
    requests, money = budget.max_requests, budget.max_cost
    if requests is not None:
        requests = piece_of(requests, number, of)
    if money is not None:
        money /= of
    return Budget(requests, money)


def piece_of(whole: int, number: int, of: int) -> int:
    """Return a part's piece of a whole number, so that all pieces make up the whole."""
    return whole // of + (number <= whole % of)
