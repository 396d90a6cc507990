"""A chosen confidence reaches every interval, and all that a verdict decides."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from judgekit.analysis.comparison import compare
from judgekit.analysis.differences import difference
from judgekit.analysis.resampling import interval
from judgekit.errors import UsageError
from judgekit.rules import Rules
from tests.analysis.worlds import world


def tables(seed):
    """Two labelings, six runs, quality at one depth and closed book, of two models."""
    near = {"near": (1.0, 1.0), "far": (1.0, 0.3)}
    scores, one = world(near, n=40, runs=tuple("abcdef"), seed=seed)
    other = world(near, n=40, runs=tuple("abcdef"), seed=seed + 100)[1]
    answered = pd.concat([one.assign(model="one"), other.assign(model="two")])
    closed = answered[answered["run"] == "a"].assign(run="all", depth=0)
    return scores, pd.concat([answered, closed], ignore_index=True)


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


@pytest.mark.parametrize("seed", range(2))
def test_every_interval_of_a_comparison_and_a_matrix_at_80_lies_within_that_at_95(seed):
    scores, quality = tables(seed)
    rules = Rules(primary="nDCG@5", resamples=200)
    sides = [replace(rules, confidence=confidence) for confidence in (0.8, 0.95)]
    narrow, wide = (compare(scores, quality, side, outcome="em", model="one") for side in sides)
    assert set(narrow.table["level"]) == {"query", "within-query", "system"}
    for name in ("table", "differences"):
        check_inside(getattr(narrow, name), getattr(wide, name))
    for few, many in zip(wide.decision.claims, narrow.decision.claims, strict=False):
        if few.kind == many.kind == "follows":
            assert few.low <= many.low <= many.high <= few.high


confidences = st.floats(0.5, 0.999)


@given(st.integers(0, 50), confidences, confidences)
def test_every_method_and_difference_has_a_wider_interval_at_a_higher_confidence(seed, one, other):
    draws = np.random.default_rng(seed).beta(4, 3, size=200)
    both = sorted((one, other))
    for method in ("t", "fisher-t", "percentile"):
        narrow, wide = (interval(0.6, draws, c, method, 30) for c in both)
        assert wide.low <= narrow.low <= 0.6 <= narrow.high <= wide.high
        assert method == "t" or wide.high <= 1
    (narrow, p), (wide, same) = (difference(0.1, draws - 0.5, c, 30) for c in both)
    assert wide.low <= narrow.low <= 0.1 <= narrow.high <= wide.high
    assert p == same


@pytest.mark.parametrize("confidence", [0.0, 0.49, 1.0, 95, float("nan")])
def test_what_is_no_confidence_is_a_sentence(confidence):
    with pytest.raises(UsageError, match=r"from 0\.5 to 0\.999"):
        compare(*tables(0), rules=Rules(confidence=confidence))
