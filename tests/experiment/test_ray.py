"""Parts as tasks of a real Ray cluster on this machine: the same results, and a killed worker's part starts again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from judgekit.store.replies import Store
from tests.experiment.test_parts import asked, by_content, equal_results, experiment, plain, until

pytest.importorskip("ray", reason="Ray is not installed: pip install 'judgekit-qrels[ray]'")
pytestmark = [pytest.mark.more, pytest.mark.xdist_group("ray")]


def on_ray(path: Path, out: Path, store: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "judgekit", "run", str(path), "--out", str(out), "--cache", str(store)]
    command += ["--ray", "local", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers(of: int) -> list[int]:
    """Return the processes below one that work on a part."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    below, parents = {of}, {int(pid): int(parent) for pid, parent, _ in rows}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return [int(pid) for pid, _, args in rows if int(pid) in below and args.startswith("ray::_part")]


def test_a_killed_worker_s_part_starts_again_and_pays_for_what_was_in_flight(tmp_path, fault_server):
    path = experiment(tmp_path, fault_server)
    fault_server.answer = by_content(0.05)
    plain(path, fault_server, tmp_path / "one", tmp_path / "store one")
    alone = asked(fault_server)
    fault_server.seen.clear()

    running = on_ray(path, tmp_path / "ray", tmp_path / "store")
    until(lambda: len(fault_server.seen) > sum(alone.values()) // 4 and bool(workers(running.pid)))
    os.kill(workers(running.pid)[0], signal.SIGKILL)
    _, err = running.communicate(timeout=120)
    assert running.returncode in (0, 1), err
    again = sum(asked(fault_server).values()) - sum(alone.values())
    assert asked(fault_server).keys() == alone.keys()
    assert 0 <= again <= 6, "what was in flight"
    assert fault_server.most_active <= 6
    equal_results(tmp_path / "one", tmp_path / "ray")
    assert plain(path, fault_server, tmp_path / "again", tmp_path / "store")[1] == 0
    assert not any((tmp_path / "ray" / "parts").iterdir())


def test_a_budget_holds_for_all_parts_and_what_was_paid_is_kept(tmp_path, fault_server):
    path = experiment(tmp_path, fault_server)
    fault_server.answer = by_content()
    running = on_ray(path, tmp_path / "ray", tmp_path / "store", "--max-requests", "20")
    _, err = running.communicate(timeout=120)
    assert running.returncode == 3
    assert "the budget of" in err
    assert len(fault_server.seen) == 20
    store = Store(tmp_path / "store")
    assert store.count() == 20
    store.close()


def test_a_cluster_that_is_not_there_is_named(tmp_path, fault_server):
    running = on_ray(experiment(tmp_path, fault_server), tmp_path, tmp_path / "store", "--ray", "nowhere")
    _, err = running.communicate(timeout=120)
    assert (running.returncode, "no Ray cluster answers at nowhere" in err) == (2, True)
