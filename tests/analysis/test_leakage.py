import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import AnsweredBy, Background, compare, kinship, same_by_construction
from judgekit.labelers.base import Needs
from judgekit.wire.types import Endpoint
from tests.mock import URL

READER = Endpoint("reader", "http://localhost:1/v1", "big", family="bigs")
OTHER_PORT = Endpoint("reader2", "http://localhost:2/v1", "big")
COUSIN = Endpoint("cousin", "http://localhost:1/v1", "bigger", family="bigs")
STRANGER = Endpoint("stranger", "http://localhost:1/v1", "other")
HOW = {"big": AnsweredBy(READER, "answer-short")}


def utility(endpoint=READER, metric="em", prompt="answer-short"):
    return Needs(references=True, endpoints=(endpoint,), outcome_metric=metric, outcome_prompt=prompt)


@pytest.mark.parametrize(
    ("need", "same"),
    [
        (utility(), True),
        (utility(metric="f1"), False),
        (utility(prompt="answer-long"), False),
        (utility(endpoint=STRANGER), False),
        (utility(endpoint=OTHER_PORT), False),
        (Needs(endpoints=(READER,)), False),
        (Needs(references=True), False),
    ],
)
def test_only_the_same_llm_prompt_and_metric_make_the_outcome(need, same):
    assert same_by_construction({"l": need}, HOW, ["em"]) == ({("l", "big", "em")} if same else set())


def test_a_namespace_makes_two_addresses_one_llm():
    one = Endpoint("a", "http://h:1/v1", "big", namespace="cluster")
    two = Endpoint("b", "http://h:2/v1", "big", namespace="cluster")
    assert same_by_construction({"l": utility(one)}, {"big": AnsweredBy(two, "answer-short")}, ["em"])


def test_who_judges_whom():
    assert kinship(Needs(endpoints=(READER,)), HOW["big"]) == "same model"
    assert kinship(Needs(endpoints=(OTHER_PORT,)), HOW["big"]) == "same model"
    assert kinship(Needs(endpoints=(COUSIN,)), HOW["big"]) == "same family"
    assert kinship(Needs(endpoints=(STRANGER,)), HOW["big"]) == ""
    assert kinship(Needs(references=True), HOW["big"]) == ""


@pytest.mark.parametrize("jury", [(READER, STRANGER), (STRANGER, READER), (STRANGER, COUSIN, READER)])
def test_every_member_of_a_jury_is_seen(jury):
    assert kinship(Needs(endpoints=jury), HOW["big"]) == "same model"
    assert kinship(Needs(endpoints=(STRANGER, COUSIN)), HOW["big"]) == "same family"


def test_who_rates_the_answers_of_a_labeling_is_seen_too():
    assert kinship(Needs(endpoints=(STRANGER,), raters=(READER,)), HOW["big"]) == "same model"


def test_what_judgekit_answers_itself_is_a_model_like_any_other():
    inside = Endpoint("mock", URL, "m")
    assert kinship(Needs(endpoints=(inside,)), AnsweredBy(inside, "answer-short")) == "same model"


def test_needs_keep_the_outcome_out_of_the_verdict_at_depth_1_only():
    rng = np.random.default_rng(0)
    ids = [f"q{i:03d}" for i in range(150)]
    latent = rng.normal(size=150)
    quality = pd.concat(
        pd.DataFrame(
            {"run": "r", "depth": d, "model": "big", "query_id": ids, "metric": "em", "value": (latent > 0) / 1.0}
        )
        for d in (1, 5)
    )
    frames = []
    for name, noise in (("erag", 0.1), ("judge", 1.0), ("human", 3.0)):
        for m in ("P@1", "P@5"):
            value = latent + noise * rng.normal(size=150)
            frames.append(pd.DataFrame({"labeling": name, "run": "r", "measure": m, "query_id": ids, "value": value}))
    scores = pd.concat(frames)
    needs = {"erag": utility(), "judge": Needs(endpoints=(READER,)), "human": Needs(people=True)}
    first = compare(scores, quality, primary="P@1", resamples=100, background=Background(needs=needs, answering=HOW))
    assert first.decision.winner == "judge"
    assert first.decision.findings.excluded == {"erag": "its labels are the outcome by construction"}
    assert any("judge asks the answering model" in line for line in first.decision.details)
    fifth = compare(scores, quality, primary="P@5", resamples=100, background=Background(needs=needs, answering=HOW))
    assert fifth.decision.winner == "erag"
    flagged = fifth.table[fifth.table["flags"].str.contains("by_construction")]
    assert set(zip(flagged["labeling"], flagged["depth"], strict=True)) == {("erag", 1)}
    kin = fifth.table[fifth.table["flags"].str.contains("same_model")]
    assert set(kin["labeling"]) == {"erag", "judge"}
