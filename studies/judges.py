"""Do LLM labels of TREC DL 2021 order retrievers as people's labels do?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

import judgekit as jk
from studies.source import paths, trec

REPO = "Narabzad/llm-relevance-judgement-comparison"
# Those that label all of NIST's pool. Left out: nuggets (83 % and 9 % of it), Llama-3.2's exam (a topic is missing)
# and Llama-3.2's UMBRELA (four labels of a pair, which differ).
JUDGES = {
    "UMBRELA": ("raw qrels/gpt-4o/umbrela/umbrela_zeroshot_dl21.clean.json", "grades:3"),
    "exam max": ("raw qrels/gpt-4o/exam graded max/qrels.max.exam_selfrate_dl21.txt", "grades:5"),
    "exam mean": ("raw qrels/gpt-4o/exam graded mean/qrels.mean.exam_selfrate_dl21.txt", "means:5"),
    "exam binary": ("raw qrels/gpt-4o/exam binary/qrels.mean.exam_selfrate_binary_dl21.txt", "unit"),
    "binary": ("raw qrels/gpt-4o/binary/binary_dl21.txt", "binary"),
    "Llama binary, file 1": ("raw qrels/llama3.2/binary/binary_llama3.2_dl21.txt", "binary"),
    "Llama binary, file 2": ("Methods/Binary/llama3.2/binary_llama3.2_dl21.txt", "binary"),
}
PEOPLE = "NIST"
MEASURE = "nDCG@10"


def scores() -> pd.DataFrame:
    """Return nDCG@10 of each run by each judge and by people: ``labeling, run, query_id, value``."""
    people = trec(REPO, "data/qrels.dl21-passage.txt")
    topics = set(people["query_id"])
    runs = {}
    for path in paths(REPO, "runs/dl21/"):
        run = trec(REPO, path, "query_id _ doc_id rank score tag")
        name = path.removeprefix("runs/dl21/input.").removesuffix(".txt")
        runs[name] = run.loc[run["query_id"].isin(topics), ["query_id", "doc_id", "score"]]
    labelings = {name: trec(REPO, path) for name, (path, _) in JUDGES.items()} | {PEOPLE: people}
    scales = {name: scale for name, (_, scale) in JUDGES.items()} | {PEOPLE: "grades:3"}
    return jk.score(runs, labelings, MEASURE, scales=scales).scores()


def labelled() -> int:
    """Return how many pairs of a topic and a passage people labelled."""
    return len(trec(REPO, "data/qrels.dl21-passage.txt"))


def signs(per_topic: pd.DataFrame) -> np.ndarray:
    """Return the sign of each pair of runs that a paired t test tells apart (p < .05), else 0."""
    values = per_topic.to_numpy()
    gap = np.array([values[:, one] - values[:, other] for one, other in combinations(range(values.shape[1]), 2)])
    told = stats.ttest_1samp(gap, 0, axis=1).pvalue < 0.05
    return np.where(told, np.sign(gap.mean(axis=1)), 0.0)


def table() -> pd.DataFrame:
    """Return a row for each judge: tau-b with people's order, and what becomes of the pairs that people tell apart."""
    values = scores()
    by_topic = {
        str(name): rows.pivot(index="query_id", columns="run", values="value")
        for name, rows in values.groupby("labeling")
    }
    people = signs(by_topic[PEOPLE])
    rows = {}
    for name in JUDGES:
        mine = signs(by_topic[name])
        rows[name] = {
            "tau": float(stats.kendalltau(by_topic[name].mean(), by_topic[PEOPLE].mean()).statistic),
            "found": int((mine * people > 0).sum()),
            "opposite": int((mine * people < 0).sum()),
            "unconfirmed": int(((mine != 0) & (people == 0)).sum()),
        }
    told = {"runs": by_topic[PEOPLE].shape[1], "topics": len(by_topic[PEOPLE]), "told": int((people != 0).sum())}
    return pd.DataFrame.from_dict(rows, orient="index").assign(**told)
