"""The one sentence between Table 1, which is over questions, and Keep, which is between runs."""

import numpy as np

from judgekit.analysis.comparison import compare
from judgekit.rules import Rules
from tests.analysis.worlds import RUNS, claims, tables


def decided(easy: float, own: float, n: int = 300, seed: int = 0, luck_too: float = 0.0):
    """Labels that know how easy a question is, and labels that know, through so much noise, how good an answer is."""
    rng = np.random.default_rng(seed)
    ease, luck = rng.normal(size=n), rng.normal(size=(len(RUNS), n))
    right = (ease + 0.7 * luck > 0.2).astype(float)
    known = easy * ease + 0.5 * rng.normal(size=luck.shape) + luck_too * luck
    closer = luck + own * rng.normal(size=luck.shape)
    return compare(*tables({"easy": known, "own": closer}, right), Rules(resamples=200)).decision


def test_where_another_labeling_leads_over_questions_one_sentence_says_which_case_it_is():
    decision = decided(1.0, 1.0)
    (claim,) = claims(decision, "levels").values()
    assert (claim.subject, claim.against, claim.shown) == ("easy", "own", True)
    assert claim.sentence.startswith("Over questions (Table 1 of the eRAG paper) easy leads, tau .")
    assert "keep own to choose runs, easy to find questions that fail." in claim.sentence
    assert claim.sentence in dict(decision.lines)["Keep"]


def test_a_lead_between_runs_that_is_not_shown_is_said_with_the_questions_that_tell():
    decision = decided(1.0, 1.2, n=40, luck_too=0.5)
    for claim in claims(decision, "levels").values():
        assert not claim.shown
        assert "which " in claim.sentence
        assert "questions do not show." in claim.sentence
    assert claims(decision, "levels")


def test_nothing_is_said_where_one_labeling_leads_at_both_levels():
    assert not claims(decided(0.0, 0.5), "levels")
