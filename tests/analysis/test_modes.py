"""Modes of answering side by side, on the questions that all of them answer."""

import pandas as pd
import pytest

from judgekit.analysis.comparison import compare
from judgekit.errors import UsageError
from judgekit.rules import Rules
from tests.analysis.worlds import noisy

SCORES, MERGE = noisy(60, ("a", "b"))
QUALITY = pd.concat([MERGE.assign(mode="merge"), noisy(60, ("a", "b"), seed=1)[1].assign(mode="vote")])


def test_a_question_that_lacks_an_answer_in_one_mode_is_left_out_of_all():
    lost = (QUALITY["mode"] == "vote") & (QUALITY["query_id"] == "q0007")
    found = compare(SCORES, QUALITY.assign(value=QUALITY["value"].mask(lost)), rules=Rules(resamples=100))
    n = found.modes.query("run == 'a' and level == 'query'").groupby("mode")["n"].max()
    assert n.to_dict() == {"merge": 59, "vote": 59}
    assert found.table.query("run == 'a' and level == 'query'")["n"].max() == 60
    (choice,) = (warning for warning in found.warnings if "mode" in warning)
    assert choice == "No mode of answering was chosen: the decision is about 'merge', the first of merge, vote."


def test_of_three_modes_two_are_not_all():
    third = noisy(60, ("a", "b"), seed=2)[1].assign(mode="together")
    quality = pd.concat([QUALITY, third[third["query_id"] != "q0007"]])
    found = compare(SCORES, quality, rules=Rules(resamples=100)).modes
    n = found.query("run == 'a' and level == 'query'").groupby("mode")["n"].max()
    assert n.to_dict() == {"merge": 59, "vote": 59, "together": 59}


def test_modes_that_share_no_question_are_not_compared_and_the_decision_is_about_the_one_that_was_chosen():
    apart = QUALITY[(QUALITY["mode"] == "merge") == (QUALITY["query_id"] < "q0030")]
    found = compare(SCORES, apart, rules=Rules(resamples=100), mode="vote")
    assert (found.modes, found.primary.mode) == (None, "vote")
    with pytest.raises(UsageError, match=r"unknown mode 'votes': choose from merge, vote"):
        compare(SCORES, apart, rules=Rules(resamples=100), mode="votes")
    assert "The modes merge, vote share no question with values, so they are not compared." in found.warnings
