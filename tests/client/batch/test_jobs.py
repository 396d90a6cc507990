"""`--batch` of any command that asks: its requests go to the batch service, and the command itself sends nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.batch import service as batch_service
from judgekit.errors import EndpointError
from tests.client.batch.batch_service import BatchService, serving
from tests.mock import URL
from tests.small import edited

DATA = ("--queries", "queries.jsonl", "--docs", "docs.jsonl")
JOBS = {
    "label": ("label", "judge", *DATA, "--run", "good.trec", "--out", "judge.qrels"),
    "build": ("build", "experiment.toml", "--labeling", "judge"),
    "guard": ("guard", "good.trec", "poor.trec", *DATA, "--labeler", "judge"),
}


@pytest.fixture
def service() -> Iterator[BatchService]:
    with serving() as found:
        found.answer = lambda body: "Yes"
        yield found


def asking(job: str, service: BatchService, folder: Path) -> list[str]:
    """Return the command of a job, which asks the service."""
    address = f"{service.url}/v1"
    if job == "build":
        edited(folder / "experiment.toml", f'"{URL}"', f'"{address}"')
        return [*JOBS[job], "--cache", "store"]
    return [*JOBS[job], "--cache", "store", "--endpoint", address, "--model", "m"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_sends_nothing_once_its_batch_is_fetched(
    job: str, service: BatchService, folder: Path, judgekit: Any
) -> None:
    line = asking(job, service, folder)
    (*_, planned) = json.loads(judgekit(*line, "--dry-run", "--json", code=0).out)["plan"]
    said = json.loads(judgekit(*line, "--batch", "submit", "--json", code=0).out)["submitted"]
    assert said["requests"] == planned["to_send"] == len(service.asked()) > 0
    again = judgekit(*line, "--batch", "submit", code=0).out
    assert f"0 requests submitted in 0 batches, 0 are in the store, {said['requests']:,} were submitted before" in again
    assert "in_progress" in judgekit(*line, "--batch", "fetch", code=0).out
    service.finish()
    (batch,) = json.loads(judgekit(*line, "--batch", "fetch", "--json", code=0).out)["batches"]
    assert (batch["status"], batch["imported"]) == ("completed", said["requests"])
    assert "no submitted batch is waiting" in judgekit(*line, "--batch", "fetch", code=0).out
    assert "0 sent," in judgekit(*line).err
    assert len(service.asked()) == said["requests"]


def test_a_request_that_failed_in_a_batch_ends_with_exit_code_1(
    service: BatchService, folder: Path, judgekit: Any
) -> None:
    line = asking("label", service, folder)
    judgekit(*line, "--batch", "submit", code=0)
    service.answer = lambda body: {"message": "too hot"}
    service.finish()
    said = json.loads(judgekit(*line, "--batch", "fetch", "--json", code=1).out)
    assert said["missing"]
    assert all("no reply to" in sentence for sentence in said["missing"])


def test_a_batch_is_told_before_a_later_one_fails(
    service: BatchService, folder: Path, judgekit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = asking("label", service, folder)
    judgekit(*line, "--batch", "submit", code=0)
    service.finish()
    fetch = batch_service.fetch

    def broken(*args: Any) -> Iterator[Any]:
        yield from fetch(*args)
        raise EndpointError("the second batch is gone")

    monkeypatch.setattr(batch_service, "fetch", broken)
    said = judgekit(*line, "--batch", "fetch", code=3)
    assert "the second batch is gone" in said.err
    assert "replies imported" in said.out


def test_what_is_imported_is_told_before_a_later_file_fails(
    folder: Path, judgekit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGEKIT_CACHE", str(folder / "store"))
    judgekit("batch", "export", "experiment.toml", "--out", "batch.jsonl", code=0)
    failed = {"custom_id": json.loads((folder / "batch.jsonl").read_text().splitlines()[0])["custom_id"]}
    (folder / "first.jsonl").write_text(json.dumps({**failed, "error": {"message": "too hot"}}) + "\n")
    said = judgekit("batch", "import", "first.jsonl", "second.jsonl", code=2)
    assert "second.jsonl" in said.err
    assert said.out.startswith("first.jsonl:\n")
    assert "too hot" in said.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--max-cost", "1"), "leave out --max-cost"),
        (("--max-requests", "1"), "leave out --max-requests"),
        (("--dry-run",), "--batch fills the store: use it without --dry-run"),
        (("--part", "1/2"), "--batch fills the store: use it without --part"),
    ],
)
def test_what_a_batch_does_not_keep_is_refused_before_anything_is_submitted(
    options: tuple[str, ...], told: str, service: BatchService, folder: Path, judgekit: Any
) -> None:
    edited(folder / "experiment.toml", f'"{URL}"', f'"{service.url}/v1"')
    said = judgekit("run", "experiment.toml", "--batch", "submit", *options, code=2)
    assert told in said.err
    assert not service.batches


def test_the_commands_of_0_3_submit_and_fetch_the_same_and_name_the_new_ones(
    service: BatchService, folder: Path, judgekit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGEKIT_CACHE", str(folder / "store"))
    asking("build", service, folder)
    old = judgekit("batch", "submit", "experiment.toml", "--labeling", "judge", code=0)
    assert "use `judgekit build experiment.toml --labeling judge --batch submit`" in old.err
    asked = len(service.asked())
    new = judgekit("build", "experiment.toml", "--labeling", "judge", "--batch", "submit", code=0)
    assert f"{asked:,} were submitted before" in new.out
    service.finish()
    fetched = judgekit("batch", "fetch", "experiment.toml", code=0)
    assert "use `judgekit run experiment.toml --batch fetch`" in fetched.err
    assert f"{asked:,} replies imported" in fetched.out
