"""The mock behind ``mock:`` replies to every shipped prompt in the form that it declares, and always alike."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.answers.answerer import make_answerer
from judgekit.answers.metrics import Correctness
from judgekit.answers.quality import Answered
from judgekit.answers.quality import metric as build_metric
from judgekit.answers.reading import Answer
from judgekit.client.mock import MockTransport
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.data.tables import Status
from judgekit.labelers.base import build, checked
from judgekit.reading.prompts import list_prompts
from judgekit.wire.types import Endpoint, Outcome, Reply, Request, chat

ENDPOINT = Endpoint("mock", "mock:", "mock")
QUERY = Query("q", "Who built the Old Mill?", ("Thomas",))
GOOD = Doc("good", "The mill was built by Thomas Greave. It closed in 1911.", "Old Mill")
BAD = Doc("bad", "Anna Holm drew the harbour. It has 42 moorings.", "Vell")
PROMPTS = {p.name: p for p in list_prompts()}


class Context:
    """One endpoint, the mock."""

    fields: Fields = "title+text"
    docs = None
    prompts = None

    def endpoint(self, name: str | None) -> Endpoint:
        return ENDPOINT

    def path(self, text: str) -> Path:
        return Path(text)


def ask(requests: list[Request]) -> list[Outcome]:
    async def send(request: Request) -> Outcome:
        status, _, raw = await MockTransport().send(request.endpoint, request.body)
        assert status == 200
        return Reply(request.key, raw.decode())

    return [asyncio.run(send(request)) for request in requests]


def reply(text: str, **params: Any) -> Reply:
    (outcome,) = ask([chat(ENDPOINT, [{"role": "user", "content": text}], **params)])
    assert isinstance(outcome, Reply)
    return outcome


def labels(spec: str) -> tuple[float, float]:
    labeler = build(spec, Context())
    found = []
    for doc in (GOOD, BAD):
        unit = Unit(QUERY, (doc,))
        (label,) = checked(labeler, unit, ask(labeler.requests(unit, [])))
        assert label.status is Status.OK, label
        assert label.relevance is not None
        found.append(label.relevance)
    return found[0], found[1]


@pytest.mark.parametrize("name", [name for name, p in PROMPTS.items() if p.kind == "judge"])
def test_its_verdicts_can_be_read_at_once_and_tell_good_from_bad(name: str) -> None:
    scale = build(f"judge(prompt='{name}')", Context()).scale
    good, bad = labels(f"judge(prompt='{name}')")
    assert good >= (scale.min_rel or 0) > bad == scale.low


@pytest.mark.parametrize("name", ["binary", "strict"])
def test_its_verdicts_can_be_read_off_log_probabilities(name: str) -> None:
    good, bad = labels(f"judge(prompt='{name}', read=logprobs)")
    assert 1 > good > 0.5 > bad > 0


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("answer-short", "Thomas"),
        ("answer-long", "The mill was built by Thomas Greave."),
        ("classify-claim", "SUPPORTS"),
    ],
)
def test_its_answers_are_of_the_declared_kind_and_abstain_where_the_passages_say_nothing(
    prompt: str, answer: str
) -> None:
    answerer = make_answerer(ENDPOINT, prompt, Context())
    unit = Unit(Query("q", "Who built the Mill?"), (BAD, GOOD))
    given = answerer.answer(unit, ask(answerer.requests(unit, [])))
    assert (given.text, given.abstained) == (answer, False)
    for docs in ((BAD,), ()):
        unit = Unit(QUERY, docs)
        assert answerer.answer(unit, ask(answerer.requests(unit, []))).abstained


@pytest.mark.parametrize("prompt", ["answer-short", "answer-long"])
def test_its_answers_to_single_documents_are_merged(prompt: str) -> None:
    merge = "merge" if prompt == "answer-short" else "merge-long"
    answerer = make_answerer(ENDPOINT, prompt, Context(), {"mode": "merge", "merge_prompt": merge})
    unit = Unit(QUERY, (BAD, GOOD))
    replies = ask(answerer.requests(unit, []))
    replies += ask(answerer.requests(unit, replies))
    assert "Thomas" in answerer.answer(unit, replies).text


@pytest.mark.parametrize(("text", "value"), [("It was Thomas.", 1.0), ("Edwin Sorrel", 0.0)])
def test_it_compares_answers_with_the_references(text: str, value: float) -> None:
    correct = build_metric("correct", Context())
    assert isinstance(correct, Correctness)
    unit = Answered(QUERY, Answer(text))
    assert correct.read(unit, ask(correct.requests(unit, []))).value == value


CASE = (
    "<question>Which city is the capital of France?</question>\n"
    "<passage>The city which is the capital of France is Paris.</passage>"
)


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        ("Does the passage answer the question? Yes or no.", "Yes"),
        ("Score the passage from 0 to 10.", "10"),
        ("Grade the passage: 0, 1 or 2.", "2"),
        ('Think, then end with the line "Verdict: yes or no".', "Verdict: Yes"),
        ('Yes or no? Reply as JSON: {"reason": "why", "relevant": true}', '{"reason": "…", "relevant": true}'),
        ("Reply with RELEVANT, PARTIAL or OFF TOPIC.", "RELEVANT"),
        ("Answer the question.", "Paris"),
    ],
)
def test_it_does_as_prompts_of_ones_own_say(orders: str, said: str) -> None:
    assert reply(f"{orders}\n\n{CASE}").text == said


def test_it_keeps_to_the_form_that_the_request_constrains() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(reply(f"Grade it 0, 1 or 2.\n{CASE}", response_format=form).text) == {"score": 2}
    assert json.loads(reply(f"Grade it 0, 1 or 2.\n{CASE}", structured_outputs={"json": schema}).text) == {"score": 2}
    assert reply(CASE, structured_outputs={"choice": ["good", "bad"]}).text == "good"


def test_asked_again_it_replies_to_the_first_question_in_the_same_form() -> None:
    messages = [
        {"role": "user", "content": f"Is it relevant? Yes or no.\n{CASE}"},
        {"role": "assistant", "content": "<passage>Hmm</passage>"},
        {"role": "user", "content": "Reply with Yes or No only."},
    ]
    (again,) = ask([chat(ENDPOINT, messages)])
    assert isinstance(again, Reply)
    assert again.text == "Yes"


def test_the_same_body_always_gets_the_same_reply_with_its_tokens_counted() -> None:
    one, other = (reply(f"Yes or no?\n{CASE}", n=2, logprobs=True, top_logprobs=1) for _ in range(2))
    assert one == other
    assert len(one.json["choices"]) == 2
    assert one.usage is not None
    assert one.usage[1] == len(one.logprobs or ()) == 1
    assert [len(token["top_logprobs"]) for token in one.logprobs or ()] == [1]
