"""Asks one endpoint: waits for a slot, sends, retries, negotiates parameters, and says what became of each request.

What a complaint that is not understood means depends on whether the model ever answered there, now or in an earlier
run: if it did, the complaint is about that request, and a run that was finished can be run again; if it did not,
something is wrong with the settings, and the run stops.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential

from judgekit.client.limits import Patience, Watch
from judgekit.client.routes import count_tokens, wait_ready
from judgekit.client.transports import open_transport
from judgekit.errors import EndpointError
from judgekit.store.records import Record
from judgekit.wire.access import Secret
from judgekit.wire.responses import (
    Accepted,
    Complaint,
    Fatal,
    Refused,
    Response,
    Retry,
    Unsupported,
    decoded,
    read_response,
)
from judgekit.wire.shapes import shown_text
from judgekit.wire.types import (
    RECORDED_URL,
    Endpoint,
    Failure,
    NotConnectedError,
    Outcome,
    Reply,
    Request,
    TooLargeError,
)

if TYPE_CHECKING:
    from judgekit.client.session import Loop

__all__ = ["Client"]

_NEVER_CONNECTED_RETRIES = 2
_FIRST_ALIKE = 8
_LATER_ALIKE = 20
_LONGEST = 60
_NOT_TAKEN = frozenset({400, 422, 500, 501})
_REJECTED_ALIKE = 50
_REJECTED_LATER = 200
_CUT = 1.05
"""How many more tokens a prompt has than are reported, where it is cut."""

_VARYING = re.compile(r"\b[\w-]*\d[\w-]*|'[^']*'|\"[^\"]*\"")
"""What differs between messages that say the same: numbers, request ids, what is quoted."""


class Client:
    """Turns the requests of one endpoint into outcomes, and says what became of them to the loop that it belongs to."""

    def __init__(self, loop: Loop, endpoint: Endpoint) -> None:
        """Prepare for one endpoint."""
        session = loop.session
        session.spending.check(endpoint)
        self.endpoint = endpoint
        self._loop = loop
        self._session = session
        self._note = session.note
        self._secret = Secret.of(endpoint)
        self.transport = session.transports(endpoint) if session.transports else open_transport(endpoint, session.note)
        self._limiter = session.limiter(endpoint)
        self._negotiated = session.learned(endpoint)
        self._watch = Watch(endpoint, lambda text: session.note(self._secret.cut(text)), lambda: self._proven)
        self._wait = wait_random_exponential(multiplier=session.backoff_s, max=_LONGEST * session.backoff_s)
        budget = session.spending.budget
        limited = (budget.max_tokens, budget.max_cost) != (None, None)
        self._estimates = limited or self._limiter.counts_tokens
        self._readying: asyncio.Task[None] | None = None
        self._connected = self._looked = False
        self._asked = 0
        self._streak = 0
        self._signature = ""
        self._told: set[str] = set()
        self._without: int | None = 0

    async def ask(self, request: Request) -> Outcome:
        """Return the reply, stored, or why there is none."""
        if not self._asked:
            self._watch.answered()  # what failed before an idle time says nothing of what comes
        self._asked += 1
        if self._session.wait_s and self._readying is None:
            self._readying = asyncio.create_task(wait_ready(self.endpoint, self._session.wait_s, self._note))
        try:
            if self._readying is not None:
                await asyncio.shield(self._readying)
            return await self._ask(request)
        finally:
            self._asked -= 1

    async def _ask(self, request: Request) -> Outcome:
        patience = Patience(self.endpoint)
        found = await self._attempt(request, patience)
        if not isinstance(found, Retry):
            return found
        first: list[Retry] = [found]

        async def attempt() -> Outcome | Retry:
            return first.pop() if first else await self._attempt(request, patience)

        def seconds(state: RetryCallState) -> float:
            wait = min(self._wait(state), self._watch.left(patience))
            return max(patience.last.after or 0.0, wait)  # some ask to wait 0 s, whatever comes

        def over(state: RetryCallState) -> bool:
            if self._loop.error is not None:
                raise self._loop.error
            return patience.over(state.upcoming_sleep)

        def tell(_: RetryCallState) -> None:
            self._watch.tell_retry(patience.last, patience)

        # tenacity comes in after a first failure only: its machinery would be a fifth of the cost of a success
        found = await AsyncRetrying(
            retry=retry_if_result(lambda found: isinstance(found, Retry)),
            wait=seconds,
            stop=over,
            before_sleep=tell,
            retry_error_callback=lambda _: patience.last,
        )(attempt)
        if not isinstance(found, Retry):
            return found
        refused = Refused(found.reason + patience.told)
        if self._proven:
            return self._fail(request, refused, found.reason, max(_LATER_ALIKE, 2 * self.endpoint.concurrency))
        # Nothing was ever answered: whatever the server says each time, it does not answer.
        return self._fail(request, refused, "", _FIRST_ALIKE)

    async def _attempt(self, request: Request, patience: Patience) -> Outcome | Retry:
        released = False
        while True:
            response = await self._send(request, patience)
            if isinstance(response, Reply):
                self._watch.answered()
                if released and "form" not in self._told:
                    self._told.add("form")
                    whom = f"{self.endpoint.name}: the model {self.endpoint.model!r}"
                    self._note(f"{whom} rejects constrained replies: judgekit asks for free text from now on")
                return response
            if released:
                self._negotiated.hold(request.constraint)  # it was not why
            elif not isinstance(response, Unsupported) and patience.status in _NOT_TAKEN:
                released = self._negotiated.release(request.constraint)
                if released:
                    continue
            if isinstance(response, Retry):
                return self._again(response, patience)
            self._watch.answered()
            if isinstance(response, Refused):
                return self._reject(request, response)
            if isinstance(response, Unsupported):
                if self._negotiate(response.param):
                    continue
                if self._proven:
                    return self._reject(request, Refused(response.reason, plain=False))
            raise self._stopped(response.reason)

    @property
    def _proven(self) -> bool:
        if not self._negotiated.replies and not self._looked:
            self._looked = True
            self._negotiated.replies += self._session.knows(self.endpoint)
        return self._negotiated.replies > 0

    def _negotiate(self, param: str) -> bool:
        action = self._negotiated.learn(param)
        if action is not None and param not in self._told:
            self._told.add(param)
            model = f"{self.endpoint.name}: the model {self.endpoint.model!r}"
            self._note(f"{model} refuses {param}: {action} from now on")
        return action is not None

    def _again(self, again: Retry, patience: Patience) -> Retry:
        self._session.retries[f"{self.endpoint.name}: {again.kind}"] += 1
        patience.failed(again, self._watch.now())
        why = self._watch.failed(again)
        if why is not None:
            raise self._stopped(why)
        if again.after is not None:
            self._limiter.pause(again.after)
            self._watch.tell_pause(again, patience)
        return again

    def _stopped(self, reason: str) -> EndpointError:
        return EndpointError(f"endpoint {self.endpoint.name!r} ({self.endpoint.base_url}): {self._secret.cut(reason)}")

    def _reject(self, request: Request, rejected: Refused) -> Failure:
        """Count a request that the server rejects. That costs nothing, and a re-run asks only what was rejected."""
        if not self._proven:
            return self._fail(request, rejected, rejected.reason, _REJECTED_ALIKE)
        if rejected.plain:
            return Failure(request.key, rejected.status, self._secret.cut(rejected.reason))
        return self._fail(request, rejected, rejected.reason, max(_REJECTED_LATER, self._negotiated.replies))

    def _fail(self, request: Request, rejected: Refused, signature: str, enough: int) -> Failure:
        signature = _VARYING.sub("", signature)
        self._streak = self._streak + 1 if signature == self._signature else 1
        self._signature = signature
        if self._streak >= enough:
            raise self._stopped(f"{self._streak} requests in a row failed in the same way: {rejected.reason}")
        return Failure(request.key, rejected.status, self._secret.cut(rejected.reason))

    def _estimate(self, body: bytes) -> tuple[int, int]:
        if not self._estimates:
            return (0, 0)
        values = orjson.loads(body)
        longest = next(filter(None, map(values.get, ("max_tokens", "max_completion_tokens"))), 0)
        return (len(body) // 4, longest if isinstance(longest, int) else 0)

    def _tell_unreported(self, estimate: tuple[int, int]) -> None:
        """Say once that the estimate for a reply stands, since its server reports no tokens."""
        if any(estimate) and not self._negotiated.silent:
            self._negotiated.silent = True
            self._note(
                f"{self.endpoint.name} reports no tokens: budgets and limits use an estimate (four bytes a"
                " token, and the largest allowed reply)"
            )

    async def _send(self, request: Request, patience: Patience) -> Reply | Complaint:
        estimate = self._estimate(request.body)
        limiter, spending = self._limiter, self._session.spending
        started = await limiter.acquire(sum(estimate), again=patience.attempts > 0)
        task = asyncio.current_task()
        try:
            await spending.reserve(self.endpoint, estimate)
            if self._loop.error is not None:
                spending.settle(self.endpoint, estimate, None)
                raise self._loop.error
            # Only now: others may have learned while this one waited.
            body = self._negotiated.apply(request.body, request.constraint)
            usage: tuple[int, int] | None = None
            worked = False
            self._loop.sending.add(task)
            begun = time.perf_counter()
            try:
                response = await self._exchange(body, started, patience)
                if isinstance(response, Accepted):
                    # The time to find a recorded reply is not the time that its model took.
                    timed = self.endpoint.base_url != RECORDED_URL
                    seconds = time.perf_counter() - begun if timed else None
                    reply = Reply(request.key, response.raw, body=response.json, seconds=seconds)
                    usage, worked = reply.usage, True
                elif isinstance(response, Retry):
                    usage, worked = response.usage, response.worked
                elif isinstance(response, Refused):
                    worked = patience.status < 300
            finally:
                used = usage
                if worked and usage is None:
                    used = estimate
                    self._tell_unreported(estimate)
                spending.settle(self.endpoint, estimate, used)
                limiter.correct_tokens(sum(estimate), sum(used or (0, 0)))
                self._loop.charge(request, usage, time.perf_counter() - begun)
            raw = response.raw if isinstance(response, (Accepted, Refused)) else ""
            if not raw:
                return response  # type: ignore[return-value]  # what was accepted is never empty
            kept = await self._loop.save(
                Record(
                    key=request.key,
                    endpoint=request.endpoint.identity,
                    sample=request.sample,
                    body=request.body.decode(),
                    sent=None if body == request.body else body.decode(),
                    reply=raw,
                    usage=usage,
                    time=time.time(),
                    seconds=reply.seconds if isinstance(response, Accepted) else None,
                )
            )
            if not isinstance(response, Accepted):
                return response
            self._negotiated.replies += 1
            self._negotiated.note(body, request.constraint)
            self._streak = 0
            limiter.succeeded()
            await self._notice(request, body, reply, response.json)
            asked = b'"logprobs":' if self.endpoint.api == "completions" else b'"top_logprobs":'
            if asked in request.body:
                self._look_for_logprobs(reply)
            return reply if kept is None else kept
        finally:
            self._loop.sending.discard(task)
            limiter.release()

    async def _notice(self, request: Request, sent: bytes, reply: Reply, said: Mapping[str, Any]) -> None:
        """Tell the user what a reply says about its server, once each; see `judgekit.client.noticing`."""
        learned, whom = self._negotiated, f"{self.endpoint.name}: the model {self.endpoint.model!r}"
        if learned.thinking.uses_up(reply, said):
            self._note(
                f"{whom} thinks before it answers, and a reply had no room left after that. It is asked for again with"
                " more room, so you pay twice. Turn thinking off: params = {chat_template_kwargs = {enable_thinking ="
                ' false}} (vLLM, SGLang, llama.cpp) or params = {reasoning_effort = "none"} (Ollama; elsewhere "low")'
                "; or give it room at once: params = {max_tokens = 4096}"
            )
        whole = reply.finish_reason in (None, "stop") and not reply.refusal
        if whole and (action := learned.ignored(request.body, sent, reply.text, request.constraint)):
            self._note(f"{whom} ignores the list of allowed replies: {action} from now on")
        if reply.usage is None or self.endpoint.application:
            return

        def size() -> int:
            return len(shown_text(orjson.loads(sent)).encode("utf-8", "replace"))

        if not learned.cuts.suspects(len(sent), reply.usage[0], size):
            return
        learned.cuts.done = True
        counts = None if self._session.transports else await count_tokens(self.endpoint, [sent])
        if not counts or counts[0] > _CUT * reply.usage[0]:
            self._note(
                f"{whom} seems to see only a part of long prompts: prompts of different lengths, up to"
                f" {max(learned.cuts.lengths):,} bytes, all count as {reply.usage[0]:,} tokens. Its replies"
                " may rest on half of the text. Give the server a longer context (Ollama:"
                " OLLAMA_CONTEXT_LENGTH, or num_ctx"
                " of the model), or show fewer documents",
                doubt=True,
            )

    def _look_for_logprobs(self, reply: Reply) -> None:
        """Stop a run whose first replies all lack the log-probabilities that were asked for: they cannot be used."""
        if self._without is None or reply.refusal is not None or not reply.text:
            return
        tops = [entry.get("top_logprobs") for entry in reply.logprobs or () if isinstance(entry, dict)]
        if any(isinstance(top, list) and len(top) > 1 for top in tops):
            self._without = None  # it can: one reply without them says nothing about the server
            return
        self._without += 1
        if self._without >= _FIRST_ALIKE:
            raise EndpointError(
                f"endpoint {self.endpoint.name!r} (model {self.endpoint.model!r}) gives no log-probabilities"
                + (" of alternative tokens" if reply.logprobs else "")
                + ", which read=logprobs needs; use read=text or another endpoint"
            )

    async def _exchange(self, body: bytes, started: float, patience: Patience) -> Response:
        endpoint, patience.status = self.endpoint, 0
        silent_s, sent = self._watch.silent_s, self._watch.now()
        silence = asyncio.get_running_loop().call_later(silent_s, self._watch.tell_silence, silent_s)
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                status, headers, data = await self.transport.send(endpoint, body)
            self._watch.heard(self._watch.now() - sent)
        except TimeoutError:
            self._limiter.overloaded(started)
            return Retry(f"no answer within {endpoint.timeout_s:g} s", worked=True, down=True)
        except NotConnectedError as problem:
            tried = patience.attempts >= min(_NEVER_CONNECTED_RETRIES, endpoint.max_retries)
            if not self._connected and tried:
                return Fatal(
                    f"no connection was made: {problem}. Is the server running, and is the address right?"
                    f" Check with: curl {endpoint.base_url.rstrip('/')}{'' if endpoint.application else '/models'}"
                )
            return Retry(f"no connection: {problem}", down=True)
        except TooLargeError as problem:
            return Retry(str(problem), oversized=True, worked=True)
        except OSError as problem:
            return Retry(str(problem) or type(problem).__name__, down=True)
        finally:
            silence.cancel()
        self._connected, patience.status = True, status
        data = self._secret.cut_response(decoded(data))
        if status in (400, 422):
            # Nothing can be left out of a question to an application, whatever its error names.
            params = () if endpoint.application else orjson.loads(body)
            response = read_response(status, headers, data, params, self._proven or endpoint.application)
        else:
            response = read_response(status, headers, data)
        if isinstance(response, Retry):
            if response.throttled:
                self._limiter.overloaded(started)
            response = replace(response, worked=status < 300)
        return response
