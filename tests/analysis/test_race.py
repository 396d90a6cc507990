"""A race between runs: the anytime-valid sequence, who drops out when, and what is promised at the end."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from judgekit.analysis.best import compared_with_best
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.race import (
    RaceRules,
    RunAnswers,
    half_width,
    limits,
    look,
    race,
    random_order,
    replay,
    stops,
)
from judgekit.analysis.resampling import resample_matrix
from judgekit.errors import UsageError

RULES = RaceRules(0.05, resamples=200)


def world(seed: int, truth: list[float], questions: int) -> Floats:
    rng = np.random.default_rng(seed)
    hard = rng.random(questions)
    return (0.5 * hard + 0.5 * rng.random((len(truth), questions)) < np.array(truth)[:, None]).astype(float)


def slow_upper(first: list[float], second: list[float], error: float) -> float:
    """The sequence's formula for one pair of runs after all of their units."""
    t, lead = len(first), [a - b for a, b in zip(first, second, strict=True)]
    rho = math.sqrt((-2 * math.log(error) + math.log(-2 * math.log(error)) + 1) / 300)
    mean = sum(lead) / t
    variance = (sum(d * d for d in lead) + 2) / (t + 2) - mean**2
    root = 2 * (t * rho**2 + 1) / (t**2 * rho**2) * math.log(math.sqrt(t * rho**2 + 1) / error)
    return mean + math.sqrt(variance * root)


def test_limits_are_the_formula_and_missing_answers_are_at_their_worst() -> None:
    quality = world(1, [0.6, 0.5, 0.3], 120)
    quality[0, 5], quality[2, 50] = np.nan, np.nan
    known = limits(RunAnswers(quality), [20, 60, 120], 0.01)
    assert np.isinf(known[0].upper[0, 1])
    for at, end in ((1, 60), (2, 120)):
        for b, s in ((0, 1), (1, 0), (2, 0), (0, 2)):
            kind = np.where(np.isnan(quality[b, :end]), 1, quality[b, :end]).tolist()
            harsh = np.where(np.isnan(quality[s, :end]), 0, quality[s, :end]).tolist()
            assert known[at].upper[b, s] == pytest.approx(slow_upper(kind, harsh, 0.01))


def test_groups_of_one_size_count_as_the_means_of_their_questions() -> None:
    quality = world(2, [0.6, 0.4], 300)
    groups = np.repeat(np.arange(100), 3)
    whole = limits(RunAnswers(quality, groups), [150, 300], 0.02)
    means = limits(RunAnswers(quality.reshape(2, 100, 3).mean(axis=2)), [50, 100], 0.02)
    for one, other in zip(whole, means, strict=True):
        assert one.upper == pytest.approx(other.upper)
        assert one.lead == pytest.approx(other.lead)
    assert (whole[0].questions, whole[0].unit) == (150, 3)


def test_equal_lists_cannot_differ() -> None:
    quality = world(3, [0.6, 0.4], 100)[[0, 0, 1]]
    equal = np.array([[True, True, False], [True, True, False], [False, False, True]])
    upper = limits(RunAnswers(quality, equal=equal), [100], 0.02)[0].upper
    assert upper[0, 1] == upper[1, 0] == 0
    assert upper[0, 2] > 0


@given(st.integers(0, 500), st.integers(1, 150), st.booleans())
def test_an_order_holds_every_question_once_and_groups_whole(seed: int, questions: int, grouped: bool) -> None:
    groups = np.random.default_rng(seed).integers(0, 15, questions) if grouped else None
    order = random_order(questions, seed, groups)
    assert sorted(order.places.tolist()) == list(range(questions))
    assert order.ends[-1] == questions
    blocks = np.split(order.places, order.ends[:-1])
    assert all(len(block) >= 20 for block in blocks[:-1])
    if groups is None:
        assert all(len(block) == 20 for block in blocks[:-1])
    else:
        of = [set(groups[block].tolist()) for block in blocks]
        assert sum(map(len, of)) == len(set(groups.tolist()))


def test_a_race_block_by_block_is_the_race_on_all_answers() -> None:
    quality = world(5, [0.62, 0.6, 0.45, 0.3], 600)
    order = random_order(600, 1)
    answered = RunAnswers(quality[:, order.places])
    whole = race(answered, order.ends, RULES)
    assert whole.dropped
    known = np.full_like(answered.quality, np.nan)
    left, before, answers, looks = np.ones(4, bool), 0, 0, []
    for end in order.ends:
        known[left, before:end] = answered.quality[left, before:end]  # only those are asked that are left
        answers += int(left.sum()) * (end - before)
        seen = limits(RunAnswers(known[:, :end]), [end], RULES.error / 3)[0]
        looks.append(look(seen, left, answers, RULES))
        left, before = looks[-1].left, end
        if stops(looks[-1], RULES):
            break
    assert [one.bound for one in looks] == pytest.approx([one.bound for one in whole.looks])
    assert [one.dropped for one in looks] == [one.dropped for one in whole.looks]
    assert whole.last.answers == answers == np.isfinite(known).sum()


def test_what_drops_out_is_shown_to_be_worse_and_the_first_look_is_at_40() -> None:
    quality = world(6, [0.9, 0.88, 0.1], 400)
    choice = race(RunAnswers(quality), [20, 40, 60, 80, 100], RULES)
    gone = choice.dropped[2]
    assert gone.questions >= 40
    assert 0 < gone.low < gone.behind < gone.high
    assert choice.looks[0].bound == math.inf
    assert np.isnan(choice.looks[-1].high[2])


def test_where_it_does_not_stop_the_runs_left_are_compared_with_the_best() -> None:
    quality = world(7, [0.5, 0.5, 0.2], 200)
    order = list(range(20, 201, 20))
    choice = race(RunAnswers(quality), order, RULES)
    assert not choice.stopped
    assert set(choice.dropped) == {2}
    left = quality[:2]
    best = compared_with_best(left, resample_matrix(200, 200, 1), confidence=0.975)
    assert choice.bound == pytest.approx(best.cost[choice.chosen])
    assert choice.may_be_best.tolist() == [*best.may_be_best, False]
    assert choice.last.needed > 200
    poor = race(RunAnswers(quality), order, RULES, most=200)
    assert poor.last.answers <= 200 < poor.last.answers + 60
    assert poor.bound > choice.bound


def test_too_few_questions_claim_nothing() -> None:
    choice = race(RunAnswers(world(8, [0.9, 0.1], 19)), [19], RULES)
    assert math.isnan(choice.bound)
    assert choice.may_be_best.all()
    with pytest.raises(UsageError, match="no block"):
        race(RunAnswers(world(8, [0.9, 0.1], 19)), [19], RULES, most=10)
    with pytest.raises(UsageError, match="margin"):
        RaceRules(0)


def test_what_is_said_to_be_needed_is_about_what_it_takes() -> None:
    quality = world(9, [0.55, 0.55], 4000)
    ends = list(range(20, 4001, 20))
    choice = race(RunAnswers(quality), ends, RULES)
    assert choice.stopped
    early = next(one for one in choice.looks if one.questions == 300)
    assert early.needed <= choice.last.questions <= 1.2 * early.needed_if_equal
    assert early.needed_if_equal < 1.5 * choice.last.questions


def test_a_replay_counts_what_many_orders_would_have_chosen() -> None:
    quality = world(10, [0.7, 0.6, 0.3], 800)
    made = replay(RunAnswers(quality), RULES, orders=20)
    assert (made.best, made.questions, made.orders) == (0, 800, 20)
    assert made.within == 20
    assert made.broken == 0
    assert made.stopped > 10
    assert (made.answers < 1).all()
    assert made.choice.chosen == 0


def test_the_sequence_is_narrowest_in_deviations_near_the_planned_questions() -> None:
    scaled = half_width(np.arange(40, 3000), 0.005) * np.sqrt(np.arange(40, 3000))
    assert abs(int(scaled.argmin()) + 40 - 300) < 60


@pytest.mark.parametrize("truth", [[0.5] * 3, [0.5, 0.49, 0.4, 0.1]])
def test_bounds_hold(truth: list[float]) -> None:
    held = 0
    for seed in range(100):
        choice = race(RunAnswers(world(seed, truth, 400)), list(range(20, 401, 20)), RaceRules(0.03, resamples=100))
        # Difficulty that runs share is part of the world: its means are the truth over many questions.
        means = world(999, truth, 200_000).mean(axis=1)
        held += bool(means.max() - means[choice.chosen] <= choice.bound)
    assert held >= 95
