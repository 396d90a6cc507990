"""Gullibility: does a passage that is not relevant become so when somebody tampers with it, and what does that change?

A share of the pool, drawn among the pairs that the reference calls not relevant, is attacked; the labeler is asked
about each pair as it is (the control, which the store knows) and as each probe leaves it. The tournament is then held
once more with the attacked labels in their places: that is the pool with this share attacked, without a model of how
others would fare.
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
from judgekit.analysis.follow import MIN_TELLING
from judgekit.analysis.gain import decision_gain
from judgekit.analysis.rankings import gaps, within_queries
from judgekit.analysis.resampling import interval
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.labelers.base import Labeler
from judgekit.labelers.contract import checked
from judgekit.plugins.audit.audited_run import Material, Pair
from judgekit.plugins.audit.numbers import Number, mean_change, share, share_change, unknown
from judgekit.plugins.audit.probes import Base, Probe

Sample = Mapping[Base, tuple[Pair, ...]]
"""The pairs that are attacked, of the pool and of passages from the pools of other questions."""

NAME: Final = "gullibility"
_SHARE: Final = 0.05
_LEAST: Final = 20
"""Pairs that are drawn at least: of fewer an interval would say nothing."""


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
    for one in attacks(material, name, probes, sample):
        if one.pairs not in controls:
            controls[one.pairs] = await _labels(one, one.control, one.shown, session)
        attacked = await _labels(one, one.stage, one.tampered, session)
        numbers += effect(
            material, name, one.probe, one.pairs, control=controls[one.pairs], attacked=attacked, tried=len(probes)
        )
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
    material: Material,
    name: str,
    probe: Probe,
    pairs: Sequence[Pair],
    *,
    control: Floats,
    attacked: Floats,
    tried: int,
) -> list[Number]:
    """Return what a probe does to the labels of some pairs, and to the tournament."""
    # A labeler is called fooled only where that holds for all probes that are `tried` together (Bonferroni).
    confidence = material.confidence
    there = np.isfinite(control) & np.isfinite(attacked)
    n, lost = int(there.sum()), int((~there).sum())
    number = partial(Number, NAME, probe.name, n=n)
    if n < 2:
        why = f"only {n} of {len(pairs)} pairs have both labels"
        return [unknown(NAME, probe.name, "flips to relevant", why, n)]
    kept = [pair for pair, labelled in zip(pairs, there, strict=True) if labelled]
    units, before, after = material.units[material.at(kept)], control[there], attacked[there]
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
    numbers = [
        number("flips to relevant", *flips, verdict=verdict, flag=flag),
        number("flips either way", *share(was != becomes, units, confidence)),
        number("mean shift", *mean_change(after - before, units, material.spread(name), confidence)),
    ]
    places = {pair: place for place, pair in enumerate(material.pairs)}
    if not all(pair in places for pair in kept):
        return numbers
    where = [places[pair] for pair in kept]
    values = np.tile(material.values[name], (2, 1))
    values[:, where] = before, after
    scale = material.labelings[name].scale
    for change in tournament(material, material.scores([(scale, values[0]), (scale, values[1])])):
        verdict = change.verdict
        if verdict:
            verdict = f"with {100 * n / len(material.pairs):.1f} % of the pool attacked, {verdict}"
        numbers.append(replace(change, subject=probe.name, verdict=verdict))
    return numbers


def tournament(material: Material, scores: Floats) -> list[Number]:
    """Return what a change of labels changes in the comparison with the quality of the answers."""
    there = np.isfinite(scores).all(axis=(0, 1)) & np.isfinite(material.quality).all(axis=0)
    (before, after), truth, n = scores[:, :, there], material.quality[:, there], int(there.sum())
    if len(truth) < 2 or n < 2:
        return []
    confidence, weights, units = material.confidence, material.weights[there], material.units[there]
    numbers: list[Number] = []
    change = within_queries(after, truth)[0] - within_queries(before, truth)[0]
    differ = np.isfinite(change)
    if differ.sum() > 1:
        concordance = mean_change(change[differ], units[differ], 1.0, confidence)
        numbers.append(Number(NAME, "", "change of concordance", *concordance, n=int(differ.sum())))
    declared = units if material.prepared.groups else None
    first = decision_gain(before, truth, weights, declared)
    second = decision_gain(after, truth, weights, declared)
    moved = second.value - first.value
    changed = (gaps(after) != gaps(before)).any(axis=0)
    low = high = math.nan
    if len(np.unique(units[changed])) >= MIN_TELLING:
        low, high, _ = interval(moved, second.draws - first.draws, confidence, "percentile", n)
    numbers.append(Number(NAME, "", statistic="change of decision gain", value=moved, low=low, high=high, n=n))
    falls = []
    for number in numbers:
        if number.high < 0:
            falls.append(f"{number.statistic.removeprefix('change of ')} falls by {-number.value:.3f}")
    verdict = " and ".join(falls) or "the numbers of the verdict are not shown to fall"
    return [replace(numbers[0], verdict=verdict), *numbers[1:]]
