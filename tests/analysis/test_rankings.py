from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgekit.analysis.rankings import TOP_HEAVY, over_runs, signs, within_queries

few = st.integers(3, 12).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, n, elements=st.integers(0, 5).map(float)) for _ in range(2)])
)


@given(few)
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


def tau_ap(scores, quality):
    return over_runs(scores, quality, ("tau_ap",))[0]


def rbo(scores, quality):
    return over_runs(scores, quality, ("rbo",))[0]


def test_many_series_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (7, 11)).astype(float), rng.normal(size=(7, 11))
    names = ("concordance", "tau_b", "rho", "r", *TOP_HEAVY)
    assert over_runs(x, y, names) == pytest.approx(
        np.stack([over_runs(a, b, names) for a, b in zip(x, y, strict=True)], 1)
    )


def test_means_that_differ_by_rounding_only_are_tied():
    assert signs(np.array([0.1 + 0.2, 0.3, 0.31])).tolist() == [0, -1, -1]


def tau_ap_by_definition(order, quality):
    """Mean over all places but the first of the share of those above that are really better."""
    shares = [np.mean([quality[a] > quality[item] for a in order[:place]]) for place, item in enumerate(order) if place]
    return 2 * np.mean(shares) - 1


def rbo_by_definition(one, other, p=0.9):
    size = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, size + 1)]
    return (1 - p) / p * sum(a * p**d for d, a in enumerate(agreement, 1)) + agreement[-1] * p**size


@pytest.mark.parametrize("seed", range(5))
def test_top_heavy_coefficients_follow_their_definitions_without_ties(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.permutation(12).astype(float), rng.permutation(12).astype(float)
    by_x, by_y = list(np.argsort(-x)), list(np.argsort(-y))
    assert tau_ap(x, y) == pytest.approx(tau_ap_by_definition(by_x, y), abs=1e-12)
    assert rbo(x, y) == pytest.approx(rbo_by_definition(by_x, by_y), abs=1e-12)


def test_tau_ap_of_ties_is_the_mean_over_all_orders_of_the_tied():
    x, y = np.array([3.0, 2, 2, 2, 1]), np.array([4.0, 5, 1, 2, 3])
    orders = [(0, *middle, 4) for middle in permutations((1, 2, 3))]
    expected = np.mean([tau_ap_by_definition(order, y) for order in orders])
    assert tau_ap(x, y) == pytest.approx(expected, abs=1e-12)


def test_rbo_of_ties_has_the_mean_overlap_over_all_orders_of_the_tied():
    x, y = np.array([3.0, 2, 2, 1]), np.array([1.0, 4, 3, 2])
    orders = [(0, *middle, 3) for middle in permutations((1, 2))]
    expected = np.mean([rbo_by_definition(list(order), [1, 2, 3, 0]) for order in orders])
    assert rbo(x, y) == pytest.approx(expected, abs=1e-12)


def test_identical_and_reversed_orders_are_the_extremes():
    x = np.arange(10.0)
    assert tau_ap(x, x) == 1
    assert tau_ap(-x, x) == -1
    assert rbo(x, x) == pytest.approx(1)
    assert rbo(-x, x) < rbo(np.roll(x, 1), x) < 1


def test_tau_ap_punishes_a_swap_at_the_top_more_than_one_at_the_bottom():
    y = np.arange(10.0, 0, -1)
    top, bottom = y.copy(), y.copy()
    top[[0, 1]], bottom[[8, 9]] = y[[1, 0]], y[[9, 8]]
    assert tau_ap(top, y) < tau_ap(bottom, y)


def test_within_a_query_constant_quality_leaves_and_constant_scores_say_nothing():
    scores = np.array([[1.0, 2, 5], [1, 1, 5], [1, 0, 5]])
    quality = np.array([[1.0, 1, 1], [0, 0, 1], [0, 0, 1]])
    got = within_queries(scores, quality)
    assert got[:, 0].tolist() == [0.5, 0, 0, 0]
    assert got[0, 1] == 1
    assert np.isnan(got[:, 2]).all()
