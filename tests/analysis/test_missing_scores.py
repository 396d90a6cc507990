"""Scores that are missing: they take nothing from other labelings, and many of them are held at their bounds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from judgekit.analysis.case import Case, Series
from judgekit.analysis.coefficients import COEFFICIENTS, Target
from judgekit.analysis.comparison import Comparison, compare
from judgekit.analysis.decision import decide_on
from judgekit.rules import DeclaredOutcome, Rules
from tests.analysis.worlds import RUNS, claims, tables, world

FEW_RESAMPLES = Rules(resamples=100)
THREE = {"own": (0.0, 1.0), "other": (0.6, 0.6), "third": (0.2, 0.4)}


def without(scores: pd.DataFrame, labeling: str, where: pd.Series, reach: float = np.inf) -> pd.DataFrame:
    """Return the table without a labeling's scores in some rows, which may be anything within a reach."""
    gone = (scores["labeling"] == labeling) & where
    value = scores["value"]
    ends = {name: value.where(~gone, end) for name, end in (("low", -reach), ("high", reach))}
    return scores.assign(value=value.where(~gone), **ends)


def at_random(scores: pd.DataFrame, share: float, seed: int = 0) -> pd.Series:
    return pd.Series(np.random.default_rng(seed).random(len(scores)) < share, scores.index)


def on_both(scores: pd.DataFrame, quality: pd.DataFrame, *labelings: str) -> pd.DataFrame:
    """Return the rows on which some labelings have a score, one column for each, with the quality."""
    wide = scores.pivot(index=["query_id", "run"], columns="labeling", values="value")[list(labelings)].dropna()
    return wide.join(quality.set_index(["query_id", "run"])["value"].rename("quality")).reset_index()


def plain_r(rows: pd.DataFrame, labeling: str) -> float:
    """The pooled within-question correlation, row by row: sums over the questions with at least two runs."""
    several = rows.groupby("query_id").filter(lambda part: len(part) > 1)
    moved = several[[labeling, "quality"]] - several.groupby("query_id")[[labeling, "quality"]].transform("mean")
    square = (moved[labeling] ** 2).sum() * (moved["quality"] ** 2).sum()
    return float((moved[labeling] * moved["quality"]).sum() / np.sqrt(square)) if square > 1e-18 else 0.0


def plain_within(rows: pd.DataFrame, labeling: str) -> dict[str, float]:
    """The mean over questions of each question's coefficients over the runs that it has."""
    found = []
    for _, part in rows.groupby("query_id"):
        x, y = part[labeling].to_numpy(), part["quality"].to_numpy()
        if len(part) < 2 or np.ptp(y) == 0:
            continue
        if np.ptp(x) == 0:
            found.append([0.5, 0, 0, 0])
            continue
        first, second = np.triu_indices(len(part), 1)
        agreement = np.sign(x[first] - x[second]) * np.sign(y[first] - y[second])
        concordance = (agreement.sum() / np.count_nonzero(y[first] != y[second]) + 1) / 2
        found.append([concordance, kendalltau(x, y)[0], spearmanr(x, y)[0], pearsonr(x, y)[0]])
    names = ("concordance", "tau_b", "rho", "r")
    return dict(zip(names, np.mean(found, axis=0), strict=True)) if found else {}


def row_of(table: pd.DataFrame, **keys: str) -> pd.Series:
    for column, value in keys.items():
        table = table[table[column] == value]
    return table.set_index("coefficient")


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(12, 24), st.sampled_from([0.03, 0.1, 0.2]))
def test_coefficients_are_of_a_labelings_own_rows_and_differences_of_those_that_both_have(seed, runs, n, share):
    rng = np.random.default_rng(seed)
    quality = rng.integers(0, 3, (runs, n)) / 2
    values = {name: np.round(quality + rng.normal(size=quality.shape), 1) for name in ("a", "b", "c")}
    for scores in values.values():
        lost = rng.random(quality.shape) < share
        lost[rng.integers(0, runs, n), np.arange(n)] = False  # else the labeling does not apply to the question
        scores[lost] = np.nan
    scores, answers = tables(values, quality, RUNS[:runs])
    scores = scores.assign(measure="mine@5")
    found = compare(scores, answers, FEW_RESAMPLES)
    taken = {*found.table["labeling"][~found.table["flags"].str.contains("left_out")]}
    for name in taken:
        rows = on_both(scores, answers, name)
        within = row_of(found.table, labeling=name, level="within-query")["value"]
        assert within["r_pooled"] == pytest.approx(plain_r(rows, name), abs=1e-9)
        for coefficient, value in plain_within(rows, name).items():
            assert within[coefficient] == pytest.approx(value, abs=1e-9)
        of_run = row_of(found.table, labeling=name, level="query", run=RUNS[0])["value"]
        first = rows[rows["run"] == RUNS[0]]
        if np.ptp(first["quality"]) and np.ptp(first[name]):
            assert of_run["r"] == pytest.approx(pearsonr(first[name], first["quality"])[0], abs=1e-9)
    for pair in found.differences[["first", "second"]].drop_duplicates().itertuples(index=False):
        rows = on_both(scores, answers, *pair)
        gap = row_of(found.differences, first=pair.first, second=pair.second, level="within-query")
        if "r_pooled" in gap.index:
            apart = plain_r(rows, pair.first) - plain_r(rows, pair.second)
            assert gap.loc["r_pooled", "difference"] == pytest.approx(apart, abs=1e-9)


@pytest.mark.parametrize("level", ["within-query", "query", "system"])
def test_a_difference_is_that_of_tables_which_hold_the_common_rows_alone(level: str) -> None:
    scores, quality = world(THREE, n=120)
    for seed, name in enumerate(("own", "other")):
        scores = without(scores, name, at_random(scores, 0.03, seed))
    scores = scores.drop(columns=["low", "high"]).assign(measure="mine@5")
    both = on_both(scores, quality, "other", "own").set_index(["query_id", "run"]).index
    kept = pd.MultiIndex.from_frame(scores[["query_id", "run"]]).isin(both) | (scores["labeling"] == "third")
    common = scores.assign(value=scores["value"].where(kept))
    whole, alone = compare(scores, quality, FEW_RESAMPLES), compare(common, quality, FEW_RESAMPLES)
    found, expected = (
        row_of(each.differences, first="other", second="own", level=level, run="all") for each in (whole, alone)
    )
    columns = ["difference", "ci_low", "ci_high", "p", "n"]
    pd.testing.assert_frame_equal(found[columns], expected[columns])


def test_scores_that_one_labeling_misses_change_nothing_about_the_others() -> None:
    scores, quality = world(THREE, n=100)
    lost = without(scores, "own", at_random(scores, 0.2))
    whole, lacking = compare(scores, quality, FEW_RESAMPLES), compare(lost, quality, FEW_RESAMPLES)

    def about_the_others(found: Comparison) -> tuple[pd.DataFrame, pd.DataFrame]:
        pairs = found.differences[(found.differences["first"] == "other") & (found.differences["second"] == "third")]
        rows = found.table[found.table["labeling"] != "own"]
        return rows.reset_index(drop=True), pairs.drop(columns="p_holm").reset_index(drop=True)

    for found, expected in zip(about_the_others(lacking), about_the_others(whole), strict=True):
        pd.testing.assert_frame_equal(found, expected)
    # Of the labeling itself nothing is claimed, since so many of its scores may be anything.
    assert "own lacks scores on " in dict(lacking.decision.lines)["Keep"]
    # But the others are still held against each other.
    closer = [c for c in lacking.decision.claims if c.kind == "closer"]
    assert [(claim.subject, claim.against) for claim in closer] == [("other", "third")]


def test_a_failed_score_for_each_metric_of_a_wide_table_takes_one_answer_from_that_metric() -> None:
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(20)] * 2
    table = pd.DataFrame({"id": ids, "run": ["a"] * 20 + ["b"] * 20, "correct": rng.integers(0, 2, 40)})
    for place, name in enumerate(("faithfulness", "relevancy", "precision")):
        table[name] = table["correct"] + rng.normal(size=40)
        table.loc[3 * place, name] = np.nan
    found = compare(table, outcome=DeclaredOutcome("correct"), rules=FEW_RESAMPLES)
    within = found.details[found.details["level"] == "within-query"]
    behind = found.details[(found.details["level"] == "query") & (found.details["run"] == "a")]
    assert list(behind["n"]) == [19, 19, 19]
    assert len(within) == 3
    said = {c.subject: c.sentence for c in found.decision.claims if c.kind == "few missing"}
    assert said["relevancy"] == (
        "relevancy has no score on 1 of 40 answers (2.5 %): it is compared on the others; other labelings keep all 20"
        " questions."
    )
    assert len(said) == 3


def test_up_to_a_twentieth_of_each_run_may_be_missing_before_claims_are_held_at_the_bounds() -> None:
    scores, quality = world(THREE, n=100)
    of_run = (scores["run"] == "rrf") & (scores["query_id"] < "q0005")
    few = compare(without(scores, "own", of_run), quality, FEW_RESAMPLES).decision
    assert few.kept == "own"
    assert claims(few, "few missing")["own"].value == 5
    one_more = of_run | ((scores["run"] == "rrf") & (scores["query_id"] == "q0005"))
    many = compare(without(scores, "own", one_more), quality, FEW_RESAMPLES).decision
    assert not claims(many, "few missing")
    assert np.isnan(claims(many, "follows")["own"].low), "six of a hundred, all of one run, may be chosen"
    assert "nothing bounds them" in dict(many.lines)["Keep"]


def test_the_interval_of_r_reaches_from_the_worst_to_the_best_that_missing_scores_may_be() -> None:
    scores, quality = world(THREE, n=100)
    gone = at_random(scores, 0.1)
    open_ = without(scores, "own", gone, reach=2.0)
    joined = scores.merge(quality[["run", "query_id", "value"]], on=["run", "query_id"], suffixes=("", "_of_answer"))
    answer = joined["value_of_answer"]
    ahead = answer > answer.groupby(joined["query_id"]).transform("mean")
    lost = (joined["labeling"] == "own") & gone.to_numpy()
    ends = []
    for good in (ahead, ~ahead):
        filled = scores.assign(value=joined["value"].mask(lost, np.where(good, -2.0, 2.0)))
        ends.append(claims(compare(filled, quality, FEW_RESAMPLES).decision, "follows")["own"])
    found = claims(compare(open_, quality, FEW_RESAMPLES).decision, "follows")["own"]
    assert found.low == pytest.approx(ends[0].low)
    assert found.high >= ends[1].high
    assert found.low < found.value - 0.1


def test_scores_that_are_missing_where_they_would_contradict_the_answers_make_no_labeling_useful() -> None:
    rng = np.random.default_rng(1)
    quality = rng.integers(0, 2, (4, 150)).astype(float)
    noise = rng.normal(size=quality.shape)
    scores, answers = tables({"noise": noise, "weak": 0.3 * quality + rng.normal(size=quality.shape)}, quality)
    moved = (noise - noise.mean(axis=0)) * (quality - quality.mean(axis=0))
    contradicting = pd.Series(False, scores.index)
    contradicting[scores["labeling"] == "noise"] = (moved < np.quantile(moved, 0.2)).ravel()
    seen = claims(compare(scores[~contradicting].assign(measure="mine@5"), answers, FEW_RESAMPLES).decision, "follows")
    assert seen["noise"].value > 0.15, "the scores that are left follow the answers"
    bounded = compare(without(scores, "noise", contradicting, reach=3.0), answers, FEW_RESAMPLES).decision
    assert not claims(bounded, "follows")["noise"].shown
    assert bounded.kept != "noise"
    assert (
        "noise lacks 120 of 600 scores (20 %): claims of it must hold whatever these are. None does: ask for"
        in (dict(bounded.lines)["Keep"])
    )


def test_a_labeling_is_not_left_out_for_a_pick_that_its_missing_scores_may_change() -> None:
    rng = np.random.default_rng(2)
    quality = (rng.random((3, 200)) < np.array([[0.2], [0.5], [0.8]])).astype(float)
    follows = quality + rng.normal(size=quality.shape)
    follows[0] += 0.85  # so that it picks the worst run, by little
    scores, answers = tables({"own": follows, "plain": quality + rng.normal(size=quality.shape)}, quality, RUNS[:3])
    whole = compare(scores, answers, FEW_RESAMPLES).decision
    assert "it picks bm25" in claims(whole, "left out")["own"].sentence
    lost = (scores["run"] == "rrf") & (scores["query_id"] < "q0040")
    open_ = compare(without(scores, "own", lost, reach=4.0), answers, FEW_RESAMPLES).decision
    assert "it picks bm25" not in getattr(claims(open_, "left out").get("own"), "sentence", "")


@pytest.mark.parametrize("use", ["choose-runs", "find-questions"])
def test_the_decision_holds_labelings_against_each_other_on_the_cases_that_both_have(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[Case] = []
    monkeypatch.setattr("judgekit.analysis.comparison.decide_on", lambda case: cases.append(case) or decide_on(case))
    scores, quality = world(THREE, n=150)
    for seed, name in enumerate(("own", "other")):
        scores = without(scores, name, at_random(scores, 0.012, seed))
    scores = scores[scores["labeling"] != "third"].drop(columns=["low", "high"]).assign(measure="mine@5")
    both = on_both(scores, quality, "other", "own").set_index(["query_id", "run"]).index
    # A third labeling with all scores keeps the questions whose rows are masked.
    third = quality[["run", "query_id"]].assign(labeling="third", measure="mine@5", value=range(len(quality)))
    masked = scores.assign(
        value=scores["value"].where(pd.MultiIndex.from_frame(scores[["query_id", "run"]]).isin(both))
    )
    for table in (scores, masked):
        compare(pd.concat([table, third]), quality, FEW_RESAMPLES)
    apart, alone = cases

    def pair(case: Case) -> list[Series]:
        return [series for series in case.series(use) if series.name != "third"]

    found, expected = apart.leads(use, pair(apart)).least, alone.leads(use, pair(alone)).least
    assert found == pytest.approx(expected, rel=1e-3)
    assert len(found) == 2
    if use == "find-questions":
        return
    first, second = (follower for follower in apart.followers if follower.name != "third")
    r = {follower.name: follower.r.value for follower in alone.followers}
    lead = apart.leads(use, pair(apart)).of(first, second)
    assert lead.value == pytest.approx(r[first.name] - r[second.name])
    assert lead.value != pytest.approx(first.r.value - second.r.value, abs=1e-6)


@pytest.mark.parametrize(("reach", "shown"), [(0.1, True), (9.0, False)])
def test_a_labeling_flatters_its_pick_only_if_it_does_so_whatever_is_missing(reach: float, shown: bool) -> None:
    rng = np.random.default_rng(4)
    quality = (rng.random((3, 200)) < np.array([[0.55], [0.5], [0.5]])).astype(float)
    flattering = quality + rng.normal(size=quality.shape)
    flattering[0] += 1.5
    scores, answers = tables({"own": flattering}, quality, RUNS[:3])
    value = scores["value"]
    lost = pd.Series(np.random.default_rng(0).random(len(scores)) < 0.08, scores.index)
    open_ = scores.assign(
        value=value.mask(lost), low=value.mask(lost, value - reach), high=value.mask(lost, value + reach)
    )
    found = compare(open_, answers, FEW_RESAMPLES).decision
    assert "own lacks " in " ".join(claim.sentence for claim in found.claims)
    said = [claim.sentence for claim in found.claims if claim.kind == "left out"]
    assert any("flatter" in sentence for sentence in said) == shown, said


def test_coefficients_of_two_labelings_on_common_cases_are_worked_out_once(monkeypatch):
    rng = np.random.default_rng(4)
    good = rng.integers(0, 2, (3, 60)).astype(float)
    ids = {"run": np.repeat(["a", "b", "c"], 60), "query_id": [f"q{i}" for i in range(60)] * 3}
    tables = []
    for number, name in enumerate(("one", "three", "two")):
        values = good + rng.normal(size=good.shape)
        values[number, number] = np.nan
        tables.append(pd.DataFrame(ids | {"labeling": name, "measure": "RR", "value": values.ravel()}))
    quality = pd.DataFrame(ids | {"depth": 5, "model": "m", "metric": "em", "value": good.ravel()})
    calls = []

    def counted(target, scores, names=COEFFICIENTS):
        calls.append(names)
        return coefficients(target, scores, names)

    coefficients = Target.coefficients
    monkeypatch.setattr(Target, "coefficients", counted)
    compare(pd.concat(tables), quality, rules=FEW_RESAMPLES)
    # On 3 runs 3 labelings, and of 3 pairs of them what either lacks a case of: its own scores there are known already.
    assert len(calls) == 3 * 3 + 3 * 2
