"""Numbers, dates and typographic marks: a value is found in all of its spellings, and in no other value."""

import re
from decimal import Decimal

import pytest
from hypothesis import assume, given, strategies as st

from judgekit.answers.numbers import readings
from judgekit.answers.quality import metric
from judgekit.answers.reading import Answer
from judgekit.answers.text import Text, typographic
from judgekit.data.documents import Query

FOUND = [
    *(("41300", "sold 41,300 shares"), ("41,300", "sold 41300 shares"), ("41300", "41\u202f300 habitants")),
    *(("41300", "41 300 asukasta"), ("10000", "10 000 places"), ("1234567", "12,34,567 rupees")),
    *(("1234567", "1'234'567"), ("12%", "12 per cent of them"), ("12 percent", "(12%)"), ("12%", "12 pct of it")),
    *(("12", "12% of them"), ("$4.2 billion", "for 4.2 billion dollars"), ("4.2 billion dollars", "for $4.2bn")),
    *(
        ("$5M", "5,000,000 dollars"),
        ("$5 m", "$5M"),
        ("4,200,000,000", "4.2 billion people"),
        ("1.5 million", "1,500,000 of them"),
    ),
    *(("€5", "only 5 euros"), ("US$5", "5 USD"), ("$5.00", "a $5 note"), ("3.50", "costs 3.5 today")),
    *((".5", "about 0.5 of it"), ("0.5", "a .5 share"), ("-5", "it was −5 degrees"), ("-5", "it was –5 °C")),
    *(("5", "it was +5 degrees"), ("-$5", "a balance of $-5"), ("May 18, 2018", "on 18 May 2018")),
    *(("18 May 2018", "on May 18th, 2018,"), ("2018-05-18", "on the 18th of May, 2018")),
    *(("May 18, 2018", "(2018-05-18)"), ("18/05/2018", "on May 18, 2018"), ("18 May 2018", "am 18.05.2018")),
    *(("Sept. 5, 2018", "September 5, 2018"), ("05/06/2018", "on 5 June 2018"), ("05/06/2018", "on May 6, 2018")),
    *(("2018", "on May 18, 2018"), ("May 18", "on 18 May 2018"), ("18", "18 May 2018"), ("May", "on 18 May 2018")),
    *(("18th", "on May 18th, 2018"), ("May 2018", "in May, 2018"), ("December 31", "on 31 December")),
    *(("1914", "1914–1918"), ("1918", "from 1914-1918"), ("1914-1918", "1914–1918"), ("1914-1918", "1914—1918")),
    *(("5", "pages 3-5"), ("10", "5-10 of them"), ("16", "an F-16"), ("$10", "for $5-$10"), ("2016", "on 3/2016")),
    *(("3.5", "3,5 Sterne"), ("3", "items 3,5 and 7"), ("1234", "1.234 Einwohner"), ("1.234", "1.234 kg")),
    *(("1.234,56", "1,234.56"), ("3,5 Millionen", "3,5 Millionen"), ("007", "agent 007"), ("3", "rooms 1, 2 and 3.")),
    *(("Apollo 11", "the Apollo 11 crew"), ("Python 3.11", "in Python 3.11."), ("1990s", "in the 1990s")),
    *(("10:30", "at 10:30"),),
]
FOUND += [
    *(("1.2340", "it weighs 1.234 kg"), ("555", "call 555 123 4567"), ("the 5", "the 5 may be late")),
]
NOT_FOUND = [
    ("May 6, 2018", "pages 1/5/6/2018"),
    *(("3", "3,500 of them"), ("3", "3.5 stars"), ("10", "10,000 seats"), ("10", "10 000 places")),
    *(("5", "it was -5"), ("5", "it was −5 °C"), ("5", "a balance of -$5"), ("5", "costs .5"), ("500", "3,500")),
    *(("41", "41,300"), ("300", "41,300"), ("4.2", "4.2 billion"), ("5", "5 million"), ("5 million", "5 billion")),
    *(("$5", "5 euros"), ("$5", "£5"), ("12%", "12 of them"), ("12%", "12 percentiles"), ("1.5", "15 of them")),
    *(("15", "1.5 of them"), ("-5", "5 degrees"), ("-5", "pages 3-5"), ("May 18, 2018", "May 17, 2018")),
    *(("May 18, 2018", "June 18, 2018"), ("May 18, 2018", "on May 18"), ("May 18", "May 18,000")),
    *(("18 May 2018", "05/19/2018"), ("7 June 2018", "05/06/2018"), ("18", "the 18th century")),
    *(("1990", "the 1990s"), ("2.5", "version 2.5.1"), ("5", "version 2.5.1"), ("3.5", "35 of them")),
    *(("10", "10.000 Einwohner"), ("7", "agent 007"), ("25", "$7.25 per hour"), ("19", "COVID19")),
    *(("1200", "table 1, 200"), ("41300", "lines 41, 300"), ("5", "25 of them")),
]
TYPOGRAPHY = [
    *(("O'Brien", "O’Brien"), ("Jean-Luc", "Jean‑Luc"), ("Jean-Luc", "Jean–Luc"), ("Jean-Luc", "Jean\u00ad-Luc")),
    *(('"Heroes"', "“Heroes”"), ('"Heroes"', "«Heroes»"), ("rock 'n' roll", "rock ‘n’ roll"), ("Hawai'i", "Hawaiʻi")),
    *(("New York", "New\u00a0York"), ("Montmartre", "Mont\u00admartre"), ("Paris", "Pa\u200bris")),
    *(("wait...", "wait…"), ("a-b", "a\u2212b"), ("Jean-Luc", "Jean—Luc"), ("5-4", "5‒4")),
]


def contained(answer: str, text: str) -> bool:
    return Text(text).holds(Text(answer))


def value(spec: str, said: str, *references: str) -> float | None:
    return metric(spec).score(Answer(said), Query("q", "?", references)).value


def test_a_number_or_date_is_found_in_its_spellings_and_in_no_other() -> None:
    assert len(FOUND) + len(NOT_FOUND) >= 60
    assert [pair for pair in FOUND if not contained(*pair)] == []
    assert [pair for pair in NOT_FOUND if contained(*pair)] == []


def test_typographic_marks_are_those_of_a_keyboard() -> None:
    for reference, said in TYPOGRAPHY:
        assert value("em", said, reference) == value("f1", said, reference) == 1, (said, reference)
        assert value("contains", f"They say {said} there", reference) == 1, (said, reference)
        assert contained(reference, f"They say {said} there"), (said, reference)
    assert value("accuracy", "“not enough info”", "NOT ENOUGH\u00a0INFO") == 1


def test_a_long_dash_parts_words_where_it_joins_none() -> None:
    assert value("f1", "1412—the oldest", "the oldest 1412") == 1
    assert value("contains", "It is Paris—the capital", "Paris") == 1
    assert value("em", "Paris—France", "Paris France") == value("em", "Jean—Luc", "Jean-Luc") == 1
    assert value("contains", "score —5 points", "5") == 1, "no sign"


DIFFERENT = [
    *(("1.5", "15"), ("-5", "5"), ("C++", "C"), ("C#", "C"), ("C#", "C++"), ("3-5", "35"), ("10:30", "1030")),
    *(("v1.5", "v15"), ("3.5-inch", "35-inch"), ("5 million", "5 billion"), ("$5", "€5"), ("1/2", "12")),
    *(("12%", "1.2%"), ("18 May", "17 May")),
]
EQUAL = [
    *(("1,500", "1500"), ("1.50", "1.5"), ("12%", "12 percent"), ("12%", "12"), ("$5", "5"), ("$5", "5 dollars")),
    *(("5 USD", "$5"), ("May 18, 2018", "18 May 2018"), ("2018-05-18", "May 18th, 2018"), ("3,5", "3.5")),
    *(("1.234", "1234"), ("1.234", "1,234"), ("COVID-19", "COVID19"), ("F-16", "F16"), ("U.S.A.", "USA")),
    *(("1914–18", "1914-18"), ("5th", "5th"), ("C++", "c++"), ("The 41,300", "41 300")),
    *(("$4.2 billion", "4.2bn dollars"),),
]


def test_exact_match_compares_numbers_by_value() -> None:
    for one, other in DIFFERENT:
        assert value("em", one, other) == value("em", other, one) == 0, (one, other)
    for one, other in EQUAL:
        assert value("em", one, other) == value("em", other, one) == 1, (one, other)
        assert value("f1", one, other) == value("contains", f"({one})", other) == 1, (one, other)


@pytest.mark.parametrize(("one", "other"), [("1.5", "15"), ("-5", "5"), ("C++", "C"), ("3-5", "35"), ("10:30", "1030")])
def test_squads_rule_removes_what_parts_these(one: str, other: str) -> None:
    for name in ("em", "f1", "contains"):
        assert value(f"{name}(norm=squad)", one, other) == 1
        assert value(name, one, other) in ((0, 0.5) if name == "f1" else (0,))
    assert metric("em(norm=squad)").name == "em(norm=squad)"
    assert metric("em(norm=whole)").name == "em"


def test_a_unit_is_a_part_of_its_number_in_f1() -> None:
    assert value("f1", "44 euros", "60 euros") == 0
    assert value("f1", "$1.65 trillion", "$75,000") == 0
    assert value("f1", "about 60 euros", "60") == pytest.approx(2 / 3)


NUMBERS = st.integers(0, 10**12)
CENTS = st.decimals(0, 10**6, places=2)


def spellings(number: int) -> list[str]:
    """Return how a whole number is written, in this order by conventions that need no context."""
    grouped = f"{number:,}"
    spelled = [
        str(number),
        grouped,
        grouped.replace(",", "'"),
        grouped.replace(",", "\u202f"),
        grouped.replace(",", "\u00a0"),
    ]
    if number % 100_000 == 0 and number:
        spelled.append(f"{Decimal(number).scaleb(-6).normalize():f} million")
    return [*spelled, f"{number}.0", f"{number}.00"]


@given(NUMBERS, st.data())
def test_spellings_of_a_number_are_one_value(number: int, data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(spellings(number))) for _ in range(2))
    assert contained(one, f"It has {other} of them.")
    assert value("em", one, other) == 1


@given(NUMBERS, NUMBERS, st.data())
def test_no_spelling_of_a_number_is_found_in_another_number(number: int, text: int, data: st.DataObject) -> None:
    assume(number != text)
    one, other = data.draw(st.sampled_from(spellings(number))), data.draw(st.sampled_from(spellings(text)))
    assert not contained(one, f"It has {other} of them.")
    assert value("em", one, other) == value("contains", f"It has {other}.", one) == 0


@given(CENTS, CENTS, st.sampled_from(["{}", "-{}"]), st.sampled_from(["{}", "-{}"]))
def test_decimals_and_signs_are_compared_by_value(one: Decimal, other: Decimal, first: str, second: str) -> None:
    said, right = first.format(one), second.format(other)
    same = one == other and (first == second)
    assert value("em", said, right) == float(same)
    assert contained(said, f"at {right} degrees") == same


@given(st.dates(), st.dates())
def test_dates_are_compared_by_value_in_all_spellings(one: object, other: object) -> None:
    forms = [
        "{0:%B} {0.day}, {0.year:04}",
        "{0.day} {0:%B} {0.year:04}",
        "{0:%b} {0.day}, {0.year:04}",
        "{0.year:04}-{0:%m-%d}",
    ]
    forms += ["{0.day}.{0.month}.{0.year:04}", "the {0.day}th of {0:%B} {0.year:04}"]
    for form in forms:
        said = form.format(one)
        for right in forms:
            assert contained(said.removeprefix("the "), f"It was on {right.format(other)}.") == (one == other)
        assert contained(f"{one.year:04}", f"on {said}"), "the year of a date stays found"  # type: ignore[attr-defined]


MARKS = st.text(st.sampled_from("ab '\"-‘’“”‐‑–−\u00a0\u2009\u00ad\u200b…«»"), max_size=12)


@given(MARKS)
def test_folding_twice_is_folding_once_and_leaves_a_keyboards_marks(text: str) -> None:
    folded = typographic(text)
    assert folded.isascii()
    assert typographic(folded) == folded
    assume(folded.strip())
    assert value("em", text, folded) == 1


@given(st.text(max_size=30))
def test_every_answer_is_itself(text: str) -> None:
    assert value("em", text, text) == 1
    if metric("contains").leaves(text):
        assert value("contains", text, text) == value("f1", text, text) == 1
    if Text(text).probe:
        assert contained(text, text)


@given(st.text(st.sampled_from("0123456789, '$%:a€"), max_size=25))
def test_no_digit_is_lost_or_made(text: str) -> None:
    for reading in readings(text):
        assert re.findall("[1-9]", reading) == re.findall("[1-9]", text)


def test_numbers_in_words_and_other_languages_are_not_read() -> None:
    for answer, text in (
        ("3", "three of them"),
        ("2018年5月18日", "May 18, 2018"),
        ("V", "5"),
        ("3,5 Millionen", "3500000"),
    ):
        assert not contained(answer, text)
