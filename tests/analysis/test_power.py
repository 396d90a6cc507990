"""What is foreseen before anything is asked is what then comes about."""

import math

import numpy as np
import pytest
from scipy import stats

from judgekit.analysis.best import compared_with_best
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.power import most_needed, questions_for, questions_to_show, race_length, shown_lead
from judgekit.analysis.race import RaceRules, RunAnswers, race, random_order
from judgekit.analysis.resampling import interval, resample_matrix
from judgekit.analysis.wording import Ranged


def world(seed: int, runs: int, questions: int, differ: float, lead: float) -> Floats:
    """Runs that answer a share of the questions differently by chance, the first one better by ``lead``."""
    draw = np.random.default_rng(seed)
    own = draw.random(questions) < differ * 2  # two runs differ on half of these
    quality = np.where(own, draw.random((runs, questions)) < 0.5, draw.random(questions) < 0.5)
    quality[0] |= draw.random(questions) < 2 * lead
    return quality.astype(float)


def test_the_figures_of_six_runs_and_200_questions() -> None:
    assert round(100 * shown_lead(200, 6, 0.2)) == 16
    assert round(questions_for(0.02, 6, 0.2), -2) == 2500
    assert shown_lead(10, 20, 0.9) == 1
    assert shown_lead(200, 6, 0.2) < shown_lead(200, 7, 0.2) < shown_lead(200, 8, 0.2)


def r_of(seed: int, questions: int, share: float) -> Ranged:
    """r of four runs whose scores hold a share of what makes their answers right, with its interval."""
    draw = np.random.default_rng(seed)
    quality = draw.normal(size=(4, questions))
    scores = share * quality + draw.normal(size=quality.shape)
    found = pooled_correlation(scores, (quality > 0).astype(float), resample_matrix(questions, 200, seed))
    ends = interval(found.value, found.draws, 0.975, "fisher-t", questions)
    return Ranged(found.value, ends.low, ends.high)


@pytest.mark.parametrize(("questions", "share"), [(60, 0.12), (150, 0.08)])
def test_so_many_questions_as_are_said_show_r_in_about_four_of_five_cases(questions: int, share: float) -> None:
    many = [r_of(seed, 4000, share).value for seed in range(4)]
    truth = float(np.mean(many))
    width = r_of(1, questions, share)
    # As if r were the truth: what is found first is larger or smaller by chance.
    moved = math.atanh(truth) - math.atanh(width.value)
    low, high = (math.tanh(math.atanh(end) + moved) for end in width[1:])
    needed = round(questions_to_show(Ranged(truth, low, high), questions, questions, 0.975))
    assert needed > questions
    shown = sum(r_of(100 + seed, needed, share).low > 0 for seed in range(60))
    assert 40 <= shown <= 57
    assert sum(r_of(100 + seed, needed // 4, share).low > 0 for seed in range(60)) < 30, "a quarter shows it seldom"


@pytest.mark.parametrize(("runs", "questions", "differ"), [(2, 100, 0.2), (6, 200, 0.2), (12, 150, 0.4)])
def test_the_lead_is_shown_in_about_four_of_five_cases(runs: int, questions: int, differ: float) -> None:
    lead = shown_lead(questions, runs, differ)
    shown = 0
    for seed in range(60):
        best = compared_with_best(world(seed, runs, questions, differ, lead), resample_matrix(questions, 200, seed))
        shown += best.may_be_best.sum() == 1
    assert shown >= 42


@pytest.mark.parametrize("lead", [0.0, 0.1])
def test_a_race_is_about_as_long_as_foreseen(lead: float) -> None:
    foreseen = race_length(0.05, 4, 0.2, lead)
    lengths = []
    for seed in range(20):
        quality = world(seed, 4, 3 * foreseen, 0.2, lead)
        choice = race(RunAnswers(quality), random_order(3 * foreseen, seed).ends, RaceRules(0.05, resamples=100))
        assert choice.stopped
        lengths.append(choice.last.questions)
    assert 0.5 * foreseen <= np.median(lengths) <= 1.3 * foreseen


def test_a_further_run_needs_about_what_each_run_would_need_left_out() -> None:
    needs = [10, 30, 50, 80, 120, 200]
    logs = np.log(np.array(needs) + 1)
    half = stats.t.ppf(0.95, 5) * logs.std(ddof=1) * math.sqrt(7 / 6)
    assert most_needed(needs) == math.ceil(math.exp(logs.mean() + half) - 1)
    assert most_needed([3, 9]) is None
    assert most_needed([3, 9, 5]) is not None
    assert most_needed([0] * 6) == 1, "a further one may need some by chance"
    draw = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        *known, new = np.exp(draw.normal(4, 1, 7)).astype(int).tolist()
        most = most_needed(known)
        assert most is not None
        inside += new <= most
    assert 0.92 * 300 <= inside <= 0.98 * 300
