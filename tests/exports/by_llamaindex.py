# /// script
# dependencies = ["llama-index-core==0.14.25"]
# ///
"""LlamaIndex: ``RetrievalEvalResult.model_dump_json()`` of a RetrieverEvaluator, a line for each question.

And the values of its retrieval metrics by query.
"""

import sys
from pathlib import Path
from typing import Any

OUT = Path(sys.argv[1])

from halls import QUESTIONS, RUNS  # noqa: E402
from llama_index.core.base.base_retriever import BaseRetriever  # noqa: E402
from llama_index.core.evaluation import RetrieverEvaluator  # noqa: E402
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY  # noqa: E402
from llama_index.core.schema import NodeWithScore, TextNode  # noqa: E402
from worlds import CUTOFFS, World, record  # noqa: E402

METRICS = ("hit_rate", "mrr", "precision", "recall", "ap", "ndcg")

BY_TEXT = {question.text: question for question in QUESTIONS}


class Retriever(BaseRetriever):
    """Finds what the collection says."""

    def __init__(self, run: str) -> None:
        """Name the run."""
        self.run = run
        super().__init__()

    def _retrieve(self, query_bundle):
        found = BY_TEXT[query_bundle.query_str].found(self.run)
        nodes = [TextNode(id_=passage.id, text=passage.text) for passage in found]
        return [NodeWithScore(node=node, score=1 / rank) for rank, node in enumerate(nodes, 1)]


for run in RUNS:
    evaluator = RetrieverEvaluator.from_metric_names(["mrr", "hit_rate"], retriever=Retriever(run))
    results = [evaluator.evaluate(query=question.text, expected_ids=[question.gold.id]) for question in QUESTIONS]
    (OUT / f"{run}.jsonl").write_text("".join(result.model_dump_json() + "\n" for result in results))


def values(world: World) -> dict[str, Any]:
    """Return the values by metric and query, of lists as a retriever with this ``top_k`` returns them."""
    found: dict[str, Any] = {}
    for query, scores in sorted(world.judged().items()):
        ranked = sorted(scores, key=lambda doc: -scores[doc])
        expected = [doc for doc, grade in world.qrels[query].items() if grade > 0]
        for name in METRICS if expected else ():
            for cutoff in CUTOFFS:
                said = METRIC_REGISTRY[name]().compute(expected_ids=expected, retrieved_ids=ranked[:cutoff])
                found.setdefault(f"{name}, top_k={cutoff}", {})[query] = said.score
    return found


record(OUT, values)
