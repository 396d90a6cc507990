"""An answer that stands in a document, and one that only seems to."""

import unicodedata
from collections.abc import Sequence

import pytest
import regex
from hypothesis import given, strategies as st

from judgekit.answers.text import DprText
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.labelers.contract import checked
from tests.labelers.scripted import Here


def label(spec: str, answers: Sequence[str], text: str, title: str = "") -> float | Status:
    unit = Unit(Query("q", "?", tuple(answers)), (Doc("d", text, title),))
    labeler = build(spec, Here())
    assert labeler.requests(unit, []) == []
    found = checked(labeler, unit, [])[0]
    return found.status if found.relevance is None else found.relevance


FOUND = [
    *(("Paris", "It is Paris."), ("paris", "PARIS!"), ("5", "2 or 5 of them"), ("N/A", "the value is n/a today")),
    *(("C++", "he writes C++, mostly"), ("Jeopardy!", "jeopardy, then Jeopardy! again"), ("ﬁve", "five of them")),
    *(("Beyoncé", unicodedata.normalize("NFD", "Beyoncé sang")), ("STRASSE", "eine Straße"), (".5", "some .5 percent")),
    *(("東京", "首都は 東京 です"), ("Paris", "\ufeffParis\u200b, a city"), ("باريس", "هي باريس، نعم")),
    *(("41300", "sold 41,300 shares"), ("41,300", "41300 of them"), ("1234567", "US$1,234,567.")),
    *(
        ("12%", "a rise of 12 percent"),
        ("12 percent", "(12%)"),
        ("12 Per Cent", "up 12  percent"),
        ("−5", "-5 degrees"),
    ),
    *(("Montmartre", "in Mont\u00admartre"), ("O'Brien", "by O’Brien"), ("1914-18", "1914–18")),
]
NOT_FOUND = [
    *(("5", "a score of 25"), ("N/A", "n a"), ("C++", "he writes C"), ("Jeopardy!", "life in jeopardy")),
    *(("John Smith", "John (Smith)"), ("Smith John", "John Smith"), ("Beyonce", "Beyoncé sang")),
    *(("41300", "on lines 41, 300 and"), ("4130", "41,30"), ("1999200", "in 1999,200"), ("12%", "12 percentiles")),
    *(("percent", "12%"), ("12300", "12,300,4"), ("2.41300", "2.41,300")),
    *(("102", "10² cells"), ("(Paris)", "in Paris"), ("5", "2.5 of them"), ("41", "41,300"), ("5", "-5 degrees")),
]


def test_an_answer_is_found_token_by_token() -> None:
    for pairs, relevance in ((FOUND, 1), (NOT_FOUND, 0)):
        assert {pair: label("containment", [pair[0]], pair[1]) for pair in pairs} == dict.fromkeys(pairs, relevance)


def test_any_of_several_answers_will_do_and_the_label_says_which() -> None:
    unit = Unit(Query("q", "?", ("Lyon", "Paris")), (Doc("d", "in Paris"), Doc("e", "in Rome")))
    one, other = checked(build("containment", Here()), unit, [])
    assert (one.relevance, one.raw, other.relevance, other.raw, other.reason) == (1.0, "Paris", 0.0, "", "")


def test_the_label_of_a_part_of_a_page_says_where_on_it_the_answer_stands() -> None:
    unit = Unit(Query("q", "?", ("Paris",)), (Doc("d", "It is Paris.", "Paris", "p", 100, 112),))
    for spec, evidence in (("containment", "106-112 title"), ("containment(fields=text)", "106-112")):
        assert checked(build(spec, Here()), unit, [])[0].extra == {"evidence": evidence}


def test_the_title_counts_unless_it_is_left_out() -> None:
    for spec, found in (("containment", 1), ("containment(fields=text)", 0)):
        assert label(spec, ["Paris"], "the capital", "Paris") == found
        assert label(spec, ["Paris the capital"], "the capital", "Paris") == found


SENSELESS = [
    *(((), ""), (("Yes",), ""), (("no.", "False"), ""), (("SUPPORTS",), ""), (("ـ", "+", " \t"), "")),
    (("a b c",), "max_words=2"),
    ((" ".join("abcdefghijk"),), ""),  # a sentence of a long-form reference stands nowhere in these words
]


def test_where_it_makes_no_sense_it_is_not_applicable() -> None:
    for answers, options in SENSELESS:
        assert label(f"containment({options})", answers, "yes, no, of 5") is Status.NOT_APPLICABLE
    most = " ".join("abcdefghij")
    assert label("containment", [most], f"of {most}") == 1, "ten words, and not one more"
    assert label("containment(max_words=3)", ["the old bridge"], "over the old bridge") == 1


@pytest.mark.parametrize(("answer", "words"), [("東京", 1), ("東京都", 2), ("東京 京都", 2), ("NHK 東京", 2)])
def test_two_characters_without_spaces_count_as_one_word(answer: str, words: int) -> None:
    assert label(f"containment(max_words={words})", [answer], answer) == 1
    if words > 1:
        assert label(f"containment(max_words={words - 1})", [answer], answer) is Status.NOT_APPLICABLE


def test_class_answers_beside_open_ones_are_passed_over() -> None:
    assert label("containment", ["yes", "Paris"], "yes indeed") == 0
    assert label("containment", ["yes", "Paris"], "in Paris") == 1


@pytest.mark.parametrize("spec", ["containment(max_words=0)", "containment(prompt=x)"])
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


# No comma and no r: a number in another spelling is found beyond DPR's rule.
texts = st.text(st.sampled_from("aAbB1 2.!?'é e\u0301ß-—−$²₂⁻①½()\x1f\u200b"), max_size=14)


@given(texts, texts)
def test_tokens_are_found_exactly_where_dpr_finds_them(answer: str, text: str) -> None:
    phrase = DprText(answer)
    if phrase.probe:
        assert DprText(text).holds(phrase) == dpr(answer, text)


def test_the_variant_of_the_published_scripts_finds_tokens() -> None:
    for answer, text in (("5", "2.5 of them"), ("41", "41,300"), ("41300", "41,300"), ("12%", "12 percent")):
        assert label("containment(norm=squad)", [answer], text) == 1
    for answer, text in (("−5", "-5 degrees"), ("O'Brien", "by O’Brien"), ("May 18, 2018", "18 May 2018")):
        assert label("containment(norm=squad)", [answer], text) == 0


TEXTS = [
    *("3,500 of them", "3 of them", "-5 degrees", "5 degrees", "in 2018", "O’Brien wrote it", "O'Brien wrote it"),
    *("12% of it", "no number", "10\u202f000 people", "1914–1918", "東京都", "C++ and C#"),
]


@given(
    st.lists(st.sampled_from(["3", "5", "O'Brien", "2018", "12", "1914-1918", "C", "yes", "京都", "10000"]), max_size=3)
)
def test_labels_that_count_otherwise_are_those_that_the_variant_by_tokens_gives_another_value(answers):
    unit = Unit(Query("q", "?", tuple(answers)), tuple(Doc(str(place), text) for place, text in enumerate(TEXTS)))
    ours, by_tokens = build("containment", Here()), build("containment(norm=squad)", Here())
    labels = checked(ours, unit, [])
    others = checked(by_tokens, unit, [])
    differ = sum(one.relevance != other.relevance for one, other in zip(labels, others, strict=True))
    assert ours.counted_otherwise(unit, labels) == differ
    assert (ours.published_variant, by_tokens.published_variant) == ("containment(norm=squad)", "")
