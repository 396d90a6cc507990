"""The one sentence between Table 1, which is over questions, and Keep, which is between runs."""

import re

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.comparison import compare
from judgekit.rules import Rules
from tests.analysis.worlds import RUNS, claims, tables


def material(easy: float, own: float, n: int = 300, seed: int = 0, luck_too: float = 0.0):
    """Labels that know how easy a question is, and labels that know, through so much noise, how good an answer is."""
    rng = np.random.default_rng(seed)
    ease, luck = rng.normal(size=n), rng.normal(size=(len(RUNS), n))
    right = (ease + 0.7 * luck > 0.2).astype(float)
    known = easy * ease + 0.5 * rng.normal(size=luck.shape) + luck_too * luck
    closer = luck + own * rng.normal(size=luck.shape)
    return tables({"easy": known, "own": closer}, right)


def decided(*about: float, **more: float):
    return compare(*material(*about, **more), Rules(resamples=200)).decision


def test_where_another_labeling_leads_over_questions_one_sentence_says_which_case_it_is():
    decision = decided(1.0, 1.0)
    (claim,) = claims(decision, "levels").values()
    assert (claim.subject, claim.against, claim.shown) == ("easy", "own", True)
    assert claim.sentence.startswith("Over questions (as in Table 1 of the eRAG paper) easy has the larger tau, .")
    assert "choose runs by own, find questions that fail by easy." in claim.sentence
    assert re.search(r"\(r \.\d\d \(\.\d\d to \.\d\d\); easy -?\.\d\d \(-?\.\d\d to -?\.\d\d\)\)", claim.sentence)
    assert claim.sentence in dict(decision.lines)["Keep"]


def test_a_lead_between_runs_that_is_not_shown_is_a_further_finding():
    decision = decided(1.0, 1.2, n=40, luck_too=0.5)
    for claim in claims(decision, "levels").values():
        assert not claim.shown
        assert claim.sentence.endswith(", a lead that is not shown.")
        assert claim.sentence in decision.details
        assert claim.sentence not in dict(decision.lines)["Keep"], "it advises nothing"
    assert claims(decision, "levels")


def test_labels_that_follow_least_badly_are_not_advised():
    scores, quality = material(1.0, 1.0)
    # Both lists turned round: what was the closer one now is the one further off.
    turned = scores.assign(value=-scores["value"])
    decision = compare(turned, quality, Rules(resamples=200)).decision
    for claim in claims(decision, "levels").values():
        assert not claim.shown
        assert "choose runs by" not in claim.sentence
        assert claim.sentence.endswith(", which is not shown to be above 0.")
    assert claims(decision, "levels")


def test_nothing_is_said_where_one_labeling_leads_at_both_levels():
    assert not claims(decided(0.0, 0.5), "levels")


@pytest.mark.parametrize(("gone", "over", "between"), [("easy", "third", "own"), ("own", "easy", "third")])
def test_a_labeling_some_scores_of_which_nothing_bounds_leads_at_no_level(gone, over, between):
    scores, quality = material(1.0, 1.0)
    open_ = (scores["labeling"] == gone) & scores["query_id"].isin(sorted(scores["query_id"].unique())[:20])
    value = scores["value"].where(~open_)
    scores = scores.assign(value=value, low=value.mask(open_, -np.inf), high=value.mask(open_, np.inf))
    decision = compare(scores, quality, Rules(resamples=200)).decision
    assert f"{gone} lacks scores on 20 questions" in dict(decision.lines)["Keep"]
    assert not claims(decision, "levels"), "one labeling is left, which leads nobody"
    # Those whose scores are known or bounded are held against each other.
    noise = np.random.default_rng(1).normal(size=len(quality))
    third = scores[scores["labeling"] == "easy"].assign(labeling="third")
    third["value"] = material(1.0, 1.0)[0].query("labeling == 'easy'")["value"] + noise
    third["low"] = third["high"] = third["value"]
    all_three = pd.concat([scores, third])
    decision = compare(all_three, quality, Rules(resamples=200)).decision
    (claim,) = claims(decision, "levels").values()
    assert (claim.subject, claim.against) == (over, between)
    without = compare(all_three[all_three["labeling"] != gone], quality, Rules(resamples=200)).decision
    # By their words: NaN is not equal to itself, and Python 3.13 compares field by field. Intervals hold for all
    # labelings together, so those of two are narrower than those of three.
    said, alone = (re.sub(r" \([^()]* to [^()]*\)", "", repr(one)) for one in (claim, claims(without, "levels")[over]))
    assert said == alone, "as if it did not exist"
    assert f" {gone} " not in claim.sentence
