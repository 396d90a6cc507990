"""What a server has beside chat completions: a sign that it is ready, and a count of tokens. No model is asked.

Ready is a server that lists its models (``/models``), and where it has no such list, one whose ``/health`` says so. The
count is ``/tokenize`` of vLLM, SGLang and llama.cpp, beside ``/v1``; of a chat where the server counts chats (vLLM), of
the text alone otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from judgekit.client.mock import MockTransport
from judgekit.client.transports import HttpTransport
from judgekit.client.waves import Lacking
from judgekit.errors import EndpointError, JudgekitError
from judgekit.wire.access import Secret
from judgekit.wire.jsontext import parse_json
from judgekit.wire.shapes import shown_text
from judgekit.wire.types import MOCK_URL, Endpoint

__all__ = ["bytes_per_token", "count_tokens", "has_routes", "wait_ready"]

_TRY_S: Final = 5.0
_PAUSES_S: Final = (0.1, 2.0)
_TELL_S: Final = 20.0
_LEAST_BYTES: Final = 0.5
"""Of a token; a larger count is not one of tokens."""


def has_routes(endpoint: Endpoint) -> bool:
    """Say whether an endpoint may have these routes: it is a server, not an application, a client or built in."""
    return not (endpoint.application or endpoint.built_in or endpoint.client is not None)


async def wait_ready(endpoint: Endpoint, wait_s: float, note: Callable[[str], None] = lambda _: None) -> None:
    """Return when one of the endpoint's servers is ready.

    Raises:
        EndpointError: none is after ``wait_s`` seconds.
    """
    if not has_routes(endpoint):
        return
    begun, tell_at, pause = time.monotonic(), 0.0, _PAUSES_S[0]
    servers = [HttpTransport(one) for one in endpoint.servers]
    try:
        while True:
            said = await asyncio.gather(*map(_not_ready, servers))
            if not all(said):
                return
            waited = time.monotonic() - begun
            reason = Secret.of(endpoint).cut("; ".join(filter(None, dict.fromkeys(said))))
            if waited >= wait_s:
                raise EndpointError(
                    f"endpoint {endpoint.name!r} ({endpoint.address}): not ready after {wait_s:g} s (--wait): {reason}"
                )
            if waited >= tell_at:
                tell_at = waited + _TELL_S
                note(f"{endpoint.name}: waiting for the server, {wait_s - waited:.0f} s at most ({reason})")
            await asyncio.sleep(min(pause, wait_s - waited))
            pause = min(2 * pause, _PAUSES_S[1])
    finally:
        for server in servers:
            await server.aclose()


async def _not_ready(server: HttpTransport) -> str:
    """Return why a server is not ready, or "" if it is."""
    try:
        status, body = await _fetch(server, "models")
        if status in (404, 405):
            status, body = await _fetch(server, "health", beside=True)
    except (OSError, TimeoutError) as problem:
        return str(problem) or "no answer"
    if status >= 500 or status in (408, 429):
        return f"it answers {status}"
    models = body.get("data") if isinstance(body, dict) else None
    if isinstance(models, list) and models and all(isinstance(m, dict) and m.get("meta", 0) is None for m in models):
        return "it is loading the model"  # llama.cpp lists it without what is known of it until it is loaded
    return ""


async def count_tokens(endpoint: Endpoint, bodies: list[bytes]) -> list[int] | None:
    """Return how many tokens the prompts of request bodies have, or None where the server does not count."""
    asked = [orjson.loads(body) for body in bodies]
    if endpoint.base_url == MOCK_URL:
        return [MockTransport.count(one) for one in asked]
    if not has_routes(endpoint) or not bodies:
        return None
    server = HttpTransport(endpoint.servers[0])
    try:
        if await _counted(server, endpoint, {"prompt": "one", "content": "one"}) is None:
            return None  # no prompt goes to a server that cannot count
        found = [await _count(server, endpoint, one) for one in asked]
        return None if None in found else [count for count in found if count is not None]
    except (OSError, TimeoutError):
        return None
    finally:
        await server.aclose()


async def _count(server: HttpTransport, endpoint: Endpoint, body: dict[str, Any]) -> int | None:
    if "messages" in body:
        whole = await _counted(server, endpoint, {"messages": body["messages"]})
        if whole is not None:
            return whole
    text = shown_text(body)
    return await _counted(server, endpoint, {"prompt": text, "content": text})  # vLLM's and SGLang's; llama.cpp's


async def _counted(server: HttpTransport, endpoint: Endpoint, asked: Mapping[str, Any]) -> int | None:
    body = orjson.dumps({"model": endpoint.model, **asked})
    status, said = await _fetch(server, "tokenize", body, beside=True)
    if status != 200 or not isinstance(said, dict):
        return None
    tokens = said.get("tokens")
    count = said.get("count", len(tokens) if isinstance(tokens, list) else None)
    return count if type(count) is int and 0 < count <= len(body) / _LEAST_BYTES else None


async def _fetch(
    server: HttpTransport, path: str, body: bytes | None = None, *, beside: bool = False
) -> tuple[int, Any]:
    """Return the status and the parsed body (None if it is not JSON) of a route below base_url, or beside its /v1."""
    async with asyncio.timeout(_TRY_S):
        status, data = await server.fetch(path, body, beside=beside)
    try:
        return status, parse_json(data)
    except ValueError:
        return status, None


async def bytes_per_token(lacking: Mapping[Endpoint, Lacking]) -> dict[Endpoint, float]:
    """Return the bytes of request for a token of its prompt, counted by the servers that can."""
    found = {}
    for endpoint, one in lacking.items():
        try:
            counts = await count_tokens(endpoint, one.sample)
        except JudgekitError:
            continue
        if counts:
            found[endpoint] = sum(map(len, one.sample)) / sum(counts)
    return found
