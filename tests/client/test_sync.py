"""Coroutines from synchronous code: with a running loop, as in a notebook, and without."""

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from judgekit.client.sync import run_sync

ROOT = Path(__file__).resolve().parent.parent.parent
SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("SETTING", default="unset")


async def answer() -> tuple[str, bool]:
    await asyncio.sleep(0)
    return SETTING.get(), threading.current_thread() is threading.main_thread()


async def fail() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


def test_without_a_loop_it_runs_in_place():
    assert run_sync(answer()) == ("unset", True)
    with pytest.raises(ZeroDivisionError) as raised:
        run_sync(fail())
    assert raised.value.__context__ is None


def test_under_a_loop_it_runs_beside_it_with_the_callers_context():
    async def notebook():
        SETTING.set("mine")
        assert run_sync(answer()) == ("mine", False)
        with pytest.raises(ZeroDivisionError):
            run_sync(fail())

    asyncio.run(notebook())


def test_the_callers_garbage_collector_is_left_alone():
    before = gc.get_threshold(), gc.get_freeze_count()

    async def look() -> tuple[object, int]:
        return gc.get_threshold(), gc.get_freeze_count()

    assert run_sync(look()) == before


CODE = """
import asyncio, signal
from judgekit.client.sync import run_sync

signal.signal(signal.SIGINT, signal.default_int_handler)

async def work():
    try:
        print("ready", flush=True)
        await asyncio.sleep(60)
    finally:
        print("closed", flush=True)

async def notebook():
    run_sync(work())

try:
    asyncio.new_event_loop().run_until_complete(notebook())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.usefixtures("ignored_interrupt")
def test_an_interrupt_ends_the_work_and_closes_it():
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "closed\ninterrupted\n"
