"""Rerankers: what each server is sent and replies, and what its score is as a label.

llama-server's reply is one of b10434 on the wire. vLLM's, LiteLLM's (Cohere's) and TEI's have the shapes that their
documentation and sources give.
"""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.client.sync import run_sync
from judgekit.context import Context
from judgekit.data.documents import Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.reading.check import check_endpoint, lines_for, planned
from judgekit.wire.quirks import Fatal, Refused, Unsupported, read_response
from judgekit.wire.types import Endpoint, Failure, Reply
from tests.labelers.scripted import DOC, PARIS, Here, play
from tests.scripted import Scripted, ScriptedTransport
from tests.servers import FaultServer
from tests.small import FILES, MOCK, QUICK, RUNS, make_experiment, toml

UNIT = Unit(PARIS, (DOC,))
SENT = {"model": "m", "query": PARIS.text, "documents": ["France\nThe capital of France is Paris."]}
HERE = Endpoint("here", "http://h/v1", "m", api="rerank")


def llama(score: float) -> Any:
    usage = {"prompt_tokens": 11, "total_tokens": 11}
    return {"model": "m", "object": "list", "usage": usage, "results": [{"index": 0, "relevance_score": score}]}


def vllm(score: float) -> Any:
    results = [{"index": 0, "document": {"text": "…"}, "relevance_score": score}]
    return {"id": "rerank-1", "model": "m", "usage": {"total_tokens": 11}, "results": results}


def vllm_score(score: float) -> Any:
    data = [{"index": 0, "object": "score", "score": score}]
    usage = {"prompt_tokens": 11, "total_tokens": 11, "completion_tokens": 0, "prompt_tokens_details": None}
    return {"id": "score-1", "object": "list", "created": 1, "model": "m", "data": data, "usage": usage}


def litellm(score: float) -> Any:
    meta = {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 11, "output_tokens": 0}}
    return {"id": "x", "results": [{"index": 0, "relevance_score": score, "document": None}], "meta": meta}


def tei(score: float) -> Any:
    return [{"index": 0, "score": score}]


SHAPES = [llama, vllm, vllm_score, litellm, tei]


def replied(body: Any) -> Reply:
    return Reply("k", json.dumps(body))


def test_one_request_a_pair_in_the_shape_of_the_api() -> None:
    labeler = build("rerank(endpoint=reranker)", Here())
    (request,) = labeler.requests(UNIT, [])
    assert json.loads(request.body) == SENT
    text = build("rerank(endpoint=reranker, fields=text)", Here())
    assert json.loads(text.requests(UNIT, [])[0].body)["documents"] == [DOC.text]
    assert request.key != text.requests(UNIT, [])[0].key
    scoring = Context({"e": Endpoint("e", "http://h/v1", "m", api="score", params={"x": 1})})
    (other,) = build("rerank", scoring).requests(UNIT, [])
    assert json.loads(other.body) == {"model": "m", "text_1": PARIS.text, "text_2": SENT["documents"][0], "x": 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_score_and_the_tokens(shape: Callable[[float], Any]) -> None:
    labeler = build("rerank(endpoint=reranker)", Here())
    reply = replied(shape(0.25))
    assert labeler.requests(UNIT, [reply]) == []
    (label,) = labeler.label(UNIT, [reply])
    assert (label.relevance, label.raw, label.status) == (0.25, "0.25", Status.OK)
    counted = None if shape is tei else (11, 0)
    assert (reply.usage and reply.usage.pair) == counted


@given(logit=st.floats(-800, 800))
def test_a_logit_becomes_the_probability_that_other_servers_compute(logit: float) -> None:
    labeler = build("rerank(endpoint=reranker, scores=logit)", Here())
    (label,) = labeler.label(UNIT, [replied(llama(logit))])
    assert label.relevance is not None
    assert label.extra == {"logit": logit}
    assert 0 <= label.relevance <= 1
    # tanh is an independent way to the same curve.
    assert label.relevance == pytest.approx((1 + math.tanh(logit / 2)) / 2, abs=1e-12)
    if abs(logit) < 30:
        assert math.log(label.relevance / (1 - label.relevance)) == pytest.approx(logit, abs=1e-2)


@pytest.mark.parametrize("score", [-0.4976, 1.0001, 5.31])
def test_a_logit_is_never_taken_for_a_probability(score: float) -> None:
    labeler = build("rerank(endpoint=reranker)", Here())
    for step in (labeler.requests, labeler.label):
        with pytest.raises(UsageError, match=r"q1.*d1.*which is no probability.*set scores=logit"):
            step(UNIT, [replied(llama(score))])


def test_without_a_score_there_is_no_label() -> None:
    labeler = build("rerank(endpoint=reranker)", Here())
    assert play(labeler, UNIT, [Failure("k", Status.FAILED, "down")]).label.reason == "down"
    assert play(labeler, UNIT, ["Yes"]).label.status is Status.UNPARSED
    assert play(labeler, UNIT, ["nan"]).label.status is Status.UNPARSED
    assert play(labeler, UNIT, ["nan"]).label.reason == "the reply holds 'nan' in place of a score, a number"


@pytest.mark.parametrize(
    "body",
    [
        {"results": []},
        {"results": [{"index": 0}]},
        {"results": [{"index": 0, "relevance_score": "0.5"}]},
        {"results": [{"index": 0, "relevance_score": True}]},
        {"results": [{"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.2}]},
        {"data": [{"embedding": [0.1]}]},
        [],
        [0.5],
    ],
)
def test_what_holds_no_single_score_is_no_reply(body: Any) -> None:
    response = read_response(200, {}, json.dumps(body).encode())
    assert type(response).__name__ == "Retry"


def test_an_endpoint_is_of_one_kind() -> None:
    with pytest.raises(UsageError, match=r'is no reranker: .* give it api = "rerank"'):
        build("rerank", Here())
    with pytest.raises(UsageError, match=r"is a reranker .* an LLM is needed"):
        build("judge(endpoint=reranker)", Here())
    with pytest.raises(UsageError, match=r"is a reranker .* an LLM is needed"):
        build("utility(endpoint=reranker)", Here())
    with pytest.raises(jk.JudgekitError, match="no route for api = 'rerank'"):
        Endpoint("e", "http://h/v1", "m", api="rerank", transport="openai")


def test_refusals_are_read_by_the_one_place_that_reads_them() -> None:
    # llama-server b10434: a pair beyond its batch, and a server that was not started with --reranking.
    said = "input (702 tokens) is too large to process. increase the physical batch size (current batch size: 512)"
    long = read_response(500, {}, json.dumps({"error": {"code": 500, "message": said}}).encode(), SENT)
    assert isinstance(long, Refused)
    assert long.too_long
    unable = {"code": 501, "message": "This server does not support reranking.", "type": "not_supported_error"}
    assert isinstance(read_response(501, {}, json.dumps({"error": unable}).encode(), SENT), Fatal)
    # TEI answers a body without ``texts`` in plain words.
    lacking = b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 64"
    response = read_response(422, {}, lacking, SENT)
    assert isinstance(response, Unsupported)
    assert response.param == "documents"
    # An error that mentions the query does not lead to a request without one.
    empty = read_response(400, {}, b'{"error": "`query` cannot be empty"}', SENT, proven=True)
    assert isinstance(empty, Refused)


def labelled(folder: Path, endpoint: Endpoint, spec: str = "rerank", **settings: Any) -> Any:
    data = {name: folder / file for name, file in FILES.items()}
    runs = {name: folder / file for name, file in RUNS.items()}
    asking = jk.Asking(cache=folder / "cache", **settings)
    return jk.label(spec, runs=runs, depth=4, endpoints=endpoint, asking=asking, **data)


def test_tei_gets_its_texts_after_one_refusal(fault_server: FaultServer, tmp_path: Path) -> None:
    make_experiment(tmp_path)

    def answer(body: dict[str, Any], seen: int) -> Scripted:
        if "texts" not in body:
            return Scripted(422, b"Failed to deserialize the JSON body: missing field `texts` at line 1 column 64")
        return Scripted(200, json.dumps(tei(float("bridge" in body["texts"][0]))).encode())

    fault_server.answer = answer
    endpoint = Endpoint("tei", fault_server.base_url, "m", api="rerank", concurrency=1)
    labeling = labelled(tmp_path, endpoint)
    assert set(fault_server.paths) == {"/v1/rerank"}
    assert len(fault_server.seen) == len(labeling) + 1
    assert set(labeling.table["relevance"]) == {0.0, 1.0}
    again = labelled(tmp_path, endpoint, "rerank(fields=text)")
    assert len(fault_server.seen) > len(labeling) + 1
    sent = len(fault_server.seen)
    labelled(tmp_path, endpoint)
    labelled(tmp_path, endpoint, "rerank(fields=text, scores=logit)")
    assert len(fault_server.seen) == sent, "what is stored is not paid again, whatever its scores are taken for"
    assert len(again) == len(labeling)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_logits_stop_the_labeling_and_cost_nothing_again(
    fault_server: FaultServer, tmp_path: Path, concurrency: int
) -> None:
    make_experiment(tmp_path)

    def answer(body: dict[str, Any], seen: int) -> Scripted:
        # The first reply comes while others are in flight.
        return Scripted(200, json.dumps(llama(-4.5)).encode(), delay_s=0.3 if len(fault_server.seen) > 1 else 0.0)

    fault_server.answer = answer
    endpoint = Endpoint("llama", fault_server.base_url, "m", api="rerank", concurrency=concurrency)
    with pytest.raises(UsageError, match="set scores=logit"):
        labelled(tmp_path, endpoint)
    stopped = len(fault_server.seen)
    assert stopped <= 2 * concurrency + 1, "it stops where the first reply is read, not after the whole pool"
    labeling = labelled(tmp_path, endpoint, "rerank(scores=logit)")
    # What was in flight when it stopped is paid for, and was waited for.
    assert len(fault_server.seen) == len(labeling)
    assert set(labeling.table["relevance"].round(6)) == {round(1 / (1 + math.exp(4.5)), 6)}


def test_it_is_priced_and_held_to_a_budget(fault_server: FaultServer, tmp_path: Path) -> None:
    make_experiment(tmp_path)
    fault_server.answer = lambda body, seen: Scripted(200, json.dumps(llama(0.5)).encode())
    endpoint = Endpoint("r", fault_server.base_url, "m", api="rerank", concurrency=1)
    prices = {"m": jk.Price(prompt=1.0, completion=99.0)}
    with pytest.raises(jk.JudgekitError, match="budget"):
        labelled(tmp_path, endpoint, prices=prices, max_cost=0.0002)
    assert 0 < len(fault_server.seen) < 20
    labeling = labelled(tmp_path, endpoint, prices=prices)
    # Eleven tokens of each pair, at 1 per million; nothing is generated.
    assert labeling.made["costs"]["money"] == pytest.approx(11e-6 * len(labeling))


def test_check_endpoint_tries_the_route_and_names_the_scale() -> None:
    def says(answers: float, beside: float) -> dict[str, tuple[str, str]]:
        def script(body: dict[str, Any]) -> Scripted:
            score = beside if "Cheese" in body["documents"][0] else answers
            return Scripted(200, json.dumps(llama(score)).encode())

        found = run_sync(check_endpoint(HERE, ScriptedTransport(script)))
        lines.append(list(lines_for(HERE, found)))
        return {check.name: (check.works, check.detail) for check in found}

    lines: list[list[str]] = []
    found = says(0.97, 0.02)
    assert list(found) == ["score of a pair", "scale of scores", "two requests at once"]
    assert found["scale of scores"][0] == "yes"
    assert "0.97 for a passage that answers, 0.02 for one that does not: probabilities" in found["scale of scores"][1]
    assert lines[-1] == [
        "[endpoints.here]",
        'base_url = "http://h/v1"',
        'model = "m"',
        'api = "rerank"',
        '# its labels: kind = "rerank"',
    ]
    assert says(5.3, -11.0)["scale of scores"] == (
        "partly",
        "5.3 for a passage that answers, -11 for one that does not: logits, so set scores=logit",
    )
    assert lines[-1][-1] == '# its labels: kind = "rerank", scores = "logit"'
    # llama-server gives every pair the same score where the model is no reranker.
    assert says(-0.4976, -0.4976)["scale of scores"][0] == "no"
    assert lines[-1][-1] == "# its scores are no labels: see above"
    requests, prompts, replies = planned(HERE)
    assert (requests, replies) == (10, 0)
    assert 0 < prompts < 1000, "no long prompt is sent"


def test_a_run_compares_a_reranker_with_the_others(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    kinds = [{"kind": "containment"}, {"name": "judge", "kind": "judge", "endpoint": "local"}]
    endpoints = {"local": MOCK, "small": MOCK | {"api": "rerank", "model": "small"}}
    (tmp_path / "experiment.toml").write_text(
        toml(
            data=FILES | {"depth": 4},
            runs=RUNS,
            endpoints=endpoints,
            prices={"mock": {"prompt": 900, "completion": 900}, "small": {"prompt": 90, "completion": 0}},
            labelers=[*kinds, {"name": "rerank", "kind": "rerank", "endpoint": "small"}],
            answers={"depths": [4], "endpoint": "local"},
            metrics={"measures": ["nDCG", "P"]},
            analysis=QUICK | {"primary": "P@4"},
        )
    )
    done = jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    costs = {name: done.labelings[name].made["costs"] for name in ("rerank", "judge")}
    assert 0 < costs["rerank"]["money"] < costs["judge"]["money"]
    assert costs["rerank"]["completion_tokens"] == 0
    text = " ".join(done.comparison.decision.text.split())
    assert re.search(r"for answers; \d\S+ for judge; [\d.]+ for rerank; none for containment", text), text
    assert set(pd.read_parquet(tmp_path / "out" / "labels" / "rerank.parquet")["relevance"]) - {0.0, 1.0}


def test_a_conversation_is_asked_about_by_its_text() -> None:
    query = Query("q", "Where is it?", messages=({"role": "user", "content": "Where is it?"},))
    (request,) = build("rerank(endpoint=reranker)", Here()).requests(Unit(query, (DOC,)), [])
    assert json.loads(request.body)["query"] == "Where is it?"
