"""Coroutines for synchronous code, even under a running event loop (a notebook)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from judgekit.client.asking import UNLIMITED, Asking
from judgekit.garbage import collected_seldom

if TYPE_CHECKING:
    from judgekit.client.session import Session

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, even under a running event loop (a notebook)."""
    running = False
    with suppress(RuntimeError):
        running = bool(asyncio.get_running_loop())
    if not running:  # outside of the handler: the error would become the context of whatever the coroutine raises
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
    work: Callable[[Session], Awaitable[T]], asking: Asking = UNLIMITED, part: tuple[int, int] = (1, 1)
) -> T:
    """Return what ``work`` returns, given a session; works under a running event loop (a notebook) too.

    ``part`` is a part's number and the number of parts that run at the same time and share the servers' limits.
    """
    from judgekit.client.session import Session
    from judgekit.store.replies import default_store_path

    async def inside() -> T:
        store = default_store_path() if asking.cache is None else asking.cache
        async with Session(
            store,
            budget=asking.budget,
            prices=asking.prices,
            progress=asking.progress,
            wait_s=asking.wait_s,
            part=part,
        ) as session:
            return await work(session)

    with collected_seldom():
        return run_sync(inside())
