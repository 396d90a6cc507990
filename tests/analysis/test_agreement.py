import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.agreement import agreement
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import DataError


def labeling(name, values, scale="grades:3", queries=10, status=None):
    n = len(values)
    frame = pd.DataFrame(
        {
            "query_id": [f"q{i % queries}" for i in range(n)],
            "doc_id": [f"d{i:04d}" for i in range(n)],
            "relevance": np.asarray(values, dtype=float),
            "status": status or ["ok"] * n,
        }
    )
    return Labeling(name, Scale.parse(scale), frame)


def values(result, on="labels"):
    table = result.table[result.table["on"] == on]
    return table.set_index("coefficient")["value"].to_dict()


def graded(seed=0, n=200):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    return a, np.clip(a + rng.integers(-1, 2, n), 0, 3)


@pytest.mark.parametrize(
    ("scale", "levels"), [("grades:3", {"nominal", "ordinal", "interval"}), ("unit", {"interval"})]
)
@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_that_of_the_krippendorff_package(seed, scale, levels):
    krippendorff = pytest.importorskip("krippendorff")
    a, b = graded(seed)
    if scale == "unit":
        a, b = (each / 4 + np.random.default_rng(seed).random(len(each)) / 4 for each in (a, b))
    got = values(agreement([labeling("a", a, scale), labeling("b", b, scale)], resamples=100))
    assert {name[6:] for name in got if name.startswith("alpha")} == levels
    for level in levels:
        expected = krippendorff.alpha(reliability_data=[a, b], level_of_measurement=level)
        assert got[f"alpha_{level}"] == pytest.approx(expected, abs=1e-12)


def test_cohens_table_of_25_and_25_gives_the_textbook_kappa():
    """20 both yes, 15 both no, 5 and 10 mixed: observed .7, expected .5, kappa .4."""
    a = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    got = values(agreement([labeling("a", a, "binary"), labeling("b", b, "binary")], resamples=100), "relevance")
    assert got["agreement"] == pytest.approx(0.7)
    assert got["kappa"] == pytest.approx(0.4)
    assert got["prevalence"] == pytest.approx((20 - 15) / 50)
    assert got["bias"] == pytest.approx((5 - 10) / 50)
    mean = (0.5 + 0.6) / 2
    chance = 2 * mean * (1 - mean)
    assert got["ac1"] == pytest.approx((0.7 - chance) / (1 - chance))


def test_weighted_kappas_follow_their_definition():
    a, b = graded(7, 80)
    got = values(agreement([labeling("a", a), labeling("b", b)], resamples=100))
    for name, power in (("kappa_linear", 1), ("kappa_quadratic", 2)):
        observed = np.mean(np.abs(a - b) ** power)
        expected = np.mean(np.abs(a[:, None] - b) ** power)
        assert got[name] == pytest.approx(1 - observed / expected, abs=1e-12)


def test_against_people_there_are_precision_and_recall_and_people_come_second():
    human = labeling("human", [1, 1, 1, 0, 0, 0, 0, 0], "binary", queries=2)
    judge = labeling("judge", [3, 2, 0, 2, 1, 0, 0, 1], "grades:3:2", queries=2)
    result = agreement([human, judge], people=["human"], resamples=100)
    assert set(result.table["first"]) == {"judge"}
    got = values(result, "relevance")
    assert got["precision"] == pytest.approx(2 / 3)
    assert got["recall"] == pytest.approx(2 / 3)
    assert "labels" not in set(result.table["on"])
    assert "precision" not in values(agreement([human, judge], resamples=100), "relevance")


def test_only_pairs_that_both_labelled_count_and_the_others_are_counted():
    a = labeling("a", [1, 0, 1, 0, np.nan], "binary", status=["ok"] * 4 + ["failed"])
    b = labeling("b", [1, 0, 0, 1], "binary")
    result = agreement([a, b], resamples=100)
    assert result.coverage.iloc[0].to_dict() == {
        "first": "a", "second": "b", "both": 4, "only_first": 0, "only_second": 0,
    }  # fmt: skip
    assert (result.table["pairs"] == 4).all()


def test_intervals_keep_the_pairs_of_a_query_together():
    """With one query per pair the interval is that of pairs; with few queries it is wider."""
    rng = np.random.default_rng(1)
    said = rng.integers(0, 2, 20)

    def width(queries):
        b = said[np.arange(400) % queries % 20]
        two = [labeling(name, v, "binary", queries) for name, v in (("a", np.ones(400)), ("b", b))]
        row = agreement(two, resamples=300).table.set_index("coefficient").loc["agreement"]
        return row["ci_high"] - row["ci_low"]

    assert width(20) > 2 * width(400)


def test_constant_labels_and_no_common_pair_have_a_reason():
    same = agreement([labeling("a", [1, 1], "binary"), labeling("b", [1, 1], "binary")], resamples=100).table
    assert same.set_index("coefficient").loc["kappa", "undefined_reason"] == "both labelings are constant"
    a, b = labeling("a", [1, 0], "binary"), labeling("b", [1], "binary", queries=1)
    other = Labeling("b", Scale("binary"), b.table.assign(doc_id="elsewhere"))
    none = agreement([a, other], resamples=100).table
    assert set(none["undefined_reason"]) == {"no pair has both labels"}
    with pytest.raises(DataError, match="two labelings are named 'a'"):
        agreement([a, a])


def test_tables_without_rows_have_the_columns_of_those_with_rows():
    two = agreement([labeling("a", [0, 0, 3, 3]), labeling("b", [0, 2, 3, 3])], resamples=100)
    counts = two.confusion.set_index(["first_label", "second_label"])["pairs"].to_dict()
    assert counts == {(0, 0): 1, (0, 2): 1, (3, 3): 2}
    unlike = agreement([labeling("a", [0, 1], "unit"), labeling("b", [1, 0])], resamples=100)
    for less in (agreement([labeling("a", [0, 1])], resamples=100), unlike):
        assert less.table.empty
        for name in ("table", "confusion", "coverage"):
            assert list(getattr(less, name).columns) == list(getattr(two, name).columns)
