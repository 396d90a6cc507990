"""From what became of a request to an answer."""

from __future__ import annotations

import json

import pytest

from judgekit.answers.reading import Answer, read_answer
from judgekit.data.tables import Status
from judgekit.reading.prompts import Output, load_prompt
from judgekit.wire.types import Reply

SHORT = load_prompt("answer-short").output
CLASS = load_prompt("classify-claim").output


def read(text: str, output: Output = SHORT, finish_reason: str | None = "stop") -> Answer:
    choice = {"message": {"content": text}, "finish_reason": finish_reason}
    return read_answer(Reply("k", json.dumps({"choices": [choice]})), output)


@pytest.mark.parametrize("output", [SHORT, CLASS, load_prompt("answer-long").output])
@pytest.mark.parametrize(
    ("finish_reason", "status"),
    [
        ("error", Status.TRUNCATED),
        ("network_error", Status.TRUNCATED),
        ("content_filter", Status.REFUSED),
        ("SAFETY", Status.REFUSED),
        ("refusal", Status.REFUSED),
        ("length", Status.TRUNCATED),
    ],
)
def test_what_an_endpoint_did_not_finish_is_no_answer(output: Output, finish_reason: str, status: Status) -> None:
    answer = read("SUPPORTS", output, finish_reason)
    assert (answer.text, answer.status, answer.raw, answer.abstained) == ("", status, "SUPPORTS", False)
    assert answer.reason


@pytest.mark.parametrize("finish_reason", ["stop", "eos", None])
def test_what_it_finished_is_one(finish_reason: str | None) -> None:
    assert read("Paris", finish_reason=finish_reason) == Answer("Paris", raw="Paris")


def test_an_endpoints_own_word_for_complete_counts() -> None:
    reply = Reply("k", json.dumps({"choices": [{"message": {"content": "Paris"}, "finish_reason": "Finished"}]}))
    assert read_answer(reply, SHORT).status is Status.TRUNCATED
    assert read_answer(reply, SHORT, ["finished"]) == Answer("Paris", raw="Paris")


@pytest.mark.parametrize("text", ["Answer:", "**Answer:**\n", '""'])
def test_an_answer_that_is_only_announced_is_none(text: str) -> None:
    answer = read(text)
    assert (answer.text, answer.status) == ("", Status.UNPARSED)
    assert answer.reason == "the reply announces an answer but gives none"


def test_an_abstention_behind_a_label_is_one() -> None:
    assert read("**Answer:**\nunknown") == Answer("unknown", raw="**Answer:**\nunknown", abstained=True)
    assert read("The answer is unknown.").abstained


@pytest.mark.parametrize(
    "text", ["The answer is not given in the passages.", "The passages do not state the year, but the answer is Paris."]
)
def test_what_only_reads_like_an_abstention_is_an_answer_that_is_counted(text: str) -> None:
    answer = read(text, load_prompt("answer-long").output)
    assert (answer.text, answer.abstained, answer.seems_abstained) == (text, False, True)


@pytest.mark.parametrize("output", [SHORT, load_prompt("answer-long").output])
@pytest.mark.parametrize("text", ["\ufeffParis\u200b", "\u200e \u2060Paris\n\u200f", "\u00adParis\u200d"])
def test_invisible_characters_at_the_ends_are_no_part_of_an_answer(text: str, output: Output) -> None:
    assert read(text, output) == Answer("Paris", raw=text)


def test_they_are_none_inside_of_quotes_and_behind_a_label_either() -> None:
    assert read('"Paris\u200b"').text == "Paris"
    assert read("Answer: \u200bParis\u200b").text == "Paris"
    assert read("\u200bunknown\u200b").abstained
    assert read("\u200b\u2060").status is Status.UNPARSED
    assert read("\u200bSUPPORTS\u200b", CLASS).text == "SUPPORTS"


@pytest.mark.parametrize(
    ("text", "said", "abstained"),
    [
        ("Not enough info.", "NOT ENOUGH INFO", True),
        ("**NOT ENOUGH INFO**", "NOT ENOUGH INFO", True),
        ("supports", "SUPPORTS", False),
    ],
)
def test_the_abstention_of_a_class_prompt_is_a_class_like_the_others(text: str, said: str, abstained: bool) -> None:
    answer = read(text, CLASS)
    assert (answer.text, answer.abstained, answer.status) == (said, abstained, Status.OK)


@pytest.mark.parametrize("text", ["Verdict: SUPPORTS", "It SUPPORTS it.", "SUPPORTS\nREFUTES", "They do not say."])
def test_what_is_not_just_a_class_is_no_class_answer(text: str) -> None:
    answer = read(text, CLASS)
    assert (answer.text, answer.status) == ("", Status.UNPARSED)


@pytest.mark.parametrize("token", ["</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "[/INST]", " <pad><pad>"])
def test_a_leaked_token_that_ends_the_turn_is_no_part_of_an_answer(token: str) -> None:
    assert read(f"Answer: Paris{token}").text == "Paris"
    assert read(f"unknown{token}").abstained
    assert read(f"SUPPORTS{token}", CLASS).text == "SUPPORTS"
    assert read(f"{token} is a token").text == f"{token} is a token".strip()
    assert read(token).status is Status.UNPARSED


def test_reasoning_in_an_element_of_another_name_is_no_part_of_an_answer() -> None:
    assert read("<scratchpad>Lyon?</scratchpad>\nParis").text == "Paris"
    assert read("<|begin_of_thought|>x<|end_of_thought|><|begin_of_solution|>Paris<|end_of_solution|>").text == "Paris"
    assert read("<internal>Lyon").status is Status.UNPARSED
