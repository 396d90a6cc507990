"""The labels of `build`, for all questions, by a batch."""

import json

import pytest

from judgekit.client.sync import run_sync
from judgekit.wire.types import Endpoint
from tests.client.batch.test_files import rows
from tests.mock import MockTransport
from tests.small import edited


def reply(line: dict, server: Endpoint) -> str:
    status, _, body = run_sync(MockTransport().send(server, json.dumps(line["body"]).encode()))
    response = {"status_code": status, "body": json.loads(body)}
    return json.dumps({"custom_id": line["custom_id"], "response": response, "error": None}) + "\n"


@pytest.fixture
def piloted(folder):
    """An experiment whose run asks about two of the six questions."""
    edited(folder / "experiment.toml", "[data]\n", '[data]\nsample = "pilot.csv"\n')
    (folder / "pilot.csv").write_text("query_id,weight\nq0,1\nq3,2\n")
    return folder


def test_a_build_sends_nothing_once_a_batch_has_its_labels(piloted, judgekit, monkeypatch):
    monkeypatch.setenv("JUDGEKIT_CACHE", str(piloted / "store"))
    planned = judgekit("build", "experiment.toml", "-l", "judge", "--dry-run", code=0).out
    said = judgekit("batch", "export", "experiment.toml", "--labeling", "judge", "--out", "all.jsonl", code=0).out
    lines = rows(piloted / "all.jsonl")
    assert f"{len(lines)} requests written, 0 are in the store" in said
    assert planned.splitlines()[1].split()[3] == str(len(lines)), "what a dry run of build counts"
    asked = "".join(json.dumps(line["body"]) for line in lines)
    assert all(town in asked for town in ("Arlen", "Borvik", "Farrow")), "all questions, not those of the pilot"
    server = Endpoint("local", base_url="http://unused", model="mock")
    (piloted / "results.jsonl").write_text("".join(reply(line, server) for line in lines))
    judgekit("batch", "import", "results.jsonl", code=0)
    built = judgekit("build", "experiment.toml", "-l", "judge", code=0)
    assert f"0 sent, {len(lines)} from the store" in built.err


def test_an_unknown_labeling_is_named(piloted, judgekit):
    said = judgekit("batch", "export", "experiment.toml", "--labeling", "juge", "--out", "all.jsonl", code=2)
    assert "unknown labeling 'juge'" in said.err
    assert not (piloted / "all.jsonl").exists()
