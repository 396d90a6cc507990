from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.errors import DataError

SAMPLE = {"q4": 4.0, "q0": 1.0, "q3": 2.5, "q5": 1.0}
LABELERS = ["containment", "judge"]


def write(path: Path, weights: dict[str, float]) -> str:
    path.write_text("query_id,weight\n" + "".join(f"{q},{w}\n" for q, w in weights.items()))
    return str(path)


def test_means_of_runs_are_weighted_and_nothing_else(finish, tmp_path):
    equal = dict.fromkeys(SAMPLE, 1.0)
    weighted = finish(LABELERS, "a", data={"sample": write(tmp_path / "a.csv", SAMPLE)})
    plain = finish(LABELERS, "b", data={"sample": write(tmp_path / "b.csv", equal)})
    assert sorted(weighted.labelings["judge"].table["query_id"].unique()) == sorted(SAMPLE)
    pd.testing.assert_frame_equal(weighted.comparison.table, plain.comparison.table)
    claims = weighted.comparison.decision.record()["claims"]
    drawn = [claim for claim in claims if claim["kind"] == "drawn"]
    assert [claim["qualifies"] for claim in drawn] == ["choose"], "and the decision says that questions were drawn"
    claims.remove(drawn[0])
    assert claims == plain.comparison.decision.record()["claims"]

    for made, weights in ((weighted, SAMPLE), (plain, equal)):
        scores, keys = made.scores, ["labeling", "run", "measure"]
        mean = scores[scores["query_id"] == "all"].set_index(keys)["value"]
        assert made.results.scores["value"].tolist() == mean.tolist()
        each = scores[scores["query_id"] != "all"]
        for rows, means, by in (
            (each, mean, keys),
            (made.quality, made.results.quality.set_index("run")["value"], "run"),
        ):
            for key, some in rows.groupby(by):
                expected = np.average(some["value"], weights=[weights[q] for q in some["query_id"]])
                assert means[key] == pytest.approx(expected)
    assert not np.allclose(weighted.results.quality["value"], plain.results.quality["value"])
    assert "are a sample" in (tmp_path / "a" / "report.html").read_text()
    assert "a.csv" in (tmp_path / "a" / "manifest.json").read_text()


def test_the_first_of_a_sample_stand_in_the_order_of_the_queries(finish, tmp_path):
    made = finish(LABELERS, data={"sample": write(tmp_path / "a.csv", SAMPLE), "limit": 3})
    assert sorted(made.labelings["judge"].table["query_id"].unique()) == ["q0", "q3", "q4"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("query_id,weight\nq0,1\nq9,1\n", "names query 'q9', which is not in the queries"),
        ("query_id,weight\nq0,1\nq0,1\n", "names a query twice"),
        ("query_id,weight\nq0,0\n", "weight of query 'q0' is not above 0"),
        ("query_id,weight\nq0,\n", "weight of query 'q0' is not above 0"),
        ("query_id,weight\n", "names no query"),
        ("query_id\nq0\n", "columns query_id, weight"),
    ],
)
def test_what_is_no_sample_is_refused(finish, tmp_path, content, message):
    (tmp_path / "sample.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        finish(LABELERS, data={"sample": str(tmp_path / "sample.csv")})
