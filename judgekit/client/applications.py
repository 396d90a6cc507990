"""Carries requests with the user's own code: questions to an application (a Python function), or bytes to a server.

An application's answer is dressed as a chat completion, so that the store, limits and retries need not know who
answered.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Final

from judgekit.errors import JudgekitError, UsageError
from judgekit.spec import run_file, split_file, user_code
from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import Endpoint, Transport

# A function raises these on every call; other errors are retried.
_MISTAKES: Final = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, TypeError, ValueError)

Sent = tuple[int, Mapping[str, str], bytes]


def function_of(endpoint: Endpoint) -> Callable[..., Any]:
    """Return an application's function; its file is run once."""
    if callable(endpoint.target):
        function: Any = endpoint.target
    else:
        file, _, name = str(endpoint.target).rpartition(":")
        function = run_file(Path(file)).__dict__.get(name)
        if not callable(function):
            raise UsageError(f"endpoint {endpoint.name!r}: {file} has no function {name!r}")
    try:
        inspect.signature(function).bind("question", [])
    except TypeError as problem:
        what = f"endpoint {endpoint.name!r}: the function must take (question, documents): {problem}"
        raise UsageError(what) from None
    except ValueError:  # of some built-in functions nobody knows
        pass
    return function  # type: ignore[no-any-return]  # checked above


class FunctionTransport(Transport):
    """Calls a function ``(question, documents) -> answer`` in a thread of its own each time; async ones are awaited.

    Nothing is open, and a call that never ends does not keep the program from ending.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._function = function_of(endpoint)
        self._file: str | None = ""
        if inspect.isroutine(self._function):
            self._file = inspect.getsourcefile(inspect.unwrap(self._function))

    async def send(self, endpoint: Endpoint, body: bytes) -> Sent:
        """Return the answer, or what the function raised in the form of a server's error."""
        fields = parse_json(body)
        call = partial(self._function, fields.pop("question"), fields.pop("documents"), **fields)
        where = partial(user_code, lambda: endpoint.base_url, self._file or "")
        try:
            answer = await _in_thread(call, where)
            if inspect.isawaitable(answer):
                with where():
                    answer = await answer
        except JudgekitError as problem:
            cause = problem.__cause__
            status = getattr(cause, "status_code", None) or getattr(getattr(cause, "response", None), "status_code", 0)
            # An application may report that its own server is busy; then waiting helps.
            if status not in (408, 429, 503):
                status = 500
                if isinstance(cause, _MISTAKES):
                    status = 422
            return _error(status, str(problem))
        return _answer(answer)


class OwnTransport:
    """Sends through the user's own object. Its network errors are retried; other errors end the run."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._own = endpoint.transport
        self._ours = isinstance(self._own, str)
        if self._ours:
            path, name = split_file(self._own)
            self._own = run_file(Path(str(path))).__dict__.get(name)
            if isinstance(self._own, type):
                with user_code(lambda: endpoint.transport, str(path)):
                    self._own = self._own()
        if not callable(getattr(self._own, "send", None)):
            raise UsageError(f"endpoint {endpoint.name!r}: {endpoint.transport} has no method send(endpoint, body)")
        self._file = ""
        if inspect.ismethod(self._own.send):
            self._file = self._own.send.__code__.co_filename

    async def send(self, endpoint: Endpoint, body: bytes) -> Sent:
        """Return what the object's ``send`` returns."""
        what = f"endpoint {endpoint.name!r}: send() of its transport"
        try:
            with user_code(lambda: what, self._file):
                response = await self._own.send(endpoint, body)
        except UsageError as problem:
            if isinstance(problem.__cause__, OSError):
                raise problem.__cause__ from None
            raise
        match response:
            case (int() as status, Mapping() as headers, bytes() as data):
                return status, {str(name).lower(): str(value) for name, value in headers.items()}, data
        raise UsageError(f"{what} must return (status, headers, bytes), not {response!r:.80}")

    async def aclose(self) -> None:
        """Close an object made from a file; other objects belong to their owner."""
        if self._ours and hasattr(self._own, "aclose"):
            await self._own.aclose()


async def _in_thread(call: Callable[[], Any], where: Callable[[], Any]) -> Any:
    future: Future[Any] = Future()

    def work() -> None:
        future.set_running_or_notify_cancel()  # from here on it can be set, whether or not anybody still waits
        try:
            with where():
                future.set_result(call())
        except JudgekitError as problem:
            future.set_exception(problem)
        except (SystemExit, KeyboardInterrupt) as end:
            future.set_exception(JudgekitError(f"it ended its thread, as {type(end).__name__} does"))

    # In its own thread, so that a hanging call keeps neither the program open nor the pool's slots.
    Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(future)


def _answer(answered: Any) -> Sent:
    fields = answered if isinstance(answered, Mapping) else {"answer": answered}
    answer = fields.get("answer", answered)
    if answer is not None and not isinstance(answer, str):
        return _error(422, f'an answer is a text, or {{"answer": "…"}}, not {answered!r:.80}')
    choice = {"index": 0, "message": {"role": "assistant", "content": answer or ""}, "finish_reason": "stop"}
    known = {key: fields[key] for key in ("model", "usage") if isinstance(answered, Mapping) and fields.get(key)}
    return 200, {}, json.dumps({**known, "choices": [choice]}).encode()


def _error(status: int, reason: str) -> Sent:
    return status, {}, json.dumps({"error": {"message": reason}}).encode()
