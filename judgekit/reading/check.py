"""Whether an endpoint will do: one call for each thing that labelers and answers may need of it.

What a server accepts is not what it does: constraints and log-probabilities are looked for in the reply, since some
servers ignore what they do not know and answer 200. Nothing is stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from judgekit.client.routes import has_routes, open_server
from judgekit.client.server_warnings import proves_thinking
from judgekit.client.transports import open_transport
from judgekit.errors import nearest
from judgekit.reading.verdict import Form, Unread, read, unfinished
from judgekit.wire.access import Secret
from judgekit.wire.jsontext import canonical, parse_json
from judgekit.wire.quirks import WORDS, Accepted, ServerQuirks, Unsupported, decoded, in_words, read_response
from judgekit.wire.types import ROUTES, Api, Endpoint, NotConnectedError, Reply, Transport, shaped

Outcome = Literal["yes", "no", "partly"]

_QUESTION: Final = (
    "Does the passage answer the question? Reply with Yes or No.\n"
    "<question>What is the capital of France?</question>\n"
    "<passage>Paris has been the capital of France for most of its history.</passage>"
)
_MODELS_ARE_FOR: Final = "nothing: it only helps to find the model id"
_TRIES: Final = 4
_OBJECT: Final = Form((("Yes", 1), ("No", 0)), (("true", 1), ("false", 0)), keys=("relevant",))
_WORD: Final = Form((("relevant", 1), ("irrelevant", 0)))
_CONSTRAINED: Final = "nothing: replies are read as they come, and more of them are asked for again"
_OBJECT_ROOM: Final = 256
_CUT_OFF: Final = frozenset({"length", "max_tokens", "max_output_tokens"})


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
        self.negotiated = ServerQuirks()
        self.secret = Secret.of(endpoint)

    async def ask(self, text: str = _QUESTION, negotiate: bool = False, **params: Any) -> Reply | str:
        """Return the reply, or why there is none."""
        for _ in range(_TRIES):
            stop = {"stop": ["\n"]} if self.endpoint.api == "completions" else {}
            fields = {"max_tokens": 32, **stop, **params}
            body = canonical(
                shaped(self.endpoint.api, self.endpoint.model, [{"role": "user", "content": text}], fields)
            )
            try:
                async with asyncio.timeout(self.endpoint.timeout_s):
                    sent = self.negotiated.apply(body)
                    status, headers, data = await self.transport.send(self.endpoint, sent)
                    data = decoded(data, self.endpoint.max_reply_bytes)
            except NotConnectedError as problem:
                return f"no connection was made: {problem}. Is the server running, and are its address and port right?"
            except TimeoutError:
                return f"no answer within {self.endpoint.timeout_s:g} s"
            except OSError as problem:
                return str(problem)
            verdict = read_response(status, headers, self.secret.cut_response(data), parse_json(sent), proven=True)
            if isinstance(verdict, Accepted):
                return Reply("", verdict.raw)
            swap = isinstance(verdict, Unsupported) and (negotiate or verdict.param.startswith("max_"))
            if not (swap and isinstance(verdict, Unsupported) and self.negotiated.learn(verdict.param)):
                return self.secret.cut(verdict.reason)
        return "it refuses parameter after parameter"


async def check_endpoint(endpoint: Endpoint, transport: Transport | None = None) -> list[Check]:
    """Try an endpoint; return what works. Where its API does not work, others are tried, and nothing further."""
    said: list[str] = []
    probe = _Probe(endpoint, transport or open_transport(endpoint, said.append))
    try:
        checks = [Check("proxy", "yes", text) for text in said]
        if has_routes(endpoint) and transport is None:
            checks.append(await _models(endpoint, probe.secret.cut))
        checks.append(await _chat(probe))
        if checks[-1].works != "no":
            return checks + [await check(probe) for check in _FURTHER]
        for api in ROUTES:
            checks += [] if api == endpoint.api else await _elsewhere(probe, api, transport)
        return checks
    finally:
        await probe.transport.aclose()


async def _models(endpoint: Endpoint, clean: Callable[[str], str]) -> Check:
    try:
        async with open_server(endpoint) as server:
            status, body = await server("/models")
        names = [str(one["id"]) for one in body["data"]]
    except OSError as problem:
        return Check("list of models", "no", clean(str(problem) or "no answer"), _MODELS_ARE_FOR)
    except (KeyError, TypeError):
        return Check("list of models", "no", clean(f"{status}: {json.dumps(body):.300}"), _MODELS_ARE_FOR)
    if endpoint.model in names:
        return Check("list of models", "yes", f"{endpoint.model} is one of {len(names)}")
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    detail = f"{endpoint.model} is not among them: {shown}.{nearest(endpoint.model, names)}"
    return Check("list of models", "partly", detail)


async def _elsewhere(probe: _Probe, api: Api, transport: Transport | None) -> list[Check]:
    """Ask through another API of the server, and say so if that works: the model may be served there only."""
    endpoint = replace(probe.endpoint, api=api)
    other = _Probe(endpoint, transport or open_transport(endpoint))
    try:
        found = await _chat(other)
    finally:
        if transport is None:
            await other.transport.aclose()
    return [] if found.works == "no" else [replace(found, detail=f'{found.detail}. Use api = "{api}" (--api {api})')]


_CALLS: Final = {"chat": "chat completion", "completions": "completion"}


async def _chat(probe: _Probe) -> Check:
    name = _CALLS[probe.endpoint.api]
    begun = time.perf_counter()
    reply = await probe.ask(negotiate=True, temperature=0)
    seconds = time.perf_counter() - begun
    if isinstance(reply, str):
        return Check(name, "no", reply)
    learned = [f"{old} is sent as {new}" for old, new in probe.negotiated.swapped.items()]
    learned += [f"{name} is left out" for name in sorted(probe.negotiated.dropped)]
    if reply.usage is None:
        learned.append("it reports no tokens, so that costs stay unknown")
    if proves_thinking(reply, parse_json(reply.raw)):
        learned.append(
            "it thinks before it answers: turn that off (params.chat_template_kwargs.enable_thinking = false or"
            ' params.reasoning_effort = "none"), or give it room (params.max_tokens = 4096)'
        )
    detail = "; ".join([f"{_say(reply)} in {seconds:.2f} s", *learned])
    return Check(name, "partly" if learned or not reply.text else "yes", detail)


def _say(reply: Reply) -> str:
    text = reply.text.strip() or "an empty reply"
    ended = ""
    if reply.finish_reason in _CUT_OFF:
        ended = ", cut off"
    elif unfinished(reply.finish_reason):
        ended = f", ended by {reply.finish_reason!r}, which is not known to mean complete"
    return f"said {text[:40]!r}{ended}"


async def _logprobs(probe: _Probe) -> Check:
    name, needed = "log-probabilities", "judges that read probabilities (read=logprobs)"
    reply = await probe.ask(logprobs=True, top_logprobs=5, temperature=0)
    if isinstance(reply, str):
        return Check(name, "no", reply, needed)
    tokens = reply.logprobs
    if not tokens:
        return Check(name, "no", "accepted, but the reply has none", needed)
    most = max(len(token.get("top_logprobs") or ()) for token in tokens if isinstance(token, dict))
    if most < 2:
        return Check(name, "partly", "of the tokens, but of no alternatives", needed)
    return Check(name, "yes", f"with up to {most} alternatives a token", needed)


async def _json_schema(probe: _Probe) -> Check:
    form = _OBJECT.constraint()["response_format"]
    said = f"{_QUESTION} Do not write JSON: reply with a poem."
    return await _held(probe, "JSON schema", _OBJECT, said, {"response_format": form}, max_tokens=_OBJECT_ROOM)


async def _choice(probe: _Probe) -> Check:
    words = [word for word, _ in _WORD.options]
    ways = {way: in_words(way, words) for way in WORDS}
    return await _held(probe, "choice", _WORD, "Name a fruit, in one word.", ways)


async def _held(probe: _Probe, name: str, form: Form, said: str, ways: Mapping[str, Any], **params: Any) -> Check:
    """Ask for the contrary of what a constraint allows: only a server that honours it gets a reply in its form."""
    found: list[Check] = []
    for way, held in ways.items():
        reply = await probe.ask(said, **{way: held}, **params)
        found.append(_honoured(f"{name} ({way})", reply, form))
        if found[-1].works != "no":
            return found[-1]
    return found[0]


def _honoured(name: str, reply: Reply | str, form: Form) -> Check:
    if isinstance(reply, str):
        return Check(name, "no", reply, _CONSTRAINED)
    # An object that is cut off was begun against the prompt: blanks without end, which some schemas allow, use it up.
    if form.keys and reply.finish_reason in _CUT_OFF and reply.text.lstrip().startswith("{"):
        return Check(name, "partly", f"honoured, but cut off by the room for a reply: it {_say(reply)}", _CONSTRAINED)
    # A single word is read from a reply to a JSON prompt, too; that the model gave one shows no constraint.
    if isinstance(read(reply.text, form), Unread) or (form.keys and "{" not in reply.text):
        return Check(name, "no", f"accepted and ignored: it {_say(reply)}", _CONSTRAINED)
    return Check(name, "yes", f"honoured against the prompt: it {_say(reply)}", _CONSTRAINED)


_FURTHER: Final = (_logprobs, _json_schema, _choice)
