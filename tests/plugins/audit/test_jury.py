"""Is a jury worth it: votes that are made so that the answer is known, against formulas written out here."""

from itertools import combinations

import numpy as np
import pytest

from judgekit.analysis.coefficients import Floats
from judgekit.plugins.audit.jury import jury
from judgekit.plugins.audit.numbers import Ints, Number

QUERIES, EACH = 60, 20
UNITS = np.repeat(np.arange(QUERIES), EACH)
GROUPS = UNITS % 20
RIGHT = (np.random.default_rng(0).random(QUERIES * EACH) < 0.4).astype(float)


def erring(members: int, rate: float, together: float, seed: int = 1) -> Floats:
    """Return votes that are wrong at a rate; with a chance ``together`` a member copies one common error."""
    rng = np.random.default_rng(seed)
    common = rng.random(len(RIGHT)) < rate
    own = rng.random((members, len(RIGHT))) < rate
    wrong = np.where(rng.random((members, len(RIGHT))) < together, common, own)
    return np.where(wrong, 1 - RIGHT, RIGHT)


def looked_at(votes: Floats, right: Floats = RIGHT, units: Ints = UNITS) -> dict[str, Number]:
    names = [f"judge {i}" for i in range(len(votes))]
    return {number.statistic: number for number in jury(votes, right, names, units=units, groups=units % 20)}


def kappa(said: Floats, right: Floats = RIGHT) -> float:
    agree = (said == right).mean()
    chance = said.mean() * right.mean() + (1 - said.mean()) * (1 - right.mean())
    return float((agree - chance) / (1 - chance))


@pytest.mark.parametrize("together", [0.0, 0.7])
def test_the_numbers_are_those_of_the_formulas(together: float) -> None:
    votes = erring(9, 0.25, together)
    found = looked_at(votes)
    errors = votes != RIGHT
    shared = np.mean([np.corrcoef(errors[i], errors[j])[0, 1] for i, j in combinations(range(9), 2)])
    r, effective = found["mean correlation of errors"], found["effective votes"]
    assert r.value == pytest.approx(shared)
    assert (effective.value, effective.low) == pytest.approx((9 / (1 + 8 * shared), 9 / (1 + 8 * r.high)))
    assert found["kappa of the majority"].value == pytest.approx(kappa((votes.sum(axis=0) > 4).astype(float)))
    assert found["kappa of the best single"].value == pytest.approx(max(map(kappa, votes)))
    assert all(number.low <= number.value <= number.high for number in found.values())


def test_the_best_single_is_chosen_where_it_is_not_tested_and_a_tied_majority_says_no() -> None:
    votes = erring(4, 0.3, 0.5)
    said = np.empty_like(RIGHT)
    for group in range(20):
        inside = group == GROUPS
        best = max(range(4), key=lambda m: kappa(votes[m, ~inside], RIGHT[~inside]))
        said[inside] = votes[best, inside]
    majority = kappa((votes.sum(axis=0) > 2).astype(float))
    found = looked_at(votes)
    assert found["kappa of the majority"].value == pytest.approx(majority)
    assert found["majority minus best single"].value == pytest.approx(majority - kappa(said))


def test_nine_judges_that_err_alike_vote_like_two_and_add_nothing() -> None:
    found = looked_at(erring(9, 0.25, 0.62))["effective votes"]
    assert 1.5 < found.low <= 2.2 <= found.high < 4
    alike = looked_at(np.tile(erring(1, 0.25, 0), (9, 1)))
    assert alike["effective votes"].value == pytest.approx(1)
    gain = alike["majority minus best single"]
    assert (gain.value, gain.flag) == (0, "jury adds nothing")
    assert "use judge 0 alone" in gain.verdict


def test_a_jury_is_worth_it_where_its_members_err_apart_and_none_is_far_better() -> None:
    apart = looked_at(erring(9, 0.25, 0.0))
    assert apart["effective votes"].value == pytest.approx(9, abs=1)
    gain = apart["majority minus best single"]
    assert (gain.low > 0.2, gain.flag) == (True, "")
    votes = np.concatenate([erring(1, 0.02, 0), erring(4, 0.4, 0.9, seed=3)])
    gain = looked_at(votes)["majority minus best single"]
    assert (gain.high < 0, gain.flag) == (True, "jury adds nothing")
    assert "is behind" in gain.verdict


def test_pairs_without_a_vote_or_a_reference_are_left_out() -> None:
    votes, right = erring(3, 0.2, 0.3), RIGHT.copy()
    votes[1, :100], right[100:150] = np.nan, np.nan
    full = looked_at(votes[:, 150:], right[150:], UNITS[150:])
    assert looked_at(votes, right)["effective votes"].value == pytest.approx(full["effective votes"].value)
    (nothing, *_) = looked_at(votes, np.full_like(right, np.nan)).values()
    assert np.isnan(nothing.value)
    assert "unknown" in nothing.verdict
