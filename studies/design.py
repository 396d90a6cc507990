"""Questions about papers of arXiv, answered under several indexes, numbers of passages and thresholds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import pandas as pd

import judgekit as jk
from judgekit import Run
from studies.pairs import Difference, Setting, difference
from studies.source import rows, text

REPO = "bchucs/rag-retrieval-design-study"
CORPORA = {"5,000": 0, "50,000": 1}
INDEXES = {"flat": "flat", **{f"IVF {name}": f"ivf_{name}" for name in ("conservative", "balanced", "aggressive")}}
DEPTHS = (1, 3, 5, 10, 20)
THRESHOLDS = ("none", "0.3", "0.5", "0.7")
MEASURES = {"SetR": "recall", "RR": "first rank", "SetP": "precision"}
MOST = 2.0
"""Answers and abstentions are graded from 0 to this."""


@cache
def questions() -> pd.DataFrame:
    """Return the questions by id: the paper that each was written from, "" where no paper answers it."""
    bank = json.loads(text(REPO, "data/questions/eval_questions.json"))
    papers = {question["question_id"]: question["gold_doc_ids"] for question in bank}
    if any(len(gold) > 1 for gold in papers.values()):
        raise AssertionError("a question has two gold papers")
    return pd.DataFrame({"paper": {query: gold[0] if gold else "" for query, gold in sorted(papers.items())}})


def answerable() -> list[str]:
    """Return the ids of the questions that a paper answers."""
    papers = questions()["paper"]
    return [str(query) for query in papers.index[papers != ""]]


def unanswerable() -> list[str]:
    """Return the ids of the others."""
    papers = questions()["paper"]
    return [str(query) for query in papers.index[papers == ""]]


def papers() -> dict[str, str]:
    """Return the paper that each answerable question was written from."""
    return {query: str(questions().loc[query, "paper"]) for query in answerable()}


@cache
def results(configuration: str, corpus: str) -> pd.DataFrame:
    """Return the rows of a file by question."""
    found = rows(REPO, f"results/{configuration}_evaluation_{CORPORA[corpus]}.csv")
    return pd.DataFrame(found).set_index("question_id")


def _run(configuration: str, corpus: str, name: str) -> Run:
    lists = results(configuration, corpus)["retrieved_doc_ids"]
    ranked = [
        (query, doc, -float(rank))
        for query in answerable()
        for rank, doc in enumerate(filter(None, str(lists[query]).split("|")))
    ]
    return Run(name, *map(list, zip(*ranked, strict=True)))


def _setting(name: str, corpus: str, files: dict[str, str], returned: dict[str, str]) -> Setting:
    queries, gold = answerable(), {query: {paper: 1} for query, paper in papers().items()}
    graded = {run: results(file, corpus)["answer_correctness"] for run, file in files.items()}
    answers = pd.DataFrame({run: grades[queries].astype(float) / MOST for run, grades in graded.items()})
    runs = [_run(file, corpus, run) for run, file in files.items()]
    scores = jk.score(runs, {"gold": gold}, list(MEASURES)).scores()
    labels = {
        measure: scores[scores["measure"] == spelled].pivot(index="query_id", columns="run", values="value")
        for spelled, measure in MEASURES.items()
    }
    for run, file in files.items():
        recorded = results(file, corpus)["retrieval_recall"][queries].astype(float)
        if (labels["recall"].loc[queries, run] != recorded).any():
            raise AssertionError(f"{file}: the recorded recall is not that of the lists")
    labels = {measure: frame.loc[queries] for measure, frame in labels.items()}
    return Setting(REPO, f"{name}, {corpus} papers", returned, answers, labels, runs, papers())


def settings() -> list[Setting]:
    """Return the indexes, the depths and the thresholds, over both corpora."""
    found = []
    for corpus in CORPORA:
        files = {name: f"exp3_index_{index}" for name, index in INDEXES.items()}
        found.append(_setting("indexes", corpus, files, dict.fromkeys(files, "5")))
        files = {f"top {depth}": f"exp1_topk_{depth}" for depth in DEPTHS}
        found.append(_setting("depths", corpus, files, {run: run for run in files}))
        files = {f"threshold {at}": f"exp2_threshold_{at}" for at in THRESHOLDS}
        # A threshold returns as many of 10 passages as lie below it.
        found.append(_setting("thresholds", corpus, files, {run: run for run in files}))
    return found


@dataclass(frozen=True)
class Abstaining:
    """How well top 1 and top 20 abstain where no paper answers, 0 to 2, and the difference in points of 100."""

    first: float
    last: float
    difference: Difference


def abstaining(corpus: str) -> Abstaining:
    """Return how the shortest and the longest contexts abstain on the questions that no paper answers."""
    queries = unanswerable()
    first, last = (
        results(f"exp1_topk_{depth}", corpus)["abstention_score"][queries].astype(float) for depth in (1, 20)
    )
    return Abstaining(float(first.mean()), float(last.mean()), difference((first - last) / MOST))


def noise(corpus: str) -> int:
    """Return on how many questions the answers of a configuration that was run twice are graded differently."""
    queries = answerable()
    once, again = results("exp1_topk_5", corpus), results("exp3_index_flat", corpus)
    if (once.loc[queries, "retrieved_doc_ids"] != again.loc[queries, "retrieved_doc_ids"]).any():
        raise AssertionError("top 5 and the flat index do not hold the same lists")
    return int((once.loc[queries, "answer_correctness"] != again.loc[queries, "answer_correctness"]).sum())
