"""What is drawn, and with which probability."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from judgekit.collection import Collection
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.errors import DataError, UsageError
from judgekit.people.sampling import Handout, draw, draw_answers, systematic
from judgekit.people.tasks import Sample


def pairs_of(sample: Sample) -> list[tuple[str, str]]:
    return [(task.query_id, task.doc_ids[0]) for task in sample.tasks if not task.repeat_of]


def test_whole_queries_hold_all_of_their_pool_and_pairs_are_drawn_alike_and_once(collection):
    sample = draw(collection, n=7, design="queries")
    drawn = {query for query, _ in pairs_of(sample)}
    assert sorted(pairs_of(sample)) == sorted((q, d) for q in drawn for d in collection.pairs[q])
    assert (len(drawn), sample.tasks[0].task, {task.probability for task in sample.tasks}) == (7, "t00001", {7 / 60})
    sample = draw(collection, n=50, design="pairs")
    assert len(set(pairs_of(sample))) == 50
    assert {task.probability for task in sample.tasks} == {50 / collection.n_pairs}


@pytest.mark.parametrize("design", ["queries", "pairs"])
def test_the_seed_fixes_the_draw(collection, design):
    first, again, other = (draw(collection, n=9, design=design, handout=Handout(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert set(pairs_of(first)) != set(pairs_of(other))


@given(st.integers(1, 100), st.floats(0.05, 1))
def test_a_draw_has_exactly_n_pairs_and_probabilities_that_add_up_to_it(size, share):
    n = max(1, round(share * size))
    probability, drawn = systematic(np.linspace(0.05, 0.5, size), n, np.random.default_rng(1))
    assert len(set(drawn.tolist())) == n
    assert probability.sum() == pytest.approx(n)
    assert (probability > 0).all()
    assert (probability <= 1 + 1e-12).all()


def test_pairs_are_drawn_as_often_as_their_probability_says():
    weight = np.array([0.5, 0.5, 0.1, 0.1, 0.05, 0.4])
    counts = np.zeros(6)
    for seed in range(1500):
        probability, drawn = systematic(weight, 3, np.random.default_rng(seed))
        counts[drawn] += 1
    assert np.abs(counts / 1500 - probability).max() < 0.04


def test_the_best_of_three_shows_each_document_about_as_often_with_each_other(collection):
    sample = draw(collection, n=5, form="best")
    for query in {task.query_id for task in sample.tasks}:
        shown = [task.doc_ids for task in sample.tasks if task.query_id == query]
        assert {len(docs) for docs in shown} == {3}
        times = Counter(doc for docs in shown for doc in docs)
        assert set(times) == set(collection.pairs[query])
        assert max(times.values()) - min(times.values()) <= 2
        met = Counter(frozenset(pair) for docs in shown for pair in combinations(docs, 2))
        assert max(met.values()) <= 2
        assert min(times.values()) >= 2
        assert len(met) == {4: 6, 5: 9, 6: 10}[len(times)], "of 6, 10 and 15"


def test_of_two_or_three_documents_all_are_shown_once_and_one_is_no_choice():
    ranked = {"r": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}}
    docs = MemoryDocs(Doc(name, name) for name in "abc")
    one, *more = (Collection.make([Query("q", "?")], docs, ranked, depth) for depth in (1, 2, 3))
    assert [[len(task.doc_ids) for task in draw(each, n=1, form="best").tasks] for each in more] == [[2], [3]]
    with pytest.raises(UsageError, match="'q' has a single document"):
        draw(one, n=1, form="best")


def test_assessors_share_the_work_and_each_task_has_as_many_as_asked(collection):
    sample = draw(collection, n=60, design="pairs", handout=Handout(("a", "b", "c"), overlap=2, duplicates=0.1))
    assert all(len(set(task.assessors)) == 2 for task in sample.tasks)
    load = Counter(name for task in sample.tasks if not task.repeat_of for name in task.assessors)
    assert max(load.values()) - min(load.values()) <= 1
    again = [task for task in sample.tasks if task.repeat_of]
    by_id = {task.task: task for task in sample.tasks}
    assert len(again) == 6
    assert all(by_id[task.repeat_of].doc_ids == task.doc_ids for task in again)
    few = draw(collection, n=25, design="pairs", handout=Handout(duplicates=0.05))
    assert len(few.tasks) == 27, "one task in twenty, begun ones counted"


def test_all_answers_to_random_questions_are_graded_and_equal_ones_once(collection):
    alike = {query: f"answer {query}" for query in collection.queries if query < "q10"}
    texts = {run: {q: f"answer {q} of {run}" for q in collection.queries} | alike for run in ("good", "poor")}
    del texts["poor"]["q50"]
    sample = draw_answers(collection.queries, texts, n=59, depth=3)
    assert sample.queries == 59, "q50 lacks an answer"
    assert Counter(len({task.query_id}) for task in sample.tasks) == {1: 10 + 2 * 49}
    assert {task.probability for task in sample.tasks} == {1.0}
    shown: dict[str, list[str]] = {}
    for task in sample.tasks:
        shown.setdefault(task.query_id, []).append(task.doc_ids[0])
    assert all(ids == sorted(ids) for ids in shown.values()), "their order says nothing of the runs"
    told = json.dumps([task.brief() for task in sample.tasks])
    assert "good" not in told
    assert "poor" not in told
    with pytest.raises(UsageError, match="60 questions that every run answered were requested, but only 59 exist"):
        draw_answers(collection.queries, texts, n=60, depth=3)
    referenced = draw_answers({"q": Query("q", "Where?", ("here",))}, {"r": {"q": "there"}}, n=1, depth=3)
    assert referenced.tasks[0].question == "Where?\n\nReference answer: here"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 61}, "61 queries were requested, but only 60 exist"),
        ({"n": 0}, "at least 1, not 0"),
        ({"n": 5, "design": "pairs", "form": "best"}, "use the design 'queries'"),
        ({"n": 5, "prompt": "answer-short"}, "use graded or binary"),
    ],
)
def test_what_cannot_be_drawn_is_said(collection, options, said):
    with pytest.raises(UsageError, match=said):
        draw(collection, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"overlap": 2}, "from 1 to 1, not 2"),
        ({"overlap": 0}, "from 1 to 1, not 0"),
        ({"duplicates": 0.9}, "from 0 to 0.5"),
        ({"assessors": ("a", "a")}, "distinct names"),
    ],
)
def test_what_cannot_be_handed_out_is_said(options, said):
    with pytest.raises(UsageError, match=said):
        Handout(**options)


def test_a_sample_is_read_back_as_it_was_written_and_if_changed_by_hand_refused_with_its_line(collection, tmp_path):
    path = tmp_path / "s.jsonl"
    sample = draw(collection, n=3, prompt="binary", handout=Handout(("ann", "bob"), overlap=2, duplicates=0.2))
    sample.write(path)
    assert Sample.read(path) == sample
    text = path.read_text()
    for old, new, said in (
        *(("Text of", other, "line 2: the texts are not the ones") for other in ("Texts of", "Text in", "Words of")),
        *(('"seed": 1', f'"seed": {other}', "was changed after it was written") for other in range(2, 6)),
        ('"pairs"', '"pears"', "line 1: lacks the field 'pairs'"),
        ('"sample"', "null", "line 1: is not a sample"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(DataError, match=said):
            Sample.read(path)
