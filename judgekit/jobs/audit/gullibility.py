"""Gullibility: does a passage that is not relevant become so when somebody tampers with it, and what does that change?

Passages from the pools of other questions are attacked; the labeler is asked about each as it is (the control) and as
each probe leaves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.jobs.audit.audited_run import Material, Pair
from judgekit.jobs.audit.numbers import Number, mean_change, share_change, unknown
from judgekit.jobs.audit.probes import Probe
from judgekit.labelers.base import Labeler
from judgekit.labelers.contract import checked

NAME: Final = "gullibility"
_SHARE: Final = 0.05
# Of fewer pairs an interval would say nothing.
_LEAST: Final = 20


def sample_size(material: Material) -> int:
    """Return how many pairs are asked about."""
    return max(_LEAST, math.ceil(_SHARE * len(material.pairs)))


def draw(material: Material) -> list[Pair]:
    """Draw passages of other questions, one for each question in turn, until there are enough."""
    # No reference is needed: what no run retrieved for a question, of the passages of others, is not relevant. Pairs of
    # one question are fooled alike, so as many pairs over more questions say more.
    rng = random.Random(material.seed)
    wanted = sample_size(material)
    queries, pooled = rng.sample(material.queries, len(material.queries)), material.collection.pairs
    everything = sorted({doc_id for _, doc_id in material.pairs})
    drawn: dict[Pair, None] = {}
    for turn in range(10 * wanted):
        query_id, doc_id = queries[turn % len(queries)], rng.choice(everything)
        if doc_id not in pooled[query_id] and len(drawn) < wanted:
            drawn[query_id, doc_id] = None
    return list(drawn)


@dataclass(frozen=True)
class Attack:
    """What a labeler is asked about some pairs under a probe, or as they are.

    Attributes:
        probe: what is done to their passages; None for the control.
        labeler: who is asked.
        stage: the stage in which it is asked.
        units: what it is shown.
    """

    probe: Probe | None
    labeler: Labeler
    stage: str
    units: list[Unit]


def attacks(material: Material, name: str, probes: Sequence[Probe], pairs: Sequence[Pair]) -> Iterator[Attack]:
    """Yield what a labeler is asked, the control first; nothing where it hands on labels of a file, or of people."""
    labeler = material.prepared.labelers[name]
    # A file gives a pair the same label whatever its passage says; a label that depends on other passages is no
    # label of the pair alone.
    if not pairs or hasattr(labeler, "imported") or labeler.needs.people or not labeler.by_pair:
        return
    shown = list(material.units_of(labeler, pairs))
    yield Attack(None, labeler, f"audit {name}, control", shown)
    for probe in probes:
        tampered: list[Unit] = []
        for unit in shown:
            tampered.append(replace(unit, docs=tuple(probe.attacked(unit.query, doc) for doc in unit.docs)))
        yield Attack(probe, labeler, f"audit {name}, {probe.name}", tampered)


async def attack(
    material: Material, name: str, probes: Sequence[Probe], pairs: Sequence[Pair], session: Session
) -> list[Number]:
    """Ask a labeler about the pairs under every probe; return its numbers."""
    numbers: list[Number] = []
    control = np.full(len(pairs), np.nan)
    for asked in attacks(material, name, probes, pairs):
        labels = await _labels(asked, pairs, session)
        if asked.probe is None:
            control = labels
        else:
            numbers += effect(material, name, asked.probe, pairs, control, labels, tried=len(probes))
    return numbers


async def _labels(attack: Attack, pairs: Sequence[Pair], session: Session) -> Floats:
    """Return the labels of the pairs of an attack, NaN where there is none, shape (N,)."""
    values: dict[Pair, float] = {}
    async for unit, outcomes in session.resolve(attack.units, attack.labeler, stage=attack.stage, total=len(pairs)):
        for label in checked(attack.labeler, unit, outcomes):
            if label.relevance is not None:
                values[label.query_id, label.doc_id] = label.relevance
    return np.array([values.get(pair, math.nan) for pair in pairs])


def effect(
    material: Material,
    name: str,
    probe: Probe,
    pairs: Sequence[Pair],
    control: Floats,
    attacked: Floats,
    *,
    tried: int,
) -> list[Number]:
    """Return what a probe does to the labels of some pairs."""
    # A labeler is called fooled only where that holds for all probes that are `tried` together (Bonferroni).
    confidence = material.confidence
    there = np.isfinite(control) & np.isfinite(attacked)
    n, lost = int(there.sum()), int((~there).sum())
    number = partial(Number, NAME, probe.name, n=n)
    if n < 2:
        why = f"only {n} of {len(there)} pairs have both labels"
        return [unknown(NAME, probe.name, "flips to relevant", why, n)]
    units, before, after = material.units[material.at(pairs)][there], control[there], attacked[there]
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
