# /// script
# dependencies = ["torchmetrics==1.9.0", "torch==2.13.0"]
# ///
"""torchmetrics: the values of its retrieval metrics by query; it knows only the documents that a list holds.

It computes with 32-bit numbers. Documents whose scores are equal then come in no certain order: lists that hold any are
left out.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torchmetrics.functional import retrieval
from worlds import CUTOFFS, World, record

BINARY = {
    "average_precision": retrieval.retrieval_average_precision,
    "precision": retrieval.retrieval_precision,
    "recall": retrieval.retrieval_recall,
    "hit_rate": retrieval.retrieval_hit_rate,
    "fall_out": retrieval.retrieval_fall_out,
    "reciprocal_rank": retrieval.retrieval_reciprocal_rank,
}


def values(world: World) -> dict[str, Any]:
    """Return the values by metric and query."""
    found: dict[str, Any] = {}
    for query, scores in sorted(world.judged().items()):
        ranked = sorted(scores, key=lambda doc: -scores[doc])
        said = torch.tensor([scores[doc] for doc in ranked], dtype=torch.float32)
        if len(said.unique()) < len(ranked):
            continue
        grades = torch.tensor([max(world.qrels[query].get(doc, 0), 0) for doc in ranked])
        results = {
            "r_precision": retrieval.retrieval_r_precision(said, grades > 0),
            "normalized_dcg": retrieval.retrieval_normalized_dcg(said, grades),
        }
        for cutoff in CUTOFFS:
            for name, metric in BINARY.items():
                results[f"{name}, top_k={cutoff}"] = metric(said, grades > 0, top_k=cutoff)
            results[f"normalized_dcg, top_k={cutoff}"] = retrieval.retrieval_normalized_dcg(said, grades, top_k=cutoff)
        for name, value in results.items():
            found.setdefault(name, {})[query] = float(value)
    return found


record(Path(sys.argv[1]), values)
