"""Experiments on a real Ray cluster of several raylets on this machine: the same results, and nothing paid twice."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgekit.cli import main
from judgekit.client.budget import Budget
from judgekit.errors import BudgetError, EndpointError
from judgekit.experiment.file import Config, load
from judgekit.experiment.run import Finished, run
from judgekit.progress import Event
from judgekit.sample import EXPERIMENT
from tests.scripted import Scripted, completion
from tests.servers import FaultServer, openai_error

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'judgekit[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]

QUERIES = 40
DOCS = 3
RESULTS = ("labels/judge.qrels", "labels/judge.parquet", "answers/answer-short.parquet", "scores.parquet")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two raylets with a CPU each, and this process connected to them."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_health_check_failure_threshold", "3")
        patch.setenv("RAY_health_check_period_ms", "500")
        node = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=node)
        made.add_node(num_cpus=1, object_store_memory=80_000_000)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


def experiment(folder: Path, server: FaultServer, **endpoint: Any) -> Config:
    """An experiment whose judge and answers ask the server."""
    folder.mkdir(exist_ok=True)
    queries = [{"query_id": f"q{n}", "text": f"What is number {n}?", "answers": [f"{n}"]} for n in range(QUERIES)]
    docs = [{"doc_id": f"d{n}", "text": f"This is about {n}."} for n in range(QUERIES)]
    lines = [f"q{n} Q0 d{(n + k) % QUERIES} {k + 1} {9 - k} r" for n in range(QUERIES) for k in range(DOCS)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "docs.jsonl").write_text("\n".join(map(json.dumps, docs)))
    (folder / "a.trec").write_text("\n".join(lines))
    (folder / "b.trec").write_text("\n".join(reversed(lines[: len(lines) // 2])))
    more = "".join(f"{key} = {value}\n" for key, value in {"concurrency": 6, **endpoint}.items())
    (folder / "experiment.toml").write_text(
        f"""
        [data]
        queries = "queries.jsonl"
        docs = "docs.jsonl"
        depth = {DOCS}
        [runs]
        a = "a.trec"
        b = "b.trec"
        [endpoints.here]
        base_url = "{server.base_url}"
        namespace = "here"
        model = "m"
        {more}
        [[labelers]]
        kind = "judge"
        name = "judge"
        [answers]
        depths = [{DOCS}]
        closed_book = false
        [metrics]
        measures = ["nDCG", "P"]
        [analysis]
        resamples = 100
        [executor]
        kind = "ray"
        pairs = 50
        flush_s = 0.2
        """
    )
    return load(folder / "experiment.toml")


def by_content(delay_s: float = 0.0) -> Callable[[dict[str, Any], int], Scripted]:
    """Answer by what is asked alone, so that everybody gets the same."""

    def answer(body: dict[str, Any], _: int) -> Scripted:
        said = completion("Yes" if len(json.dumps(body)) % 2 else "No")
        return Scripted(said.status, said.body, said.headers, delay_s=delay_s)

    return answer


def asked(server: FaultServer) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in server.seen)


def equal_results(one: Path, other: Path) -> None:
    for name in RESULTS:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def all_there(outcome: Finished) -> bool:
    labels = [labeling.table["status"] for labeling in outcome.labelings.values()]
    return all(set(status) == {"ok"} for status in (*labels, outcome.quality["status"]))


def kept(folder: Path) -> set[str]:
    """What is in the segments."""
    out, content = set(), b""
    for path in folder.glob("partitions/replies/*/*.gz"):
        with suppress(FileNotFoundError):  # one took the place of several
            content = gzip.decompress(path.read_bytes())
        for line in content.splitlines():
            out.add(json.dumps(json.loads(json.loads(line)["body"])["messages"]))
    return out


def alive(pid: int) -> bool:
    """Whether it still works, be it without its raylet, as it does for a while."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def until(condition: Callable[[], Any], within_s: float = 90.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def workers(node: Any = None) -> set[int]:
    """The processes of this process's raylets, or of one node's, that work on partitions."""
    above = os.getpid() if node is None else node.all_processes["raylet"][0].process.pid
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(path.name) if "MapWorker" in (path / "cmdline").read_text() else 0
            while pid > 1 and pid != above:
                pid = parent(pid)
        except OSError:
            continue
        if pid == above:
            found.add(int(path.name))
    return found


def test_the_sample_gives_the_same_files_as_in_one_process(cluster: Any, tmp_path: Path) -> None:
    config = load(EXPERIMENT).updated(data={"limit": 60})
    run(config, out=tmp_path / "local", cache=tmp_path / "cache")
    config = config.updated(executor={"kind": "ray"})
    config = config.model_copy(update={"executor": config.executor.model_copy(update={"pairs": 600})})
    told: list[Event] = []
    outcome = run(config, out=tmp_path / "ray", cache=tmp_path / "other", progress=told.append)
    names = {path.relative_to(tmp_path / "local") for path in (tmp_path / "local").rglob("*") if path.is_file()}
    other = {"resolved.toml", "manifest.json", "report.html", "report.json"}  # they say where, and how long it took
    assert len(names) > 15
    for name in names - set(map(Path, other)):
        assert (tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes(), name
    last = {event.stage: event for event in told if not event.note}
    judge, pairs = last["label judge"], len(outcome.labelings["judge"])
    assert judge.done == judge.total == judge.sent == pairs
    assert all_there(outcome)


def test_a_worker_and_a_node_die_and_nothing_is_lost_and_little_is_paid_twice(
    cluster: Any, tmp_path: Path, fault_server: FaultServer
) -> None:
    fault_server.answer = by_content(0.1)
    config = experiment(tmp_path / "x", fault_server)
    extra = cluster.add_node(num_cpus=2, object_store_memory=80_000_000)
    config = config.model_copy(update={"executor": config.executor.model_copy(update={"workers": 3})})
    in_doubt: Counter[str] = Counter()

    def kill(what: Callable[[], Any], dead: set[int]) -> None:
        what()
        whole = kept(tmp_path / "ray")
        until(lambda: not any(map(alive, dead)))
        for _ in range(2):  # what the dead had sent has come before what is sent now
            with suppress(urllib.error.HTTPError):
                urllib.request.urlopen(fault_server.base_url)
        in_doubt.update(set(asked(fault_server)) - whole)

    def faults() -> None:
        until(lambda: len(fault_server.seen) >= 40)
        first = min(workers() - earlier)
        kill(lambda: os.kill(first, signal.SIGKILL), {first})
        until(lambda: len(fault_server.seen) >= 80)
        node = next((node for node in cluster.worker_nodes if workers(node)), extra)
        kill(lambda: cluster.remove_node(node, allow_graceful=False), workers(node))

    earlier = workers()  # which end
    with ThreadPoolExecutor(1) as beside:
        killed = beside.submit(faults)
        outcome = run(config, out=tmp_path / "ray", cache=tmp_path / "a")
        killed.result()
    assert all_there(outcome)
    seen = asked(fault_server)
    twice = {body: count for body, count in seen.items() if count > 1}
    assert all(count - 1 <= in_doubt[body] for body, count in twice.items()), "asked again, and it was kept"
    assert fault_server.most_active <= 6
    del fault_server.seen[:]
    run(config.updated(executor={"kind": "local"}), out=tmp_path / "local", cache=tmp_path / "b")
    assert set(asked(fault_server)) == set(seen)
    equal_results(tmp_path / "local", tmp_path / "ray")
    print(f"\nof {len(seen)} requests {len(twice)} were asked twice; in doubt were {len(in_doubt)}")


def test_what_is_finished_is_skipped_and_what_changes_the_results_is_done_again_for_nothing(
    cluster: Any, tmp_path: Path, fault_server: FaultServer
) -> None:
    fault_server.answer = lambda body, seen: (
        openai_error(400, "too long") if "number 7?" in json.dumps(body) and len(fault_server.seen) < 400 else "Yes"
    )
    looked: list[int] = []

    def ready(*_: Any) -> tuple[int, Any]:
        looked.append(len(fault_server.seen))
        return 200 if len(looked) > 3 else 503, {"data": []}

    fault_server.other = ready
    config = experiment(tmp_path / "x", fault_server)
    run(config, out=tmp_path / "out", cache=tmp_path / "a", wait_s=60)
    assert looked[:4] == [0] * 4, "workers wait for a server that is not ready"
    first = len(fault_server.seen)
    fault_server.seen += [{"messages": []}] * 400
    outcome = run(config, out=tmp_path / "out", cache=tmp_path / "a")
    again = fault_server.seen[first + 400 :]
    assert all_there(outcome)
    assert {"number 7?" in json.dumps(body) for body in again} == {True}, "what failed is asked again"
    count = len(fault_server.seen)
    text = (tmp_path / "x" / "experiment.toml").read_text()
    (tmp_path / "x" / "experiment.toml").write_text(
        text.replace("pairs = 50", "pairs = 120").replace('"P"]', '"P", "RR"]')
    )
    outcome = run(load(tmp_path / "x" / "experiment.toml"), out=tmp_path / "out", cache=tmp_path / "a")
    assert len(fault_server.seen) == count, "other partitions take the replies of those there were"
    assert set(outcome.scores["measure"]) == {"nDCG@3", "P@3", "RR@3"}
    assert len(list((tmp_path / "out" / "partitions" / "scores").iterdir())) < 4


def test_rates_and_budgets_hold_for_all_workers_together_and_errors_end_them_all(
    cluster: Any, tmp_path: Path, fault_server: FaultServer
) -> None:
    fault_server.answer = by_content()
    config = experiment(tmp_path / "x", fault_server, requests_per_minute=2400)
    with pytest.raises(BudgetError, match="all workers share is used up: 100 requests"):
        run(config, out=tmp_path / "out", cache=tmp_path / "a", budget=Budget(max_requests=100))
    assert 95 <= len(fault_server.seen) <= 100
    per_second = np.polyfit(fault_server.times, np.arange(len(fault_server.times)), 1)[0]
    assert per_second <= 1.05 * 40, "on the whole: a single one may come late where the machine is busy"
    assert set(asked(fault_server)) == kept(tmp_path / "out"), "those in flight were waited for"
    fault_server.answer = lambda *_: openai_error(401, "wrong key")
    with pytest.raises(EndpointError, match="wrong key"):
        run(config, out=tmp_path / "out", cache=tmp_path / "a")


def test_an_interrupt_keeps_what_was_paid_for(
    cluster: Any, tmp_path: Path, fault_server: FaultServer, ignored_interrupt: None
) -> None:
    fault_server.answer = by_content(0.1)
    experiment(tmp_path / "x", fault_server)
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from judgekit.cli import main; main()"
    )
    command = ["run", str(tmp_path / "x" / "experiment.toml"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-c", code, *command, "--address", cluster.address], stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: len(fault_server.seen) >= 40)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=90)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    paid = set(asked(fault_server))
    assert paid == kept(tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cache-mode", "refresh"], "--cache-mode refresh is for one machine"),
        (["--canary", "5"], "run it with --executor local"),
        (["--executor", "local", "--address", "auto"], "add --executor ray"),
    ],
)
def test_what_a_cluster_does_not_do_is_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", str(EXPERIMENT), "--executor", "ray", "--out", str(tmp_path / "out"), *options])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"), ("ray://x:1", "with `ray job submit`")],
)
def test_an_address_without_a_cluster_says_how_to_start_one(
    address: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", str(EXPERIMENT), "--executor", "ray", "--address", address, "--out", str(tmp_path / "out")])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
