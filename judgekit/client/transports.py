"""What carries bytes to an endpoint: our own HTTP client, openai's, or recorded replies.

`HttpTransport` stands on aiohttp, which takes a fraction of the processor time of openai's client. It follows no
redirect, reads no netrc file and keeps no cookies: a request goes to the configured endpoint, through the proxy that
the environment names for it, or nowhere. TLS certificates are verified.

`OpenAITransport` is for gateways that need features of openai's client. httpx serves the few requests of `routes`.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import aiohttp
import orjson
from yarl import URL

from judgekit.client.applications import FunctionTransport, OwnTransport
from judgekit.data.streams import read_bytes
from judgekit.errors import EndpointError
from judgekit.wire.access import RECORDED_URL, api_key, headers_of, proxy_for, url_below
from judgekit.wire.types import (
    ROUTES,
    SHOWN,
    Endpoint,
    MalformedHeadError,
    NotConnectedError,
    TooLargeError,
    Transport,
    identity,
)

if TYPE_CHECKING:
    import openai


def open_transport(endpoint: Endpoint, note: Callable[[str], None] = lambda _: None) -> Transport:
    """Return the sample's recorded replies for ``recorded:``, a callable's transport, a user's own, or an HTTP client.

    Args:
        endpoint: whom to ask.
        note: called with the proxy, if there is one.

    Raises:
        ConfigError: see `api_key` and `proxy_for`.
    """
    if endpoint.base_url == RECORDED_URL:
        return RecordedTransport(recording_of(endpoint.model))
    if endpoint.application:
        return FunctionTransport(endpoint)
    if hasattr(endpoint.transport, "chat"):
        return OpenAITransport(endpoint.transport, headers_of(endpoint))
    if endpoint.own_transport:
        return OwnTransport(endpoint)
    if endpoint.transport == "openai":
        import openai

        unkeyed = {} if api_key(endpoint) else {"Authorization": openai.Omit()}
        return OpenAITransport(_openai_client(endpoint, note), {**unkeyed, **headers_of(endpoint)})
    return HttpTransport(endpoint, note)


_CONNECT_S = 20.0


class HttpTransport:
    """Carries requests to one endpoint. Belongs to the event loop it is first used in."""

    def __init__(self, endpoint: Endpoint, note: Callable[[str], None] = lambda _: None) -> None:
        """Prepare for one endpoint; its key and its proxy are read from the environment now."""
        key = api_key(endpoint)
        self._endpoint = endpoint
        self._proxy = _proxy(endpoint, note)
        self._url = URL(url_below(endpoint.base_url, ROUTES[endpoint.api].removeprefix("/v1")))
        self._through = f"{self._url.host}:{self._url.port}"
        if self._proxy:
            proxy = URL(self._proxy)
            self._through = f"the proxy {proxy.host}:{proxy.port}"
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "user-agent": "judgekit",
        }
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._headers |= headers_of(endpoint)
        self._client: aiohttp.ClientSession | None = None

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """POST the body; return (status, headers, body)."""
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # how many at once is the limiter's matter
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                # aiohttp trusts a wrong content-encoding, which would lose a paid reply: see `decoded`.
                auto_decompress=False,
            )
        try:
            # A redirect would take the key and the passages to an address that nobody configured.
            async with self._client.post(self._url, data=body, allow_redirects=False) as response:
                data = bytearray()
                async for part in response.content.iter_any():
                    data += part
                    if len(data) > self._endpoint.max_reply_bytes:
                        response.close()
                        raise TooLargeError(self._endpoint.max_reply_bytes)
                return response.status, response.headers, bytes(data)
        except aiohttp.ClientHttpProxyError as problem:
            raise NotConnectedError(f"{self._through} answered {problem.status} {problem.message}") from None
        except aiohttp.ClientResponseError as problem:
            raise MalformedHeadError(problem.message) from None
        except aiohttp.ClientConnectorCertificateError as problem:
            why = f"the certificate of {problem.host}:{problem.port} is not trusted ({problem.certificate_error})"
            raise NotConnectedError(why) from None
        except aiohttp.ClientConnectorError as problem:
            raise NotConnectedError(f"{self._through}: {said_by_system(problem.os_error)}") from None
        except aiohttp.ConnectionTimeoutError:
            raise NotConnectedError(f"{self._through}: no answer within {_CONNECT_S:g} s") from None
        except aiohttp.ClientError as problem:
            raise ConnectionError(f"the connection broke: {problem or type(problem).__name__}") from None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def said_by_system(problem: BaseException) -> str:
    """Return why no connection was made, in words, without the tried addresses."""
    if isinstance(problem, ssl.SSLError):
        return f"no HTTPS there ({problem.reason or problem}); if the server has none, base_url begins with http://"
    number = getattr(problem, "errno", None) or 0
    if number > 0:
        return os.strerror(number)
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


def _proxy(endpoint: Endpoint, note: Callable[[str], None]) -> str | None:
    """Return the proxy for an endpoint, if any, and report it."""
    proxy = proxy_for(endpoint.base_url)
    if proxy is not None:  # told without its password
        note(
            f"{endpoint.name} is reached through the proxy {URL(proxy).with_user(None)} of the environment"
            " (NO_PROXY excludes hosts)"
        )
    return proxy


def _openai_client(endpoint: Endpoint, note: Callable[[str], None]) -> openai.AsyncOpenAI:
    """Return a client made from the settings of an endpoint; it retries nothing."""
    import openai

    try:
        http = openai.DefaultAioHttpClient(**http_options(endpoint, note))
    except RuntimeError:  # the package that puts it on aiohttp, which is twice as fast, is not installed
        http = openai.DefaultAsyncHttpxClient(**http_options(endpoint, note))
    timeout = openai.Timeout(None, connect=_CONNECT_S)
    return openai.AsyncOpenAI(**openai_options(endpoint), http_client=http, timeout=timeout)


def openai_options(endpoint: Endpoint) -> dict[str, Any]:
    """Return the settings of openai's client for an endpoint: address, query string and key."""
    address = urlsplit(endpoint.base_url)
    return {
        "base_url": urlunsplit(address._replace(query="")),
        "default_query": dict(parse_qsl(address.query)),
        "api_key": api_key(endpoint) or "none",
    }


def http_options(endpoint: Endpoint, note: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the settings of the HTTP client under it: only to the endpoint, directly or through its proxy."""
    return {"follow_redirects": False, "trust_env": False, "proxy": _proxy(endpoint, note)}


class OpenAITransport:
    """Carries requests with a client of the openai package. Belongs to the event loop it is first used in."""

    def __init__(self, client: openai.AsyncOpenAI, headers: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Use ``client``, its address and its key, with further headers; the endpoint's ``base_url`` only names it."""
        self._client = client.with_options(max_retries=0)  # its own retries would be sent and paid unseen
        self._headers = headers

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """POST the body; return (status, headers, body)."""
        import openai

        # The HTTP library of openai's client and its errors: httpx2 from version 3 on, httpx before.
        httpx: Any = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]
        values = orjson.loads(body)
        shown = SHOWN[endpoint.api]
        named = {name: values.pop(name) for name in ("model", shown)}
        route: Any = self._client.chat.completions if endpoint.api == "chat" else self._client.completions
        create = route.with_streaming_response.create
        try:
            async with create(**named, extra_body=values, extra_headers=self._headers) as response:
                data = bytearray()
                async for part in response.http_response.aiter_raw():  # see `HttpTransport`
                    data += part
                    if len(data) > endpoint.max_reply_bytes:
                        raise TooLargeError(endpoint.max_reply_bytes)
                return response.status_code, response.headers, bytes(data)
        except aiohttp.ClientResponseError as problem:
            raise MalformedHeadError(problem.message) from None
        except openai.APIStatusError as problem:
            return problem.response.status_code, problem.response.headers, problem.response.content
        except openai.APIConnectionError as problem:
            # over aiohttp a refused connection, too, is a ConnectTimeout
            if isinstance(problem.__cause__, (httpx.ConnectError, httpx.ConnectTimeout)):
                raise NotConnectedError(str(problem.__cause__) or f"no answer within {_CONNECT_S:g} s") from None
            if isinstance(problem, openai.APITimeoutError):
                raise TimeoutError from None
            if isinstance(problem.__cause__, httpx.RemoteProtocolError):
                raise _broken(problem.__cause__) from None
            raise ConnectionError(f"the connection broke: {problem.__cause__ or problem}") from None
        except httpx.TimeoutException:
            raise TimeoutError from None
        except httpx.RemoteProtocolError as problem:
            raise _broken(problem) from None
        except httpx.RequestError as problem:
            raise ConnectionError(f"the connection broke: {problem or type(problem).__name__}") from None

    async def aclose(self) -> None:
        """Close all connections and leave the client usable: it may be the user's, and be asked in another loop."""
        http = self._client._client  # the package has no public way to it
        for transport in (http._transport, *http._mounts.values()):
            if transport is not None:
                await transport.aclose()


def _broken(problem: Exception) -> ConnectionError:
    """Return httpx's error for a reply that is not HTTP: refused headers, or an early end."""
    said = str(problem)
    if "closed" in said or "disconnected" in said:
        return ConnectionError(f"the connection broke: {said}")
    return MalformedHeadError(said)


RECORDING: Final = Path(__file__).resolve().parent.parent / "sample" / "replies.jsonl.gz"
"""The replies that `judgekit demo` replays."""

RECORDINGS: Final[Mapping[str, Path]] = MappingProxyType(
    {"SmolLM2-135M-Instruct-Q4_1": RECORDING.with_name("smollm2.jsonl.gz")}
)
"""Replies of other models to requests of the bundled sample, by model."""

KEY: Final = 16

Line = tuple[str, str, str, int, int]


def recording_of(model: str) -> Path:
    """Return the recording of a model, by default that of the demo."""
    return RECORDINGS.get(model, RECORDING)


def recorded(path: Path = RECORDING) -> tuple[Mapping[str, Any], dict[str, Line]]:
    """Return the server's own fields and the replies by key; an absent file holds nothing."""
    if not path.is_file():
        return {}, {}
    server, *lines = map(json.loads, read_bytes(path).splitlines())
    return server, {line[0]: tuple(line) for line in lines}


class RecordedTransport(Transport):
    """Replays a real model's replies to the requests of the bundled sample, and stops the run at any other request.

    The file holds compressed JSON lines: first the server's own fields (``model``, ``system_fingerprint``), then one
    reply a line, ``[key, text, finish reason, prompt tokens, completion tokens]``. A key is the first eight bytes (hex)
    of the request's identity.
    """

    def __init__(self, path: Path = RECORDING) -> None:
        self._server, self._lines = recorded(path)

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return the reply recorded for exactly this body."""
        key = identity(endpoint.identity, 0, body)[:KEY]
        line = self._lines.get(key)
        if line is None:
            raise EndpointError(
                f"endpoint {endpoint.name!r} ({endpoint.base_url}): no reply is recorded for this request."
                " Only the unchanged bundled sample has recorded replies; for other data, prompts or"
                " settings set base_url to the address of a server"
            )
        _, text, finish_reason, prompt_tokens, completion_tokens = line
        if endpoint.scores:
            result = {"index": 0, "relevance_score": float(text)}
            scored = {**self._server, "results": [result], "usage": {"prompt_tokens": prompt_tokens}}
            return 200, {}, json.dumps(scored).encode()
        reply = {
            **self._server,
            "id": f"recorded-{key}",
            "object": "chat.completion",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
        return 200, {}, json.dumps(reply, ensure_ascii=False).encode()
