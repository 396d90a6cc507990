import numpy as np
import pytest

from judgekit.analysis.resampling import METHODS, interval, resample_matrix
from judgekit.errors import UsageError


def test_every_resample_has_as_many_queries_as_there_are():
    weights = resample_matrix(70, 200, 1)
    assert weights.shape == (70, 200)
    assert (weights.sum(axis=0) == 70).all()
    assert weights.mean(axis=1) == pytest.approx(np.ones(70), abs=0.4)


def test_the_seed_decides_the_resamples():
    assert (resample_matrix(30, 100, 5) == resample_matrix(30, 100, 5)).all()
    assert (resample_matrix(30, 100, 5) != resample_matrix(30, 100, 6)).any()
    with pytest.raises(UsageError, match="at least 100"):
        resample_matrix(30, 99, 1)


@pytest.mark.parametrize("method", METHODS)
def test_every_interval_holds_its_value_and_stays_in_range(method):
    rng = np.random.default_rng(0)
    for value, draws in (
        (0.97, 1 - 0.05 * rng.random(500)),
        (0.5, 0.5 + 0.1 * rng.normal(size=500)),
        (1.0, np.ones(500)),
    ):
        found = interval(value, draws, 0.95, method, 40)
        assert found.low <= value <= found.high
        assert method == "t" or found.high <= 1


def test_more_confidence_is_a_wider_interval():
    draws = np.random.default_rng(0).normal(0.3, 0.1, 1000)
    for method in METHODS:
        wide, narrow = (interval(0.3, draws, level, method, 100) for level in (0.99, 0.8))
        assert wide.low < narrow.low < narrow.high < wide.high


def test_an_undefined_value_and_many_undefined_draws_have_no_interval():
    draws = np.r_[np.full(6, np.nan), np.zeros(94)]
    assert np.isnan(interval(0.0, draws, 0.95, "t", 10).low)
    assert interval(0.0, draws, 0.95, "t", 10).undefined == pytest.approx(0.06)
    assert np.isfinite(interval(0.0, draws[1:], 0.95, "t", 10).low) == (5 / 99 <= 0.05)
    assert np.isnan(interval(np.nan, np.zeros(100), 0.95, "t", 10).low)


def test_an_interval_stands_up_to_a_share_of_exactly_five_percent_undefined():
    draws = np.r_[np.full(50, np.nan), np.random.default_rng(0).normal(size=950)]
    assert np.isfinite(interval(0.0, draws, 0.95, "t", 10).low)
    draws[50] = np.nan
    assert np.isnan(interval(0.0, draws, 0.95, "t", 10).low)
