"""An attempt at one request: send it, decide what the response means, and prepare what to store.

An unknown complaint is about this request if the model ever answered there, now or in an earlier run, so that a
finished run can be repeated. Otherwise something is wrong with the settings, and the run stops.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from typing import Any, Final

import orjson

from judgekit.client.budget import Amount, Spending
from judgekit.client.estimates import Observed, room
from judgekit.client.limits import Limiter, RetryPolicy, Watch, share_of
from judgekit.client.routes import wait_ready
from judgekit.client.server_warnings import ServerWarnings
from judgekit.client.transports import open_transport
from judgekit.data.tables import Status
from judgekit.errors import EndpointError
from judgekit.store.records import Record
from judgekit.wire.access import Secret, api_key
from judgekit.wire.constraints import Way, leaves, obeys, unconstrained
from judgekit.wire.quirks import (
    DOWN,
    MALFORMED,
    OVERSIZED,
    SETTINGS,
    THROTTLED,
    UNEXPLAINED,
    Accepted,
    Complaint,
    Fatal,
    Refused,
    Retry,
    ServerQuirks,
    Unsupported,
    decoded,
    read_response,
)
from judgekit.wire.types import (
    Endpoint,
    Failure,
    MalformedHeadError,
    NotConnectedError,
    Outcome,
    Reply,
    Request,
    TooLargeError,
    Transport,
)

_NEVER_CONNECTED_RETRIES: Final = 2
# The number of requests in a row that may fail, or be rejected, before and after a model's first reply. A server that
# never answered has a fault of its own, but a proven one may well reject 200 prompts in a row.
_FIRST_FAILURES: Final = 8
_LATER_FAILURES: Final = 20
_LONGEST: Final = 60
_REJECTION_STATUSES: Final = frozenset({400, 422, 500, 501})
_SETTINGS_IN_A_ROW: Final = 5
"""After a good reply, this many refusals of the key, the model or the address in a row stop a run: one may pass."""
_LEAST_ROOM: Final = 32
"""Tokens that are enough for a verdict in any form; the model's context never reduces a reply's room below this."""
_FIRST_REJECTIONS: Final = 50
_LATER_REJECTIONS: Final = 200

_SERVER_ERROR: Final = 500
_WHOLE: Final = frozenset({None, "stop", "eos", "end_turn", "stop_sequence"})
"""The ends of complete replies."""

_PAID_IN_VAIN: Final[Mapping[type[OSError], str]] = {MalformedHeadError: MALFORMED, TooLargeError: OVERSIZED}
"""Replies that cannot be read."""


@dataclass
class Shared:
    """State that a session's clients share across event loops.

    Attributes:
        spending: keeps to the budget.
        note: tells the user something; ``doubt`` if it casts doubt on the replies.
        knows: whether the store holds a reply of an endpoint's model.
        transports: makes the transport of an endpoint; None for `open_transport`.
        backoff_s: the first wait between two attempts, on average half of it.
        wait_s: seconds to wait for a server that is not ready.
        part: the part's number and the number of parts, which share the limits.
        retries: number of retries without a reply, by endpoint and kind of reason.
    """

    spending: Spending
    note: Callable[..., None]
    knows: Callable[[Endpoint], bool]
    transports: Callable[[Endpoint], Transport] | None
    backoff_s: float
    wait_s: float
    part: tuple[int, int] = (1, 1)
    retries: Counter[str] = field(default_factory=Counter)
    _limiters: dict[Endpoint, Limiter] = field(default_factory=dict)
    _models: dict[tuple[str, str, str], tuple[ServerQuirks, ServerWarnings]] = field(default_factory=dict)

    def limiter(self, endpoint: Endpoint) -> Limiter:
        """Return the limiter of an endpoint."""
        if endpoint not in self._limiters:
            number, of = self.part
            self._limiters[endpoint] = Limiter(share_of(endpoint, number, of) if of > 1 else endpoint)
        return self._limiters[endpoint]

    def learned(self, endpoint: Endpoint) -> tuple[ServerQuirks, ServerWarnings]:
        """Return what is known about the model behind an endpoint, and the watcher of its replies."""
        model = (endpoint.identity, endpoint.model, endpoint.api)
        if model not in self._models:
            self._models[model] = ServerQuirks(), ServerWarnings(endpoint, self.note)
        return self._models[model]


class Client:
    """State that the attempts at one endpoint share: transport, limits, and what is known about the server.

    Attributes:
        transport: carries the bytes.
        limiter: grants the slots for attempts.
        closed: whether sending has ended.
        unsettled: the number of attempts without an outcome.
        sending: the time at which each attempt on the wire was sent, oldest first.
        connected: whether a response ever came.
        keyless: whether requests go without a key.
    """

    def __init__(self, endpoint: Endpoint, shared: Shared, start: Callable[[Client, Attempt], None]) -> None:
        """Prepare for one endpoint; ``start`` starts an attempt that has a slot."""
        spending = shared.spending
        spending.check(endpoint)
        self.endpoint = endpoint
        self.shared = shared
        self._start = start
        self.price = spending.price(endpoint)
        self.secret = Secret.of(endpoint)
        self.keyless = not (api_key(endpoint) or endpoint.headers or endpoint.own_transport or endpoint.application)
        if shared.transports:
            self.transport = shared.transports(endpoint)
        else:
            self.transport = open_transport(endpoint, shared.note)
        self.limiter = shared.limiter(endpoint)
        self.quirks, self.warnings = shared.learned(endpoint)
        self.watch = Watch(endpoint, lambda text: shared.note(self.secret.cut(text)), lambda: self.proven)
        self.observed = Observed()
        self.limits_cost = spending.budget.max_cost is not None
        self.unsettled = 0
        self.closed = False
        self._new: deque[Attempt] = deque()
        self._again: deque[Attempt] = deque()
        self.sending: dict[Attempt, float] = {}
        self.connected = self._looked = False
        self._readying: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._given_up = self._rejected = self._doubted = 0
        self._good = 0
        self.limiter.join(self.begin)

    def begin(self) -> None:
        """Begin attempts while slots are free."""
        while (self._again or self._new) and self.limiter.take():
            self._start(self, (self._again or self._new).popleft())

    def following(self) -> Attempt | None:
        """Return the attempt that takes over the slot of one that ended; retries go first."""
        waiting = self._again or self._new
        if waiting and self.limiter.keeps():
            return waiting.popleft()
        return None

    def stop(self) -> None:
        """Begin no further attempt."""
        self.closed = True
        self._new.clear()
        self._again.clear()

    async def aclose(self) -> None:
        """Close all connections."""
        self.stop()
        self.limiter.leave(self.begin)
        await self.transport.aclose()

    def add(self, attempt: Attempt) -> None:
        """Queue a new attempt."""
        if not self.unsettled:
            self.watch.answered()  # failures before an idle time say nothing about the requests that follow
        self.unsettled += 1
        self._new.append(attempt)

    def try_again(self, attempt: Attempt, wait_s: float) -> None:
        """Queue an attempt again after a wait, during which it holds no slot."""

        def queue_up() -> None:
            if not self.closed:
                self._again.append(attempt)
                self.begin()

        asyncio.get_running_loop().call_later(wait_s, queue_up)

    async def ready(self) -> None:
        """Wait for the server; all attempts share one wait."""
        if self._readying is None:
            self._readying = asyncio.create_task(wait_ready(self.endpoint, self.shared.wait_s, self.shared.note))
        await asyncio.shield(self._readying)

    @property
    def proven(self) -> bool:
        """Whether the model ever answered there, now or in an earlier run."""
        if not self.quirks.replies and not self._looked:
            self._looked = True
            self.quirks.replies += self.shared.knows(self.endpoint)
        return self.quirks.replies > 0

    def sent(self, attempt: Attempt) -> None:
        """Note that an attempt is on the wire; one timer ends all that take too long."""
        self.sending[attempt] = self.watch.now()
        if self._timer is None:
            self._look()

    def _look(self) -> None:
        """End attempts that take too long, report a silence, and set the timer for the next look."""
        self._timer, now = None, self.watch.now()
        for attempt, begun in self.sending.items():
            if now - begun >= self.endpoint.timeout_s:
                attempt.time_out()
        sending = (begun for attempt, begun in self.sending.items() if attempt.phase is Phase.SENDING)
        oldest = next(sending, None)
        if oldest is not None:
            due = min(self.watch.tell_silence(oldest), oldest + self.endpoint.timeout_s)
            self._timer = asyncio.get_running_loop().call_later(due - now, self._look)

    def answered(self) -> None:
        """Note a reply."""
        # One reply in between shows that the server works and that single requests failed.
        self.quirks.replies += 1
        self._good += 1
        self._given_up = self._rejected = self._doubted = 0
        self.limiter.succeeded()

    def failed(self, failure: Retry, retry_policy: RetryPolicy) -> None:
        """Note a temporary failure; stop the run if nothing but failures came for too long."""
        self.shared.retries[f"{self.endpoint.name}: {failure.kind}"] += 1
        retry_policy.failed(failure, self.watch.now())
        if why := self.watch.failed(failure):
            raise self.stopped(why)
        if failure.after is not None:
            self.limiter.pause(failure.after)

    def doubted(self, fatal: Fatal) -> Retry:
        """Return the response to a refusal that would meet every request: after a good reply, a retry.

        Raises:
            EndpointError: there was no good reply with this key and model, or none between several such refusals; or
                the refusal is about neither (a redirect, an empty account).
        """
        self._doubted += 1
        reason = fatal.cured(self.keyless)
        if fatal.setting is None or not self._good or self._doubted >= _SETTINGS_IN_A_ROW:
            raise self.stopped(reason)
        return Retry(reason, SETTINGS)

    def stopped(self, reason: str) -> EndpointError:
        """Return the error that stops a run."""
        return EndpointError(f"endpoint {self.endpoint.name!r} ({self.endpoint.base_url}): {self.secret.cut(reason)}")

    def given_up(self, request: Request, retry_policy: RetryPolicy) -> Failure:
        """Return the failure of a request that has no tries left."""
        enough: float = _FIRST_FAILURES
        if self.proven:
            enough = max(_LATER_FAILURES, 2 * self.endpoint.concurrency)
        self._given_up += 1
        refused = Refused(retry_policy.last.reason + retry_policy.told)
        return self._failure(request, refused, self._given_up, enough)

    def rejected(self, request: Request, refused: Refused) -> Failure:
        """Return the failure of a rejected request. It cost nothing, and a re-run asks it again."""
        enough: float = _FIRST_REJECTIONS
        if self.proven:
            enough = max(_LATER_REJECTIONS, self.quirks.replies)
            if refused.value:
                enough = max(_LATER_FAILURES, 2 * self.endpoint.concurrency)
            elif refused.plain:
                enough = inf  # any number of prompts may be too long
        self._rejected += 1
        return self._failure(request, refused, self._rejected, enough)

    def _failure(self, request: Request, refused: Refused, in_a_row: int, enough: float) -> Failure:
        """Return a failure; stop the run after ``enough`` of them without a reply in between."""
        if in_a_row >= enough:
            raise self.stopped(f"{in_a_row} requests in a row failed, the last one with: {refused.reason}")
        return Failure(request.key, refused.status, self.secret.cut(refused.reason))


class Phase(Enum):
    """Where an attempt is: waiting (for a slot, its turn or money), on the wire, or timed out there."""

    WAITING = auto()
    SENDING = auto()
    LATE = auto()


@dataclass(slots=True)
class _Exchange:
    """The result of sending a request once.

    Attributes:
        response: what the response means.
        status: its HTTP status; 0 without a response.
        worked: whether the server did the work, which is paid for.
        json: the parsed body of a reply.
        way: how a constraint was added to the request, if any.
    """

    response: Reply | Complaint
    status: int = 0
    worked: bool = False
    json: dict[str, Any] = field(default_factory=dict)
    way: Way | None = None


_NOTHING: Final = _Exchange(Retry(""))


class Attempt:
    """A request on its way to one outcome.

    Attributes:
        request: what is asked.
        phase: where it is.
        record: the record to store, if any.
    """

    __slots__ = (
        *("_client", "_incurred", "_retry_policy", "_prompt", "_sent_room", "_squeezed", "_task"),
        *("phase", "record", "request"),
    )

    def __init__(self, client: Client, request: Request, incurred: Amount) -> None:
        """Send ``request`` by ``client`` and add the cost to ``incurred``."""
        self.request = request
        self.phase = Phase.WAITING
        self.record: Record | None = None
        self._client = client
        self._incurred = incurred
        self._retry_policy = RetryPolicy(client.endpoint)
        self._task: asyncio.Task[Any] | None = None
        # Known facts: the prompt's tokens, the room of its reply, and whether that is the minimum.
        self._prompt: int | None = None
        self._sent_room: int | None = None
        self._squeezed = False

    async def run(self) -> Outcome | None:
        """Try once; return the outcome, or None if the request is queued for another try."""
        client, retry_policy, self._task = self._client, self._retry_policy, asyncio.current_task()
        if client.shared.wait_s:
            await client.ready()
        outcome = await self._try()
        if not isinstance(outcome, Retry):
            return outcome
        self._go_on()
        # Not a loop of tenacity's (as in `wait_ready`), which would keep a task and a slot for a waiting request. Waits
        # are random, so that requests that failed together do not come back together.
        longest = client.shared.backoff_s * min(_LONGEST, 2 ** (retry_policy.attempts - 1))
        backoff_s = min(random.uniform(0, longest), client.watch.left(retry_policy))
        wait_s = max(outcome.after or 0.0, backoff_s)  # some servers ask to wait 0 s, whatever happens
        if retry_policy.over(wait_s):
            return client.given_up(self.request, retry_policy)
        client.watch.tell_retry(retry_policy)
        client.try_again(self, wait_s)
        return None

    def stop(self, paid: bool = True) -> None:
        """Stop, or wait for a request that was sent and may be ``paid`` for already."""
        sending = self.phase in (Phase.SENDING, Phase.LATE)
        # A task that is cancelled before it begins never runs its `finally`, and waiting for it would never end.
        if self._task is not None and (paid or not (sending or self.record)):
            self._task.cancel()

    def time_out(self) -> None:
        """Cancel what is being sent; it may be retried."""
        if self.phase is Phase.SENDING and self._task is not None and self._task.cancel():
            self.phase = Phase.LATE

    def _go_on(self) -> None:
        if self._client.closed:
            raise asyncio.CancelledError

    async def _try(self) -> Outcome | Retry:
        """Send the request, repeatedly while parameters are negotiated."""
        client, quirks, constraint = self._client, self._client.quirks, self.request.constraint
        given_up: Way | None = None
        while True:
            exchange = await self._send(free=given_up is not None)
            response, way = exchange.response, exchange.way
            if isinstance(response, Reply):
                client.watch.answered()
                if given_up is not None:
                    quirks.rule_out(constraint, given_up, "refused")
                elif way is not None:
                    quirks.took(constraint, way)
                    if _ignores(response, constraint):
                        quirks.rule_out(constraint, way, "ignored")
                self._tell_form(way)
                return response
            if way is not None and isinstance(response, Unsupported) and self._adds(way, response.param):
                quirks.rule_out(constraint, way, "refused")
                continue
            if way is not None and not quirks.takes(constraint, way) and _may_be_why(exchange):
                # Only this request is sent without it: a reply then shows that the constraint was the cause.
                given_up = way
                continue
            given_up = None
            if isinstance(response, Unsupported):
                if (action := quirks.learn(response.param, response.most)) is not None:
                    client.watch.answered()
                    client.warnings.tell(response.param, f"refuses {response.param}: {action} from now on")
                    continue
                response = self._unlearned(exchange.status, response)
            if isinstance(response, Refused) and response.too_long and self._fits(response):
                client.watch.answered()
                continue
            if isinstance(response, Fatal):
                response = client.doubted(response)
            if isinstance(response, Retry):
                client.failed(response, self._retry_policy)
                return response
            client.watch.answered()
            return client.rejected(self.request, response)

    def _tell_form(self, way: Way | None) -> None:
        """Tell the user how replies are constrained, after a reply that came in this way."""
        client, constraint = self._client, self.request.constraint
        if constraint:
            news = client.quirks.news(constraint, way)
            if news is not None:
                client.warnings.tell(news, news)

    def _adds(self, way: Way, param: str) -> bool:
        """Whether a parameter is in the body only because of a constraint."""
        return param in way.fields and f'"{param}":'.encode() not in self.request.body

    def _unlearned(self, status: int, response: Unsupported) -> Retry | Refused | Fatal:
        """Return what a refusal means if nothing can be learned from the parameter that it names."""
        if status >= _SERVER_ERROR:
            return Retry(response.reason)
        if self._client.proven:
            return Refused(response.reason, plain=False, value=True)
        return Fatal(response.reason)

    def _fits(self, refused: Refused) -> bool:
        """Learn the model's context from a refusal; return whether less room for the reply may make both fit."""
        client, asked = self._client, room(self.request.body)
        if refused.context is None or not asked:
            return False
        client.warnings.tell("context", client.quirks.learn_context(refused.context))
        self._prompt = refused.prompt or self._prompt
        if refused.prompt is not None and refused.prompt >= refused.context:
            return False
        if self._sent_room is None or (self._left() or 0) < self._sent_room:
            return True
        # The prompt has more tokens than expected, and the server does not say how many.
        self._squeezed = not self._squeezed and self._sent_room > _LEAST_ROOM
        return self._squeezed

    def _left(self) -> int | None:
        """Return the tokens that the model's context leaves for the reply, if the context is known."""
        context = self._client.quirks.context
        if context is None:
            return None
        if self._squeezed:
            return _LEAST_ROOM
        if self._prompt is not None:
            return max(1, context - self._prompt)
        return max(_LEAST_ROOM, context - self._client.observed.reserved(self.request.body, 0)[0])

    async def _send(self, *, free: bool) -> _Exchange:
        """Wait for the rate limits and the budget, send (``free`` of a constraint), and account for the cost."""
        self._go_on()
        client, request, spending = self._client, self.request, self._client.shared.spending
        most, reserved = (0, 0), 0.0
        if client.limits_cost and client.price is not None:
            most = client.observed.reserved(request.body, room(request.body))
            reserved = client.price.of(*most)
        started = await client.limiter.turn()
        await spending.reserve(reserved)
        # Read only now, since others may have learned while this one waited.
        way = None if free else client.quirks.way(request.constraint)
        left = self._left()
        asked = unconstrained(request.body) if request.free else request.body
        body = client.quirks.apply(asked, {} if way is None else way.fields, left)
        self._sent_room = room(body) if left is not None else room(request.body)
        exchange, usage = _NOTHING, None
        begun = time.perf_counter()
        try:
            exchange = await self._exchange(body, started)
            if isinstance(exchange.response, (Reply, Retry)):
                usage = exchange.response.usage
        finally:
            self.phase = Phase.WAITING
            counted = not exchange.worked or (usage is not None and usage.total is not None)
            if not counted and client.price is not None:
                most = client.observed.reserved(request.body, room(request.body))
                client.warnings.tell(
                    "tokens",
                    "is served without a count of tokens: money and budgets use an estimate (by the length and script"
                    " of the prompt, and the largest allowed reply)",
                )
            if not exchange.worked:
                most = (0, 0)
            spending.settle(
                reserved, 0.0 if client.price is None else client.price.at_most(usage, most), counted=counted
            )
            if client.limits_cost or left is not None:
                client.observed.add(request.body, usage)
            self._incurred.add(usage, client.price, time.perf_counter() - begun, most)
        exchange.way = way
        if isinstance(exchange.response, Reply):
            self._take(exchange.response, body, exchange.json)
        return exchange

    def _take(self, reply: Reply, sent: bytes, body: Mapping[str, Any]) -> None:
        """Make a reply's record, and learn what it tells about the server."""
        request = self.request
        self.record = Record(
            key=request.key,
            endpoint=request.endpoint.identity,
            sample=request.sample,
            body=request.body.decode(),
            sent=None if sent == request.body else sent.decode(),
            reply=reply.raw,
            usage=None if reply.usage is None else reply.usage.pair,
            time=time.time(),
            seconds=reply.seconds,
        )
        reply.stored_at = self.record.time
        self._client.answered()
        self._client.warnings.look(request, sent, reply, body)

    async def _exchange(self, body: bytes, started: float) -> _Exchange:
        """Send a body and read the response."""
        client, endpoint, watch = self._client, self._client.endpoint, self._client.watch
        self.phase = Phase.SENDING
        client.sent(self)
        try:
            status, headers, data = await client.transport.send(endpoint, body)
            seconds = watch.now() - client.sending[self]
            watch.heard(seconds)
            data = decoded(data, endpoint.max_reply_bytes, headers.get("content-encoding", ""))
        except (asyncio.CancelledError, TimeoutError) as problem:
            ours = self.phase is Phase.LATE and self._task is not None and not self._task.uncancel()
            if isinstance(problem, asyncio.CancelledError) and not ours:
                raise
            client.limiter.overloaded(started)
            # The server may have worked all that time, and may charge for it.
            return _Exchange(Retry(f"no answer within {endpoint.timeout_s:g} s", DOWN), worked=True)
        except NotConnectedError as problem:
            return _Exchange(self._not_connected(problem))
        except OSError as problem:
            kind = _PAID_IN_VAIN.get(type(problem))
            return _Exchange(Retry(str(problem) or type(problem).__name__, kind or DOWN), worked=kind is not None)
        finally:
            del client.sending[self]
        client.connected = True
        # Some gateways repeat the key in their responses: it must not be stored, shown or read.
        data = client.secret.cut_response(data)
        # A question to an application has no parameters to leave out, whatever its error names.
        rejected = status in _REJECTION_STATUSES
        params: dict[str, Any] = {}
        if rejected and not endpoint.application:
            params = orjson.loads(body)
        response = read_response(status, headers, data, params, rejected and (endpoint.application or client.proven))
        if isinstance(response, Accepted):
            # Finding a recorded reply takes a different time than asking the model.
            took = None if endpoint.built_in else seconds
            reply = Reply(self.request.key, response.raw, body=response.json, seconds=took)
            return _Exchange(reply, status, worked=True, json=response.json)
        if isinstance(response, Retry) and response.kind == THROTTLED:
            client.limiter.overloaded(started)
        if isinstance(response, Fatal) and endpoint.application and status >= _SERVER_ERROR:
            response = Retry(response.reason)  # the application's own key was wrong, not a setting here
        if isinstance(response, Retry) and response.kind == UNEXPLAINED and client.keyless and not client.proven:
            response = Fatal(response.reason, "key")  # the message of LiteLLM's proxy if no key was sent
        return _Exchange(response, status, worked=status < 300)

    def _not_connected(self, problem: NotConnectedError) -> Retry | Fatal:
        endpoint = self._client.endpoint
        tries = min(_NEVER_CONNECTED_RETRIES, endpoint.max_retries)
        if self._client.connected or self._retry_policy.attempts < tries:
            return Retry(f"no connection: {problem}", DOWN)
        address = endpoint.base_url.rstrip("/")
        if not endpoint.application:
            address += "/models"
        return Fatal(
            f"no connection was made: {problem}. Is the server running, and is the address right?"
            f" Check with: curl {address}"
        )


def _may_be_why(exchange: _Exchange) -> bool:
    """Whether a server may have rejected the added constraint without naming a parameter."""
    response = exchange.response
    if isinstance(response, Fatal):
        named = response.setting is not None
    elif isinstance(response, Refused):
        named = response.too_long or response.status is Status.REFUSED
    else:
        named = isinstance(response, Unsupported)
    return exchange.status in _REJECTION_STATUSES and not named


def _ignores(reply: Reply, constraint: Mapping[str, Any]) -> bool:
    """Whether a reply shows that the server ignored the requested constraint."""
    if reply.refusal is not None:
        return False
    # A reply that was cut off may still have the form.
    if reply.finish_reason == "length":
        return leaves(reply.text, constraint)
    # An empty reply has no form either: llama-server's completions are empty if the reply begins with the stop.
    return reply.finish_reason in _WHOLE and not obeys(reply.text, constraint)
