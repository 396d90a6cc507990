"""From what became of a request to an answer: what is short in a reply, what abstains, and what is no answer."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from judgekit.answers import reading
from judgekit.answers.reading import Answer, abstains, read_answer, seems_to_abstain, short_answer, stated
from judgekit.data.tables import Status
from judgekit.reading.prompts import Output, load_prompt
from judgekit.wire.types import Reply

SHORT, LONG, CLASS = (load_prompt(name).output for name in ("answer-short", "answer-long", "classify-claim"))


def corpus(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]


def test_what_is_about_an_answer_is_taken_off_and_its_own_words_are_kept() -> None:
    rows = corpus("short_answers.jsonl")
    assert [row | {"answer": short_answer(row["reply"])} for row in rows] == rows
    assert len(rows) >= 120


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


# What is an abstention, what only reads like one, and which answers are neither.

REPLIES = corpus("abstentions.jsonl")
"""Replies to a prompt whose phrase is "unknown". ``is``: an ``abstention``, an answer that ``seems`` to be one, or an
``answer``. ``origin``: ``real`` (a model of 22.7 M parameters gave it) or ``invented``."""


def test_only_a_set_phrase_is_an_abstention_and_what_reads_like_one_is_counted() -> None:
    answers = [stated(reply["text"], reply["text"]) for reply in REPLIES]
    found = ["abstention" if a.abstained else "seems" if a.seems_abstained else "answer" for a in answers]
    assert [reply | {"is": kind} for reply, kind in zip(REPLIES, found, strict=True)] == REPLIES
    kinds = {(kind, origin) for kind in ("abstention", "seems", "answer") for origin in ("real", "invented")}
    assert {(reply["is"], reply["origin"]) for reply in REPLIES} == kinds


PHRASES = [
    *(("not enough info.", "NOT ENOUGH INFO", True), ("I don\u2019t know", "I don't know", True)),
    *(("pass", "pass", True), ("The answer is pass.", "pass", True)),
    *(("pass (the passages do not say)", "pass", False), ("Pass the Dutchie", "pass", False), ("Na", "N/A", False)),
    *(("n/a", "N/A", True), ("わかりません。", "わかりません", True), ("\u200f«لا أعرف»\u200f", "لا أعرف", True)),
    *(("Answer: the answer is unknown", "unknown", False), ("?", "?", True), ("", "?", False), ("", "", False)),
]


def test_the_prompts_own_phrase_counts_as_it_is_written() -> None:
    assert [(text, phrase, abstains(text, phrase)) for text, phrase, _ in PHRASES] == PHRASES


def test_an_answer_with_the_prompts_own_phrase_in_it_seems_to_abstain() -> None:
    assert seems_to_abstain("Pass, since nobody wrote it down", "pass")
    assert not seems_to_abstain("pass", "pass")
    assert not seems_to_abstain("in passing", "pass")
    assert not seems_to_abstain("Paris", "?")


# Replies.


def read(text: str, output: Output = SHORT, finish_reason: str | None = "stop") -> Answer:
    choice = {"message": {"content": text}, "finish_reason": finish_reason}
    return read_answer(Reply("k", json.dumps({"choices": [choice]})), output)


@pytest.mark.parametrize("output", [SHORT, LONG, CLASS])
@pytest.mark.parametrize(
    ("finish_reason", "status"),
    [("error", Status.TRUNCATED), ("length", Status.TRUNCATED), ("content_filter", Status.REFUSED)],
)
def test_what_an_endpoint_did_not_finish_is_no_answer(output: Output, finish_reason: str, status: Status) -> None:
    answer = read("SUPPORTS", output, finish_reason)
    assert (answer.text, answer.status, answer.raw, answer.abstained) == ("", status, "SUPPORTS", False)
    assert answer.reason


def test_what_it_finished_is_one() -> None:
    for finish_reason in ("stop", "eos", None):
        assert read("Paris", finish_reason=finish_reason) == Answer("Paris", raw="Paris")
    reply = Reply("k", json.dumps({"choices": [{"message": {"content": "Paris"}, "finish_reason": "Paused"}]}))
    assert read_answer(reply, SHORT).status is Status.TRUNCATED


SAID = [
    *((SHORT, "**Answer:**\nunknown", "unknown", True), (SHORT, "The answer is unknown.", "unknown", True)),
    (SHORT, "<scratchpad>Lyon?</scratchpad>\nParis", "Paris", False),
    (SHORT, "<|begin_of_thought|>x<|end_of_thought|><|begin_of_solution|>Paris<|end_of_solution|>", "Paris", False),
    *((SHORT, '"Paris\u200b"', "Paris", False), (SHORT, "Answer: \u200bParis\u200b", "Paris", False)),
    (SHORT, "\u200bunknown\u200b", "unknown", True),
    (LONG, "Answer: It is Paris. It says so.", "Answer: It is Paris. It says so.", False),
    *((LONG, "unknown", "unknown", True), (CLASS, "Not enough info.", "NOT ENOUGH INFO", True)),
    *((CLASS, "**NOT ENOUGH INFO**", "NOT ENOUGH INFO", True), (CLASS, "\u200bsupports\u200b", "SUPPORTS", False)),
    (CLASS, "REFUTES.", "REFUTES", False),
]


def test_each_kind_of_prompt_has_answers_of_its_kind() -> None:
    answers = [(output, text, read(text, output)) for output, text, *_ in SAID]
    assert [(output, text, answer.text, answer.abstained) for output, text, answer in answers] == SAID
    assert {answer.status for _, _, answer in answers} == {Status.OK}


@pytest.mark.parametrize("output", [SHORT, LONG])
@pytest.mark.parametrize("text", ["\ufeffParis\u200b", "\u200e \u2060Paris\n\u200f", "\u00adParis\u200d"])
def test_invisible_characters_at_the_ends_are_no_part_of_an_answer(text: str, output: Output) -> None:
    assert read(text, output) == Answer("Paris", raw=text)


NONE = [
    *((SHORT, "Answer:"), (SHORT, "**Answer:**\n"), (SHORT, '""'), (SHORT, "\u200b\u2060"), (SHORT, "<internal>Lyon")),
    *((CLASS, "Verdict: SUPPORTS"), (CLASS, "It SUPPORTS it."), (CLASS, "SUPPORTS\nREFUTES"), (CLASS, "Paris.")),
]


def test_what_only_announces_an_answer_or_is_not_just_a_class_is_none() -> None:
    answers = [read(text, output) for output, text in NONE]
    assert {(answer.text, answer.status) for answer in answers} == {("", Status.UNPARSED)}
    assert {answer.reason for answer in answers[:3]} == {"the reply announces an answer but gives none"}


@pytest.mark.parametrize(
    "text", ["The answer is not given in the passages.", "The passages do not state the year, but the answer is Paris."]
)
def test_what_only_reads_like_an_abstention_is_an_answer_that_is_counted(text: str) -> None:
    answer = read(text, LONG)
    assert (answer.text, answer.abstained, answer.seems_abstained) == (text, False, True)


@pytest.mark.parametrize("token", ["</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "[/INST]", " <pad><pad>"])
def test_a_leaked_token_that_ends_the_turn_is_no_part_of_an_answer(token: str) -> None:
    assert read(f"Answer: Paris{token}").text == "Paris"
    assert read(f"unknown{token}").abstained
    assert read(f"SUPPORTS{token}", CLASS).text == "SUPPORTS"
    assert read(f"{token} is a token").text == f"{token} is a token".strip()
    assert read(token).status is Status.UNPARSED


def test_a_short_reply_that_comes_again_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_texts = []

    def counted(text: str) -> str:
        read_texts.append(text)
        return short_answer(text)

    monkeypatch.setattr(reading, "short_answer", counted)
    other = replace(SHORT, abstain="no idea")
    said = [read(f"Answer: {word} (twice)", output) for word in ("one", "two", "one") for output in (SHORT, other)]
    assert len(read_texts) == 4  # what an abstention is differs between prompts
    assert [answer.text for answer in said[::2]] == ["one (twice)", "two (twice)", "one (twice)"]
    assert read("no idea, twice", other) != read("no idea, twice", SHORT)
