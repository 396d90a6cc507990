import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.analysis.comparison import compare
from judgekit.analysis.measures import best_measures
from judgekit.data.tables import COMPARISON
from judgekit.errors import DataError, UsageError
from judgekit.rules import Rules
from tests.analysis.worlds import claims, finder, noisy

SCORES, QUALITY = noisy()


def values(scores, quality, **options):
    return compare(scores, quality, rules=Rules(resamples=100), **options).table.set_index("coefficient")["value"]


def test_the_table_has_one_row_per_coefficient_and_depends_on_no_order_but_its_intervals_on_the_seed():
    scores, quality = noisy(runs=("bm25",))
    shuffled = (frame.sample(frac=1, random_state=3) for frame in (scores, quality))
    one, again, other = compare(scores, quality), compare(*shuffled), compare(scores, quality, rules=Rules(seed=2))
    assert list(one.table.columns) == list(COMPARISON.columns)
    assert one.table["coefficient"].tolist() == ["concordance", "tau_b", "rho", "r"] * 2
    assert (one.table["ci_low"] <= one.table["value"]).all()
    assert (one.table["n"] == 120).all()
    pd.testing.assert_frame_equal(one.table, again.table)
    assert one.decision.record() == again.decision.record()
    assert (one.table["value"] == other.table["value"]).all()
    assert (one.table["ci_low"] != other.table["ci_low"]).any()
    assert finder(one.decision) == "good"
    assert not finder(compare(*noisy(labelings={"a": 1.0, "b": 1.0}), rules=Rules(resamples=200)).decision)


def test_a_measure_at_a_cutoff_meets_quality_at_that_depth_only():
    scores, quality = noisy(measures=("nDCG@5", "nDCG@10", "AP"))
    table = compare(scores, pd.concat([quality, quality.assign(depth=3)]), rules=Rules(resamples=100)).table
    assert set(zip(table["measure"], table["depth"], strict=True)) == {("nDCG@5", 5), ("AP", 3), ("AP", 5)}
    every = compare(scores, quality, rules=Rules(resamples=100), pairing="all").table.set_index("measure")["flags"]
    assert every["nDCG@10"].str.contains("unmatched_depth").all()


def test_a_labeling_that_leaves_less_than_half_is_set_apart_with_a_warning():
    scores, quality = noisy(labelings={"good": 0.5, "holes": 0.1, "poor": 3.0})
    holes = (scores["labeling"] == "holes") & (scores["query_id"] < "q0066")
    result = compare(scores.assign(value=scores["value"].mask(holes)), quality, rules=Rules(resamples=100))
    assert finder(result.decision) == "good"
    assert "holes" in claims(result.decision, "excluded")
    assert any("'holes'" in w and "55.0%" in w for w in result.warnings)
    n = result.table.drop_duplicates(["labeling"]).set_index("labeling")["n"]
    assert n.to_dict() == {"good": 120, "holes": 54, "poor": 120}
    few = (scores["labeling"] == "poor") & (scores["query_id"] < "q0003")
    table = compare(scores.assign(value=scores["value"].mask(few)), quality, rules=Rules(resamples=100)).table
    n = table.drop_duplicates(["labeling"]).set_index("labeling")["n"]
    assert n.to_dict() == {"good": 120, "holes": 120, "poor": 117}, "a few that lack a score leave nobody else"
    more = (scores["labeling"] == "poor") & (scores["query_id"] < "q0012")
    n = compare(scores.assign(value=scores["value"].mask(more)), quality, rules=Rules(resamples=100)).table["n"]
    assert (n == 108).all(), "all are compared where a labeling applies"
    scores, quality = noisy(runs=("a", "b"), labelings={"good": 0.5, "holes": 0.1})
    late = (scores["labeling"] == "holes") & (scores["query_id"] >= "q0030")
    few = quality[(quality["run"] == "a") | (quality["query_id"] < "q0030")]
    found = compare(scores.assign(value=scores["value"].mask(late)), few, rules=Rules(resamples=100)).decision
    assert "holes" in claims(found, "excluded"), "half of the questions of both runs, and less of all answers"


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("only one has both scores and quality", {"rules": Rules(use="choose-runs")}),
        ("unknown measure of the score table 'nDCG@6'", {"only": {"measures": ["nDCG@6"]}}),
        ("unknown depth '7'", {"only": {"depths": [7]}}),
        ("unknown key 'run'", {"only": {"run": ["bm25"]}}),
        ("'P@5'", {"rules": Rules(primary="P@5")}),
        ("'f1'", {"outcome": "f1"}),
        ("no run has both", {"quality": QUALITY.assign(run="other")}),
        ("no question has both", {"quality": QUALITY.assign(query_id="x" + QUALITY["query_id"])}),
        ("two values for", {"scores": pd.concat([SCORES, SCORES])}),
        ("no measure can be paired", {"quality": QUALITY.assign(depth=10)}),
    ],
)
def test_what_is_not_there_or_does_not_meet_is_a_sentence(message, change):
    with pytest.raises((UsageError, DataError), match=message):
        compare(**{"scores": SCORES, "quality": QUALITY, **change})


@pytest.mark.parametrize(("measure", "lower"), [("MeanRank", []), ("my_cost", ["my_cost"])])
def test_lower_is_better_measures_are_turned_round(measure, lower):
    turned = SCORES.assign(measure=measure, value=-SCORES["value"])
    found = values(turned, QUALITY, background=Background(lower=lower))
    assert found.tolist() == pytest.approx(values(SCORES, QUALITY).tolist())


@pytest.mark.parametrize(("not_applicable", "reason", "said"), [(120, "", "not appl"), (0, "needs rel=", "needs rel=")])
def test_why_a_labeling_has_no_score_comes_from_the_metrics_engine(not_applicable, reason, said):
    none = SCORES.assign(value=SCORES["value"].where(SCORES["labeling"] == "good"))
    notes = {"labeling": ["poor"], "run": "bm25", "measure": "nDCG@5", "queries": 120, "reason": reason}
    background = Background(notes=pd.DataFrame(notes | {"not_applicable": not_applicable}))
    table = compare(none, QUALITY, rules=Rules(resamples=100), background=background).table
    assert table.loc[table["labeling"] == "poor", "undefined_reason"].str.startswith(said).all()


def test_scores_that_differ_in_the_last_bit_alone_are_tied_and_small_ones_keep_their_order():
    sums = {0.6: [0.1 + 0.2 + 0.3, 0.6, 0.3 + 0.3 + 1e-16], 0.9: [0.9, 0.3 * 3, 0.1 + 0.8]}
    level = np.where(SCORES["value"] > 0, 0.9, 0.6)
    summed = SCORES.assign(value=[sums[v][i % 3] for i, v in enumerate(level)])
    assert summed["value"].nunique() > 2
    np.testing.assert_allclose(values(summed, QUALITY), values(SCORES.assign(value=level), QUALITY), atol=1e-12)
    tiny = values(SCORES.assign(value=np.exp(SCORES["value"] * 3)), QUALITY)
    assert tiny["concordance"].tolist() == values(SCORES, QUALITY)["concordance"].tolist()


def test_a_status_that_is_left_empty_goes_by_the_value():
    scores, quality = noisy(n=60)
    lost = quality["query_id"] == "q0003"
    quality = quality.assign(value=quality["value"].mask(lost), status=np.where(quality.index % 2 == 0, "ok", ""))
    assert set(compare(scores, quality, rules=Rules(resamples=100)).table["n"]) == {59}


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (["nDCG@5"], "'poor' lacks values for AP@5 and RR@5 (in 100.0% of the cases) and is excluded from their joint"),
        ([], "'poor' has no values and is excluded from the comparison."),
    ],
)
def test_what_a_labeling_is_left_out_of_is_one_sentence_however_many_cells_it_is(kept, said):
    scores, quality = noisy(measures=("nDCG@5", "AP@5", "RR@5"))
    scores.loc[(scores["labeling"] == "poor") & ~scores["measure"].isin(kept), "value"] = np.nan
    warnings = compare(scores, quality, rules=Rules(primary="nDCG@5", resamples=100)).warnings
    (omission,) = [w for w in warnings if "excluded from" in w]
    assert omission.startswith(said)


def test_many_measures_that_a_labeling_lacks_are_not_all_named():
    measures = ("nDCG@5", "AP@5", "RR@5", "P@5", "R@5", "Success@5")
    scores, quality = noisy(measures=measures)
    lost = (scores["labeling"] == "poor") & (scores["measure"] != "nDCG@5")
    half = lost & (scores["measure"] == "P@5") & (scores["query_id"] > "q0030")
    scores.loc[(lost & (scores["measure"] != "P@5")) | half, "value"] = np.nan
    warnings = " ".join(compare(scores, quality, rules=Rules(primary="nDCG@5", resamples=100)).warnings)
    assert " and 1 more (in 100.0% of the cases); P@5 (in " in warnings


@pytest.mark.parametrize("gone", ["row", "value"])
def test_questions_that_compare_no_runs_are_counted(gone):
    scores, quality = noisy(n=30, runs=("a", "b"), measures=("nDCG@5", "P@5"))
    number = quality["query_id"].str[1:].astype(int)
    lost = (number < 4) | ((number < 12) & (quality["run"] == "a"))
    left = quality[~lost] if gone == "row" else quality.assign(value=quality["value"].mask(lost))
    result = compare(scores, left, rules=Rules(resamples=100, primary="P@5"))
    assert result.warnings[:1] == (
        "Only 18 of 30 questions have scores and quality for every run: 8 lack them for some runs ('q0004', 'q0005',"
        " 'q0006' and 5 more), 4 lack them for all ('q0000', 'q0001', 'q0002' and 1 more).",
    )
    (alone,) = compare(scores, left, rules=Rules(resamples=100, primary="P@5"), only={"runs": ["b"]}).warnings
    assert alone == (
        "Only 26 of 30 questions have scores and quality for every run: 4 lack them for all ('q0000', 'q0001',"
        " 'q0002' and 1 more)."
    )
    assert not compare(scores, quality, rules=Rules(resamples=100, primary="P@5")).warnings
    (alone,) = compare(
        scores[scores["query_id"] > "q0000"], quality, rules=Rules(resamples=100, primary="P@5")
    ).warnings
    assert alone == "1 question with quality but no scores ('q0000') counts for the choice of a run, not for labels."
    (alone,) = compare(
        scores[scores["query_id"] > "q0000"],
        quality,
        rules=Rules(resamples=100, primary="P@5"),
        only={"runs": ["b"]},
    ).warnings
    assert alone == "1 question with quality but no scores ('q0000') excluded."


def test_questions_without_scores_count_for_the_choice_of_a_run_only():
    scores, quality = noisy(n=90, runs=("a", "b"))
    few = scores[scores["query_id"] < "q0030"]
    rules = Rules(resamples=200)
    whole, partly = compare(scores, quality, rules=rules), compare(few, quality, rules=rules)
    choices = [[claim for claim in found.decision.claims if claim.line == "Choose"] for found in (whole, partly)]
    assert choices[0] == choices[1]
    assert "90 questions, 2 runs" in " ".join(partly.decision.text.split())
    assert claims(partly.decision, "unscored")
    assert not claims(whole.decision, "unscored")
    alone = compare(few, quality[quality["query_id"] < "q0030"], rules=rules)
    columns = ["labeling", "run", "level", "coefficient", "value", "n"]
    pd.testing.assert_frame_equal(partly.table[columns], alone.table[columns])


def test_a_run_that_only_one_table_has_is_said_to_be_no_choice():
    scores, quality = noisy(n=30, runs=("a", "b", "c"))
    runs = sorted(quality["run"].unique())
    few = scores[scores["run"] != runs[0]]
    (alone,) = compare(few, quality, rules=Rules(resamples=100)).warnings
    assert alone == f"1 run with quality but no scores ({runs[0]!r}) excluded, also from the choice."
    (alone,) = compare(scores, quality[quality["run"] != runs[0]], rules=Rules(resamples=100)).warnings
    assert alone == f"1 run with scores but no quality ({runs[0]!r}) excluded, also from the choice."


def test_questions_without_scores_do_not_count_for_what_it_takes_to_show_a_labeling():
    scores, quality = noisy(n=90, runs=("a", "b"), labelings={"weak": 3.0})
    few, rules = scores[scores["query_id"] < "q0040"], Rules(resamples=200)
    told = [
        dict(compare(few, rated, rules=rules).decision.lines)["Keep"]
        for rated in (quality, quality[quality["query_id"] < "q0040"])
    ]
    takes = [int(re.findall(r"it takes about ([\d,]+) questions", text)[0].replace(",", "")) for text in told]
    # The resamples of the questions differ a little.
    assert takes[0] == pytest.approx(takes[1], rel=0.2)


def test_a_few_groups_with_scores_claim_nothing_however_many_have_quality():
    scores, quality = noisy(n=90, runs=("a", "b"), labelings={"good": 0.1})
    quality["topic"] = "t" + quality["query_id"].where(quality["query_id"] >= "q0030", "q").str[-4:]
    rules = Rules(resamples=200, groups="topic")
    assert claims(compare(scores, quality, rules=rules).decision, "follows")
    found = compare(scores[scores["query_id"] < "q0046"], quality, rules=rules).decision
    assert not [claim for claim in found.claims if claim.kind in ("follows", "gain", "keep") and claim.shown]


def test_a_run_without_quality_at_a_depth_is_left_out_there_and_nowhere_else():
    runs = ("a", "b", "c")
    shallow, deep = (noisy(runs=runs, measures=(f"P@{k}",), depth=k, seed=k) for k in (1, 5))
    scores, quality = pd.concat([shallow[0], deep[0]]), pd.concat([shallow[1], deep[1][deep[1]["run"] != "c"]])
    result = compare(scores, quality, rules=Rules(resamples=100, primary="P@5"))
    for depth, of in ((5, {"a", "b", "all"}), (1, {*runs, "all"})):
        rows = result.table[result.table["depth"] == depth]
        assert set(rows["level"]) == {"query", "within-query", "system"}
        assert set(rows["run"]) == of
    assert any("Run 'c' has scores but no em of m at depth 5" in warning for warning in result.warnings)


def test_tables_are_given_as_people_hold_them_and_as_they_are_scored(tmp_path):
    SCORES.to_csv(tmp_path / "scores.csv", index=False)
    QUALITY.to_parquet(tmp_path / "quality.parquet")
    good = SCORES["labeling"] == "good"
    for held in (tmp_path / "scores.csv", str(tmp_path / "scores.csv"), [SCORES[good], SCORES[~good]]):
        found = compare(held, tmp_path / "quality.parquet", rules=Rules(resamples=100)).table
        pd.testing.assert_frame_equal(found, compare(SCORES, QUALITY, rules=Rules(resamples=100)).table)
    queries = ["q1", "q2", "q3"]
    qrels = {query: {doc: 1} for query, doc in zip(queries, "aba", strict=True)}
    scored = jk.score({"bm25": {query: {"a": 2.0, "b": 1.0} for query in queries}}, {"people": qrels}, ["nDCG@2"])
    found = compare(scored, pd.DataFrame({"query_id": queries, "value": [1.0, 0, 1]}), rules=Rules(resamples=100))
    assert found.decision.of("finds")["value"].tolist() == [1]


def test_tables_of_other_libraries_are_taken_by_arrows_interface():
    expected = compare(SCORES, QUALITY, rules=Rules(resamples=100)).table
    scores, quality = pa.Table.from_pandas(SCORES), pa.Table.from_pandas(QUALITY)
    pd.testing.assert_frame_equal(compare(scores, quality, rules=Rules(resamples=100)).table, expected)
    good = SCORES["labeling"] == "good"
    named = {name: pa.Table.from_pandas(SCORES[rows]) for name, rows in {"good": good, "other": ~good}.items()}
    assert set(compare(named, quality, rules=Rules(resamples=100)).table["labeling"]) >= {"good"}


@pytest.mark.parametrize("odd", [{"q": 1}, [], 3, None, [1]])
def test_anything_else_is_refused_with_what_is_expected(odd):
    both = {"scores": (odd, QUALITY)} | ({} if odd is None else {"quality": (SCORES, odd)})
    for name, given in both.items():
        with pytest.raises(UsageError, match=f"{name} must be a table, a file or the result of judgekit"):
            compare(*given)


@pytest.mark.parametrize(("n", "there"), [(4, False), (5, True)])
def test_below_five_queries_that_differ_there_is_no_interval_but_a_sentence(n, there):
    scores, quality = noisy(n=n, runs=("a", "b"))
    quality["value"] = (quality["run"] == "a").astype(float)
    found = compare(scores, quality, rules=Rules(resamples=100))
    rows = found.table[(found.table["level"] == "within-query") & (found.table["coefficient"] == "concordance")]
    assert (rows["ci_low"].notna() == there).all()
    assert (rows["flags"].str.contains("few_differing") != there).all()
    assert ("too few questions differ for an interval" in " ".join(found.decision.details)) != there
    assert found.decision.of("gain")["low"].notna().any() == there


def test_a_choice_made_for_the_user_is_a_warning():
    scores, quality = noisy(measures=("P@5", "nDCG@5", "AP@5"))
    result = compare(scores, pd.concat([quality, quality.assign(metric="f1")]), rules=Rules(resamples=100))
    assert (result.primary.measure, result.primary.metric) == ("nDCG@5", "em")
    assert any("'em', the first of em, f1" in w for w in result.warnings)
    assert any("No primary measure was chosen" in w for w in result.warnings)
    assert compare(*noisy(measures=("P@5", "AP@5")), rules=Rules(resamples=100)).primary.measure == "AP@5"
    asked = compare(scores, quality, rules=Rules(primary="NDCG@5", resamples=100), only={"measures": ["ndcg@5"]})
    assert asked.primary.measure == "nDCG@5"
    assert not asked.warnings[1:]


def copied(**world):
    """Return scores that are the answers, and these."""
    scores, quality = noisy(**world)
    return scores.assign(value=scores["query_id"].map(quality.set_index("query_id")["value"])), quality


@pytest.mark.parametrize(
    ("flags", "copy", "notes"),
    [
        ({"binary_binary", "few_values", "recall_is_success", "equals_outcome"}, True, {}),
        ({"ties_at_cutoff"}, False, {"ties": 3}),
        ({"unjudged"}, False, {"unjudged": 7}),
        (set(), False, {}),
    ],
)
def test_what_may_mislead_is_flagged_where_it_is_so_and_not_else(flags, copy, notes):
    scores, quality = (copied if copy else noisy)(measures=("R@5", "Success@5"))
    counts = {"labeling": ["good"], "run": "bm25", "measure": "R@5", "ties": 0, "unjudged": 0} | notes
    table = compare(
        scores, quality, rules=Rules(resamples=100), background=Background(notes=pd.DataFrame(counts))
    ).table
    own = table.query("labeling == 'good' and measure == 'R@5'")
    assert set(";".join(own["flags"]).split(";")) - {""} == flags
    assert not notes or not table[table["labeling"] == "poor"]["flags"].any()


def test_three_values_of_a_run_are_few_and_four_are_not():
    scores, quality = noisy(labelings={"three": 0.5, "four": 0.5})
    most = scores["labeling"].map({"three": 1.0, "four": 2.0})
    found = compare(scores.assign(value=scores["value"].round().clip(-1, most)), quality, rules=Rules(resamples=100))
    flags = found.table.groupby("labeling")["flags"].agg(set)
    assert (flags["three"], flags["four"]) == ({"few_values"}, {""})


@pytest.mark.parametrize("n", [24, 25])
def test_numbers_of_fewer_than_25_questions_say_that_no_simulation_had_so_few(n):
    table = compare(*noisy(n=n), rules=Rules(resamples=100)).table
    measured = table[table["ci_method"] != ""]
    assert len(measured)
    assert (measured["flags"].str.contains("coverage") == (n == 24)).all()


def test_scores_that_equal_the_quality_are_suspicious_in_the_primary_cell():
    scores, quality = copied(n=60, measures=("P@5",), labelings={"good": 0.5})
    for background in (Background(), Background(by_construction=[("good", "m", "em")])):  # that is so at depth 1 only
        warnings = compare(scores, quality, rules=Rules(resamples=100), background=background).warnings
        assert any("'good' (P@5) equal the quality" in w for w in warnings)


def test_what_nobody_declares_of_the_answers_is_told():
    scores, quality = noisy()
    rated = quality[["query_id", "value"]]
    scores = scores.assign(measure="thumbs at home")
    told = compare(scores, rated.assign(reply_model=["a", "b"] * 60), rules=Rules(resamples=100))
    assert told.decision.withheld.startswith("The answers come from 2 models: a (60), b (60)")
    told = compare(scores, rated, rules=Rules(resamples=100)).decision
    assert finder(told) == "good"
    assert "Quality is the rating of the imported answers." in dict(told.lines)["Based on"]
    told = compare(scores.assign(measure="nDCG@5"), rated, rules=Rules(resamples=100)).decision
    assert "of the imported answers from the top 5" in dict(told.lines)["Based on"]


def test_the_best_measure_at_each_k_is_the_largest_of_the_table_and_the_primary_stands_beside_it():
    names = ("P@5", "RR@5", "P@10", "RR@10")
    scores, quality = noisy(40, ("a", "b"), {"judge": 1.0}, names)
    found = compare(scores, pd.concat([quality, quality.assign(depth=10)]), rules=Rules(primary="RR@10", resamples=100))
    cells = found.table.query("coefficient == 'tau_b' and level == 'query' and run == 'a'")
    best = best_measures(cells, "RR@10")
    assert best["k"].tolist() == [5, 10]
    for row in best.to_dict("records"):
        here = cells[cells["depth"] == row["k"]].set_index("measure")["value"]
        assert (row["measure"], row["value"]) == (here.idxmax(), here.max())
        assert (row["primary"], row["measures"]) == (here[f"RR@{row['k']}"], 2)
