"""Judgekit's measures: each is defined next to its formula, vectorised over all labelings, runs and queries at once.

Sums run in rank order, one addition after another (as in `bincount`, unlike `sum`), and divisions happen where
trec_eval has them, so that values agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.data.labelings import Scale
from judgekit.metrics.hits import Hits, LabelledHits, Weights, best_first
from judgekit.metrics.join import Floats, Ints, spans
from judgekit.metrics.measures import Definition, Measure, Param, is_number
from judgekit.spec import Value

_REL: Final = Param("smallest label that counts as relevant; by default as the labeling declares", valid=is_number)
_JUDGED_ONLY: Final = Param("leave documents without a label out of the lists first", False, (False, True))
_TIES: Final = {
    "ties": Param(
        "order of documents with equal scores; by default that of the run",
        choices=("doc-desc", "doc-desc-32", "doc-asc", "run-order"),
    )
}
_UNIT: Final = {
    **_TIES,
    "unit": Param("count documents, or evidence (once, even if several documents hold it)", "doc", ("doc", "evidence")),
}
_BINARY: Final = {"rel": _REL, "judged_only": _JUDGED_ONLY}
_GAINS: Final = {
    "dcg": Param("gain of a label: itself (log2), or 2^label - 1 (exp-log2)", "log2", ("log2", "exp-log2")),
    "judged_only": _JUDGED_ONLY,
    **_UNIT,
}


_POSSIBLE: Final = "or by k if that is smaller (possible)"


def _is_positive(value: Value) -> bool:
    return is_number(value) and float(value) > 0


def _ratio(part: npt.NDArray[np.number], whole: npt.NDArray[np.number]) -> Floats:
    """Divide; 0 if there is nothing to count."""
    # As in trec_eval, a query without any relevant document has 0, and stays in the mean.
    with np.errstate(divide="ignore"):
        return np.asarray(part / np.where(part == 0, 1, whole), np.float64)


def _by_scale(hits: LabelledHits, measure: Measure, binary: Floats, graded: Callable[[], Floats]) -> Floats:
    """Take ``binary`` for labelings with yes-or-no relevance, ``graded`` for the others."""
    undecided = np.isnan(hits.threshold(measure.rel))
    return np.where(undecided[:, None, None], graded(), binary) if undecided.any() else binary


def _found(hits: LabelledHits, measure: Measure) -> Floats:
    """Return the number of relevant documents in the top k."""
    least, cutoff = measure.rel, measure.cutoff
    return hits.once(("found", least, cutoff), lambda: hits.within(hits.relevant(least), cutoff))


def _depth(hits: LabelledHits, measure: Measure) -> Ints:
    """Return precision's denominator: the cutoff, or the number of documents in the list."""
    # With three documents in ten places, trec_eval divides by ten.
    short = measure.cutoff is None or measure.option("by") == "retrieved"
    return np.maximum(hits.looked_at(measure.cutoff), 1) if short else np.array(measure.cutoff)


@Definition(
    "P",
    "precision",
    formula="relevant in the top k / k",
    source="trec_eval P",
    rewards="few wrong documents near the top: every place wasted costs the same, wherever it is",
    needs="label",
    on="the mean label of the top k",
    params={
        **_BINARY,
        **_UNIT,
        "by": Param("divide by k, or by the number retrieved if that is smaller", "k", ("k", "retrieved")),
    },
)
def precision(hits: LabelledHits, measure: Measure) -> Floats:
    depth = _depth(hits, measure)

    def mean() -> Floats:
        top = hits.labelled().top(measure.cutoff)
        return hits.sum(top.cell, top.label) / depth

    return _by_scale(hits, measure, _found(hits, measure) / depth, mean)


@Definition(
    "R",
    "recall",
    formula="relevant in the top k / all relevant",
    source="trec_eval recall; relative_P for by=possible",
    rewards="finding all there is, for research where a missed document hurts",
    params={
        **_BINARY,
        **_UNIT,
        "by": Param(f"divide by all relevant, {_POSSIBLE}", "relevant", ("relevant", "possible")),
    },
)
def recall(hits: LabelledHits, measure: Measure) -> Floats:
    # Only bounds can have more hits than relevant documents, since they take the two from different labels.
    return np.minimum(_ratio(_found(hits, measure), _to_find(hits, measure)), 1)


def _to_find(hits: LabelledHits, measure: Measure) -> Ints:
    """Return the number of relevant documents, at most those that the top k can hold, shape (L, 1, Q)."""
    total = hits.judged.total(measure.rel)
    if measure.option("by") == "possible" and measure.cutoff is not None:
        return np.minimum(total, measure.cutoff)
    return total


@Definition(
    "F1",
    "F1",
    formula="2 P R / (P + R) = 2 relevant in the top k / (k + all relevant)",
    source="van Rijsbergen 1979",
    rewards="a balance of few wrong documents and few missed ones",
    params={**_BINARY, **_TIES},
)
def f1(hits: LabelledHits, measure: Measure) -> Floats:
    return 2 * _found(hits, measure) / (_depth(hits, measure) + hits.judged.total(measure.rel))


def _first(hits: LabelledHits, measure: Measure) -> Hits:
    """Return the first relevant document of each list; with ``best`` the first with the largest label."""
    found = hits.relevant(measure.rel)
    if measure.option("best"):
        largest = np.broadcast_to(hits.judged.largest, hits.shape).reshape(-1)
        found = hits.positive()
        found = found.where(found.label >= largest[found.cell])
    return found.where(found.nth == 1)


@Definition(
    "Success",
    "success (hit rate)",
    formula="1 if any of the top k is relevant, else 0",
    source="trec_eval success",
    rewards="one good document within reach, for an assistant that needs a single right passage",
    needs="label",
    on="the largest label of the top k",
    params={**_BINARY, **_UNIT},
)
def success(hits: LabelledHits, measure: Measure) -> Floats:
    # For shares of yes the largest label, as in the eRAG paper.
    out = np.zeros(hits.cells)
    out[_first(hits, measure).top(measure.cutoff).cell] = 1
    return _by_scale(hits, measure, out.reshape(hits.shape), lambda: _largest_label(hits, measure.cutoff))


def _largest_label(hits: LabelledHits, cutoff: int | None) -> Floats:
    """Return the largest label of the top k; documents without a label have 0."""
    found = hits.labelled().top(cutoff)
    length = np.broadcast_to(hits.looked_at(cutoff), hits.shape).flatten()
    out = np.full(hits.cells, -np.inf)
    np.maximum.at(out, found.cell, found.label)
    unlabelled = (hits.count(found.cell).reshape(-1) < length) | (length == 0)
    return np.where(unlabelled, np.maximum(out, 0), out).reshape(hits.shape)


@Definition(
    "RR",
    "reciprocal rank",
    formula="1 / rank of the first relevant in the top k, 0 if there is none",
    source="trec_eval recip_rank",
    rewards="how early the first good document comes, for questions with one answer",
    on=" or best=",
    params={
        **_BINARY,
        **_UNIT,
        "best": Param("only documents with the largest label of their query count", False, (False, True)),
    },
    unbounded=lambda measure: bool(measure.option("best")),
)
def reciprocal_rank(hits: LabelledHits, measure: Measure) -> Floats:
    found = _first(hits, measure).top(measure.cutoff)
    return hits.sum(found.cell, 1 / found.rank)


@Definition(
    "AP",
    "average precision",
    formula="sum of the precision at the ranks of relevant documents in the top k / all relevant",
    source="trec_eval map, map_cut",
    rewards="finding all relevant documents, early ones first",
    params={
        **_BINARY,
        **_UNIT,
        "by": Param(
            f"divide by all relevant, by the relevant in the top k (hits), {_POSSIBLE}",
            "relevant",
            ("relevant", "hits", "possible"),
        ),
    },
    unbounded=lambda measure: measure.option("by") == "hits",
)
def average_precision(hits: LabelledHits, measure: Measure) -> Floats:
    def precisions() -> Weights:
        found = hits.relevant(measure.rel)
        return Weights(found.cell, found.rank, found.nth / found.rank)

    sums = hits.once(("precisions", measure.rel), precisions).sum(measure.cutoff, hits.shape)
    by_hits = measure.option("by") == "hits"
    return _ratio(sums, _found(hits, measure) if by_hits else _to_find(hits, measure))


def gains_of(measure: Measure, labels: Floats) -> Floats:
    """Return a measure's gains for labels."""
    return np.exp2(labels) - 1 if measure.option("dcg") == "exp-log2" else labels


def _gained(hits: LabelledHits, measure: Measure) -> Hits:
    """Return the hits with a positive gain, as labels."""
    found = hits.positive()
    return replace(found, label=gains_of(measure, found.label))


@cache
def _log2(bits: int) -> Floats:
    """Return log2(i + 1) by i, computed as C does it: numpy's own log2 differs in the last bit."""
    return np.array([1.0, *(math.log2(i + 1) for i in range(1, 1 << bits))])


def _discounted(gain: Weights) -> Weights:
    """Divide gains by log2(rank + 1)."""
    log2 = _log2(int(gain.rank.max(initial=1)).bit_length())
    return gain._replace(weight=gain.weight / log2[gain.rank])


@Definition(
    "DCG",
    "discounted cumulative gain",
    formula="sum over the top k of gain / log2(rank + 1)",
    source="Jarvelin and Kekalainen 2002",
    rewards="much gain, early; comparable only between lists for the same query",
    needs="gain",
    high=None,
    params=_GAINS,
)
def dcg(hits: LabelledHits, measure: Measure) -> Floats:
    def weights() -> Weights:
        found = _gained(hits, measure)
        return _discounted(Weights(found.cell, found.rank, found.label))

    return hits.once(("dcg", measure.option("dcg")), weights).sum(measure.cutoff, hits.shape)


def _ideal(hits: LabelledHits, measure: Measure) -> Floats:
    """Return the DCG of the best order, shape (L, 1 or R, Q)."""
    if measure.option("ideal") == "retrieved":
        found = _gained(hits, measure).top(measure.cutoff)
        return _discounted(best_first(found.cell, found.label)).sum(None, hits.shape)

    def best() -> Weights:
        group, label = hits.groups(hits.table > 0)
        return _discounted(best_first(group, gains_of(measure, label)))

    cutoff = None if measure.option("ideal") == "uncut" else measure.cutoff
    return hits.once(("ideal", measure.option("dcg")), best).sum(cutoff, hits.group_shape)


@Definition(
    "nDCG",
    "normalised discounted cumulative gain",
    formula="DCG@k / DCG@k of the best possible order",
    source="trec_eval ndcg, ndcg_cut; Burges et al. 2005 for exp-log2",
    rewards="the best documents first, where some are better than others",
    needs="gain",
    params={
        **_GAINS,
        "ideal": Param(
            "best order of all labelled documents, cut at k (judged) or not (uncut), or of the retrieved top k",
            "judged",
            ("judged", "uncut", "retrieved"),
        ),
    },
)
def ndcg(hits: LabelledHits, measure: Measure) -> Floats:
    # For bounds, the ideal has other labels than the lists.
    return _ratio(dcg.compute(hits, measure), _ideal(hits.judged, measure))


@Definition(
    "AUC",
    "area under the ROC curve",
    formula="share of the pairs (relevant, other) of retrieved documents whose relevant one scores higher, ties half",
    source="Mann and Whitney 1947",
    rewards="scores that tell relevant documents from others, anywhere in the list",
    cutoff=False,
    on="; undefined without both kinds among the retrieved",
    params=_BINARY,
    unbounded=lambda _: True,
)
def auc(hits: LabelledHits, measure: Measure) -> Floats:
    found = hits.relevant(measure.rel)
    before, size = hits.ties(found)
    first, last = hits.tied(found)
    total = hits.count(found.cell)
    others = hits.retrieved - total
    length, relevant = hits.of_cell(hits.retrieved, found.cell), hits.of_cell(total, found.cell)
    tied = size - (last - first)
    prior = found.nth[first] - 1
    below = (length - before - size) - (relevant - prior - (last - first))
    won = hits.sum(found.cell, below + tied / 2)
    return np.where((total > 0) & (others > 0), won / np.maximum(total * others, 1), np.nan)


@Definition(
    "MeanRank",
    "rank of the first relevant",
    formula="rank of the first relevant document; its mean is over queries that have one",
    source="Bordes et al. 2013",
    rewards="a first good document near the top; lower is better",
    low=1,
    high=None,
    cutoff=False,
    on="; undefined where nothing relevant was retrieved",
    params={**_BINARY, **_TIES},
    lower_is_better=True,
)
def mean_rank(hits: LabelledHits, measure: Measure) -> Floats:
    # Not 0: without a relevant document there is no rank, and 0 would be the best one.
    found = _first(hits, measure)
    out = np.full(hits.cells, np.nan)
    out[found.cell] = found.rank
    return out.reshape(hits.shape)


def _err_undefined(measure: Measure, scale: Scale) -> str:
    if measure.option("prob") == "label" and scale.high > 1:
        return f"{measure} takes labels as probabilities, and those of {scale} are not"
    return ""


@Definition(
    "ERR",
    "expected reciprocal rank",
    formula="sum over the top k of 1/i r_i prod_{j<i}(1 - r_j), with r = (2^label - 1) / 2^max, on unit labels"
    " r = label",
    source="Chapelle et al. 2009",
    rewards="satisfying the reader early; documents after a satisfying one hardly count",
    needs="amount",
    params={
        "prob": Param("r from the grade, or the label itself; by default by scale", None, ("grade", "label")),
        "judged_only": _JUDGED_ONLY,
        **_TIES,
    },
    undefined=_err_undefined,
    takes_largest=lambda measure: measure.option("prob") != "label",
)
def err(hits: LabelledHits, measure: Measure) -> Floats:
    found = hits.positive().top(measure.cutoff)
    # A share of yes is a probability already; a grade becomes one.
    given = measure.option("prob")
    by_label = np.array([given == "label" or (not given and x.kind == "unit") for x in hits.scales])[found.owner]
    most = np.array([scale.high for scale in hits.scales], np.float64)[found.owner]
    chance = np.where(by_label, found.label, (np.exp2(found.label) - 1) / np.exp2(most))
    # From the top to the bottom of all lists: the share of remaining readers, and their gain.
    by_place = np.argsort(found.nth, kind="stable")
    left, out = np.ones(hits.cells), np.zeros(hits.cells)
    for step in np.split(by_place, np.cumsum(np.bincount(found.nth)[1:])[:-1]) if len(found.nth) else ():
        cell = found.cell[step]
        out[cell] += left[cell] * (chance[step] / found.rank[step])
        left[cell] *= 1 - chance[step]
    return out.reshape(hits.shape)


@Definition(
    "Rprec",
    "R-precision",
    formula="relevant in the top R / R, where R is the number of all relevant",
    source="trec_eval Rprec",
    rewards="a top of the list that is as long as it should be, and right",
    cutoff=False,
    params={**_BINARY, **_TIES},
    unbounded=lambda _: True,
)
def r_precision(hits: LabelledHits, measure: Measure) -> Floats:
    found, total = hits.relevant(measure.rel), hits.judged.total(measure.rel)
    return _ratio(hits.within(found, hits.of_cell(total, found.cell)), total)


@Definition(
    "Bpref",
    "binary preference",
    formula="mean over relevant of 1 - min(judged non-relevant above it, R) / min(R, judged non-relevant)",
    source="trec_eval bpref; Buckley and Voorhees 2004",
    rewards="relevant documents above documents judged wrong; documents without a label do not count",
    cutoff=False,
    params={"rel": _REL, **_TIES},
    unbounded=lambda _: True,
)
def bpref(hits: LabelledHits, measure: Measure) -> Floats:
    found, judged, least = hits.labelled(), hits.judged, hits.threshold(measure.rel)
    relevant = found.label >= least[found.owner]
    # Negative labels count as neither.
    other = ~relevant & (found.label >= 0)
    others = np.cumsum(np.append(0, other))
    above = (others[:-1] - others[spans(found.cell)[0]])[relevant]
    cell, total = found.cell[relevant], judged.total(measure.rel)
    number = hits.of_cell(total, cell)
    wrong = judged.per_group((judged.table < least[:, None]) & (judged.table >= 0))
    most = np.minimum(number, hits.of_cell(wrong, cell))
    # Not more than the relevant ones count.
    counted = np.minimum(above, number).astype(np.float64)
    return _ratio(hits.sum(cell, 1 - counted / np.maximum(most, 1)), total)


@Definition(
    "UDCG",
    "utility and distraction-aware gain",
    formula="1 / (1 + exp(-m)), with m the mean over the top k of label x gain, or label x harm where it is negative;"
    " 0 where nothing was retrieved",
    source="Trappolini et al. 2025 (arXiv 2510.21440), without weights by position",
    rewards="passages that the LLM answers from rightly, and few that mislead it; for labels of utility(distraction)",
    needs="label",
    on="made for signed labels",
    params={
        "gain": Param("weight of labels above 0", 1.0, valid=_is_positive, expected="a number above 0"),
        "harm": Param("weight of labels below 0", 1.0, valid=_is_positive, expected="a number above 0"),
        **_TIES,
    },
)
def udcg(hits: LabelledHits, measure: Measure) -> Floats:
    top = hits.labelled().top(measure.cutoff)
    weight = np.where(top.label > 0, float(measure.option("gain") or 1), float(measure.option("harm") or 1))
    # An unlabelled document counts in the mean, as it does in the authors' code.
    listed = hits.looked_at(measure.cutoff)
    gains = 1 / (1 + np.exp(-hits.sum(top.cell, top.label * weight) / np.maximum(listed, 1)))
    # An empty list has 0, as in every measure, not the middle of the range.
    return np.asarray(np.where(listed > 0, gains, 0.0), np.float64)


@Definition(
    "RBP",
    "rank-biased precision",
    formula="(1 - p) sum over the top k of gain p^(rank - 1); the gain is the label, with rel= 0 or 1",
    source="Moffat and Zobel 2008",
    rewards="good documents early, for a reader who goes on to the next one with chance p",
    needs="amount",
    high=None,
    on="; at most the largest label",
    params={
        "p": Param(
            "chance that the reader goes on",
            0.8,
            valid=lambda value: _is_positive(value) and float(value) < 1,
            expected="a number between 0 and 1",
        ),
        **_BINARY,
        **_UNIT,
    },
)
def rbp(hits: LabelledHits, measure: Measure) -> Floats:
    p = float(measure.option("p") or 0)
    found = hits.positive() if measure.rel is None else hits.relevant(measure.rel)
    found = found.top(measure.cutoff)
    weight = np.asarray((1 - p) * p ** (found.rank - 1), np.float64)
    return hits.sum(found.cell, weight if measure.rel is not None else found.label * weight)


@Definition(
    "Judged",
    "judged share",
    formula="documents with a label in the top k / documents in the top k",
    source="ir_measures Judged",
    rewards="nothing: it says how far the other measures can be trusted",
    needs="nothing",
    params=_TIES,
)
def judged(hits: LabelledHits, measure: Measure) -> Floats:
    return hits.within(hits.labelled(), measure.cutoff) / np.maximum(hits.looked_at(measure.cutoff), 1)


@Definition(
    "SetP",
    "set precision",
    formula="relevant retrieved / retrieved",
    source="trec_eval set_P, set_relative_P",
    rewards="lists without wrong documents, whatever their order and length",
    cutoff=False,
    params={
        **_BINARY,
        "relative": Param("divide by the most that so many documents can hold", False, (False, True)),
    },
)
def set_precision(hits: LabelledHits, measure: Measure) -> Floats:
    retrieved, total = np.maximum(hits.retrieved, 1), hits.judged.total(measure.rel)
    return _ratio(_found(hits, measure), np.minimum(retrieved, total) if measure.option("relative") else retrieved)


Definition(
    "SetR",
    "set recall",
    formula="relevant retrieved / all relevant",
    source="trec_eval set_recall",
    rewards="lists that hold all there is, whatever their order and length",
    cutoff=False,
    params={"rel": _REL},
)(recall.compute)


@Definition(
    "SetF",
    "set F",
    formula="(b + 1) SetP SetR / (SetR + b SetP)",
    source="trec_eval set_F",
    rewards="lists that hold what is relevant and little else",
    cutoff=False,
    params={**_BINARY, "beta": Param("weight b of recall", 1.0, valid=_is_positive, expected="a number above 0")},
)
def set_f(hits: LabelledHits, measure: Measure) -> Floats:
    # As in trec_eval, the weight itself; van Rijsbergen uses its square.
    beta = float(measure.option("beta") or 0)
    p, r = set_precision.compute(hits, measure), recall.compute(hits, measure)
    return _ratio((beta + 1) * p * r, r + beta * p)


@Definition(
    "NumRel",
    "number of relevant documents",
    formula="all relevant",
    source="trec_eval num_rel",
    rewards="nothing: it says how much there is to find",
    high=None,
    cutoff=False,
    params={"rel": _REL},
)
def number_relevant(hits: LabelledHits, measure: Measure) -> Floats:
    return np.broadcast_to(hits.total(measure.rel), hits.shape).astype(np.float64)


@Definition(
    "NumRelRet",
    "number of relevant documents retrieved",
    formula="relevant retrieved",
    source="trec_eval num_rel_ret",
    rewards="finding much, without asking how much there is",
    high=None,
    cutoff=False,
    params={"rel": _REL},
)
def number_relevant_retrieved(hits: LabelledHits, measure: Measure) -> Floats:
    return _found(hits, measure)


@Definition(
    "NumRet",
    "number of documents retrieved",
    formula="retrieved; with rel= those that are relevant",
    source="trec_eval num_ret",
    rewards="nothing: it says how long the lists are",
    needs="nothing",
    high=None,
    cutoff=False,
    params={"rel": _REL},
)
def number_retrieved(hits: LabelledHits, measure: Measure) -> Floats:
    if measure.rel is not None:
        return _found(hits, measure)
    return np.broadcast_to(hits.retrieved, hits.shape).astype(np.float64)
