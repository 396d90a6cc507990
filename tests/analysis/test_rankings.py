from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgekit.analysis import rankings
from judgekit.analysis.rankings import over_runs, signs, tau_ap, within_queries


def test_within_a_query_constant_quality_leaves_and_constant_scores_say_nothing():
    scores = np.array([[1.0, 2, 5], [1, 1, 5], [1, 0, 5]])
    quality = np.array([[1.0, 1, 1], [0, 0, 1], [0, 0, 1]])
    got = within_queries(scores, quality)
    assert got[:, 0].tolist() == [0.5, 0, 0, 0]
    assert got[0, 1] == 1
    assert np.isnan(got[:, 2]).all()


few = st.integers(3, 6).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, n, elements=st.integers(0, 5).map(float)) for _ in range(2)])
)


@given(few)
@example((np.arange(3.0), np.ones(3)))
def test_over_runs_agrees_with_scipy(pair):
    x, y = pair
    got = over_runs(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(got).all()
        return
    with np.errstate(all="ignore"):
        somers = stats.somersd(y, x).statistic
    expected = [
        (somers + 1) / 2,
        stats.kendalltau(x, y).statistic,
        stats.spearmanr(x, y).statistic,
        stats.pearsonr(x, y).statistic,
    ]
    assert got == pytest.approx(expected, abs=1e-12)


@given(few)
def test_tau_ap_is_the_mean_of_its_definition_over_all_orders_of_ties(pair):
    x, y = pair
    if np.unique(y).size < y.size:
        return  # the paper defines no ties of the true order
    orders = [order for order in permutations(range(len(x))) if (np.diff(x[list(order)]) <= 0).all()]
    expected = []
    for order in orders:
        shares = [np.mean([y[above] > y[run] for above in order[:place]]) for place, run in enumerate(order) if place]
        expected.append(2 * np.mean(shares) - 1)
    assert tau_ap(x, y) == pytest.approx(np.mean(expected), abs=1e-12)


def test_means_that_differ_by_rounding_only_are_tied():
    assert signs(np.array([0.1 + 0.2, 0.3, 0.31])).tolist() == [0, -1, -1]


def test_few_queries_at_a_time_give_the_same_digits(monkeypatch):
    rng = np.random.default_rng(2)
    scores, quality = np.round(rng.random((12, 101)), 1), np.round(rng.random((12, 101)), 1)
    there = rng.random((12, 101)) < 0.9
    whole = within_queries(scores, quality), within_queries(scores, quality, there=there)
    sizes = []

    def counted(values):
        sizes.append(len(values))
        return signs(values)

    monkeypatch.setattr(rankings, "signs", counted)
    monkeypatch.setattr(rankings, "_DIFFERENCES", 66 * 10)
    np.testing.assert_array_equal(within_queries(scores, quality), whole[0])
    # Both series of each query once.
    assert max(sizes) <= 11
    assert sum(sizes) == 2 * 101
    np.testing.assert_array_equal(within_queries(scores, quality, there=there), whole[1])
