# /// script
# dependencies = ["pyragnarok==0.0.1", "dacite==1.9.2", "ftfy==6.3.1", "tqdm==4.70.1"]
# [tool]
# bare = ["pyragnarok"]
# ///
"""Ragnarök: the answers to TREC's RAG track 2024 that it writes for each run; its own models are not asked."""

import shutil
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import QUESTIONS, RUNS  # noqa: E402
from ragnarok.data import Candidate, CitedSentence, OutputFormat, Query, RAGExecInfo, Request  # noqa: E402
from ragnarok.generate.generator import RAG  # noqa: E402
from ragnarok.generate.llm import LLM, PromptMode  # noqa: E402


class Application(LLM):
    """Answers as the application of one run does, and cites the passages that hold the answer."""

    def __init__(self, run):
        """Keep the run."""
        super().__init__(run, 4096, PromptMode.CHATQA)
        self.run = run

    def create_prompt(self, request, topk):
        """Return the question and its passages; the answer is that of a list, not of a model."""
        return (request.query.qid, [candidate.doc["text"] for candidate in request.candidates[:topk]]), 1

    def run_llm(self, prompt, logging=False):
        """Return sentences with their citations."""
        query_id, texts = prompt
        answer = next(question.answer(self.run) for question in QUESTIONS if question.id == query_id)
        cited = [place for place, text in enumerate(texts) if answer in text]
        said = [CitedSentence(f"It keeps {answer}.", cited), CitedSentence("So the page says.", [])]
        return said, RAGExecInfo(prompt=prompt[1], response=answer, input_token_count=1, output_token_count=1)

    def get_num_tokens(self, prompt):
        """Count nothing."""
        return 1

    def cost_per_1k_token(self, input_token):
        """Cost nothing."""
        return 0.0


for run in RUNS:
    requests = []
    for question in QUESTIONS:
        found = question.found(run)
        candidates = [Candidate(p.id, 1 - place / 10, {"text": p.text}) for place, p in enumerate(found)]
        requests.append(Request(Query(question.text, question.id), candidates))
    rag = RAG(Application(run))
    results = rag.answer_batch(requests)
    for form in (OutputFormat.JSONL, OutputFormat.JSON):
        written = rag.write_answer_results("halls", results, output_format=form)
        shutil.move(written, OUT / f"{run}.{form}")
