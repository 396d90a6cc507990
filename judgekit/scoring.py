"""Scoring runs under labelings: the one code behind the command line, the Python API and the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from judgekit.analysis.background import LENGTH, RETRIEVER
from judgekit.collection import Collection
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import SCORES
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.metrics import Evaluation, Measure


def at_depths(measures: Iterable[Measure], depths: Sequence[int]) -> list[Measure]:
    """Return the measures, each that can have a cutoff and has none being taken at every answer depth."""
    taken: list[Measure] = []
    for measure in measures:
        if measure.definition.cutoff and measure.spec.cutoff is None:
            taken += [measure.at(depth) for depth in depths]
        else:
            taken.append(measure)
    return list(dict.fromkeys(taken))


def score_pool(collection: Collection, labelings: Sequence[Labeling], measures: Sequence[Measure]) -> Evaluation:
    """Score all runs under all labelings, over all queries of the experiment."""
    from judgekit.metrics import evaluate

    if not labelings:
        raise UsageError("give at least one labeling to score the runs with")
    return evaluate(
        collection.runs,
        labelings,
        measures,
        query_ids=list(collection.queries),
        depth=collection.depth,
        docs=collection.docs,
    )


_FUSION: Final = 60
"""The constant of reciprocal rank fusion (Cormack et al., SIGIR 2009)."""


def control_scores(collection: Collection, measure: str) -> pd.DataFrame:
    """Return scores of the runs under two labelings that know no question, named as those of ``measure``."""
    # They are gains, so they are scored by nDCG, at the measure's cutoff.
    from judgekit.metrics import Measure

    # Of one run a fusion is the run itself, which would be no control.
    if len(collection.runs) < 2:
        return SCORES.empty()
    made: dict[str, list[tuple[str, str, float]]] = {RETRIEVER: [], LENGTH: []}
    for query_id, doc_ids in collection.pooled():
        fused = dict.fromkeys(doc_ids, 0.0)
        for run in collection.runs:
            for rank, doc_id in enumerate(run.top(query_id, collection.depth), 1):
                fused[doc_id] += 1 / (_FUSION + rank)
        ranked = sorted(doc_ids, key=lambda doc_id: (-fused[doc_id], doc_id))
        made[RETRIEVER] += [(query_id, doc_id, 1 / rank) for rank, doc_id in enumerate(ranked, 1)]
        docs = list(collection.docs.get(doc_ids))
        # Scaled by question: lengths are compared between the passages of one question only.
        longest = max([1, *(len(doc.text) for doc in docs)])
        made[LENGTH] += [(query_id, doc.doc_id, len(doc.text) / longest) for doc in docs]
    given = Measure(measure)
    gain = Measure(replace(given.spec, name="nDCG", params=()))
    labelings = []
    for name, labels in made.items():
        frame = pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"])
        labelings.append(Labeling(name, Scale("unit"), frame))
    return score_pool(collection, labelings, [gain]).scores().assign(measure=measure)


def question_mean(labeling: Labeling) -> dict[str, float]:
    """Return a labeling's question-only twin: the mean label per query over its pool, of the labels that there are."""
    means = labeling.table.groupby("query_id")["relevance"].mean().dropna()
    return {str(query_id): float(value) for query_id, value in means.items()}
