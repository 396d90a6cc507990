"""Running coroutines from synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
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
    outcome: list[T] = []
    problems: list[BaseException] = []
    task: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        current = asyncio.current_task()
        assert current is not None
        task.append((asyncio.get_running_loop(), current))
        return await coroutine

    def work() -> None:
        try:
            outcome.append(context.run(asyncio.run, main()))
        except BaseException as problem:  # noqa: BLE001  # raised again in the caller's thread
            problems.append(problem)

    thread = threading.Thread(target=work, name="judgekit", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        if task:
            task[0][0].call_soon_threadsafe(task[0][1].cancel)
        thread.join()
        raise
    if problems:
        raise problems[0]
    return outcome[0]
