"""What a server offers beside chat completions: a sign that it is ready, and a list of models. No model is asked.

A server is ready if it lists its models (``/models``) or, without such a list, if ``/health`` says so.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_delay, wait_exponential

from judgekit.client.transports import http_options, said_by_system
from judgekit.errors import EndpointError, JudgekitError
from judgekit.wire.access import Secret, api_key, headers_of, url_below
from judgekit.wire.jsontext import at, parse_json
from judgekit.wire.types import Endpoint, TooLargeError

_TRY_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_TRIES_A_NOTE: Final = 10

Server = Callable[[str], Awaitable[tuple[int, Any]]]
"""Asks a route of a server, see `open_server`."""


def has_routes(endpoint: Endpoint) -> bool:
    """Return whether an endpoint may have these routes: a server, reached by our own clients."""
    return not (endpoint.application or endpoint.built_in or endpoint.own_transport)


async def wait_ready(endpoint: Endpoint, wait_s: float, note: Callable[[str], None] = lambda _: None) -> None:
    """Wait until the endpoint's server is ready."""
    if not has_routes(endpoint):
        return

    def reason(state: RetryCallState) -> str:
        assert state.outcome is not None
        return Secret.of(endpoint).cut(state.outcome.result())

    def tell(state: RetryCallState) -> None:
        if state.attempt_number % _TRIES_A_NOTE == 1:
            left_s = wait_s - (state.seconds_since_start or 0.0)
            note(f"{endpoint.name}: waiting for the server, {left_s:.0f} s at most ({reason(state)})")

    def give_up(state: RetryCallState) -> None:
        whom = f"endpoint {endpoint.name!r} ({endpoint.base_url})"
        raise EndpointError(f"{whom}: not ready after {wait_s:g} s (--wait): {reason(state)}")

    async with open_server(endpoint) as server:
        await AsyncRetrying(
            retry=retry_if_result(bool),
            wait=wait_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
            stop=stop_after_delay(wait_s),
            before_sleep=tell,
            retry_error_callback=give_up,
        )(_not_ready, server)


async def _not_ready(server: Server) -> str:
    """Return why a server is not ready, or "" if it is."""
    try:
        status, body = await server("/models")
        # Some servers have no list of models, and say on /health whether they are ready.
        if status in (404, 405):
            status, body = await server("/../health")
    except OSError as problem:
        return str(problem) or "no answer"
    if status >= 500 or status in (408, 429):
        return f"it answers {status}"
    models = _models(body)
    # llama.cpp lists a model without what is known about it until it is loaded.
    loading = bool(models) and all(model.get("meta", 0) is None for model in models)
    return "it is loading the model" if loading else ""


def _models(body: Any) -> list[dict[str, Any]]:
    """Return a server's list of models."""
    models = at(body, "data")
    if not isinstance(models, list):
        return []
    return [model for model in models if isinstance(model, dict)]


@asynccontextmanager
async def open_server(endpoint: Endpoint) -> AsyncIterator[Server]:
    """Yield a function that GETs a route below base_url; it returns the status, and the body if that is JSON."""
    import httpx

    key = api_key(endpoint)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # Certificates are those of the system, as for requests to models; httpx would bring its own.
    options = {**http_options(endpoint), "verify": ssl.create_default_context()}
    async with httpx.AsyncClient(**options, headers=headers | headers_of(endpoint), timeout=None) as client:

        async def ask(path: str) -> tuple[int, Any]:
            address, data = url_below(endpoint.base_url, path), bytearray()
            handled = sys.exception()  # by our caller: the context of what fails here, not its reason
            try:
                async with asyncio.timeout(_TRY_S), client.stream("GET", address) as response:
                    async for part in response.aiter_bytes():
                        data += part
                        if len(data) > endpoint.max_reply_bytes:
                            raise TooLargeError(endpoint.max_reply_bytes)
            except (httpx.HTTPError, httpx.InvalidURL) as problem:
                raise ConnectionError(f"{urlsplit(address).netloc}: {_root(problem, handled)}") from None
            try:
                return response.status_code, parse_json(bytes(data))
            except ValueError:
                return response.status_code, None

        yield ask


def _root(problem: BaseException, handled: BaseException | None) -> str:
    """Return the first cause in words; httpx only says that connection attempts failed."""
    while (cause := problem.__cause__ or problem.__context__) is not None and cause is not handled:
        problem = cause
    return said_by_system(problem)


def context_of(body: Any, model: str) -> int | None:
    """Return the tokens for prompt and reply of a model, if a server's list of models says so."""
    listed = _models(body)
    for entry in listed:
        # llama.cpp answers under any name with its only model.
        if entry.get("id") == model or len(listed) == 1:
            for length in (entry.get("max_model_len"), at(entry, "meta", "n_ctx")):
                if type(length) is int and length > 0:
                    return length
    return None


async def context_lengths(endpoints: Iterable[Endpoint]) -> dict[Endpoint, int]:
    """Return the largest number of tokens of prompt and reply, if a server says so (vLLM, SGLang)."""
    lengths = {}
    for endpoint in filter(has_routes, endpoints):
        with suppress(OSError, JudgekitError):
            async with open_server(endpoint) as server:
                _, body = await server("/models")
            for model in _models(body):
                length = model.get("max_model_len")
                if model.get("id") == endpoint.model and type(length) is int and length > 0:
                    lengths[endpoint] = length
    return lengths
