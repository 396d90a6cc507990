"""Answers of three readers to questions of 2WikiMultihopQA, with the passages in their prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256

import pandas as pd

import judgekit as jk
from studies.source import text

REPO = "r-gheda/rag-complex-qa"
METRICS = ("contains", "em", "f1")
NORM = "(norm=squad)"
"""The study keeps the rule of SQuAD's script, by which its numbers were made; tables name the metrics without it."""
ORACLE = "llama3/oracle_esit.json"

# Three forms of prompt: an instruction before the documents, none, and documents without line breaks between them.
_MARK = re.compile(r"\n?Document\[\d+\]\(Title: ")


@cache
def answers(name: str) -> dict[str, tuple[list[tuple[str, str]], str, str]]:
    """Return by question the passages in the order of the prompt (title, text), the answer and the gold answer."""
    read = {}
    for prompt, (answer, gold) in json.loads(text(REPO, f"llm-responses/{name}")).items():
        documents, question = prompt.rsplit("Question: ", 1)
        read[question.strip()] = [_passage(part) for part in _MARK.split(documents)[1:]], answer, gold
    return read


@cache
def ids() -> dict[str, str]:
    """Return the questions by their ids."""
    return {f"q{number:04}": question for number, question in enumerate(answers(ORACLE), 1)}


def _passage(part: str) -> tuple[str, str]:
    """Return title and text; a title may hold brackets of its own."""
    depth = 1
    for place, letter in enumerate(part):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return part[:place], part[place + 1 :].strip()
    title, _, body = part.partition(") ")
    return title, body.strip()


def doc_id(passage: tuple[str, str]) -> str:
    """Return the passage's identity: near-copies differ in white space and punctuation only, and are one document."""
    return sha256(re.sub(r"[\W_]+", "", passage[1].lower()).encode()).hexdigest()[:16]


@cache
def run(name: str) -> dict[str, dict[str, float]]:
    """Return the contexts of a file as a run; the second copy of a passage is dropped."""
    found = answers(name)
    lists = {query: dict.fromkeys(map(doc_id, found[question][0])) for query, question in ids().items()}
    return {query: {doc: -float(rank) for rank, doc in enumerate(docs)} for query, docs in lists.items()}


def gold() -> dict[str, dict[str, int]]:
    """Return the authors' gold passages as qrels."""
    return {query: dict.fromkeys(docs, 1) for query, docs in run(ORACLE).items()}


def same_contexts(*names: str) -> bool:
    """Return whether the files hold the same passages in the same order: a file's name does not say so."""
    first, *others = (run(name) for name in names)
    return all(first == other for other in others)


def queries() -> pd.DataFrame:
    """Return the questions with their gold answers."""
    golds = {question: gold for question, (_, _, gold) in answers(ORACLE).items()}
    # Flan-T5 cannot write letters such as ł: the answers of all readers are compared without them.
    rows = [(query, question, [_ascii(golds[question])]) for query, question in ids().items()]
    return pd.DataFrame(rows, columns=["query_id", "text", "answers"])


def kinds() -> dict[str, str]:
    """Return the kind of each question: yes/no; options, where the gold answer stands in the question; or open."""
    kind = {}
    for query, question in ids().items():
        gold = answers(ORACLE)[question][2]
        among = _words(gold) in _words(question)
        kind[query] = "yes/no" if gold.lower() in ("yes", "no") else "options" if among else "open"
    return kind


def docs(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the passages of some files."""
    passages = {one for name in names for found, _, _ in answers(name).values() for one in found}
    return {doc_id(one): {"title": one[0], "text": one[1]} for one in sorted(passages)}


def answered(files: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Return the answers in each file, by (model, run), with the passages that they were made from."""
    rows = [
        (query, run_name, model, _ascii(answers(name)[question][1]), list(run(name)[query]))
        for (model, run_name), name in files.items()
        for query, question in ids().items()
    ]
    return pd.DataFrame(rows, columns=["query_id", "run", "model", "answer", "context"])


def quality(
    files: Mapping[tuple[str, str], str], runs: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> pd.DataFrame:
    """Return contains, exact match and F1 of the answers in each file, by (model, run)."""
    imported = answered(files).assign(depth=10)
    metrics = [f"{metric}{NORM}" for metric in METRICS]
    quality = jk.answer(queries=queries(), imported=imported, metrics=metrics, runs=runs, depths=10)
    return quality.assign(metric=quality["metric"].str.removesuffix(NORM))


def gains(comparison: jk.Comparison) -> dict[str, tuple[float, float, float]]:
    """Return the points that each labeling wins over a coin flip, with the interval."""
    rows = comparison.decision.of("gain").set_index("subject")
    return {name: (gain, low, high) for name, gain, low, high in rows[["value", "low", "high"]].itertuples()}


def _ascii(answer: str) -> str:
    # An empty answer is a wrong one here, not one that could not be had.
    return answer.encode("ascii", "ignore").decode().strip() or "(empty)"


def _words(sentence: str) -> str:
    return " " + " ".join(re.findall(r"\w+", sentence.lower())) + " "
