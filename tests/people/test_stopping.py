"""When to stop: boundaries against published constants, error rates by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from judgekit.errors import UsageError
from judgekit.people.correct import corrected_mean
from judgekit.people.reading import read_judgments, resolve
from judgekit.people.sampling import draw
from judgekit.people.stopping import boundaries, confidence_sequence, decide, expected, plan


@pytest.mark.parametrize(
    ("looks", "constant"), [(1, 1.960), (2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040), (10, 2.087)]
)
def test_the_boundaries_are_o_brien_and_fleming_s(looks, constant):
    # Jennison and Turnbull, Group Sequential Methods (2000), table 2.3, alpha = .05
    found = boundaries(looks)
    assert found[-1] == pytest.approx(constant, abs=6e-4)
    assert found == pytest.approx([found[-1] * np.sqrt(looks / k) for k in range(1, looks + 1)])


@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("method", ["looks", "stream"])
def test_where_nothing_differs_few_end_with_a_claim(method, share):
    random = np.random.default_rng(1)
    ended = sum(
        decide(np.where(random.random(300) < share, random.choice([-1.0, 1.0], 300), 0.0), 300, method=method).decided
        for _ in range(2000)
    )
    assert ended / 2000 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 2000)


def test_a_quarter_of_the_labels_is_saved_at_power_of_nine_in_ten():
    random = np.random.default_rng(2)
    shift = (stats.norm.isf(0.025) + stats.norm.isf(0.1)) / np.sqrt(300) * 1.01
    found = [decide(random.standard_normal(300) + shift, 300) for _ in range(600)]
    assert np.mean([each.decided for each in found]) == pytest.approx(0.89, abs=0.04)
    assert np.mean([each.used for each in found]) / 300 == pytest.approx(0.745, abs=0.03)


def test_a_sequence_covers_at_every_time_at_once_and_says_nothing_early():
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(300):
        low, high = confidence_sequence(random.uniform(-1, 1, 400), 300)
        inside += bool(((low <= 0) & (high >= 0)).all())
    assert inside / 300 >= 0.95
    assert np.isinf(low[:49]).all()
    assert np.isfinite(low[49:]).all()


def test_a_decision_is_taken_at_a_look_only():
    made = decide(np.full(100, 0.5) + np.linspace(-0.1, 0.1, 100), 100)
    assert made.decided
    assert made.used in (20, 40, 60, 80, 100)
    assert made.low > 0
    assert not decide(np.zeros(100), 100).decided
    assert decide([0.1] * 10, 100).looks == 0
    with pytest.raises(UsageError, match="do not go together"):
        decide(np.zeros(101), 100)


def test_planning_says_what_more_labels_bring():
    random = np.random.default_rng(4)
    every = random.random(200)
    people = every[:20] + 0.2 * random.standard_normal(20)
    made = corrected_mean(people, every[:20], every)
    table = expected(made, 20, 200, [0, 20, 80, 500])
    assert table["half_width"].iloc[0] == pytest.approx((made.high - made.low) / 2)
    assert table["half_width"].is_monotonic_decreasing
    assert table["power"].is_monotonic_increasing
    assert table["judged"].tolist() == [20, 40, 100, 200]


def test_a_plan_has_a_row_for_every_difference(collection, truth, machine, judged):
    sample = draw(collection, n=20, prompt="binary")
    people = resolve(read_judgments([judged(sample, "1", lambda row: truth[row["query_id"], row["doc_ids"][0]])]))
    table = plan(collection, people, {"judge": machine}, "P@3", [10, 20])
    assert len(table) == 2 * (3 + 3)
    pairs = resolve(read_judgments([judged(draw(collection, n=9, design="pairs", prompt="binary"), "1",
                                           lambda row: 1)]))  # fmt: skip
    with pytest.raises(UsageError, match="planning counts whole queries"):
        plan(collection, pairs, {"judge": machine}, "P@3", [10])
