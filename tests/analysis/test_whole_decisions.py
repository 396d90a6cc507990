"""A dozen whole decisions, as people read them: `whole_decisions.txt` has their text. Read what changes."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.background import RETRIEVER, Background
from judgekit.analysis.comparison import compare
from judgekit.analysis.leakage import AnsweredBy
from judgekit.analysis.money import Money
from judgekit.collection import Pool
from judgekit.labelers.base import Needs
from judgekit.rules import DeclaredOutcome, Rules
from tests.analysis.worlds import tables, world

TEXTS: Final = Path(__file__).with_name("whole_decisions.txt")
NAMES: Final = ("erag", "judge", "gold", "containment", "strong", "words")
READER: Final = jk.Endpoint("x", "http://localhost:1/v1", "m")
POOL: Final = Pool(104, 1092, 2125, 104, (15, 60, 90, 120, 150, 202), (74, 80, 85, 90, 95, 102), 571)
CASES: Final[dict[str, Callable[[], dict[str, Any]]]] = {}


def case(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


def six_labelings() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Six runs and labelings that follow the answers more or less closely."""
    rng = np.random.default_rng(12)
    use = np.linspace(-0.5, 0.1, 6)[:, None] + rng.normal(size=(6, 104))
    quality = (use + rng.normal(size=104) > 0).astype(float)
    scores = {name: use + size * rng.normal(size=use.shape) for name, size in zip(NAMES, range(1, 7), strict=True)}
    return tables(scores, quality, ("bm25", "dense", "rrf", "splade", "tfidf", "titles"))


@case
def six_runs_and_six_labelings() -> dict[str, Any]:
    scores, quality = six_labelings()
    requests = [1092.0, 1092.0, 0.0, 0.0, 4000.0, 0.0, 571.0]
    needs = {
        "erag": Needs(references=True, endpoints=(READER,), outcome_metric="em"),
        "judge": Needs(endpoints=(READER,)),
        "gold": Needs(existing=True),
        "containment": Needs(references=True),
    }
    background = Background(
        costs=pd.DataFrame({"labeling": [*NAMES, "answers"], "requests": requests}),
        pool=POOL,
        needs=needs,
        answering={"m": AnsweredBy(READER, "answer-short")},
    )
    return {"scores": scores, "quality": quality, "background": background}


@case
def with_prices() -> dict[str, Any]:
    made = six_runs_and_six_labelings()
    costs = made["background"].costs.assign(money=[9.0, 9.05, 0.0, 0.01, 45.0, 0.0, 50.0])
    money = Money("EUR", reference=0.5, judgment=0.6)
    return {**made, "background": Background(costs=costs, pool=POOL, needs=made["background"].needs, money=money)}


@case
def two_runs() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    right = rng.random(200) < 0.6
    quality = np.where(rng.random((2, 200)) < 0.1, ~right, right).astype(float)
    scores, quality = tables({"judge": 0.1 * quality + rng.normal(size=(2, 200))}, quality, ("bm25", "dense"))
    return {"scores": scores, "quality": quality}


@case
def a_clear_best_of_twelve() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    quality = (rng.random((12, 400)) < 0.42).astype(float)
    quality[7] = rng.random(400) < 0.6
    names = tuple(f"r{i:02d}" for i in range(12))
    scores, quality = tables({"judge": rng.normal(size=(12, 400))}, quality, names)
    return {"scores": scores, "quality": quality}


@case
def runs_that_hardly_differ() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    right = rng.random(3000) < 0.5
    quality = np.where(rng.random((3, 3000)) < 0.01, ~right, right).astype(float)
    scores, quality = tables({"judge": quality + rng.normal(size=quality.shape)}, quality, ("a", "b", "c"))
    return {"scores": scores, "quality": quality}


@case
def no_answers_but_trusted_labels() -> dict[str, Any]:
    scores, quality = world({"judge": (0.0, 1.0), "words": (0.5, 0.2)}, n=100)
    return {"scores": scores, "quality": quality, "background": Background(quality="nDCG@10 by NIST")}


@case
def thumbs() -> dict[str, Any]:
    scores, quality = world({"judge": (0.0, 1.0)}, n=150)
    words = quality.drop(columns=["metric"]).assign(value=np.where(quality["value"] > 0, "up", "down"))
    return {"scores": scores, "quality": words, "outcome": DeclaredOutcome(scale="thumbs")}


@case
def misleading_labels() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    quality = (rng.random((6, 300)) < np.linspace(0.4, 0.6, 6)[:, None]).astype(float)
    own = quality + 0.7 * rng.normal(size=quality.shape)
    own[0] += 1.0
    words = -np.linspace(0, 1, 6)[:, None] + 0.4 * quality + rng.normal(size=quality.shape)
    scores, quality = tables({"own": own, "words": words}, quality, tuple("abcdef"))
    return {"scores": scores, "quality": quality}


@case
def one_labeling_and_the_runs_own_ranks() -> dict[str, Any]:
    scores, quality = world({"judge": (0.0, 0.5), "ranks": (0.0, 0.6)}, n=150)
    scores = scores.replace({"ranks": RETRIEVER})
    needs = {"judge": Needs(endpoints=(jk.Endpoint("y", "http://localhost:2/v1", "ranker"),))}
    background = Background(controls=[RETRIEVER], needs=needs, reranked={"rrf": "ranker"})
    return {"scores": scores, "quality": quality, "background": background}


@case
def nothing_is_shown() -> dict[str, Any]:
    scores, quality = world({"judge": (0.02, 0.03), "words": (0.0, 0.02)}, 60, seed=4, skill=0.05)
    return {"scores": scores, "quality": quality}


@case
def missing_answers_and_labels() -> dict[str, Any]:
    scores, quality = world({"judge": (0.0, 1.0), "words": (0.2, 0.6)}, n=200)
    gone = (quality["run"] == "rrf") & (quality["query_id"] < "q0006")
    lost = (scores["labeling"] == "judge") & (scores["query_id"] > "q0197")
    value = scores["value"].mask(lost)
    scores = scores.assign(value=value, low=value.fillna(-3), high=value.fillna(3))
    return {"scores": scores, "quality": quality[~gone]}


@case
def one_run_whose_failing_questions_are_wanted() -> dict[str, Any]:
    scores, quality = world({"judge": (0.4, 1.0), "words": (0.3, 0.3)}, n=120, runs=("bm25",))
    twins = {"judge": scores[scores["labeling"] == "words"].set_index("query_id")["value"].to_dict()}
    return {"scores": scores, "quality": quality, "background": Background(twins=twins)}


def text(name: str) -> str:
    made = CASES[name]()
    # As in an experiment: no question is repeated.
    known = replace(made.pop("background", Background()), questions={})
    return compare(**made, background=known, rules=Rules(resamples=300)).decision.text


@pytest.mark.parametrize("name", CASES)
def test_a_whole_decision_is_what_is_written(name: str) -> None:
    expected = TEXTS.read_text().partition(f"# {name}\n")[2].partition("\n\n")[0].rstrip("\n")
    number = re.compile(r"-?\d*\.?\d+")
    found = text(name)
    assert number.split(" ".join(found.split())) == number.split(" ".join(expected.split()))
    numbers, written = ([float(one) for one in number.findall(each)] for each in (found, expected))
    assert numbers == pytest.approx(written, abs=0.11), "the last digit is the processor's"


def test_a_decision_on_six_labelings_of_ordinary_names_has_at_most_22_lines_of_100_characters() -> None:
    lines = text("six runs and six labelings").splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 100


if __name__ == "__main__":  # python -m tests.analysis.test_whole_decisions writes the texts anew
    TEXTS.write_text("\n\n".join(f"# {name}\n{text(name)}" for name in CASES) + "\n")
