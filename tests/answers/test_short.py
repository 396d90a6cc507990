"""The short answer in replies as models write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.answers.reading import short_answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("**Answer:**\nParis", "Paris"),
        ("Answer:\nParis", "Paris"),
        ("Final Answer: **Paris**", "Paris"),
        ("Answer: **Paris**", "Paris"),
        ("**Answer: Paris**", "Paris"),
        ("**Answer**: Paris", "Paris"),
        ("**Answer:** Paris", "Paris"),
        ("**Answer:** **Paris**", "Paris"),
        ("**Answer:** *Paris*", "Paris"),
        ("*Answer:* Paris", "Paris"),
        ("### Answer\nParis", "Paris"),
        ("## Final Answer:\n\n**Paris**", "Paris"),
        ("**Final Answer**\nParis", "Paris"),
        ("**Answer:**\n\nParis\n\n**Explanation:** Passage 1 says so.", "Paris"),
        ("**Answer:**\nParis\nThe passage says so.", "Paris"),
        ("The answer is Paris.", "Paris"),
        ("The answer is **Paris**.", "Paris"),
        ("The answer is: Paris", "Paris"),
        ('The answer is "Paris".', "Paris"),
        ("So, the answer is Paris. It is the capital.", "Paris"),
        ("The answer is Washington D.C.", "Washington D.C."),
        ("The answer is Dr. Strange.", "Dr. Strange"),
        ("The answer is St. Petersburg. It is in Russia.", "St. Petersburg"),
        ("The answer is Sammy Davis Jr.", "Sammy Davis Jr."),
        ("The answer is Paris because it is the capital.", "Paris"),
        ("The answer is Paris, according to passage 1.", "Paris"),
        ("The answer is 3.5 million.", "3.5 million"),
        ("The answer is 5.", "5"),
        ("The final answer is 42", "42"),
        ("The answer is 9. The passage says so.", "9"),
        ("The answer is After World War I. It is stated in passage 1.", "After World War I."),
        ("The answer is J. R. R. Tolkien. He wrote it.", "J. R. R. Tolkien"),
        ("A: Paris", "Paris"),
        ("Q: Which?\nA: Paris", "Paris"),
        ("Answer: Mission: Impossible", "Mission: Impossible"),
        ("Answer: A Novel", "A Novel"),
        ("- Paris", "Paris"),
        ("* Paris", "Paris"),
        ("`Paris`", "Paris"),
        ("```\nParis\n```", "Paris"),
        ("```text\nParis\n```", "Paris"),
        ("Answer:\n```\nParis\n```\nexplained", "Paris"),
        ("“Paris”", "Paris"),
        ("**Paris**.", "Paris"),
        ('"Paris".', "Paris"),
        ('**"Paris"**', "Paris"),
        ("'Paris'", "Paris"),
        ("Answer: *NSYNC", "*NSYNC"),
        ("Answer: **Rome** and **Paris**", "**Rome** and **Paris**"),
        ("**Answer:** **Rome** and **Paris**", "**Rome** and **Paris**"),
        ("Paris\n\nExplanation: Passage 1 says so.", "Paris"),
        ("Paris\nThe passage states that Paris is the capital.", "Paris"),
        ("Paris\n\n(Source: passage 2)", "Paris"),
        ("Paris\nAccording to passage 1, it is.", "Paris"),
        ("The capital of France is:\n\n**Paris**", "Paris"),
        ("Based on the passages:\nParis", "Paris"),
        ('{"answer": "Paris"}', "Paris"),
        ('```json\n{"answer": "Paris"}\n```', "Paris"),
        ('{"answer": 5}', "5"),
        ("<answer>Paris</answer>", "Paris"),
        ("\\boxed{Paris}", "Paris"),
        ("$\\boxed{\\text{Paris}}$", "Paris"),
        ("Paris\n\nQuestion: Which of Germany?\nAnswer: Berlin", "Paris"),
        ("Answer: Paris\nQuestion: x?\nAnswer: Berlin", "Paris"),
        ("Question: x?\nAnswer: Paris", "Paris"),
        ("Answer:", ""),
        ("**Answer:**", ""),
        ('""', ""),
        ("Answer: Paris\nAnswer: Lyon", "Lyon"),
        ("Reasoning: it says so. Final answer: Paris", "Paris"),
        ("The passage says so. Answer: Paris", "Paris"),
        ("It says so.\n**Final answer:** Paris", "Paris"),
        ("> Answer: Paris", "Paris"),
        ("Answer：巴黎", "巴黎"),
        ("ANSWER: Paris", "Paris"),
        ("My answer: Paris", "Paris"),
        ("Short answer: Paris", "Paris"),
        ("The answer is blowing in the wind", "blowing in the wind"),
        ("Answer: Paris.", "Paris."),
        ("- **Answer:** Paris", "Paris"),
        ('Answer: "Paris"', "Paris"),
        ("Answer: Paris\nExplanation: The answer is given in 1.", "Paris"),
        ("The answer is not in the passages.", "not in the passages"),
        ("**Answer: **Paris", "Paris"),
        ("**Answer** : Paris", "Paris"),
        ("Answer: Paris**", "Paris**"),
        ("Answer:Paris", "Paris"),
        ("_Answer:_ Paris", "Paris"),
        ("`Answer: Paris`", "Paris"),
        ("The answer is `Paris`", "Paris"),
        ("The answer is Because of Winn-Dixie", "Because of Winn-Dixie"),
        ("The answer is 5 a.m.", "5 a.m."),
        ("**Paris, Texas**", "Paris, Texas"),
        ("Da Vinci\nThis was painted in 1503", "Da Vinci"),
    ],
)
def test_what_is_about_the_answer_is_taken_off(reply: str, answer: str) -> None:
    assert short_answer(reply) == answer


@pytest.mark.parametrize(
    "reply",
    [
        "Mission: Impossible",
        "- Paris\n- Lyon",
        "-5",
        "- 5",
        "1. FC Köln",
        "__init__",
        "*NSYNC",
        "M*A*S*H",
        "**",
        "*",
        "C++",
        '"Rome" and "Paris"',
        "**Rome** and **Paris**",
        "Paris\nLyon",
        "The Answer",
        "The answer",
        "The Answer Is Blowing",
        "Answer Me",
        "'Til Tuesday",
        "Rock 'n'",
        "'90s",
        "Who's Afraid of Virginia Woolf?",
        "U.S.",
        "Star Wars: Episode IV",
        "Answer to Job",
        "2:15",
        "Note: This",
        "Paris (France)",
        '"Paris" (France)',
        "Paris.",
        "Answer - Paris",
        "5 a.m.",
    ],
)
def test_an_answer_keeps_its_own_words(reply: str) -> None:
    assert short_answer(reply) == reply


@given(st.text(st.sampled_from("aA: \n*`\"'.<>{}answer\\"), max_size=30))
def test_any_reply_is_read_and_nothing_is_made_up(reply: str) -> None:
    assert set(short_answer(reply)) <= set(reply)


@pytest.mark.parametrize(
    "part",
    ["**", "answer ", "answer:\n", "```\n", "<answer>", "the answer is ", "The answer is x. ", "\nQ:", "\nA: x\nQ:"],
)
def test_long_replies_take_no_time(part: str) -> None:
    started = time.process_time()
    short_answer("a " * 9000 + part * 9000)
    assert time.process_time() - started < 2
