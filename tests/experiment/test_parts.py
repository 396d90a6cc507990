"""Parts have everything answered into the store, so that a plain run asks nothing; a killed one starts again."""

import json
import re
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.asking import Asking
from judgekit.client.budget import Budget
from judgekit.client.limits import share_of
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import load
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import RunResult, asked as stages, check_parts, run
from judgekit.job import budget_of, count, part, part_of
from tests.scripted import Scripted, completion
from tests.servers import FaultServer
from tests.small import FILES, QUICK, RUNS, edited, make_experiment, toml

EQUAL = ("labels/*", "answers/*", "scores.parquet", "comparison.csv", "agreement.csv", "claims.csv")


def experiment(folder: Path, server: FaultServer, **endpoint: Any) -> Path:
    """An experiment with labels of two kinds, answers that are merged, and an LLM that rates them."""
    make_experiment(folder)
    edited(folder / "queries.jsonl", "Farrow", "Borvik")  # two of one text
    here = {"base_url": server.base_url, "namespace": "here", "model": "m", "concurrency": 6, **endpoint}
    text = toml(
        data=FILES | {"depth": 3},
        runs=RUNS,
        endpoints={"here": here},
        labelers=[{"kind": "judge", "name": "judge"}, {"kind": "utility", "name": "erag"}],
        answers={"depths": [1, 3], "metrics": ["em", "correct", "grounded"], "modes": ["together", "merge"]},
        metrics={"measures": ["nDCG", "P"]},
        analysis=QUICK,
        prices={"m": {"prompt": 1000000, "completion": 0}},
    )
    (folder / "experiment.toml").write_text(text)
    return folder / "experiment.toml"


def answer_part(path: Path, number: int, of: int, store: Path) -> None:
    run.job(path, out=path.parent / "unused", asking=Asking(cache=store)).part(number, of)


def by_content(delay_s: float = 0.0) -> Callable[[dict[str, Any], int], Scripted]:
    """Answer by what is asked alone, so that everybody gets the same; what cannot be read is asked for again."""

    def answer(body: dict[str, Any], _: int) -> Scripted:
        text = identity(body)
        mark, year = zlib.crc32(text.encode()), (re.findall(r"\d{4}", text) or ["1412"])[-1]
        said = (f"<answer>{year}</answer>", "<answer>8</answer>") if "</answer>" in text else ("Yes", "No")
        found = completion(said[mark % 2] if mark % 7 else "")
        return Scripted(found.status, found.body, found.headers, delay_s=delay_s)

    return answer


def identity(body: dict[str, Any]) -> str:
    """Without the words in which each process tries to have the form of the reply constrained."""
    return json.dumps([body["messages"], body["max_tokens"]])


def asked(server: FaultServer) -> Counter[str]:
    return Counter(map(identity, server.seen))


def plain(path: Path, server: FaultServer, out: Path, store: Path) -> tuple[RunResult, int]:
    """Return what a plain run finished with and how many requests it sent."""
    before = len(server.seen)
    return run(path, out=out, asking=Asking(cache=store)), len(server.seen) - before


def equal_results(one: Path, other: Path) -> None:
    names = sorted(path.relative_to(one) for pattern in EQUAL for path in one.glob(pattern))
    assert len(names) > len(EQUAL)
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def test_a_plain_run_asks_nothing_after_three_parts_of_which_one_was_killed(tmp_path, fault_server):
    path, store = experiment(tmp_path, fault_server), tmp_path / "store"
    fault_server.answer = by_content()
    _, whole = plain(path, fault_server, tmp_path / "one", tmp_path / "store one")
    alone = asked(fault_server)
    assert set(alone.values()) == {1}
    fault_server.seen.clear()

    fault_server.answer = by_content(0.05)
    command = [sys.executable, "-m", "judgekit", "run", str(path), "--part", "2/3", "--cache", str(store)]
    killed = subprocess.Popen(command)
    until(lambda: len(fault_server.seen) > whole // 10)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    flying = fault_server.active
    fault_server.answer = by_content()
    for number in (1, 2, 3):
        answer_part(path, number, 3, store)
    assert asked(fault_server).keys() == alone.keys()
    assert sum(asked(fault_server).values()) - whole <= flying + 2, "what was in flight is paid for again, no more"
    _, sent = plain(path, fault_server, tmp_path / "three", store)
    assert sent == 0
    equal_results(tmp_path / "one", tmp_path / "three")


def test_parts_ask_what_steps_ask_each_once_however_many_there_are(tmp_path, fault_server):
    path = experiment(tmp_path, fault_server)
    prepared = prepare(path)
    whole = Counter(unit.query.query_id for _, unit in part(stages(prepared), 1, 1))
    for of in (2, 3):
        found = [
            Counter(unit.query.query_id for _, unit in part(stages(prepared), number, of))
            for number in range(1, of + 1)
        ]
        assert sum(found, Counter()) == whole
        assert all(found)
        (_,) = {number for number, one in enumerate(found) for query in ("q1", "q5") if query in one}


def test_a_dry_run_counts_the_ratings_of_answers_that_are_there(tmp_path, fault_server):
    path, store = experiment(tmp_path, fault_server), tmp_path / "store"
    fault_server.answer = by_content()
    before = count(stages(prepare(path)), store)["all"]
    _, sent = plain(path, fault_server, tmp_path / "out", store)
    assert before.at_least
    assert before.requests < sent <= (before.up_to or 0)
    after = count(stages(prepare(path)), store)["all"]
    assert (after.requests, after.cached, after.at_least) == (sent, sent, False)


def test_a_part_has_its_share_of_concurrency_and_rates(tmp_path, fault_server):
    fault_server.answer = by_content(0.02)
    answer_part(experiment(tmp_path, fault_server), 1, 3, tmp_path / "store")
    assert fault_server.most_active == 2
    endpoint = load(experiment(tmp_path, fault_server, requests_per_minute=9)).servers()["here"]
    share = share_of(endpoint, 2, 3)
    assert (share.requests_per_minute, share.concurrency) == (3, 2)


def test_as_many_parts_as_requests_at_once_have_one_each(tmp_path, fault_server):
    config = load(experiment(tmp_path, fault_server, concurrency=3))
    check_parts(config, 3)
    assert [share_of(config.servers()["here"], number, 3).concurrency for number in (1, 2, 3)] == [1, 1, 1]


def test_a_part_has_its_share_of_the_budget(tmp_path, fault_server, judgekit):
    fault_server.answer = by_content()
    shares = [budget_of(Budget(10, 3.0), number, 3) for number in (1, 2, 3)]
    assert shares == [Budget(4, 1.0), Budget(3, 1.0), Budget(3, 1.0)]
    path = experiment(tmp_path, fault_server)
    said = judgekit("run", path, "--part", "1/3", "--cache", tmp_path / "store", "--max-requests", 10, code=3)
    assert "budget of 4 requests is used up" in said.err
    assert len(fault_server.seen) == 4


def test_more_parts_than_requests_at_once_and_a_part_that_is_none_are_refused(tmp_path, fault_server):
    path = experiment(tmp_path, fault_server)
    with pytest.raises(ConfigError, match=r"\[endpoints\.here\.concurrency\] is 6, which 7 parts cannot share"):
        check_parts(load(path), 7)
    asking = next(number for number in range(1, 8) if any(part(stages(prepare(path)), number, 7)))
    with pytest.raises(UsageError, match="is 6, which 7 parts cannot share"):
        answer_part(path, asking, 7, tmp_path / "store")
    for said in ("3/2", "0/2", "2", "a/b", "1/", "/2", "-1/2"):
        with pytest.raises(UsageError, match=r"e\.g\. 2/8"):
            part_of(said)


DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl"]
COMMANDS = {
    "build": ["build", "experiment.toml", "--labeling", "judge", "--out", "gold"],
    "label": ["label", "judge", *DATA, "--run", "good.trec", "--out", "j.qrels"],
    "guard": ["guard", "good.trec", "poor.trec", "--labeler", "judge", *DATA],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_asks_can_be_answered_in_parts(name, tmp_path, fault_server, judgekit, monkeypatch):
    fault_server.answer = by_content(0.01)
    experiment(tmp_path, fault_server)
    monkeypatch.chdir(tmp_path)
    server = f"default(base_url={fault_server.base_url!r}, model=m, concurrency=6)"
    command = [*COMMANDS[name], "--cache", "store"]
    if name != "build":
        command += ["--endpoint", server]
    before = {path.name for path in tmp_path.iterdir()}
    for number in (1, 2, 3):
        said = judgekit(*command, "--part", f"{number}/3", code=0)
        assert said.out.startswith(f"part {number} of 3: ")
    assert fault_server.most_active <= 2
    sent = len(fault_server.seen)
    assert {path.name for path in tmp_path.iterdir()} - before == {"store"}, "a part writes no results"
    whole = judgekit(*command)
    assert len(fault_server.seen) == sent > 0, "the command itself finds every reply"
    assert whole.code in (0, 1, 5), whole.err


def test_a_part_of_any_command_that_no_server_allows_is_refused(tmp_path, fault_server, judgekit, monkeypatch):
    experiment(tmp_path, fault_server)
    monkeypatch.chdir(tmp_path)
    server = f"default(base_url={fault_server.base_url!r}, model=m, concurrency=2)"
    said = judgekit(*COMMANDS["label"], "--cache", "store", "--endpoint", server, "--part", "1/3", code=2)
    assert "the concurrency of endpoint 'default' is 2, which 3 parts cannot share" in said.err
    assert "use it without --dry-run" in judgekit(*COMMANDS["build"], "--part", "1/3", "--dry-run", code=2).err
    assert not fault_server.seen
