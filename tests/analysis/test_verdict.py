import math

import pytest

from judgekit.analysis.differences import Difference
from judgekit.analysis.primary import Primary
from judgekit.analysis.verdict import Candidate, decide

CELL = Primary("nDCG@5", "em", "model", 5, "query", "all")


def gap(value, se=0.02):
    z = abs(value) / se
    p = math.erfc(z / math.sqrt(2))
    return Difference(value, value - 1.96 * se, value + 1.96 * se, p, se, value + 1.645 * se, "t")


def verdict(values, se=0.02, orders=None, taus=None, interval=True, **change):
    low, high = (-1.96 * se, 1.96 * se) if interval else (math.nan, math.nan)
    candidates = [
        Candidate(name, v, (taus or values)[name], (orders or {}).get(name), "", v + low, v + high)
        for name, v in values.items()
    ]
    given = {"margin": 0.05, "queries": 300, "confidence": 0.95, "excluded": {}, **change}
    return decide(candidates, lambda a, b: gap(values[a] - values[b], se), CELL, **given)


def test_a_winner_beats_every_other_one():
    found = verdict({"a": 0.8, "b": 0.7, "c": 0.6})
    assert found.winner == found.best == "a"
    assert found.ranking == ("a", "b", "c")
    assert found.worse == ("b", "c")
    assert found.not_told_apart == ()
    assert found.headline.startswith("On 300 queries, 'a' predicts answer quality best")
    assert "80 times in 100" in found.headline


def test_without_an_interval_nothing_is_shown_to_be_better_than_chance():
    found = verdict({"a": 0.8, "b": 0.7}, interval=False)
    assert (found.best, found.winner, found.predictive) == ("a", None, False)
    assert "no labeling is shown to predict answer quality better than chance" in found.headline
    assert "is open (concordance 0.800, without an interval: too many resamples leave it undefined)" in found.text


def test_no_winner_where_one_other_is_too_close():
    found = verdict({"a": 0.80, "b": 0.79, "c": 0.6})
    assert found.winner is None
    assert found.best == "a"
    assert found.not_told_apart == ("b",)
    assert found.worse == ("c",)
    assert "there is no winner: 'a' and 'b' cannot be told apart" in found.headline
    assert "better beyond chance than 'c'" in found.text


def test_a_difference_that_holm_does_not_carry_is_not_claimed_without_a_winner():
    """c differs at .03, too little among three comparisons; so the best is told apart from nobody."""
    found = verdict({"a": 0.80, "b": 0.79, "c": 0.80 - 0.0434, "d": 0.795})
    assert found.worse == ()
    assert set(found.not_told_apart) == {"b", "c", "d"}


def test_equal_labelings_are_not_told_apart():
    found = verdict({"a": 0.7, "b": 0.7})
    assert found.winner is None
    assert "cannot be told apart" in found.text
    assert "too close" in found.text
    assert found.queries_needed == {"b": None}


@pytest.mark.parametrize("se", [0.0, math.nan])
def test_a_large_difference_without_an_error_is_not_called_too_close(se):
    nothing = Difference(0.9, math.nan, math.nan, math.nan, se, math.nan, "")
    candidates = [Candidate("a", 1.0, 1.0), Candidate("b", 0.1, -0.5)]
    found = decide(candidates, lambda a, b: nothing, CELL, margin=0.05, queries=3, confidence=0.95, excluded={})
    assert "too close" not in found.text
    assert "How many queries would settle it against 'b' cannot be said from so few." in found.text


def test_how_many_more_queries_would_settle_it():
    found = verdict({"a": 0.73, "b": 0.70})
    expected = math.ceil(300 * ((2.004654 + 0.841621) * 0.02 / 0.03) ** 2)
    assert found.queries_needed == {"b": expected}
    assert f"About {expected:,} queries" in found.text


def test_the_cheapest_within_the_margin_needs_the_bound_not_the_difference():
    values, orders = {"a": 0.80, "b": 0.78, "c": 0.6}, {"c": 1, "b": 2, "a": 3}
    assert verdict(values, se=0.01, orders=orders).cheapest == "b"
    assert verdict(values, se=0.02, orders=orders).cheapest == "a"
    assert "No cheaper labeling" in verdict(values, se=0.02, orders=orders).text
    assert verdict(values).cheapest is None


def test_tau_that_orders_otherwise_is_said():
    values = {"a": 0.8, "b": 0.7, "c": 0.6}
    first = verdict(values, taus={"a": 0.4, "b": 0.5, "c": 0.3})
    assert first.by_tau == ("b", "a", "c")
    assert "tau-b would put 'b' first (b, a, c)" in first.text
    below = verdict(values, taus={"a": 0.5, "b": 0.3, "c": 0.4})
    assert "tau-b orders them otherwise (a, c, b)" in below.text
    assert "tau-b" not in verdict(values).text


def test_who_takes_no_part_is_said():
    found = verdict({"a": 0.8}, excluded={"erag": "its labels are the outcome by construction"})
    assert "'erag' takes no part: its labels are the outcome by construction." in found.text
    assert "only labeling" in found.headline
    assert found.winner is None


def test_nothing_to_look_at_and_obstacles_are_said():
    assert "No labeling has a concordance" in verdict({}).text.replace("no labeling", "No labeling")
    found = verdict({"a": 0.8, "b": 0.1}, obstacle="The system level needs at least 5 runs.")
    assert found.best is None
    assert found.winner is None
    assert found.headline.startswith("No verdict on nDCG@5")


def test_an_undefined_difference_is_no_proof():
    undefined = Difference(0.2, math.nan, math.nan, math.nan, math.nan, math.nan, "")
    found = decide(
        [Candidate("a", 0.8, 0.5), Candidate("b", 0.6, 0.2)], lambda a, b: undefined, CELL,
        margin=0.05, queries=50, confidence=0.95, excluded={},
    )  # fmt: skip
    assert found.winner is None
    assert found.not_told_apart == ("b",)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_ties_in_value_are_ordered_by_name(order):
    assert verdict(dict.fromkeys(order, 0.7)).ranking == ("a", "b")
