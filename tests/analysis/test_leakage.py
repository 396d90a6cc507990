import pandas as pd
import pytest

from judgekit.analysis.background import Background
from judgekit.analysis.comparison import compare
from judgekit.analysis.leakage import AnsweredBy, kinship, same_by_construction
from judgekit.labelers.base import Needs
from judgekit.rules import Rules
from judgekit.wire.types import Endpoint
from tests.analysis.worlds import claims, finder, noisy

READER = Endpoint("reader", "http://localhost:1/v1", "big")
OTHER_PORT = Endpoint("reader2", "http://localhost:2/v1", "big")
COUSIN = Endpoint("cousin", "http://localhost:1/v1", "acme/Big-2-7B")
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
        (utility(endpoint=OTHER_PORT), False),
        (Needs(endpoints=(READER,)), False),
    ],
)
def test_only_the_same_llm_prompt_and_metric_make_the_outcome(need, same):
    assert same_by_construction({"l": need}, HOW, ["em"]) == ({("l", "big", "em")} if same else set())


@pytest.mark.parametrize(
    ("kin", "needs"),
    [
        ("same model", Needs(endpoints=(OTHER_PORT,))),
        ("same model", Needs(endpoints=(STRANGER, COUSIN, READER))),
        ("same model", Needs(endpoints=(STRANGER,), raters=(READER,))),
        ("same family", Needs(endpoints=(STRANGER, COUSIN))),
        ("", Needs(endpoints=(STRANGER,))),
    ],
)
def test_whoever_judges_in_a_jury_too_is_seen(kin, needs):
    assert kinship(needs, HOW["big"]) == kin


def test_needs_keep_the_outcome_out_of_the_verdict_at_depth_1_only():
    scores, fifth = noisy(150, ("r",), {"erag": 0.1, "judge": 1.0, "human": 3.0}, ("P@1", "P@5"))
    quality = pd.concat([fifth, fifth.assign(depth=1)]).assign(model="big")
    needs = {"erag": utility(), "judge": Needs(endpoints=(READER,)), "human": Needs(people=True)}
    first = compare(
        scores, quality, rules=Rules(primary="P@1", resamples=100), background=Background(needs=needs, answering=HOW)
    )
    assert finder(first.decision) == "judge"
    assert "its labels are the outcome by construction" in claims(first.decision, "excluded")["erag"].sentence
    assert "judge asks the answering model: with another one it may do worse." in dict(first.decision.lines)["Failing"]
    tests = first.differences.query("coefficient == 'concordance' and level == 'query'")
    assert (tests["p_holm"].isna() == (tests[["first", "second"]] == "erag").any(axis=1)).all()
    fifth = compare(
        scores, quality, rules=Rules(primary="P@5", resamples=100), background=Background(needs=needs, answering=HOW)
    )
    assert finder(fifth.decision) == "erag"
    flagged = fifth.table[fifth.table["flags"].str.contains("by_construction")]
    assert set(zip(flagged["labeling"], flagged["depth"], strict=True)) == {("erag", 1)}
    kin = fifth.table[fifth.table["flags"].str.contains("same_model")]
    assert set(kin["labeling"]) == {"erag", "judge"}
