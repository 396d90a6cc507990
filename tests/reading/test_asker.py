"""Putting a prompt to an endpoint: one way to make a request, and once more where the reply was cut off."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.data.tables import Status
from judgekit.reading.asker import Asker, merge_waves, next_wave, play, repeats_itself
from judgekit.reading.prompts import Prompt, load_prompt
from judgekit.wire.types import Endpoint, Failure, Outcome, Reply, Request, chat

VALUES = {"question": "q", "passages": "p"}


def endpoint(**params: Any) -> Endpoint:
    return Endpoint("e", "http://e:1/v1", "m", params=params)


def own(tmp_path: Path) -> Prompt:
    path = tmp_path / "own.toml"
    path.write_text(
        'kind = "judge"\nmax_tokens = 5\nsystem = "about {question}"\nuser = "{passages} to {question}?"\n'
        '[params]\nseed = 1\ntop_p = 0.5\n[output]\ntype = "yes/no"\n'
    )
    return load_prompt(path)


@given(
    st.dictionaries(st.just("question"), st.text(st.characters(exclude_categories=["Cs"]))),
    st.integers(0, 2),
    st.booleans(),
)
def test_a_request_is_what_chat_makes_of_the_messages(values: dict[str, str], sample: int, more: bool) -> None:
    prompt = load_prompt("binary")
    values = {"question": "", "passages": 'p \x00 "q" null é', **values}
    params = {"temperature": 0, "max_tokens": 256 * (8 if more else 1), "logprobs": True}
    asker = Asker(endpoint(), prompt, {"logprobs": True})
    made = asker.again(values, reply("length"), sample=sample) if more else asker.request(values, sample=sample)
    assert made == chat(endpoint(), prompt.messages(values), sample=sample, **params)


def test_params_go_before_the_endpoints_those_before_the_prompts_under_any_name(tmp_path: Path) -> None:
    made = Asker(endpoint(seed=2, stop=["x"], sample=3, endpoint="x"), own(tmp_path), {"stop": ["y"]}).request(VALUES)
    assert made.sample == 0
    assert json.loads(made.body) == {
        "model": "m",
        "messages": [{"role": "system", "content": "about q"}, {"role": "user", "content": "p to q?"}],
        "temperature": 0,
        "max_tokens": 5,
        "seed": 2,
        "top_p": 0.5,
        "stop": ["y"],
        "sample": 3,
        "endpoint": "x",
    }


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_reply_gets_more_room_under_the_name_that_the_endpoint_knows(name: str, tmp_path: Path) -> None:
    asker = Asker(endpoint(**{name: 10}), own(tmp_path))
    for room, request in ((10, asker.request(VALUES)), (80, asker.again(VALUES, reply("length")))):
        assert {k: v for k, v in json.loads(request.body).items() if "max" in k} == {name: room}
    bare = Asker(endpoint(), replace(load_prompt("binary"), params={}))
    assert "max_tokens" not in json.loads(bare.request(VALUES).body)
    assert json.loads(bare.again(VALUES, reply("length")).body)["max_tokens"] == 2048


def test_a_base_model_is_stopped_behind_the_line_or_the_block_that_is_asked_for() -> None:
    base = replace(endpoint(), api="completions")
    names = ("binary", "answer-short", "classify-claim", "graded", "answer-long")
    stops = {name: json.loads(Asker(base, load_prompt(name)).request(VALUES).body)["stop"] for name in names}
    assert stops == {name: ["\n"] if name in names[:3] else ["\n\n"] for name in names}


def test_a_base_model_that_begins_with_a_line_break_is_asked_from_the_next_line_on() -> None:
    base = replace(endpoint(), api="completions")
    asker = Asker(base, load_prompt("answer-short"))
    first = asker.request(VALUES)

    def text(said: str, finish: str = "stop") -> Reply:
        return Reply("k", json.dumps({"choices": [{"text": said, "finish_reason": finish}]}))

    wave = next_wave([(asker, 2)], lambda: [VALUES], [text("")])
    assert [(request.sample, request.again) for request in wave] == [(2, True)]
    before, after = (json.loads(request.body) for request in (first, wave[0]))
    assert after == {**before, "prompt": before["prompt"] + "\n"}
    said = text("Paris")
    assert merge_waves([text(""), said], [asker]) == ([said], [])
    for settled in (text("Paris"), text("", "content_filter"), DOWN):
        assert not asker.unsettled(settled)
    # A chat model ends its reply itself; stops of the user's are kept; a verdict is asked for in other words.
    assert not Asker(endpoint(), load_prompt("answer-short")).unsettled(reply("stop", ""))
    assert not Asker(base, load_prompt("answer-short"), {"stop": ["###"]}).unsettled(text(""))
    judge = Asker(base, load_prompt("binary"))
    assert (
        json.loads(judge.again(VALUES, text("")).body)["prompt"]
        != json.loads(judge.request(VALUES).body)["prompt"] + "\n"
    )


def reply(finish: str, key: str = "k") -> Reply:
    return Reply(key, json.dumps({"choices": [{"message": {"content": key}, "finish_reason": finish}]}))


DOWN = Failure("f", Status.FAILED, "down")


def test_only_replies_that_cannot_be_used_are_asked_for_again() -> None:
    asker = Asker(endpoint(), load_prompt("answer-short"))
    first = [reply("stop"), reply("length"), DOWN, reply("network_error")]
    assert [asker.unsettled(r) for r in first] == [False, True, False, True]
    assert merge_waves(first, [asker] * 4) == (first, [])
    again = [reply("stop", "a"), DOWN, reply("stop", "of whatever follows")]
    assert merge_waves([*first, *again], [asker] * 4) == ([first[0], again[0], DOWN, first[3]], again[2:])


def test_what_cannot_be_used_is_asked_again_once() -> None:
    asker = Asker(endpoint(), load_prompt("binary"))
    asked = [(asker, sample) for sample in range(3)]
    replies = [reply("stop", "Yes"), reply("length"), reply("stop", "Perhaps")]
    waves = [next_wave(asked, lambda: [VALUES] * 3, replies[:count]) for count in (0, 3)]
    assert [[(r.sample, r.again) for r in wave] for wave in waves] == [
        [(0, False), (1, False), (2, False)],
        [(1, True), (2, True)],
    ]
    assert next_wave(asked, lambda: [VALUES] * 3, [*replies, *replies[1:]]) == []


def test_a_class_settles_its_request_whatever_was_filled_in() -> None:
    asker = Asker(endpoint(), load_prompt("classify-claim"))
    held = {"question": "q", "passages": "The answer: supports."}
    assert not asker.unsettled(reply("stop", "Answer: SUPPORTS"), lambda: held)


class Chain:
    """Asks ``length`` times, one request a wave."""

    def __init__(self, length: int) -> None:
        self.length = length

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        return [] if len(replies) == self.length else [Request(endpoint(), f"{unit}{len(replies)}".encode())]


@given(st.integers(0, 4), st.integers(0, 6))
def test_a_program_is_played_over_its_own_replies(length: int, there: int) -> None:
    replies = [reply("stop", str(i)) for i in range(there)]
    wave, used = play(Chain(length), "u", replies)
    assert used == min(length, there)
    assert [r.body for r in wave] == ([] if there >= length else [f"u{there}".encode()])


LOOP = "It is a film about a film" + " about a film" * 10


@pytest.mark.parametrize("text", [LOOP, "A list:" + "\n- Bethoc" * 12, "Well" + "." * 90, "He said: " + "ha " * 40])
def test_a_text_that_says_the_same_again_and_again_repeats_itself(text: str) -> None:
    assert repeats_itself(text)
    assert repeats_itself(text + "\n ")
    assert not repeats_itself(text + " and so on, until he came to the end of it.")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "no",
            "Yes, yes, yes, yes.",
            "| a | b |\n" + "| --- " * 6,
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14",
        ),
        "\n".join(f"- The passage of chapter {number} names no year." for number in range(9)),
        "The same sentence stands here three times, as in a song. " * 3,
    ],
)
def test_lists_tables_and_refrains_do_not(text: str) -> None:
    assert not repeats_itself(text)


@pytest.mark.parametrize(
    ("prompt", "params", "text", "again"),
    [
        ("answer-short", {}, LOOP, False),
        ("answer-long", {"temperature": 0.0}, LOOP, False),
        ("answer-short", {}, "The film was made by", True),
        ("answer-short", {"temperature": 0.7}, LOOP, True),
        ("binary", {}, LOOP, True),
    ],
)
def test_an_answer_that_repeats_itself_without_end_is_not_asked_for_again(
    prompt: str, params: dict[str, Any], text: str, again: bool
) -> None:
    """Chance may end what is sampled, and a verdict is asked for in other words."""
    choice = {"message": {"content": text}, "finish_reason": "length"}
    cut = Reply("k", json.dumps({"choices": [choice]}))
    assert Asker(endpoint(**params), load_prompt(prompt)).unsettled(cut, lambda: VALUES) == again
