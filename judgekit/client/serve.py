"""The store for other tools: an OpenAI-compatible server that answers from the store, and passes on what it lacks.

A request has the identity that it has in a run: its endpoint, and every field of its body. What is in flight is joined,
so that several tools pay for the same request once. Unlike in a run, nothing is negotiated, tried again or waited for:
an error goes back as it came, since the tool knows what to do about it. It is never stored, and neither is a key.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from judgekit.client.client import Client, Passed
from judgekit.client.session import Session
from judgekit.client.transports import SAMPLE_HEADER
from judgekit.errors import BudgetError, DataError, EndpointError, StoppedError, StoreError, UsageError
from judgekit.wire.access import key_among, on_this_machine
from judgekit.wire.jsontext import canonical, parse_json
from judgekit.wire.shapes import ROUTES, SHOWN, Api
from judgekit.wire.types import Endpoint, Reply, Request

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as Asked
    from starlette.responses import Response

__all__ = ["Relay", "application", "owned", "serve"]

_SOURCES: Final = ("store", "joined", "sent", "failed")
_APIS: Final[tuple[Api, ...]] = ("chat", "completions")
"""Those whose requests say everything: a response may go on from an earlier one that the server keeps."""

_KNOWN: Final = f"{', '.join(f'POST {ROUTES[api]}' for api in _APIS)}, GET /v1/models, GET /health and GET /metrics"


@contextmanager
def owned(store: Path) -> Iterator[None]:
    """Hold a store for one `judgekit serve`, until the block or the process ends, however it ends.

    Raises:
        UsageError: another one holds it.
    """
    with closing(sqlite3.connect(store / "serve.lock", timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise UsageError(
                f"another `judgekit serve` uses the store {store}: point your tools at that one, or name another folder"
                " with --cache"
            ) from None
        yield


class Relay:
    """Answers requests from a session's store, or passes them on. Belongs to the event loop in which it is made.

    Args:
        session: the store, the limits and the budget.
        endpoints: whom to ask; a request names one by its model, or by its name where several have that model.

    Raises:
        ConfigError: an endpoint's key is not in the environment.
        UsageError: there is no LLM among the endpoints, or one without a price beside a limit of cost.
    """

    def __init__(self, session: Session, endpoints: Iterable[Endpoint]) -> None:
        llms = [endpoint for endpoint in endpoints if endpoint.kind == "chat" and endpoint.api in _APIS]
        if not llms:
            raise UsageError(
                "no LLM is named whose api is chat or completions: give --base-url and --model, or an experiment file"
                " with [endpoints]"
            )
        models = Counter((endpoint.api, endpoint.model) for endpoint in llms)
        self.models: dict[Api, dict[str, Endpoint]] = {api: {} for api in _APIS}
        for one in llms:
            self.models[one.api][one.model if models[one.api, one.model] == 1 else one.name] = one
        self.counts: dict[str, Counter[str]] = {one.name: Counter() for one in llms}
        self._session = session
        self._loop = session.enter()
        self._clients = {(one, ""): Client(self._loop, one) for one in llms}
        self._flights: dict[str, tuple[str, asyncio.Task[Reply | Passed]]] = {}

    @property
    def problem(self) -> Exception | None:
        """Why nothing more is sent, if so; what is stored is given all the same."""
        return self._loop.error

    def stop(self, problem: StoppedError) -> None:
        """Send nothing more."""
        self._loop.error = problem

    def request(self, api: Api, data: bytes, kind: str, sample: str) -> Request:
        """Return the request that a body of this content type stands for, without what says nothing."""
        if not kind.startswith("application/json"):  # a web page may send anything else to anybody without being asked
            raise _Refusal(415, "send JSON, with the content type application/json")
        try:
            body = parse_json(data)
        except ValueError:
            raise _Refusal(400, "the body is not JSON") from None
        shown, what = SHOWN[api], "a list of messages" if api == "chat" else "a prompt"
        if not isinstance(body, dict) or not isinstance(body.get(shown), list if api == "chat" else list | str):
            raise _Refusal(400, f"the body must be an object with {what}")
        if body.pop("stream", None):
            reason = "judgekit serve keeps whole replies and does not stream: leave out stream, or set it to false"
            raise _Refusal(400, reason)
        endpoint = next((one for name, one in self.models[api].items() if name == body.get("model")), None)
        if endpoint is None:
            known = ", ".join(self.models[api]) or "none"
            raise _Refusal(404, f"no model {body.get('model')!r} is served at {ROUTES[api]} (there are: {known})")
        if key := key_among({name: value for name, value in body.items() if name not in (shown, "tools")}):
            raise _Refusal(400, f"{key} looks like a key, and bodies are stored: send keys as the header Authorization")
        if not (sample.isascii() and sample.isdigit()):
            raise _Refusal(400, f"{SAMPLE_HEADER} must be a number, not {sample!r}")
        try:
            return Request(endpoint, canonical({**body, "model": endpoint.model}), int(sample))
        except (DataError, ValueError) as problem:
            raise _Refusal(400, f"the body cannot be sent: {problem}") from None

    async def ask(self, request: Request, key: str = "") -> tuple[str, Reply | Passed]:
        """Return where the answer to a request comes from, as `counts` names it, and the answer.

        Args:
            request: what is asked.
            key: what the tool sent, for an endpoint without a key of its own.

        Raises:
            StoppedError: it may not be sent, or could not be stored.
        """
        source = "failed"
        try:
            found, answer = await self._ask(request, "" if request.endpoint.keyed else key)
            if isinstance(answer, Reply):
                source = found
            return source, answer
        except StoreError as problem:
            self.stop(problem)  # whatever is sent now is paid, and lost
            raise
        finally:
            self.counts[request.endpoint.name][source] += 1

    async def _ask(self, request: Request, key: str) -> tuple[str, Reply | Passed]:
        while True:
            if stored := self._session.lookup([request.key]).get(request.key):
                return "store", stored
            source, flight = "joined", self._flights.get(request.key)
            if flight is None:
                source, flight = "sent", (key, asyncio.create_task(self._send(request, key)))
                self._flights[request.key] = flight
                flight[1].add_done_callback(lambda _: self._flights.pop(request.key))
            try:
                answer = await asyncio.shield(flight[1])  # a tool that does not wait finds the reply in the store later
            except asyncio.CancelledError:
                raise (self.problem if flight[1].cancelled() and self.problem else asyncio.CancelledError) from None
            if isinstance(answer, Reply) or flight[0] == key:
                return source, answer
            # What failed with the key of another tool may succeed with this one.

    async def _send(self, request: Request, key: str) -> Reply | Passed:
        who = request.endpoint, key
        if who not in self._clients:
            self._clients[who] = Client(self._loop, request.endpoint, key)
        return await self._clients[who].pass_on(request)

    def metrics(self) -> str:
        """Return what was asked and taken so far, as Prometheus reads it."""
        values: dict[str, float] = defaultdict(float)

        def add(name: str, value: float, **labels: str) -> None:
            shown = ",".join(f"{label}={orjson.dumps(text).decode()}" for label, text in labels.items())
            values[f"judgekit_{name}{{{shown}}}"] += value

        for name, count in self.counts.items():
            for source in _SOURCES:
                add("requests_total", count[source], endpoint=name, source=source)
        for name, usage in self._session.totals().items():
            taken = usage.incurred
            add("attempts_total", taken.requests, endpoint=name)
            add("tokens_total", taken.prompt_tokens, endpoint=name, kind="prompt")
            add("tokens_total", taken.completion_tokens, endpoint=name, kind="completion")
            if taken.money is not None:
                add("cost_total", taken.money, endpoint=name)
        for (endpoint, _), client in self._clients.items():
            for server in client.servers.all:
                add("in_flight", server.active, endpoint=endpoint.name, server=server.url)
        lines = []
        for name, series in groupby(sorted(values), lambda one: one.partition("{")[0]):
            lines.append(f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}")
            lines += [f"{one} {values[one]:.12g}" for one in series]
        return "\n".join(lines) + "\n"

    async def aclose(self, *, wait: bool = True) -> None:
        """Wait for what is in flight, store it, and close all connections."""
        tasks = [task for _, task in self._flights.values()]
        for task in () if wait else tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.servers.aclose()
        await self._session.leave(self._loop)


class _Refusal(Exception):
    """A request that is not served: the HTTP status and why."""


def application(relay: Relay, token: str | None = None) -> Starlette:
    """Return the server.

    Args:
        relay: answers.
        token: what tools send as their key. Without one the keys of tools pass through, and only requests to this
            machine by one of its own names are answered, which those of web pages elsewhere are not.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.routing import Route

    def respond(answer: Passed) -> Response:
        return Response(answer.body, answer.status, {"content-type": "application/json", **answer.headers})

    def admit(asked: Asked) -> None:
        if token is None and not on_this_machine(asked.url.hostname or ""):
            raise _Refusal(403, "only this machine is served; other names need --host and a token")
        given = asked.headers.get("authorization", "").encode()
        if token is not None and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            raise _Refusal(401, "send the token of judgekit serve as the key")

    async def complete(asked: Asked) -> Response:
        admit(asked)
        api = next(api for api in _APIS if ROUTES[api] == asked.url.path)
        kind, sample = asked.headers.get("content-type", ""), asked.headers.get(SAMPLE_HEADER, "0")
        request = relay.request(api, await asked.body(), kind, sample)
        key = asked.headers.get("authorization", "").removeprefix("Bearer ") if token is None else ""
        source, answer = await relay.ask(request, key)
        return respond(
            answer if isinstance(answer, Passed) else Passed(200, {"x-judgekit-source": source}, answer.raw.encode())
        )

    async def models(asked: Asked) -> Response:
        admit(asked)
        names = dict.fromkeys(name for models in relay.models.values() for name in models)
        known = [{"id": name, "object": "model", "created": 0, "owned_by": "judgekit"} for name in names]
        return respond(Passed(200, {}, orjson.dumps({"object": "list", "data": known})))

    async def health(asked: Asked) -> Response:
        said = {"status": "ok" if relay.problem is None else str(relay.problem)}
        return respond(Passed(200 if relay.problem is None else 503, {}, orjson.dumps(said)))

    async def metrics(asked: Asked) -> Response:
        admit(asked)
        return Response(relay.metrics(), media_type="text/plain; version=0.0.4")

    async def failed(asked: Asked, problem: Exception) -> Response:
        """Say why not; OpenAI's client is told not to try again."""
        if isinstance(problem, StoppedError):
            status, reason = 402 if isinstance(problem, BudgetError) else 503, str(problem)
        elif isinstance(problem, _Refusal):
            status, reason = problem.args
        else:
            status, reason = 404, f"{asked.method} {asked.url.path} is not served; {_KNOWN} are"
        return respond(Passed.saying(status, reason, **{"x-should-retry": "false"}))

    routes = [
        *(Route(ROUTES[api], complete, methods=["POST"]) for api in _APIS),
        Route("/v1/models", models),
        Route("/health", health),
        Route("/metrics", metrics),
    ]
    return Starlette(routes=routes, exception_handlers=dict.fromkeys((HTTPException, StoppedError, _Refusal), failed))


async def serve(
    session: Session,
    endpoints: Iterable[Endpoint],
    listening: socket.socket,
    token: str | None,
    tell: Callable[[str], None],
) -> dict[str, Counter[str]]:
    """Serve until SIGINT or SIGTERM; return how many requests were answered, by endpoint and by where from.

    What is in flight then is waited for, unless the signal comes again; what waits for its turn is refused.

    Raises:
        ConfigError, UsageError: see `Relay`, or the packages of the extra ``serve`` are missing.
    """
    try:
        import uvicorn
    except ImportError:
        raise UsageError("judgekit serve needs starlette and uvicorn: pip install 'judgekit[serve]'") from None
    relay = Relay(session, endpoints)
    loop = asyncio.get_running_loop()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # Only now: who reads this may send a request or a signal.
            host, port = listening.getsockname()[:2]
            tell(f"serving http://{f'[{host}]' if ':' in host else host}:{port}/v1; Ctrl-C stops")
            for api, models in relay.models.items():
                for name, endpoint in models.items():
                    tell(f"  {name} at {ROUTES[api]}, from {endpoint.address}")

        def handle_exit(self, sig: int, frame: object) -> None:
            self.force_exit, self.should_exit = self.should_exit, True
            relay.stop(EndpointError("judgekit serve is stopping"))
            if not self.force_exit:
                loop.call_soon_threadsafe(tell, "stopping: waits for what is in flight; again leaves at once")

    config = uvicorn.Config(
        application(relay, token),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=75,  # longer than tools keep connections, which else break as they are used again
    )
    server = Server(config)
    try:
        await server.serve(sockets=[listening])
    finally:
        await relay.aclose(wait=not server.force_exit)
    return relay.counts
