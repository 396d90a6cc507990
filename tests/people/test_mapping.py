"""The rule that puts a machine's labels on people's scale: by a search, by laws, and in worlds that a mean ruins."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import isotonic_regression

from judgekit.data.labelings import Labeling, Scale
from judgekit.people.final import final_labels
from judgekit.people.mapping import Rule, fit, matched_cut
from judgekit.people.reading import People

pairs = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.7, 1.0]), st.integers(0, 3), st.sampled_from([0.25, 1.0, 3.0])),
    min_size=1,
    max_size=40,
)


def arrays(rows):
    values, people, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    return values, people, weight


@given(pairs)
def test_the_share_of_relevant_labels_comes_closest_to_people_s_by_a_search(rows):
    values, people, weight = arrays(rows)
    relevant = people >= 2
    cut = matched_cut(values, relevant, weight, 0.5)
    if relevant.all() or not relevant.any() or len(set(values)) < 2:
        assert cut == 0.5
        return

    def away(at):
        return abs((weight * (values >= at)).sum() - (weight * relevant).sum())

    assert cut in set(values)
    assert away(cut) == pytest.approx(min(away(at) for at in set(values) - {min(values)}))


@given(pairs, st.sampled_from(["grades:3:2", "means:3:2", "grades:-1..3:2"]))
def test_no_gain_crosses_the_border_or_falls_with_the_value(rows, spelled):
    values, people, weight = arrays(rows)
    scale = Scale.parse(spelled)
    rule = fit(values, people, weight, scale, matched_cut(values, people >= 2, weight, 0.5))
    tried = np.linspace(-0.5, 1.5, 41)
    gains, labels = rule.gain(tried), rule(tried)
    assert (np.diff(gains) >= 0).all()
    assert ((gains >= 2) == (tried >= rule.cut)).all()
    assert ((labels >= 2) == (tried >= rule.cut)).all()
    assert scale.holds(labels).all()
    assert np.isnan(rule(np.array([np.nan]))).all()


def test_of_equally_close_cuts_it_is_the_one_nearest_to_what_the_labeling_declares():
    values, relevant = np.array([0.0, 1, 2, 3]), np.array([False, False, True, True])
    assert matched_cut(values, relevant, np.array([1.0, 0, 1, 1]), 1) == 1
    assert matched_cut(values, relevant, np.array([1.0, 0, 1, 1]), 3) == 2
    assert matched_cut(values, relevant, np.ones(4), 1) == 2


def test_a_value_counts_people_s_mean_where_both_agree_on_relevance():
    values = np.array([0.1, 0.1, 0.5, 0.9, 0.9, 0.9])
    people = np.array([0.0, 3.0, 1.0, 3.0, 2.0, 0.0])
    rule = fit(values, people, np.array([3.0, 1, 1, 1, 3, 1]), Scale.parse("grades:3:2"), 0.9)
    # The 3 at .1 and the 0 at .9 are the machine's mistakes.
    assert rule.values == (0.1, 0.5, 0.9)
    assert rule.gains == pytest.approx((0, 1, 2.25))
    assert rule.gain(np.array([0.3, 0.95])) == pytest.approx([0.5, 2.25])
    assert str(rule) == "relevant from 0.9 on; 0.1 counts 0.00, 0.5 counts 1.00, 0.9 counts 2.25"
    falling = fit(np.array([0.0, 0.2, 0.4, 1]), np.array([1.0, 0, 0, 3]), np.ones(4), Scale.parse("grades:3:2"), 1)
    assert falling.gains[:3] == tuple(isotonic_regression([1.0, 0, 0]).x)


def test_a_class_in_which_nobody_agrees_counts_the_scale_s_own_end():
    rule = fit(np.array([0.0, 1.0]), np.array([3.0, 1.0]), np.ones(2), Scale.parse("grades:-1..3:2"), 1)
    assert rule == Rule(Scale.parse("grades:-1..3:2"), 1, (0, 1), (-1, 2))


def world(seed, *, judged, precision=0.5, recall=0.75, scale="grades:3:2", questions=104):
    """A binary judge; people's grades of all ten passages of some questions drawn at random. 22 % are relevant."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        [(f"q{q:03}", f"d{d}") for q in range(questions) for d in range(10)], columns=["query_id", "doc_id"]
    )
    relevant = random.random(len(frame)) < 0.22
    grade = np.where(relevant, random.choice([2, 3], len(frame), p=[0.6, 0.4]), random.random(len(frame)) < 0.3)
    if scale == "unit":
        grade = np.where(relevant, random.choice([0.5, 0.75], len(frame)), random.choice([0, 0.25], len(frame)))
    false = 0.22 * recall * (1 - precision) / precision / 0.78
    said = random.random(len(frame)) < np.where(relevant, recall, false)
    drawn = {f"q{q:03}" for q in random.permutation(questions)[:judged]}
    mine = frame["query_id"].isin(drawn)
    labels = frame[mine].assign(relevance=grade[mine].astype(float), status="ok")
    asked = frame[mine].assign(probability=judged / questions, content="", status="ok", judgments=1)
    people = People(Labeling("people", Scale.parse(scale), labels), asked, "queries", 0.0)
    return Labeling("judge", Scale("binary"), frame.assign(relevance=said.astype(float))), people, frame.assign(y=grade)


@pytest.mark.parametrize("scale", ["grades:3:2", "unit"])
@pytest.mark.parametrize("judged", [8, 25])
def test_a_judge_that_is_right_in_half_of_the_cases_keeps_its_relevant_documents(scale, judged):
    """A mean grade of 1.3 is below relevance: by it 90 of 104 questions lost all relevant documents."""
    for seed in range(5):
        machine, people, truth = world(seed, judged=judged, scale=scale)
        final = final_labels(machine, people)
        least = people.labeling.scale.threshold
        none = 104 - truth.loc[truth["y"] >= least, "query_id"].nunique()
        assert 104 - final.filled.final <= none
        assert not final.filled.emptied
        by_judge = final.table[final.table["source"] == "judge"]
        assert ((by_judge["relevance"] >= least) == (by_judge["machine"] == 1)).all()


def test_a_judge_that_hardly_ever_says_relevant_is_refused_and_one_that_says_it_too_often_is_named():
    strict, people, _ = world(1, judged=30, precision=0.9, recall=0.08)
    final = final_labels(strict, people)
    assert final.filled.emptied
    said = final.filled.refusal("judge")
    lost = 104 - final.filled.final
    assert said.startswith(f"No relevant document is left in {lost} of 104 questions: judge finds none on ")
    assert "--accept-empty" in said
    loose, people, _ = world(1, judged=30, precision=0.3, recall=0.9)
    assert any("times as many passages relevant as people do" in note for note in final_labels(loose, people).notes)
    few, people, _ = world(1, judged=24, precision=0.3, recall=0.9)
    assert not any("times as many" in note for note in final_labels(few, people).notes)
