"""Questions that nothing answers are left out of the comparison."""

import pandas as pd

import judgekit as jk
from judgekit.analysis.background import Background

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


def test_these_questions_take_no_part_in_anything_else() -> None:
    scores, quality = tables({"short": 27, "long": 9})
    kept = [f"q{number:03}" for number in range(40)]
    alone = jk.compare(
        scores[scores["query_id"].isin(kept)],
        quality[quality["query_id"].isin(kept)],
        jk.Rules(primary="nDCG@5", resamples=200),
    )
    pd.testing.assert_frame_equal(compared({"short": 27, "long": 9}).table, alone.table)


def test_a_column_of_the_quality_table_says_which_they_are_and_how_many_there_are_is_told() -> None:
    scores, quality = tables({"short": 27, "long": 9})
    quality["answerable"] = quality["query_id"] < "q040"
    found = jk.compare(scores, quality, jk.Rules(primary="nDCG@5", resamples=200))
    assert found.decision.record() == compared({"short": 27, "long": 9}).decision.record()
    assert "All comparisons leave out 30 unanswerable questions." in found.warnings
