"""A chosen confidence reaches every interval, and all that a verdict decides."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis import compare, model_matrix, plan_queries
from judgekit.analysis.agreement import agreement
from judgekit.analysis.differences import Difference, difference
from judgekit.analysis.primary import Primary
from judgekit.analysis.resampling import METHODS, interval
from judgekit.analysis.verdict import Candidate, decide
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError

CELL = Primary("nDCG@5", "em", "model", 5, "query", "all")
RUNS = ("a", "b", "c", "d", "e", "f")


def tables(seed, queries=40):
    """Two labelings, six runs, quality at one depth and closed book, of two models."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i:03d}" for i in range(queries)]
    hard = rng.normal(size=queries)
    scores, quality = [], []
    for i, run in enumerate(RUNS):
        good = hard + rng.normal(size=queries) + i / 5
        for model in ("one", "two"):
            value = (good + rng.normal(size=queries) > 0) / 1.0
            quality.append({"run": run, "depth": 5, "model": model, "query_id": ids, "metric": "em", "value": value})
        for labeling, noise in (("near", 0.5), ("far", 2.0)):
            value = good + noise * rng.normal(size=queries)
            scores.append({"labeling": labeling, "run": run, "measure": "nDCG@5", "query_id": ids, "value": value})
    for model in ("one", "two"):
        value = (hard + rng.normal(size=queries) > 0) / 1.0
        quality.append({"run": "all", "depth": 0, "model": model, "query_id": ids, "metric": "em", "value": value})
    return tuple(pd.concat(map(pd.DataFrame, rows), ignore_index=True) for rows in (scores, quality))


def check_inside(narrow, wide):
    """Check that the intervals of one table lie in those of the other, and that all else is the same."""
    assert len(narrow) == len(wide) > 0
    there = narrow["ci_low"].notna()
    assert there.any()
    assert (there == wide["ci_low"].notna()).all()
    assert (narrow["ci_low"] >= wide["ci_low"])[there].all()
    assert (narrow["ci_high"] <= wide["ci_high"])[there].all()
    varied = wide["ci_low"][there] < wide["ci_high"][there]
    assert (narrow["ci_high"] - narrow["ci_low"])[there][varied].sum() < (wide["ci_high"] - wide["ci_low"])[there].sum()
    ends = [c for c in ("ci_low", "ci_high", "width", "power", "flags") if c in narrow.columns]
    pd.testing.assert_frame_equal(narrow.drop(columns=ends), wide.drop(columns=ends))


@pytest.mark.parametrize("seed", range(3))
def test_every_interval_of_a_comparison_at_80_lies_within_that_at_95(seed):
    scores, quality = tables(seed)
    given = {"primary": "nDCG@5", "primary_metric": "em", "primary_model": "one", "resamples": 200}
    narrow, wide = (compare(scores, quality, confidence=c, **given) for c in (0.8, 0.95))
    assert set(narrow.table["level"]) == {"query", "within-query", "system"}
    for name in ("table", "differences", "controls", "costs"):
        check_inside(getattr(narrow, name), getattr(wide, name))
    check_inside(plan_queries(narrow), plan_queries(wide))
    power, less = (plan_queries(c)["power"].dropna() for c in (narrow, wide))
    assert (power >= less).all()
    assert (power > less).any()


@pytest.mark.parametrize("seed", range(2))
def test_so_do_those_of_the_model_matrix(seed):
    scores, quality = tables(seed)
    given = {"label_models": {"near": "one", "far": "two"}, "methods": {"near": "judge", "far": "judge"}}
    given |= {"measure": "nDCG@5", "metric": "em", "depth": 5, "resamples": 200}
    narrow, wide = (model_matrix(scores, quality, confidence=c, **given) for c in (0.8, 0.95))
    check_inside(narrow.table, wide.table)
    check_inside(narrow.differences, wide.differences)


def test_so_do_those_of_agreement():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 200)
    second = np.clip(first + rng.integers(-1, 2, 200), 0, 3)
    frame = pd.DataFrame({"query_id": [f"q{i // 5}" for i in range(200)], "doc_id": [f"d{i}" for i in range(200)]})
    labelings = [
        Labeling(name, Scale.parse("grades:3"), frame.assign(relevance=values / 1.0, status="ok"))
        for name, values in (("a", first), ("b", second))
    ]
    narrow, wide = (agreement(labelings, resamples=200, confidence=c).table for c in (0.8, 0.95))
    check_inside(narrow, wide)


confidences = st.floats(0.5, 0.999)


@given(st.integers(0, 50), st.sampled_from(sorted(METHODS)), confidences, confidences)
def test_every_method_gives_a_wider_interval_at_a_higher_confidence(seed, method, one, other):
    draws = np.random.default_rng(seed).beta(4, 3, size=200)
    narrow, wide = (interval(0.6, draws, c, method, 30) for c in sorted((one, other)))
    assert wide.low <= narrow.low <= 0.6 <= narrow.high <= wide.high


@given(st.integers(0, 50), st.sampled_from(["query", "system"]), confidences, confidences)
def test_so_does_every_difference_with_its_bound_and_p_depends_on_none(seed, level, one, other):
    draws = np.random.default_rng(seed).normal(0.1, 0.1, size=200)
    narrow, wide = (difference(0.1, draws, c, 30, level) for c in sorted((one, other)))
    assert wide.low <= narrow.low <= 0.1 <= narrow.high <= wide.high
    assert narrow.upper <= wide.upper
    assert narrow.upper <= narrow.high, "one-sided, so nearer than the end of the two-sided interval"
    assert narrow.p == wide.p


def decided(confidence, p=0.0, low=0.6, upper=0.0, orders=(2, 1)):
    candidates = [
        Candidate("best", 0.8, 0.5, orders[0], "", low, 0.9),
        Candidate("next", 0.7, 0.4, orders[1], "", low, 0.8),
    ]
    gap = Difference(0.1, 0.0, 0.2, p, 0.05, upper, "t")
    return decide(candidates, lambda a, b: gap, CELL, margin=0.15, queries=100, confidence=confidence, excluded={})


@given(confidences, st.floats(0, 1))
def test_a_winner_is_named_where_p_is_at_most_nine_tenths_of_what_the_confidence_leaves(confidence, p):
    verdict = decided(confidence, p)
    beaten = p <= 0.9 * (1 - confidence)
    assert (verdict.winner, verdict.worse) == (("best", ("next",)) if beaten else (None, ()))


def test_the_same_difference_is_claimed_at_80_and_not_at_99():
    assert [decided(c, p=0.03).winner for c in (0.8, 0.95, 0.99)] == ["best", "best", None]
    needed = [decided(c, p=0.9).queries_needed["next"] for c in (0.8, 0.95, 0.99)]
    assert needed == sorted(set(needed)), "it takes more queries to be surer"


def test_the_verdict_says_its_confidence():
    assert "at 80 % confidence" in decided(0.8, upper=0.1).text
    assert "(one-sided 80 %) is 'next'" in decided(0.8, upper=0.1).text
    assert "95 %" not in decided(0.8, upper=0.1).text


@pytest.mark.parametrize("confidence", [0.0, 0.49, 1.0, 95, float("nan")])
def test_what_is_no_confidence_is_a_sentence(confidence):
    with pytest.raises(UsageError, match=r"at least 0\.5 and below 1"):
        compare(*tables(0), confidence=confidence)
