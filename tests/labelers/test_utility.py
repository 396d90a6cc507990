"""Utility labels: what the downstream LLM makes of one document."""

import json
from typing import Any

import pytest

from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.wire.types import Failure, Request
from tests.labelers.scripted import CUT, DOC, OTHER, PARIS, REFUSED, Here, Says, outcome, play

UNIT = Unit(PARIS, (DOC,))
NO_REFERENCE = Unit(Query("q2", "Why?"), (DOC,))


def content(request: Request) -> str:
    text: str = json.loads(request.body)["messages"][-1]["content"]
    return text


def closed_book(request: Request) -> bool:
    return "<passage>" not in content(request)


@pytest.mark.parametrize(
    ("spec", "says", "relevance", "scale"),
    [
        ("utility", "Answer: Paris", 1.0, "binary"),
        ("utility", "in Paris", 0.0, "binary"),
        ("utility(quality=f1)", "in Paris", 2 / 3, "unit"),
        ("utility(quality='rouge-l')", "paris france europe", 0.8, "unit"),
        ("utility(prompt='answer-long', quality=f1)", "It is Paris.", 0.5, "unit"),
    ],
)
def test_the_quality_of_the_answer_is_the_label(spec: str, says: str, relevance: float, scale: str) -> None:
    labeler = build(spec, Here())
    label = play(labeler, UNIT, [says]).label
    assert (label.relevance, label.raw, str(labeler.scale)) == (pytest.approx(relevance), says, scale)


@pytest.mark.parametrize("prompt", ["answer-short", "answer-long", "classify-claim"])
@pytest.mark.parametrize("mode", ["together", "reversed", "shuffled", "vote"])
def test_answering_from_one_document_is_the_same_request(prompt: str, mode: str) -> None:
    answerer = make_answerer(Here().endpoint(None), prompt, Here(), mode=mode)
    labeler = build(f"utility(prompt='{prompt}')", Here())
    (first,) = answerer.requests(UNIT, [])
    again = answerer.requests(UNIT, [outcome(first, CUT)])
    waves = play(labeler, UNIT, [CUT, "Paris"]).waves
    assert [[r.key for r in wave] for wave in waves] == [[first.key], [again[0].key]]
    gain = build(f"utility(prompt='{prompt}', variant=gain)", Here()).requests(UNIT, [])
    assert {first.key} < {request.key for request in gain}


def test_k_answers_per_document_are_the_utility_requests_of_those_documents() -> None:
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here(), mode="vote")
    labeler = build("utility", Here())
    single = [r.key for unit in labeler.units(PARIS, [DOC, OTHER]) for r in labeler.requests(unit, [])]
    assert [r.key for r in answerer.requests(Unit(PARIS, (DOC, OTHER)), [])] == single


def test_the_context_budget_is_part_of_the_request() -> None:
    long = Doc("d", "word " * 400)
    labeler = build("utility(context_tokens=50)", Here())
    (request,) = labeler.requests(Unit(PARIS, (long,)), [])
    assert content(request).count("word") == pytest.approx(40, abs=2)
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here(), context_tokens=50)
    assert answerer.requests(Unit(PARIS, (long,)), [])[0].key == request.key


def test_without_an_answer_there_is_no_label() -> None:
    down = Failure("k", Status.FAILED, "it is down")
    cases: dict[Status, list[Says]] = {
        Status.REFUSED: [REFUSED],
        Status.UNPARSED: ["<think>Paris"],
        Status.FAILED: [down],
        Status.TRUNCATED: [CUT, CUT],
    }
    for status, says in cases.items():
        label = play(build("utility", Here()), UNIT, says).label
        assert (label.relevance, label.status, bool(label.reason)) == (None, status, True)


@pytest.mark.parametrize("spec", ["utility", "utility(variant=gain)", "utility(quality='correct(endpoint=j)')"])
def test_without_references_nothing_is_asked_and_it_is_not_applicable(spec: str) -> None:
    played = play(build(spec, Here()), NO_REFERENCE)
    assert played.waves == []
    assert played.label.status is Status.NOT_APPLICABLE


# Gains.


@pytest.mark.parametrize(
    ("variant", "document", "without", "relevance"),
    [
        ("gain", "Paris", "Lyon", 1.0),
        ("gain", "Paris", "Paris", 0.0),
        ("gain", "Lyon", "Paris", 0.0),
        ("signed-gain", "Lyon", "Paris", -1.0),
        ("signed-gain", "Paris", "unknown", 1.0),
    ],
)
def test_a_gain_is_over_the_answer_without_any_document(
    variant: str, document: str, without: str, relevance: float
) -> None:
    labeler = build(f"utility(variant='{variant}')", Here())
    played = play(labeler, UNIT, lambda r: without if closed_book(r) else document)
    assert (played.label.relevance, played.label.raw) == (relevance, document)
    assert played.label.extra["closed_book"] == float(without == "Paris")
    assert played.label.extra["closed_book_answer"] == without
    assert str(labeler.scale) == ("unit" if variant == "gain" else "signed")
    assert [closed_book(r) for r in played.waves[0]] == [False, True]


def test_the_closed_book_request_is_the_same_for_all_documents_and_for_answering() -> None:
    labeler = build("utility(variant=gain)", Here())
    keys = {labeler.requests(unit, [])[1].key for unit in labeler.units(PARIS, [DOC, OTHER])}
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here())
    assert keys == {answerer.requests(Unit(PARIS, ()), [])[0].key}


def test_without_a_closed_book_answer_there_is_no_gain() -> None:
    labeler = build("utility(variant=gain)", Here())
    label = play(labeler, UNIT, ["Paris", REFUSED]).label
    assert (label.status, label.reason) == (Status.REFUSED, "without a document: the model declined: I may not")
    assert "closed_book" not in label.extra
    assert play(labeler, UNIT, [REFUSED, "Paris"]).label.reason == "the model declined: I may not"
    assert play(labeler, UNIT, ["Paris", CUT, "Lyon"]).label.relevance == 1.0


# A metric that asks an LLM.


def test_an_answer_can_be_rated_by_a_judge() -> None:
    labeler: Any = build("utility(quality='correct(endpoint=j)')", Here())
    played = play(labeler, UNIT, ["The city of Paris", "Yes"])
    assert played.label.relevance == 1.0
    assert [[r.endpoint.name for r in w] for w in played.waves] == [["only"], ["j"]]
    assert "The city of Paris" in content(played.waves[1][0])
    assert [e.name for e in labeler.needs.raters] == ["j"]
    lacking = "The passages do not state the year, but the answer is Paris."
    for says, relevance in (
        ([CUT, "Paris", CUT, "No"], 0.0),
        (["unknown"], 0.0),
        (["Paris", "?", "Yes"], 1.0),
        ([lacking, "Yes"], 1.0),
        (["Paris", "?", "??"], None),
    ):
        assert play(labeler, UNIT, says).label.relevance == relevance
    assert labeler.most(UNIT) == 4


def test_gains_can_be_rated_by_a_judge_one_answer_after_the_other() -> None:
    labeler = build("utility(variant='signed-gain', quality='correct(endpoint=j)')", Here())
    played = play(labeler, UNIT, ["Lyon", "Paris", "No", "Yes"])
    assert played.label.relevance == -1.0
    assert [len(w) for w in played.waves] == [2, 1, 1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("utility(quality=emm)", "Did you mean 'em'"),
        ("utility(prompt='closed-book')", "must answer from passages"),
    ],
)
def test_mistakes_in_a_spelling_end_in_a_sentence(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(spec, Here())


# Without reference answers.

SECOND = Doc("d2", "Lyon is in France.")
LISTED = Unit(Query("q1", "What is the capital of France?"), (DOC, SECOND))


def from_list(request: Request) -> bool:
    return content(request).count("<passage>") > 1


@pytest.mark.parametrize(
    ("says", "relevance"), [("Paris", 1.0), ("Lyon", 1.0), ("unknown", 0.0), ("I don't know", 0.0)]
)
def test_reads_is_whether_there_is_an_answer_whatever_it_says(says: str, relevance: float) -> None:
    labeler = build("utility(variant=reads)", Here())
    played = play(labeler, NO_REFERENCE, [says])
    assert (played.label.relevance, str(labeler.scale), labeler.needs.references) == (relevance, "binary", False)
    assert [[r.key for r in wave] for wave in played.waves] == [
        [r.key for r in build("utility", Here()).requests(replace_answers(NO_REFERENCE), [])]
    ]


def replace_answers(unit: Unit) -> Unit:
    """The same unit with a reference answer, so that eRAG asks about it; no request shows it."""
    return Unit(Query(unit.query.query_id, unit.query.text, ("x",)), unit.docs)


def test_a_reply_that_is_not_there_is_no_abstention() -> None:
    for variant in ("reads", "distraction"):
        label = play(build(f"utility(variant={variant})", Here()), UNIT, [REFUSED]).label
        assert (label.relevance, label.status) == (None, Status.REFUSED)


@pytest.mark.parametrize(
    ("text", "says", "relevance"),
    [
        ("Paris is the capital.", "Paris", 1.0),
        ("Paris is the capital.", "Nice", 1.0),
        ("Paris is the capital.", "unknown", 0.0),
        ("Lyon is a city.", "Lyon", -1 / 3),
        ("Lyon is a city.", "unknown", 0.0),
    ],
)
def test_an_answer_from_an_irrelevant_document_is_harm(text: str, says: str, relevance: float) -> None:
    labeler = build("utility(variant=distraction)", Here())
    label = play(labeler, Unit(PARIS, (Doc("d1", text),)), [says]).label
    assert (label.relevance, str(labeler.scale)) == (pytest.approx(relevance), "signed")
    assert labeler.needs.references, "containment says what is relevant"


def test_another_labeler_may_say_what_is_relevant_and_is_asked_after_the_answer() -> None:
    labeler = build("utility(variant=distraction, relevant='judge(endpoint=other)')", Here())
    played = play(labeler, NO_REFERENCE, ["Lyon", "No"])
    assert [[r.endpoint.name for r in wave] for wave in played.waves] == [["only"], ["other"]]
    assert played.label.relevance == pytest.approx(-1 / 3)
    assert [endpoint.name for endpoint in labeler.needs.asked] == ["only", "other"]
    missing = play(labeler, NO_REFERENCE, ["Lyon", REFUSED]).label
    assert (missing.relevance, missing.status) == (None, Status.REFUSED)


def test_own_answers_take_the_place_of_references_and_are_asked_for_once() -> None:
    labeler = build("utility(reference=own)", Here())
    (unit,) = labeler.units(LISTED.query, LISTED.docs)
    played = play(
        labeler, unit, lambda r: "Paris" if from_list(r) or "capital of" in content(r).split("passage>")[1] else "Lyon"
    )
    assert [(label.doc_id, label.relevance) for label in played.labels] == [(DOC.doc_id, 1.0), ("d2", 0.0)]
    assert [from_list(r) for r in played.waves[0]] == [False, False, True]
    assert played.labels[1].extra["own_answer"] == "Paris"
    assert not labeler.needs.references
    assert labeler.needs.outcome_metric is None, "the labels are not the outcome, whose references are people's"


def test_the_own_answer_is_the_request_of_answering_from_the_first_documents() -> None:
    labeler = build("utility(reference=own, top=1)", Here())
    (unit,) = labeler.units(LISTED.query, LISTED.docs)
    first, second, own = labeler.requests(unit, [])
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here())
    assert own.key == first.key == answerer.requests(Unit(LISTED.query, (DOC,)), [])[0].key
    assert second.key != first.key


@pytest.mark.parametrize(("own", "relevance", "status"), [("unknown", 0.0, Status.OK), (REFUSED, None, Status.REFUSED)])
def test_without_an_own_answer_no_document_is_useful_or_nothing_is_known(
    own: Says, relevance: float | None, status: Status
) -> None:
    labeler = build("utility(reference=own)", Here())
    (unit,) = labeler.units(LISTED.query, LISTED.docs)
    labels = play(labeler, unit, lambda r: own if from_list(r) else "Paris").labels
    assert {(label.relevance, label.status, bool(label.reason)) for label in labels} == {(relevance, status, True)}


def test_a_gain_over_closed_book_by_the_own_answer() -> None:
    labeler = build("utility(reference=own, variant='signed-gain')", Here())
    (unit,) = labeler.units(LISTED.query, LISTED.docs)
    labels = play(labeler, unit, lambda r: "Paris" if closed_book(r) or from_list(r) else "Lyon").labels
    assert [label.relevance for label in labels] == [-1.0, -1.0]
    assert [label.extra["closed_book"] for label in labels] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("utility(variant=reads, quality=f1)", "leave out quality"),
        ("utility(variant=distraction, reference=own)", "leave out reference"),
        ("utility(relevant=judge)", "the option relevant needs variant=distraction"),
        ("utility(top=3)", "the option top needs reference=own"),
        ("utility(variant=distraction, relevant='judge(read=logprobs)')", "do not say which documents are relevant"),
    ],
)
def test_options_that_do_not_go_together_are_refused(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        build(spec, Here())


def test_a_cascade_refuses_labels_that_depend_on_other_documents() -> None:
    with pytest.raises(UsageError, match="compares several documents"):
        build("cascade(first='utility(reference=own)', then=utility)", Here())
    build("cascade(first=utility, then='utility(quality=contains)')", Here())
