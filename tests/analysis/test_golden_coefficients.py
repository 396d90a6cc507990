"""The coefficients of the golden fixture, worked out by hand from its scores and a quality table of 12 answers."""

from math import sqrt
from pathlib import Path

import pandas as pd
import pytest

from judgekit.analysis.comparison import compare
from judgekit.rules import Rules

GOLDEN = Path(__file__).resolve().parent.parent / "golden"

QUALITY = {  # exact match of the answer from the top 2
    "a": {"q1": 1, "q2": 1, "q3": 0, "q4": 0},
    "b": {"q1": 0, "q2": 1, "q3": 0, "q4": 1},
    "c": {"q1": 0, "q2": 0, "q3": 0, "q4": 1},
}

NAMES = ("concordance", "tau_b", "rho", "r")

# RR under human: a 1 1 0 1, b 1/2 1 0 1/2, c 1/2 1/2 0 1.
QUERY = {
    # pairs of different quality: q1>q3 and q2>q3 agree, q1-q4 and q2-q4 are tied in score: (2 + 2/2) / 4.
    # C - D = 2; 3 pairs untied in score, 4 in quality. 2 x 2, so that tau = rho = r = phi.
    "a": (3 / 4, 2 / sqrt(3 * 4), 2 / sqrt(12), 2 / sqrt(12)),
    # q2>q1, q2>q3, q4>q3 agree, q4-q1 is tied: (3 + 1/2) / 4. 5 pairs untied in score, 4 in quality.
    # ranks around their mean: 0 1.5 -1.5 0 and -1 1 -1 1; values: 0 .5 -.5 0 and -.5 .5 -.5 .5.
    "b": (7 / 8, 3 / sqrt(5 * 4), 3 / sqrt(4.5 * 4), 0.5 / sqrt(0.5 * 1)),
    # q4 above q1, q2 and q3: all 3 agree. 5 pairs untied in score, 3 in quality.
    # ranks: 0 0 -1.5 1.5 and -.5 -.5 -.5 1.5; values: 0 0 -.5 .5 and -.25 -.25 -.25 .75.
    "c": (1, 3 / sqrt(5 * 3), 3 / sqrt(4.5 * 3), 0.5 / sqrt(0.5 * 0.75)),
}
QUERY["all"] = tuple(sum(QUERY[run][i] for run in "abc") / 3 for i in range(4))

# Scores and quality of runs a, b, c: q1 1 1/2 1/2 against 1 0 0; q2 1 1 1/2 against 1 1 0; q3 constant: it leaves;
# q4 1 1/2 1 against 0 1 1: b above a is missed, c above a is tied.
WITHIN = (
    (1 + 1 + (1 / 2) / 2) / 3,
    (2 / sqrt(2 * 2) + 2 / sqrt(2 * 2) - 1 / sqrt(2 * 2)) / 3,
    (1 + 1 - 1 / 2) / 3,
    (1 + 1 - 1 / 2) / 3,
)
# Mean scores 3/4 1/2 1/2, mean quality 1/2 1/2 1/4: a-c agrees, b-c is tied in score, a-b in quality.
SYSTEM = (3 / 4, 1 / sqrt(2 * 2), 1 / 2, 1 / 2)


@pytest.fixture(scope="module")
def tables():
    scores = pd.read_csv(GOLDEN / "scores.csv", dtype={"query_id": "str", "run": "str"})
    rows = [(run, 2, "m", q, "em", float(v)) for run, each in QUALITY.items() for q, v in each.items()]
    return scores, pd.DataFrame(rows, columns=["run", "depth", "model", "query_id", "metric", "value"])


def values(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    return tuple(table.set_index("coefficient")["value"][list(NAMES)])


@pytest.mark.parametrize("run", ["a", "b", "c", "all"])
def test_the_query_level(tables, run):
    table = compare(*tables, rules=Rules(resamples=100), only={"measures": ["RR"], "labelings": ["human"]}).table
    assert values(table, level="query", run=run) == pytest.approx(QUERY[run], abs=1e-12)


def test_the_within_query_and_the_system_level(tables):
    table = compare(*tables, rules=Rules(resamples=100), only={"measures": ["RR"], "labelings": ["human"]}).table
    assert values(table, level="within-query") == pytest.approx(WITHIN, abs=1e-12)
    assert values(table, level="system") == pytest.approx(SYSTEM, abs=1e-12)
    system = table[table["level"] == "system"]
    assert set(system["n"]) == {3}
    assert system["flags"].str.contains("few_runs").all()
    assert set(table[table["level"] == "within-query"]["n"]) == {3}


def test_a_labeling_that_lost_a_query_is_compared_on_the_common_ones(tables):
    result = compare(*tables, rules=Rules(resamples=100), only={"measures": ["AP"], "labelings": ["human", "judge"]})
    judge = result.table[(result.table["labeling"] == "judge") & (result.table["run"] == "a")]
    # AP 5/6 7/12 0 on q1 q2 q3 against 1 1 0: both pairs of different quality agree, 3 are untied in score
    assert values(judge) == pytest.approx((1, 2 / sqrt(3 * 2), 1.5 / sqrt(2 * 1.5), values(judge)[3]), abs=1e-12)
    assert set(judge["n"]) == {3}
    assert not judge["flags"].str.contains("left_out").any()
    human = result.table[(result.table["labeling"] == "human") & (result.table["level"] == "query")]
    assert set(human["n"]) == {3}


def test_a_measure_that_a_labeling_cannot_have_is_undefined(tables):
    table = compare(
        *tables, rules=Rules(resamples=100), only={"measures": ["R@2"], "labelings": ["human", "utility"]}
    ).table
    utility = table[table["labeling"] == "utility"]
    assert utility["value"].isna().all()
    assert set(utility["undefined_reason"]) == {"no query has a score", "no query has a score on run a"}
