"""Planning: what the intervals of a larger experiment would be like."""

from __future__ import annotations

import numpy as np
import pytest

from judgekit.analysis import compare, plan_queries
from judgekit.errors import UsageError
from tests.analysis.test_verdict import world


def test_a_plan_for_the_pilots_own_size_repeats_its_widths() -> None:
    pilot = compare(*world({"a": (0.0, 1.0)}, n=200), resamples=300)
    row = plan_queries(pilot, [200]).iloc[0]
    one = pilot.verdict.found.standings[0]
    low, high = one.gain.interval(0.95)
    assert row["concordance_width"] == pytest.approx(one.high - one.low)
    assert row["gain_width"] == pytest.approx(high - low)


def test_predicted_widths_are_near_those_of_larger_experiments() -> None:
    ratios = []
    for seed in range(5):
        pilot = compare(*world({"a": (0.0, 1.0)}, n=200, seed=seed), resamples=300)
        larger = compare(*world({"a": (0.0, 1.0)}, n=800, seed=seed + 50), resamples=300).verdict.found.standings[0]
        low, high = larger.gain.interval(0.95)
        planned = plan_queries(pilot, [800]).iloc[0]
        ratios.append((planned["concordance_width"] / (larger.high - larger.low), planned["gain_width"] / (high - low)))
    assert np.median(ratios, axis=0) == pytest.approx([1, 1], abs=0.25)


def test_there_are_default_numbers_of_queries_and_one_is_too_few() -> None:
    pilot = compare(*world({"a": (0.0, 1.0)}, n=100), resamples=200)
    assert sorted(set(plan_queries(pilot)["queries"])) == [50, 100, 200, 400, 1000]
    with pytest.raises(UsageError, match="at least 2"):
        plan_queries(pilot, [1])
