"""How the lists of two runs relate."""

from hypothesis import given, strategies as st

from judgekit.data.overlap import Overlap, nested_pairs, overlaps
from judgekit.data.runs import Run


def made(name: str, lists: list[str]) -> Run:
    """A run whose documents are the letters of each word, for the questions 0, 1, 2, …"""
    rows = [(str(query), letter, -float(rank)) for query, word in enumerate(lists) for rank, letter in enumerate(word)]
    return Run(name, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def test_lists_are_the_same_or_one_inside_the_other_or_neither() -> None:
    short, long = made("short", ["ab", "ab", "ab", "abc", ""]), made("long", ["ba", "abc", "xyz", "a", "q"])
    assert overlaps([short, long], list("01234")) == [Overlap("short", "long", 5, 1, 2, 1)]
    found = overlaps([short, long], list("01234"))[0]
    assert (found.nested, found.identical, found.comparable) == (0.6, 0.2, False)


def test_only_the_first_documents_count() -> None:
    assert overlaps([made("a", ["xy"]), made("b", ["xz"])], ["0"], depth=1)[0].same == 1


def test_a_question_that_a_run_lacks_has_an_empty_list_there() -> None:
    assert overlaps([made("a", ["x"]), made("b", ["x", "y"])], ["0", "1"])[0].first_inside == 1


def test_up_to_a_tenth_of_nested_questions_leaves_runs_comparable() -> None:
    queries = [str(query) for query in range(10)]
    one = made("one", ["ab"] * 10)
    assert nested_pairs([one, made("once", ["abc"] + ["cd"] * 9)], queries) == []
    twice = nested_pairs([one, made("twice", ["abc"] * 2 + ["cd"] * 8)], queries)
    assert [(found.first, found.second, found.nested) for found in twice] == [("one", "twice", 0.2)]


def test_the_most_nested_pair_comes_first() -> None:
    runs = [made("a", ["ab"] * 4), made("b", ["abc", "abc", "x", "y"]), made("c", ["abcd"] * 4)]
    assert [found.nested for found in nested_pairs(runs, list("0123"))] == [1.0, 0.5, 0.5]


@given(
    st.lists(st.lists(st.text("abc", max_size=3).map(set).map("".join), min_size=3, max_size=3), min_size=2, max_size=4)
)
def test_the_shortcut_by_lengths_loses_no_nested_pair(lists: list[list[str]]) -> None:
    runs = [made(f"run{number}", words) for number, words in enumerate(lists)]
    often = {(found.first, found.second) for found in overlaps(runs, list("012")) if not found.comparable}
    assert {(found.first, found.second) for found in nested_pairs(runs, list("012"))} == often
