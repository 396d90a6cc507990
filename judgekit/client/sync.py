"""Coroutines for synchronous code, also where an event loop is running (a notebook)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

__all__ = ["run_sync", "synchronous"]

P = ParamSpec("P")
T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running (a notebook)."""
    loop = None
    with suppress(RuntimeError):
        loop = asyncio.get_running_loop()
    if loop is None:  # not while that error is handled: it would be the context of whatever the coroutine raises
        return asyncio.run(coroutine)
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    interrupted: list[bool] = []
    found: list[T | BaseException] = []
    # The thread is waited for by a queue, which is written in C: an interrupt while one enters or leaves a lock of
    # Python's may keep it, and then both would wait for ever. Two entries, since the first may be lost to an interrupt.
    ended: SimpleQueue[None] = SimpleQueue()
    context = contextvars.copy_context()

    async def work() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        if interrupted:
            task.cancel()
        return await coroutine

    async def main() -> None:
        found.extend(await asyncio.gather(work(), return_exceptions=True))

    def whole() -> None:
        try:
            context.run(asyncio.run, main())
        finally:
            ended.put(None)
            ended.put(None)

    thread = Thread(target=whole, name="judgekit")
    try:
        thread.start()
        ended.get()
    except KeyboardInterrupt:
        interrupted.append(True)
        for loop, task in running:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)
        if thread.ident is not None:
            ended.get()
        raise
    [result] = found
    if isinstance(result, BaseException):
        raise result
    return result


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a coroutine function for synchronous code, see `run_sync`, by its name without ``_async``."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = function.__name__.removesuffix("_async")
    return call
