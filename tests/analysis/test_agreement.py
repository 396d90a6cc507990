"""Agreement of labels, by the formulas of others: `agreement`, `jk.agree` and `judgekit agree`."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

import judgekit as jk
from judgekit.analysis.agreement import agreement
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import DataError, UsageError
from tests.commands import in_process


def labeling(name, values, scale="grades:3", queries=10, status="ok"):
    n = len(values)
    named = {"query_id": [f"q{i % queries}" for i in range(n)], "doc_id": [f"d{i:04d}" for i in range(n)]}
    frame = pd.DataFrame(named | {"relevance": np.asarray(values, dtype=float), "status": status})
    return Labeling(name, Scale.parse(scale), frame)


def agreed(a, b, scale="grades:3", **options):
    return agreement([labeling("a", a, scale), labeling("b", b, scale)], resamples=100, **options)


def values(result, on="labels"):
    table = result.table[result.table["on"] == on]
    return table.set_index("coefficient")["value"].to_dict()


def graded(seed=0, n=200):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    return a, np.clip(a + rng.integers(-1, 2, n), 0, 3)


def qrels():
    each = (values.reshape(30, 8).tolist() for values in graded(n=240))
    return {
        name: {f"q{i:02d}": {f"d{j}": g for j, g in enumerate(row)} for i, row in enumerate(rows)}
        for name, rows in zip(("judge", "people"), each, strict=True)
    }


@pytest.mark.parametrize("scale", ["grades:3", "unit"])
def test_alpha_is_that_of_the_krippendorff_package(scale):
    krippendorff = pytest.importorskip("krippendorff")
    a, b = graded()
    if scale == "unit":
        a, b = (each / 4 + np.random.default_rng(0).random(len(each)) / 4 for each in (a, b))
    got = values(agreed(a, b, scale))
    assert ("kappa" in got) == (scale != "unit"), "hardly two decimals are equal"
    expected = krippendorff.alpha(reliability_data=[a, b], level_of_measurement="interval")
    assert got["alpha"] == pytest.approx(expected, abs=1e-12)
    both = [(series > 2) * 1 for series in graded()]
    relevant = values(agreed(*both, "binary"), "relevance")
    expected = krippendorff.alpha(reliability_data=both, level_of_measurement="nominal")
    assert relevant["alpha"] == pytest.approx(expected, abs=1e-12)


def test_cohens_table_of_25_and_25_gives_the_textbook_kappa():
    """20 both yes, 15 both no, 5 and 10 mixed: observed .7, expected .5, kappa .4."""
    got = values(agreed([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15, "binary"), "relevance")
    assert (got["agreement"], got["kappa"]) == (pytest.approx(0.7), pytest.approx(0.4))
    mean = (0.5 + 0.6) / 2
    chance = 2 * mean * (1 - mean)
    assert got["ac1"] == pytest.approx((0.7 - chance) / (1 - chance))


def test_ac1_is_gwet_s_published_value_and_counts_every_label_of_the_scale():
    """100 patients by two abstractors, three diagnoses: .849 (Gwet 2014, and irrCAC's documentation)."""
    table = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    a, b = np.array([(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]).T
    got = values(agreed(a, b, "grades:2"))
    assert (got["ac1"], got["kappa"]) == (pytest.approx(0.8493305, abs=1e-7), pytest.approx(0.7964094, abs=1e-7))
    # A fourth diagnosis that nobody made makes agreement by chance rarer.
    share = np.array([0.13, 0.255, 0.615])
    chance = (share * (1 - share)).sum() / 3
    wider = values(agreed(a, b, "grades:3"))
    assert wider["ac1"] == pytest.approx((0.89 - chance) / (1 - chance))
    assert wider["kappa"] == got["kappa"]
    declared = jk.agree({"a": frame(a), "b": frame(b)}, scales=dict.fromkeys("ab", "grades:-1..2")).table
    (ac1,) = declared.loc[(declared["coefficient"] == "ac1") & (declared["on"] == "labels"), "value"]
    assert ac1 == wider["ac1"]


def frame(labels):
    return pd.DataFrame({"query_id": "q", "doc_id": [f"d{i}" for i in range(len(labels))], "relevance": labels})


def test_coefficients_of_grades_follow_their_definitions():
    a, b = graded(7, 80)
    assert agreed(a / 3, b / 3, "unit", people=["b"]).table["ci_low"].notna().any(), "thirds are labels like others"
    found = agreed(a, b, people=["b"])
    got = values(found)
    chance = np.mean(a[:, None] == b)
    assert got["kappa"] == pytest.approx((np.mean(a == b) - chance) / (1 - chance), abs=1e-12)
    assert got["mean_difference"] == pytest.approx(np.mean(a - b))
    assert found.table["value"].between(found.table["ci_low"], found.table["ci_high"]).all()


def test_against_people_there_are_precision_and_recall_and_people_come_second():
    human = labeling("human", [1, 1, 1, 0, 0, 0, 0, 0], "binary", queries=2)
    judge = labeling("judge", [3, 2, 0, 2, 1, 0, 0, 1], "grades:3:2", queries=2)
    result = agreement([human, judge], people=["human"], resamples=100)
    assert set(result.table["first"]) == {"judge"}
    got = values(result, "relevance")
    assert (got["precision"], got["recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert "labels" not in set(result.table["on"])
    assert "precision" not in values(agreement([human, judge], resamples=100), "relevance")


def test_only_pairs_that_both_labelled_count_and_the_others_are_counted():
    a = labeling("a", [1, 0, 1, 0, np.nan, 1], "binary", status=["ok"] * 4 + ["failed", "ok"])
    result = agreement([a, labeling("b", [1, 0, 0, 1], "binary")], resamples=100)
    counts = {"first": "a", "second": "b", "both": 4, "only_first": 1, "only_second": 0}
    assert result.coverage.iloc[0].to_dict() == counts
    assert (result.table["pairs"] == 4).all()


def test_intervals_keep_the_pairs_of_a_query_together_and_depend_on_confidence_and_seed():
    said = np.random.default_rng(1).integers(0, 2, 20)

    def ends(queries, coefficient="agreement", **options):
        b = said[np.arange(400) % queries % 20]
        two = [labeling(name, v, "binary", queries) for name, v in (("a", np.ones(400)), ("b", b))]
        row = agreement(two, resamples=300, **options).table.set_index("coefficient").loc[coefficient]
        return row["ci_low"], row["ci_high"]

    (low, high), (inner, outer) = ends(20), ends(400)
    assert high - low > 2 * (outer - inner)
    assert low < ends(20, confidence=0.8)[0] < ends(20, confidence=0.8)[1] < high
    assert ends(400, "ac1", seed=2) != ends(400, "ac1")


def test_what_has_no_number_has_a_reason():
    reasons = agreed([1, 1], [1, 1], "binary").table.set_index("coefficient")["undefined_reason"]
    assert reasons["kappa"] == "both labelings are constant"
    found = agreed([0, 1], [0, 0], "binary", people=["b"]).table.set_index("coefficient")
    assert found.loc["recall", "undefined_reason"] == "people call nothing relevant"
    assert found.loc["precision", "value"] == 0
    a = labeling("a", [1, 0], "binary")
    other = Labeling("b", Scale("binary"), a.table.assign(doc_id="elsewhere")[:1])
    none = agreement([a, other], resamples=100).table
    assert set(none["undefined_reason"]) == {"no pair has both labels"}
    with pytest.raises(DataError, match="two labelings are named 'a'"):
        agreement([a, a])
    with pytest.raises(UsageError, match="unknown labeling 'humans'"):
        agreement([a, other], people=["humans"])


def test_tables_without_rows_have_the_columns_of_those_with_rows():
    two = agreed([0, 0, 3, 3], [0, 2, 3, 3])
    counts = two.confusion.set_index(["first_label", "second_label"])["pairs"].to_dict()
    assert counts == {(0, 0): 1, (0, 2): 1, (3, 3): 2}
    unlike = agreement([labeling("a", [0, 1], "unit"), labeling("b", [1, 0])], resamples=100)
    for less in (agreement([labeling("a", [0, 1])], resamples=100), unlike):
        assert less.table.empty
        for name in ("table", "confusion", "coverage"):
            assert list(getattr(less, name).columns) == list(getattr(two, name).columns)


def test_the_two_may_order_the_same_runs_otherwise():
    made, rng = qrels(), np.random.default_rng(1)
    runs = {
        f"run{k}": {q: {d: k * g + rng.normal() for d, g in row.items()} for q, row in made["people"].items()}
        for k in range(6)
    }
    found = jk.agree(made, runs=runs, measures="nDCG@5").system.set_index("coefficient")
    scores = jk.score(runs, made, "nDCG@5").means()
    first, second = (scores[scores["labeling"] == name].sort_values("run")["value"] for name in ("judge", "people"))
    assert found.loc["tau_b", "value"] == pytest.approx(kendalltau(first, second).statistic)
    assert found.loc["rho", "value"] == pytest.approx(spearmanr(first, second).statistic)
    assert (found[["runs", "queries"]] == [6, 30]).all(axis=None)
    assert "ci_low" not in found, "no interval that covers is known for means of few runs"


def test_the_command_says_what_the_function_says(tmp_path, capfd):
    # Grades without a scale are compared although one side never gives the largest.
    made, args, judgekit = qrels(), [], in_process(capfd)
    made["judge"] = {q: {d: min(g, 2) for d, g in row.items()} for q, row in made["judge"].items()}
    for name, rows in made.items():
        lines = [f"{q} 0 {d} {g}\n" for q, row in rows.items() for d, g in row.items()]
        (tmp_path / f"{name}.qrels").write_text("".join(lines))
        args += ["--qrels", f"{name}={tmp_path / name}.qrels"]
    said = judgekit("agree", *args, "--people", "people", "--out", tmp_path / "a.csv")
    assert "mean_difference" in said.out
    assert "240 documents have labels by both judge and people" in said.err
    expected = jk.agree(made, people="people").table
    assert pd.read_csv(tmp_path / "a.csv")["value"].to_list() == pytest.approx(expected["value"].to_list(), nan_ok=True)
    said = judgekit("agree", *args[:2])
    assert (said.code, "two or more labelings" in said.err) == (2, True)
