import numpy as np
import pytest

from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.errors import UsageError


def test_every_resample_has_as_many_queries_as_there_are_and_the_seed_decides_which():
    weights = resample_matrix(70, 200, 1)
    assert weights.shape == (70, 200)
    assert (weights.sum(axis=0) == 70).all()
    assert weights.mean(axis=1) == pytest.approx(np.ones(70), abs=0.4)
    assert (weights == resample_matrix(70, 200, 1)).all()
    assert (weights != resample_matrix(70, 200, 2)).any()
    with pytest.raises(UsageError, match="at least 100"):
        resample_matrix(30, 99, 1)


def test_an_undefined_value_and_more_than_one_of_twenty_undefined_draws_have_no_interval():
    draws = np.r_[np.full(50, np.nan), np.random.default_rng(0).normal(size=950)]
    found = interval(0.0, draws, 0.95, "t", 10)
    assert np.isfinite(found.low)
    draws[50] = np.nan
    assert np.isnan(interval(0.0, draws, 0.95, "t", 10).low)
    assert np.isnan(interval(np.nan, np.zeros(100), 0.95, "t", 10).low)


def test_percentiles_leave_the_same_share_out_at_both_ends_and_hold_the_value():
    draws = np.random.default_rng(0).permutation(np.arange(101)) / 100
    assert interval(0.5, draws, 0.9, "percentile", 10)[:2] == pytest.approx((0.05, 0.95))
    assert interval(0.99, draws, 0.9, "percentile", 10)[:2] == pytest.approx((0.05, 0.99))
