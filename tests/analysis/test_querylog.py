import numpy as np
import pytest

from judgekit.analysis.querylog import check_query_log
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
