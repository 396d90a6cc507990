"""What gates print, whole: `texts.txt` has their text, which logs of CI are searched for. Read what changes."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pandas as pd
import pytest

import judgekit as jk
from judgekit.jobs.guard.gate import Guarded
from tests.jobs.guard.conftest import commit, write_run

TEXTS: Final = Path(__file__).with_name("texts.txt")
CASES: Final[dict[str, Callable[[], Guarded]]] = {}
ASKED: Final = {"queries": "queries.jsonl", "docs": "docs.jsonl", "labeler": "containment"}
FEW: Final = {**ASKED, "queries": "few.jsonl"}


def case(function: Callable[[], Guarded]) -> Callable[[], Guarded]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


@case
def a_loss() -> Guarded:
    return jk.guard("base.trec", "worse.trec", **ASKED)


@case
def a_harmless_change() -> Guarded:
    return jk.guard("base.trec", "harmless.trec", **ASKED)


@case
def too_few_questions() -> Guarded:
    return jk.guard("few-base.trec", "few-harmless.trec", **FEW)


@case
def nothing_changed() -> Guarded:
    return jk.guard("base.trec", "base.trec", labels="gold.qrels")


def sparse() -> str:
    gold = Path("gold.qrels").read_text().splitlines(keepends=True)
    Path("sparse.qrels").write_text("".join(line for line in gold if line.endswith(" 1\n")))
    return "sparse.qrels"


@case
def documents_without_a_label() -> Guarded:
    return jk.guard("base.trec", "harmless.trec", labels=sparse())


@case
def documents_without_a_label_are_not_relevant() -> Guarded:
    return jk.guard("base.trec", "harmless.trec", jk.Gate(unjudged="nonrelevant"), labels=sparse())


@case
def a_suite_above_the_limit() -> Guarded:
    return jk.guard("few-base.trec", "few-worse.trec", jk.Gate(suite=True), labels="gold.qrels", queries="few.jsonl")


@case
def a_suite_within_the_limit() -> Guarded:
    gate = jk.Gate(suite=True, max_drop=4)
    return jk.guard("few-base.trec", "few-worse.trec", gate, labels="gold.qrels", queries="few.jsonl")


@case
def groups_of_questions() -> Guarded:
    rows = [{"query_id": f"q{i}", "text": f"What is {i}?", "town": f"t{min(i, 10)}"} for i in range(20)]
    new = write_run(Path("new.trec"), 20, worse=set(range(10, 15)))
    return jk.guard("few-base.trec", new, jk.Gate(suite=True, groups="town"), labels="gold.qrels", queries=rows)


@case
def a_question_without_a_score() -> Guarded:
    labels = {f"q{i}": {f"d{i}a": 1} for i in range(1, 300)}
    new = write_run(Path("first.trec"), 300, worse={0})
    return jk.guard("base.trec", new, gate=jk.Gate(suite=True), labels=labels, queries="queries.jsonl")


def rated(metric: str, wrong: int, value: float = 0.0) -> pd.DataFrame:
    values = [value] * wrong + [1.0] * (300 - wrong)
    return pd.DataFrame({"query_id": [f"q{i}" for i in range(300)], "value": values, "metric": metric})


@case
def worse_answers() -> Guarded:
    return jk.guard(rated("em", 0), rated("em", 40), jk.Gate(max_drop=2))


@case
def answers_by_a_metric_whose_small_values_are_good() -> Guarded:
    return jk.guard(rated("noise_sensitivity", 40), rated("noise_sensitivity", 0))


@case
def answers_that_are_missing() -> Guarded:
    return jk.guard(rated("em", 0), rated("em", 12, float("nan")))


def text(name: str) -> str:
    return str(CASES[name]())


@pytest.mark.parametrize("name", CASES)
def test_what_a_gate_prints_is_what_is_written(name: str, repository: Path) -> None:
    assert text(name) == TEXTS.read_text().partition(f"# {name}\n")[2].partition("\n\n")[0].rstrip("\n")


if __name__ == "__main__":  # python -m tests.jobs.guard.test_texts writes the texts anew
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(commit(Path(folder)))
        made = [f"# {name}\n{text(name)}" for name in CASES]
        os.chdir(TEXTS.parent)
    TEXTS.write_text("\n\n".join(made) + "\n")
