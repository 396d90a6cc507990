"""Which queries are one question."""

import pytest
from hypothesis import given, strategies as st

from judgekit.data.documents import Query
from judgekit.data.questions import Repeats, contradicting, joined, normalised, question_key, questions_of, repeats_of

NAMES = st.sampled_from("abcdefgh")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("What is item 7?", "what  is\titem 7"),
        ("Who won?", "WHO WON?!"),
        ("ＷＨＯ　ｗｏｎ？", "who won"),
        ("Straße 5", "STRASSE 5."),
        ("\u1e9b\u0323", "\u1e69"),
        ("谁赢了。", "谁赢了"),
    ],
)
def test_spellings_of_a_text_are_one_question(text, other):
    assert normalised(text) == normalised(other)


@pytest.mark.parametrize(("text", "other"), [("C", "C++"), ("Is it 5", "Is it 6"), ("?", "!"), ("résumé", "resume")])
def test_other_texts_are_other_questions(text, other):
    assert normalised(text) != normalised(other)


@given(st.text(min_size=1))
def test_normalising_again_changes_nothing(text):
    assert normalised(normalised(text)) == normalised(text)


def turn(role, content):
    return {"role": role, "content": content}


def test_the_conversation_and_the_language_tell_questions_apart():
    plain = Query("1", "And in 2020?")
    about_france = Query("2", "And in 2020?", messages=(turn("user", "Who led France?"), turn("user", "And in 2020?")))
    about_spain = Query("3", "And in 2020?", messages=(turn("user", "Who led Spain?"), turn("user", "And in 2020?")))
    finnish = Query("4", "And in 2020?", language="fi")
    assert len({question_key(query) for query in (plain, about_france, about_spain, finnish)}) == 4


def test_a_conversation_of_the_question_alone_is_the_question():
    alone = Query("2", "Who won?", messages=(turn("user", "who won"),))
    assert question_key(Query("1", "Who won?")) == question_key(alone)


def test_a_question_is_called_by_its_first_id_whatever_the_order_of_the_file():
    queries = [Query("q9", "Who?"), Query("q2", "who"), Query("q5", "When?")]
    for order in (queries, queries[::-1]):
        assert questions_of({query.query_id: query for query in order}) == {"q2": "q2", "q9": "q2", "q5": "q5"}


@given(st.dictionaries(NAMES, NAMES, min_size=1), st.dictionaries(NAMES, st.sampled_from("xyz")), st.randoms())
def test_units_join_all_that_shares_a_question_or_a_group(questions, groups, random):
    unit = joined(questions, groups)
    assert unit.keys() == questions.keys()
    for first in questions:
        for other in questions:
            if questions[first] == questions[other] or (first in groups and groups[first] == groups.get(other)):
                assert unit[first] == unit[other]
    shuffled = list(questions.items())
    random.shuffle(shuffled)
    assert joined(dict(shuffled), groups) == unit
    # Nothing else is joined: a unit is connected by what its queries share.
    for name in set(unit.values()):
        members = {query_id for query_id, own in unit.items() if own == name}
        reached = {min(members)}
        for _ in members:
            shared = {questions[query_id] for query_id in reached}, {groups[q] for q in reached if q in groups}
            reached |= {q for q in members if questions[q] in shared[0] or groups.get(q) in shared[1]}
        assert reached == members


def test_a_declared_group_keeps_its_name():
    assert joined({"1": "1", "2": "2", "3": "3"}, {"1": "page", "2": "page"}) == {
        "1": "page",
        "2": "page",
        "3": "\x003",
    }


def test_repeats_count_rows_and_questions_and_name_the_cure_of_contradictions():
    queries = {
        "1": Query("1", "Who?", ("Ann",)),
        "2": Query("2", "who", ("Bob",)),
        "3": Query("3", "When?", ("1990",)),
        "4": Query("4", "when", ("1990.",)),
        "5": Query("5", "Where?"),
    }
    counted = repeats_of(queries, questions_of(queries))
    assert counted == Repeats(rows=5, questions=3, contradicting=1)
    assert "5 rows, 3 different questions" in counted.sentence
    assert 'groups = "none"' in counted.contradiction
    assert Repeats(3, 3).sentence == "" == Repeats(3, 3).contradiction
    assert contradicting({"1": "1", "2": "1"}, {"1": ["a", "b"], "2": ["B", "a"]}) == 0
