"""The decision: bounds against scipy, and laws that no labels may break. How often it errs: benchmarks/guard.csv."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from judgekit.jobs.guard.decision import decide, decide_suite

LOSSES = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=60).map(np.array)


@given(LOSSES)
def test_the_bounds_are_those_of_t_with_one_more_query_at_the_end_of_the_range(losses: np.ndarray) -> None:
    found = decide(losses, losses, 0.01)
    more = np.append(losses, 1.0)
    upper = more.mean() + stats.t.ppf(0.95, len(losses)) * more.std(ddof=1) / np.sqrt(len(more))
    mirrored = np.append(-losses, 1.0)
    lower = -(mirrored.mean() + stats.t.ppf(0.95, len(losses)) * mirrored.std(ddof=1) / np.sqrt(len(more)))
    assert found.p is not None
    if found.low is None or found.high is None:
        assert (found.outcome, found.changed < 5) == ("inconclusive", True), "too few differ for bounds"
        assert (min(upper, 1) < 0.01, found.p > 0.05) == (False, True)
        return
    assert found.high == pytest.approx(min(upper, 1))
    assert found.low == pytest.approx(max(lower, -1))
    if mirrored.std() > 0:
        test = stats.ttest_1samp(-mirrored, 0, alternative="greater")
        assert found.p == pytest.approx(test.pvalue, abs=1e-9)
    assert (found.outcome == "fail") == (found.high >= 0.01 and found.p <= 0.05)
    assert found.low <= losses.mean() + 1e-9
    assert found.high >= losses.mean() - 1e-9


def test_a_loss_that_is_shown_and_shown_to_be_below_the_limit_passes() -> None:
    found = decide(np.full(400, 0.01), np.full(400, 0.01), 0.05)
    assert found.p is not None
    assert found.p < 0.05
    assert found.outcome == "pass"


@given(st.lists(st.floats(-0.5, 0.5), min_size=20, max_size=60).map(np.array), st.floats(0, 0.5))
def test_what_is_not_known_never_decides(losses: np.ndarray, width: float) -> None:
    wide = decide(losses - width, losses + width, 0.05)
    exact = decide(losses, losses, 0.05)
    assert (wide.outcome, exact.outcome) in {
        *((one, one) for one in ("pass", "fail", "inconclusive")),
        *(("inconclusive", one) for one in ("pass", "fail")),
        ("fail", "pass"),  # a loss that is shown, and is shown to be below the limit once it is known
    }
    if wide.low is not None and wide.high is not None and exact.low is not None and exact.high is not None:
        assert wide.low <= exact.low + 1e-6
        assert wide.high >= exact.high - 1e-6


@given(LOSSES, st.floats(0, 0.5), st.sampled_from([0.0, 0.01, 0.2]))
def test_of_a_suite_only_what_holds_for_every_label_is_claimed(losses: np.ndarray, width: float, margin: float) -> None:
    wide = decide_suite(losses, losses + width, margin)
    ends = {decide_suite(d, d, margin).outcome for d in (losses, losses + width)}
    assert wide.outcome == (ends.pop() if len(ends) == 1 else "inconclusive")
    assert (losses.mean() > margin + 1e-9) <= (wide.outcome == "fail")
    assert (losses.mean() + width < margin - 1e-9) <= (wide.outcome == "pass")


@pytest.mark.parametrize(("changed", "bounded"), [(4, False), (5, True)])
def test_bounds_are_given_if_five_questions_differ(changed: int, bounded: bool) -> None:
    losses = np.array([0.1] * changed + [0.0] * 50)
    found = decide(losses, losses, 0.01)
    assert (found.outcome, found.low is not None, found.high is not None) == ("inconclusive", bounded, bounded)


@pytest.mark.parametrize(("losing", "margin"), [(0.0, 0.01), (0.03, 0.01)])
def test_so_many_questions_as_are_said_to_settle_it_do_so_four_times_in_five(losing: float, margin: float) -> None:
    rng = np.random.default_rng(1)
    losses = rng.choice([0.0, 0.2, -0.2], 100, p=[0.9 - losing, 0.05 + losing, 0.05])
    losses = np.append(losses, [losing - losses.mean()] * 2)
    needed = decide(losses, losses, margin).needed
    assert needed is not None
    drawn = (rng.choice(losses, needed) for _ in range(300))
    settled = sum(decide(each, each, margin).outcome != "inconclusive" for each in drawn)
    assert 0.7 < settled / 300 < 0.9


def first_of(loss: float, questions: int) -> np.ndarray:
    """Losses of 300 questions, of which the first lose so much."""
    return np.repeat([loss, 0.0], [questions, 300 - questions])


@pytest.mark.parametrize(("questions", "loss"), [(6, 1.0), (8, 0.5), (29, 0.1)])
def test_so_many_questions_show_a_loss_and_one_less_does_not(questions: int, loss: float) -> None:
    enough, few = first_of(loss, questions), first_of(loss, questions - 1)
    assert [decide(losses, losses, 0.01).outcome for losses in (enough, few)] == ["fail", "inconclusive"]


def test_a_change_of_nothing_takes_265_questions_to_pass_a_limit_of_a_point() -> None:
    alike = [np.zeros(questions) for questions in (264, 265)]
    assert [decide(losses, losses, 0.01).outcome for losses in alike] == ["inconclusive", "pass"]
