"""Which questions can be answered by yes or no: in doubt, all can."""

import json

import pytest

from judgekit.reading.question import is_open
from tests.reading.written import SAMPLE

OPEN = [
    *("Who designed the lighthouse?", "in which year did it end", "Since when have trams been running?"),
    *("What is the rate of the bond?", "and where was he born", "Tell me, how tall is it?", "¿Cuándo se abrió?"),
    *(
        "Wer hat das gebaut?",
        "Où se trouve le phare ?",
        "谁建造了这座桥？",
        "いつ開通しましたか",
        "Who was he, and where did he live?",
    ),
    *("For how long was it cut off by privateers?", "which is bigger, A or B"),
]
CLOSED = [
    *("Did Northgate lose the 1994 cup?", "is greenland part of europe or north america", "Was it built in 1932"),
    *("Can you tell me who built it?", "When was it built, and is it still open?", "Who is she? Is she alive?"),
    *("What if it rains?", "What about dogs?", "Dogs are allowed on the ferry.", "lighthouse designer", ""),
    *("when the bridge was built, was it toll free?", "Ist das Museum geöffnet?", "她去过北京吗？", "Was ist es?"),
    *("Whether dogs are allowed", "Is it the largest, and who built it?", "How old is it, or do we not know?"),
    "It is true, right?",
]  # fmt: skip


@pytest.mark.parametrize("question", OPEN)
def test_a_question_for_something_else_is_open(question: str) -> None:
    assert is_open(question)


@pytest.mark.parametrize("question", CLOSED)
def test_what_may_be_answered_by_yes_or_no_is_not(question: str) -> None:
    assert not is_open(question)


def test_the_questions_of_the_sample_are_open() -> None:
    lines = (SAMPLE / "queries.jsonl").read_text().splitlines()
    assert [text for text in (json.loads(line)["text"] for line in lines) if not is_open(text)] == []
