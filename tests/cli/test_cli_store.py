import asyncio
import json
import re
import time
from pathlib import Path

import pytest

from judgekit.wire.types import Endpoint
from tests.client.batch.batch_service import serving
from tests.mock import URL, MockTransport

RUN = ["run", "experiment.toml", "--out", "results"]


@pytest.fixture(autouse=True)
def _store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEKIT_CACHE", "store")


def test_the_store_says_what_it_holds_and_is_whole(judgekit, finished):
    assert f"mock at {URL}" in judgekit("cache", code=0).out
    assert "structure: ok" in judgekit("cache", "--check", code=0).out


def test_replies_move_to_another_store_and_nothing_is_asked_again(judgekit, finished, monkeypatch):
    judgekit("cache", "--export", "replies.jsonl.gz", code=0)
    again = judgekit("cache", "--export", "replies.jsonl.gz", code=2)
    assert "replies.jsonl.gz already exists" in again.err
    assert "folder of the store" in judgekit("cache", "--export", "store/all.jsonl", code=2).err
    monkeypatch.setenv("JUDGEKIT_CACHE", "other")
    assert "0 were there already" in judgekit("cache", "--import", "replies.jsonl.gz", code=0).out
    plan = judgekit("run", "experiment.toml", "--dry-run")
    assert plan.out.splitlines()[-2].split()[-2:] == ["0", "0"]


def test_a_batch_goes_out_and_comes_back_and_the_run_sends_nothing(judgekit, finished, monkeypatch):
    folder = finished
    monkeypatch.setenv("JUDGEKIT_CACHE", "new")
    judgekit("batch", "export", "experiment.toml", "--out", "batch.jsonl", code=0)
    transport, endpoint = MockTransport(), Endpoint("x", URL, "mock")
    lines = []
    for line in reversed((folder / "batch.jsonl").read_text().splitlines()):
        request = json.loads(line)
        _, _, reply = asyncio.run(transport.send(endpoint, json.dumps(request["body"]).encode()))
        response = {"status_code": 200, "request_id": "r", "body": json.loads(reply)}
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": response, "error": None}))
    (folder / "result.jsonl").write_text("\n".join(lines) + "\n")
    judgekit("batch", "import", "result.jsonl", code=0)
    assert set(re.findall(r"(\d+) sent", judgekit(*RUN, code=0).err)) == {"0"}
    for name in ("containment", "judge", "erag"):
        labels = (folder / place / "labels" / f"{name}.qrels" for place in ("out", "results"))
        assert len({path.read_bytes() for path in labels}) == 1


def test_batches_are_submitted_watched_and_fetched_and_the_run_sends_nothing(judgekit, folder):
    batch, rest = ("batch", "submit", "experiment.toml"), ("experiment.toml",)
    with serving() as service:
        service.answer = lambda body: "Yes"
        text = (folder / "experiment.toml").read_text().replace(URL, f"{service.url}/v1")
        (folder / "experiment.toml").write_text(text)
        said = judgekit(*batch, code=0)
        assert "in 1 batches, 0 are in the store, 0 were submitted before" in said.out
        assert judgekit(*batch).out.startswith("0 requests submitted")
        assert "batch-0 (mock at local): in_progress, 0 of" in judgekit("batch", "fetch", *rest).out
        for _ in range(3):  # answers lead to further requests
            service.finish()
            said = judgekit("batch", "fetch", *rest)
            assert said.code == 0, said.out + said.err
            judgekit(*batch)
        assert "no submitted batch" in judgekit("batch", "fetch", *rest).out
    assert "0 sent" in judgekit(*RUN).err


def test_what_is_forgotten_is_shown_first_and_asked_again_by_the_next_run(judgekit, finished):
    question = json.loads((finished / "queries.jsonl").read_text().splitlines()[0])["text"]
    lost = ["cache", "forget", "--query", question]
    said = judgekit(*lost, code=0)
    assert "Nothing was deleted" in said.out
    assert judgekit(*lost).out == said.out
    assert "deleted" in judgekit(*lost, "--yes").out
    assert judgekit(*lost).out.startswith("0 replies and 0 waiting requests found")
    plan = judgekit("run", "experiment.toml", "--dry-run").out
    (to_send,) = re.findall(r"^all +\d+ +\d+ +\d+ +\D*(\d+)", plan, re.MULTILINE)
    assert int(to_send) == int(said.out.split()[0]) > 0


def test_forgetting_needs_a_condition(judgekit, finished):
    judgekit("cache", "forget", "--yes", code=2)
    assert judgekit("cache", "forget", "--model", "nobody").out.startswith("0 replies")


def test_replies_are_forgotten_by_their_age_in_days(judgekit, finished, monkeypatch):
    stored = time.time()
    for hours, forgotten in ((12, False), (36, True)):
        monkeypatch.setattr(time, "time", lambda hours=hours: stored + 3_600 * hours)
        said = judgekit("cache", "forget", "--older-than", "1", code=0)
        assert said.out.startswith("0 replies") is not forgotten


def test_verify_says_when_a_loss_cannot_be_checked(judgekit, finished):
    assert "cannot be checked" not in judgekit("cache", "--check", code=0).out
    (finished / "store" / "cache.db-count").unlink()
    assert "lost replies cannot be noticed" in judgekit("cache", "--check", code=0).out


def test_a_dry_run_and_a_run_say_that_stored_replies_are_gone(judgekit, finished):
    count = finished / "store" / "cache.db-count"
    number, rows, ever = count.read_text().split()
    count.write_text(f"{number:>12} {rows:>16} {int(ever) + 7:>16}\n")
    for options in (["--dry-run"], ["--overwrite"]):
        said = judgekit(*RUN, *options)
        assert "7 fewer than were stored: its log (cache.db-wal) is lost" in said.err, options
    assert "fewer" not in judgekit(*RUN, "--overwrite").err


def test_the_commands_of_0_3_do_the_same_and_name_the_new_ones(judgekit, finished):
    for old, new in (
        (["stats"], []),
        (["verify"], ["--check"]),
        (["verify", "--repair"], ["--repair"]),
        (["import", "replies.jsonl"], ["--import", "replies.jsonl"]),
    ):
        if "import" in old:
            before = judgekit("cache", "export", "replies.jsonl", code=0)
            assert "use `judgekit cache --export FILE`" in before.err
        said = judgekit("cache", *old, code=0)
        assert said.out == judgekit("cache", *new, code=0).out
        assert f"use `judgekit cache{''.join(f' {word}' for word in new).replace('replies.jsonl', 'FILE')}`" in said.err


def test_the_store_is_shown_checked_and_copied_one_at_a_time(judgekit, finished):
    held = json.loads(judgekit("cache", "--json", code=0).out)
    assert held["replies"] == sum(part["replies"] for part in held["parts"]) > 0
    assert json.loads(judgekit("cache", "--check", "--json", code=0).out)["checked"] == held["replies"]
    assert "give --check or --export, not both" in judgekit("cache", "--check", "--export", "r.jsonl", code=2).err
    assert not Path("r.jsonl").exists()
