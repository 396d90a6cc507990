"""Which questions nothing answers, and which answers to them abstain."""

import pandas as pd
import pytest

from judgekit.answers.unanswerable import gives_up, unanswerable, unanswerable_in
from judgekit.data.documents import Query
from judgekit.errors import DataError


def query(name: str, *answers: str, answerable: str = "") -> Query:
    """A question with its references, and what its column says."""
    return Query(name, "?", answers, columns={"answerable": answerable} if answerable else {})


@pytest.mark.parametrize(
    ("said", "found"), [("false", True), ("No", True), ("0", True), ("true", False), ("1.0", False)]
)
def test_the_column_says_which_questions_nothing_answers(said: str, found: bool) -> None:
    assert ("q" in unanswerable([query("q", "Paris", answerable=said)])) is found


def test_without_a_column_references_that_abstain_and_no_gold_documents_say_so() -> None:
    queries = [query("a", "unanswerable"), query("b", "unknown", "Paris"), query("c", "unknown"), query("d")]
    assert unanswerable(queries, gold={"c"}) == {"a"}
    assert unanswerable(queries) == frozenset(), "without gold documents a reference alone does not"


def test_the_column_wins_over_references() -> None:
    assert unanswerable([query("a", "unknown", answerable="yes")], gold=set()) == frozenset()


def test_the_column_of_a_table_says_it_of_some_rows_as_of_all() -> None:
    table = pd.DataFrame({"query_id": ["a", "a", "b", "c"], "answerable": [False, None, True, "no"]})
    assert unanswerable_in(table) == {"a", "c"}
    assert unanswerable_in(table[["query_id"]]) == frozenset()


def test_anything_else_in_the_column_is_an_error_that_names_the_question() -> None:
    with pytest.raises(DataError, match=r"question 'q': answerable is 'perhaps'; it must be true or false"):
        unanswerable([query("q", answerable="perhaps")])


@pytest.mark.parametrize(
    ("answer", "found"),
    [("unknown", True), ("The provided papers do not mention the funding.", True), ("Paris", False), ("No", False)],
)
def test_an_answer_may_abstain_in_its_own_words(answer: str, found: bool) -> None:
    assert gives_up(answer) is found
