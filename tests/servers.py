"""A real HTTP server with faults, in a thread of its own."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from judgekit.wire.types import ROUTES
from tests.scripted import Scripted, completion

Writer = Callable[[web.StreamResponse], Awaitable[None]]
Answer = Callable[[dict[str, Any], int], "Scripted | str | bytes | Stream"]
"""From the parsed body and how often that body was seen before: a response, the text of a completion, half of a
response after which the connection is cut, or a stream."""


@dataclass(frozen=True)
class Stream:
    """A response of 200, or of another status, whose body a function writes for as long as somebody listens."""

    write: Writer
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


@dataclass
class FaultServer:
    """Answers the routes of all APIs by ``answer``, and every other by ``other`` (path, body); keeps what came."""

    base_url: str = ""
    answer: Answer = lambda body, seen: "yes"
    other: Callable[[str, Any], tuple[int, Any]] = lambda path, body: (404, {"error": "no such route"})
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        before = self.seen.count(body)
        self.seen.append(body)
        self.headers.append({k.lower(): v for k, v in request.headers.items()})
        self.paths.append(request.path)
        self.times.append(asyncio.get_running_loop().time())
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        try:
            return await self.respond(request, self.answer(body, before))
        finally:
            self.active -= 1

    async def respond(self, request: web.Request, answer: Scripted | str | bytes | Stream) -> web.StreamResponse:
        if isinstance(answer, Stream):
            response = web.StreamResponse(status=answer.status, headers=answer.headers)
            await response.prepare(request)
            with suppress(ConnectionError):
                await answer.write(response)
            return response
        if isinstance(answer, bytes):
            response = web.StreamResponse(headers={"content-length": str(2 * len(answer) + 1)})
            await response.prepare(request)
            await response.write(answer)
            assert request.transport is not None
            request.transport.close()
            return response
        if isinstance(answer, str):
            answer = completion(answer)
        await asyncio.sleep(answer.delay_s)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))

    async def beside(self, request: web.Request) -> web.Response:
        status, said = self.other(request.path, await request.json() if request.can_read_body else None)
        return web.json_response(said, status=status)

    def texts(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.seen]


@contextmanager
def running(app: web.Application) -> Iterator[str]:
    """Run an application in a thread of its own while the block lasts, and yield its address."""
    started = threading.Event()
    made: list[tuple[str, Callable[[], object]]] = []

    async def serve() -> None:
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        made.append((url, lambda: loop.call_soon_threadsafe(done.set)))
        started.set()
        await done.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(10)
    url, stop = made[0]
    try:
        yield url
    finally:
        stop()
        thread.join(10)


@contextmanager
def serving(server: FaultServer) -> Iterator[FaultServer]:
    """Run a server in a thread of its own while the block lasts."""
    app = web.Application()
    for route in ROUTES.values():
        app.router.add_post(route, server.handle)
    app.router.add_route("*", "/{path:.*}", server.beside)
    with running(app) as url:
        server.base_url = f"{url}/v1"
        yield server


@pytest.fixture
def fault_server() -> Iterator[FaultServer]:
    """A server whose ``answer`` the test sets."""
    with serving(FaultServer()) as server:
        yield server


def openai_error(status: int, message: str, **fields: Any) -> Scripted:
    headers = fields.pop("headers", {})
    return Scripted(status, json.dumps({"error": {"message": message, **fields}}).encode(), headers)
