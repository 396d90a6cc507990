"""The decision: bounds against scipy, and laws that no labels may break. How often it errs: benchmarks/guard.csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgekit.gate.decision import decide, decide_groups
from tests.conftest import ROOT

LOSSES = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=60).map(np.array)


@given(LOSSES)
def test_the_bounds_are_those_of_t_with_one_more_query_at_the_end_of_the_range(losses: np.ndarray) -> None:
    found = decide(losses, losses, 0.01)
    more = np.append(losses, 1.0)
    upper = more.mean() + stats.t.ppf(0.95, len(losses)) * more.std(ddof=1) / np.sqrt(len(more))
    mirrored = np.append(-losses, 1.0)
    lower = -(mirrored.mean() + stats.t.ppf(0.95, len(losses)) * mirrored.std(ddof=1) / np.sqrt(len(more)))
    assert found.high == pytest.approx(min(upper, 1))
    assert found.low == pytest.approx(max(lower, -1))
    if mirrored.std() > 0:
        test = stats.ttest_1samp(-mirrored, 0, alternative="greater")
        assert found.p == pytest.approx(test.pvalue, abs=1e-9)
    assert (found.outcome == "fail") == (found.high >= 0.01 and found.p <= 0.05)
    assert found.low <= losses.mean() + 1e-9
    assert found.high >= losses.mean() - 1e-9


@given(st.lists(st.floats(-0.5, 0.5), min_size=20, max_size=60).map(np.array), st.floats(0, 0.5), st.booleans())
def test_what_is_not_known_never_decides(losses: np.ndarray, width: float, sequential: bool) -> None:
    wide = decide(losses - width, losses + width, 0.05, sequential=sequential)
    exact = decide(losses, losses, 0.05, sequential=sequential)
    assert (wide.outcome, exact.outcome) in {
        *((one, one) for one in ("pass", "fail", "inconclusive")),
        *(("inconclusive", one) for one in ("pass", "fail")),
        ("fail", "pass"),  # a loss that is shown, and is shown to be below the limit once it is known
    }
    assert sequential or wide.smallest >= 2 * width - 1e-9
    assert wide.low <= exact.low + 1e-6
    assert wide.high >= exact.high - 1e-6


@given(LOSSES)
def test_a_sequential_gate_is_never_surer_of_a_loss_that_most_queries_do_not_show(losses: np.ndarray) -> None:
    found = decide(losses, losses, 0.01, sequential=True)
    assert found.low <= losses.mean() + 1e-6 <= found.high + 2e-6
    again = decide(losses[::-1].copy(), losses[::-1].copy(), 0.01, sequential=True)
    assert (found.low, found.high) == pytest.approx((again.low, again.high)), "the order of the queries says nothing"


def test_groups_fail_by_holm_and_pass_all_together() -> None:
    rng = np.random.default_rng(1)
    low = np.concatenate([np.zeros(400), (rng.random(400) < 0.08) * 0.5, np.zeros(400)])
    outcome, everything, found = decide_groups(low, low, ["a"] * 400 + ["b"] * 400 + ["c"] * 400, 0.03, 0.03)
    assert (outcome, found["b"].outcome) == ("fail", "fail")
    assert (found["a"].outcome, found["c"].outcome) == ("pass", "pass")
    assert everything.queries == 1200
    one = decide(low[400:800], low[400:800], 0.03, alpha=0.05 / 3)
    assert (found["b"].low, found["b"].high) == (one.low, one.high)
    small, _, _ = decide_groups(low[:40], low[:40], ["a", "b"] * 20, 0.03, 0.03)
    assert small == "inconclusive"


def test_what_was_measured_keeps_what_is_promised() -> None:
    found = pd.read_csv(Path(ROOT, "benchmarks", "guard.csv"))
    plain = found[found["kind"].isin(["no loss", "groups, no loss", "looks, no loss"])]
    assert plain["fail"].max() <= 0.065
    assert (plain["fail"] > 0.055).sum() <= 3, "only where many lose little and few win all"
    at_margin = found[found["kind"].isin(["margin", "groups, one at the margin", "looks, margin"])]
    assert at_margin["pass"].max() <= 0.06
