"""Labels by log-probabilities: of a given answer after each document, and of the LLM's own answer."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Labeler, build
from judgekit.labelers.contract import checked
from judgekit.reading.likelihood import NoPromptError, of_prompt, of_reply
from judgekit.wire.types import Endpoint, Failure, Outcome, Reply, Request
from tests.labelers.scripted import CUT, DOC, OTHER, PARIS, REFUSED, Here
from tests.scripted import Scripted, ScriptedTransport

UNIT = Unit(PARIS, (DOC,))
ONE = Query("q1", "What is the capital of France?", ("Paris",))
BOTH = Unit(ONE, (DOC, OTHER))


class Base(Here):
    """A context whose endpoints are asked by completions."""

    def endpoint(self, name: str | None) -> Endpoint:
        return Endpoint(name or "only", "http://localhost:1/v1", "m", api="completions")


def echo(request: Request, answer: Mapping[str, float], prompt: Sequence[str] = ("The", " prompt", ":")) -> Reply:
    """Return what vLLM replies: null for the first token, and the generated token behind the prompt's."""
    tokens = [*prompt, *answer, " Paris"]
    logprobs = [None, *[-1.0] * (len(prompt) - 1), *answer.values(), -0.1]
    offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
    logged = {"text_offset": offsets, "token_logprobs": logprobs, "tokens": tokens, "top_logprobs": None}
    choice = {"index": 0, "text": "".join(tokens), "logprobs": logged, "finish_reason": "length"}
    usage = {"prompt_tokens": len(tokens) - 1, "completion_tokens": 1, "total_tokens": len(tokens)}
    return Reply(request.key, json.dumps({"object": "text_completion", "choices": [choice], "usage": usage}))


def said(request: Request, text: str, logprobs: Sequence[float] = ()) -> Reply:
    entries = [
        {"token": word, "logprob": p, "top_logprobs": []} for word, p in zip(text.split(), logprobs, strict=False)
    ]
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": entries or None}}
    return Reply(request.key, json.dumps({"choices": [choice]}))


def prompt_of(request: Request) -> str:
    return str(json.loads(request.body)["prompt"])


# A given answer.


def test_the_gain_in_probability_over_closed_book_by_hand() -> None:
    labeler = build("utility(read=logprobs)", Base())
    requests = labeler.requests(UNIT, [])
    assert [prompt_of(request).rpartition("Reply: ")[2] for request in requests] == ["Paris", "Paris, France"] * 2
    assert [DOC.text in prompt_of(request) for request in requests] == [True, True, False, False]
    with_long = {" Paris": -0.2, ",": -0.4, " France": -0.6}
    replies = [
        echo(requests[0], {" Par": -0.1, "is": -0.3}),
        echo(requests[1], with_long),
        echo(requests[2], {" Paris": -3.0}),
        echo(requests[3], {" Paris": -3.0, ",": -1.0, " France": -0.5}),
    ]
    assert labeler.requests(UNIT, replies) == []
    (label,) = checked(labeler, UNIT, replies)
    # The best answer counts: after the document the first (mean -.2, against -.4), without it the second (-1.5).
    assert label.relevance == pytest.approx(math.exp(-0.2) - math.exp(-1.5))
    assert label.extra == {
        "answer": "Paris",
        "logprob": pytest.approx(-0.2),
        "closed_book_logprob": pytest.approx(-1.5),
        "logprob_gain": pytest.approx(1.3),
    }
    assert (str(labeler.scale), labeler.needs.references, labeler.needs.own_answers) == ("signed", True, False)


def test_the_answer_stands_behind_the_very_prompt_that_asks_for_it() -> None:
    labeler, context = build("utility(read=logprobs)", Base()), Base()
    answerer = make_answerer(context.endpoint(None), "answer-short", context)
    asked = [json.loads(answerer.requests(Unit(ONE, docs), [])[0].body) for docs in ((DOC,), ())]
    sent = [json.loads(request.body) for request in labeler.requests(Unit(ONE, (DOC,)), [])]
    assert [body["prompt"] for body in sent] == [f"{body['prompt']} Paris" for body in asked]
    assert {name: sent[0][name] for name in ("echo", "logprobs", "max_tokens")} == {
        "echo": True,
        "logprobs": 1,
        "max_tokens": 1,
    }
    assert "stop" not in sent[0]
    # The second document's closed-book request is the first one's, so that it is paid once.
    other = labeler.requests(Unit(ONE, (OTHER,)), [])
    assert other[1].key == labeler.requests(Unit(ONE, (DOC,)), [])[1].key


def test_a_certain_answer_is_more_probable_than_any_other() -> None:
    labeler = build("utility(read=logprobs)", Base())
    requests = labeler.requests(UNIT, [])
    certain, other = {" Paris": 0.0}, {" Paris": -1.0, ",": -1.0, " France": -1.0}
    replies = [
        echo(requests[0], certain),
        echo(requests[1], other),
        echo(requests[2], certain),
        echo(requests[3], other),
    ]
    assert checked(labeler, UNIT, replies)[0].relevance == 0.0
    assert checked(labeler, UNIT, replies)[0].extra["logprob"] == 0.0


def test_the_own_answer_from_the_list_takes_the_place_of_references() -> None:
    labeler = build("utility(read=logprobs, reference=own, top=2)", Base())
    unit = Unit(Query("q1", "What is the capital of France?"), (DOC, OTHER))
    (listed,) = labeler.requests(unit, [])
    answerer = make_answerer(Base().endpoint(None), "answer-short", Base())
    assert listed.key == answerer.requests(unit, [])[0].key
    own: list[Outcome] = [Reply(listed.key, json.dumps({"choices": [{"text": " Lyon", "finish_reason": "stop"}]}))]
    echoed = labeler.requests(unit, own)
    assert [prompt_of(request).rpartition("Reply: ")[2] for request in echoed] == ["Lyon"] * 3
    replies = [*own, *(echo(r, {" Lyon": p}) for r, p in zip(echoed, (-0.5, -2.0, -1.0), strict=True))]
    assert labeler.requests(unit, replies) == []
    labels = checked(labeler, unit, replies)
    assert [label.relevance for label in labels] == pytest.approx(
        [math.exp(-0.5) - math.exp(-1), math.exp(-2) - math.exp(-1)]
    )
    assert (labeler.needs.references, labeler.needs.own_answers, labeler.most_requests if False else True)[1:] == (
        True,
        True,
    )
    gone = [Reply(listed.key, json.dumps({"choices": [{"text": " unknown", "finish_reason": "stop"}]}))]
    assert labeler.requests(unit, gone) == []
    assert [label.relevance for label in checked(labeler, unit, gone)] == [0.0, 0.0]


def test_what_is_lost_has_no_label_and_says_where() -> None:
    labeler = build("utility(read=logprobs)", Base())
    unit = Unit(ONE, (DOC,))
    requests = labeler.requests(unit, [])
    down = Failure("k", Status.FAILED, "it is down")
    fine = echo(requests[0], {" Paris": -1.0})
    label = checked(labeler, unit, [down, fine])[0]
    assert (label.relevance, label.status, label.reason) == (None, Status.FAILED, "it is down")
    label = checked(labeler, unit, [fine, down])[0]
    assert (label.status, label.reason) == (Status.FAILED, "without a document: it is down")
    label = checked(labeler, unit, [echo(requests[0], {" Rome": -1.0}), fine])[0]
    assert (label.status, "is not the answer 'Paris'" in label.reason) == (Status.UNPARSED, True)
    # One answer that is lost might have been the most probable.
    requests = labeler.requests(UNIT, [])
    replies = [fine, down, fine, echo(requests[3], {" Paris": -1.0, ",": -1.0, " France": -1.0})]
    assert checked(labeler, UNIT, replies)[0].status is Status.FAILED


def test_a_server_without_log_probabilities_of_prompts_stops_it_at_the_first_reply() -> None:
    labeler = build("utility(read=logprobs)", Base())
    unit = Unit(ONE, (DOC,))
    (first, second) = labeler.requests(unit, [])
    # llama-server: log-probabilities of what it generated alone.
    entry = {"id": 1, "token": " Paris", "logprob": -0.3, "top_logprobs": []}
    usage = {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41}
    choice = {"text": " Paris", "index": 0, "logprobs": {"content": [entry]}, "finish_reason": "length"}
    generated = Reply(first.key, json.dumps({"choices": [choice], "usage": usage}))
    bare = Reply(first.key, json.dumps({"choices": [{**choice, "logprobs": None}], "usage": usage}))
    for reply, says in ((generated, "those of 1 tokens: none of the prompt's"), (bare, "no log-probabilities at all")):
        with pytest.raises(UsageError, match=says):
            labeler.requests(unit, [reply, echo(second, {" Paris": -1.0})])


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("utility(read=logprobs)", 'give endpoint .* api = "completions"'),
        ("utility(read=logprobs, variant=gain)", "leave out variant"),
        ("utility(read=logprobs, quality=f1)", "leave out quality"),
        ("utility(variant=confidence, quality=f1)", "leave out quality"),
        ("utility(variant=confidence, reference=own)", "leave out reference"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_cure(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        build(spec, Here())


def test_an_application_has_no_log_probabilities() -> None:
    class App(Here):
        def endpoint(self, name: str | None) -> Endpoint:
            return Endpoint("app", target=lambda question, documents: "Paris", revision="1")

    for spec in ("utility(read=logprobs)", "utility(variant=confidence)"):
        with pytest.raises(UsageError, match="the application 'app' gives no log-probabilities"):
            build(spec, App())


def test_without_references_nothing_is_asked() -> None:
    labeler = build("utility(read=logprobs)", Base())
    unit = Unit(Query("q2", "Why?"), (DOC,))
    assert labeler.requests(unit, []) == []
    assert checked(labeler, unit, [])[0].status is Status.NOT_APPLICABLE


# Tokens that spell an answer.


def reply_of(tokens: Sequence[str], logprobs: Sequence[float | None], prompt_tokens: int | None = None) -> Reply:
    choice = {"text": "", "logprobs": {"tokens": tokens, "token_logprobs": logprobs}, "finish_reason": "length"}
    usage = {} if prompt_tokens is None else {"usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 1}}
    return Reply("k", json.dumps({"choices": [choice], **usage}))


@pytest.mark.parametrize(
    ("tokens", "text", "mean"),
    [
        ([":", " Par", "is"], "Paris", -2.5),
        ([":", "Par", "is"], "Paris", -2.5),  # decoded without the blank
        ([":", "▁Par", "is"], "Paris", -2.5),
        ([":", " ", "Paris"], "Paris", -2.5),
        (["x", ": Pa", "ris"], "Paris", -2.5),  # a token across the boundary
        ([":", " D", "vo", "\ufffd", "\ufffd", "ák"], "Dvořák", -4.0),  # a character in two tokens
        ([":", " \ufffd", "\ufffd", "sterreich"], "Österreich", -3.0),
        # vLLM 0.32 writes nothing for the first part of a character, and the whole of it for the last.
        ([":", " ", "D", "v", "o", "", "ř", "", "á", "k"], "Dvořák", -6.0),
        ([":", " ", "", "Ö", "s"], "Ös", -3.5),
        (["Paris", ":", " Paris"], "Paris", -3.0),  # only the last one
        ([":", " New", " York", " City"], "New York City", -3.0),
        ([":", " (", "a", ")*"], "(a)*", -3.0),
    ],
)
def test_the_tokens_of_an_answer_are_found_from_the_end(tokens: list[str], text: str, mean: float) -> None:
    logprobs = [None, *(-float(place) for place in range(2, len(tokens) + 1)), -0.1]
    assert of_prompt(reply_of([*tokens, " Paris"], logprobs, len(tokens)), text) == pytest.approx(mean)
    # A server that counts no tokens generated one.
    assert of_prompt(reply_of([*tokens, " Paris"], logprobs), text) == pytest.approx(mean)


def test_what_is_generated_is_no_part_of_the_prompt_however_it_reads() -> None:
    tokens = [":", " Rome", " Paris"]
    with pytest.raises(ValueError, match="is not the answer 'Paris'"):
        of_prompt(reply_of(tokens, [None, -1.0, -0.1], 2), "Paris")
    for broken in (reply_of(tokens, [None, "x", -0.1], 2), reply_of(tokens, [None, 0.5, -0.1], 2)):  # type: ignore[list-item]  # on purpose
        with pytest.raises(ValueError, match="malformed"):
            of_prompt(broken, "Rome")
    with pytest.raises(NoPromptError):
        of_prompt(reply_of([" Paris"], [-0.1]), "Paris")


# The LLM's own answer.


@pytest.mark.parametrize(
    ("text", "logprobs", "relevance"),
    [
        ("Paris", [-0.5], math.exp(-0.5)),
        ("Answer: Paris", [-0.2, -0.6], math.exp(-0.4)),
        ("unknown", [-0.01], 0.0),
        ("Paris", [0.0], 1.0),
    ],
)
def test_confidence_is_the_mean_probability_of_the_answer_by_hand(
    text: str, logprobs: list[float], relevance: float
) -> None:
    labeler = build("utility(variant=confidence)", Here())
    (request,) = labeler.requests(UNIT, [])
    (answering,) = build("utility", Here()).requests(UNIT, [])
    assert json.loads(request.body) == {**json.loads(answering.body), "logprobs": True, "top_logprobs": 1}
    replies = [said(request, text, logprobs)]
    assert labeler.requests(UNIT, replies) == []
    (label,) = checked(labeler, UNIT, replies)
    assert label.relevance == pytest.approx(relevance)
    assert label.extra["logprob"] == pytest.approx(sum(logprobs) / len(logprobs))
    assert (str(labeler.scale), labeler.needs.references, labeler.needs.own_answers) == ("unit", False, True)


def test_confidence_needs_log_probabilities_and_an_answer() -> None:
    labeler: Labeler = build("utility(variant=confidence)", Here())
    (request,) = labeler.requests(UNIT, [])
    label = checked(labeler, UNIT, [said(request, "Paris")])[0]
    assert (label.status, label.reason) == (Status.UNPARSED, "the reply has no log-probabilities")
    refused: Any = Reply(request.key, json.dumps({"choices": [REFUSED]}))
    assert checked(labeler, UNIT, [refused])[0].status is Status.REFUSED
    cut = Reply(request.key, json.dumps({"choices": [CUT]}))
    (more,) = labeler.requests(UNIT, [cut])
    assert json.loads(more.body)["max_tokens"] > json.loads(request.body).get("max_tokens", 0)
    assert checked(labeler, UNIT, [cut, said(more, "Paris", [-0.5])])[0].relevance == pytest.approx(math.exp(-0.5))


def test_thinking_is_no_part_of_the_answer() -> None:
    entries = [{"token": token, "logprob": p} for token, p in ((("Hm"), -5.0), ("</think>", -5.0), ("Paris", -1.0))]
    choice = {"message": {"content": "Paris"}, "finish_reason": "stop", "logprobs": {"content": entries}}
    assert of_reply(Reply("k", json.dumps({"choices": [choice]}))) == -1.0


def test_by_completions_a_base_model_is_asked_for_one_alternative() -> None:
    (request,) = build("utility(variant=confidence)", Base()).requests(Unit(ONE, (Doc("d", "Paris"),)), [])
    assert json.loads(request.body)["logprobs"] == 1


def test_labels_by_a_server_that_echoes_as_vllm_does(tmp_path: Path) -> None:
    """Through the whole client: each body is sent once, and a second labeling asks for nothing."""
    probable = {"Paris is the capital of France.": -0.5, "Berlin is in Germany.": -4.0}

    def vllm(body: dict[str, Any]) -> Scripted:
        prompt, _, answer = body["prompt"].rpartition("Reply:")
        chance = next((p for text, p in probable.items() if text in prompt), -2.0)
        tokens = [*prompt.split(" "), "Reply:", answer, " is"]
        logged = {"tokens": tokens, "token_logprobs": [None, *[-9.0] * (len(tokens) - 3), chance, -0.1]}
        choice = {"text": body["prompt"] + " is", "index": 0, "finish_reason": "length", "logprobs": logged}
        usage = {"prompt_tokens": len(tokens) - 1, "completion_tokens": 1, "total_tokens": len(tokens)}
        return Scripted(200, json.dumps({"choices": [choice], "usage": usage}).encode())

    transport = ScriptedTransport(vllm)
    llm = Endpoint("base", "http://base:1/v1", "m", api="completions", transport=transport)
    queries = [{"query_id": "q", "query": "What is the capital of France?", "answers": ["Paris"]}]
    docs = [{"doc_id": f"d{n}", "text": text} for n, text in enumerate(probable)]
    run = [{"query_id": "q", "doc_id": f"d{n}", "score": 1.0 - n} for n in range(2)]
    given: dict[str, Any] = {
        "queries": pd.DataFrame(queries),
        "docs": pd.DataFrame(docs),
        "runs": {"run": pd.DataFrame(run)},
        "endpoints": llm,
        "asking": jk.Asking(cache=tmp_path),
    }
    labeling = jk.label("utility(read=logprobs)", **given)
    labels = dict(zip(labeling.table["doc_id"], labeling.table["relevance"], strict=True))
    assert labels == {
        "d0": pytest.approx(math.exp(-0.5) - math.exp(-2)),
        "d1": pytest.approx(math.exp(-4) - math.exp(-2)),
    }
    assert len(transport.sent) == 3
    jk.label("utility(read=logprobs)", **given)
    assert len(transport.sent) == 3
