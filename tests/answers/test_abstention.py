"""What is an abstention, what only reads like one, and which answers are neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgekit.answers.reading import abstains, seems_to_abstain, stated

REPLIES = [json.loads(line) for line in Path(__file__).with_name("abstentions.jsonl").read_text("utf-8").splitlines()]
"""Replies to a prompt whose phrase is "unknown". ``is``: an ``abstention``, an answer that ``seems`` to be one, or an
``answer``. ``origin``: ``real`` (a model of 22.7 M parameters gave it) or ``invented``."""


@pytest.mark.parametrize("reply", REPLIES, ids=[reply["text"][:40] for reply in REPLIES])
def test_only_a_set_phrase_is_an_abstention_and_what_reads_like_one_is_counted(reply: dict[str, str]) -> None:
    answer = stated(reply["text"], reply["text"])
    found = "abstention" if answer.abstained else "seems" if answer.seems_abstained else "answer"
    assert found == reply["is"]


def test_every_kind_of_reply_is_among_them() -> None:
    assert {(reply["is"], reply["origin"]) for reply in REPLIES} == {
        (kind, origin) for kind in ("abstention", "seems", "answer") for origin in ("real", "invented")
    }


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("not enough info.", "NOT ENOUGH INFO", True),
        ("I don\u2019t know", "I don't know", True),
        ("pass", "pass", True),
        ("The answer is pass.", "pass", True),
        ("pass (the passages do not say)", "pass", False),
        ("Pass the Dutchie", "pass", False),
        ("Na", "N/A", False),
        ("n/a", "N/A", True),
        ("わかりません。", "わかりません", True),
        ("\u200f«لا أعرف»\u200f", "لا أعرف", True),
        ("?", "?", True),
        ("", "?", False),
        ("", "", False),
    ],
)
def test_the_prompts_own_phrase_counts_as_it_is_written(text: str, phrase: str, expected: bool) -> None:
    assert abstains(text, phrase) is expected


def test_an_answer_with_the_prompts_own_phrase_in_it_seems_to_abstain() -> None:
    assert seems_to_abstain("Pass, since nobody wrote it down", "pass")
    assert not seems_to_abstain("pass", "pass")
    assert not seems_to_abstain("in passing", "pass")
    assert not seems_to_abstain("Paris", "?")
