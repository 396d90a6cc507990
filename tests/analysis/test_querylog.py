import numpy as np
import pytest

from judgekit.analysis.querylog import check_query_log, machine_made
from judgekit.errors import DataError

WHO = ["who wrote", "who sang", "who directed", "when did", "where is", "what is the capital of"]
WHAT = ["hamlet", "the beatles", "france", "the river nile", "star wars", "the moon landing", "peru", "mozart"]
SHOP = ["cheap flights to", "best price for", "buy", "review of", "coupon for"]


def questions(n, starts, seed):
    rng = np.random.default_rng(seed)
    return [f"{rng.choice(starts)} {rng.choice(WHAT)} {rng.integers(1000)}" for _ in range(n)]


def test_queries_of_one_kind_are_mixed():
    found = check_query_log(questions(120, WHO, 1), questions(200, WHO, 2), permutations=100)
    assert found.auc == pytest.approx(0.5, abs=0.1)
    assert found.p > 0.05
    assert not found.separated
    assert "look like" in found.sentence


def test_queries_of_another_kind_separate_with_an_example_of_each():
    found = check_query_log(questions(80, WHO, 1), questions(80, SHOP, 2), permutations=100)
    assert found.auc > 0.95
    assert found.p == pytest.approx(1 / 101)
    assert found.separated
    assert found.unlike_log[0].startswith(tuple(WHO))
    assert found.unlike_queries[0].startswith(tuple(SHOP))
    assert found.unlike_log[0] in found.examples


def test_the_p_value_is_right_where_there_is_no_difference():
    p = [check_query_log(questions(40, WHO, s), questions(40, WHO, s + 100), permutations=39).p for s in range(40)]
    assert np.mean(np.array(p) <= 0.1) <= 0.25
    assert np.mean(p) == pytest.approx(0.5, abs=0.17)


def test_the_result_depends_on_the_seed_and_not_on_the_order():
    mine, log = questions(50, WHO, 1), questions(60, SHOP + WHO, 2)
    assert check_query_log(mine, log, permutations=50) == check_query_log(mine[::-1], log[::-1], permutations=50)


def test_long_logs_are_sampled_and_short_ones_refused():
    with pytest.raises(DataError, match="log has 3 queries"):
        check_query_log(questions(30, WHO, 1), ["a", "b", "c", "  "])
    found = check_query_log(questions(30, WHO, 1), questions(2300, WHO, 2), permutations=20)
    assert found.log == 2000


def test_the_clusters_in_which_they_differ_come_with_queries_of_both_sides():
    mine = questions(150, WHO, 1)
    log = questions(150, WHO, 2) + questions(150, SHOP, 3)
    found = check_query_log(mine, log, permutations=50)
    assert sum(one.queries for one in found.clusters) == pytest.approx(1)
    assert sum(one.log for one in found.clusters) == pytest.approx(1)
    worst = found.differing[0]
    assert worst.log - worst.queries > 0.1
    assert all(text.startswith(tuple(SHOP)) for text in worst.of_log)
    assert repr(worst.of_log[0]) in found.examples
    assert found.differing[0].p_holm < 0.001


def test_clusters_of_queries_of_one_kind_do_not_differ():
    differ = [
        bool(check_query_log(questions(60, WHO, s), questions(90, WHO, s + 50), permutations=5).differing)
        for s in range(10, 20)
    ]
    assert sum(differ) <= 2, "one in twenty on average"


TEMPLATE = ["What is the main purpose of", "What are the key benefits of", "How does the process of"]


def test_queries_that_look_machine_made_beside_a_log_are_a_hint_and_no_more():
    rng = np.random.default_rng(1)
    made = [f"{rng.choice(TEMPLATE)} {rng.choice(WHAT)} according to the text?" for _ in range(100)]
    found = check_query_log(made, questions(100, WHO, 2), permutations=5)
    assert found.hint.startswith("A hint, not a verdict: the evaluation queries may be machine-made")
    assert "100% begin with a capital" in found.hint
    assert check_query_log(questions(100, WHO, 1), questions(100, WHO, 2), permutations=5).hint == ""


def test_a_log_of_short_queries_does_not_make_others_poor_in_words():
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(400)]
    short, long = ([" ".join(rng.choice(words, size)) for _ in range(200)] for size in (2, 9))
    assert not any("few words" in sign for sign in machine_made(sorted(long), sorted(short), rng))


def test_queries_that_are_all_the_same_have_no_clusters_or_one_of_each():
    assert check_query_log(["a"] * 20, ["a"] * 20, permutations=5).clusters == ()
    found = check_query_log(["a"] * 20, ["b"] * 25, permutations=5)
    assert [(one.of_queries, one.of_log) for one in found.differing] in (
        [(("a",), ()), ((), ("b",))],
        [((), ("b",)), (("a",), ())],
    )
