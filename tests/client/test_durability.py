"""Nothing lost, nothing paid twice: killed processes, several at once, full disks, folders that take nothing."""

import os
import random
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import StoreError
from judgekit.store.records import Record
from judgekit.store.replies import Store, default_store_path
from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import Endpoint
from tests.client.killed import work
from tests.programs import Ask, Run, collect, scripted
from tests.scripted import ScriptedTransport, completion, error
from tests.store.filling import at_most, write

UNITS = [f"unit {i:04}" for i in range(120)]
CONCURRENCY = 8


FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.client.killed"])  # a child that is forked need not import anything


def started(base_url: str, folder: Path, out: str = "out.txt") -> BaseProcess:
    """Start a process that resolves all units."""
    files = [str(folder / name) for name in ("store", "acknowledged", out)]
    child = FORKS.Process(target=work, args=(base_url, *files, len(UNITS), CONCURRENCY))
    child.start()
    return child


def ended(child: BaseProcess) -> int | None:
    """Wait for a process; return how it ended."""
    child.join()
    return child.exitcode


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def stored_texts(folder: Path) -> set[str]:
    """Return the user messages of all stored requests."""
    with closing(Store(folder / "store", readonly=True)) as store:
        return {parse_json(Record.parse(text).body)["messages"][0]["content"] for _, text in store.texts()}


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.many)])
def test_a_killed_run_loses_nothing_it_acknowledged_and_repeats_only_what_was_in_flight(fault_server, tmp_path, rounds):
    last, killing = f"{UNITS[-1]} 1", True

    def answer(body, seen):
        """Hold back the last reply, so that no child ends before it is killed, however late that is."""
        text = body["messages"][0]["content"]
        return completion(text.upper(), delay_s=60 if killing and text == last else 0.01)

    fault_server.answer = answer
    rng = random.Random(rounds)
    out, log = tmp_path / "out.txt", tmp_path / "acknowledged"
    for _ in range(rounds):
        child = started(fault_server.base_url, tmp_path)
        enough = len(fault_server.seen) + rng.randint(1, 3 * len(UNITS) // rounds)
        while len(fault_server.seen) < enough and last not in fault_server.texts():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        child.kill()
        assert ended(child) == -signal.SIGKILL
        assert {text for unit in lines(log) for text in (unit, f"{unit} 1")} <= stored_texts(tmp_path)
        assert not out.exists()
    killing = False
    assert ended(started(fault_server.base_url, tmp_path)) == 0
    sent = Counter(fault_server.texts())
    assert set(sent) == stored_texts(tmp_path)
    assert len(sent) == 2 * len(UNITS)
    assert sent.total() - len(sent) <= rounds * CONCURRENCY
    print(f"{rounds} kills, 0 entries lost, {sent.total() - len(sent)} of {sent.total()} requests sent again")
    fault_server.seen.clear()
    assert ended(started(fault_server.base_url, tmp_path, "again.txt")) == 0
    assert not fault_server.seen
    (tmp_path / "undisturbed").mkdir()
    assert ended(started(fault_server.base_url, tmp_path / "undisturbed")) == 0
    whole = (tmp_path / "undisturbed" / "out.txt").read_bytes()
    assert out.read_bytes() == whole
    assert (tmp_path / "again.txt").read_bytes() == whole


@pytest.mark.parametrize("killed", [0, 1])
def test_three_processes_at_once_send_nothing_twice_but_what_was_in_flight_in_one_that_was_killed(
    fault_server, tmp_path, killed
):
    # replies differ from call to call, and yet all processes end with the same ones
    fault_server.answer = lambda body, seen: completion(f"answer {len(fault_server.seen)}", delay_s=0.02)
    children = [started(fault_server.base_url, tmp_path, f"{number}.txt") for number in range(3)]
    while killed and len(fault_server.seen) < len(UNITS) // 2:
        time.sleep(0.001)
    for child in children[:killed]:
        child.kill()
    assert [ended(child) for child in children] == [-signal.SIGKILL * killed, 0, 0]
    asked = Counter(fault_server.texts())
    assert len(asked) == 2 * len(UNITS)
    assert asked.total() - len(asked) <= killed * CONCURRENCY
    assert len({(tmp_path / f"{number}.txt").read_bytes() for number in range(killed, 3)}) == 1


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A folder with a filled store that cannot be written to, not even by root."""
    folder = tmp_path / "locked"
    transport = ScriptedTransport("yes")
    with Session(folder, transports=lambda _: transport) as session:
        run_sync(collect(session, UNITS[:20], Ask(Endpoint("here", "http://h/v1", "m"))))
    if os.geteuid() == 0:
        command, undo = ["mount", "--bind", "-o", "ro", str(folder), str(folder)], ["umount", str(folder)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("needs a read-only mount, which root may not make here")
        yield folder
        subprocess.run(undo, check=True)
    else:
        folder.chmod(0o555)
        (folder / "cache.db").chmod(0o444)
        yield folder
        folder.chmod(0o755)


def test_a_folder_that_cannot_be_written_to_is_a_sentence(unwritable):
    with pytest.raises(StoreError, match=r"cannot be written to .*--cache"):
        Session(unwritable)


@pytest.mark.parametrize("concurrency", [4, 32])
def test_a_full_disk_stops_the_run_and_the_next_one_pays_for_nothing_twice(fault_server, tmp_path, concurrency):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0:
        try:
            _fill_up(fault_server, disk / "store", concurrency)
            subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
            _go_on(fault_server, disk / "store")
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
    else:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
        try:
            _fill_up(fault_server, disk / "store", concurrency)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        _go_on(fault_server, disk / "store")


def _fill_up(server: Any, folder: Path, concurrency: int) -> None:
    # Noise, which the store cannot make smaller.
    server.answer = lambda body, seen: random.Random(str(body)).randbytes(10_000).hex()
    run = Run(server.base_url, UNITS, folder, concurrency=concurrency)
    assert isinstance(run.error, StoreError)
    assert "is full" in str(run.error) or "cannot be used" in str(run.error)
    assert run.error.exit_code == 3
    assert len(run.outcomes) < len(UNITS), "how many fit depends on how many were stored at once"
    with closing(Store(folder, readonly=True)) as store:
        assert store.count() == len(run.outcomes)
    assert any("the next run takes them" in note for note in run.notes)
    assert not any("lost" in note for note in run.notes)
    if concurrency == 4:  # there is room for them on the full disk itself
        assert list(folder.glob("rescued-*.jsonl"))
        assert not list(default_store_path().rglob("rescued-*.jsonl"))


def _go_on(server: Any, folder: Path) -> None:
    again = Run(server.base_url, UNITS, folder)
    assert again.error is None
    assert len(again.outcomes) == len(UNITS) == len(server.seen)
    assert not list(folder.glob("rescued-*.jsonl"))
    assert not list(default_store_path().rglob("rescued-*.jsonl"))


@pytest.mark.parametrize(
    "problem", [RuntimeError("odd"), OverflowError("large"), StoreError("the disk is full")], ids=repr
)
def test_paid_replies_that_the_store_cannot_take_fail_what_waits_and_are_kept_for_the_next_run(
    fault_server, tmp_path, monkeypatch, problem
):
    real, calls = Store.put_many, []

    def put_many(self, records, **options):
        calls.append(len(records))
        if len(calls) > 5:
            raise problem
        return real(self, records, **options)

    monkeypatch.setattr(Store, "put_many", put_many)
    stopped: BaseException | None
    with at_most(20):
        try:
            stopped = Run(fault_server.base_url, UNITS, tmp_path, concurrency=4).error
        except (RuntimeError, OverflowError) as other:
            stopped = other
    assert stopped is problem
    monkeypatch.undo()
    assert list(tmp_path.glob("rescued-*.jsonl"))
    assert sum(calls) == len(fault_server.seen)
    again = Run(fault_server.base_url, UNITS, tmp_path)
    assert again.texts == ["yes"] * len(UNITS)
    assert len(fault_server.seen) == len(UNITS)
    assert any("are in the store now" in note for note in again.notes)
    assert not list(tmp_path.glob("rescued-*.jsonl"))


def test_a_corrupted_store_is_moved_aside_and_the_run_goes_on(fault_server, tmp_path):
    Run(fault_server.base_url, UNITS, tmp_path)
    data = bytearray((tmp_path / "cache.db").read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = bytes(8192)
    (tmp_path / "cache.db").write_bytes(data)
    again = Run(fault_server.base_url, UNITS, tmp_path)
    assert again.error is None
    assert again.texts == ["yes"] * len(UNITS)
    assert again.usage.cached > 80
    assert len(fault_server.seen) == len(UNITS) + again.usage.sent
    assert list(tmp_path.glob("damaged-*/cache.db"))


def test_what_failed_or_was_stopped_in_one_session_is_asked_by_the_next(tmp_path):
    begun = time.monotonic()
    assert not scripted(error(400, "maximum context length"), tmp_path, UNITS[:3])[0].error
    assert "401" in scripted(error(401, "no key"), tmp_path, UNITS[:3])[0].stopped
    assert scripted("yes", tmp_path, UNITS[:3])[0].texts == ["yes"] * 3
    assert time.monotonic() - begun < 5


def test_a_damaged_row_is_asked_for_again_although_it_is_there(tmp_path):
    for _ in range(2):
        assert len(scripted("yes", tmp_path, UNITS[:3])[1]) == 3
        write(tmp_path, "UPDATE Cache SET value = 'x' WHERE length(key) = 64")
