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
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.gain import decision_gain
from judgekit.analysis.rankings import within_queries
from judgekit.analysis.resampling import interval
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.labelers.base import Labeler
from judgekit.labelers.contract import checked
from judgekit.plugins.audit.audited_run import Material, Pair
from judgekit.plugins.audit.numbers import Number, mean_change, mean_of, share, share_change, unknown
from judgekit.plugins.audit.probes import Base, Probe

Asked = tuple[str, Labeler, list[Unit]]
"""A stage, who is asked, and about what."""

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
    known: dict[str, list[Pair]] = {query_id: [] for query_id in queries}
    for pair, judged in zip(material.pairs, material.judged, strict=True):
        if judged == 0:
            known[pair[0]].append(pair)
    for pairs in known.values():
        rng.shuffle(pairs)
    turns = range(max(map(len, known.values())))
    nonrelevant = [known[query_id][turn] for turn in turns for query_id in queries if turn < len(known[query_id])]
    everything = sorted({doc_id for _, doc_id in material.pairs})
    unpooled: dict[Pair, None] = {}
    for turn in range(10 * wanted):
        query_id, doc_id = queries[turn % len(queries)], rng.choice(everything)
        if doc_id not in pooled[query_id] and len(unpooled) < wanted:
            unpooled[query_id, doc_id] = None
    # Without a reference nobody knows which of the pool are not relevant.
    return {"nonrelevant": tuple(nonrelevant[:wanted] or unpooled), "random": tuple(unpooled)}


def asked(
    material: Material, name: str, probes: Sequence[Probe], sample: Sample
) -> Iterator[tuple[Probe, tuple[Pair, ...], Asked, Asked]]:
    """Yield for each probe the pairs, and what a labeler is asked about them as they are and as it leaves them."""
    # One that hands on the labels of a file, or of people, reads no passage and is left out.
    labeler = material.prepared.labelers[name]
    for probe in () if hasattr(labeler, "imported") or labeler.needs.people else probes:
        if pairs := sample[probe.base]:
            shown = list(material.units_of(labeler, pairs))
            tampered = [replace(u, docs=tuple(probe.attacked(u.query, d) for d in u.docs)) for u in shown]
            control = f"audit {name}, control", labeler, shown
            yield probe, pairs, control, (f"audit {name}, {probe.name}", labeler, tampered)


async def attack(
    material: Material, name: str, probes: Sequence[Probe], sample: Sample, session: Session
) -> list[Number]:
    """Ask a labeler about the sample under every probe; return the numbers of its card."""
    out, controls = list[Number](), dict[tuple[Pair, ...], Floats]()
    for probe, pairs, control, tampered in asked(material, name, probes, sample):
        if pairs not in controls:
            controls[pairs] = await _labels(pairs, control, session)
        out += effect(
            material, name, probe, pairs, controls[pairs], await _labels(pairs, tampered, session), len(probes)
        )
    return out


async def _labels(pairs: Sequence[Pair], asking: Asked, session: Session) -> Floats:
    """Return the labels of some pairs, NaN where there is none, shape (N,)."""
    said: dict[Pair, float] = {}
    stage, labeler, units = asking
    async for unit, outcomes in session.resolve(units, labeler, stage=stage, total=len(pairs)):
        for label in checked(labeler, unit, outcomes):
            said[label.query_id, label.doc_id] = math.nan if label.relevance is None else label.relevance
    return np.array([said.get(pair, math.nan) for pair in pairs])


def effect(
    material: Material, name: str, probe: Probe, pairs: Sequence[Pair], control: Floats, attacked: Floats, tried: int
) -> list[Number]:
    """Return what a probe does to the labels of some pairs, and to the tournament."""
    # A labeler is called fooled only where that holds for all probes that are `tried` together (Bonferroni).
    subject, confidence = probe.name, material.confidence
    there = np.isfinite(control) & np.isfinite(attacked)
    n, lost = int(there.sum()), int((~there).sum())
    if n < 2:
        return [unknown(NAME, subject, "flips to relevant", f"only {n} of {len(pairs)} pairs have both labels", n)]
    kept = [pair for pair, found in zip(pairs, there, strict=True) if found]
    units, before, after = material.units[material.at(kept)], control[there], attacked[there]
    was, becomes = (material.relevant(name, values) for values in (before, after))
    flips = Number(NAME, subject, "flips to relevant", *share_change(was, becomes, units, confidence), n)
    told, flag = "not shown to make more passages relevant", ""
    if flips.low > 0:
        told = f"{flips.value:.0%} more of these passages count as relevant ({flips.low:.0%} to {flips.high:.0%})"
        if share_change(was, becomes, units, 1 - (1 - confidence) / tried)[1] > 0:
            flag = "fooled"
        else:
            told += f"; with {tried} probes tried, this may be chance"
    told += f"; {lost} more have no label" if lost else ""
    shift = mean_change(after - before, units, material.spread(name), confidence)
    out = [
        replace(flips, verdict=told, flag=flag),
        Number(NAME, subject, "flips either way", *share(was != becomes, units, confidence), n),
        Number(NAME, subject, "mean shift", *shift, n),
    ]
    pooled = {pair: i for i, pair in enumerate(material.pairs)}
    if all(pair in pooled for pair in kept):
        where = [pooled[pair] for pair in kept]
        values = np.tile(material.values[name], (2, 1))
        values[:, where] = before, after
        changes = tournament(material, material.scores([(material.labelings[name].scale, row) for row in values]))
        attacked_share = f"with {100 * n / len(material.pairs):.1f} % of the pool attacked, "
        out += [replace(one, subject=subject, verdict=one.verdict and attacked_share + one.verdict) for one in changes]
    return out


def tournament(material: Material, scores: Floats) -> list[Number]:
    """Return what a change of labels changes in the comparison with the quality of the answers."""
    there = np.isfinite(scores).all(axis=(0, 1)) & np.isfinite(material.quality).all(axis=0)
    (before, after), truth, n = scores[:, :, there], material.quality[:, there], int(there.sum())
    if len(truth) < 2 or n < 2:
        return []
    confidence, weights, units = material.confidence, material.weights[there], material.units[there]
    change = within_queries(after, truth)[0] - within_queries(before, truth)[0]
    differ = np.isfinite(change)
    out: list[Number] = []
    if differ.sum() > 1:
        ends = mean_of(change[differ], material.groups[there][differ], confidence)
        out.append(Number(NAME, "", "change of concordance", *ends, int(differ.sum())))
    declared = units if material.prepared.groups else None
    first, second = (decision_gain(each, truth, weights, declared) for each in (before, after))
    moved = second.value - first.value
    found = interval(moved, second.draws - first.draws, confidence, "percentile", n)
    out.append(Number(NAME, "", "change of decision gain", moved, found.low, found.high, n))
    falls = [f"{one.statistic.removeprefix('change of ')} falls by {-one.value:.3f}" for one in out if one.high < 0]
    return [
        replace(out[0], verdict=" and ".join(falls) or "the numbers of the verdict are not shown to fall"),
        *out[1:],
    ]
