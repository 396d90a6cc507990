"""Carries questions to a user's own application, a Python function or an HTTP route, and its answer back.

What comes back is dressed as a chat completion, so that the store, limits and retries need not know who answered.
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
from judgekit.spec import run_file, user_code
from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import Endpoint, Transport

__all__ = ["FunctionTransport", "RouteTransport", "function_of"]

_MISTAKES: Final = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, TypeError, ValueError)
"""What a function raises again however often it is called; anything else is tried again."""

Sent = tuple[int, Mapping[str, str], bytes]


def function_of(endpoint: Endpoint) -> Callable[..., Any]:
    """Return the function of an endpoint of kind ``callable``; its file is run if it was not yet.

    Raises:
        UsageError: the file cannot be run, or has no such function.
    """
    if callable(endpoint.target):
        found: Any = endpoint.target
    else:
        file, _, name = str(endpoint.target).rpartition(":")
        found = run_file(Path(file)).__dict__.get(name)
        if not callable(found):
            raise UsageError(f"endpoint {endpoint.name!r}: {file} has no function {name!r}")
    try:
        inspect.signature(found).bind("question", [])
    except TypeError as problem:
        what = f"endpoint {endpoint.name!r}: the function must take (question, documents): {problem}"
        raise UsageError(what) from None
    except ValueError:  # of some built-in functions nobody knows
        pass
    return found  # type: ignore[no-any-return]  # checked above


class FunctionTransport:
    """Calls a function ``(question, documents) -> answer`` in a thread of its own each time; async ones are awaited."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._function = function_of(endpoint)
        self._file = inspect.getsourcefile(inspect.unwrap(self._function)) if inspect.isroutine(self._function) else ""

    async def send(self, endpoint: Endpoint, body: bytes) -> Sent:
        """Return the answer, or as an error of a server what the function raised."""
        asked = parse_json(body)
        call = partial(self._function, asked.pop("question"), asked.pop("documents"), **asked)
        where = partial(user_code, lambda: endpoint.base_url, self._file or "")
        try:
            said = await _in_thread(call, where)
            if inspect.isawaitable(said):
                with where():
                    said = await said
        except JudgekitError as problem:
            cause = problem.__cause__
            status = getattr(cause, "status_code", None) or getattr(getattr(cause, "response", None), "status_code", 0)
            if status not in (408, 429, 503):
                status = 422 if isinstance(cause, _MISTAKES) else 500
            return _error(status, str(problem))
        return _answer(said)

    async def aclose(self) -> None:
        """Nothing is open; a call that never ends does not keep the program from ending."""


async def _in_thread(call: Callable[[], Any], where: Callable[[], Any]) -> Any:
    future: Future[Any] = Future()

    def work() -> None:
        future.set_running_or_notify_cancel()  # from here on it can be set, whether or not anybody still waits
        try:
            with where():
                said = call()
        except JudgekitError as problem:
            future.set_exception(problem)
        except SystemExit:
            future.set_exception(JudgekitError("it ended its thread, as sys.exit() does"))
        else:
            future.set_result(said)

    Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(future)


class RouteTransport:
    """Posts ``{"question": …, "documents": […]}`` to a route, which replies ``{"answer": "…"}`` or a JSON string."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    async def send(self, endpoint: Endpoint, body: bytes) -> Sent:
        """Return the route's answer, or its error as it came."""
        status, headers, data = await self._http.send(endpoint, body)
        if not 200 <= status < 300:
            return status, headers, data
        try:
            return _answer(parse_json(data))
        except ValueError:
            return _error(422, f"the route replied {data[:80]!r}, which is not JSON")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def _answer(said: Any) -> Sent:
    fields = said if isinstance(said, Mapping) else {"answer": said}
    answer = fields.get("answer", said)
    if answer is not None and not isinstance(answer, str):
        return _error(422, f'an answer is a text, or {{"answer": "…"}}, not {said!r:.80}')
    choice = {"index": 0, "message": {"role": "assistant", "content": answer or ""}, "finish_reason": "stop"}
    known = {key: fields[key] for key in ("model", "usage") if isinstance(said, Mapping) and fields.get(key)}
    return 200, {}, json.dumps({**known, "choices": [choice]}).encode()


def _error(status: int, reason: str) -> Sent:
    return status, {}, json.dumps({"error": {"message": reason}}).encode()
