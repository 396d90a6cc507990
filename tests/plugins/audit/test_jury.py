"""Is a jury worth it: votes that are made so that the answer is known, against formulas written out here."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from judgekit.analysis.coefficients import Floats
from judgekit.plugins.audit.jury import jury
from judgekit.plugins.audit.numbers import Number

QUERIES, EACH = 60, 20
GROUPS = np.repeat(np.arange(QUERIES) % 20, EACH)


def truth(seed: int = 0) -> Floats:
    return (np.random.default_rng(seed).random(QUERIES * EACH) < 0.4).astype(float)


def erring(right: Floats, members: int, rate: float, together: float, seed: int = 1) -> Floats:
    """Return votes that are wrong at a rate; with a chance ``together`` a member copies one common error."""
    rng = np.random.default_rng(seed)
    common = rng.random(len(right)) < rate
    own = rng.random((members, len(right))) < rate
    wrong = np.where(rng.random((members, len(right))) < together, common, own)
    return np.where(wrong, 1 - right, right)


def by_statistic(numbers: list[Number]) -> dict[str, Number]:
    return {number.statistic: number for number in numbers}


def kappa(said: Floats, right: Floats) -> float:
    agree = (said == right).mean()
    chance = said.mean() * right.mean() + (1 - said.mean()) * (1 - right.mean())
    return float((agree - chance) / (1 - chance))


def names(count: int) -> list[str]:
    return [f"judge {i}" for i in range(count)]


@pytest.mark.parametrize("together", [0.0, 0.7, 0.95])
def test_the_numbers_are_those_of_the_formulas(together: float) -> None:
    right = truth()
    votes = erring(right, 9, 0.25, together)
    found = by_statistic(jury(votes, right, GROUPS, names(9)))
    errors = votes != right
    shared = np.mean([np.corrcoef(errors[i], errors[j])[0, 1] for i, j in combinations(range(9), 2)])
    assert found["mean correlation of errors"].value == pytest.approx(shared)
    assert found["effective votes"].value == pytest.approx(9 / (1 + 8 * shared))
    assert found["kappa of the majority"].value == pytest.approx(kappa((votes.sum(axis=0) > 4).astype(float), right))
    assert found["kappa of the best single"].value == pytest.approx(max(kappa(row, right) for row in votes))
    for number in found.values():
        assert number.low <= number.value <= number.high


def test_the_best_single_is_chosen_where_it_is_not_tested() -> None:
    right = truth()
    votes = erring(right, 5, 0.3, 0.5)
    found = by_statistic(jury(votes, right, GROUPS, names(5)))
    said = np.empty_like(right)
    for group in range(20):
        inside = group == GROUPS
        best = max(range(5), key=lambda m: kappa(votes[m, ~inside], right[~inside]))
        said[inside] = votes[best, inside]
    expected = kappa((votes.sum(axis=0) > 2).astype(float), right) - kappa(said, right)
    assert found["majority minus best single"].value == pytest.approx(expected)


def test_nine_judges_that_err_alike_vote_like_two_and_add_nothing() -> None:
    right = truth()
    votes = erring(right, 9, 0.25, 0.62)
    found = by_statistic(jury(votes, right, GROUPS, names(9)))
    assert 1.5 < found["effective votes"].value < 3
    assert found["effective votes"].low <= 2.2 <= found["effective votes"].high
    copies = np.tile(votes[0], (9, 1))
    alike = by_statistic(jury(copies, right, GROUPS, names(9)))
    assert alike["effective votes"].value == pytest.approx(1)
    assert alike["majority minus best single"].value == 0
    assert alike["majority minus best single"].flag == "jury adds nothing"
    assert "use judge 0 alone" in alike["majority minus best single"].verdict


def test_a_jury_with_one_good_member_falls_behind_it() -> None:
    right = truth()
    votes = np.concatenate([erring(right, 1, 0.02, 0), erring(right, 4, 0.4, 0.9, seed=3)])
    gain = by_statistic(jury(votes, right, GROUPS, names(5)))["majority minus best single"]
    assert gain.high < 0
    assert gain.flag == "jury adds nothing"
    assert "is behind" in gain.verdict


def test_independent_judges_are_worth_their_number_and_beat_the_best_of_them() -> None:
    right = truth()
    found = by_statistic(jury(erring(right, 9, 0.25, 0.0), right, GROUPS, names(9)))
    assert found["effective votes"].value == pytest.approx(9, abs=1)
    gain = found["majority minus best single"]
    assert gain.low > 0.2
    assert not gain.flag


def test_the_published_correlation_gives_the_published_number_of_votes() -> None:
    # 33 judgment sets with a mean correlation of .436 are worth 2.2 votes, see the text of the check.
    right = truth()
    votes = erring(right, 33, 0.25, 0.66)
    found = by_statistic(jury(votes, right, GROUPS, names(33)))
    assert pytest.approx(2.2, abs=0.01) == 33 / (1 + 32 * 0.436)
    r = found["mean correlation of errors"]
    assert found["effective votes"].value == pytest.approx(33 / (1 + 32 * r.value))
    assert found["effective votes"].low == pytest.approx(33 / (1 + 32 * r.high))


def test_a_tied_majority_says_no() -> None:
    right = truth()
    votes = erring(right, 4, 0.3, 0.0)
    found = by_statistic(jury(votes, right, GROUPS, names(4)))
    assert found["kappa of the majority"].value == pytest.approx(kappa((votes.sum(axis=0) > 2).astype(float), right))


def test_a_member_that_never_errs_correlates_with_nobody() -> None:
    right = truth()
    found = by_statistic(jury(np.stack([right, 1 - right]), right, GROUPS, names(2)))
    assert "fewer than two members ever err" in found["effective votes"].verdict


def test_pairs_without_a_vote_or_a_reference_are_left_out() -> None:
    right = truth()
    votes = erring(right, 3, 0.2, 0.3)
    votes[1, :100], right[100:150] = np.nan, np.nan
    full = jury(votes[:, 150:], right[150:], GROUPS[150:], names(3))
    assert by_statistic(jury(votes, right, GROUPS, names(3)))["effective votes"].value == pytest.approx(
        by_statistic(full)["effective votes"].value
    )
    nothing = jury(votes, np.full_like(right, np.nan), GROUPS, names(3))
    assert np.isnan(nothing[0].value)
    assert "unknown" in nothing[0].verdict
