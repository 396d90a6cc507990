"""Inputs that do not belong together are found before anything is paid for."""

import pandas as pd
import pytest

from judgekit.data.checks import (
    MANY,
    check_runs,
    contradictions,
    judges_nothing,
    own_documents,
    remarks,
    twins,
    ways_read,
)
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run
from judgekit.errors import DataError
from judgekit.metrics.cuts import disjoint

QUERIES = {q: Query(q, "x") for q in ("q1", "q2", "q3")}
DOCS = MemoryDocs(Doc(d, "x") for d in ("d1", "d2", "d3"))


def run(*pairs: tuple[str, str], name: str = "bm25") -> Run:
    return Run(name, [q for q, _ in pairs], [d for _, d in pairs], [1.0] * len(pairs))


def test_queries_that_a_run_lacks_are_counted() -> None:
    runs = [run(("q1", "d1"), ("q3", "d1")), run(("q2", "d2"), ("q1", "d1"), ("q3", "d3"), name="dense")]
    assert check_runs(runs, QUERIES, DOCS) == {"bm25": ("q2",), "dense": ()}
    assert check_runs(runs[:1], {"q3": QUERIES["q3"]}, DOCS) == {"bm25": ()}, "a pilot on some of the questions"


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([], "give at least one run"),
        ([run()], "run 'bm25' is empty"),
        ([run(("q1", "d1")), run(("q2", "d1"))], "two runs are named 'bm25'"),
        (
            [run(("q1", "d1"), ("q8", "d1"), ("q9", "d1"))],
            "has 2 of its 3 queries missing from the queries, first 'q8'",
        ),
        ([run(("q1", "d1"), ("q2", "d9"))], "1 of its 2 docs missing from the collection, first 'd9'. If the docs are"),
        ([run(("x1", "d1"))], "first 'x1': are these files from the same collection?"),
    ],
)
def test_runs_that_do_not_fit_are_refused(runs: list[Run], reason: str) -> None:
    with pytest.raises(DataError) as caught:
        check_runs(runs, QUERIES, DOCS)
    assert reason in str(caught.value)


def said(*labels: tuple[str, str, float | None, str, float, str]) -> list[str]:
    columns = ["query_id", "doc_id", "relevance", "status", "judged", "reason"]
    return [*remarks(Labeling("gold", Scale("binary"), pd.DataFrame(labels, columns=columns)))]


def test_what_is_to_know_of_labels_is_counted() -> None:
    good = ("q1", "d1", 1, "ok", 1, "")
    assert said() == said(good, ("q1", "d2", 0, "ok", 0, "")) == []
    assert said(good, ("q1", "d2", 0, "ok", 1, "may be inflected"), ("q2", "d1", 0, "ok", 1, "may be inflected")) == [
        "gold: 2 of 3 labels, in 2 of 2 queries, may be wrong: may be inflected."
    ]
    lacking = (("q1", "d2", None, "unasked", 0, ""), *(("q2", d, None, "not_applicable", 0, "why") for d in "ab"))
    assert said(good, *lacking) == [
        "gold does not apply to 1 of 2 queries, which have no score under it (q2: why).",
        "gold lacks 1 of 4 labels, in 1 of 2 queries: these documents were never judged.",
    ]
    # A labeler that asks nobody says why itself.
    apart = said(good, ("q2", "d2", None, "unasked", 0, "not in the list"), ("q2", "d3", None, "unasked", 0, ""))
    assert apart == [
        "gold lacks 1 of 3 labels, in 1 of 2 queries: these documents were never judged.",
        "gold lacks 1 of 3 labels, in 1 of 2 queries: not in the list.",
    ]


@pytest.mark.parametrize(("judged", "nothing"), [([0, 0], True), ([0, 1], False), (None, False)])
def test_labels_that_say_nothing_of_the_pool_are_noticed(judged: list[int] | None, nothing: bool) -> None:
    rows = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": 0.0})
    found = Labeling("gold", Scale("binary"), rows if judged is None else rows.assign(judged=judged))
    assert judges_nothing(found) == nothing


def test_labels_that_are_all_alike_are_noticed() -> None:
    alike = [(f"q{i}", "d", 1, "ok", 1.0, "") for i in range(20)]
    unread = [(f"r{i}", "d", None, "unparsed", 1.0, "") for i in range(3)]
    assert said(*alike, *unread) == ["gold gives all 20 pairs the same label, 1: it tells no documents apart."]
    assert said(*alike[1:], *unread) == said(*alike, ("q0", "e", 0, "ok", 1.0, "")) == said(*unread) == []
    (one,) = said(*((*row[:4], 0.0, "") for row in alike))
    assert "same collection" in one, "nothing was judged, which is why they are alike"


@pytest.mark.parametrize(("judged", "told"), [(0, "judges none of the documents"), (2, "only 2 of 50"), (3, "")])
def test_labels_that_hardly_meet_the_pool_may_be_of_another_collection(judged: int, told: str) -> None:
    found = said(*((f"q{i}", "d", i % 2, "ok", float(i < judged), "") for i in range(50)))
    assert [told in line and "are these from the same collection?" in line for line in found] == [True] * bool(told)


def test_runs_that_were_cut_are_held_against_each_other_by_all_that_was_read() -> None:
    """A shuffled run has other documents on top, and is of the same collection all the same."""
    docs = [f"d{i:03}" for i in range(200)]
    first, other = (Run("r", ["q"] * 200, listed, [*range(200, 0, -1)]) for listed in (docs, docs[::-1]))
    assert list(disjoint([first.cut(30), other.cut(30)])) == []


@pytest.mark.parametrize(
    ("scores", "ranks", "told"),
    [
        (range(MANY + 1), None, "every list goes from the lowest score to the highest"),
        (range(MANY), None, ""),
        ([*range(MANY + 1), 0], None, ""),
        (range(0, -MANY - 1, -1), None, ""),
        ([1, 2], [1, 2], "the next rank has the higher score"),
        ([1, 2], [2, 1], ""),
        ([1, 2], [1, 1], ""),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1], range(11), ""),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 2], range(10), "(11% of the time the next rank"),
        ([1] * (MANY + 1), range(MANY + 1), "all scores within a query are equal, and its ranks are not read"),
        ([1] * MANY, range(MANY), ""),
        ([1] * (MANY + 1), None, ""),
        ([float("nan")] * (MANY + 1), range(MANY + 1), ""),
    ],
)
def test_scores_that_rise_with_the_rank_are_noticed(scores: list[float], ranks: list[int] | None, told: str) -> None:
    columns = {"query_id": "q", "doc_id": [f"d{i}" for i in range(len(scores))], "score": scores}
    found = list(contradictions({"a": pd.DataFrame(columns if ranks is None else {**columns, "rank": ranks})}))
    assert [told in line for line in found] == [True] * bool(told)


def test_names_of_the_same_lists_are_told() -> None:
    one, same = run(("q1", "d1"), ("q2", "d2")), run(("q2", "d2"), ("q1", "d1"), name="same")
    others = [run(("q1", "d1"), ("q2", "d3"), name="other"), run(("q1", "d1"), name="less")]
    assert list(twins([one, same, *others])) == [("bm25", "same")]


def test_how_replies_were_read_is_told() -> None:
    rows = [("q", "a", 1.0, "ok", "form"), ("q", "b", 1.0, "ok", "second request"), ("q", "c", None, "unparsed", None)]
    labels = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "status", "read_by"])
    [told] = ways_read(Labeling("judge", Scale("binary"), labels))
    shares = "50.0% in the form asked for, 0.0% as a plain sentence, 50.0% when asked again"
    assert told == f"judge: of 2 replies, {shares} (column read_by of the labels)."
    assert [*ways_read(Labeling("gold", Scale("binary"), labels.drop(columns="read_by")))] == []


def own(lists: dict[str, list[str]]) -> Run:
    return Run("bm25", *zip(*((q, d, -i) for q, docs in lists.items() for i, d in enumerate(docs)), strict=True))


LISTS = {"a1": ["a1", "b1"], "a2": ["a2", "b1"], "a3": ["b1", "a3"], "a4": ["b2"]}
ARGUMENTS = {q: Query(q, f"Text of {q}.") for q in LISTS}


def test_lists_that_begin_with_the_query_itself_are_told() -> None:
    [said] = own_documents(own(LISTS))
    assert "begins with the query's own document for 2 of 4 queries" in said
    assert "(score --drop-self; drop_self = true in [data])" in said
    texts = MemoryDocs([*(Doc(q, f"text of {q}") for q in LISTS), Doc("b1", "other")])
    assert len([*own_documents(own(LISTS), texts=(ARGUMENTS, texts))]) == 1
    assert not [*own_documents(own(LISTS).without_own())]


def test_ids_that_only_meet_are_no_documents_of_their_queries() -> None:
    by_chance = {str(n): [str(n), "x"] if n < 3 else ["x", str(n)] for n in range(20)}
    assert not [*own_documents(own(by_chance))]
    assert not [*own_documents(own({"a1": ["a1"], "a2": ["x"]}))], "one query tells nothing"
    # A passage with the number of its question, which it answers.
    rows = [(q, q, 1) for q in LISTS]
    gold = Labeling("gold", Scale("binary"), pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]))
    assert not [*own_documents(own(LISTS), [gold])]
    answers = MemoryDocs(Doc(q, f"Q: text of {q}. A: because.") for q in LISTS)
    assert not [*own_documents(own(LISTS), texts=(ARGUMENTS, answers))]
