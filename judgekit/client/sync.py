"""Running coroutines from synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

__all__ = ["run_sync"]

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running (a notebook).

    With a running loop it runs in a loop of its own in a thread, while the caller waits; an interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    context = contextvars.copy_context()
    done: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await coroutine

    def work() -> None:
        try:
            done.set_result(context.run(asyncio.run, main()))
        except BaseException as problem:  # noqa: BLE001  # raised again in the caller's thread
            done.set_exception(problem)

    # Waiting for a thread itself does not survive an interrupt: the second join would return at once.
    thread = threading.Thread(target=work, name="judgekit", daemon=True)
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        for loop, task in running:
            if not done.done():
                loop.call_soon_threadsafe(task.cancel)
        wait([done])
        raise
