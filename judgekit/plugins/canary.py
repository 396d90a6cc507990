"""The canary: asks some of what the store holds once more, and says how many labels come out otherwise.

A server may change behind its name without a word. What is asked here goes around the store: the replies are compared
with the stored ones and dropped, so that a labeling stays what it is. A model that samples, or a server that adds up in
another order, flips a few labels on any day; many flips, or a model of another name, mean that what is asked from now
on is not comparable with what is stored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judgekit.errors import UsageError
from judgekit.experiment.step import State, Step
from judgekit.progress import Event
from judgekit.registry import register

if TYPE_CHECKING:
    from judgekit.client.session import Session
    from judgekit.data.documents import Unit
    from judgekit.experiment.prepare import Prepared
    from judgekit.labelers.base import Label, Labeler

_TRIES = 20
"""Units that are looked up in the store for each that is wanted, before it counts as holding no more of them."""


@register.table("canary")
@dataclass(frozen=True)
class CanaryConfig:
    """``[canary]``: ask some stored requests again before labeling, at their cost.

    Attributes:
        pairs: number of stored pairs to ask again for each labeling, drawn by the experiment's seed over all queries. A
            labeler that sees several documents at once may ask a little more. ``--dry-run`` does not count them.
    """

    pairs: int = 50

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise UsageError(f"pairs must be at least 1, not {self.pairs}")


@register.step(before="label")
class Canary(Step):
    """Say of every labeling that asks an LLM how many labels come out otherwise now; what is stored stays."""

    name = "canary"

    async def do(self, state: State) -> None:
        """Ask again, where the experiment wants it; what that took is taken off the budget."""
        from judgekit.client.budget import Amount
        from judgekit.client.session import Session

        wanted, session = state.prepared.config.table("canary", CanaryConfig), state.session
        if wanted is None:
            return
        spending = session.shared.spending
        anew = Session(
            None,
            mode="off",
            budget=spending.budget,
            prices=state.prepared.config.price_list(),
            progress=state.progress,
            transports=session.shared.transports,
            wait_s=session.shared.wait_s,
        )
        async with anew:
            asked = [(name, one) for name, one in state.prepared.labelers.items() if one.needs.asked]
            for done, (name, labeler) in enumerate(asked, 1):
                line = await _flips(name, labeler, state.prepared, wanted.pairs, session, anew)
                state.progress(Event("canary", done, len(asked), note=line))
                state.warnings.append(line)
        spent = sum((usage.incurred for usage in anew.totals().values()), Amount())
        spending.budget = spending.budget.less(spent)


async def _flips(name: str, labeler: Labeler, prepared: Prepared, pairs: int, store: Session, anew: Session) -> str:
    """Return a line: how the labels of one labeling came out when they were asked for again."""
    from judgekit.client.model_drift import origin
    from judgekit.data.tables import Status
    from judgekit.labelers.base import checked
    from judgekit.labelers.human import wilson
    from judgekit.stages import stored_outcomes

    then: dict[tuple[str, str], Label] = {}
    units: list[Unit] = []
    before, now, flips = set[str](), set[str](), list[bool]()
    for tried, unit in enumerate(_drawn(labeler, prepared)):
        if len(then) >= pairs or tried >= _TRIES * pairs:
            break
        outcomes = stored_outcomes(labeler, unit, store)
        if outcomes:
            then |= {(one.query_id, one.doc_id): one for one in checked(labeler, unit, outcomes)}
            before.add(origin(outcomes)[0])
            units.append(unit)
    if not units:
        return f"canary {name}: no stored replies to compare with yet"
    async for unit, replies in anew.resolve(units, labeler, stage=f"canary {name}", total=len(units)):
        now.add(origin(replies)[0])
        for one in checked(labeler, unit, replies):
            if one.status is not Status.FAILED:
                stored = then[one.query_id, one.doc_id]
                flips.append((one.relevance, one.status) != (stored.relevance, stored.status))
    share = ""
    if flips:
        low, high = wilson(sum(flips), len(flips))
        share = f" ({sum(flips) / len(flips):.1%}, 95 % interval {low:.1%} to {high:.1%})"
    if failed := len(then) - len(flips):
        share += f"; {failed:,} now have no reply"
    if before != now:
        named, naming = (", ".join(sorted(names - {""})) or "no model" for names in (before, now))
        share += f"; the stored replies name {named}, the new ones {naming}"
    return f"canary {name}: {sum(flips):,} of {len(flips):,} labels differ{share}"


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
