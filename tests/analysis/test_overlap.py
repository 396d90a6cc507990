"""How the lists of two runs relate."""

from judgekit.analysis.nesting import Overlap, nested_pairs
from judgekit.data.runs import Run


def made(name: str, lists: list[str]) -> Run:
    """A run whose documents are the letters of each word, for the questions 0, 1, 2, …"""
    rows = [(str(query), letter, -float(rank)) for query, word in enumerate(lists) for rank, letter in enumerate(word)]
    return Run(name, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def test_lists_are_nested_on_a_share_of_the_questions() -> None:
    short, long = made("short", ["ab", "ab", "ab", "abc", ""]), made("long", ["ba", "abc", "xyz", "a", "q"])
    [pair] = nested_pairs([short, long], list("01234"), 10)
    assert (pair, pair.nested) == (Overlap("short", "long", 5, 2, 1), 0.6)


def test_only_the_first_documents_count() -> None:
    runs = [made("a", ["xy"]), made("b", ["xyz"])]
    assert nested_pairs(runs, ["0"], 2) == []
    assert nested_pairs(runs, ["0"], 3)[0].first_inside == 1


def test_a_question_that_a_run_lacks_has_an_empty_list_there() -> None:
    assert nested_pairs([made("a", ["x"]), made("b", ["x", "y"])], ["0", "1"], 10)[0].first_inside == 1


def test_up_to_a_tenth_of_nested_questions_leaves_runs_comparable() -> None:
    queries = [str(query) for query in range(10)]
    one = made("one", ["ab"] * 10)
    assert nested_pairs([one, made("once", ["abc"] + ["cd"] * 9)], queries, 10) == []
    twice = nested_pairs([one, made("twice", ["abc"] * 2 + ["cd"] * 8)], queries, 10)
    assert [(found.first, found.second, found.nested) for found in twice] == [("one", "twice", 0.2)]


def test_the_most_nested_pair_comes_first() -> None:
    runs = [made("a", ["ab"] * 4), made("b", ["abc", "abc", "x", "y"]), made("c", ["abcd"] * 4)]
    assert [found.nested for found in nested_pairs(runs, list("0123"), 10)] == [1.0, 0.5, 0.5]
