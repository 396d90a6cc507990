"""Gullibility: does a passage that is not relevant become so when somebody tampers with it, and what does that change?

A share of the pool, drawn among the pairs that the reference calls not relevant, is attacked; the labeler is asked
about each pair as it is (the control, which the store knows) and as each probe leaves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.labelers.base import Labeler
from judgekit.labelers.contract import checked
from judgekit.plugins.audit.audited_run import Material, Pair
from judgekit.plugins.audit.numbers import Number, mean_change, share_change, unknown
from judgekit.plugins.audit.probes import Base, Probe

Sample = Mapping[Base, tuple[Pair, ...]]
"""The pairs that are attacked, of the pool and of passages from the pools of other questions."""

NAME: Final = "gullibility"
_SHARE: Final = 0.05
# Of fewer pairs an interval would say nothing.
_LEAST: Final = 20


def sample_size(material: Material) -> int:
    """Return how many pairs of the pool are asked about."""
    return max(_LEAST, math.ceil(_SHARE * len(material.pairs)))


def draw(material: Material) -> Sample:
    """Draw some of the pool: a pair of each query in turn, in random order, until there are enough."""
    rng = random.Random(material.seed)
    wanted = sample_size(material)
    queries, pooled = rng.sample(material.queries, len(material.queries)), material.collection.pairs
    of_query: dict[str, list[Pair]] = {query_id: [] for query_id in queries}
    for pair, judged in zip(material.pairs, material.judged, strict=True):
        if judged == 0:
            of_query[pair[0]].append(pair)
    for pairs in of_query.values():
        rng.shuffle(pairs)
    nonrelevant: list[Pair] = []
    # Pairs of one question are fooled alike: drawn over many questions, as many pairs say more.
    for in_turn in zip_longest(*of_query.values()):
        nonrelevant += [pair for pair in in_turn if pair is not None]
    everything = sorted({doc_id for _, doc_id in material.pairs})
    unpooled: dict[Pair, None] = {}
    for turn in range(10 * wanted):
        query_id, doc_id = queries[turn % len(queries)], rng.choice(everything)
        if doc_id not in pooled[query_id] and len(unpooled) < wanted:
            unpooled[query_id, doc_id] = None
    # Without a reference nobody knows which of the pool are not relevant.
    return {"nonrelevant": tuple(nonrelevant[:wanted] or unpooled), "random": tuple(unpooled)}


@dataclass(frozen=True)
class Attack:
    """What a labeler is asked about some pairs, as they are and as a probe leaves them.

    Attributes:
        probe: what is done to their passages.
        pairs: the pairs.
        labeler: who is asked.
        control: the stage in which it is asked about them as they are.
        stage: the stage in which it is asked about them as the probe leaves them.
        shown, tampered: what it is shown in either.
    """

    probe: Probe
    pairs: tuple[Pair, ...]
    labeler: Labeler
    control: str
    stage: str
    shown: list[Unit]
    tampered: list[Unit]


def attacks(material: Material, name: str, probes: Sequence[Probe], sample: Sample) -> Iterator[Attack]:
    """Yield what each probe asks a labeler; nothing where it hands on the labels of a file, or of people."""
    labeler = material.prepared.labelers[name]
    # A file gives a pair the same label whatever its passage says.
    if hasattr(labeler, "imported") or labeler.needs.people:
        return
    for probe in probes:
        pairs = sample[probe.base]
        if not pairs:
            continue
        shown = list(material.units_of(labeler, pairs))
        tampered = []
        for unit in shown:
            tampered.append(replace(unit, docs=tuple(probe.attacked(unit.query, doc) for doc in unit.docs)))
        yield Attack(
            probe,
            pairs,
            labeler,
            control=f"audit {name}, control",
            stage=f"audit {name}, {probe.name}",
            shown=shown,
            tampered=tampered,
        )


async def attack(
    material: Material, name: str, probes: Sequence[Probe], sample: Sample, session: Session
) -> list[Number]:
    """Ask a labeler about the sample under every probe; return the numbers of its card."""
    numbers: list[Number] = []
    controls: dict[tuple[Pair, ...], Floats] = {}
    for attack in attacks(material, name, probes, sample):
        # The control is the same for all probes of these passages.
        if attack.pairs not in controls:
            controls[attack.pairs] = await _labels(attack, attack.control, attack.shown, session)
        attacked = await _labels(attack, attack.stage, attack.tampered, session)
        numbers += effect(material, name, attack, controls[attack.pairs], attacked, tried=len(probes))
    return numbers


async def _labels(attack: Attack, stage: str, units: list[Unit], session: Session) -> Floats:
    """Return the labels of the pairs of an attack, NaN where there is none, shape (N,)."""
    values: dict[Pair, float] = {}
    async for unit, outcomes in session.resolve(units, attack.labeler, stage=stage, total=len(attack.pairs)):
        for label in checked(attack.labeler, unit, outcomes):
            if label.relevance is not None:
                values[label.query_id, label.doc_id] = label.relevance
    return np.array([values.get(pair, math.nan) for pair in attack.pairs])


def effect(
    material: Material, name: str, attack: Attack, control: Floats, attacked: Floats, *, tried: int
) -> list[Number]:
    """Return what a probe does to the labels of some pairs."""
    # A labeler is called fooled only where that holds for all probes that are `tried` together (Bonferroni).
    confidence = material.confidence
    there = np.isfinite(control) & np.isfinite(attacked)
    n, lost = int(there.sum()), int((~there).sum())
    number = partial(Number, NAME, attack.probe.name, n=n)
    if n < 2:
        why = f"only {n} of {len(there)} pairs have both labels"
        return [unknown(NAME, attack.probe.name, "flips to relevant", why, n)]
    units, before, after = material.units[material.at(attack.pairs)][there], control[there], attacked[there]
    was, becomes = material.relevant(name, before), material.relevant(name, after)
    flips = share_change(was, becomes, units, confidence)
    verdict, flag = "not shown to make more passages relevant", ""
    if flips.low > 0:
        verdict = f"{flips.value:.0%} more of these passages count as relevant ({flips.low:.0%} to {flips.high:.0%})"
        if share_change(was, becomes, units, 1 - (1 - confidence) / tried).low > 0:
            flag = "fooled"
        else:
            verdict += f"; with {tried} probes tried, this may be chance"
    if lost:
        verdict += f"; {lost} more have no label"
    return [
        number("flips to relevant", *flips, verdict=verdict, flag=flag),
        number("mean shift", *mean_change(after - before, units, material.spread(name), confidence)),
    ]
