# /// script
# dependencies = ["llama-index-core==0.14.25"]
# ///
"""LlamaIndex: ``RetrievalEvalResult.model_dump_json()`` of a RetrieverEvaluator, a line for each question."""

import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import QUESTIONS, RUNS  # noqa: E402
from llama_index.core.base.base_retriever import BaseRetriever  # noqa: E402
from llama_index.core.evaluation import RetrieverEvaluator  # noqa: E402
from llama_index.core.schema import NodeWithScore, TextNode  # noqa: E402

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
