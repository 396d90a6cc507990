"""Three small repositories: what a few questions can and cannot tell."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd

from judgekit import Run
from studies.pairs import Setting
from studies.source import paths, rows

TONIC = "TonicAI/tonic_validate"
LEGAL = "legalllm24/UK-Legal-RAG-Benchmark"
CHUNKS = "aditiverma05/rag-reranking-study"
LEGAL_MODELS = {"Llama": ("Responses Samples/Llama", "Scores_Samples/Llama")} | {
    "DeepSeek": ("Responses Samples/deepseek", "Scores_Samples/Deepseek")
}
LEGAL_DEPTHS = (3, 5, 7)
"""From 9 on, the two models' files of scores are the same file, or the passages are not recorded."""
CHUNK_SIZES = (256, 512, 1024)
_TONIC_NAME = re.compile(r"chunk_size_(\d+)_similarity_top_k_(\d+)_")


def tonic() -> list[Setting]:
    """Return sizes of chunks at each number of passages: 10 questions; GPT-4 labelled passages, graded answers."""
    by_depth: dict[int, dict[int, pd.DataFrame]] = {}
    for path in paths(TONIC, "examples/sweep_response_scores/"):
        if match := _TONIC_NAME.search(path):
            size, depth = int(match[1]), int(match[2])
            by_depth.setdefault(depth, {})[size] = pd.DataFrame(rows(TONIC, path)).set_index("question").sort_index()
    found = []
    for depth, frames in sorted(by_depth.items()):
        columns = {f"chunks of {size}": frame for size, frame in sorted(frames.items())}
        answers = {run: frame["answer_similarity_score"].astype(float) / 5 for run, frame in columns.items()}
        labels = {run: frame["retrieval_precision"].astype(float) for run, frame in columns.items()}
        found.append(
            Setting(
                repository=TONIC,
                name=f"top {depth}",
                # A chunk of 2,048 tokens holds many of 16: as many passages are not as much text.
                returned={run: run for run in columns},
                answers=pd.DataFrame(answers),
                labels={"LLM precision": pd.DataFrame(labels)},
            )
        )
    return found


def legal() -> list[Setting]:
    """Return reranking against none: 19 questions; an LLM graded how relevant contexts and answers are."""
    found = []
    for model, (responses, scores) in LEGAL_MODELS.items():
        for depth in LEGAL_DEPTHS:
            files = {run: f"RAG_Bot_Responses rerank_{on}_ k_{depth}.csv" for run, on in _RERANKED.items()}
            graded = {run: pd.DataFrame(rows(LEGAL, f"{scores}/{file}")) for run, file in files.items()}
            lists = {run: rows(LEGAL, f"{responses}/{file}") for run, file in files.items()}
            queries = [f"q{number:02}" for number in range(1, len(lists["reranked"]) + 1)]
            if len({tuple(row["Prompt"] for row in answered) for answered in lists.values()}) > 1:
                raise AssertionError("the two files do not hold the same questions in the same order")
            answers = pd.DataFrame(
                {run: frame["Answer Relavancy Score"].astype(float) for run, frame in graded.items()}
            )
            recall = pd.DataFrame({run: frame["Context Recall Score"].astype(float) for run, frame in graded.items()})
            found.append(
                Setting(
                    repository=LEGAL,
                    name=f"{model}, top {depth}",
                    returned=dict.fromkeys(files, str(depth)),
                    answers=answers.set_axis(queries),
                    labels={"LLM recall": recall.set_axis(queries)},
                    runs=[_legal_run(run, answered, depth) for run, answered in lists.items()],
                )
            )
    return found


_RERANKED = {"reranked": "True", "as retrieved": "False"}


def _legal_run(name: str, answered: list[dict[str, str]], depth: int) -> Run:
    """Return the passages of each question; a passage that is there twice counts once."""
    ranked = []
    for number, row in enumerate(answered, 1):
        contexts = [row.get(f"Context_{place}", "") for place in range(1, depth + 1)]
        ranked += [
            (f"q{number:02}", text, -float(rank)) for rank, text in enumerate(dict.fromkeys(filter(None, contexts)))
        ]
    return Run(name, *map(list, zip(*ranked, strict=True)))


def chunks() -> list[Setting]:
    """Return sizes of chunks, 5 passages, no reranking: the gold answer's string in the passages, F1 of answers."""
    found = []
    for data in ("squad", "hotpot"):
        table = pd.DataFrame(rows(CHUNKS, f"results/{data}_results.csv"))
        table = table[table["reranking"] == "False"]
        table["f1"] = [_f1(*each) for each in zip(table["generated_answer"], table["gold_answer"], strict=True)]
        table["asked"] = table["seed"] + " " + table["question"]
        table["hit"] = table["hit_at_k"].astype(float)
        wide = {name: table.pivot(index="asked", columns="chunk_size", values=name).dropna() for name in ("f1", "hit")}
        names = {str(size): f"chunks of {size}" for size in CHUNK_SIZES}
        answers, hit = (wide[name][list(names)].rename(columns=names) for name in ("f1", "hit"))
        returned = {run: run for run in answers.columns}
        asked = {query: query.split(" ", 1)[1] for query in answers.index}
        found.append(Setting(CHUNKS, data, returned, answers, {"answer in text": hit}, groups=asked))
    return found


def _f1(answer: str, gold: str) -> float:
    """Return the F1 of words, without case, punctuation and articles."""
    given, right = (re.findall(r"\w+", re.sub(r"\b(a|an|the)\b", " ", text.lower())) for text in (answer, gold))
    common = sum((Counter(given) & Counter(right)).values())
    return 2 * common / (len(given) + len(right)) if common else 0.0
