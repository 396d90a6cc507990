"""Several servers behind one model, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import EXPERIMENT
from tests.cli.test_cli_models import as_model
from tests.commands import Judgekit
from tests.servers import FaultServer, serving


@pytest.fixture
def two() -> Iterator[list[FaultServer]]:
    with serving(FaultServer()) as a, serving(FaultServer()) as b:
        a.answer = b.answer = as_model("mock")
        yield [a, b]


def test_run_label_and_answer_ask_all_servers_and_share_one_store(
    judgekit: Judgekit, folder: Path, two: list[FaultServer]
) -> None:
    urls = [server.base_url for server in two]
    (folder / "servers.toml").write_text(EXPERIMENT.replace('base_url = "mock:"', f"base_urls = {urls}"))
    run = judgekit("run", "servers.toml", "--out", "out", "--cache", "store")
    assert run.code == 0, run.err
    sent = [len(server.seen) for server in two]
    assert min(sent) > 0.3 * sum(sent)

    data = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--depth", 4]
    asked = [*data, "--model", "mock", "--cache", "store"]
    label = ["label", "judge", *asked, "--out", "labels.parquet"]
    assert judgekit(*label, "--base-url", urls[0]).code == 0
    assert [len(server.seen) for server in two] == sent, "the first server's replies are the endpoint's"
    for command in (label, ["answer", *asked, "--out", "quality.csv"]):
        said = judgekit(*command, "--base-url", urls[1], "--base-url", urls[0])
        assert said.code == 0, said.err
        now = [len(server.seen) for server in two]
        assert all(new > old for new, old in zip(now, sent, strict=True))
        sent = now


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('base_urls = ["http://a/v1", "http://a/v1/"]', "[endpoints.local.base_urls] names http://a/v1 twice"),
        ('base_urls = ["http://a/v1", "b:8000"]', "[endpoints.local.base_urls] base_url 'b:8000' must start with"),
        ('base_urls = "http://a/v1"', "[endpoints.local.base_urls]"),
        ('base_url = "http://b/v1"\nbase_urls = ["http://a/v1"]', "give base_url, or base_urls, not both"),
    ],
)
def test_addresses_that_make_no_sense_are_named(judgekit: Judgekit, folder: Path, line: str, said: str) -> None:
    (folder / "servers.toml").write_text(EXPERIMENT.replace('base_url = "mock:"', line))
    run = judgekit("run", "servers.toml", "--dry-run")
    assert run.code == 2
    assert said in run.err
