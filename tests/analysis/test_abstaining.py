"""Questions that nothing answers are left out of the comparison, and looked at by abstention."""

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis import Background
from judgekit.analysis.abstaining import Abstentions, abstentions

SILENT = ["I don't know.", "unanswerable", "The documents do not mention this."]


def tables(refused: dict[str, int], answered: int = 40, silent: int = 30) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answered questions, and others on which each run abstains so often."""
    rows, scores = [], []
    for place, run in enumerate(refused):
        for number in range(answered + silent):
            query = f"q{number:03}"
            right = float((number * 5 + place) % 3 == 0)
            answer = "Paris" if number < answered or number - answered >= refused[run] else SILENT[number % 3]
            rows.append((run, query, right, answer))
            scores.append(("gold", run, "nDCG@5", query, right if number < answered else 1.0 - place))
    quality = pd.DataFrame(rows, columns=["run", "query_id", "value", "answer"]).assign(depth=5, model="m", metric="em")
    return pd.DataFrame(scores, columns=["labeling", "run", "measure", "query_id", "value"]), quality


def compared(refused: dict[str, int], **background: object) -> jk.Comparison:
    """The comparison of these tables, in which the last 30 questions have no answer."""
    scores, quality = tables(refused)
    beside = Background(unanswerable=[f"q{number:03}" for number in range(40, 70)], **background)
    return jk.compare(scores, quality, jk.Rules(primary="nDCG@5", resamples=200), background=beside)


def said(comparison: jk.Comparison) -> str:
    """The sentence about abstention."""
    (sentence,) = (claim.sentence for claim in comparison.decision.claims if claim.kind == "abstain")
    return sentence


def test_the_run_that_abstains_more_often_is_named_beside_the_choice() -> None:
    found = compared({"short": 27, "long": 9})
    assert said(found) == (
        "30 questions that nothing answers are looked at apart: short abstains on 90 % of them, long on 30 %"
        " (60 points less, 36 to 84). No label can see it."
    )
    choice = dict(found.decision.lines)["Choose"]
    assert said(found) in choice, "beside what it qualifies"


def test_these_questions_take_no_part_in_anything_else() -> None:
    scores, quality = tables({"short": 27, "long": 9})
    kept = [f"q{number:03}" for number in range(40)]
    alone = jk.compare(
        scores[scores["query_id"].isin(kept)],
        quality[quality["query_id"].isin(kept)],
        jk.Rules(primary="nDCG@5", resamples=200),
    )
    pd.testing.assert_frame_equal(compared({"short": 27, "long": 9}).table, alone.table)


def test_a_column_of_the_quality_table_says_which_they_are() -> None:
    scores, quality = tables({"short": 27, "long": 9})
    quality["answerable"] = quality["query_id"] < "q040"
    found = jk.compare(scores, quality, jk.Rules(primary="nDCG@5", resamples=200))
    assert said(found) == said(compared({"short": 27, "long": 9}))


def test_no_difference_is_claimed_where_none_is_shown() -> None:
    sentence = said(compared({"short": 16, "long": 15}))
    assert sentence.endswith("runs abstain on 50 to 53 % of them, and no difference is shown.")


def test_a_difference_between_the_extremes_of_many_runs_needs_more() -> None:
    rng = np.random.default_rng(3)
    values = (rng.random((6, 60)) < 0.5).astype(float)
    six = Abstentions(tuple("abcdef"), values)
    two = Abstentions(("a", "b"), values[:2])
    wide, narrow = (found.difference("a", "b", 0.95) for found in (six, two))
    assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)
    few = [Abstentions(("a", "b"), values[:2, :number]).difference("a", "b", 0.95) for number in (7, 8)]
    assert [bool(np.isfinite(gap.low)) for gap in few] == [False, True], "fewer than 8 questions show nothing"


def test_questions_of_one_group_count_as_one() -> None:
    values = np.array([[1.0, 0.0] * 10, [0.0, 0.0] * 10])
    rows = [
        (run, f"q{n}", "unknown" if value else "Paris")
        for run, line in zip("ab", values, strict=True)
        for n, value in enumerate(line)
    ]
    table = pd.DataFrame(rows, columns=["run", "query_id", "answer"])
    alone = abstentions(table)
    together = abstentions(table, {f"q{n}": f"doc{n % 10}" for n in range(20)})
    assert alone is not None
    assert together is not None
    assert together.share("a") == alone.share("a") == pytest.approx(0.5)
    gaps = [found.difference("a", "b", 0.95) for found in (alone, together)]
    assert gaps[1].high - gaps[1].low > gaps[0].high - gaps[0].low


def test_without_the_answers_texts_nothing_is_said() -> None:
    scores, quality = tables({"short": 27, "long": 9})
    found = jk.compare(
        scores,
        quality.drop(columns="answer"),
        jk.Rules(primary="nDCG@5", resamples=200),
        background=Background(unanswerable=["q060"]),
    )
    assert not [claim for claim in found.decision.claims if claim.kind == "abstain"]
