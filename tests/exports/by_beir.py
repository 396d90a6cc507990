# /// script
# dependencies = ["beir==2.2.0", "pytrec-eval-terrier==0.5.11", "tqdm==4.70.1"]
#
# [tool]
# bare = ["beir"]
# ///
"""BEIR: the means of EvaluateRetrieval, and its further metrics after `evaluate` has taken self-matches away."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from beir.retrieval.evaluation import EvaluateRetrieval
from worlds import CUTOFFS, World, attempted, record


def values(world: World) -> dict[str, Any]:
    """Return the means by measure."""
    results = world.judged()
    found: dict[str, Any] = {}
    for means in EvaluateRetrieval.evaluate(world.qrels, results, list(CUTOFFS)):
        found |= means
    for metric, names in {"mrr": "MRR", "r_cap": "R_cap", "hole": "Hole", "accuracy": "Accuracy"}.items():
        asked = partial(EvaluateRetrieval.evaluate_custom, world.qrels, results, list(CUTOFFS), metric)
        means = attempted(asked)
        found |= means or {f"{names}@{cutoff}": None for cutoff in CUTOFFS}
    return found


record(Path(sys.argv[1]), values)
