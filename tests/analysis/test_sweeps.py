import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare
from judgekit.analysis.sweeps import by_depth, by_prompt, cost_table, model_matrix, stack_datasets
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


def test_a_measure_with_cutoffs_is_one_series_over_depths():
    data = tables(["a"], depths=(1, 5, 10), measures=("nDCG@1", "nDCG@5", "nDCG@10", "AP", "P@5"))
    series = by_depth(compare(*data, resamples=100).table)
    taus = series[series["coefficient"] == "tau_b"]
    assert taus.groupby("family")["depth"].apply(list).to_dict() == {"AP": [1, 5, 10], "nDCG": [1, 5, 10]}


def test_labelings_that_differ_in_their_prompt_only_are_one_method():
    names = ["judge(endpoint=x, prompt=graded)", "judge(endpoint=x, prompt=yesno)", "containment", "my own labels!"]
    rows = by_prompt(compare(*tables(names), resamples=100).table)
    assert set(rows["method"]) == {"judge(endpoint=x)"}
    assert set(rows["prompt"]) == {"graded", "yesno"}


def test_data_sets_are_put_together_with_their_undefined_cells():
    data = tables(["a", "b"])
    one = compare(*data, resamples=100).table
    none = data[0].assign(value=data[0]["value"].where(data[0]["labeling"] == "a"))
    other = compare(none, data[1], resamples=100).table
    both = stack_datasets({"nq": one, "fever": other})
    undefined = both[(both["dataset"] == "fever") & (both["labeling"] == "b")]
    assert undefined["value"].isna().all()
    assert set(undefined["undefined_reason"]) == {"no query has a score"}
    with pytest.raises(UsageError, match="no data set"):
        stack_datasets({})


def test_costs_stand_beside_those_of_answering_end_to_end():
    costs = pd.DataFrame({"labeling": ["judge", "containment"], "requests": [300, 0], "money": [1.5, 0.0]})
    table = cost_table(costs, {"requests": 100, "money": 3.0}).set_index("labeling")
    assert table.loc["judge", "requests_ratio"] == 3
    assert table.loc["judge", "money_ratio"] == 0.5
    assert table.loc["end to end", "requests"] == 100
    assert table["prompt_tokens_ratio"].isna().all()
    with pytest.raises(UsageError, match="no cost 'dollars'"):
        cost_table(costs, {"dollars": 1})


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
    with pytest.raises(UsageError, match="no 'tau_ap' at the level 'query'"):
        matrix(coefficient="tau_ap")
    with pytest.raises(DataError, match="at depth 3"):
        matrix(depth=3)
    with pytest.raises(UsageError, match="tell them apart"):
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
        assert found.table[columns].to_numpy().tolist() == table[columns].to_numpy().tolist()
        gap = result.differences.query(f"level == '{level}' and coefficient == 'concordance'")
        columns = ["difference", "ci_low", "ci_high", "p"]
        np.testing.assert_allclose(found.differences[columns], gap[columns], rtol=1e-12)
