"""The first labelers: one label per doc, from replies that a test makes up."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Doc, Docs, Fields, Query, Unit
from judgekit.data.tables import Status
from judgekit.labelers.base import Label, Labeler, build, checked
from judgekit.llm.types import Endpoint, Outcome, Reply, Request
from judgekit.spec import parse


@dataclass
class Here:
    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None

    def endpoint(self, name: str | None) -> Endpoint:
        return Endpoint(name or "only", "http://localhost:1/v1", "m")

    def path(self, text: str) -> Path:
        return self.base / text


def reply(request: Request, text: str, finish: str = "stop") -> Reply:
    return Reply(request.key, json.dumps({"choices": [{"message": {"content": text}, "finish_reason": finish}]}))


def play(labeler: Labeler, unit: Unit, *texts: str) -> list[Label]:
    replies: list[Outcome] = []
    while wave := labeler.requests(unit, replies):
        replies += [reply(r, texts[len(replies) + i]) for i, r in enumerate(wave)]
    return checked(labeler, unit, replies)


PARIS = Query("q1", "What is the capital of France?", ("Paris",))
DOC = Doc("d1", "The capital of France is Paris.", "France")


@pytest.mark.parametrize(("said", "value"), [("Yes", 1.0), ("No.", 0.0)])
def test_a_judge_labels_what_the_model_says(said: str, value: float) -> None:
    assert play(build("judge", Here()), Unit(PARIS, (DOC,)), said)[0].relevance == value


def test_utility_rates_the_answer_from_the_one_document() -> None:
    assert play(build("utility", Here()), Unit(PARIS, (DOC,)), "paris.")[0].relevance == 1.0
    assert play(build("utility(quality=f1)", Here()), Unit(PARIS, (DOC,)), "in Paris")[0].relevance == pytest.approx(
        2 / 3
    )


def test_utility_and_answering_from_one_document_ask_the_same() -> None:
    unit = Unit(PARIS, (DOC,))
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here())
    assert [r.key for r in answerer.requests(unit, [])] == [r.key for r in build("utility", Here()).requests(unit, [])]


def test_containment_needs_no_request() -> None:
    labeler = build("containment", Here())
    unit = Unit(PARIS, (DOC, Doc("d2", "Berlin is in Germany.")))
    assert labeler.requests(unit, []) == []
    assert [label.relevance for label in checked(labeler, unit, [])] == [1.0, 0.0]


def test_provenance_gives_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "gold.qrels").write_text("q1 0 d1 1\n")
    labeler = build("provenance(qrels='gold.qrels')", Here(tmp_path))
    unit = Unit(PARIS, (DOC, Doc("d2", "x")))
    assert [label.relevance for label in checked(labeler, unit, [])] == [1.0, 0.0]
    assert build(parse(str(labeler.spec)), Here(tmp_path)) == labeler


def test_without_references_there_is_no_label_and_no_request() -> None:
    unit = Unit(Query("q2", "Why?"), (DOC,))
    for kind in ("utility", "containment"):
        assert play(build(kind, Here()), unit)[0].status is Status.NOT_APPLICABLE
