import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare
from judgekit.data.tables import COMPARISON
from judgekit.errors import DataError, UsageError


def tables(n=120, runs=("bm25",), labelings=None, measures=("nDCG@5",), depth=5, seed=0, binary=True):
    """Scores whose noise per labeling is given, against quality."""
    labelings = {"good": 0.5, "poor": 3.0} if labelings is None else labelings
    rng = np.random.default_rng(seed)
    scores, quality = [], []
    for run in runs:
        latent = rng.normal(size=n)
        value = (latent > 0).astype(float) if binary else latent
        ids = [f"q{i:04d}" for i in range(n)]
        quality.append(
            pd.DataFrame({"run": run, "depth": depth, "model": "m", "query_id": ids, "metric": "em", "value": value})
        )
        for name, noise in labelings.items():
            for measure in measures:
                score = np.round(latent + noise * rng.normal(size=n), 1)
                scores.append(
                    pd.DataFrame({"labeling": name, "run": run, "measure": measure, "query_id": ids, "value": score})
                )
    return pd.concat(scores, ignore_index=True), pd.concat(quality, ignore_index=True)


def test_the_table_has_one_row_per_coefficient_and_the_columns_of_the_schema():
    result = compare(*tables(), resamples=200)
    assert list(result.table.columns) == list(COMPARISON.columns)
    assert len(result.table) == 2 * 4
    assert set(result.table["coefficient"]) == {"concordance", "tau_b", "rho", "r"}
    assert (result.table["ci_low"] <= result.table["value"]).all()
    assert (result.table["n"] == 120).all()


def test_the_better_labeling_wins_and_equal_ones_do_not():
    assert compare(*tables(n=400), resamples=300).verdict.winner == "good"
    same = compare(*tables(n=100, labelings={"a": 1.0, "b": 1.0}), resamples=300)
    assert same.verdict.winner is None
    assert "cannot be told apart" in same.verdict.text


def test_nothing_depends_on_row_order():
    scores, quality = tables(runs=("bm25", "dense"))
    one = compare(scores, quality, resamples=200)
    two = compare(scores.sample(frac=1, random_state=1), quality.sample(frac=1, random_state=2), resamples=200)
    pd.testing.assert_frame_equal(one.table, two.table)
    assert one.verdict == two.verdict


def test_the_seed_decides_the_intervals_and_nothing_else():
    data = tables()
    one, two = compare(*data, resamples=200, seed=1), compare(*data, resamples=200, seed=2)
    assert (one.table["value"] == two.table["value"]).all()
    assert (one.table["ci_low"] != two.table["ci_low"]).any()


def test_a_measure_at_a_cutoff_meets_quality_at_that_depth_only():
    scores, quality = tables(measures=("nDCG@5", "nDCG@10", "AP"))
    table = compare(scores, pd.concat([quality, quality.assign(depth=3)]), resamples=100).table
    assert set(zip(table["measure"], table["depth"], strict=True)) == {("nDCG@5", 5), ("AP", 3), ("AP", 5)}


def test_a_labeling_that_costs_more_than_five_percent_is_left_out_with_a_warning():
    scores, quality = tables(labelings={"good": 0.5, "holes": 0.1, "poor": 3.0})
    holes = (scores["labeling"] == "holes") & (scores["query_id"] < "q0012")
    result = compare(scores.assign(value=scores["value"].mask(holes)), quality, resamples=100)
    assert result.verdict.winner == "good"
    assert "holes" in result.verdict.excluded
    assert any("'holes'" in w and "10.0%" in w for w in result.warnings)
    n = result.table.drop_duplicates(["labeling"]).set_index("labeling")["n"]
    assert n.to_dict() == {"good": 120, "holes": 108, "poor": 120}


def test_a_few_missing_values_shrink_the_joint_set_for_all():
    scores, quality = tables()
    hole = (scores["labeling"] == "poor") & (scores["query_id"] < "q0003")
    result = compare(scores.assign(value=scores["value"].mask(hole)), quality, resamples=100)
    assert (result.table["n"] == 117).all()


def test_the_outcome_by_construction_never_wins():
    scores, quality = tables(labelings={"erag": 0.0, "good": 0.5, "poor": 3.0}, measures=("P@1",), depth=1)
    result = compare(scores, quality, resamples=100, by_construction={("erag", "m", "em")})
    assert result.verdict.winner == "good"
    assert "erag" in result.verdict.excluded
    flags = result.table.drop_duplicates("labeling").set_index("labeling")["flags"]
    assert "by_construction" in flags["erag"]
    assert "by_construction" not in flags["good"]


def test_a_constant_series_is_undefined_with_the_reason():
    scores, quality = tables()
    flat = scores.assign(value=scores["value"].where(scores["labeling"] != "poor", 1.0))
    rows = compare(flat, quality, resamples=100).table.query("labeling == 'poor'")
    assert rows["value"].isna().all()
    assert set(rows["undefined_reason"]) == {"the scores are constant"}


def test_means_are_ignored_and_only_means_are_an_error():
    scores, quality = tables()
    means = scores.assign(query_id="all").drop_duplicates(["labeling", "measure", "run"])
    with_means = compare(pd.concat([scores, means]), quality, resamples=100)
    pd.testing.assert_frame_equal(with_means.table, compare(scores, quality, resamples=100).table)
    with pytest.raises(DataError, match="--per-query"):
        compare(means, quality)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": ["querry"]}, "Did you mean 'query'"),
        ({"measures": ["nDCG@6"]}, "no measure 'nDCG@6'"),
        ({"depths": [7]}, "there is no quality at depth 7"),
        ({"primary": "P@5"}, "'P@5'"),
        ({"primary_metric": "f1"}, "'f1'"),
        ({"resamples": 5}, "at least 100"),
    ],
)
def test_what_is_not_there_is_a_sentence(change, message):
    with pytest.raises(UsageError, match=message):
        compare(*tables(), **change)


def test_tables_that_do_not_meet_are_a_sentence():
    scores, quality = tables()
    with pytest.raises(DataError, match="no run has both"):
        compare(scores, quality.assign(run="other"))
    with pytest.raises(DataError, match="no query has both"):
        compare(scores, quality.assign(query_id="x" + quality["query_id"]))
    with pytest.raises(DataError, match="two values for"):
        compare(pd.concat([scores, scores]), quality)
    with pytest.raises(DataError, match="no measure can be paired"):
        compare(scores, quality.assign(depth=10))
