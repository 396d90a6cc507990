from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgekit.analysis.rankings import over_runs, signs, within_queries


def tau_ap_by_definition(order, quality):
    """Mean over all places but the first of the share of those above that are really better."""
    shares = [np.mean([quality[a] > quality[item] for a in order[:place]]) for place, item in enumerate(order) if place]
    return 2 * np.mean(shares) - 1


def rbo_by_definition(one, other, p=0.9):
    size = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, size + 1)]
    return (1 - p) / p * sum(a * p**d for d, a in enumerate(agreement, 1)) + agreement[-1] * p**size


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


def orders(values):
    """Return all orders of values, best first, that differ by ties only."""
    return [order for order in permutations(range(len(values))) if (np.diff(values[list(order)]) <= 0).all()]


@given(few)
@example((np.arange(3.0), np.ones(3)))
def test_over_runs_agrees_with_scipy_and_top_heavy_coefficients_with_their_definitions_over_all_orders_of_ties(pair):
    x, y = pair
    *got, tau_ap, rbo = over_runs(x, y, ("concordance", "tau_b", "rho", "r", "tau_ap", "rbo"))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan([*got, tau_ap, rbo]).all()
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
    by_x, by_y = orders(x), orders(y)
    assert rbo == pytest.approx(np.mean([rbo_by_definition(a, b) for a in by_x for b in by_y]), abs=1e-12)
    if len(by_y) == 1:
        assert tau_ap == pytest.approx(np.mean([tau_ap_by_definition(order, y) for order in by_x]), abs=1e-12)


def test_means_that_differ_by_rounding_only_are_tied():
    assert signs(np.array([0.1 + 0.2, 0.3, 0.31])).tolist() == [0, -1, -1]
