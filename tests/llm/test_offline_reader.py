"""How well the offline stand-in reads: on real questions, which nothing in it was fitted to."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from judgekit.answers.normalize import normalize
from judgekit.llm.offline_reader import Reader

PASSAGES = [("Mill", "Thomas Greave built the mill in 1823."), ("Quay", "Anna Holm drew the quay. It has 42 moorings.")]


def test_weights_depend_on_the_passages_of_the_prompt_so_that_the_answer_can_change_with_them() -> None:
    question = "Who built the old mill?"
    alone = Reader().read(question, PASSAGES[:1])
    distractors = [("Old mill", "The old mill was built by Edwin Sorrel."), *PASSAGES]
    assert alone.span == "Thomas Greave"
    assert Reader().read(question, distractors).span == "Edwin Sorrel"


@given(st.permutations(range(2)), st.sampled_from(["Who drew the quay?", "How many moorings has the quay?", "Why?"]))
def test_probabilities_are_probabilities_and_the_sentence_is_one_of_the_prompt(order: list[int], question: str) -> None:
    passages = [PASSAGES[i] for i in order]
    answer = Reader().read(question, passages)
    assert 0 < answer.confidence < 1
    assert 0 < answer.relevant < 1
    assert answer.sentence in ("", *(s for _, text in PASSAGES for s in text.replace(". ", ".|").split("|")))


@pytest.mark.slow
def test_on_real_questions_it_answers_a_fifth_and_judges_far_better_than_chance(shared: Path) -> None:
    data = shared / "data" / "dev"
    lines = (data / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    docs = {d["doc_id"]: (d["title"], d["text"]) for d in map(json.loads, lines)}
    queries = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()][:300]
    gold = {line.split()[0]: line.split()[2] for line in (data / "provenance.qrels").read_text().splitlines()}
    retrieved: dict[str, list[str]] = defaultdict(list)
    for line in (data / "runs" / "bm25.trec").read_text().splitlines():
        retrieved[line.split()[0]].append(line.split()[2])
    reader = Reader()
    right, relevant, other = [], [], []
    for query in queries:
        query_id = query["query_id"]
        span = reader.read(query["text"], [docs[gold[query_id]]]).span or ""
        right.append(normalize(span) in [normalize(answer) for answer in query["answers"]])
        for doc_id in retrieved[query_id][:5]:
            chance = reader.read(query["text"], [docs[doc_id]]).relevant
            (relevant if doc_id == gold[query_id] else other).append(chance)
    auc = mannwhitneyu(relevant, other).statistic / (len(relevant) * len(other))
    assert np.mean(right) > 0.2
    assert auc > 0.75
