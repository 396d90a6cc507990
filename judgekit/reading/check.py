"""Whether an endpoint will do: one call for each thing that labelers and answers may need of it.

What a server accepts is not what it does: log-probabilities are looked for in the reply, since some servers ignore what
they do not know and answer 200. Nothing is stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from judgekit.client.routes import has_routes, open_server
from judgekit.client.server_warnings import proves_thinking
from judgekit.client.transports import open_transport
from judgekit.errors import nearest
from judgekit.reading.verdict import unfinished
from judgekit.wire.access import Secret
from judgekit.wire.jsontext import at, canonical, parse_json
from judgekit.wire.quirks import Accepted, ServerQuirks, Unsupported, decoded, read_response
from judgekit.wire.types import Endpoint, NotConnectedError, Reply, Transport, shaped

Outcome = Literal["yes", "no", "partly"]

_QUESTION: Final = (
    "Does the passage answer the question? Reply with Yes or No.\n"
    "<question>What is the capital of France?</question>\n"
    "<passage>Paris has been the capital of France for most of its history.</passage>"
)
_MODELS_ARE_FOR: Final = "nothing: it only helps to find the model id"
_LOGPROBS_ARE_FOR: Final = "judges that read probabilities (read=logprobs)"
_TRIES: Final = 4
_CUT_OFF: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_NAMES: Final = {"chat": "chat completion", "completions": "completion"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried.

    Attributes:
        name: what was tried, e.g. ``log-probabilities``.
        works: ``yes``, ``no``, or ``partly`` with the reason in ``detail``.
        detail: what was seen, or the server's own message.
        needed_for: what does not work without it; empty if everything needs it.
    """

    name: str
    works: Outcome
    detail: str
    needed_for: str = ""


class _Probe:
    """Asks one endpoint, without retries, and remembers which parameters it refuses."""

    def __init__(self, endpoint: Endpoint, transport: Transport) -> None:
        self.endpoint = endpoint
        self.transport = transport
        self.quirks = ServerQuirks()
        self.secret = Secret.of(endpoint)

    async def ask(self, *, negotiate: bool, **params: Any) -> Reply | str:
        """Return the reply to a question that a judge may be asked, or why there is none."""
        endpoint = self.endpoint
        stop = {"stop": ["\n"]} if endpoint.api == "completions" else {}
        messages = [{"role": "user", "content": _QUESTION}]
        body = canonical(shaped(endpoint.api, endpoint.model, messages, {"max_tokens": 32, **stop, **params}))
        for _ in range(_TRIES):
            sent = self.quirks.apply(body)
            try:
                async with asyncio.timeout(endpoint.timeout_s):
                    status, headers, data = await self.transport.send(endpoint, sent)
                data = self.secret.cut_response(decoded(data, endpoint.max_reply_bytes))
            except NotConnectedError as problem:
                return f"no connection was made: {problem}. Is the server running, and are its address and port right?"
            except TimeoutError:
                return f"no answer within {endpoint.timeout_s:g} s"
            except OSError as problem:
                return str(problem)
            response = read_response(status, headers, data, parse_json(sent), proven=True)
            if isinstance(response, Accepted):
                return Reply("", response.raw)
            reason = self.secret.cut(response.reason)
            # Parameters under test are not negotiated away: that a server refuses them is the answer.
            if not isinstance(response, Unsupported) or not (negotiate or response.param.startswith("max_")):
                return reason
            if self.quirks.learn(response.param) is None:
                return reason
        return "it refuses parameter after parameter"


async def check_endpoint(endpoint: Endpoint, transport: Transport | None = None) -> list[Check]:
    """Try an endpoint; return what works. Where it does not answer at all, nothing further is tried."""
    notes: list[str] = []
    probe = _Probe(endpoint, transport or open_transport(endpoint, notes.append))
    checks = [Check("proxy", "yes", text) for text in notes]
    try:
        if has_routes(endpoint) and transport is None:
            checks.append(await _models(endpoint, probe.secret.cut))
        checks.append(await _answer(probe))
        # A server that is down would fail every further check, each after its whole time-out.
        if checks[-1].works != "no":
            checks.append(await _logprobs(probe))
    finally:
        await probe.transport.aclose()
    return checks


async def _models(endpoint: Endpoint, clean: Callable[[str], str]) -> Check:
    name = "list of models"
    try:
        async with open_server(endpoint) as server:
            status, body = await server("/models")
        names = [str(model["id"]) for model in body["data"]]
    except OSError as problem:
        return Check(name, "no", clean(str(problem) or "no answer"), _MODELS_ARE_FOR)
    except (KeyError, TypeError):
        return Check(name, "no", clean(f"{status}: {json.dumps(body):.300}"), _MODELS_ARE_FOR)
    if endpoint.model in names:
        return Check(name, "yes", f"{endpoint.model} is one of {len(names)}")
    shown = ", ".join(names[:8])
    if len(names) > 8:
        shown += ", …"
    return Check(name, "partly", f"{endpoint.model} is not among them: {shown}.{nearest(endpoint.model, names)}")


async def _answer(probe: _Probe) -> Check:
    name = _NAMES[probe.endpoint.api]
    begun = time.perf_counter()
    reply = await probe.ask(negotiate=True, temperature=0)
    seconds = time.perf_counter() - begun
    if isinstance(reply, str):
        return Check(name, "no", reply)
    remarks: list[str] = []
    for old, new in probe.quirks.swapped.items():
        remarks.append(f"{old} is sent as {new}")
    for param in sorted(probe.quirks.dropped):
        remarks.append(f"{param} is left out")
    if reply.usage is None:
        remarks.append("it reports no tokens, so that costs stay unknown")
    if proves_thinking(reply, parse_json(reply.raw)):
        remarks.append(
            "it thinks before it answers: turn that off (params.chat_template_kwargs.enable_thinking = false or"
            ' params.reasoning_effort = "none"), or give it room (params.max_tokens = 4096)'
        )
    detail = "; ".join([f"{_said(reply)} in {seconds:.2f} s", *remarks])
    return Check(name, "partly" if remarks or not reply.text else "yes", detail)


def _said(reply: Reply) -> str:
    text = f"said {reply.text.strip()[:40] or 'an empty reply'!r}"
    if reply.finish_reason in _CUT_OFF:
        return f"{text}, cut off"
    if unfinished(reply.finish_reason):
        return f"{text}, ended by {reply.finish_reason!r}, which is not known to mean complete"
    return text


async def _logprobs(probe: _Probe) -> Check:
    name = "log-probabilities"
    reply = await probe.ask(negotiate=False, logprobs=True, top_logprobs=5, temperature=0)
    if isinstance(reply, str):
        return Check(name, "no", reply, _LOGPROBS_ARE_FOR)
    if not reply.logprobs:
        return Check(name, "no", "accepted, but the reply has none", _LOGPROBS_ARE_FOR)
    # Some servers give the chosen token alone, of which no probability of another verdict can be read.
    most = max(len(at(token, "top_logprobs") or ()) for token in reply.logprobs)
    if most < 2:
        return Check(name, "partly", "of the tokens, but of no alternatives", _LOGPROBS_ARE_FOR)
    return Check(name, "yes", f"with up to {most} alternatives a token", _LOGPROBS_ARE_FOR)
