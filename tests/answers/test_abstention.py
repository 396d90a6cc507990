"""What is an abstention, and which answers only begin or sound like one."""

from __future__ import annotations

import time

import pytest

from judgekit.answers.abstention import abstains

ABSTENTIONS = [
    "unknown",
    "Unknown.",
    "The answer is unknown.",
    "unknown (the passages do not say)",
    "Unknown - the passages do not say.",
    "Unknown, as the passages do not mention it.",
    "unknown. The passages do not mention the date.",
    "I don't know",
    "I don’t know.",
    "I don't know the answer.",
    "I don't know the answer to this question.",
    "I do not know who wrote it.",
    "N/A",
    "n/a",
    "NA",
    "**N/A**",
    "The passages do not mention it.",
    "The passages do not mention the name, age, or date of the king.",
    "Not enough information",
    "NOT ENOUGH INFO",
    "Not Enough Information",
    "It cannot be determined from the text",
    "Cannot be determined",
    "The question cannot be answered from the given passages.",
    "I cannot answer this question based on the provided passages.",
    "There is not enough information in the passages to determine who won the race in 1921.",
    "None of the passages mention the date.",
    "None of the documents contains the answer.",
    "The answer is not given in the passages.",
    "The answer is not mentioned.",
    "Sorry, I don't know.",
    "I'm sorry, but the passages do not contain the answer.",
    "Based on the provided passages, the answer is unknown.",
    "The passages do not mention the year, so the answer is unknown.",
    "The passages do not say; unknown.",
    "I cannot say for sure.",
    "I can't tell from the passages.",
    "cannot say",
    "The date of the opening is not mentioned in the provided passages.",
    "There is no information about the date.",
    "No information about the date.",
    "No information is given.",
    "The context does not provide the answer",
    "The passages contain no information about the king of France.",
    "I am unable to determine the year.",
    "Unable to determine",
    "I'm not sure",
    "It is unclear.",
    "unanswerable",
    "No answer",
    "No answer can be given.",
    "Not stated",
    "not stated in the passages",
    "It is not mentioned in the text.",
    "The provided text doesn't specify the exact date.",
    "I do not have enough information to answer the question.",
    "The passages do not mention U.S. President Wilson.",
    "Unknown\n\nThe passages do not mention the date.",
    "*Unknown*",
    "'unknown'",
    "Answer: unknown",
    "I cannot determine who won.",
    "The passages don't say who, when, or where.",
    "The text does not say.",
    "Passages do not state it",
    "Insufficient information provided",
    "The information is not provided in the passages.",
    "This is not stated in the passages.",
    "Unknown because the passages do not mention it.",
    "Not Given",
]

ANSWERS = [
    "The passages do not give a date → 1932",
    "The passages do not mention the date, and King George opened it.",
    "The passages do not give his name, in fact Paris",
    "I cannot determine the exact year, around 1932.",
    "The passages do not list the year as 1932 but 1933",
    "The passages do not mention group 1. It is Paris.",
    "The passages do not mention World War I. It was opened in 1932.",
    "The passages do not state the exact date, but the bridge was opened in 1932 by the king.",
    "I cannot say for sure, but it was 1932.",
    "Not known for his modesty, he won the prize in 1921.",
    "Na",
    "Can't Tell Me Nothing",
    "No Evidence of Disease",
    "no evidence of disease",
    "The passages do not state the year, but the answer is Paris.",
    "The passages do not state the year. The answer is Paris.",
    "The passages do not state the exact date; it was 1932.",
    "I cannot say for sure, it was 1932.",
    "The passages do not give the year, the answer is Paris.",
    "Unknown Pleasures",
    "the unknown soldier",
    "Unknown (album)",
    "unknown (possibly Paris)",
    "None of the documents survived.",
    "None of the above",
    "I Can't Tell You Why",
    "Can't Find My Way Home",
    "can't find my way home",
    "No",
    "None",
    "0",
    "There is no evidence of water on Mars.",
    "not given to him",
    "The passages do not mention any city other than Paris.",
    "The passages do not state the exact date, only the year 1932.",
    "The passages do not state the date, which was 1932.",
    "The passages do not mention it. However, it is Paris.",
    "Not Without My Daughter",
    "No Answer Is Easy",
    "No Context Given Here By Smith",
    "The answer is Paris.",
    "Paris",
    "",
    "!!!",
    "The",
    "Not in Nottingham",
    "No Information Required",
    "The passages do not mention Napoleon and he died in 1821",
    "Unknown. It may be Paris.",
    "Unknown, Paris",
    "Unknown; Paris",
    "I don't know, Paris?",
    "I don't know, maybe Paris",
    "The Text Does Not Give Up",
    "The document does not exist",
    "unknown - Paris",
    "Insufficient evidence led to his release.",
    "The information is not free",
    "Cannot say goodbye",
    "Not mentioned in dispatches",
    "Unknown (1932)",
    "unknown to the public until 1932",
    "the unknown",
    "It is not known in Paris",
    "Answer:",
    "The answer",
]


@pytest.mark.parametrize("text", ABSTENTIONS)
def test_a_text_that_only_says_that_there_is_no_answer_is_an_abstention(text: str) -> None:
    assert abstains(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_a_text_that_answers_is_none_however_it_begins(text: str) -> None:
    assert not abstains(text)


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("not enough info.", "NOT ENOUGH INFO", True),
        ("I don\u2019t know", "I don't know", True),
        ("pass", "pass", True),
        ("The answer is pass.", "pass", True),
        ("pass (the passages do not say)", "pass", True),
        ("Pass the Dutchie", "pass", False),
        ("Na", "N/A", False),
        ("n/a", "N/A", True),
        ("?", "?", True),
        ("", "?", False),
        ("", "", False),
    ],
)
def test_the_prompts_own_phrase_counts_as_it_is_written(text: str, phrase: str, expected: bool) -> None:
    assert abstains(text, phrase) is expected


@pytest.mark.parametrize(
    "part", ["the ", "so ", ". ", "unknown ", "the passages do not mention a, ", "it is not ", "("]
)
def test_long_texts_take_no_time(part: str) -> None:
    started = time.perf_counter()
    abstains(part * 20_000)
    assert time.perf_counter() - started < 1
