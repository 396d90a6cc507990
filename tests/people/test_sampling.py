"""What is drawn, and with which probability."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from judgekit.collection import Collection
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import DataError, UsageError
from judgekit.metrics import evaluate
from judgekit.people.sampling import Handout, doubtful, draw, draw_answers, expected, proportional, systematic
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


def test_strata_get_their_share_and_none_is_left_out(collection, machine):
    sample = draw(collection, n=30, design="stratified", by="judge", labelings={"judge": machine})
    said = machine.table.set_index(["query_id", "doc_id"])["relevance"]
    pool = Counter(said[query, doc] for query, docs in collection.pairs.items() for doc in docs)
    drawn = Counter(said[pair] for pair in pairs_of(sample))
    for label, count in drawn.items():
        assert abs(count - 30 * pool[label] / collection.n_pairs) < 1
    for task in sample.tasks:
        label = said[task.query_id, task.doc_ids[0]]
        assert task.probability == pytest.approx(drawn[label] / pool[label])
    assert (proportional(np.repeat([0, 1], [11, 19]), 3, np.random.default_rng(1))[1] >= 11).sum() == 2  # of 1.9


@pytest.mark.parametrize(
    ("labels", "strata"), [((0, 0.19), 1), ((0.2, 0.39), 1), ((0.8, 1), 1), ((0.19, 0.2), 2), ((0.79, 0.8), 2)]
)
def test_labels_without_grades_have_five_strata(collection, machine, labels, strata):
    table = machine.table.assign(relevance=np.where(machine.table["relevance"] > 0, *labels))
    options = {"design": "stratified", "labelings": {"p": Labeling("p", Scale("unit"), table)}}
    assert len(pairs_of(draw(collection, n=strata, **options))) == strata
    if strata > 1:
        with pytest.raises(UsageError, match="fewer than the 2 strata"):
            draw(collection, n=1, **options)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.floats(0.05, 1))
def test_a_draw_has_exactly_n_pairs_and_probabilities_that_add_up_to_it(sizes, share):
    strata = np.repeat(np.arange(len(sizes)), sizes)
    n = max(len(sizes), round(share * len(strata)))
    for how, pairs in ((proportional, strata), (systematic, np.linspace(0.05, 0.5, len(strata)))):
        probability, drawn = how(pairs, n, np.random.default_rng(1))
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


def test_a_judge_that_is_unsure_is_looked_at_more(collection, machine):
    table = machine.table.assign(relevance=np.where(machine.table["relevance"] > 0, 0.5, 0.0))
    p_yes = Labeling("p-yes", Scale("unit"), table)
    sample = draw(collection, n=60, design="doubtful", by="p-yes", labelings={"p-yes": p_yes})
    said = table.set_index(["query_id", "doc_id"])["relevance"]
    probability = {said[task.query_id, task.doc_ids[0]]: task.probability for task in sample.tasks}
    assert probability[0.5] > 2 * probability[0.0]
    assert probability[0.0] == pytest.approx(0.5 * 60 / collection.n_pairs), "a sure judge may be wrong"
    assert doubtful(np.array([0.5, np.nan])).tolist() == [1, 1], "what it did not say is in doubt"
    with pytest.raises(UsageError, match="needs probabilities, and 'judge' has the scale binary"):
        draw(collection, n=60, design="doubtful", by="judge", labelings={"judge": machine})


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


def test_all_answers_to_random_questions_are_graded_and_equal_ones_once(collection):
    alike = {query: f"answer {query}" for query in collection.queries if query < "q10"}
    texts = {run: {q: f"answer {q} of {run}" for q in collection.queries} | alike for run in ("good", "poor")}
    del texts["poor"]["q50"]
    sample = draw_answers(collection.queries, texts, n=59, depth=3)
    assert sample.queries == 59, "q50 lacks an answer"
    assert Counter(len({task.query_id}) for task in sample.tasks) == {1: 10 + 2 * 49}
    assert {task.probability for task in sample.tasks} == {1.0}
    told = json.dumps([task.brief() for task in sample.tasks])
    assert "good" not in told
    assert "poor" not in told
    with pytest.raises(UsageError, match="60 questions that every run answered were asked for, but only 59 exist"):
        draw_answers(collection.queries, texts, n=60, depth=3)
    referenced = draw_answers({"q": Query("q", "Where?", ("here",))}, {"r": {"q": "there"}}, n=1, depth=3)
    assert referenced.tasks[0].question == "Where?\n\nReference answer: here"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 61}, "61 queries were asked for, but only 60 exist"),
        ({"n": 0}, "at least 1, not 0"),
        ({"n": 5, "design": "stratified"}, "needs the labels of a finished run"),
        ({"n": 5, "design": "stratified", "by": "jugde"}, "unknown labeling 'jugde'"),
        ({"n": 5, "design": "doubtful"}, "name it with by"),
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


def test_the_precision_to_expect_is_that_of_the_labels_that_are_there(collection, machine):
    whole = draw(collection, n=20, labelings={"judge": machine})
    found = expected(whole, collection, "P@3", {"judge": machine})
    values = evaluate(list(collection.runs), [machine], "P@3", query_ids=sorted(collection.queries)).values[0][0]
    reach = 2.0930 / np.sqrt(20)  # t with 19 degrees of freedom
    assert found["P@3 of a run"] == pytest.approx(reach * values.std(axis=1, ddof=1).mean(), rel=1e-4)
    widest = max((a - b).std(ddof=1) for a, b in combinations(values, 2))
    assert found["the difference of two runs"] == pytest.approx(reach * widest, rel=1e-4)
    pairs = draw(collection, n=100, design="pairs")
    share = machine.row_relevance.mean()
    (width,) = expected(pairs, collection, "P@3", {"judge": machine}).values()
    assert width == pytest.approx(1.96 * np.sqrt(share * (1 - share) / 100))
    assert expected(pairs, collection, "P@3", {}) == {"a share": pytest.approx(1.96 * 0.05)}
