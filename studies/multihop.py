"""1,200 questions of 2WikiMultihopQA, answered in two repositories from the passages of the same kinds of retriever."""

from __future__ import annotations

import json
from functools import cache

import pandas as pd

import judgekit as jk
from judgekit import Run
from studies import contexts
from studies.pairs import Difference, Setting, difference
from studies.source import text

AGAIN = "bbucksch/RAGs-for-Complex-QA"
DEPTHS = (1, 3, 5)
READERS = {
    "Llama-3-8B": {
        "BM25": "llama3/bm25_top{}_esit.json",
        "Contriever": "llama3/contriever_top{}_esit.json",
        "ADORE": "llama3/adore_top{}_esit.json",
    },
    "Flan-T5-XL": {
        "BM25": "flan-t5/bm25-top{}-response.json",
        "Contriever": "flan-t5/contriever-top{}-response.json",
    },
    "Mistral-7B": {"Contriever": "mistral/top{}_answers.json"},
}
NOISY = {
    "Llama-3-8B": ("llama3/oracle_esit.json", "llama3/oracle_rand_{}_esit.json"),
    "Flan-T5-XL": ("flan-t5/oracle-response.json", "flan-t5/oracle-rand{}-response.json"),
    "Mistral-7B": ("mistral/oracle-answers.json", "mistral/oracle_random_{}_answers.json"),
}
MEASURES = {"SetR": "recall", "Success@10": "hit", "nDCG": "nDCG", "RR": "first rank", "SetP": "precision"}
AGAIN_FILES = {
    "Contriever": "experiments/results/exp1/results_k{}.json",
    "ADORE": "experiments/results/exp5/exp5_results_k{}.json",
}
NO_ANSWER = "NO-RES"
"""What the prompt of the second repository asks for where the passages hold no answer."""


def _setting(name: str, reader: str, files: dict[str, str], returned: dict[str, str], metric: str) -> Setting:
    runs = {run: contexts.run(file) for run, file in files.items()}
    quality = contexts.quality({(reader, run): file for run, file in files.items()}, runs)
    scores = jk.score(runs, {"gold": contexts.gold()}, list(MEASURES)).scores()
    labels = {measure: _wide(scores, "measure", spelled, files) for spelled, measure in MEASURES.items()}
    ranked = [
        Run(run, *map(list, zip(*[(q, d, s) for q, docs in lists.items() for d, s in docs.items()], strict=True)))
        for run, lists in runs.items()
    ]
    return Setting(contexts.REPO, name, returned, _wide(quality, "metric", metric, files), labels, ranked)


def _wide(values: pd.DataFrame, column: str, value: str, order: dict[str, str]) -> pd.DataFrame:
    """Return the values of some rows of a table, a row for each question and a column for each run."""
    rows = values[values[column] == value]
    return rows.pivot(index="query_id", columns="run", values="value")[list(order)]


def retrievers(metric: str = "contains") -> list[Setting]:
    """Return the retrievers of each reader at each depth."""
    found = []
    for reader, patterns in READERS.items():
        for depth in DEPTHS:
            files = {retriever: pattern.format(depth) for retriever, pattern in patterns.items()}
            if len(files) > 1:
                returned = dict.fromkeys(files, str(depth))
                found.append(_setting(f"{reader}, top {depth}", reader, files, returned, metric))
    return found


def depths(metric: str = "contains") -> list[Setting]:
    """Return the depths of each reader and retriever."""
    found = []
    for reader, patterns in READERS.items():
        for retriever, pattern in patterns.items():
            files = {f"top {depth}": pattern.format(depth) for depth in DEPTHS}
            name = f"depths, {reader}, {retriever}"
            found.append(_setting(name, reader, files, {run: run for run in files}, metric))
    return found


def noise(metric: str = "contains") -> list[Setting]:
    """Return for each reader the gold passages alone and with random ones shuffled in."""
    found = []
    for reader, (plain, pattern) in NOISY.items():
        files = {"gold": plain, **{f"gold + {n}": pattern.format(n) for n in (1, 2, 3)}}
        found.append(_setting(f"random passages, {reader}", reader, files, {run: run for run in files}, metric))
    return found


def by_kind(measure: str = "em") -> dict[str, tuple[int, Difference, Difference]]:
    """Return by kind of question how many there are, and ADORE minus BM25 at top 5 for Llama-3-8B: recall, answers."""
    (setting,) = (setting for setting in retrievers(measure) if setting.name == "Llama-3-8B, top 5")
    kinds = pd.Series(contexts.kinds())
    groups = {"all": list(kinds.index)} | {str(kind): list(rows.index) for kind, rows in kinds.groupby(kinds)}
    recall = setting.labels["recall"]
    return {
        kind: (
            len(queries),
            difference((recall["ADORE"] - recall["BM25"])[queries]),
            difference((setting.answers["ADORE"] - setting.answers["BM25"])[queries]),
        )
        for kind, queries in groups.items()
    }


@cache
def _results(retriever: str, depth: int) -> pd.DataFrame:
    found = json.loads(text(AGAIN, AGAIN_FILES[retriever].format(depth)))["results"]
    return pd.DataFrame(found).set_index("question_id").sort_index()


def no_answer(retriever: str, depth: int) -> int:
    """Return how often the reader of the second repository said that the passages hold no answer."""
    return int((_results(retriever, depth)["predicted"] == NO_ANSWER).sum())


def _again(name: str, columns: dict[str, tuple[str, int]], returned: dict[str, str]) -> Setting:
    """Return configurations of the second repository, which records how many gold passages were found, and no lists."""
    found = {run: _results(*of) for run, of in columns.items()}
    answers = pd.DataFrame({run: frame["is_match"].astype(float) for run, frame in found.items()})
    recall = pd.DataFrame({run: frame["gold_docs_in_topk"] / frame["num_gold_docs"] for run, frame in found.items()})
    return Setting(AGAIN, name, returned, answers, {"recall": recall})


def retrievers_again() -> list[Setting]:
    """Return ADORE and Contriever at each depth, as the second repository has them."""
    return [
        _again(f"top {depth}", {name: (name, depth) for name in AGAIN_FILES}, dict.fromkeys(AGAIN_FILES, str(depth)))
        for depth in DEPTHS
    ]


def depths_again() -> list[Setting]:
    """Return the depths of ADORE and of Contriever, as the second repository has them."""
    names = {f"top {depth}": depth for depth in DEPTHS}
    return [
        _again(f"depths, {name}", {run: (name, depth) for run, depth in names.items()}, {run: run for run in names})
        for name in AGAIN_FILES
    ]
