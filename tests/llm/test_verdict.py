"""What a reply states, and what it does not: a verdict is read only where it is stated."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.data.tables import Status
from judgekit.llm.types import Failure, Reply, canonical
from judgekit.llm.verdict import Form, Unread, Verdict, read, read_outcome, without_reasoning

YES_NO = Form((("yes", 1), ("true", 1), ("no", 0), ("false", 0)))
GRADE = Form((("off topic", 0), ("related", 1), ("partial answer", 2), ("full answer", 3)), 0, 3)
TEN = Form((), 0, 10)
STARS = Form((), 1, 5)
LETTERS = Form((("c", 1), ("i", 0)))
JSON_GRADE = Form((), 0, 3, "score")
JSON_YES = Form((("yes", 1), ("true", 1), ("no", 0), ("false", 0)), key="relevant")

TEXTS: list[tuple[Form, str, int | None]] = [
    # the whole reply, or a line of its own
    (YES_NO, "Yes", 1),
    (YES_NO, "no", 0),
    (YES_NO, " YES.\n", 1),
    (YES_NO, "**No**", 0),
    (YES_NO, '"yes"', 1),
    (YES_NO, "- Yes", 1),
    (YES_NO, "True", 1),
    (YES_NO, "The passage names the year.\n\nYes", 1),
    (GRADE, "2", 2),
    (GRADE, "**3**", 3),
    (GRADE, "`1`", 1),
    (GRADE, "(2)", 2),
    (GRADE, "2.", 2),
    (GRADE, "- 2", 2),
    (GRADE, "3/3", 3),
    (GRADE, "2 out of 3", 2),
    (GRADE, "2.0", 2),
    (GRADE, "２", 2),
    (GRADE, r"\boxed{2}", 2),
    (GRADE, r"$\boxed{\text{1}}$", 1),
    (GRADE, "partial answer", 2),
    (TEN, "10.0", 10),
    (TEN, "10", 10),
    (TEN, "7/10", 7),
    (STARS, "5", 5),
    # behind a marker
    (GRADE, "Score: 2", 2),
    (GRADE, "##final score: 2", 2),
    (GRADE, "**Final score:** 3", 3),
    (GRADE, "Final score:\n\n1", 1),
    (GRADE, "4. Overall: 2", 2),
    (GRADE, "Relevance score (0-3): 1", 1),
    (GRADE, "Relevance score on a scale of 0 to 3: 2", 2),
    (GRADE, "On a scale of 0 to 3, the score is 2.", 2),
    (GRADE, "So the final grade is a 3.", 3),
    (GRADE, "The relevance grade of this passage is 1.", 1),
    (GRADE, "<score>2</score>", 2),
    (GRADE, "<relevance_score>0</relevance_score>", 0),
    (GRADE, "Score = 1, because the answer is missing", 1),
    (GRADE, "Grade: 3 (full answer)", 3),
    (GRADE, "Grade: Full answer", 3),
    (GRADE, "Grade - 0", 0),
    (GRADE, "score： 2", 2),
    (GRADE, "Rating: 2 — it says when, not where", 2),
    (YES_NO, "Based on the passage, the answer is yes.", 1),
    (YES_NO, "Verdict: not given in the text, so: No", 0),
    (YES_NO, "Answer (yes or no): no", 0),
    (YES_NO, "Is the passage relevant? Yes.", 1),
    (YES_NO, "Relevant: true", 1),
    (YES_NO, "**Answer**: Yes", 1),
    (YES_NO, "I conclude that the answer is yes.", 1),
    (YES_NO, "I would say the answer is no", 0),
    (YES_NO, "The passage does not name the year, so the answer is no.", 0),
    (GRADE, "It says neither when nor where. If only one were asked: fine. My final score is 1.", 1),
    (YES_NO, "<answer>No</answer>", 0),
    (LETTERS, "GRADE: C", 1),
    (LETTERS, "The claim holds.\nGRADE: I", 0),
    # opening and closing words
    (YES_NO, "Yes, because the passage names the year 2013.", 1),
    (YES_NO, "No. The passage is about another Paris.", 0),
    (YES_NO, "No - nothing here", 0),
    (YES_NO, "The passage does not say who wrote it. No.", 0),
    (YES_NO, "Yes/No: Yes", 1),
    (GRADE, "2 - partly", 2),
    (GRADE, "3: it states the answer", 3),
    (GRADE, "1/3. It only touches on it.", 1),
    # the last statement counts
    (GRADE, "Score: 1\nOn second thoughts, the date is given.\nScore: 3", 3),
    (YES_NO, "Yes, at first sight. But the year is wrong.\nFinal answer: No", 0),
    (GRADE, "The match score is 3 and the trust score is 3, yet it is the wrong city.\nFinal score: 0", 0),
    (GRADE, "1. Intent: the year\n2. Match: 3\n3. Trust: 1\n4. Overall: 2", 2),
    (GRADE, "Match: 3\nTrust: 3\nOverall score: 1\n", 1),
    # reasoning is not read
    (YES_NO, "<think>Maybe yes? Answer: yes</think>No", 0),
    (YES_NO, "It could be. Answer: yes\n</think>\n\nNo", 0),
    (YES_NO, "<think>First <think>again</think> hm</think>Yes", 1),
    (GRADE, "<thinking>Score: 3</thinking>\nScore: 1", 1),
    (GRADE, "1\n<think>Score: 3", 1),
    # JSON
    (JSON_GRADE, '{"score": 2}', 2),
    (JSON_GRADE, '```json\n{"score": 3, "reason": "the score is 1 for Berlin"}\n```', 3),
    (JSON_GRADE, '{"reason": "score: 0", "score": "2"}', 2),
    (JSON_GRADE, '{"result": {"score": 1.0}}', 1),
    (JSON_GRADE, 'Here you are: {"Score": 2}. Anything else?', 2),
    (JSON_GRADE, '{"score": 1} or rather {"score": 2}', 2),
    (JSON_GRADE, '{"why": {"match": 3}, "score": 2, "more": {"score": 0}}', 2),
    (JSON_GRADE, "Score: 2", 2),
    (JSON_GRADE, '{"score": 2, "reason": "cut off he', 2),
    (JSON_YES, '{"relevant": true}', 1),
    (JSON_YES, '{"relevant": "No"}', 0),
    (YES_NO, '{"verdict": "yes", "why": "it says no more"}', 1),
    (GRADE, '{"M": 3, "T": 2, "final_score": 1}', 1),
    (YES_NO, '{"is_relevant": true}', 1),
    # no verdict: never a number that merely occurs
    (GRADE, "", None),
    (GRADE, "The year 2013 was important.", None),
    (GRADE, "On a scale of 0 to 3, it is hard to tell.", None),
    (GRADE, "Score: 0 to 3", None),
    (GRADE, "Score: 0, 1, 2 or 3", None),
    (GRADE, "Grade from 0-3:", None),
    (GRADE, "1. Intent: the user wants a year.\n2. Match: weak.", None),
    (GRADE, "1.\nThe user wants a year.", None),
    (GRADE, "Match score: 3", None),
    (GRADE, "To get a score of 3 it would have to name the year.", None),
    (GRADE, "If the score is 3, the passage states the answer.", None),
    (GRADE, "See vol. 3", None),
    (GRADE, "<think>Score: 3", None),
    (GRADE, "I cannot judge that.", None),
    (YES_NO, "Maybe.", None),
    (YES_NO, "Yes and no.", None),
    (YES_NO, "Yes or no?", None),
    (YES_NO, "Answer: yes/no", None),
    (YES_NO, "No relevant information is in the passage", None),
    (YES_NO, "The answer is no longer valid", None),
    (YES_NO, "I need to find out whether the answer is yes.", None),
    (YES_NO, "It is relevant only when the answer is yes", None),
    (YES_NO, "As an AI language model, it depends on the circumstances.", None),
    (JSON_GRADE, '{"grade of the road": 2}', None),
    # a last statement that is off the scale, hedged or garbled: no earlier one in its place
    (GRADE, "Score: 2\nFinal score: -1", None),
    (GRADE, "Score: 2\nFinal score: 7", None),
    (GRADE, "Score: 2 or 3", None),
    (GRADE, "Score: 0 or 1", None),
    (GRADE, "Score: 2-3", None),
    (GRADE, "Score: 2.5", None),
    (GRADE, "Score: 80%", None),
    (GRADE, "Score: 7/10", None),
    (GRADE, "Score: 3 of the 5 facts are there", None),
    (GRADE, "The score is 12.", None),
    (GRADE, "Score: high", None),
    (GRADE, "2\n\n2013", None),
    (GRADE, "10", None),
    (GRADE, "9" * 5000, None),
    (GRADE, "-1", None),
    (GRADE, "−1", None),
    (STARS, "0", None),
    (LETTERS, "GRADE: CI", None),
    (LETTERS, "GRADE: C\nGRADE: CI", None),
    (YES_NO, "Yes.\nFinal answer: unclear", None),
    (YES_NO, "Verdict: yes and no", None),
    (YES_NO, "Verdict: ırrelevant", None),
    (JSON_GRADE, '{"score": 5}', None),
    (JSON_GRADE, '{"score": null}', None),
    (JSON_GRADE, '{"score": NaN}', None),
    (JSON_GRADE, '{"score": [2]}', None),
    (JSON_GRADE, '{"score": true}', None),
    (JSON_GRADE, '{"score": 2} then {"score": 9}', None),
]


def test_there_are_enough_texts_and_none_is_there_twice() -> None:
    assert len(TEXTS) >= 60
    assert len({(str(form), form.key, text) for form, text, _ in TEXTS}) == len(TEXTS)


@pytest.mark.parametrize(("form", "text", "value"), TEXTS, ids=[repr(text)[:60] for _, text, _ in TEXTS])
def test_a_verdict_is_what_the_reply_states(form: Form, text: str, value: int | None) -> None:
    found = read(text, form, "stop")
    if value is None:
        assert isinstance(found, Unread), found
        assert found.status is Status.UNPARSED
        assert found.reason.startswith("the reply")
    else:
        assert isinstance(found, Verdict), found
        assert found.value == value
        assert 0 <= found.start <= found.end <= len(text)


def test_a_reply_that_was_cut_off_has_no_verdict_whatever_it_says() -> None:
    found = read("Score: 2", GRADE, "length")
    assert isinstance(found, Unread)
    assert found.status is Status.TRUNCATED


@pytest.mark.parametrize(
    ("finish_reason", "status"),
    [
        ("error", Status.FAILED),
        ("abort", Status.FAILED),
        ("cancelled", Status.FAILED),
        ("content_filter", Status.REFUSED),
        ("SAFETY", Status.REFUSED),
    ],
)
def test_a_reply_that_was_broken_off_has_no_verdict_whatever_it_says(finish_reason: str, status: Status) -> None:
    found = read("Yes", YES_NO, finish_reason)
    assert isinstance(found, Unread)
    assert found.status is status
    assert finish_reason in found.reason


@pytest.mark.parametrize("finish_reason", [None, "stop", "eos", "tool_calls"])
def test_a_reply_that_came_to_its_end_is_read(finish_reason: str | None) -> None:
    assert read("Yes", YES_NO, finish_reason) == Verdict(1, 0, 3)


def reply(**choice: object) -> Reply:
    return Reply("k", canonical({"choices": [choice]}).decode())


def test_outcomes_are_read_for_failure_and_refusal_before_their_text() -> None:
    assert read_outcome(Failure("k", Status.FAILED, "it is down"), YES_NO) == Unread(Status.FAILED, "it is down")
    refused = read_outcome(reply(message={"content": "Yes", "refusal": "I may not"}), YES_NO)
    assert isinstance(refused, Unread)
    assert (refused.status, refused.reason) == (Status.REFUSED, "the model declined: I may not")
    filtered = read_outcome(reply(message={"content": "Yes"}, finish_reason="content_filter"), YES_NO)
    assert isinstance(filtered, Unread)
    assert filtered.status is Status.REFUSED
    assert read_outcome(reply(message={"content": "Yes"}, finish_reason="stop"), YES_NO) == Verdict(1, 0, 3)
    assert isinstance(read_outcome(reply(message={"content": None}), YES_NO), Unread)


def test_the_place_of_a_verdict_is_where_it_stands_in_the_reply() -> None:
    for form, text, said in [
        (GRADE, "<think>2</think> **Score:** 3", "3"),
        (JSON_GRADE, '{"reason": "2 \\"score\\"", "score": 2}', "2"),
        (YES_NO, "Hmm. So:\n\n “No”", "No"),
        (YES_NO, "Yes, it does.", "Yes"),
    ]:
        found = read(text, form)
        assert isinstance(found, Verdict)
        assert text[found.start :].startswith(said)


def test_an_escaped_key_is_read_as_well() -> None:
    assert read('{"\\u0073core": 2}', JSON_GRADE) == Verdict(2, 0, 17)


def test_the_reason_says_what_was_expected() -> None:
    found = read("Score: 9", STARS)
    assert isinstance(found, Unread)
    assert found.reason == "the reply's last statement, '9', is no verdict (expected 1 to 5)"
    found = read("  ", YES_NO)
    assert isinstance(found, Unread)
    assert found.reason == "the reply is empty (expected yes/true/no/false)"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("no tags", "no tags"),
        ("a < b", "a < b"),
        ("<think>x</think>y", "y"),
        ("x</think>y", "y"),
        ("<think>a</think>b</think>c", "c"),
        ("y<think>x", "y"),
        ("<Reasoning type='long'>x</REASONING>y", "y"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("[THINK]x[/THINK]y", "y"),
        ("◁think▷x◁/think▷y", "y"),
        ("<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>y<|return|>", "y"),
        ("<|channel|>final <|constrain|>json<|message|>y", "y"),
        ("y<|channel|>analysis<|message|>x", "y"),
        ("analysisIt says x.assistantfinaly", "y"),
        ("analysis of y", "analysis of y"),
        ("y<|im_end|>\n<|im_start|>user\nx", "y"),
    ],
)
def test_reasoning_is_blanked_and_everything_keeps_its_place(text: str, rest: str) -> None:
    blanked = without_reasoning(text)
    assert blanked.strip() == rest
    assert len(blanked) == len(text)


FORMS = [YES_NO, GRADE, TEN, STARS, LETTERS, JSON_GRADE, JSON_YES, Form()]
PIECES = [
    *("yes", "no", "3", "0", "-1", "12", "2.5", "/", " out of ", " to ", " or ", ":", "=", " is ", "score", "final "),
    *("answer", "verdict", "overall", "\n", " ", ".", ",", "(", ")", "**", "`", "{", "}", '"', '"score": ', "[", "]"),
    *(
        "<think>",
        "</think>",
        "```json",
        "the ",
        "if ",
        "not ",
        "１",
        "−",
        "\u2028",
        "\\boxed{",
        "ß",
        "ı",
        "\ud800",
        "%",
    ),
]
replies = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


@given(replies, st.sampled_from(FORMS))
def test_the_parser_is_total_and_stays_on_the_scale(text: str, form: Form) -> None:
    found = read(text, form)
    if isinstance(found, Verdict):
        assert found.value in form.short.values()
        assert 0 <= found.start <= found.end <= len(text)
    else:
        assert found.status is Status.UNPARSED
        assert found.reason


@given(replies, st.sampled_from([GRADE, YES_NO]), st.integers(0, 1))
def test_a_verdict_on_the_last_line_is_the_verdict(text: str, form: Form, value: int) -> None:
    word = ("No", "Yes")[value] if form is YES_NO else str(value)
    found = read(f"{text}</think>\nFinal score: {word}", form)
    assert isinstance(found, Verdict)
    assert found.value == value


@given(st.sampled_from([(f, w) for f in (YES_NO, GRADE, TEN, STARS) for w in f.short]), st.booleans())
def test_the_short_way_and_the_long_way_agree(case: tuple[Form, str], shout: bool) -> None:
    form, word = case
    word = word.upper() if shout else word
    short, long = read(word, form), read(f"{word}.", form)
    assert short == long
    assert isinstance(short, Verdict)


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        "[",
        "<think>",
        "</think>",
        "score: ",
        " ",
        "\n",
        "score is ",
        "the answer ",
        "3 ",
        "3, ",
        "yes ",
        "\n- ",
        "(",
        "1. x\n",
    ],
)
def test_the_time_is_linear_even_for_hostile_replies(piece: str) -> None:
    def seconds(times: int) -> float:
        text = piece * times + " x"
        begun = time.process_time()
        for form in (GRADE, YES_NO, JSON_GRADE):
            read(text, form)
        return time.process_time() - begun

    small = min(seconds(1_000) for _ in range(3))
    assert min(seconds(8_000) for _ in range(2)) < 40 * max(small, 0.005)
