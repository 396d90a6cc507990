# /// script
# dependencies = ["pyNTCIREVAL==0.0.3", "numpy==2.4.6"]
# ///
"""pyNTCIREVAL: values by query of lists in the order of the run's scores."""

import sys
from pathlib import Path
from typing import Any

from pyNTCIREVAL import Labeler
from pyNTCIREVAL.metrics import AP, RBP, RR, Hit, MSnDCG, Precision
from worlds import CUTOFFS, World, record

LEVELS = [1, 2, 3]


def values(world: World) -> dict[str, Any]:
    """Return the values by measure and query; of queries that have a relevant document."""
    found: dict[str, Any] = {}
    for query, scores in sorted(world.judged().items()):
        grades = {doc: max(grade, 0) for doc, grade in world.qrels[query].items()}
        if max(grades.values()) == 0:
            continue
        labeler = Labeler(grades)
        ranked = labeler.label(sorted(scores, key=lambda doc: -scores[doc]))
        per_level = labeler.compute_per_level_doc_num(1 + len(LEVELS))
        measures = {"AP": AP(per_level, LEVELS), "RR": RR(), "RBP.85": RBP(per_level, LEVELS, 0.85)}
        for cutoff in CUTOFFS:
            measures |= {
                f"AP@{cutoff}": AP(per_level, LEVELS, cutoff=cutoff),
                f"MSnDCG@{cutoff}": MSnDCG(per_level, LEVELS, cutoff=cutoff),
                f"P@{cutoff}": Precision(cutoff),
                f"Hit@{cutoff}": Hit(cutoff),
            }
        for name, measure in measures.items():
            found.setdefault(name, {})[query] = float(measure.compute(ranked))
    return found


record(Path(sys.argv[1]), values)
