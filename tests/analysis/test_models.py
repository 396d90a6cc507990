import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import Rules, compare
from judgekit.analysis.models import model_matrix
from judgekit.errors import DataError, UsageError
from tests.analysis.worlds import noisy

MODELS = {"erag-small": "small", "erag-large": "large", "judge-small": "small"}
METHODS = {"erag-small": "erag", "erag-large": "erag", "judge-small": "judge"}
SCORES, SMALL = noisy(150, labelings=dict.fromkeys(MODELS, 1.0))
OTHER = np.random.default_rng(1).random(150) < 0.2
LARGE = SMALL.assign(value=np.where(OTHER, 1 - SMALL["value"], SMALL["value"]))
QUALITY = pd.concat([SMALL.assign(model="small"), LARGE.assign(model="large")], ignore_index=True)


def matrix(quality=QUALITY, **change):
    given = {"label_models": MODELS, "methods": METHODS, "measure": "nDCG@5", "metric": "em", "depth": 5}
    return model_matrix(SCORES, quality, Rules(resamples=200), **{**given, **change})


def test_the_matrix_has_every_label_model_against_every_answer_model():
    table = matrix().table
    assert len(table) == 6
    diagonal = table[table["same_model"]]
    assert set(zip(diagonal["labeling"], diagonal["label_model"], strict=True)) == {
        ("erag", "small"), ("erag", "large"), ("judge", "small"),
    }  # fmt: skip
    assert (table["ci_low"] < table["value"]).all()


def test_a_jury_shares_the_model_of_each_of_its_members():
    table = matrix(label_models={**MODELS, "judge-small": ("other", "small")}).table
    mine = table[table["labeling"] == "judge"]
    assert set(mine["label_model"]) == {"other + small"}
    assert list(mine["answer_model"][mine["same_model"]]) == ["small"]


def test_cells_that_share_a_model_are_tested_against_each_other():
    found = matrix().differences
    assert len(found[found["labeling"] == "erag"]) == 4
    assert len(found[found["labeling"] == "judge"]) == 1
    assert (found["p_holm"] >= found["p"]).all()
    row = found.query("labeling == 'erag' and varies == 'answer_model' and fixed == 'small'").iloc[0]
    values = matrix().table.set_index(["labeling", "label_model", "answer_model"])["value"]["erag", "small"]
    assert row["difference"] == pytest.approx(values[row["first"]] - values[row["second"]])


def test_models_are_compared_on_the_queries_that_all_of_them_answered():
    gap = (QUALITY["model"] == "large") & (QUALITY["query_id"] < "q0010")
    assert set(matrix(QUALITY.assign(value=QUALITY["value"].mask(gap))).table["n"]) == {140}


def test_what_the_matrix_cannot_be_made_of_is_a_sentence():
    with pytest.raises(UsageError, match="unknown level 'queries'"):
        matrix(level="queries")
    with pytest.raises(DataError, match="at depth 3"):
        matrix(depth=3)
    with pytest.raises(UsageError, match=r"two labelings are 'one' with labels of '(?!one)"):
        matrix(methods=dict.fromkeys(MODELS, "one"))


def test_a_cell_says_what_the_comparison_of_the_same_tables_says():
    scores, quality = noisy(80, tuple("abcdef"), {"a": 1.0, "b": 1.0}, ("P@5",))
    # Only on a few queries do runs differ in quality, and only those count within queries.
    quality["value"] = quality["value"].where(quality["query_id"] < "q0006", 1)
    given = {"label_models": {"a": "x", "b": "y"}, "methods": {"a": "judge", "b": "judge"}, "measure": "P@5"}
    for level in ("within-query", "system"):
        found = model_matrix(scores, quality, **given, metric="em", depth=5, level=level)
        result = compare(scores, quality, rules=Rules(primary="P@5"))
        table = result.table.query(f"level == '{level}' and coefficient == 'concordance'").sort_values("labeling")
        columns = ["value", "ci_low", "ci_high", "n"]
        np.testing.assert_array_equal(found.table[columns], table[columns])
        gap = result.differences.query(f"level == '{level}' and coefficient == 'concordance'")
        columns = ["difference", "ci_low", "ci_high", "p"]
        np.testing.assert_allclose(found.differences[columns], gap[columns], rtol=1e-12)
