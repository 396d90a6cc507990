"""Circularity: how much runs seem to gain by re-ranking with a labeling, and how much of it is real.

After Clarke and Dietz, "LLM-based relevance assessment still can't replace human relevance assessment" (2024), and
Balog, Metzler and Qin, "Rankers, judges, and assistants" (2025).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.data.runs import Run
from judgekit.jobs.audit.audited_run import Material
from judgekit.jobs.audit.numbers import Ints, Number, mean_change, unknown

NAME: Final = "circularity"
_EVERY: Final = "every run re-ranks"


def of_labeling(material: Material, name: str) -> list[Number]:
    """Return the numbers of one labeling; the gain by re-ranking is compared with the reference's, if any."""
    labels = [(material.labelings[name].scale, material.values[name])]
    reference = material.reference
    if reference is not None and reference != name:
        labels.append((material.labelings[reference].scale, material.values[reference]))
    own = material.collection.runs
    again = [reranked(material, name, run) for run in own]
    scores = material.scores(labels, [*own, *again])
    there = np.asarray(np.isfinite(scores).all(axis=(0, 1)))
    # A mean over the few queries with all labels would be about other queries than the verdict.
    if there.sum() < max(2, len(there) // 2):
        why = f"only {there.sum()} of {len(there)} queries have scores of all runs"
        return [unknown(NAME, _EVERY, "gain by these labels", why, int(there.sum()))]
    gains = (scores[:, len(own) :, there] - scores[:, : len(own), there]).mean(axis=1)
    # The interval needs a range; unbounded measures such as DCG get the observed one.
    reach = max(1.0, float(np.ptp(scores[:, :, there])))
    units, confidence = material.units[there], material.confidence
    if len(gains) == 1:
        return circularity(gains[0], None, reach, units=units, confidence=confidence)
    return circularity(gains[0], gains[1], reach, units=units, confidence=confidence, against=str(reference))


def reranked(material: Material, name: str, run: Run) -> Run:
    """Return a run sorted by the labels: ties keep the order, unlabelled docs come last."""
    # Documents without a label come last, where a run that uses the labels must put them.
    label = dict(zip(material.pairs, np.nan_to_num(material.values[name], nan=-np.inf).tolist(), strict=True))
    query_ids: list[str] = []
    doc_ids: list[str] = []
    scores: list[float] = []
    for query_id in material.queries:
        docs = sorted(run.top(query_id), key=lambda doc_id: -label[query_id, doc_id])
        query_ids += [query_id] * len(docs)
        doc_ids += docs
        scores += [-float(rank) for rank in range(len(docs))]
    return Run(f"{run.name} by {name}", query_ids, doc_ids, scores)


def circularity(
    gain: Floats,
    real: Floats | None,
    reach: float,
    *,
    units: Ints,
    confidence: float = 0.95,
    against: str = "the reference",
) -> list[Number]:
    """Return the gain by re-ranking with a labeling, per query, by its own scores and by the reference's."""

    def mean(statistic: str, values: Floats, verdict: str = "", flag: str = "") -> Number:
        ends = mean_change(values, units, max(reach, float(np.abs(values).max())), confidence)
        return Number(NAME, _EVERY, statistic, *ends, n=len(values), verdict=verdict, flag=flag)

    if real is None:
        why = "without a reference, nobody knows how much of this gain is real"
        return [mean("gain by these labels", gain, why)]
    verdict, flag = "not shown to be above 0: no evidence that these labels inflate runs that use them", ""
    if mean("gain too much", gain - real).low > 0:
        sees = f"these labels see {gain.mean():.3f}, {against} {real.mean():.3f}"
        verdict, flag = f"{sees}: runs that use the labels look too good", "inflates"
    return [
        mean("gain by these labels", gain),
        mean(f"gain by {against}", real),
        mean("gain too much", gain - real, verdict, flag),
    ]
