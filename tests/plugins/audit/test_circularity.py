import numpy as np
import pytest

from judgekit.plugins.audit.audited_run import read
from judgekit.plugins.audit.circularity import circularity, reranked

RUNS, QUERIES = 6, 30
UNITS = np.arange(QUERIES)
BASE = np.random.default_rng(2).random((RUNS, QUERIES))
TOP = np.full(QUERIES, 2.0)


@pytest.mark.parametrize(("real", "flag"), [(-0.1, "inflates"), (0.1, ""), (0.12, "")])
def test_labels_inflate_where_they_see_more_gain_than_the_reference(real: float, flag: str) -> None:
    truth = (BASE[::-1], BASE[::-1] + real)
    numbers = {number.statistic: number for number in circularity(BASE, BASE + 0.1, TOP, truth, units=UNITS)}
    names = ("gain by these labels", "gain by the reference", "gain too much", "runs at the maximum")
    assert [numbers[name].value for name in names] == pytest.approx([0.1, real, 0.1 - real, 0])
    over = numbers["gain too much"]
    assert (over.flag, "not shown to be above 0" in over.verdict) == (flag, not flag)
    assert over.low <= over.value <= over.high


def test_a_gain_that_may_be_chance_is_no_inflation() -> None:
    noise = np.where(np.arange(QUERIES) % 2, 0.31, -0.29)
    over = circularity(BASE, BASE + noise, TOP, (BASE, BASE), units=UNITS)[2]
    assert (over.value, over.low < 0, over.flag) == (pytest.approx(0.01), True, "")


def test_without_a_reference_the_gain_is_shown_and_nothing_is_claimed_of_it() -> None:
    numbers = circularity(BASE, BASE + 0.1, TOP, None, units=UNITS)
    assert [number.statistic for number in numbers] == ["gain by these labels", "runs at the maximum"]
    assert numbers[0].value == pytest.approx(0.1)
    assert "is unknown" in numbers[0].verdict


@pytest.mark.parametrize(("full", "flag"), [(3, ""), (4, "saturated")])
def test_labels_are_saturated_if_more_than_half_of_the_runs_reach_the_maximum(full: int, flag: str) -> None:
    again = np.concatenate([np.full((full, QUERIES), 2.0), BASE[full:]])
    (_, most) = circularity(BASE, again, TOP, None, units=UNITS)
    assert (most.value, most.flag) == (full, flag)


def test_re_ranking_keeps_the_order_of_ties_and_puts_what_has_no_label_last(finished) -> None:
    material = read(finished / "out")
    query = material.queries[0]
    before = material.collection.runs[0].top(query)
    labels = dict(zip(before, [0.0, 1.0, np.nan, 0.0, 1.0, 1.0], strict=True))
    material.values["hash"] = np.array([labels.get(d, 0.0) if q == query else 0.0 for q, d in material.pairs])
    after = reranked(material, "hash", material.collection.runs[0]).top(query)
    assert after == [before[i] for i in (1, 4, 5, 0, 3, 2)]
