"""Intervals of the concordance, and claims that one labeling is better than another."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import somersd, zscore

from judgekit.analysis import intervals
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.intervals import Margins, least_leads, mean_concordance_interval, within_query_interval


def one_run(scores: Floats, quality: Floats, confidence: float = 0.95) -> tuple[float, float]:
    return mean_concordance_interval([(Margins(scores, quality), np.arange(len(scores)))], confidence)


def test_an_interval_is_newcombes_fifth_method_for_one_run() -> None:
    # Newcombe (2006), Statistics in Medicine 25, 559-573: theta = 1 on 10 against 10 has low end about .78 here.
    low, high = one_run(np.arange(20.0), np.repeat([0.0, 1.0], 10))
    n = 9
    variance = low * (1 - low) * (1 + n * (1 - low) / (2 - low) + n * low / (1 + low)) / 100
    assert high == 1
    assert 1 - low == pytest.approx(1.959963984540054 * np.sqrt(variance))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=3, max_size=200))
def test_the_concordance_and_its_influence_are_those_of_all_pairs(cases: list[tuple[int, int]]) -> None:
    scores, quality = np.array(cases, dtype=float).T
    if (quality == quality[0]).all():
        return
    found = Margins(scores, quality)
    # scipy has no value for constant scores: all pairs are tied in them, which counts half.
    expected = 0.5 if (scores == scores[0]).all() else (somersd(quality, scores).statistic + 1) / 2
    assert found.concordance == pytest.approx(expected)
    untied = np.sign(quality[:, None] - quality) != 0
    agree = (np.sign(quality[:, None] - quality) * np.sign(scores[:, None] - scores) + 1) / 2
    influence = ((agree - found.concordance) * untied).sum(axis=1) / (untied.sum() / 2)
    assert found.influence == pytest.approx(influence)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 16)), min_size=3, max_size=60))
def test_a_table_of_quality_and_score_counts_what_going_through_the_pairs_does(cases: list[tuple[int, int]]) -> None:
    scores, quality = np.array(cases, dtype=float).T
    by_table, by_pairs = Margins(scores, quality), Margins(scores, quality)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_FEW_LEVELS", 100)
        patch.setattr(intervals, "favours", None)
        found = by_table._agreement
        patch.undo()
        patch.setattr(intervals, "_FEW_LEVELS", 0)
        assert found.tolist() == by_pairs._agreement.tolist()


def test_runs_that_say_the_same_give_no_narrower_interval_than_one() -> None:
    rng = np.random.default_rng(1)
    scores, quality = rng.normal(size=80), rng.integers(0, 2, 80).astype(float)
    alone = one_run(scores, quality)
    twice = mean_concordance_interval([(Margins(scores, quality), np.arange(80))] * 6, 0.95)
    assert twice == pytest.approx(alone, abs=1e-6)


def test_independent_runs_narrow_the_interval_of_their_mean() -> None:
    rng = np.random.default_rng(2)
    runs = [(Margins(rng.normal(size=80), rng.integers(0, 2, 80).astype(float)), np.arange(80)) for _ in range(6)]
    low, high = mean_concordance_interval(runs, 0.95)
    alone = np.diff([mean_concordance_interval([run], 0.95) for run in runs], axis=1).mean()
    assert high - low < 0.6 * alone


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60))
def test_an_interval_within_queries_holds_the_mean_and_has_a_width(values: list[float]) -> None:
    low, high = within_query_interval(np.array(values), 0.95)
    assert 0 <= low <= np.mean(values) <= high <= 1
    assert high > low


def claims(values: Floats, draws: Floats, n: int = 100, enough: bool = True) -> Floats:
    size = len(values)
    freedom, may = np.full((size, size), 99), np.full((size, size), enough)
    return least_leads(values, draws, confidence=0.95, n=n, freedom=freedom, enough=may) > 0


def test_a_large_difference_is_claimed_and_a_small_one_is_not() -> None:
    rng = np.random.default_rng(3)
    values = np.array([0.8, 0.6, 0.59])
    draws = values[:, None] + 0.03 * rng.normal(size=(3, 999))
    assert claims(values, draws).tolist() == [[False, True, True], [False, False, False], [False, False, False]]
    assert not claims(values, draws, enough=False).any(), "from too few queries"


def test_labelings_that_always_agree_are_the_same_and_neither_is_better() -> None:
    draws = np.tile(np.random.default_rng(1).normal(size=999), (2, 1))
    assert not claims(np.array([0.7, 0.7]), draws, n=50).any()


def test_the_error_of_few_queries_is_larger_than_their_resamples_say() -> None:
    draws = np.stack([2.3 + zscore(np.random.default_rng(2).normal(size=999), ddof=1), np.zeros(999)])
    assert [claims(np.array([2.3, 0.0]), draws, n=n).any() for n in (3, 100)] == [False, True]
