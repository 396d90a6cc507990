# /// script
# dependencies = ["sentence-transformers==6.2.0", "torch==2.13.0"]
# ///
"""sentence-transformers: the predictions that its InformationRetrievalEvaluator writes, of a model that is scripted."""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from halls import QUESTIONS, RUNS
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

OUT = Path(sys.argv[1])
PLACES = {question.text: number for number, question in enumerate(QUESTIONS)}


class Scripted:
    """Gives each question a direction of its own, and a passage its score in that of its question."""

    similarity_fn_name = "dot"
    model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *given, **named: None)

    def __init__(self, run: str) -> None:
        """Keep what the run finds."""
        self.scores = {}
        for number, question in enumerate(QUESTIONS):
            for rank, passage in enumerate(question.found(run), 1):
                self.scores[passage.text] = number, 1 / rank

    def encode_query(self, sentences, **options):
        """Return the vectors of questions."""
        return torch.eye(len(QUESTIONS))[[PLACES[text] for text in sentences]]

    def encode_document(self, sentences, **options):
        """Return the vectors of passages."""
        vectors = torch.zeros(len(sentences), len(QUESTIONS))
        for row, text in enumerate(sentences):
            number, score = self.scores[text]
            vectors[row, number] = score
        return vectors

    def similarity(self, one, other):
        """Return the products of vectors."""
        return one @ other.T


for run in RUNS:
    evaluator = InformationRetrievalEvaluator(
        {question.id: question.text for question in QUESTIONS},
        {passage.id: passage.text for question in QUESTIONS for passage in question.passages},
        {question.id: {question.gold.id} for question in QUESTIONS},
        mrr_at_k=[3],
        ndcg_at_k=[3],
        accuracy_at_k=[3],
        precision_recall_at_k=[3],
        map_at_k=[3],
        write_predictions=True,
        name=run,
    )
    Path(run).mkdir(exist_ok=True)
    evaluator(Scripted(run), output_path=run)
    (written,) = Path(run).rglob("*predictions*.jsonl")
    (OUT / f"{run}.jsonl").write_text(written.read_text())
