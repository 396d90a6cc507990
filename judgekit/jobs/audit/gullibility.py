"""Gullibility: does tampering make an irrelevant passage relevant, and what does that change?

Passages from other questions' pools are attacked; the labeler is asked about each unchanged (the control) and changed
by each probe.
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
# With fewer pairs an interval would be useless.
_LEAST: Final = 20


def sample_size(material: Material) -> int:
    """Return the number of pairs to ask about."""
    return max(_LEAST, math.ceil(_SHARE * len(material.pairs)))


def draw(material: Material) -> list[Pair]:
    """Draw other questions' passages, one for each question in turn, until there are enough."""
    # No reference is needed: a passage of another question that no run retrieved is not relevant. Pairs of one question
    # are fooled alike, so the same number of pairs tells more if spread over more questions.
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
    """The requests to a labeler about some pairs, changed by a probe or unchanged.

    Attributes:
        probe: the change of their passages; None for the control.
        labeler: the labeler.
        stage: the stage of the requests.
        units: the labeler's input.
    """

    probe: Probe | None
    labeler: Labeler
    stage: str
    units: list[Unit]


def attacks(material: Material, name: str, probes: Sequence[Probe], pairs: Sequence[Pair]) -> Iterator[Attack]:
    """Yield the requests to a labeler, the control first; none if its labels come from a file or from people."""
    labeler = material.prepared.labelers[name]
    # Labels of a file do not depend on the passage, and some labelers' labels depend on other passages too.
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
    """Ask a labeler about the pairs under each probe and return its numbers."""
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
    """Return the labels of an attack's pairs, shape (N,); NaN for none."""
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
    """Return a probe's effect on the labels of some pairs."""
    # A labeler only counts as fooled if that holds for all `tried` probes together (Bonferroni).
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
