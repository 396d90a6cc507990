import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare, plan_queries
from judgekit.errors import DataError, UsageError


def tables(n, runs=("r",), seed=0, rare=False):
    rng = np.random.default_rng(seed)
    ids, scores, quality = [f"q{i:05d}" for i in range(n)], [], []
    for run in runs:
        latent = rng.normal(size=n)
        value = np.eye(1, n)[0] if rare else (latent > 0).astype(float)
        quality.append(
            pd.DataFrame({"run": run, "depth": 5, "model": "m", "query_id": ids, "metric": "em", "value": value})
        )
        for name, noise in (("a", 0.8), ("b", 1.4)):
            score = latent + noise * rng.normal(size=n)
            scores.append(
                pd.DataFrame({"labeling": name, "run": run, "measure": "AP", "query_id": ids, "value": score})
            )
    return pd.concat(scores, ignore_index=True), pd.concat(quality, ignore_index=True)


def test_a_plan_for_the_pilots_own_size_repeats_its_intervals():
    pilot = compare(*tables(150), resamples=200)
    plan = plan_queries(pilot, [150])
    table = pilot.table[pilot.table["coefficient"] == "concordance"].set_index("labeling")
    for row in plan[plan["second"] == ""].itertuples():
        assert (row.ci_low, row.ci_high) == pytest.approx(
            tuple(table.loc[row.labeling, ["ci_low", "ci_high"]]), abs=1e-6
        )
    gap = pilot.differences[pilot.differences["coefficient"] == "concordance"].iloc[0]
    assert plan[plan["second"] != ""].iloc[0]["width"] == pytest.approx(gap["ci_high"] - gap["ci_low"])


@pytest.mark.parametrize(("level", "runs"), [("query", ("r",)), ("within-query", ("r", "s", "t"))])
def test_predicted_widths_are_within_15_percent_of_those_of_larger_experiments(level, runs):
    predicted = plan_queries(compare(*tables(150, runs, seed=1), resamples=300, primary_level=level), [900])
    realised = plan_queries(compare(*tables(900, runs, seed=2), resamples=300, primary_level=level), [900])
    assert predicted["width"].to_numpy() == pytest.approx(realised["width"].to_numpy(), rel=0.15)


def test_power_grows_with_queries_and_only_differences_have_one():
    plan = plan_queries(compare(*tables(100), resamples=200), [50, 100, 400, 3000])
    power = plan[plan["second"] != ""]["power"]
    assert power.is_monotonic_increasing
    assert power.iloc[-1] > 0.99
    assert plan[plan["second"] == ""]["power"].isna().all()


def test_there_are_default_numbers_of_queries():
    plan = plan_queries(compare(*tables(100), resamples=100))
    assert list(plan["queries"].unique()) == [50, 100, 200, 400, 1000, 3000]


def test_what_cannot_be_planned_is_a_sentence():
    with pytest.raises(UsageError, match="more runs"):
        plan_queries(compare(*tables(60, tuple("abcde")), resamples=100, primary_level="system"))
    with pytest.raises(UsageError, match="at least 2 queries"):
        plan_queries(compare(*tables(60), resamples=100), [1])
    with pytest.raises(DataError, match="no interval"):
        plan_queries(compare(*tables(60, rare=True), resamples=100))
