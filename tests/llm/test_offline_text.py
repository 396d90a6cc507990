"""How the offline stand-in cuts text and understands questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.llm.offline_question import read_question
from judgekit.llm.offline_text import Sentence, sentences, stem, tokenize


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cities", "city"),
        ("opened", "opening"),
        ("designer", "architect"),
        ("found", "discovered"),
        ("founded", "established"),
        ("Greave's", "Greave"),
        ("running", "run"),
    ],
)
def test_forms_and_synonyms_share_a_class(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("found", "founded"), ("1823", "1824"), ("mill", "mile")])
def test_different_words_do_not(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_sentences_end_at_full_stops_but_not_at_abbreviations() -> None:
    text = "Dr. Anna B. Holm drew it. Was it No. 4? It was.\nThe end"
    assert [s.text for s in sentences(text)] == ["Dr. Anna B. Holm drew it.", "Was it No. 4?", "It was.", "The end"]


@given(st.text(max_size=200))
def test_cutting_loses_no_word_and_offsets_are_true(text: str) -> None:
    assert all(text[t.start : t.end] == t.text for t in tokenize(text))
    parts = " ".join(s.text for s in sentences(text))
    assert "".join(parts.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "kind", "span"),
    [
        ("It opened on 3 May 1911 in rain.", "date", "3 May 1911"),
        ("It opened on May 3, 1911 in rain.", "date", "May 3, 1911"),
        ("In 1911 it opened.", "year", "1911"),
        ("It shuts on Tuesdays only.", "weekday", "Tuesdays"),
        ("It is 37 metres tall.", "quantity", "37 metres"),
        ("It costs €4.50 a day.", "quantity", "€4.50"),
        ("They have forty-two boats.", "number", "forty-two"),
        ("Then Ferdinand de Lesseps came.", "name", "Ferdinand de Lesseps"),
        ("Then Abebe Bikila of Ethiopia won.", "name", "Abebe Bikila"),
        ("The sails are made of waxed linen.", "phrase", "waxed linen"),
    ],
)
def test_spans_of_each_kind_are_found(text: str, kind: str, span: str) -> None:
    assert (kind, span) in [(c.kind, c.text) for c in Sentence(text).candidates]


@pytest.mark.parametrize(
    ("question", "expects", "measures"),
    [
        ("Who built the mill?", "person", ""),
        ("When was it built?", "date", ""),
        ("Where does it stand?", "place", ""),
        ("How many sails has it?", "number", ""),
        ("How tall is it?", "quantity", "length"),
        ("How long did the war last?", "quantity", "time"),
        ("How long is the river?", "quantity", "length time"),
        ("How much money was spent?", "quantity", "money"),
        ("What is the melting point of tin?", "quantity", "heat"),
        ("What does a ticket cost?", "quantity", "money"),
        ("In which city is it?", "name", ""),
        ("What is the big bell called?", "name", ""),
        ("In what year did it close?", "year", ""),
        ("On what day of the week is it closed?", "weekday", ""),
        ("On which port does it listen?", "code", ""),
        ("What are the sails made of?", "thing", ""),
        ("", "thing", ""),
    ],
)
def test_the_type_of_the_answer_is_read_off_the_question(question: str, expects: str, measures: str) -> None:
    asked = read_question(question)
    assert (asked.expects, asked.measures) == (expects, measures)


def test_names_weigh_more_than_other_words_and_the_noun_asked_for_less() -> None:
    terms = read_question("In which city did Anna Holm live?").terms
    assert terms[stem("Holm")] > terms[stem("live")] > terms[stem("city")]
