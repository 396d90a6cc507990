"""The canary: asks some of what the store holds once more, and says how many labels come out otherwise.

A server may change behind its name without a word. What is asked here goes around the store: the replies are compared
with the stored ones and dropped, so that a labeling stays what it is. A model that samples, or a server that adds up in
another order, flips a few labels on any day; many flips, or a model of another name, mean that what is asked from now
on is not comparable with what is stored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgekit.client.budget import Amount, Budget
from judgekit.client.origins import origin
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.data.tables import Status
from judgekit.experiment.prepare import Prepared
from judgekit.labelers.base import Label, Labeler, checked
from judgekit.labelers.human import wilson
from judgekit.progress import Progress, silent
from judgekit.store.replies import has_store
from judgekit.wire.types import Outcome

__all__ = ["Canary", "Flips", "canary", "stored_outcomes"]

_TRIES = 20
"""Units that are looked up in the store for each that is wanted, before it counts as holding no more of them."""


@dataclass(frozen=True)
class Flips:
    """How the labels of one labeling came out when they were asked for again.

    Attributes:
        labeling: its name.
        asked: labels that are there from both times.
        flips: those of them that differ in relevance or status.
        low, high: 95 % Wilson interval of the share of flips; 0 and 1 where nothing was asked.
        failed: labels without a reply now.
        then, now: the models that the replies name, stored and now.
    """

    labeling: str
    asked: int
    flips: int
    low: float
    high: float
    failed: int
    then: tuple[str, ...]
    now: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a line for the user."""
        if not self.asked and not self.failed:
            return f"canary {self.labeling}: nothing of it is stored yet to compare with"
        failed = f"; {self.failed:,} have no reply now" if self.failed else ""
        names = ""
        if self.then != self.now:
            then, now = (", ".join(names) or "no model" for names in (self.then, self.now))
            names = f"; the stored replies name {then}, those of now {now}"
        share = (
            f" ({self.flips / self.asked:.1%}, 95 % interval {self.low:.1%} to {self.high:.1%})" if self.asked else ""
        )
        return f"canary {self.labeling}: {self.flips:,} of {self.asked:,} labels differ{share}{failed}{names}"


@dataclass(frozen=True)
class Canary:
    """What asking again brought: the flips of every labeling that asks an LLM, and what it took."""

    flips: tuple[Flips, ...]
    spent: Amount


async def canary(
    prepared: Prepared,
    pairs: int,
    store: Path,
    *,
    budget: Budget | None = None,
    progress: Progress = silent,
    wait_s: float = 0.0,
) -> Canary:
    """Ask about ``pairs`` stored pairs of each labeling again, drawn by the experiment's seed over all queries.

    Args:
        prepared: the experiment.
        pairs: how many; a labeler that is shown several documents at once may go a little beyond.
        store: folder of the reply store, which is only read.
        budget: where to stop.
        progress: called with events.
        wait_s: how long a server that is not ready is waited for.

    Raises:
        StoppedError: the endpoint or the budget does not allow to go on.
    """
    prices = prepared.config.price_list()
    flips = []
    async with (
        Session(store if has_store(store) else None, mode="read-only") as base,
        Session(None, mode="off", budget=budget, prices=prices, progress=progress, wait_s=wait_s) as anew,
    ):
        for name, labeler in prepared.labelers.items():
            if labeler.needs.asked:
                flips.append(await _flips(name, labeler, prepared, pairs, base, anew))
    return Canary(tuple(flips), sum((usage.incurred for usage in anew.totals().values()), Amount()))


async def _flips(name: str, labeler: Labeler, prepared: Prepared, pairs: int, store: Session, anew: Session) -> Flips:
    then: dict[tuple[str, str], Label] = {}
    units: list[Unit] = []
    models: tuple[set[str], set[str]] = (set(), set())
    for tried, unit in enumerate(_drawn(labeler, prepared)):
        if len(then) >= pairs or tried >= _TRIES * pairs:
            break
        outcomes = stored_outcomes(labeler, unit, store)
        if outcomes:
            then |= {(one.query_id, one.doc_id): one for one in checked(labeler, unit, outcomes)}
            models[0].add(origin(outcomes)[0])
            units.append(unit)
    same = flipped = 0
    async for unit, replies in anew.resolve(units, labeler, stage=f"canary {name}", total=len(units)):
        models[1].add(origin(replies)[0])
        for one in checked(labeler, unit, replies):
            if one.status is Status.FAILED:
                continue
            before = then[one.query_id, one.doc_id]
            equal = (one.relevance, one.status) == (before.relevance, before.status)
            same, flipped = same + equal, flipped + (not equal)
    asked = same + flipped
    low, high = wilson(flipped, asked)
    named = [tuple(sorted(found - {""})) for found in models]
    return Flips(name, asked, flipped, low, high, len(then) - asked, *named)


def _drawn(labeler: Labeler, prepared: Prepared) -> Iterator[Unit]:
    """Yield units in random order: one of every query, then another one of every query, and so on."""
    collection, seed = prepared.collection, prepared.config.analysis.seed
    queries = [query_id for query_id, doc_ids in collection.pairs.items() if doc_ids]
    random.Random(seed).shuffle(queries)
    for turn in range(max((len(collection.pairs[query_id]) for query_id in queries), default=0)):
        for query_id in queries:
            docs = collection.docs.get(collection.pairs[query_id])
            units = list(labeler.units(collection.queries[query_id], docs))
            random.Random(f"{seed} {query_id}").shuffle(units)
            yield from units[turn : turn + 1]


def stored_outcomes(labeler: Labeler, unit: Unit, session: Session) -> Sequence[Outcome]:
    """Return the stored outcomes of a unit; [] unless all are there."""
    outcomes: list[Outcome] = []
    while wave := labeler.requests(unit, outcomes):
        found = session.lookup([request.key for request in wave])
        if not all(request.key in found for request in wave):
            return []
        outcomes += [found[request.key] for request in wave]
    return outcomes
