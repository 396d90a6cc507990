"""Several answers to a question are samples: their mean is its quality, and their spread is shown."""

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.comparison import compare
from judgekit.analysis.samples import means_of, sampled
from judgekit.errors import DataError
from judgekit.rules import Rules
from tests.analysis.test_repeated_questions import drawn, said, texts, words

FAST = Rules(resamples=100)


def answered(share: float, questions: int, samples: int, seed: int = 0, runs: int = 2) -> pd.DataFrame:
    """Answers of runs whose differences are chance between answers to this share of their variance."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=questions)
    own = np.sqrt(1 - share) * rng.normal(size=(runs, questions)) + ease
    rows = []
    for run in range(runs):
        for sample in range(samples):
            values = own[run] + np.sqrt(share) * rng.normal(size=questions)
            ids = [f"q{question:04}" for question in range(questions)]
            rows.append(pd.DataFrame({"query_id": ids, "run": f"r{run}", "sample": str(sample), "value": values}))
    return pd.concat(rows, ignore_index=True)


@pytest.mark.parametrize("samples", [2, 5])
@pytest.mark.parametrize("share", [0.13, 0.48, 0.86])
def test_the_share_of_chance_is_unbiased_and_its_interval_covers_it(share, samples):
    found = [
        sampled(answered(share, 100, samples, seed, 3), ["r0", "r1", "r2"], {}, Rules(resamples=200)).share
        for seed in range(60)
    ]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(share, abs=0.03)
    covered = np.mean([each.low <= share <= each.high for each in found])
    assert covered > 0.85


def test_the_worth_of_further_answers_is_that_of_two_stage_samples():
    found = sampled(answered(0.5, 400, 5), ["r0", "r1"], {}, FAST)
    w = found.share.value
    assert found.worth == pytest.approx(1 / (1 - w * (1 - 1 / 5)) - 1)
    assert found.worth == pytest.approx(0.67, abs=0.12)


def test_too_few_questions_give_no_number():
    assert np.isnan(sampled(answered(0.5, 49, 2), ["r0", "r1"], {}, FAST).share.value)
    assert sampled(answered(0.5, 60, 1), ["r0", "r1"], {}, FAST) is None


def three_samples() -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    scores, quality = drawn(7, 2, 80)
    values = np.random.default_rng(1).integers(0, 2, (3, len(quality))).astype(float)
    rows = [quality.assign(value=values[number], sample=str(number)) for number in range(3)]
    return scores, pd.concat(rows, ignore_index=True), values


def test_a_column_of_samples_makes_their_mean_the_quality():
    scores, rows, values = three_samples()
    shuffled = rows.sample(frac=1, random_state=3)
    found = compare(scores, shuffled, FAST, queries=texts(scores))
    mean = compare(scores, drawn(7, 2, 80)[1].assign(value=values.mean(axis=0)), FAST, queries=texts(scores))
    kinds = ["samples", "single answers"]
    table = said(found)
    pd.testing.assert_frame_equal(table[~table["kind"].isin(kinds)].reset_index(drop=True), said(mean))
    assert "3 answers a question: their mean counts;" in words(found.decision)
    share = found.decision.of("samples")["value"].iloc[0]
    assert share > 80, "these answers are coin flips"


def test_samples_of_scores_are_meant_too_and_epochs_are_samples():
    scores, rows, _ = three_samples()
    given = pd.concat([scores.assign(value=scores["value"] + shift, epoch=str(shift)) for shift in (-1, 0, 1)])
    found = compare(given, rows.rename(columns={"sample": "epoch"}), FAST, queries=texts(scores))
    pd.testing.assert_frame_equal(said(found), said(compare(scores, rows, FAST, queries=texts(scores))))


def test_two_rows_of_one_sample_are_refused_and_the_cure_is_named():
    scores, rows, _ = three_samples()
    with pytest.raises(DataError, match=r"two values .* need a column 'sample' that numbers them"):
        compare(scores, pd.concat([rows, rows.iloc[:1]]), FAST)
    with pytest.raises(DataError, match="need a column 'sample'"):
        compare(scores, rows.drop(columns="sample"), FAST)


def test_a_wide_table_may_hold_samples():
    rng = np.random.default_rng(0)
    rows = [
        {
            "question": f"What is {question}?",
            "run": run,
            "epoch": epoch,
            "thumb": int(rng.random() < 0.5),
            "judge": rng.random(),
        }
        for question in range(60)
        for run in ("a", "b")
        for epoch in range(4)
    ]
    found = jk.compare(pd.DataFrame(rows), rules=FAST, outcome="thumb")
    assert set(found.table["labeling"]) == {"judge"}
    assert "4 answers a question" in words(found.decision)
    with pytest.raises(DataError, match="number them in a column 'sample'"):
        jk.compare(pd.DataFrame(rows).drop(columns="epoch"), rules=FAST, outcome="thumb")


def test_a_sample_that_is_missing_leaves_the_others():
    rows = pd.DataFrame({"query_id": "q", "run": "a", "sample": ["1", "2", "3"], "value": [np.nan, 1.0, 0.0]})
    for order in ([0, 1, 2], [2, 1, 0]):
        found = means_of(rows.iloc[order])
        assert found["value"].tolist() == [0.5]
