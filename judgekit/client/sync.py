"""Coroutines for synchronous code, also where an event loop is running (a notebook)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from judgekit.progress import Progress, silent

if TYPE_CHECKING:
    from judgekit.client.budget import Budget, Prices
    from judgekit.client.session import Session
    from judgekit.store.modes import Mode

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running (a notebook)."""
    running = False
    with suppress(RuntimeError):
        running = bool(asyncio.get_running_loop())
    if not running:  # not while that error is handled: it would be the context of whatever the coroutine raises
        return asyncio.run(coroutine)
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    task = loop.create_task(coroutine)  # in a copy of this context
    # The thread is waited for by a queue, which is written in C: an interrupt while one enters or leaves a lock of
    # Python's may keep it, and then both would wait for ever. Two entries, since the first may be lost to an interrupt.
    ended: SimpleQueue[None] = SimpleQueue()

    def whole() -> None:
        try:
            with runner:
                runner.run(asyncio.wait([task]))
        finally:
            ended.put(None)
            ended.put(None)

    thread = Thread(target=whole, name="judgekit")
    try:
        thread.start()
        ended.get()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(task.cancel)
        if thread.ident is not None:
            ended.get()
        raise
    return task.result()


def with_session(
    work: Callable[[Session], Awaitable[T]],
    *,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    prices: Prices | None = None,
    progress: Progress = silent,
    wait_s: float = 0.0,
) -> T:
    """Return what ``work`` returns, given a session; works under a running event loop (a notebook) too."""
    from judgekit.client.session import Session
    from judgekit.store.replies import default_store_path

    async def inside() -> T:
        store = default_store_path() if cache is None else cache
        async with Session(store, mode, budget, prices, progress, wait_s=wait_s) as session:
            return await work(session)

    return run_sync(inside())
