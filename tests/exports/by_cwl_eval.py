# /// script
# dependencies = ["cwl-eval==1.0.12", "setuptools==80.9.0"]
# ///
"""cwl_eval: the expected utility by measure and query, of lists in the order of a file with gains of 0 and 1."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from cwl.ruler.measures.cwl_ap import APCWLMetric
from cwl.ruler.measures.cwl_dcg import NDCGCWLMetric
from cwl.ruler.measures.cwl_precision import PrecisionCWLMetric
from cwl.ruler.measures.cwl_rbp import RBPCWLMetric
from cwl.ruler.measures.cwl_rr import RRCWLMetric
from cwl.ruler.ranking import Ranking
from worlds import CUTOFFS, World, record


def values(world: World) -> dict[str, Any]:
    """Return the values by measure and query; unjudged documents gain what a missing one does, which is nothing."""
    measures = {"AP": APCWLMetric(), "RR": RRCWLMetric(), "RBP@0.8": RBPCWLMetric(0.8)}
    for cutoff in CUTOFFS:
        measures[f"P@{cutoff}"] = PrecisionCWLMetric(cutoff)
        measures[f"NDCG-k@{cutoff}"] = NDCGCWLMetric(cutoff)
    found: dict[str, Any] = {}
    for query, scores in sorted(world.judged().items()):
        relevant = {doc for doc, grade in world.qrels[query].items() if grade > 0}
        ranked = sorted(scores, key=lambda doc: -scores[doc])
        gains = [float(doc in relevant) if doc in world.qrels[query] else np.nan for doc in ranked]
        ranking = Ranking(query, gains, [1.0] * len(gains))
        ranking.total_qrel_rels = ranking.total_qrel_gain = float(len(relevant))
        for name, measure in measures.items():
            found.setdefault(name, {})[query] = float(measure.measure(ranking))
    return found


record(Path(sys.argv[1]), values)
