from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgekit.analysis.coefficients import Target, attainable_tau_b, coefficients


def by_scipy(x, y):
    with np.errstate(all="ignore"):  # the p-value of somersd divides by 0 on tiny samples
        return [
            (stats.somersd(y, x).statistic + 1) / 2,
            stats.kendalltau(x, y).statistic,
            stats.spearmanr(x, y).statistic,
            stats.pearsonr(x, y).statistic,
        ]


def series(n):
    """Values with few or many ties, not all equal."""
    coarse = arrays(np.int64, n, elements=st.integers(0, 3)).map(lambda a: a / 7)
    fine = arrays(np.float64, n, elements=st.floats(-50, 50).map(lambda v: round(v, 3)))
    return (coarse | fine).filter(lambda a: len(set(a.tolist())) > 1)


@given(st.integers(3, 40).flatmap(lambda n: st.tuples(series(n), series(n))))
@example(([0, 1, 2], [0, 1, 2]))
@example(([0, 1, 2], [2, 1, 0]))
def test_coefficients_are_those_of_scipy_on_tied_data(pair):
    x, y = pair
    found = list(coefficients(x, y).values())
    assert found == pytest.approx(by_scipy(x, y), abs=1e-12)
    assert -1 <= min(found) <= max(found) <= 1


@given(st.integers(4, 30).flatmap(lambda n: st.tuples(series(n), series(n))), st.integers(0, 10**6))
def test_a_resample_has_the_coefficients_of_the_repeated_points(pair, seed):
    x, y = pair
    picks = np.random.default_rng(seed).integers(0, len(x), (8, len(x)))
    weights = np.stack([np.bincount(p, minlength=len(x)) for p in picks], axis=1)
    whole, *drawn = Target(y, weights).coefficients(x).T
    got = np.stack(drawn, axis=1)
    assert whole == pytest.approx(list(coefficients(x, y).values()), abs=1e-12)
    assert got.shape == (4, 8)
    for column, p in enumerate(picks):
        if np.ptp(x[p]) == 0 or np.ptp(y[p]) == 0:
            assert np.isnan(got[:, column]).all()
        else:
            assert got[:, column] == pytest.approx(by_scipy(x[p], y[p]), abs=1e-12)


def test_a_resample_without_the_one_score_far_out_loses_no_digits():
    x, y = np.array([1, 2, 3, 4, 1e9]), np.array([2, 1, 4, 3, 5.0])
    weights = np.array([[1, 1, 1, 1, 0], [2, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).T
    got = Target(y, weights).coefficients(x)[3, 1:]
    expected = [by_scipy(np.repeat(x, w), np.repeat(y, w))[3] for w in weights.T]
    assert got == pytest.approx(expected, abs=1e-6)


def test_more_points_than_32_bit_sums_can_hold_are_still_exact():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=5000), rng.integers(0, 2, 5000)
    assert list(coefficients(x, y).values()) == pytest.approx(by_scipy(x, y), abs=1e-12)


@given(st.integers(3, 5).flatmap(lambda n: st.tuples(series(n), series(n))))
def test_attainable_tau_is_the_maximum_over_all_pairings(pair):
    x, y = pair
    best = max(coefficients(x, np.array(p))["tau_b"] for p in set(permutations(y.tolist())))
    assert attainable_tau_b(x, y) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("x", "y"), [([1, 1, 1], [0, 1, 0]), ([0, 1, 2], [1, 1, 1]), ([1], [1]), ([], [])])
def test_a_constant_series_has_no_coefficient(x, y):
    assert all(np.isnan(value) for value in coefficients(x, y).values())
