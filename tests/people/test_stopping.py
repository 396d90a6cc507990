"""When to stop: boundaries against published constants, error rates by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from judgekit.errors import UsageError
from judgekit.people.stopping import boundaries, decide


@pytest.mark.parametrize(("looks", "constant"), [(1, 1.960), (2, 1.977), (5, 2.040)])
def test_the_boundaries_are_o_brien_and_fleming_s(looks, constant):
    # Jennison and Turnbull, Group Sequential Methods (2000), table 2.3, alpha = .05
    found = boundaries(looks)
    assert found[-1] == pytest.approx(constant, abs=6e-4)
    assert found == pytest.approx([found[-1] * np.sqrt(looks / k) for k in range(1, looks + 1)])


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_where_nothing_differs_few_end_with_a_claim(share):
    random = np.random.default_rng(1)
    ended = sum(
        decide(np.where(random.random(300) < share, random.choice([-1.0, 1.0], 300), 0.0), 300).decided
        for _ in range(700)
    )
    assert ended / 700 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 700)


def test_rare_losses_that_did_not_come_yet_end_nothing():
    random = np.random.default_rng(4)
    for rare in (0.01, 0.02, 0.05):
        won = rare / (1 - rare)  # on all other queries: nothing differs on average
        ended = sum(decide(np.where(random.random(300) < rare, -1.0, won), 300).decided for _ in range(200))
        assert ended / 200 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_a_quarter_of_the_labels_is_saved_at_power_of_more_than_eight_in_ten():
    random = np.random.default_rng(2)
    shift = (stats.norm.isf(0.025) + stats.norm.isf(0.1)) / np.sqrt(300) * 1.01
    found = [decide(random.standard_normal(300) + shift, 300) for _ in range(400)]
    assert np.mean([each.decided for each in found]) == pytest.approx(0.84, abs=0.04)
    assert np.mean([each.used for each in found]) / 300 == pytest.approx(0.78, abs=0.03)


def test_a_decision_is_taken_at_a_look_only():
    made = decide(np.full(100, 0.5) + np.linspace(-0.1, 0.1, 100), 100)
    assert made.decided
    assert made.used in (20, 40, 60, 80, 100)
    assert made.low > 0
    seen = np.append((np.full(100, 0.5) + np.linspace(-0.1, 0.1, 100))[: made.used], -1)
    edge = stats.t.isf(stats.norm.sf(boundaries(5)[made.looks - 1]), made.used - 1)
    assert made.low == pytest.approx(seen.mean() - edge * seen.std(ddof=1) / np.sqrt(len(seen)))
    assert not decide(np.zeros(100), 100).decided
    assert decide([0.1] * 10, 100).looks == 0
    with pytest.raises(UsageError, match="do not go together"):
        decide(np.zeros(101), 100)
