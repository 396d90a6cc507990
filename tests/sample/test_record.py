"""Recording: what the experiment asks is kept under its identity, also where it ends early, and is of one model."""

import json
from pathlib import Path

import pytest

from examples.sample.record import record
from judgekit.client.sync import run_sync
from judgekit.client.transports import recorded
from judgekit.errors import EndpointError
from tests.scripted import Scripted, completion, error
from tests.small import FILES, edited, toml

EXPERIMENT = toml(
    data=FILES | {"depth": 2},
    runs={"one": "one.trec"},
    endpoints={"reader": {"base_url": "recorded:", "model": "m"}},
    labelers=[{"kind": "judge"}],
    answers={"depths": [1]},
    metrics={"measures": ["P"]},
)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Two pairs to judge, one question to answer with and without its passage."""
    (tmp_path / "queries.jsonl").write_text('{"query_id": "q", "text": "Which city?", "answers": ["Paris"]}\n')
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "a", "text": "Paris"}\n{"doc_id": "b", "text": "Rome"}\n')
    (tmp_path / "one.trec").write_text("q Q0 a 0 2 one\nq Q0 b 0 1 one\n")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path / "experiment.toml"


def said(text: str, model: str = "m") -> Scripted:
    return Scripted(200, json.dumps({**json.loads(completion(text).body), "model": model}).encode())


def test_what_is_recorded_is_kept_what_is_not_is_asked_and_what_is_not_needed_goes(experiment, fault_server):
    path = experiment.with_name("replies.jsonl.gz")
    fault_server.answer = lambda body, seen: said("Yes")
    assert run_sync(record(fault_server.base_url, [experiment], path)) == len(fault_server.seen) == 4
    first = recorded(path)
    assert first[0]["model"] == "m"
    edited(experiment.with_name("docs.jsonl"), "Rome", "Rome!")
    fault_server.answer = lambda body, seen: error(400, "No.", code="x")
    with pytest.raises(EndpointError):
        run_sync(record(fault_server.base_url, [experiment], path))
    assert recorded(path) == first, "a recording that ends early loses no reply"
    fault_server.answer = lambda body, seen: said("Yes", model="other")
    with pytest.raises(EndpointError, match="two models"):
        run_sync(record(fault_server.base_url, [experiment], path))
    assert recorded(path) == first
    fault_server.answer = lambda body, seen: said("Yes")
    asked = len(fault_server.seen)
    assert run_sync(record(fault_server.base_url, [experiment], path)) == 4
    assert len(fault_server.seen) == asked + 1
    assert len(set(first[1]) & set(recorded(path)[1])) == 3
