"""The expected value of measures over all orders of documents with equal scores, in closed form.

Documents with equal scores form a *block*; all orders inside a block are equally likely. A run that breaks ties by a
rule has blocks of one document each, so that runs of both kinds are computed together.
"""

from __future__ import annotations

from math import comb
from typing import Final, NamedTuple

import numpy as np

from judgekit.metrics.formulas import (
    FORMULAS,
    Formula,
    bpref_counts,
    by_scale,
    chain,
    depth,
    gained,
    ideal,
    largest,
    probabilities,
    ratio,
    rel,
    split,
    threshold_hits,
)
from judgekit.metrics.join import Floats, Ints, spans
from judgekit.metrics.measure import Measure
from judgekit.metrics.scene import Hits, Scene, places

__all__ = ["EXPECTED"]


class _Blocks(NamedTuple):
    """Blocks of equal scores that hold some of the given hits, by cell, best first."""

    cell: Ints
    before: Ints
    """Documents ranked before the block."""
    size: Ints
    """Documents in the block."""
    hits: Ints
    """How many of the given hits it holds."""
    prior: Ints
    """How many of the given hits stand in the blocks before it."""
    first: Ints
    """The first of the given hits in it."""


def _blocks(scene: Scene, hits: Hits) -> _Blocks:
    before, size = scene.blocks(hits, of_all=False)
    first, last = spans(hits.cell * (int(before.max(initial=0)) + 1) + before)
    lead = np.flatnonzero(first == np.arange(len(first)))
    prior = hits.nth[lead] - 1
    return _Blocks(hits.cell[lead], before[lead], size[lead], (last - first)[lead], prior, lead)


def _share(scene: Scene, hits: Hits, cutoff: Ints | int | None) -> Floats:
    """Return the probability that each hit stands within the cutoff."""
    if cutoff is None:
        return np.ones(len(hits.cell))
    before, size = scene.blocks(hits, of_all=False)
    return np.asarray(np.clip(cutoff - before, 0, size) / size, np.float64)


def _hits(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(rel(measure))
    return scene.sum(found.cell, _share(scene, found, measure.cutoff))


def _precision(scene: Scene, measure: Measure) -> Floats:
    divisor = depth(scene, measure)

    def mean() -> Floats:
        hits = scene.labelled()
        return scene.sum(hits.cell, hits.label * _share(scene, hits, measure.cutoff)) / divisor

    return by_scale(scene, measure, _hits(scene, measure) / divisor, mean)


def _recall(scene: Scene, measure: Measure) -> Floats:
    return ratio(_hits(scene, measure), scene.judged.total(rel(measure)))


def _f1(scene: Scene, measure: Measure) -> Floats:
    return 2 * _hits(scene, measure) / (depth(scene, measure) + scene.judged.total(rel(measure)))


def _success(scene: Scene, measure: Measure) -> Floats:
    cutoff = measure.cutoff
    if cutoff is None:
        return FORMULAS["Success"](scene, measure)
    blocks = _blocks(scene, scene.relevant(rel(measure)))
    out = np.zeros(scene.cells)
    reached = blocks.before < cutoff
    for at in np.flatnonzero((blocks.prior == 0) & reached).tolist():
        drawn = min(cutoff - int(blocks.before[at]), int(blocks.size[at]))
        size, count = int(blocks.size[at]), int(blocks.hits[at])
        every = comb(size, drawn)
        out[blocks.cell[at]] = (every - comb(size - count, drawn)) / every
    return by_scale(scene, measure, out.reshape(scene.shape), lambda: _largest(scene, cutoff))


def _largest(scene: Scene, cutoff: int) -> Floats:
    """Return the expected largest label of the top k; documents without a label have 0."""
    hits = scene.labelled()
    before, size = scene.blocks(hits, of_all=False)
    whole = before + size <= cutoff
    crossing = np.flatnonzero((before < cutoff) & ~whole)
    cell = hits.cell[crossing]
    lead, end = spans(cell)
    length = np.broadcast_to(np.minimum(scene.retrieved, cutoff), scene.shape).flatten()
    length[cell] = before[crossing]
    out = largest(scene, hits.where(whole), length.reshape(scene.shape)).flatten()
    for start, stop in zip(*(x[lead == np.arange(len(lead))].tolist() for x in (lead, end)), strict=True):
        first = crossing[start]
        at, above = hits.cell[first], int(before[first])
        labels = np.zeros(int(size[first]))
        labels[: stop - start] = hits.label[crossing[start:stop]]
        chance = _largest_chance(len(labels), cutoff - above)
        # The largest of those drawn from the block, or of those above it, whichever is larger.
        out[at] = chance @ np.maximum(np.sort(labels)[::-1], out[at] if above else -np.inf)
    return out.reshape(scene.shape)


def _largest_chance(size: int, drawn: int) -> Floats:
    """Return the chance that the i-th largest of ``size`` is the largest of ``drawn`` of them, shape (size,)."""
    left = size - np.arange(1, size)
    return np.asarray((drawn / size) * np.cumprod(np.append(1, np.maximum(left - drawn + 1, 0) / left)), np.float64)


def _first_chance(size: Ints, count: Ints, place: int) -> Floats:
    """Return the factor by which the chance that the first of ``count`` stands at a place falls to the next."""
    return np.asarray(np.maximum(size - count - place + 1, 0) / np.maximum(size - place, 1), np.float64)


def _reciprocal_rank(scene: Scene, measure: Measure) -> Floats:
    blocks = _blocks(scene, threshold_hits(scene, measure))
    cell, before, size, count = (column[blocks.prior == 0] for column in blocks[:4])
    chance, total = count / size, np.zeros(len(cell))
    for place in range(1, int((size - count).max(initial=0)) + 2):
        within = True if measure.cutoff is None else before + place <= measure.cutoff
        total += np.where(within, chance / (before + place), 0)
        chance = chance * _first_chance(size, count, place)
    return scene.sum(cell, total)


def _mean_rank(scene: Scene, measure: Measure) -> Floats:
    blocks = _blocks(scene, threshold_hits(scene, measure))
    first = blocks.prior == 0
    out = np.full(scene.cells, np.nan)
    out[blocks.cell[first]] = (blocks.before + (blocks.size + 1) / (blocks.hits + 1))[first]
    return out.reshape(scene.shape)


def _precision_sums(blocks: _Blocks, size: Ints, count: Ints, looked: Ints) -> Floats:
    """Return per block the expected sum of precision at the ranks of its relevant documents.

    Args:
        blocks: the blocks.
        size: documents in each block.
        count: relevant ones among them.
        looked: how many places of the block count.
    """
    block = np.repeat(np.arange(len(looked)), looked)
    place, size, count = places(block), size[block], count[block]
    # A place holds a relevant document with chance count / size, and then so many of the others stand before it:
    earlier = blocks.prior[block] + (place - 1) * (count - 1) / np.maximum(size - 1, 1)
    terms = count / size * (earlier + 1) / (blocks.before[block] + place)
    return np.asarray(np.bincount(block, terms, len(looked)), np.float64)


def _average_precision(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(rel(measure))
    blocks = _blocks(scene, found)
    looked = blocks.size if measure.cutoff is None else np.clip(measure.cutoff - blocks.before, 0, blocks.size)
    if measure.option("by") != "hits":
        sums = _precision_sums(blocks, blocks.size, blocks.hits, looked)
        return ratio(scene.sum(blocks.cell, sums), scene.judged.total(rel(measure)))
    whole = looked == blocks.size
    sums = _precision_sums(blocks, blocks.size, blocks.hits, np.where(whole, looked, 0))
    sums, number = (
        scene.sum(blocks.cell, sums).flatten(),
        scene.sum(blocks.cell, np.where(whole, blocks.hits, 0)).flatten(),
    )
    out = ratio(sums, number)
    # At most one block of a list is cut; how many relevant documents its first places hold is drawn.
    cut = _Blocks(*(column[(looked > 0) & ~whole] for column in blocks))
    drawn = looked[(looked > 0) & ~whole]
    out[cut.cell] = 0
    for hits in range(int(cut.hits.max(initial=-1)) + 1):
        every = zip(cut.size.tolist(), cut.hits.tolist(), drawn.tolist(), strict=True)
        chance = np.array(
            [comb(m, hits) * comb(n - m, max(t - hits, 0)) * (hits <= t) / comb(n, t) for n, m, t in every]
        )
        more = _precision_sums(cut, drawn, np.full(len(drawn), hits), drawn)
        out[cut.cell] += chance * ratio(sums[cut.cell] + more, number[cut.cell] + hits)
    return out.reshape(scene.shape)


def _spread(scene: Scene, hits: Hits, cutoff: int | None, upto: Floats) -> Floats:
    """Return the mean weight of the places that each hit may stand at, 0 beyond the cutoff.

    Args:
        scene: the scene.
        hits: the hits.
        cutoff: the last rank that counts.
        upto: the sum of the weights of the first ranks, by their number.
    """
    before, size = scene.blocks(hits, of_all=False)
    end = before + size
    if cutoff is not None:
        before, end = np.minimum(before, cutoff), np.minimum(end, cutoff)
    return np.asarray((upto[end] - upto[before]) / size, np.float64)


def _dcg(scene: Scene, measure: Measure) -> Floats:
    hits = gained(scene, measure)
    ranks = np.arange(1, int(scene.retrieved.max(initial=0)) + 1)
    upto = np.cumsum(np.append(0, 1 / scene.discount(ranks)))
    return scene.sum(hits.cell, hits.label * _spread(scene, hits, measure.cutoff, upto))


def _ndcg(scene: Scene, measure: Measure) -> Floats:
    return ratio(_dcg(scene, measure), ideal(scene.judged, measure))


def _rbp(scene: Scene, measure: Measure) -> Floats:
    least = rel(measure)
    hits = scene.positive() if least is None else scene.relevant(least)
    ranks = np.arange(int(scene.retrieved.max(initial=0)) + 1)
    upto = 1 - np.power(float(measure.option("p") or 0), ranks)
    gain = hits.label if least is None else np.ones(len(hits.cell))
    return scene.sum(hits.cell, gain * _spread(scene, hits, measure.cutoff, upto))


def _err(scene: Scene, measure: Measure) -> Floats:
    hits = probabilities(scene, measure)
    blocks = _blocks(scene, hits)
    gain = hits.label[blocks.first] / (blocks.before + 1)
    passing = 1 - hits.label[blocks.first]
    for at in np.flatnonzero(blocks.size > 1).tolist():
        size, first = int(blocks.size[at]), int(blocks.first[at])
        # By number of documents drawn from the block, the chance that none of them satisfies. Each further document
        # is among those drawn with chance drawn / documents so far.
        none = np.ones(size + 1)
        documents = size - int(blocks.hits[at])
        for chance in hits.label[first : first + int(blocks.hits[at])]:
            documents += 1
            drawn = np.arange(documents + 1)
            without = none[: documents + 1].copy()
            with_it = np.append(1, without[:-1]) * (1 - chance)
            none[: documents + 1] = ((documents - drawn) * without + drawn * with_it) / documents
        ranks = int(blocks.before[at]) + np.arange(1, size + 1)
        falls = (none[:-1] - none[1:]) / ranks
        gain[at] = falls.sum() if measure.cutoff is None else falls[ranks <= measure.cutoff].sum()
        passing[at] = none[-1]
    if measure.cutoff is not None:
        gain = np.where(blocks.before < measure.cutoff, gain, 0)
    return chain(scene, blocks.cell, gain, passing)


def _r_precision(scene: Scene, measure: Measure) -> Floats:
    found, total = scene.relevant(rel(measure)), scene.judged.total(rel(measure))
    cutoff = np.broadcast_to(total, scene.shape).reshape(-1)[found.cell]
    return ratio(scene.sum(found.cell, _share(scene, found, cutoff)), total)


def _bpref(scene: Scene, measure: Measure) -> Floats:
    hits = scene.labelled()
    relevant, other = split(scene, measure, hits)
    before, _ = scene.blocks(hits, of_all=False)
    first, last = spans(hits.cell * (int(before.max(initial=0)) + 1) + before)
    others = np.cumsum(np.append(0, other))
    above = (others[first] - others[spans(hits.cell)[0]])[relevant]
    beside = (others[last] - others[first])[relevant]
    total, least = bpref_counts(scene, measure, hits.cell[relevant])
    # Of those beside it 0, 1, … all stand above it with equal chances; no more than the relevant ones count.
    free = np.clip(total - above, 0, beside + 1)
    counted = (free * above + free * (free - 1) / 2 + (beside + 1 - free) * total) / (beside + 1)
    return ratio(scene.sum(hits.cell[relevant], 1 - counted / np.maximum(least, 1)), scene.judged.total(rel(measure)))


def _judged(scene: Scene, measure: Measure) -> Floats:
    hits = scene.labelled()
    looked = scene.retrieved if measure.cutoff is None else np.minimum(scene.retrieved, measure.cutoff)
    return scene.sum(hits.cell, _share(scene, hits, measure.cutoff)) / np.maximum(looked, 1)


EXPECTED: Final[dict[str, Formula]] = {
    "AP": _average_precision,
    "Bpref": _bpref,
    "DCG": _dcg,
    "ERR": _err,
    "F1": _f1,
    "Judged": _judged,
    "MeanRank": _mean_rank,
    "P": _precision,
    "R": _recall,
    "RBP": _rbp,
    "RR": _reciprocal_rank,
    "Rprec": _r_precision,
    "Success": _success,
    "nDCG": _ndcg,
}
"""The formulas of the measures that depend on the order of tied documents."""
