# /// script
# dependencies = ["pytrec-eval-terrier==0.5.11"]
# ///
"""pytrec_eval: its values by query."""

import sys
from pathlib import Path
from typing import Any

import pytrec_eval
from worlds import World, record

MEASURES = (
    "P.1,3,10 recall.1,3,10 map_cut.1,3,10 ndcg_cut.1,3,10 success.1,3,10 map ndcg recip_rank Rprec bpref set_P"
    " set_recall set_F relative_P.1,3,10"
)


def values(world: World) -> dict[str, Any]:
    """Return the values by measure and query."""
    evaluator = pytrec_eval.RelevanceEvaluator(world.qrels, set(MEASURES.split()))
    by_query = evaluator.evaluate(world.run)
    names = sorted(next(iter(by_query.values())))
    return {name: {query: by_query[query][name] for query in sorted(by_query)} for name in names}


record(Path(sys.argv[1]), values)
