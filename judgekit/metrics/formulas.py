"""How each measure is computed from a `Scene`: vectorised over all labelings, runs and queries at once.

Sums run in rank order, one addition after another (`bincount` does that, `sum` does not), and divisions stand where
trec_eval has them, so that values agree with it to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.metrics.join import Bools, Floats, Ints, spans
from judgekit.metrics.measure import Measure
from judgekit.metrics.scene import Hits, Scene, Weights, best_first, places
from judgekit.spec import Value

__all__ = [
    "FORMULAS",
    "Formula",
    "by_scale",
    "chain",
    "depth",
    "gain_table",
    "gained",
    "ideal",
    "largest",
    "probabilities",
    "ratio",
    "rel",
    "threshold_hits",
]

Formula = Callable[[Scene, Measure], Floats]


def rel(measure: Measure) -> float | None:
    """Return the threshold that a measure gives, or None for what each labeling declares."""
    value = measure.option("rel")
    return None if value is None else float(value)


def ratio(part: npt.NDArray[np.number], whole: npt.NDArray[np.number]) -> Floats:
    """Divide; 0 where there is nothing to count."""
    with np.errstate(divide="ignore"):
        return np.asarray(part / np.where(part == 0, 1, whole), np.float64)


def by_scale(scene: Scene, measure: Measure, binary: Floats, graded: Callable[[], Floats]) -> Floats:
    """Take ``binary`` for labelings on which relevance is a yes or no, ``graded`` for the others."""
    undecided = np.isnan(scene.threshold(rel(measure)))
    return np.where(undecided[:, None, None], graded(), binary) if undecided.any() else binary


def depth(scene: Scene, measure: Measure) -> Ints:
    """Return what precision divides by: the cutoff, or the number of documents that were looked at."""
    looked = np.maximum(scene.retrieved, 1)
    if measure.cutoff is None:
        return looked
    return np.minimum(looked, measure.cutoff) if measure.option("by") == "retrieved" else np.array(measure.cutoff)


def gains(measure: Measure, labels: Floats) -> Floats:
    """Return the gains that a measure makes of labels."""
    if measure.option("gains") is not None:
        mapping = gain_table(str(measure.option("gains")))
        known = np.array(sorted(mapping))
        at = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        labels = np.where(known[at] == labels, np.array([mapping[k] for k in known.tolist()])[at], labels)
    return np.exp2(labels) - 1 if measure.option("dcg") == "exp-log2" else labels


def gain_table(text: str) -> dict[float, float]:
    """Parse ``{0:0,1:1,2:10}``: the gains of labels.

    Raises:
        ValueError: it is no such table.
    """
    cells = (cell.split(":") for cell in text.strip("{}").split(","))
    return {float(label): float(gain) for label, gain in cells}


def _hits(scene: Scene, measure: Measure) -> Ints:
    """Return the number of relevant documents in the top k."""
    least, cutoff = rel(measure), measure.cutoff

    def count() -> Ints:
        found = scene.relevant(least)
        return scene.count(found.cell if cutoff is None else found.cell[np.flatnonzero(found.rank <= cutoff)])

    return scene.once(("hits", least, cutoff), count)


def _precision(scene: Scene, measure: Measure) -> Floats:
    divisor = depth(scene, measure)

    def mean() -> Floats:
        top = scene.labelled().top(measure.cutoff)
        return scene.sum(top.cell, top.label) / divisor

    return by_scale(scene, measure, _hits(scene, measure) / divisor, mean)


def _recall(scene: Scene, measure: Measure) -> Floats:
    # More hits than relevant documents there are only for bounds, which take the two from different fillings.
    return np.minimum(ratio(_hits(scene, measure), scene.judged.total(rel(measure))), 1)


def _f1(scene: Scene, measure: Measure) -> Floats:
    return 2 * _hits(scene, measure) / (depth(scene, measure) + scene.judged.total(rel(measure)))


def _success(scene: Scene, measure: Measure) -> Floats:
    def most() -> Floats:
        top = scene.labelled().top(measure.cutoff)
        length = scene.retrieved if measure.cutoff is None else np.minimum(scene.retrieved, measure.cutoff)
        return largest(scene, top, length)

    return by_scale(scene, measure, (_hits(scene, measure) > 0).astype(np.float64), most)


def largest(scene: Scene, hits: Hits, length: Ints) -> Floats:
    """Return the largest label among hits of lists of some length; without a label a document has 0."""
    best = np.full(scene.cells, -np.inf)
    np.maximum.at(best, hits.cell, hits.label)
    unlabelled = (scene.count(hits.cell) < length) | (length == 0)
    return np.where(unlabelled, np.maximum(best.reshape(scene.shape), 0), best.reshape(scene.shape))


def threshold_hits(scene: Scene, measure: Measure) -> Hits:
    """Return the relevant hits of a measure; with ``best`` those with the largest label of their query."""
    if not measure.option("best"):
        return scene.relevant(rel(measure))
    positive = scene.positive()
    best = np.broadcast_to(scene.judged.largest, scene.shape).reshape(-1)[positive.cell]
    return positive.where(positive.label >= best)


def _first(scene: Scene, measure: Measure) -> tuple[Ints, Ints]:
    """Return cell and rank of the first relevant documents."""
    found = threshold_hits(scene, measure)
    first = np.flatnonzero(found.nth == 1)
    cell, rank = found.cell[first], found.rank[first]
    return (cell, rank) if measure.cutoff is None else (cell[rank <= measure.cutoff], rank[rank <= measure.cutoff])


def _reciprocal_rank(scene: Scene, measure: Measure) -> Floats:
    cell, rank = _first(scene, measure)
    return scene.sum(cell, 1 / rank)


def _mean_rank(scene: Scene, measure: Measure) -> Floats:
    cell, rank = _first(scene, measure)
    out = np.full(scene.cells, np.nan)
    out[cell] = rank
    return out.reshape(scene.shape)


def _average_precision(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(rel(measure))

    def precisions() -> Weights:
        return Weights(found.cell, found.rank, found.nth / found.rank)

    summed = scene.once(("precision", rel(measure)), precisions).sum(measure.cutoff, scene.shape)
    if measure.option("by") == "hits":
        return ratio(summed, _hits(scene, measure))
    return ratio(summed, scene.judged.total(rel(measure)))


def gained(scene: Scene, measure: Measure) -> Hits:
    """Return the hits with a positive gain, their labels replaced by the gains."""
    if measure.option("gains") is None:
        positive = scene.positive()
        return replace(positive, label=gains(measure, positive.label))
    labelled = scene.labelled()
    hits = replace(labelled, label=gains(measure, labelled.label))
    return hits.where(hits.label > 0)


def _gain_key(measure: Measure) -> tuple[Value | None, ...]:
    return measure.option("dcg"), measure.option("gains")


def ideal(scene: Scene, measure: Measure) -> Floats:
    """Return the DCG of the best order, shape (L, 1 or R, Q)."""
    if measure.option("ideal") == "retrieved":
        hits = gained(scene, measure).top(measure.cutoff)
        return _discounted(scene, best_first(hits.cell, hits.label)).sum(None, scene.shape)

    def best() -> Weights:
        mapped = measure.option("gains") is not None
        group, label = scene.groups(~np.isnan(scene.table)) if mapped else scene.positive_groups()
        gain = gains(measure, label)
        if mapped:
            group, gain = group[gain > 0], gain[gain > 0]
        return _discounted(scene, best_first(group, gain))

    return scene.once(("ideal", *_gain_key(measure)), best).sum(measure.cutoff, scene.group_shape)


def _discounted(scene: Scene, gain: Weights) -> Weights:
    return gain._replace(weight=gain.weight / scene.discount(gain.rank))


def _dcg(scene: Scene, measure: Measure) -> Floats:
    def weights() -> Weights:
        hits = gained(scene, measure)
        return _discounted(scene, Weights(hits.cell, hits.rank, hits.label))

    return scene.once(("dcg", *_gain_key(measure)), weights).sum(measure.cutoff, scene.shape)


def _ndcg(scene: Scene, measure: Measure) -> Floats:
    return ratio(_dcg(scene, measure), ideal(scene.judged, measure))


def _auc(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(rel(measure))
    before, size = scene.blocks(found, of_all=True)
    first, last = spans(found.cell * (int(before.max(initial=0)) + 1) + before)
    total = scene.count(found.cell)
    others = scene.retrieved - total
    length, relevant = (np.broadcast_to(x, scene.shape).reshape(-1)[found.cell] for x in (scene.retrieved, total))
    tied = size - (last - first)
    prior = found.nth[first] - 1
    below = (length - before - size) - (relevant - prior - (last - first))
    won = scene.sum(found.cell, below + tied / 2)
    return np.where((total > 0) & (others > 0), won / np.maximum(total * others, 1), np.nan)


def probabilities(scene: Scene, measure: Measure) -> Hits:
    """Return the hits that may satisfy, their labels replaced by the probability that they do."""
    hits = scene.positive()
    scales = [labeling.scale for labeling in scene.join.labelings]
    given = measure.option("max")
    most = np.array([scale.high if given is None else given for scale in scales], np.float64)
    graded = np.array(
        [(measure.option("prob") or ("label" if s.kind == "unit" else "grade")) == "grade" for s in scales]
    )
    graded, most = graded[hits.owner], most[hits.owner]
    return replace(hits, label=np.where(graded, (np.exp2(hits.label) - 1) / np.exp2(most), hits.label))


def chain(scene: Scene, cell: Ints, gain: Floats, passing: Floats) -> Floats:
    """Return per cell the sum of each step's gain times the product of ``passing`` over the steps before it."""
    place = places(cell)
    by_place = np.argsort(place, kind="stable")
    left, out = np.ones(scene.cells), np.zeros(scene.cells)
    for step in np.split(by_place, np.cumsum(np.bincount(place)[1:])[:-1]) if len(place) else ():
        at = cell[step]
        out[at] += left[at] * gain[step]
        left[at] *= passing[step]
    return out.reshape(scene.shape)


def _err(scene: Scene, measure: Measure) -> Floats:
    top = probabilities(scene, measure).top(measure.cutoff)
    return chain(scene, top.cell, top.label / top.rank, 1 - top.label)


def _rbp(scene: Scene, measure: Measure) -> Floats:
    persistence = float(measure.option("p") or 0)
    hits = (scene.positive() if rel(measure) is None else scene.relevant(rel(measure))).top(measure.cutoff)
    gain = hits.label if rel(measure) is None else np.ones(len(hits.cell))
    weight = (1 - persistence) * persistence ** (hits.rank - 1)
    return scene.sum(hits.cell, gain * weight)


def _r_precision(scene: Scene, measure: Measure) -> Floats:
    found, total = scene.relevant(rel(measure)), scene.judged.total(rel(measure))
    inside = np.flatnonzero(found.rank <= np.broadcast_to(total, scene.shape).reshape(-1)[found.cell])
    return ratio(scene.count(found.cell[inside]), total)


def _bpref(scene: Scene, measure: Measure) -> Floats:
    hits = scene.labelled()
    relevant, other = split(scene, measure, hits)
    others = np.cumsum(np.append(0, other))[:-1]
    above = others - others[spans(hits.cell)[0]]
    total, least = bpref_counts(scene, measure, hits.cell[relevant])
    # At most as many non-relevant documents count as there are relevant ones.
    share = np.minimum(above[relevant], total) / np.maximum(least, 1)
    return ratio(scene.sum(hits.cell[relevant], 1 - share), scene.judged.total(rel(measure)))


def split(scene: Scene, measure: Measure, hits: Hits) -> tuple[Bools, Bools]:
    """Return which hits are relevant, and which are judged not to be; negative labels are neither."""
    least = scene.threshold(rel(measure))[hits.owner]
    return hits.label >= least, (hits.label < least) & (hits.label >= 0)


def bpref_counts(scene: Scene, measure: Measure, cell: Ints) -> tuple[Ints, Ints]:
    """Return per cell asked for the number of relevant documents, and the smaller of that and the others'."""
    total = scene.judged.total(rel(measure))
    least = scene.threshold(rel(measure))[:, None]
    others = scene.per_group((scene.judged.table < least) & (scene.judged.table >= 0))
    total, others = (np.broadcast_to(x, scene.shape).reshape(-1)[cell] for x in (total, others))
    return total, np.minimum(total, others)


def _judged(scene: Scene, measure: Measure) -> Floats:
    top = scene.labelled().top(measure.cutoff)
    looked = scene.retrieved if measure.cutoff is None else np.minimum(scene.retrieved, measure.cutoff)
    return scene.count(top.cell) / np.maximum(looked, 1)


def _set_precision(scene: Scene, measure: Measure) -> Floats:
    retrieved, total = np.maximum(scene.retrieved, 1), scene.judged.total(rel(measure))
    return ratio(_hits(scene, measure), np.minimum(retrieved, total) if measure.option("relative") else retrieved)


def _set_f(scene: Scene, measure: Measure) -> Floats:
    beta = float(measure.option("beta") or 0)
    precision, recall = _set_precision(scene, measure), _recall(scene, measure)
    return ratio((beta + 1) * precision * recall, recall + beta * precision)


def _number_relevant(scene: Scene, measure: Measure) -> Floats:
    return np.broadcast_to(scene.total(rel(measure)), scene.shape).astype(np.float64)


def _number_relevant_retrieved(scene: Scene, measure: Measure) -> Floats:
    return _hits(scene, measure).astype(np.float64)


def _number_retrieved(scene: Scene, measure: Measure) -> Floats:
    if rel(measure) is not None:
        return _number_relevant_retrieved(scene, measure)
    return np.broadcast_to(scene.retrieved, scene.shape).astype(np.float64)


FORMULAS: Final[dict[str, Formula]] = {
    "AP": _average_precision,
    "AUC": _auc,
    "Bpref": _bpref,
    "DCG": _dcg,
    "ERR": _err,
    "F1": _f1,
    "Judged": _judged,
    "MeanRank": _mean_rank,
    "NumRel": _number_relevant,
    "NumRelRet": _number_relevant_retrieved,
    "NumRet": _number_retrieved,
    "P": _precision,
    "R": _recall,
    "RBP": _rbp,
    "RR": _reciprocal_rank,
    "Rprec": _r_precision,
    "SetF": _set_f,
    "SetP": _set_precision,
    "SetR": _recall,
    "Success": _success,
    "nDCG": _ndcg,
}
"""The formula of every measure in `catalog.DEFINITIONS`."""
