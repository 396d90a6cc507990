"""The offline stand-in understands every shipped prompt: what it replies can be read as the prompt declares."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from judgekit.answers.answerer import make_answerer
from judgekit.answers.metrics.correctness import Correctness
from judgekit.answers.quality import Answered
from judgekit.answers.quality import metric as build_metric
from judgekit.answers.reading import Answer
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.data.tables import Status
from judgekit.labelers.base import build, checked
from judgekit.llm.offline import MODEL, OfflineTransport
from judgekit.llm.prompts import list_prompts
from judgekit.llm.types import Endpoint, Outcome, Reply, Request

QUERY = Query("q", "Who built the Old Mill?", ("Thomas Greave",))
GOOD = Doc("good", "The mill was built by Thomas Greave. It closed in 1911.", "Old Mill")
BAD = Doc("bad", "Anna Holm drew the harbour. It has 42 moorings.", "Vell")
PROMPTS = {p.name: p for p in list_prompts()}


class Context:
    """One endpoint, the stand-in."""

    fields: Fields = "title+text"
    docs = None

    def endpoint(self, name: str | None) -> Endpoint:
        return Endpoint(name or "offline", "offline:", MODEL)

    def path(self, text: str) -> Path:
        return Path(text)


def ask(requests: list[Request]) -> list[Outcome]:
    transport = OfflineTransport()

    async def send(request: Request) -> Outcome:
        _, _, raw = await transport.send(request.endpoint, request.body)
        return Reply(request.key, raw.decode())

    return [asyncio.run(send(request)) for request in requests]


@pytest.mark.parametrize("name", [name for name, p in PROMPTS.items() if p.kind == "judge"])
def test_verdicts_can_be_read_and_tell_good_from_bad(name: str) -> None:
    labeler = build(f"judge(prompt='{name}')", Context())
    labels = {}
    for doc in (GOOD, BAD):
        unit = Unit(QUERY, (doc,))
        (label,) = checked(labeler, unit, ask(labeler.requests(unit, [])))
        assert label.status is Status.OK, label
        labels[doc.doc_id] = label.relevance
    assert labels["good"] > labels["bad"]
    assert labels["good"] >= (labeler.scale.min_rel or 0)
    assert labels["bad"] == labeler.scale.low


@pytest.mark.parametrize("name", ["binary", "graded"])
def test_verdicts_can_be_read_off_log_probabilities(name: str) -> None:
    labeler = build(f"judge(prompt='{name}', read=logprobs)", Context())
    values = []
    for doc in (GOOD, BAD):
        unit = Unit(QUERY, (doc,))
        (label,) = checked(labeler, unit, ask(labeler.requests(unit, [])))
        assert label.status is Status.OK, label
        values.append(label.relevance)
    assert 1 > values[0] > 0.5 > values[1] > 0


@pytest.mark.parametrize(
    ("prompt", "text", "answer"),
    [
        ("answer-short", QUERY.text, "Thomas Greave"),
        ("answer-long", QUERY.text, "The mill was built by Thomas Greave."),
        ("classify-claim", "Thomas Greave built the Old Mill.", "SUPPORTS"),
        ("classify-claim", "Edwin Sorrel built the Old Mill.", "REFUTES"),
        ("classify-claim", "The Old Mill was never built by Thomas Greave.", "REFUTES"),
    ],
)
def test_answers_are_of_the_declared_kind(prompt: str, text: str, answer: str) -> None:
    answerer = make_answerer(Context().endpoint(None), prompt, Context())
    unit = Unit(Query("q", text), (BAD, GOOD))
    given = answerer.answer(unit, ask(answerer.requests(unit, [])))
    assert (given.text, given.abstained) == (answer, False)
    for docs in ((BAD,), ()):
        unit = Unit(Query("q", text), docs)
        assert answerer.answer(unit, ask(answerer.requests(unit, []))).abstained


@pytest.mark.parametrize("prompt", ["answer-short", "answer-long"])
def test_answers_to_single_documents_are_merged(prompt: str) -> None:
    merge = "merge" if prompt == "answer-short" else "merge-long"
    answerer = make_answerer(Context().endpoint(None), prompt, Context(), {"mode": "merge", "merge_prompt": merge})
    unit = Unit(QUERY, (BAD, GOOD))
    replies = ask(answerer.requests(unit, []))
    replies += ask(answerer.requests(unit, replies))
    assert "Thomas Greave" in answerer.answer(unit, replies).text


@pytest.mark.parametrize(("text", "value"), [("Thomas Greave", 1.0), ("Edwin Sorrel", 0.0)])
def test_answers_are_compared_with_the_references(text: str, value: float) -> None:
    correct = build_metric("correct", Context())
    assert isinstance(correct, Correctness)
    unit = Answered(QUERY, Answer(text))
    assert correct.read(unit, ask(correct.requests(unit, []))).value == value
