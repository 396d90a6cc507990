"""What is asked of a model is frozen: another request leaves every reply unused that was paid for.

A prompt may be edited for a good reason. Then its line in `identities.json` changes with it, and CHANGELOG says that it
is asked anew.
"""

import json
from pathlib import Path

from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Unit
from judgekit.labelers.base import build
from judgekit.reading.asker import Asker
from judgekit.reading.prompts import list_prompts
from judgekit.wire.types import Reply
from tests.labelers.scripted import DOC, OTHER, PARIS, Here

HERE = Here().endpoint(None)

KEPT = json.loads(Path(__file__).with_name("identities.json").read_text())
"""The first digits of identities: by prompt of what it asks, and what it asks where that reply was cut off; by labeler
of its first wave on one document; by how answers are asked for from two documents of the first wave."""


def test_every_shipped_prompt_asks_what_it_always_asked() -> None:
    found = {}
    for prompt in list_prompts():
        asker, values = Asker(HERE, prompt), {name: f"the {name}, é" for name in sorted(prompt.placeholders)}
        first = asker.request(values)
        cut = Reply(first.key, '{"choices":[{"message":{"content":"The"},"finish_reason":"length"}]}')
        found[prompt.name] = [first.key[:16], asker.again(values, cut).key[:16]]
    assert found == KEPT["prompts"]


def test_labelers_ask_what_they_always_asked() -> None:
    unit = Unit(PARIS, (DOC,))
    found = {name: [r.key[:16] for r in build(name, Here()).requests(unit, [])] for name in KEPT["labelers"]}
    assert found == KEPT["labelers"]


def test_answers_are_asked_for_as_they_always_were() -> None:
    def first(told: str) -> list[str]:
        options = dict(option.split("=") for option in told.split())
        answerer = make_answerer(HERE, "answer-short", Here(), **options)
        return [request.key[:16] for request in answerer.requests(Unit(PARIS, (DOC, OTHER)), [])]

    assert {told: first(told) for told in KEPT["answers"]} == KEPT["answers"]
