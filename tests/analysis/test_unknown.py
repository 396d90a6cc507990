"""Missing labels: claims that hold whatever the labels are."""

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.comparison import compare
from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.resampling import resample_matrix
from judgekit.rules import Rules
from tests.analysis.worlds import claims, world

GOOD = {"own": (0.0, 1.0), "other": (1.0, 0.3)}


def lacking(scores: pd.DataFrame, labeling: str, queries: int, reach: float = 2.0) -> pd.DataFrame:
    """Return the scores without those of a labeling on the first queries, which may be anything within a reach."""
    first = sorted(scores["query_id"].unique())[:queries]
    gone = (scores["labeling"] == labeling) & scores["query_id"].isin(first)
    value = scores["value"]
    return scores.assign(
        value=value.where(~gone), low=value.where(~gone, value - reach), high=value.where(~gone, value + reach)
    )


@pytest.mark.parametrize("use", ["choose-runs", "find-questions"])
def test_bounds_that_are_the_scores_change_nothing(use: str) -> None:
    scores, quality = world(GOOD, n=60)
    bounded = scores.assign(low=scores["value"], high=scores["value"])
    plain, same = (compare(table, quality, rules=Rules(use=use, resamples=100)).decision for table in (scores, bounded))
    pd.testing.assert_frame_equal(same.table, plain.table)


def test_a_winner_is_named_only_if_no_missing_label_could_undo_it() -> None:
    scores, quality = world(GOOD, n=200)
    few, many = (compare(lacking(scores, "own", n), quality, rules=Rules(resamples=200)).decision for n in (10, 11))
    assert few.kept == many.kept == "own"
    assert "own has no score on 40 of 800 answers (5 %): it is compared on the others;" in dict(few.lines)["Based on"]
    more = "own lacks 44 of 800 scores (5.5 %): claims of it must hold whatever these are."
    assert more in dict(many.lines)["Based on"]
    # Without bounds, the questions are left out, as if the labeling did not apply to them.
    unbounded = lacking(scores, "own", 11).drop(columns=["low", "high"])
    alone = compare(unbounded, quality, rules=Rules(resamples=200)).decision
    assert alone.kept == "own"
    for kind in ("follows", "gain"):
        assert claims(many, kind)["own"].low < claims(alone, kind)["own"].low
    scores, quality = world({**GOOD, "other": (0.2, 0.9)}, n=200, seed=3)
    assert compare(lacking(scores, "own", 30, reach=9), quality, rules=Rules(resamples=200)).decision.kept != "own"


def test_nothing_is_claimed_of_a_labeling_some_scores_of_which_nothing_bounds() -> None:
    rng = np.random.default_rng(3)
    scores, quality = world({"own": (0.0, 1.0), "other": (0.0, 1.0)}, n=200)
    # It flatters a run by far, which would be shown.
    scores["value"] += 2 * ((scores["labeling"] == "own") & (scores["run"] == "bm25")) + rng.normal(size=len(scores))
    whole, open_ = (
        compare(table, quality, rules=Rules(resamples=200)).decision
        for table in (scores, lacking(scores, "own", 11, reach=np.inf))
    )
    about = ("follows", "gain", "flatters", "left out", "closer", "finds")
    shown = [[c.kind for c in d.claims if c.kind in about and c.subject == "own" and c.shown] for d in (whole, open_)]
    assert {"follows", "flatters", "left out", "finds"} <= {*shown[0]}
    assert shown[1] == []
    for kind in ("follows", "finds"):
        assert np.isnan(claims(open_, kind)["own"].low)
        assert claims(open_, kind)["own"].value > 0, "it is described"
        assert claims(open_, kind)["other"].shown
    assert "of two questions, other finds" in dict(open_.lines)["Failing"]
    assert open_.kept == "other"
    told = " ".join(open_.details)
    assert "own follows the answers with r = " in told
    assert "(no interval: missing scores have no bounds)" in told
    assert "too few questions differ" not in told, "many differ: what is missing has no bounds"
    said = "where nothing bounds them: nothing is claimed of it, nor in comparison with it."
    assert said in dict(open_.lines)["Keep"]


def test_a_single_labeling_some_scores_of_which_nothing_bounds_is_not_shown_to_find_questions_that_fail() -> None:
    scores, quality = world({"own": (1.0, 1.0)}, n=200)
    open_ = lacking(scores, "own", 11, reach=np.inf)
    whole, lack = (compare(table, quality, rules=Rules(resamples=200)).decision for table in (scores, open_))
    assert dict(whole.lines)["Failing"].startswith(
        "To find questions that fail, sort them by their own score (nDCG@5), "
    )
    value = round(100 * claims(lack, "finds")[""].value)
    none = "No labeling is shown to find the questions that fail: of two questions, own finds the worse answered one"
    known = "where its scores are known, and nothing bounds the others; chance finds 50."
    assert dict(lack.lines)["Failing"] == f"{none} {value} times in 100 {known}"


@pytest.mark.parametrize("level", ["query", "within-query"])
def test_whatever_the_missing_labels_are_the_concordance_lies_between_the_worst_and_the_best(level: str) -> None:
    scores, quality = world(GOOD, n=60)
    open_ = lacking(scores, "own", 4)
    resamples = Resamples(resample_matrix(60, 100, 1))

    def concordance(panel: Panel) -> float:
        own = panel.labelings.index("own")
        found = (e for e in estimates(panel, level, resamples) if (e.run, e.labeling) == ("all", own))
        return float(next(found).values[0])

    def panel_of(table: pd.DataFrame) -> Panel:
        return Inputs.read(table, quality, {}, []).panel("nDCG@5", "em", "m", 5)

    panel = panel_of(open_)
    assert panel.unknown == {"own": 16}
    worst, best = map(concordance, panel.extremes(level))
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(12):
        share = rng.integers(0, 2, len(open_)) if rng.random() < 0.5 else rng.random(len(open_))
        seen.append(concordance(panel_of(open_.assign(value=open_["low"] + share * (open_["high"] - open_["low"])))))
    assert worst <= min(seen) < max(seen) <= best


def test_small_scores_that_are_good_have_their_bounds_turned_round() -> None:
    scores, quality = world(GOOD, n=60)
    turned = scores.assign(value=-scores["value"], measure="Err@5")
    open_ = lacking(turned, "own", 3)
    panel = Inputs.read(open_, quality, {}, ["Err@5"]).panel("Err@5", "em", "m", 5)
    assert (panel.low <= panel.high).all()
    plain = Inputs.read(lacking(scores, "own", 3), quality, {}, []).panel("nDCG@5", "em", "m", 5)
    assert panel.low == pytest.approx(plain.low)
    assert panel.high == pytest.approx(plain.high)
