"""Sentences of answers: more than a hundred answers in five scripts, split by hand, and what is true of every text."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import regex
from hypothesis import given, strategies as st

from judgekit.answers.citations import marks, unread_marks, without_marks
from judgekit.answers.sentences import sentences

ROWS = [json.loads(line) for line in Path(__file__).with_name("sentences.jsonl").read_text("utf-8").splitlines()]
"""Answers with their sentences as a person splits them, by language; headings and sources are no sentences."""


def test_answers_are_split_as_by_hand() -> None:
    assert len(ROWS) >= 100
    scripts = Counter(regex.sub(r"[\p{Common}\p{Latin}]", "", row["text"])[:1] != "" for row in ROWS)
    assert min(scripts.values()) >= 40, "half of them in other scripts than Latin"
    wrong = [row for row in ROWS if sentences(row["text"]) != row["sentences"]]
    assert wrong == []


@pytest.mark.parametrize("script", ["Latin", "Han", "Devanagari", "Arabic", "Cyrillic"])
def test_no_letter_of_prose_is_lost(script: str) -> None:
    own = [row["text"] for row in ROWS if regex.search(rf"\p{{{script}}}", row["text"]) and "\n" not in row["text"]]
    assert len(own) >= 8
    for text in own:
        assert re.sub(r"\s", "", "".join(sentences(text))) == re.sub(r"\s", "", text)


@given(
    st.lists(
        st.sampled_from(["It is old.", "Is it?", "Dr. Ray came.", "高いです。", "यह ऊँची है।", "هل هو؟", "A b [1]."])
    )
)
def test_sentences_stay_whole_in_any_order(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts
    assert sentences("\n\n".join(parts)) == parts
    assert sentences("".join(f"- {part}\n" for part in parts)) == parts


@given(st.text(st.sampled_from("aB1.!? \n-#*|>:[]()“”。।؟`~="), max_size=40))
def test_any_text_is_split_and_splitting_a_sentence_gives_it_back(text: str) -> None:
    found = sentences(text)
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in found)
    letters = [character for character in "".join(found) if character.isalnum()]
    assert Counter(letters) <= Counter(character for character in text if character.isalnum()), "nothing is made up"


def test_items_rows_and_headings() -> None:
    assert sentences("1) It is old\n2) It is tall\n\t- and red") == ["It is old", "It is tall", "and red"]
    assert sentences("It lies in [1]:\n- Paris") == ["It lies in [1]:", "Paris"], "what cites is no heading"
    assert sentences("It is old. It has:\n- a roof") == ["It is old.", "a roof"]
    assert sentences("See:") == ["See:"], "it announces nothing"
    assert sentences("-5 degrees. It is cold.") == ["-5 degrees.", "It is cold."]
    assert sentences("```\nx = 1. Y = 2.\n```\nIt prints. Done.") == ["x = 1. Y = 2.", "It prints.", "Done."]
    assert sentences("A | B\n--|--\nParis | 2 m. It\n") == ["Paris | 2 m. It"]
    assert sentences("It is old.\n\nReferences\n1. Guide. Paris.\n2. Atlas.\n\nIt is red.") == [
        "It is old.",
        "It is red.",
    ]
    assert sentences("It is old [^1].\n\n[^1]: Guide to Paris.") == ["It is old [^1]."]
    assert sentences("So. 1. It is old. 2. It is red.") == ["So.", "1. It is old.", "2. It is red."]
    assert sentences("# Height [1]\nIt is old.") == ["Height [1]", "It is old."]
    assert sentences("") == sentences("# Title") == sentences("…") == []


READ = [
    *(("[1]", (1,)), ("[1][2]", (1, 2)), ("[1, 2;3]", (1, 2, 3)), ("[1-3]", (1, 2, 3)), ("[1–2, 5]", (1, 2, 5))),
    *(
        ("[1 and 2]", (1, 2)),
        ("【1】", (1,)),
        ("【1†source】", (1,)),
        ("［１］", (1,)),
        ("[^1]", (1,)),
        ("[[2]]", (2,)),
    ),
    *(
        ("[Source 1]", (1,)),
        ("[Doc 2, Doc 3]", (2, 3)),
        ("[doc_3]", (3,)),
        ("(Source 1)", (1,)),
        ("[Passage #4]", (4,)),
    ),
    *(("[citation:1][citation:2]", (1, 2)), ("<sup>1</sup>", (1,)), ("[1](https://a.org/x9)", (1,)), (r"\[1\]", (1,))),
    *(("[ 1 , 1 ]", (1,)), ("[0]", ()), ("[出典2]", (2,))),
]
UNREAD = [
    *("[Smith 2020]", "[Smith et al., 2020]", "(Smith et al., 2020)", "【4:0†source】", "[Source: Guide to Paris]"),
    *("[1: Guide]", "[^note]", "[the guide](https://a.org/1)", "[source]", "[1.2]", '<cite id="a">'),
]
NONE = [
    *(
        "[sic]",
        "[...]",
        "[2019]",
        "[citation needed]",
        "(Paris, 1889)",
        "【結論】",
        "m²",
        "10:30",
        "[12:30]",
        "(1)",
        "[x]",
    ),
    *("array[i]", "[in 2020]", "[3D]", "the [2nd]", "(note 5)", "[a, b]", "note 5", "sources say"),
]


def test_marks_are_read_in_the_forms_in_which_models_cite() -> None:
    for mark, numbers in READ:
        text = f"It is tall {mark}."
        found = dict.fromkeys(number for one in marks(text) for number in one.numbers)
        assert (tuple(found), without_marks(text), unread_marks(text)) == (numbers, "It is tall.", []), mark
    assert [mark.numbers for mark in marks("It is tall.¹ It is old.²,³ It has 5 m² and x³.")] == [(1,), (2, 3)]


def test_what_looks_like_a_citation_and_has_no_number_is_counted_and_nothing_else_is() -> None:
    for mark in UNREAD:
        assert unread_marks(f"It is tall {mark}. It is old [1].") == [mark]
        assert [one.numbers for one in marks(f"It is tall {mark}. It is old [1].")] == [(1,)]
    for text in NONE:
        assert (list(marks(f"It is {text} tall.")), unread_marks(f"It is {text} tall.")) == ([], []), text
