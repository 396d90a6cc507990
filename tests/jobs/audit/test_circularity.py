import numpy as np
import pytest

from judgekit.jobs.audit.audited_run import read
from judgekit.jobs.audit.circularity import circularity, reranked

QUERIES = 30
UNITS = np.arange(QUERIES)
GAIN = np.full(QUERIES, 0.1)


@pytest.mark.parametrize(("real", "flag"), [(-0.1, "inflates"), (0.1, ""), (0.12, "")])
def test_labels_inflate_where_they_see_more_gain_than_the_reference(real: float, flag: str) -> None:
    numbers = circularity(GAIN, np.full(QUERIES, real), 1.0, units=UNITS)
    assert [number.statistic for number in numbers] == [
        *("gain by these labels", "gain by the reference", "gain too much")
    ]
    assert [number.value for number in numbers] == pytest.approx([0.1, real, 0.1 - real])
    over = numbers[-1]
    assert (over.flag, "not shown to be above 0" in over.verdict) == (flag, not flag)
    assert over.low <= over.value <= over.high


def test_a_gain_that_may_be_chance_is_no_inflation() -> None:
    noise = np.where(np.arange(QUERIES) % 2, 0.31, -0.29)
    over = circularity(noise, np.zeros(QUERIES), 1.0, units=UNITS)[2]
    assert (over.value, over.low < 0, over.flag) == (pytest.approx(0.01), True, "")


def test_without_a_reference_the_gain_is_shown_and_nothing_is_claimed_of_it() -> None:
    (number,) = circularity(GAIN, None, 1.0, units=UNITS)
    assert (number.statistic, number.value) == ("gain by these labels", pytest.approx(0.1))
    assert "nobody knows how much" in number.verdict


def test_re_ranking_keeps_the_order_of_ties_and_puts_what_has_no_label_last(finished) -> None:
    material = read(finished / "out")
    query = material.queries[0]
    before = material.collection.runs[0].top(query)
    labels = dict(zip(before, [0.0, 1.0, np.nan, 0.0, 1.0, 1.0], strict=True))
    material.values["hash"] = np.array([labels.get(d, 0.0) if q == query else 0.0 for q, d in material.pairs])
    after = reranked(material, "hash", material.collection.runs[0]).top(query)
    assert after == [before[i] for i in (1, 4, 5, 0, 3, 2)]
