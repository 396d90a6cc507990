"""Ten languages: an answer that stands in a text is found, another one is not, and what is not served says so."""

import json
import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from judgekit.answers.quality import metric
from judgekit.answers.reading import Answer
from judgekit.answers.text import Text, apart, fold, normalize
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.labelers.base import Label, build
from judgekit.labelers.contract import checked
from tests.labelers.scripted import Here

CASES = [json.loads(line) for line in Path(__file__).with_name("scripts.jsonl").read_text("utf-8").splitlines()]
"""An answer and a text in which it stands, where writing has more than one form of it, or does not, although its
characters nearly do."""
PAIRS = {case["case"]: (case["answer"], case["text"]) for case in CASES if case["holds"]}


def contained(answer: str, text: str, language: str = "") -> Label:
    unit = Unit(Query("q", "?", (answer,), language), (Doc("d", text),))
    return checked(build("containment", Here()), unit, [])[0]


def value(name: str, said: str, *references: str) -> float | None:
    return metric(name).score(Answer(said), Query("q", "?", references)).value


def test_an_answer_that_stands_in_a_text_is_found_in_it_and_no_other() -> None:
    for case in CASES:
        answer, text = case["answer"], case["text"]
        assert contained(answer, text).relevance == value("contains", text, answer) == case["holds"], case


def test_a_number_is_found_in_its_other_spelling_and_never_inside_of_another() -> None:
    found = [("41300", "41,300"), ("1,234,567", "US$1234567"), ("12%", "up 12 per cent"), ("12 percent", "(12%)")]
    others = [("41300", "41, 300"), ("4130", "41,300"), ("12%", "12 percentiles")]
    assert [Text(text).holds(Text(answer)) for answer, text in found + others] == [True] * 4 + [False] * 3


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_the_form_of_unicode_does_not_matter(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    for reference, sentence in PAIRS.values():
        written = unicodedata.normalize(form, sentence)
        assert value("contains", written, reference) == 1.0
        assert form in ("NFKC", "NFKD") or contained(reference, written).relevance == 1.0


SAME = [
    *(("「富士山」。", "富士山"), ("マイケル・ジャクソン", "マイケルジャクソン")),
    *(("３７７６ メートル", "3776メートル"), ("İSTANBUL", "istanbul"), ("Beyonce\u0301", "Beyoncé")),
    *(("东京，", "东京"), ("القَاهِرَةُ", "القاهرة"), ("नई दिल्ली।", "नई दिल्ली"), ("«ΑΘΗΝΑ»", "Αθήνα")),
    *(("Королёв", "королев"), ("STRASSE", "Straße"), ("I\u0307STANBUL", "istanbul")),
]
DIFFERENT = [("ビタミンB", "ビタミンA"), ("10²個", "102個"), ("Beyonce", "Beyoncé"), ("东京", "北京"), ("мой", "мои")]


def test_what_unicode_or_writing_calls_the_same_is_the_same_answer_and_all_else_is_not() -> None:
    for name in ("em", "f1", "rouge-l(tokens=unicode)"):
        assert [value(name, *pair) for pair in SAME] == [1.0] * len(SAME)
    assert value("em", "צה״ל", 'צה"ל') == value("f1", "צה״ל", 'צה"ל') == 1.0
    assert [value("em", *pair) for pair in DIFFERENT] == [0.0] * len(DIFFERENT)


@pytest.mark.parametrize("said", ["-5度", "−5度", "気温は-5度", "－５度"])
def test_a_sign_before_a_number_is_kept_where_there_are_no_spaces(said: str) -> None:
    assert value("em", said, said.replace("-", "").replace("−", "").replace("－", "")) == 0.0
    assert value("em", said, said.replace("-", "−")) == 1.0
    assert value("contains", said, "-5度") == 1.0
    assert value("contains", said, "-5") == 1.0


def test_a_hyphen_behind_a_letter_or_a_digit_is_no_sign() -> None:
    for said in ("ソユーズ-5号", "长征-5号", "1月-3月"):
        assert value("em", said, said.replace("-", "")) == 1.0
    assert value("em", "2019-2020年", "2019–2020年") == 1.0
    assert value("em", "2019-2020年", "20192020年") == 0.0, "two numbers are no third one"


def test_f1_counts_the_characters_of_scripts_without_spaces_and_parts_particles() -> None:
    assert value("f1", "富士山です", "富士山") == pytest.approx(2 * 3 / (5 + 3))
    assert value("f1", "서울은", "서울") == pytest.approx(2 / 3)
    assert value("f1", "город Москва", "Москва") == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["rouge-1", "rouge-2", "rouge-l"])
def test_rouge_knows_an_exact_answer_from_another_in_every_language(name: str) -> None:
    for pair, (_, sentence) in PAIRS.items():
        other = PAIRS["Greek" if pair != "Greek" else "Russian"][1]
        assert (value(name, sentence, sentence), value(name, other, sentence)) == (1.0, 0.0)


def test_a_number_that_both_hold_does_not_make_two_japanese_sentences_one() -> None:
    said, reference = "人口は3776人です", "富士山の標高は3776メートル"
    assert value("rouge-l", said, reference) == pytest.approx(2 * 3 / (9 + 11), abs=0.1)
    assert value("rouge-l(tokens=ascii)", said, reference) == 1.0


@pytest.mark.parametrize(
    ("spec", "reference"),
    [("contains", "The"), ("contains", "。"), ("rouge-l", "!!!"), ("rouge-1", "。"), ("rouge-l(tokens=ascii)", "東京")],
)
def test_where_nothing_of_a_reference_is_left_a_metric_does_not_apply(spec: str, reference: str) -> None:
    score = metric(spec).score(Answer("東京 the 5"), Query("q", "?", (reference,)))
    assert (score.value, score.status) == (None, Status.NOT_APPLICABLE)
    assert "the reference answers of query 'q' have no text left" in score.reason
    assert metric(spec).score(Answer("東京 the 5"), Query("q", "?", (reference, "the 5"))).value is not None


def test_characters_know_no_words() -> None:
    """Where no spaces part words this is all that can be said without a dictionary of the language."""
    assert contained("京都", "東京都は日本の首都です。").relevance == 1.0
    assert contained("ตาก", "เขานั่งตากลม").relevance == 1.0


@pytest.mark.parametrize(
    ("answer", "text", "language", "where"),
    [
        ("Helsinki", "Hän asuu Helsingissä.", "fi", "the language 'fi'"),
        ("Ankara", "Ankaralı bir şair", "tr-TR", "the language 'tr-TR'"),
        ("القاهرة", "سافر بالقطار وبالقاهرة أقام", "", "a language of this script"),
        ("Москва", "Он живёт в Москве.", "", "a language of this script"),
        ("दिल्ली", "यह मुंबई है", "", "a language of this script"),
    ],
)
def test_a_zero_says_where_an_answer_may_stand_in_another_form(
    answer: str, text: str, language: str, where: str
) -> None:
    label = contained(answer, text, language=language)
    assert (label.relevance, label.status) == (0.0, Status.OK)
    assert label.reason == f"not found in this form; {where} may contain another form, which is not searched for"
    assert contained(answer, answer, language=language).reason == ""


def test_elsewhere_it_does_not() -> None:
    for answer, language in (("Paris", "en"), ("São Paulo", "pt-BR"), ("東京", ""), ("서울", ""), ("α", "")):
        assert contained(answer, "nothing", language=language).reason == ""


def test_long_answers_without_spaces_are_not_looked_for() -> None:
    long = "富士山は日本で一番高い山であり、標高は三千七百七十六メートルで、静岡県と山梨県にまたがっている"
    assert contained(long, "x").status is Status.NOT_APPLICABLE
    assert contained("鎌倉時代に書かれた随筆集", "x").status is Status.OK


def test_latin_script_is_left_alone() -> None:
    for text in ("Naïve café", "10² km", "a\u00adb", "“Zoë” — 5", "Ærø ﬁve", "x\u200by"):
        assert fold(text) == apart(text) == text


@pytest.mark.parametrize(
    "text", ["서" * 2000, "이나" * 2000 + "x", "가" + "은" * 2000, "ー" * 2000, "ア" * 2000, "\u0651" * 2000]
)
def test_no_text_is_lost(text: str) -> None:
    for whole in (True, False):
        assert apart(text, whole=whole).replace(" ", "") == text
    assert normalize(text) is not None
