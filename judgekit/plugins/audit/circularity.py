"""Circularity: what the scores of runs gain when the runs re-rank by a labeling, and how much of that is real.

After Clarke and Dietz, "LLM-based relevance assessment still can't replace human relevance assessment" (2024), and
Balog, Metzler and Qin, "Rankers, judges, and assistants" (2025).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.data.runs import Run
from judgekit.plugins.audit.audited_run import Material
from judgekit.plugins.audit.numbers import Ints, Number, mean_change, unknown

NAME: Final = "circularity"
_EVERY: Final = "every run re-ranks"
_AT_TOP: Final = 1e-3
"""A run is saturated if its score lies within this share of what the best order of the pool reaches."""


def of_labeling(material: Material, name: str) -> list[Number]:
    """Return the numbers of one labeling; what re-ranking brings is compared with the reference labeling, if any."""
    reference = material.reference if material.reference != name else None
    labels = [(material.labelings[name].scale, material.values[name])]
    if reference is not None:
        labels.append((material.labelings[reference].scale, material.values[reference]))
    own = material.collection.runs
    again = [reranked(material, name, run) for run in own]
    # The pool in the order of the labels is the best that a run can reach.
    scores = material.scores(labels, [*own, *again, reranked(material, name, None)])
    there = np.isfinite(scores[:, :-1]).all(axis=(0, 1)) & np.isfinite(scores[0, -1])
    # A mean over the few queries that happen to have all labels would be of other queries than the verdict.
    if there.sum() < max(2, len(there) // 2):
        why = f"only {there.sum()} of {len(there)} queries have scores of all runs"
        return [unknown(NAME, _EVERY, "gain by these labels", why, int(there.sum()))]
    before, after = scores[:, : len(own), there], scores[:, len(own) : -1, there]
    return circularity(
        before[0],
        after[0],
        scores[0, -1, there],
        None if reference is None else (before[1], after[1]),
        units=material.units[there],
        confidence=material.confidence,
        against=reference or "",
    )


def reranked(material: Material, name: str, run: Run | None) -> Run:
    """Return a run, or without one the whole pool, by the labels: ties keep the order, unlabelled docs come last."""
    # A document without a label comes last, as a run that uses the labels would have to put it.
    label = dict(zip(material.pairs, np.nan_to_num(material.values[name], nan=-np.inf).tolist(), strict=True))
    query_ids: list[str] = []
    doc_ids: list[str] = []
    scores: list[float] = []
    for query_id in material.queries:
        docs = material.collection.pairs[query_id] if run is None else run.top(query_id)
        docs = sorted(docs, key=lambda doc_id: -label[query_id, doc_id])[: material.collection.depth]
        query_ids += [query_id] * len(docs)
        doc_ids += docs
        scores += [-float(rank) for rank in range(len(docs))]
    return Run(f"{'the pool' if run is None else run.name} by {name}", query_ids, doc_ids, scores)


def circularity(
    base: Floats,
    after: Floats,
    top: Floats,
    truth: tuple[Floats, Floats] | None,
    *,
    units: Ints,
    confidence: float = 0.95,
    against: str = "the reference",
) -> list[Number]:
    """Return what re-ranking by a labeling does to its own scores and to those of a reference."""
    runs, n = base.shape
    # A measure without an upper end, such as DCG, has the range that was seen; the interval needs one.
    range_of_scores = max(1.0, float(np.ptp([base, after])))

    def mean(statistic: str, values: Floats, verdict: str = "") -> Number:
        ends = mean_change(values, units, max(range_of_scores, float(np.abs(values).max())), confidence)
        return Number(NAME, _EVERY, statistic, *ends, n=n, verdict=verdict)

    gain = (after - base).mean(axis=0)
    # A description: a count of runs has no interval that is never of zero width.
    reached = int((after.mean(axis=1) >= (1 - _AT_TOP) * top.mean()).sum())
    saturated = Number(NAME, _EVERY, "runs at the maximum", value=float(reached), n=runs)
    if 2 * saturated.value > runs:
        full = f"{saturated.value:.0f} of {runs} runs reach the best possible score: these labels cannot separate them"
        saturated = replace(saturated, verdict=full, flag="saturated")
    if truth is None:
        why = "without a reference, how much of this gain is real is unknown"
        return [mean("gain by these labels", gain, why), saturated]
    before, real_after = truth
    real = (real_after - before).mean(axis=0)
    over = mean("gain too much", gain - real)
    if over.low > 0:
        sees = f"these labels see {gain.mean():.3f}, {against} {real.mean():.3f}"
        over = replace(over, verdict=f"{sees}: runs that use the labels look too good", flag="inflates")
    else:
        verdict = "not shown to be above 0: no evidence that these labels inflate runs that use them"
        over = replace(over, verdict=verdict)
    return [mean("gain by these labels", gain), mean(f"gain by {against}", real), over, saturated]
