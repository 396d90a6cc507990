"""Several processes ask the same at the same time, and each request is paid for once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import EndpointError
from judgekit.store import modes as room
from judgekit.store.modes import Claims
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint
from tests.programs import Ask, collect, texts
from tests.scripted import Scripted, ScriptedTransport, completion, error
from tests.servers import FaultServer

UNITS = [f"unit {number:03}" for number in range(60)]
CONCURRENCY = 8
CHILD = """
import asyncio, json, sys
from judgekit.client.session import Session
from judgekit.wire.types import Endpoint
from tests.client.test_claims import CONCURRENCY, UNITS
from tests.programs import Ask, collect, texts

async def main(url, store):
    async with Session(store) as session:
        found = await collect(session, UNITS, Ask(Endpoint("e", url, "m", concurrency=CONCURRENCY), waves=3))
        usage = session.usage("s")
    print(json.dumps([usage.sent, usage.cached, {unit: texts(found[unit]) for unit in sorted(found)}]))

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def processes(count: int, url: str, store: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Start processes that resolve the same units with the same store, all at the same moment."""
    command = [sys.executable, "-c", CHILD, url, str(store)]
    made = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        for _ in range(count)
    ]
    for child in made:
        assert child.stdout.readline() == "ready\n"
    for child in made:
        child.stdin.write("\n")
        child.stdin.flush()
    yield made
    for child in made:
        child.kill()
        child.communicate()


def said(child: subprocess.Popen[str]) -> Any:
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    return json.loads(out)


def later(body: dict[str, Any], seen: int) -> Scripted:
    return completion(f"{body['messages'][0]['content']} {seen}", delay_s=0.03)


def test_three_processes_at_once_send_each_request_once_and_end_alike(
    fault_server: FaultServer, tmp_path: Path
) -> None:
    fault_server.answer = later
    with processes(3, fault_server.base_url, tmp_path) as three:
        found = [said(child) for child in three]
    asked = Counter(fault_server.texts())
    assert len(asked) == asked.total() == 3 * len(UNITS)
    assert found[0][2] == found[1][2] == found[2][2]
    assert sum(sent for sent, _, _ in found) == asked.total()
    assert [sent + cached for sent, cached, _ in found] == [asked.total()] * 3


def test_of_a_killed_process_only_what_was_in_flight_is_sent_again(fault_server: FaultServer, tmp_path: Path) -> None:
    fault_server.answer = later
    with processes(3, fault_server.base_url, tmp_path) as three:
        while len(fault_server.seen) < len(UNITS):
            time.sleep(0.01)
        os.kill(three[0].pid, signal.SIGKILL)
        three[0].wait()
        found = [said(child) for child in three[1:]]
    asked = Counter(fault_server.texts())
    assert len(asked) == 3 * len(UNITS)
    assert asked.total() - len(asked) <= CONCURRENCY
    assert found[0][2] == found[1][2]


def test_a_claim_is_one_processs_until_it_is_given_back_or_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store(tmp_path)) as one, closing(Store(tmp_path)) as other:
        mine, theirs = Claims(one), Claims(other)
        assert mine.take(["a", "b"]) == mine.take(["a", "b"]) == {"a", "b"}
        assert theirs.take(["a", "b", "c"]) == {"c"}
        mine.end("a")
        mine.beat()
        assert theirs.take(["a", "b"]) == {"a"}
        mine.close()
        assert theirs.take(["b"]) == {"b"}
        now = time.time()
        monkeypatch.setattr(room.time, "time", lambda: now + 19)
        assert mine.take(["b"]) == set()
        monkeypatch.setattr(room.time, "time", lambda: now + 21)
        assert mine.take(["b"]) == {"b"}


def test_a_process_that_beats_keeps_its_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(tmp_path)) as store:
        mine, theirs, now = Claims(store), Claims(store), time.time()
        mine.take(["a"])
        monkeypatch.setattr(room.time, "time", lambda: now + 15)
        mine.beat()
        monkeypatch.setattr(room.time, "time", lambda: now + 30)
        assert theirs.take(["a"]) == set()


def test_what_failed_or_was_stopped_in_one_session_is_asked_by_the_next(tmp_path: Path) -> None:
    here, transport = Endpoint("e", "http://e/v1", "m"), ScriptedTransport("yes")
    with Session(tmp_path, transports=lambda _: ScriptedTransport(error(400, "maximum context length"))) as session:
        run_sync(collect(session, UNITS[:3], Ask(here)))
    with (
        Session(tmp_path, transports=lambda _: ScriptedTransport(error(401, "no key"))) as session,
        pytest.raises(EndpointError, match="401"),
    ):
        run_sync(collect(session, UNITS[:3], Ask(here)))
    begun = time.monotonic()
    with Session(tmp_path, transports=lambda _: transport) as session:
        found = run_sync(collect(session, UNITS[:3], Ask(here)))
    assert [texts(found[unit]) for unit in UNITS[:3]] == [["yes"]] * 3
    assert time.monotonic() - begun < 5


def test_a_damaged_row_is_asked_for_again_although_it_is_there(tmp_path: Path) -> None:
    here, transport = Endpoint("e", "http://e/v1", "m"), ScriptedTransport("yes")
    for _ in range(2):
        with Session(tmp_path, transports=lambda _: transport) as session:
            run_sync(collect(session, UNITS[:3], Ask(here)))
        with closing(Store(tmp_path)) as store:
            store.written(lambda rows: rows.execute("UPDATE Cache SET value = 'x' WHERE length(key) = 64"))
    assert len(transport.sent) == 6
