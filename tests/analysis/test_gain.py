"""Decision gain: what choosing between two runs by a labeling wins over a coin flip."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from judgekit.analysis import gain as module
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.gain import common_level, decision_gain, decision_gains
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from tests.analysis.worlds import arrays

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]


def by_random_halves(scores: Floats, quality: Floats, splits: int, groups: Ints) -> float:
    """The definition, as a loop."""
    rng = np.random.default_rng(0)
    size, won = groups.max() + 1, []
    for _ in range(splits):
        seen = np.isin(groups, rng.permutation(size)[: size // 2])
        for i, j in combinations(range(len(scores)), 2):
            choice = np.sign(round(float((scores[i] - scores[j])[seen].mean()), 12))
            won.append(choice * (quality[i] - quality[j])[~seen].mean() / 2)
    return float(np.mean(won))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_closed_form_is_the_mean_over_random_halves_of_queries_or_of_groups(seed: int, grouped: bool) -> None:
    rng = np.random.default_rng(seed)
    scores, quality = arrays(seed, n=40)
    groups = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 4, 40) if grouped else 1))
    scores, quality = scores[:, groups], quality[:, groups]
    weights = resample_matrix(len(groups), 100, 1, groups)
    gain = decision_gain(scores, quality, weights, groups)
    assert gain.value == pytest.approx(by_random_halves(scores, quality, 1500, groups), abs=0.006)
    assert (weights[groups == 3] == weights[groups == 3][0]).all()
    if not grouped:
        alone = decision_gain(scores, quality, weights)
        assert (alone.value, *alone.draws) == pytest.approx((gain.value, *gain.draws))


def test_where_runs_differ_on_few_queries_every_half_is_counted() -> None:
    scores, quality = np.zeros((2, 20)), np.zeros((2, 20))
    scores[0, :3], quality[0, :2], quality[1, 5] = (1, 1, -1), 1, 1
    gain = decision_gain(scores, quality, resample_matrix(20, 100, 1))
    assert gain.value == pytest.approx(by_random_halves(scores, quality, 20000, np.arange(20)), abs=0.003)
    assert np.isnan(decision_gain(scores[:1], quality[:1], resample_matrix(20, 100, 1)).value), "one run, no choice"


@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-5, 5))
def test_neither_the_order_of_runs_and_queries_nor_the_unit_of_scores_counts(
    seed: int, times: float, plus: float
) -> None:
    scores, quality = arrays(seed, n=30)
    rng = np.random.default_rng(seed)
    weights = resample_matrix(30, 100, 1)
    rows, columns = rng.permutation(4), rng.permutation(30)
    gain = decision_gain(scores, quality, weights)
    moved = scores * times + plus + np.arange(30.0)
    mixed = decision_gain(moved[rows][:, columns], quality[rows][:, columns], weights[columns])
    assert (mixed.value, *mixed.draws) == pytest.approx((gain.value, *gain.draws), abs=1e-9)
    turned = decision_gain(-scores, quality, weights)
    assert (turned.value, *turned.draws) == pytest.approx((-gain.value, *-gain.draws))


@pytest.mark.parametrize("groups", [None, np.arange(200) // 4])
def test_the_fewer_queries_runs_differ_on_the_further_out_its_percentiles_lie(groups: Ints | None) -> None:
    scores, quality = arrays(3, n=200)
    quality[:, 40:] = 1
    gain = decision_gain(scores, quality, resample_matrix(200, 1000, 1, groups), groups)
    differing = np.arange(200) if groups is None else groups
    units = len(np.unique(differing[(quality != quality[0]).any(axis=0)]))
    level = stats.norm.cdf(stats.t.ppf(0.975, units - 1))
    assert gain.units == units
    assert gain.interval(0.95) == pytest.approx(np.quantile(gain.draws, [1 - level, level], method="weibull"))


@pytest.mark.parametrize("differ", [0, 4])
def test_where_runs_hardly_differ_in_quality_or_in_score_it_has_no_interval(differ: int) -> None:
    apart, alike = arrays(3, n=200)
    alike[:] = np.arange(200) % 2
    alike[0, :differ] = 1 - alike[0, :differ]
    weights = resample_matrix(200, 100, 1)
    assert np.isnan(decision_gain(apart, alike, weights).interval(0.95)).all()
    assert np.isnan(decision_gain(alike, apart, weights).interval(0.95)).all()


def test_a_resample_agrees_with_the_gain_of_the_repeated_queries() -> None:
    scores, quality = arrays(5)
    weights = resample_matrix(60, 100, 1)
    gain = decision_gain(scores, quality, weights)
    repeated = np.repeat(np.arange(60), weights[:, 7].astype(int))
    alone = decision_gain(scores[:, repeated], quality[:, repeated], weights)
    assert gain.draws[7] == pytest.approx(gain.value + (alone.value - gain.value) * np.sqrt(60 / 59))


def test_intervals_of_several_gains_hold_together_as_often_as_asked() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 2000))
    level = common_level(draws, 200, 0.95)
    low, high = np.quantile(draws, [1 - level, level], axis=1)
    assert ((draws >= low[:, None]) & (draws <= high[:, None])).all(axis=0).mean() == pytest.approx(0.95, abs=0.004)
    alone, several = (common_level(np.repeat(draws[:1], times, axis=0), 200, 0.95) for times in (1, 4))
    assert alone == several == pytest.approx(0.975, abs=0.003)


def many_runs(labelings: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(3)
    quality = rng.integers(0, 2, (30, 80)).astype(float)
    scores = np.round(quality * 0.3 + rng.random((labelings, 30, 80)), 2)
    return scores, quality, resample_matrix(80, 150, 1)


@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_in_blocks_and_labelings_together_give_the_same_digits_as_alone(
    grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, quality, weights = many_runs(3)
    groups = np.arange(80) // 3 if grouped else None
    weights = weights if groups is None else resample_matrix(80, 150, 1, groups)
    # As in a comparison: several threads share a matrix product out by its size.
    together = one_thread(decision_gains)([(own, own) for own in scores], quality, weights, groups)
    monkeypatch.setattr(module, "_PAIRS", 10_000)
    for own, found in zip(scores, together, strict=True):
        alone = one_thread(decision_gain)(own, quality, weights, groups)
        assert (found.value, found.units, found.telling) == (alone.value, alone.units, alone.telling)
        np.testing.assert_array_equal(found.draws, alone.draws)


def test_what_the_answers_say_is_worked_out_once_for_all_labelings(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, quality, weights = many_runs(5)
    made = []

    class Counted(module._Moved):
        def __init__(self, *given: object) -> None:
            made.append(1)
            super().__init__(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_Moved", Counted)
    decision_gains([(own, own) for own in scores], quality, weights)
    # 435 pairs of runs are 4 blocks, each once for the data and once for the resamples.
    assert len(made) == 2 * 4


def test_memory_does_not_grow_with_the_pairs_of_runs() -> None:
    rng = np.random.default_rng(3)
    quality, scores = rng.random((60, 100)), rng.random((60, 100))
    weights = resample_matrix(100, 1000, 1)
    decision_gain(scores[:3], quality[:3], weights)
    tracemalloc.start()
    decision_gain(scores, quality, weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    one_table = 60 * 59 / 2 * 1000 * 8
    assert peak < 2 * one_table
