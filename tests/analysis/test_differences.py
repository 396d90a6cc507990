import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from judgekit.analysis.differences import difference, holm


@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=8))
def test_holm_is_the_largest_step_so_far_over_the_p_values_that_there_are(p):
    there = sorted(one for one in p if not math.isnan(one))
    steps = [min(1, one * (len(there) - i)) for i, one in enumerate(there)]
    wanted = [math.nan if math.isnan(one) else max(steps[: there.index(one) + 1]) for one in p]
    assert holm(p).tolist() == pytest.approx(wanted, nan_ok=True)
    both = (p, p[::-1])
    np.testing.assert_array_equal(holm(np.column_stack(both)), np.column_stack([holm(each) for each in both]))


def test_a_difference_has_a_t_interval_that_agrees_with_its_p():
    draws = np.random.default_rng(0).normal(0.1, 0.05, 4000)
    ends, p = difference(0.1, draws, 0.95, 100)
    assert ends.low < 0.1 < ends.high
    assert (p < 0.05) == (ends.low > 0)
    assert difference(0.1 - ends.low, draws, 0.95, 100)[1] == pytest.approx(0.05, abs=1e-9)


def test_a_difference_undefined_on_many_resamples_is_undefined():
    draws = np.r_[np.full(20, np.nan), np.random.default_rng(0).normal(size=180)]
    ends, p = difference(0.1, draws, 0.95, 50)
    assert math.isnan(p)
    assert ends.method == ""
