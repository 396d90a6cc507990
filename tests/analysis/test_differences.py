import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.differences import difference, holm


def test_holm_steps_down_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_holm_leaves_undefined_p_values_out_of_the_family():
    adjusted = holm([0.02, math.nan, 0.01])
    assert adjusted[0] == pytest.approx(0.02)
    assert adjusted[2] == pytest.approx(0.02)
    assert math.isnan(adjusted[1])


def test_each_column_is_a_family_of_its_own():
    table = np.array([[0.02, 0.5], [math.nan, 0.01], [0.01, 0.04]])
    np.testing.assert_array_equal(holm(table), np.stack([holm(column) for column in table.T], axis=1))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_raw_and_the_bonferroni_p(p):
    for raw, adjusted in zip(p, holm(p), strict=True):
        assert raw <= adjusted <= min(1, raw * len(p)) + 1e-12


def test_a_difference_has_a_t_interval_that_agrees_with_its_p():
    draws = np.random.default_rng(0).normal(0.1, 0.05, 4000)
    found = difference(0.1, draws, 0.95, 100)
    assert found.low < 0.1 < found.high
    assert (found.p < 0.05) == (found.low > 0)
    edge = difference(found.value - found.low, draws, 0.95, 100)
    assert edge.p == pytest.approx(0.05, abs=1e-9)


def test_a_difference_undefined_on_many_resamples_is_undefined():
    draws = np.r_[np.full(20, np.nan), np.random.default_rng(0).normal(size=180)]
    found = difference(0.1, draws, 0.95, 50)
    assert math.isnan(found.p)
    assert found.method == ""
