# /// script
# dependencies = ["ranx==0.3.21"]
# ///
"""ranx: its means of runs that `make_comparable` gives the queries of the qrels."""

import sys
from pathlib import Path
from typing import Any

from ranx import Qrels, Run, evaluate
from worlds import CUTOFFS, World, record

NAMES = ("hits", "hit_rate", "precision", "recall", "f1", "map", "mrr", "dcg", "ndcg", "dcg_burges", "ndcg_burges")
MEASURES = [
    *NAMES,
    *(f"{name}@{cutoff}" for name in NAMES for cutoff in CUTOFFS),
    *("r-precision", "rbp.95", "rbp.8", "bpref"),
]


def values(world: World) -> dict[str, Any]:
    """Return the means by measure."""
    qrels, run = Qrels(world.qrels), Run(world.run)
    found = evaluate(qrels, run, MEASURES, make_comparable=True)
    return {name: None if value != value else float(value) for name, value in found.items()}


record(Path(sys.argv[1]), values)
