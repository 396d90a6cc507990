import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis import Background, compare
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
    assert compare(*tables(n=400), resamples=300).decision.winner == "good"
    same = compare(*tables(n=100, labelings={"a": 1.0, "b": 1.0}), resamples=300)
    assert same.decision.winner is None


def test_nothing_depends_on_row_order():
    scores, quality = tables(runs=("bm25", "dense"))
    one = compare(scores, quality, resamples=200)
    two = compare(scores.sample(frac=1, random_state=1), quality.sample(frac=1, random_state=2), resamples=200)
    pd.testing.assert_frame_equal(one.table, two.table)
    assert one.decision == two.decision


def test_the_seed_decides_the_intervals_and_nothing_else():
    data = tables()
    one, two = compare(*data, resamples=200, seed=1), compare(*data, resamples=200, seed=2)
    assert (one.table["value"] == two.table["value"]).all()
    assert (one.table["ci_low"] != two.table["ci_low"]).any()


def test_a_measure_at_a_cutoff_meets_quality_at_that_depth_only():
    scores, quality = tables(measures=("nDCG@5", "nDCG@10", "AP"))
    table = compare(scores, pd.concat([quality, quality.assign(depth=3)]), resamples=100).table
    assert set(zip(table["measure"], table["depth"], strict=True)) == {("nDCG@5", 5), ("AP", 3), ("AP", 5)}


def test_a_labeling_that_leaves_less_than_half_is_set_apart_with_a_warning():
    scores, quality = tables(labelings={"good": 0.5, "holes": 0.1, "poor": 3.0})
    holes = (scores["labeling"] == "holes") & (scores["query_id"] < "q0066")
    result = compare(scores.assign(value=scores["value"].mask(holes)), quality, resamples=100)
    assert result.decision.winner == "good"
    assert "holes" in result.decision.findings.excluded
    assert any("'holes'" in w and "55.0%" in w for w in result.warnings)
    n = result.table.drop_duplicates(["labeling"]).set_index("labeling")["n"]
    assert n.to_dict() == {"good": 120, "holes": 54, "poor": 120}


def test_a_few_missing_values_shrink_the_joint_set_for_all():
    scores, quality = tables()
    hole = (scores["labeling"] == "poor") & (scores["query_id"] < "q0003")
    result = compare(scores.assign(value=scores["value"].mask(hole)), quality, resamples=100)
    assert (result.table["n"] == 117).all()


def test_the_outcome_by_construction_never_wins():
    scores, quality = tables(labelings={"erag": 0.0, "good": 0.5, "poor": 3.0}, measures=("P@1",), depth=1)
    result = compare(scores, quality, resamples=100, background=Background(by_construction={("erag", "m", "em")}))
    assert result.decision.winner == "good"
    assert "erag" in result.decision.findings.excluded
    flags = result.table.drop_duplicates("labeling").set_index("labeling")["flags"]
    assert "by_construction" in flags["erag"]
    assert "by_construction" not in flags["good"]
    tests = result.differences.query("coefficient == 'concordance'").set_index(["first", "second"])
    assert tests.loc[("erag", "good"), "p_holm"] != tests.loc[("erag", "good"), "p_holm"]
    assert tests.loc[("good", "poor"), "p_holm"] == tests.loc[("good", "poor"), "p"]


def test_a_constant_series_is_undefined_with_the_reason():
    scores, quality = tables()
    flat = scores.assign(value=scores["value"].where(scores["labeling"] != "poor", 1.0))
    rows = compare(flat, quality, resamples=100).table.query("labeling == 'poor'")
    assert rows["value"].isna().all()
    assert set(rows["undefined_reason"]) == {"the scores are constant"}


def test_means_are_ignored_and_only_means_of_one_run_are_an_error():
    scores, quality = tables()
    means = scores.assign(query_id="all").drop_duplicates(["labeling", "measure", "run"])
    with_means = compare(pd.concat([scores, means]), quality, resamples=100)
    pd.testing.assert_frame_equal(with_means.table, compare(scores, quality, resamples=100).table)
    with pytest.raises(DataError, match="--per-query"):
        compare(means, quality)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use": "chose-runs"}, "Did you mean 'choose-runs'"),
        ({"use": "choose-runs"}, "only one has both scores and quality"),
        ({"only": {"measures": ["nDCG@6"]}}, "unknown measure of the score table 'nDCG@6'"),
        ({"only": {"depths": [7]}}, "unknown depth '7'"),
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


def test_three_levels_are_worked_out_where_there_are_several_runs():
    scores, quality = tables(runs=tuple("abcdef"), n=60)
    table = compare(scores, quality, resamples=100).table
    assert set(table["level"]) == {"query", "within-query", "system"}
    assert set(table.loc[table["level"] == "system", "run"]) == {"all"}
    assert set(table.loc[table["level"] == "query", "run"]) == {*"abcdef", "all"}


def test_a_choice_made_for_the_user_is_a_warning():
    scores, quality = tables()
    result = compare(scores, pd.concat([quality, quality.assign(metric="f1")]), resamples=100)
    assert result.primary.metric == "em"
    assert any("'em', the first of em, f1" in w for w in result.warnings)


def test_lower_is_better_measures_are_turned_round():
    scores, quality = tables(labelings={"good": 0.5})
    turned = scores.assign(measure="MeanRank", value=-scores["value"])
    value = compare(scores, quality, resamples=100).table["value"]
    assert compare(turned, quality, resamples=100).table["value"].tolist() == pytest.approx(value.tolist())
    own = scores.assign(measure="my_cost", value=-scores["value"])
    assert compare(own, quality, resamples=100, background=Background(lower=["my_cost"])).table[
        "value"
    ].tolist() == pytest.approx(value.tolist())


def test_tables_of_any_origin_and_measures_of_any_name_can_be_compared():
    scores, quality = tables()
    result = compare(scores.assign(measure="thumbs at home"), quality.assign(metric="thumbs up"), resamples=100)
    assert result.decision.winner == "good"


def flags(result, **where):
    table = result.table
    for column, value in where.items():
        table = table[table[column] == value]
    return {flag for text in table["flags"] for flag in text.split(";") if flag}


def test_recall_that_equals_success_everywhere_is_flagged():
    scores, quality = tables(measures=("R@5", "Success@5"))
    hit = (scores["value"] > 0).astype(float)
    same = scores.assign(value=hit.groupby([scores["labeling"], scores["query_id"]]).transform("max"))
    assert "recall_is_success" in flags(compare(same, quality, resamples=100), measure="R@5")
    assert "recall_is_success" not in flags(compare(scores, quality, resamples=100))


def test_binary_against_binary_and_few_values_are_flagged():
    scores, quality = tables()
    binary = scores.assign(value=(scores["value"] > 0).astype(float))
    assert {"binary_binary", "few_values"} <= flags(compare(binary, quality, resamples=100))
    assert not {"binary_binary", "few_values"} & flags(compare(scores, quality, resamples=100))


def test_scores_that_are_the_outcome_are_flagged():
    scores, quality = tables(labelings={"good": 0.5, "copy": 1.0})
    values = quality.set_index("query_id")["value"]
    copied = scores["value"].where(scores["labeling"] == "good", scores["query_id"].map(values))
    result = compare(scores.assign(value=copied), quality, resamples=100)
    assert "equals_outcome" in flags(result, labeling="copy")
    assert "equals_outcome" not in flags(result, labeling="good")


def test_notes_of_the_metrics_engine_become_flags():
    scores, quality = tables()
    notes = pd.DataFrame(
        {"labeling": ["good", "poor"], "run": "bm25", "measure": "nDCG@5", "ties": [3, 0], "unjudged": [0, 7]}
    )
    result = compare(scores, quality, resamples=100, background=Background(notes=notes))
    assert flags(result, labeling="good") == {"ties_at_cutoff"}
    assert flags(result, labeling="poor") == {"unjudged"}


def test_pairing_everything_with_everything_is_flagged():
    scores, quality = tables(measures=("nDCG@3",))
    assert "unmatched_depth" in flags(compare(scores, quality, pairing="all", resamples=100))


def test_one_right_answer_leaves_correlations_without_an_interval_and_a_concordance_with_a_wide_one():
    scores, quality = tables(n=40)
    rare = quality.assign(value=(quality["query_id"] == "q0000").astype(float))
    result = compare(scores, rare, resamples=200)
    assert result.table["value"].notna().all()
    headline = result.table["coefficient"] == "concordance"
    assert result.table.loc[~headline, "ci_low"].isna().all()
    assert "constant_resamples" in flags(result)
    assert (result.table.loc[headline, "ci_high"] - result.table.loc[headline, "ci_low"] > 0.5).all()
    assert result.decision.winner is None


def test_without_a_primary_measure_ndcg_is_taken_with_a_warning():
    result = compare(*tables(measures=("P@5", "nDCG@5", "AP@5")), resamples=100)
    assert result.primary.measure == "nDCG@5"
    assert any("No primary measure was chosen" in w for w in result.warnings)


def test_a_run_on_which_a_labeling_is_constant_counts_as_chance_in_the_mean_over_runs():
    scores, quality = tables(runs=("a", "b"), labelings={"good": 0.5})
    flat = scores.assign(value=scores["value"].where(scores["run"] == "a", 1.0))
    table = compare(flat, quality, resamples=100).table
    query = table[(table["level"] == "query") & (table["coefficient"] == "concordance")].set_index("run")
    assert query.loc["b", "undefined_reason"] == "the scores are constant"
    assert query.loc["all", "value"] == pytest.approx((query.loc["a", "value"] + 0.5) / 2)
    assert query.loc["all", "ci_low"] < query.loc["all", "value"] < query.loc["all", "ci_high"]


def test_why_a_labeling_has_no_score_comes_from_the_metrics_engine():
    scores, quality = tables()
    none = scores.assign(value=scores["value"].where(scores["labeling"] == "good"))
    notes = {
        "labeling": ["poor"],
        "run": "bm25",
        "measure": "nDCG@5",
        "queries": 120,
        "not_applicable": 120,
        "reason": "",
    }
    for extra, start in (({}, "not applicable"), ({"not_applicable": 0, "reason": "needs rel="}, "needs rel=")):
        table = compare(
            none, quality, resamples=100, background=Background(notes=pd.DataFrame({**notes, **extra}))
        ).table
        assert table.loc[table["labeling"] == "poor", "undefined_reason"].str.startswith(start).all()


def test_scores_that_differ_in_the_last_bit_alone_are_tied():
    scores, quality = tables(n=60)
    sums = {0.6: [0.1 + 0.2 + 0.3, 0.6, 0.3 + 0.3 + 1e-16], 0.9: [0.9, 0.3 * 3, 0.1 + 0.8]}
    level = np.where(scores["value"] > 0, 0.9, 0.6)
    exact = scores.assign(value=level)
    noisy = scores.assign(value=[sums[v][i % 3] for i, v in enumerate(level)])
    assert noisy["value"].nunique() > 2
    one, two = (compare(frame, quality, resamples=100).table for frame in (exact, noisy))
    np.testing.assert_allclose(one["value"], two["value"], atol=1e-12)


def test_small_scores_keep_their_order_beside_large_ones():
    scores, quality = tables(n=60)
    tiny = scores.assign(value=np.exp(scores["value"] * 3))
    one, two = (compare(frame, quality, resamples=100).table.set_index("coefficient") for frame in (scores, tiny))
    np.testing.assert_array_equal(one.loc["concordance", "value"], two.loc["concordance", "value"])


def test_a_status_that_is_left_empty_goes_by_the_value():
    scores, quality = tables(n=60)
    lost = quality["query_id"] == "q0003"
    quality = quality.assign(value=quality["value"].mask(lost), status=np.where(quality.index % 2 == 0, "ok", ""))
    assert set(compare(scores, quality, resamples=100).table["n"]) == {59}


def test_what_a_labeling_is_left_out_of_is_one_sentence_however_many_cells_it_is():
    scores, quality = tables(measures=("nDCG@5", "AP@5", "RR@5"))
    scores.loc[(scores["labeling"] == "poor") & (scores["measure"] != "nDCG@5"), "value"] = np.nan
    warnings = compare(scores, quality, primary="nDCG@5", resamples=100).warnings
    assert [w for w in warnings if "excluded from" in w] == [
        "'poor' has no value for AP@5, RR@5 and is excluded from their joint comparison."
    ]


@pytest.mark.parametrize("gone", ["row", "value"])
def test_questions_that_compare_no_runs_are_counted(gone):
    scores, quality = tables(n=30, runs=("a", "b"), measures=("nDCG@5", "P@5"))
    number = quality["query_id"].str[1:].astype(int)
    lost = (number < 4) | ((number < 12) & (quality["run"] == "a"))
    left = quality[~lost] if gone == "row" else quality.assign(value=quality["value"].mask(lost))
    result = compare(scores, left, resamples=100, primary="P@5")
    assert result.decision.findings.queries == 18
    assert result.warnings[:1] == (
        "18 of 30 questions have scores and quality for every run, and only these compare runs: 8 for some runs only"
        " ('q0004', 'q0005', 'q0006' and 5 more), 4 for none ('q0000', 'q0001', 'q0002' and 1 more).",
    )
    (alone,) = compare(scores, left, resamples=100, primary="P@5", only={"runs": ["b"]}).warnings
    assert alone == (
        "26 of 30 questions have scores and quality, and only these are compared: 4 lack one"
        " ('q0000', 'q0001', 'q0002' and 1 more)."
    )
    assert not compare(scores, quality, resamples=100, primary="P@5").warnings


def test_a_run_without_quality_at_a_depth_is_left_out_there_and_nowhere_else():
    runs = ("a", "b", "c")
    shallow, deep = (tables(runs=runs, measures=(f"P@{k}",), depth=k, seed=k) for k in (1, 5))
    answers = deep[1][deep[1]["run"] != "c"]
    both = pd.concat([shallow[0], deep[0]]), pd.concat([shallow[1], answers])
    for level in ("query", "within-query", "system"):
        result = compare(*both, resamples=100, primary="P@5")
        alone = compare(*deep, resamples=100, primary="P@5", only={"runs": ["a", "b"]})
        cell = (result.table["depth"] == 5) & (result.table["level"] == level) & (result.table["run"] == "all")
        other = (alone.table["level"] == level) & (alone.table["run"] == "all")
        assert result.table[cell]["value"].tolist() == alone.table[other]["value"].tolist()
        assert any("Run 'c' has scores but no em of m at depth 5" in warning for warning in result.warnings)
    assert set(result.table[result.table["depth"] == 1]["run"]) == {*runs, "all"}


def test_scores_that_equal_the_quality_are_suspicious_in_the_primary_cell():
    scores, quality = tables(n=60, measures=("P@5",))
    good = scores["labeling"] == "good"
    scores.loc[good, "value"] = quality["value"].to_numpy()
    assert any("'good' (P@5) equal the quality" in w for w in compare(scores, quality, resamples=100).warnings)
    said = compare(
        scores, quality, resamples=100, background=Background(by_construction=[("good", "m", "em")])
    ).warnings
    assert any("equal the quality" in w for w in said), "not at depth 1: not by construction"


def test_a_measure_may_be_asked_for_in_any_known_spelling():
    result = compare(*tables(), primary="NDCG@5", resamples=100, only={"measures": ["ndcg_cut_5"]})
    assert result.primary.measure == "nDCG@5"


def test_tables_are_given_as_people_hold_them(tmp_path):
    scores, quality = tables()
    scores.to_csv(tmp_path / "scores.csv", index=False)
    quality.to_parquet(tmp_path / "quality.parquet")
    wanted = compare(scores, quality, resamples=100).table
    good = scores["labeling"] == "good"
    for held in (tmp_path / "scores.csv", str(tmp_path / "scores.csv"), [scores[good], scores[~good]]):
        pd.testing.assert_frame_equal(compare(held, tmp_path / "quality.parquet", resamples=100).table, wanted)


def test_what_is_scored_is_compared_as_it_is():
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}, "q3": {"a": 2.0, "b": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"a": 1}}
    scores = jk.score({"bm25": run}, {"people": qrels}, ["nDCG@2"])
    quality = pd.DataFrame({"query_id": ["q1", "q2", "q3"], "value": [1.0, 0, 1]})
    assert compare(scores, quality, resamples=100).decision.findings.each[0].concordance.value == 1


@pytest.mark.parametrize("odd", [{"q": 1}, [], 3, None, [1]])
def test_anything_else_is_refused_with_what_is_expected(odd):
    scores, quality = tables()
    with pytest.raises(UsageError, match="scores must be a table, a file or the result of judgekit"):
        compare(odd, quality)
    with pytest.raises(UsageError, match="quality must be a table, a file or the result of judgekit"):
        compare(scores, odd)


def test_a_decision_on_answers_that_nobody_declares_calls_them_imported():
    scores, quality = tables()
    rated = quality[["query_id", "value"]]
    told = compare(scores, rated, resamples=100).decision.details[-1]
    assert "against rating of the imported answers from the top 5" in told


def test_a_table_without_runs_or_models_may_say_which_model_replied():
    scores, quality = tables()
    rated = quality[["query_id", "value"]].assign(reply_model=["a", "b"] * 60)
    told = compare(scores, rated, resamples=100).decision.details[0]
    assert told.startswith("The answers come from 2 models: a (60), b (60)")


def test_the_best_measure_at_each_k_is_the_largest_of_the_table_and_the_primary_stands_beside_it():
    scores = pd.DataFrame(
        {"labeling": "judge", "run": run, "measure": f"{measure}@{k}", "query_id": f"q{i}",
         "value": ((i * 7 + j * 3 + k * m) % 11) / 10}
        for j, run in enumerate(("a", "b")) for m, measure in ((2, "P"), (3, "RR")) for k in (5, 10) for i in range(40)
    )  # fmt: skip
    quality = pd.DataFrame(
        {"run": run, "depth": k, "model": "m", "query_id": f"q{i}", "metric": "em", "status": "ok",
         "value": float((i * 7 + j * 3 + k) % 11 > 5)}
        for j, run in enumerate(("a", "b")) for k in (5, 10) for i in range(40)
    )  # fmt: skip
    found = compare(scores, quality, primary="RR@10", resamples=100)
    best = found.best_at_k("tau_b", level="query", run="a")
    assert best["k"].tolist() == [5, 10]
    for row in best.to_dict("records"):
        cells = found.table.query("coefficient == 'tau_b' and level == 'query' and run == 'a'")
        here = cells[cells["depth"] == row["k"]].set_index("measure")["value"]
        assert (row["measure"], row["value"]) == (here.idxmax(), here.max())
        assert (row["primary"], row["measures"]) == (here[f"RR@{row['k']}"], 2)
    with pytest.raises(UsageError, match="unknown run 'c': choose from"):
        found.best_at_k(run="c")


def test_ratings_that_say_no_depth_go_with_measures_without_a_cutoff(tmp_path):
    scores = pd.DataFrame(
        {"labeling": "judge", "run": run, "measure": "score", "query_id": f"q{i}", "value": (i * 7 + j) % 11 / 10}
        for j, run in enumerate(("a", "b")) for i in range(40)
    )  # fmt: skip
    scores.to_csv(tmp_path / "scores.csv", index=False)
    rated = scores[["run", "query_id"]].assign(value=[float(i % 3 == 0) for i in range(80)])
    rated.to_csv(tmp_path / "quality.csv", index=False)
    found = compare(tmp_path / "scores.csv", tmp_path / "quality.csv", resamples=100)
    assert set(found.table["labeling"]) == {"judge"}
    assert "from the top" not in found.decision.details[-1]


@pytest.mark.parametrize(("n", "there"), [(4, False), (5, True)])
def test_below_five_queries_that_differ_there_is_no_interval_but_a_sentence(n, there):
    scores, quality = tables(n=n, runs=("a", "b"))
    quality["value"] = (quality["run"] == "a").astype(float)
    found = compare(scores, quality, resamples=100)
    rows = found.table[(found.table["level"] == "within-query") & (found.table["coefficient"] == "concordance")]
    assert (rows["ci_low"].notna() == there).all()
    assert (rows["flags"].str.contains("few_differing") != there).all()
    assert (f"Answers differ on {n} of {n} questions, too few for intervals" in found.decision.text) != there
    assert found.gains["ci_low"].notna().any() == there
