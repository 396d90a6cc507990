import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare
from judgekit.analysis.models import model_matrix
from judgekit.errors import DataError, UsageError


def tables(labelings, models=("small",), depths=(5,), measures=("nDCG@5",), n=150, seed=0):
    """Every labeling and model sees the same latent quality through noise of its own."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i:03d}" for i in range(n)]
    latent = rng.normal(size=n)
    scores = [
        pd.DataFrame(
            {"labeling": name, "run": "r", "measure": m, "query_id": ids, "value": latent + rng.normal(size=n)}
        )
        for name in labelings
        for m in measures
    ]
    quality = [
        pd.DataFrame(
            {"run": "r", "depth": d, "model": m, "query_id": ids, "metric": "em",
             "value": (latent + 0.5 * rng.normal(size=n) > 0).astype(float)}
        )
        for m in models
        for d in depths
    ]  # fmt: skip
    return pd.concat(scores, ignore_index=True), pd.concat(quality, ignore_index=True)


MODELS = {"erag-small": "small", "erag-large": "large", "judge-small": "small"}
METHODS = {"erag-small": "erag", "erag-large": "erag", "judge-small": "judge"}


def matrix(**change):
    given = {"label_models": MODELS, "methods": METHODS, "measure": "nDCG@5", "metric": "em", "depth": 5}
    return model_matrix(*tables(MODELS, ("small", "large")), **{**given, "resamples": 200, **change})


def test_the_matrix_has_every_label_model_against_every_answer_model():
    table = matrix().table
    assert len(table) == 6
    diagonal = table[table["same_model"]]
    assert set(zip(diagonal["labeling"], diagonal["label_model"], strict=True)) == {
        ("erag", "small"), ("erag", "large"), ("judge", "small"),
    }  # fmt: skip
    assert (table["ci_low"] < table["value"]).all()


@pytest.mark.parametrize("jury", [("small", "other"), ("other", "small")])
def test_a_jury_shares_the_model_of_each_of_its_members(jury):
    table = matrix(label_models={**MODELS, "judge-small": jury}).table
    mine = table[table["labeling"] == "judge"]
    assert set(mine["label_model"]) == {" + ".join(jury)}
    assert list(mine["answer_model"][mine["same_model"]]) == ["small"]


def test_cells_that_share_a_model_are_tested_against_each_other():
    found = matrix().differences
    assert len(found[found["labeling"] == "erag"]) == 4
    assert len(found[found["labeling"] == "judge"]) == 1
    assert (found["p_holm"] >= found["p"]).all()
    row = found[(found["labeling"] == "erag") & (found["varies"] == "answer_model") & (found["fixed"] == "small")].iloc[
        0
    ]
    values = matrix().table.set_index(["labeling", "label_model", "answer_model"])["value"]
    assert row["difference"] == pytest.approx(
        values["erag", "small", row["first"]] - values["erag", "small", row["second"]]
    )


def test_models_are_compared_on_the_queries_that_all_of_them_answered():
    scores, quality = tables(MODELS, ("small", "large"))
    gap = (quality["model"] == "large") & (quality["query_id"] < "q010")
    found = model_matrix(
        scores, quality.assign(value=quality["value"].mask(gap)), label_models=MODELS, methods=METHODS,
        measure="nDCG@5", metric="em", depth=5, resamples=100,
    )  # fmt: skip
    assert set(found.table["n"]) == {140}


def test_what_the_matrix_cannot_be_made_of_is_a_sentence():
    with pytest.raises(UsageError, match="unknown level 'queries'"):
        matrix(level="queries")
    with pytest.raises(DataError, match="at depth 3"):
        matrix(depth=3)
    with pytest.raises(UsageError, match="give them different names"):
        matrix(methods=dict.fromkeys(MODELS, "one"))


def test_a_cell_says_what_the_comparison_of_the_same_tables_says():
    rng = np.random.default_rng(1)
    runs, ids = [f"r{i}" for i in range(6)], [f"q{i:03}" for i in range(80)]
    at = pd.MultiIndex.from_product([["a", "b"], runs, ids], names=["labeling", "run", "query_id"]).to_frame(
        index=False
    )
    scores = at.assign(measure="P@5", value=rng.random(len(at)))
    at = pd.MultiIndex.from_product([runs, ids], names=["run", "query_id"]).to_frame(index=False)
    # Only on a few queries do runs differ in quality, and only those count within queries.
    quality = at.assign(
        depth=5, model="m", metric="em", value=np.where(at["query_id"] < "q006", rng.random(len(at)), 1)
    )
    given = {"label_models": {"a": "x", "b": "y"}, "methods": {"a": "judge", "b": "judge"}, "measure": "P@5"}
    for level in ("within-query", "system"):
        found = model_matrix(scores, quality, **given, metric="em", depth=5, level=level, resamples=200)
        result = compare(scores, quality, primary="P@5", resamples=200)
        table = result.table.query(f"level == '{level}' and coefficient == 'concordance'").sort_values("labeling")
        columns = ["value", "ci_low", "ci_high", "n"]
        np.testing.assert_array_equal(found.table[columns], table[columns])
        gap = result.differences.query(f"level == '{level}' and coefficient == 'concordance'")
        columns = ["difference", "ci_low", "ci_high", "p"]
        np.testing.assert_allclose(found.differences[columns], gap[columns], rtol=1e-12)
