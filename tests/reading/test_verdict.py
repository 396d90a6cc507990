"""What a reply states: only the form that was asked for is read, and nothing is read wrongly."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.data.tables import Status
from judgekit.reading.prompts import list_prompts, load_prompt
from judgekit.reading.verdict import ReplyFormat, Unread, Verdict, read, stated, unfinished
from judgekit.wire.jsontext import canonical
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Failure, Outcome, Reply

BINARY = load_prompt("binary")
WORDS = (("Yes", 1), ("No", 0))
GRADES = tuple((str(grade), grade) for grade in range(4))
SHIPPED = [prompt.name for prompt in list_prompts() if prompt.output.form.options]
FORMS = {name: load_prompt(name).output.form for name in SHIPPED} | {
    "ten": ReplyFormat(tuple((str(n), n) for n in range(11))),
    "stars": ReplyFormat(tuple((str(n), n) for n in range(1, 6))),
    "letters": ReplyFormat((("C", 1), ("I", 0)), label="GRADE"),
    "answer": ReplyFormat((("yes", 0), ("no", 1), ("maybe", 2))),
    "relevant-json": ReplyFormat(WORDS, (("true", 1), ("false", 0)), keys=("relevant",)),
}
YES_NO, GRADE, JSON = (FORMS[name] for name in ("binary", "graded", "graded-json"))

REPLIES = [json.loads(line) for line in (Path(__file__).parent / "replies.jsonl").read_text().splitlines()]
"""Replies, each with the prompt that it answers, its origin (a model really gave it; it was invented; it taught
something), what a careful person reads in it (null: that it states no verdict, or contradicts itself), and what is
read: that or nothing."""


def found(text: str, form: ReplyFormat) -> int | None:
    verdict = read(text, form)
    return verdict.value if isinstance(verdict, Verdict) else None


# Replies and their verdicts.


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_that_repeats_a_piece_of_the_prompt_has_given_no_verdict(name: str) -> None:
    lines = load_prompt(name).user.splitlines()
    for line in lines:
        assert found(line, FORMS[name]) is None
    assert found("\n".join(lines), FORMS[name]) is None


def test_no_reply_gets_another_verdict_than_a_careful_person_reads_and_every_real_one_is_read() -> None:
    assert [r for r in REPLIES if found(r["reply"], FORMS[r["prompt"]]) != r["read"]] == []
    assert [r for r in REPLIES if r["read"] not in (None, r["label"])] == []
    assert [r for r in REPLIES if r["origin"] != "invented" and r["read"] != r["label"]] == []
    assert len({(r["prompt"], r["reply"]) for r in REPLIES}) == len(REPLIES) >= 700
    assert {r["prompt"] for r in REPLIES} == set(FORMS) - {"grounded", "closed-book-claim"}


def test_the_reason_says_what_was_expected() -> None:
    assert read("Well.", GRADE) == Unread(
        Status.UNPARSED, "the reply is not in the form that was asked for: 'Well.' (expected 0, 1, 2 or 3)"
    )
    assert read("<think>Yes</think>", YES_NO) == Unread(Status.UNPARSED, "the reply is empty (expected Yes or No)")
    hundred = ReplyFormat(tuple((str(n), n) for n in range(101)))
    assert str(read("", hundred)).count("expected a whole number from 0 to 100") == 1


ASKED = {
    "graded": 'Reply with one line only, "Final grade: N", where N is 0, 1, 2 or 3.',
    "graded-json": 'Reply with one JSON object only, in which "score" is 0, 1, 2 or 3.',
    "relevant-json": 'Reply with one JSON object only, in which "relevant" is true or false.',
    "classify-claim": "Reply with SUPPORTS, REFUTES or NOT ENOUGH INFO only.",
    "ten": "Reply with a whole number from 0 to 10 only.",
}


def test_null_is_no_word() -> None:
    form = ReplyFormat((("none", 0), ("some", 1)), keys=("match",))
    assert (found('{"match": null}', form), found('{"match": "none"}', form)) == (None, 0)


def test_a_model_is_told_the_form_once_more() -> None:
    assert {name: form.again for name, form in FORMS.items() if name in ASKED} == ASKED


@pytest.mark.parametrize("levels", [100_000])  # Python 3.13 reads 1,100, earlier ones do not
@pytest.mark.parametrize(
    "text", ["[{0}", '{{"score": {0}2{1}}}', '{{"reason": {0}{1}, "score": 2}}', "```\n{0}{1}\n```"]
)
def test_json_that_is_nested_without_end_is_no_verdict(levels: int, text: str) -> None:
    assert found(text.format("[" * levels, "]" * levels), JSON) is None


def schema_of(constraint: dict[str, Any]) -> Any:
    return constraint["response_format"]["json_schema"]["schema"]["properties"]


def test_a_server_can_hold_a_model_to_the_form() -> None:
    assert YES_NO.constraint() == {"structured_outputs": {"choice": ["Yes", "No"]}} == YES_NO.constraint(again=True)
    score = {"type": "integer", "enum": [0, 1, 2, 3]}
    assert schema_of(JSON.constraint()) == {"reason": {"type": "string"}, "score": score}
    assert schema_of(JSON.constraint(again=True)) == {"score": score}
    assert [*schema_of(ReplyFormat(WORDS, keys=("who", "why", "says")).constraint())] == ["who", "why", "says"]
    assert schema_of(FORMS["relevant-json"].constraint()) == {"relevant": {"type": "boolean"}}
    words = ReplyFormat((("low", 0), ("high", 1)), keys=("match",))
    assert schema_of(words.constraint()) == {"match": {"type": "string", "enum": ["low", "high"]}}
    assert GRADE.constraint() == {} == ReplyFormat().constraint(), "steps are free text"
    lines = [f"Final grade: {grade}" for grade in range(4)]
    assert GRADE.constraint(again=True) == {"structured_outputs": {"choice": lines}}


# What never flips a verdict.

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
OPENINGS = ["{}", "{}.", "**{}**", "{},", "{}:", "{} -", "{} —", "{}!", "`{}`\n", "{}\n\n", "{}.\n\n", "Answer: {}\n"]
BEHIND = [
    *("{}", "{}.", "no, {}", "not {}", "it is not", "it isn't", "nothing says so", "The passage says {}."),
    *("Answer: {}", "Final grade: {}", '{{"score": {}}}', "So the answer is {}.", "Actually, {}.", "\n{}", "\n\n{}\n"),
]


@pytest.mark.parametrize("name", sorted(FORMS))
@given(st.data())
def test_what_stands_behind_a_verdict_never_flips_it(name: str, data: st.DataObject) -> None:
    form = FORMS[name]
    word, value = data.draw(st.sampled_from(form.options))
    other = data.draw(st.sampled_from(form.options))[0]
    said = data.draw(st.sampled_from(OPENINGS)).format(word)
    if form.label:
        said = f"Match: {data.draw(WORD)}\n{form.label}: {word}"
    elif form.keys:
        said = json.dumps({form.keys[-1]: word})
    behind = data.draw(st.sampled_from(BEHIND)).format(other)
    verdict = found(f"{said} {behind} {' '.join(data.draw(st.lists(WORD, max_size=4)))}", form)
    assert verdict in (None, value) or found(behind, form) == verdict == dict(form.options)[other]


@given(st.sampled_from(sorted(FORMS)), st.data())
def test_another_verdict_or_a_negation_behind_a_verdict_leaves_none(name: str, data: st.DataObject) -> None:
    form = FORMS[name]
    word, value = data.draw(st.sampled_from([(w, v) for w, v in form.options if v != min(form.values.values())]))
    other = data.draw(st.sampled_from([w for w, v in form.options if v != value]))
    said = f"{form.label}: {word}" if form.label else json.dumps({form.keys[-1]: word}) if form.keys else f"{word},"
    assert found(said.rstrip(","), form) == value
    assert found(f"{said} {data.draw(WORD)} {other}", form) is None
    assert found(f"{said} it is not", form) is None


PIECES = [
    *("yes", "no", "3", "0", "-1", "12", "2.5", "/", " out of ", " to ", " or ", ":", "=", " is ", "score"),
    *("\n", " ", ".", ",", "(", ")", "**", "`", "{", "}", '"', '"score": ', "[", "]", "<think>", "</think>", "```json"),
    *("final grade", "the ", "if ", "not ", "１", "−", "\u2028", "ß", "ı", "İ", "ſ", "\ud800", "%", "true", "- "),
]  # fmt: skip
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


@given(texts, st.sampled_from([*FORMS.values(), ReplyFormat()]))
def test_reading_is_total_and_stays_on_the_scale(text: str, form: ReplyFormat) -> None:
    verdict = read(text, form)
    if isinstance(verdict, Verdict):
        assert verdict.value in form.values.values()
        assert 0 <= verdict.start < len(text)
    else:
        assert verdict.status is Status.UNPARSED


@given(texts)
def test_only_the_word_itself_is_read_where_one_word_is_asked_for(text: str) -> None:
    value = found(text, YES_NO)
    letters = "".join(c for c in without_reasoning(text).casefold() if c.isalnum())
    assert value == {"yes": 1, "true": 1, "no": 0, "false": 0}.get(letters) or value is None


HOSTILE = [
    *("{", '{"a":', "[", "<think>", "</think>", "</s>", "<|a|>", "Final grade: ", " ", "\n", "yes ", "3 ", "```"),
    *("```\n", '"', "yes, ", "\n- ", "(", "1. x\n", "*", "no\n", "final "),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_is_linear_even_for_hostile_replies(piece: str) -> None:
    def seconds(times: int) -> float:
        text = f"Yes, {piece * times} x\nFinal grade: 3"
        begun = time.process_time()
        for form in (GRADE, YES_NO, JSON):
            read(text, form)
        return time.process_time() - begun

    small = min(seconds(500) for _ in range(3))
    assert min(seconds(4_000) for _ in range(2)) < 40 * max(small, 0.005)


# Why a reply ended.

COMPLETE = [None, "", "stop", "STOP", "stop_sequence", "eos", "eos_token", "end_turn", "COMPLETE", " Stop "]
INCOMPLETE = [
    *("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens", "model_context_window_exceeded"),
    *("network_error", "token_limit", "time_limit", "timeout", "error_limit", "incomplete", "error", "abort"),
    *("cancelled", "tool_calls", "pause_turn", "insufficient_system_resource", "not_finished", "weird", "no stop"),
]  # fmt: skip
FILTERED = ["content_filter", "content-filter", "SAFETY", "refusal", "sensitive", "PROHIBITED_CONTENT", "recitation"]


def test_what_is_known_to_mean_complete_is_read() -> None:
    assert {unfinished(reason) for reason in COMPLETE} == {None}


def ended(reason: object, **message: object) -> Outcome:
    choice = {"message": {"content": "Yes"} | message, "finish_reason": reason}
    return Reply("k", canonical({"choices": [choice]}).decode())


@pytest.mark.parametrize("reason", [*INCOMPLETE, {"type": "length"}, 1, False, ["stop"]])
def test_all_else_is_incomplete_whatever_the_reply_says(reason: object) -> None:
    unread = stated(BINARY, ended(reason))
    assert isinstance(unread, Unread)
    assert unread.status is Status.TRUNCATED
    if isinstance(reason, str):
        assert reason in unread.reason


def test_outcomes_are_read_for_failure_refusal_and_filters_before_their_text() -> None:
    assert stated(BINARY, Failure("k", Status.FAILED, "it is down")) == Unread(Status.FAILED, "it is down")
    refused = stated(BINARY, ended("stop", refusal="I may not"))
    assert refused == Unread(Status.REFUSED, "the model declined: I may not")
    for reason in FILTERED:
        assert isinstance(filtered := stated(BINARY, ended(reason)), Unread)
        assert filtered.status is Status.REFUSED
    assert stated(BINARY, ended("stop")) == Verdict(1)
    assert isinstance(stated(BINARY, ended("stop", content=None)), Unread)


# Reasoning.


def test_reasoning_is_blanked_and_everything_keeps_its_place() -> None:
    for row in map(json.loads, Path(__file__).with_name("reasoning.jsonl").read_text().splitlines()):
        blanked = without_reasoning(row["text"])
        assert (blanked.strip(), len(blanked)) == (row["left"], len(row["text"]))


END_TOKENS = [
    *("</s>", "<s>", "<end_of_turn>", "<eos>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>"),
    *("<eod>", "<|eom_id|>", "[EOS]", "[/INST]", "<pad>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>"),
    *("</s></s>", " <pad> <pad>\n", "<end_of_turn>\n<eos>"),
]  # fmt: skip


def test_tokens_that_end_a_turn_are_no_part_of_a_reply() -> None:
    for token in END_TOKENS:
        assert without_reasoning(f"y{token}").rstrip() == "y"
        assert read(f"Yes{token}", YES_NO) == Verdict(1)
        assert isinstance(read(token, YES_NO), Unread)


def test_only_what_is_such_a_token_at_the_very_end_is_left_out() -> None:
    for text in ("y</s> x", "[EOS] y", "f <| x |> g", "<|>", "<b>", "y [1]", "<s>y", "x < y>"):
        assert without_reasoning(text) == text


def test_reasoning_is_not_read() -> None:
    channels = "<|channel|>analysis<|message|>Yes<|end|><|start|>assistant<|channel|>final<|message|>No"
    assert read("<think>Maybe yes? No.</think>\n**No**", YES_NO) == Verdict(0, 32)
    assert read(channels, YES_NO) == Verdict(0, 85)
    for text in ("<think>No", "Yes\n<think>No"):
        assert isinstance(read(text, YES_NO), Unread)


def test_reasoning_that_nothing_opened_is_left_out_where_the_model_is_known_to_think() -> None:
    text = "Perhaps yes.</think>\n\nNo"
    assert read(text, YES_NO, thinks=True) == Verdict(0, 22)
    assert stated(BINARY, ended("stop", content=text), thinks=True) == Verdict(0, 22)
    thinking = ('It says "a</think>\n\nNo', "Hm.</think>\n\nNo.</think>\nYes")
    for verdict in (read(text, YES_NO), *(read(other, YES_NO, thinks=True) for other in thinking)):
        assert isinstance(verdict, Unread)


def test_a_key_that_was_not_declared_leaves_no_verdict() -> None:
    form = ReplyFormat((("0", 0), ("1", 1)), keys=("reason", "grade"))
    assert isinstance(read('{"reason": "It says so.", "grade": 1}', form), Verdict)
    assert isinstance(read('{"reason": "It says so.", "remark": "It is long.", "grade": 1}', form), Unread)
