"""An answer that stands in a document, and one that only seems to."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from judgekit.answers.text import Text
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import build, checked
from tests.labelers.scripted import Here


def label(spec: str, answers: Sequence[str], text: str, title: str = "") -> float | Status:
    unit = Unit(Query("q", "?", tuple(answers)), (Doc("d", text, title),))
    labeler = build(spec, Here())
    assert labeler.requests(unit, []) == []
    found = checked(labeler, unit, [])[0]
    return found.status if found.relevance is None else found.relevance


@pytest.mark.parametrize(
    ("answer", "text", "relevance"),
    [
        ("Paris", "It is Paris.", 1),
        ("paris", "PARIS!", 1),
        ("5", "a score of 25", 0),
        ("5", "a score of 5.", 1),
        ("5", "2.5 of them", 1),
        ("N/A", "the value is n/a today", 1),
        ("N/A", "n a", 0),
        ("C++", "he writes C++, mostly", 1),
        ("C++", "he writes C", 0),
        ("C", "he writes C++", 1),
        ("C#", "c# is a language", 1),
        ("50%", "some 50 people", 0),
        ("U.S.", "the U.S. Navy", 1),
        ("U.S.", "with us", 0),
        ("Jeopardy!", "he won Jeopardy! twice", 1),
        ("Jeopardy!", "life in jeopardy", 0),
        ("Jeopardy!", "jeopardy, then Jeopardy! again", 1),
        ("Oklahoma", "welcome to Oklahoma!", 1),
        ("the Beatles", "Beatles songs", 0),
        ("Beatles", "The Beatles", 1),
        ("Who wrote Hamlet?", "who wrote hamlet", 0),
        ("John Smith", "John (Smith)", 0),
        ("John Smith", "John Adams Smith", 0),
        ("Smith John", "John Smith", 0),
        ("Beyonce", "Beyoncé sang", 0),
        ("Beyoncé", unicodedata.normalize("NFD", "Beyoncé sang"), 1),
        ("STRASSE", "eine Straße", 1),
        ("ﬁve", "five of them", 1),
        ("rock 'n' roll", "Rock ‘n’ Roll music", 0),
        ("1914", "the war of 1914–1918", 1),
        ("twice", "won it twice—in 1956", 1),
        ("東京", "首都は 東京 です", 1),
        ("$5 million", "it cost 5 million", 0),
        ("(Paris)", "in Paris", 0),
        ("Paris", "\ufeffParis\u200b, a city", 1),
        ("Montmartre", "in Mont\u00admartre", 0),
        ("दिल्ली", "यह दिल्ली।", 1),
        ("باريس", "هي باريس، نعم", 1),
        ("102", "10² cells", 0),
        ("10²", "about 10² cells", 1),
        ("105", "10⁵ cells", 0),
        ("10-5", "10⁻⁵ of it", 0),
        ("102", "the binary 10₂", 0),
        ("1", "a note¹ or ¹ alone", 0),
        ("1", "① Paris", 0),
        ("km2", "some km² of land", 0),
        ("H2O", "H₂O is water", 0),
        ("5", ".5 percent", 1),
        (".5", "some .5 percent", 1),
        ("5", "-5 degrees", 1),
        ("5", "−5 degrees", 1),
        ("-5", "(−5 degrees)", 0),
        ("−5", "-5 degrees", 0),
        ("5", "a loss of -$5", 1),
        ("-$5", "a loss of -$5", 1),
        ("$5", "some $5", 1),
        ("5", "wait ...5 of them", 1),
        ("5", "wait --5 of them", 1),
        ("Paris", "-Paris", 1),
    ],
)
def test_an_answer_is_found_token_by_token(answer: str, text: str, relevance: int) -> None:
    assert label("containment", [answer], text) == relevance


def test_any_of_several_answers_will_do_and_the_label_says_which() -> None:
    unit = Unit(Query("q", "?", ("Lyon", "Paris")), (Doc("d", "in Paris"), Doc("e", "in Rome")))
    one, other = checked(build("containment", Here()), unit, [])
    assert (one.relevance, one.raw, other.relevance, other.raw) == (1.0, "Paris", 0.0, "")


def test_the_title_counts_unless_it_is_left_out() -> None:
    assert label("containment", ["Paris"], "the capital", "Paris") == 1
    assert label("containment(fields=text)", ["Paris"], "the capital", "Paris") == 0
    assert label("containment", ["Paris the capital"], "the capital", "Paris") == 1


@pytest.mark.parametrize("match", ["tokens", "regex"])
@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ((), ""),
        (("Yes",), ""),
        (("no.", "False"), ""),
        (("SUPPORTS",), ""),
        (("neutral",), ", classes='neutral|entailed'"),
        ((" ".join("abcdefghijklmnopqrstu"),), ""),
        (("a b c",), ", max_words=2"),
        (("",), ""),
        ((" \t",), ""),
    ],
)
def test_where_it_makes_no_sense_it_is_not_applicable(match: str, answers: tuple[str, ...], options: str) -> None:
    assert label(f"containment(match={match}{options})", answers, "yes, no, of 5") is Status.NOT_APPLICABLE


def test_an_answer_of_as_many_words_as_may_be_is_looked_for() -> None:
    assert label("containment(max_words=3)", ["the old bridge"], "over the old bridge") == 1
    assert label("containment(max_words=2)", ["the old bridge"], "over the old bridge") is Status.NOT_APPLICABLE


def test_class_answers_beside_open_ones_are_passed_over() -> None:
    assert label("containment", ["yes", "Paris"], "yes indeed") == 0
    assert label("containment", ["yes", "Paris"], "in Paris") == 1


def test_patterns_are_searched_as_in_trec_qa() -> None:
    spec = "containment(match=regex)"
    assert label(spec, [r"19\d\d"], "in 1984") == 1
    assert label(spec, [r"19\d\d"], "in 2084") == 0
    assert label(spec, ["^paris"], "France\nParis is it") == 1
    assert label(spec, ["Beyonc\u00e9"], unicodedata.normalize("NFD", "Beyonc\u00e9")) == 1
    assert label(spec, [r"\$\$"], "no $$ here") == 1
    assert label(spec, [r"\bno\b", "Paris"], "no, Paris") == 1
    assert label(spec, [r"\bno\b", "Paris"], "no, Lyon") == 0
    assert label(spec, ["", "Paris"], "in Lyon") == 0


@pytest.mark.parametrize(
    "answer", ["no", r"\bno\b", "^Yes$", r"\ASUPPORTS\Z", "not  enough info", "", " ", "(?:)", "x*", ".*"]
)
def test_a_pattern_of_a_class_or_of_anything_is_not_applicable(answer: str) -> None:
    assert label("containment(match=regex)", [answer], "I know text") is Status.NOT_APPLICABLE


def test_the_reason_says_why_a_pattern_is_not_looked_for() -> None:
    unit = Unit(Query("q", "?", (".*",)), (Doc("d", "x"),))
    assert "match anything" in checked(build("containment(match=regex)", Here()), unit, [])[0].reason


def test_a_broken_pattern_is_an_error_that_names_the_query() -> None:
    with pytest.raises(DataError, match=r"query 'q': '\(' is not a regular expression"):
        label("containment(match=regex)", ["("], "x")


def test_a_pattern_that_takes_forever_fails_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgekit.labelers.containment._PATTERN_SECONDS", 0.05)
    assert (
        label("containment(match=regex)", [r"(?:a|a)+(?:a|a)+(?:a|a)+b(?!.)\Z|(a*)*c"], "a" * 4000 + "!")
        is Status.FAILED
    )


@pytest.mark.parametrize("spec", ["containment(match=fuzzy)", "containment(max_words=0)", "containment(prompt=x)"])
def test_wrong_options_are_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        build(spec, Here())


TOKEN = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])")


def dpr(answer: str, text: str) -> bool:
    """DPR's rule, written out: the answer's tokens are a slice of the text's."""

    def tokens(t: str) -> list[str]:
        folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", t).casefold())
        return [m[0] for m in TOKEN.finditer(folded)]

    wanted, have = tokens(answer), tokens(text)
    return any(wanted == have[i : i + len(wanted)] for i in range(len(have) - len(wanted) + 1))


texts = st.text(st.sampled_from("aAbB1 2.!?'é e\u0301ß-—−$²₂⁻①½()\x1f\u200b"), max_size=14)


@given(texts, texts)
def test_tokens_are_found_exactly_where_dpr_finds_them(answer: str, text: str) -> None:
    phrase = Text.phrase(answer)
    if phrase is not None:
        assert Text(text).holds(phrase) == dpr(answer, text)


@given(texts, texts, texts)
def test_an_answer_is_found_in_a_text_made_around_it(before: str, answer: str, after: str) -> None:
    phrase = Text.phrase(answer)
    if phrase is not None:
        assert Text(f"{before} {answer} {after}").holds(phrase)
