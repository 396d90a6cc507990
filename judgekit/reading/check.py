"""Checks an endpoint with the requests that labelers and answers send.

Accepting a request proves nothing: constraints and log-probabilities are looked for in the reply, since some servers
ignore unknown fields and answer 200. Nothing is stored, and nothing is asked twice. `planned` tells the cost.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from judgekit.client.estimates import most_tokens
from judgekit.client.routes import context_of, has_routes, open_server
from judgekit.client.server_warnings import proves_thinking
from judgekit.client.transports import open_transport
from judgekit.errors import nearest
from judgekit.reading.asker import Asker
from judgekit.reading.likelihood import echoing, of_prompt
from judgekit.reading.prompts import load_prompt
from judgekit.reading.verdict import ReplyFormat, unfinished
from judgekit.wire.access import Secret, api_key, is_local
from judgekit.wire.constraints import ways
from judgekit.wire.jsontext import at, canonical, parse_json
from judgekit.wire.quirks import Accepted, Fatal, Refused, ServerQuirks, Unsupported, decoded, read_response
from judgekit.wire.scores import scored_body
from judgekit.wire.types import Endpoint, NotConnectedError, Reply, Request, Transport

CheckOutcome = Literal["yes", "no", "partly", "held", "ignored", "refused", "not tried"]

MOST_REQUESTS: Final = 12
"""The largest number of requests of a check."""

_QUESTION: Final = "What is the capital of France?"
_FACT: Final = "Paris has been the capital of France for most of its history."
_PASSAGE: Final = f"<passage>\n{_FACT}\n</passage>"
_MODELS_ARE_FOR: Final = "nothing: it only helps to find the model id"
_LOGPROBS_ARE_FOR: Final = "judges that read probabilities (read=logprobs)"
_OF_PROMPTS: Final = "log-probabilities of prompts"
_OF_PROMPTS_ARE_FOR: Final = "labels by the probability of an answer, utility(read=logprobs)"
_FORM_IS_FOR: Final = "models that do not keep to the form that is asked for"
_KEY_IS_FOR: Final = "nothing: it says whether the server checks the key"
_CONTEXT_IS_FOR: Final = "long passages, and replies that are cut off"
_MOST_SCORES: Final = 10
"""The largest number of requests to check a reranker: six scores, and more if parameters are refused at first."""
_TRIES: Final = 4
_ALTERNATIVES: Final = 20
_UNHEARD: Final = ("zqxj", "vkwf")
"""Words that a model says only under a constraint."""
_KEY: Final = "zqxj"
_LARGEST: Final = 40_000
"""With a larger context than this, a prompt beyond it would take long to send and to refuse."""
_BEYOND: Final = 10**7
"""More tokens than any context holds."""
_CUT_OFF: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_NAMES: Final = {
    "chat": "chat completion",
    "completions": "completion",
    "rerank": "score of a pair",
    "score": "score of a pair",
}
_BESIDE: Final = "Cheese is made of milk."
"""A passage that does not answer the question."""
_SCORES_ARE_FOR: Final = "the labeler rerank"
_SAID_YES: Final = "Yes"
_SCALE: Final = "scale of scores"
_LOGITS: Final = "logits"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one test.

    Attributes:
        name: the feature, e.g. ``log-probabilities``.
        works: ``yes``, ``no``, or ``partly`` with the reason in ``detail``; for a constraint ``held``, ``ignored`` or
            ``refused``; ``not tried`` if it was not needed, or the requests were used up.
        detail: what was seen, or the server's own message.
        needed_for: the features that need it; empty if everything does.
    """

    name: str
    works: CheckOutcome
    detail: str
    needed_for: str = ""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why there is no reply, in the server's words if it sent any, and whether it refused the request."""

    said: str
    refused: bool = False


@dataclass
class _Probe:
    """Asks one endpoint, without retries, and remembers what it refuses."""

    endpoint: Endpoint
    transport: Transport
    secret: Secret
    sent: int = 0
    quirks: ServerQuirks = field(default_factory=ServerQuirks)

    async def ask(self, body: bytes, tested: Mapping[str, Any] | None = None) -> Reply | _Refusal:
        """Return the reply to a body with the fields under test added; these are never dropped."""
        fields = tested or {}
        for _ in range(_TRIES):
            sent = self.quirks.apply(body, fields)
            answer = await self._send(sent)
            if not isinstance(answer, Unsupported):
                return answer
            untested = answer.param not in fields or answer.most is not None
            if not untested or self.quirks.learn(answer.param, answer.most) is None:
                return _Refusal(self.secret.cut(answer.reason), refused=True)
        return _Refusal("it refuses one parameter after another", refused=True)

    async def _send(self, body: bytes) -> Reply | _Refusal | Unsupported:
        endpoint = self.endpoint
        if self.sent >= MOST_REQUESTS:
            return _Refusal(f"{MOST_REQUESTS} requests were sent already")
        self.sent += 1
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                status, headers, data = await self.transport.send(endpoint, body)
            data = self.secret.cut_response(
                decoded(data, endpoint.max_reply_bytes, headers.get("content-encoding", ""))
            )
        except NotConnectedError as problem:
            asked = "Is the server running, and are its address and port right?"
            return _Refusal(f"no connection was made: {problem}. {asked}")
        except TimeoutError:
            return _Refusal(f"no answer within {endpoint.timeout_s:g} s")
        except OSError as problem:
            return _Refusal(str(problem))
        response = read_response(status, headers, data, parse_json(body), proven=True)
        if isinstance(response, Accepted):
            return Reply("", response.raw)
        if isinstance(response, Unsupported):
            return response
        if isinstance(response, Fatal):
            keyless = not (api_key(endpoint) or endpoint.headers or endpoint.own_transport)
            return _Refusal(self.secret.cut(response.cured(keyless)), refused=True)
        return _Refusal(self.secret.cut(response.reason), refused=isinstance(response, Refused))


def planned(endpoint: Endpoint) -> tuple[int, int, int]:
    """Return the largest number of requests of a check, and the most (prompt, completion) tokens."""
    bodies = [_plain(endpoint), _plain(endpoint, probable=True)]
    prompts, replies = (max(most_tokens(request.body)[part] for request in bodies) for part in (0, 1))
    if endpoint.scores:
        return _MOST_SCORES, _MOST_SCORES * prompts, 0
    # One request has a prompt as long as the longest context, which a server with such a context answers.
    return MOST_REQUESTS, (MOST_REQUESTS - 1) * prompts + _LARGEST + prompts, MOST_REQUESTS * replies


async def check_endpoint(endpoint: Endpoint, transport: Transport | None = None) -> list[Check]:
    """Test an endpoint and return what works. If it does not answer at all, nothing else is tried."""
    notes: list[str] = []
    carrier = transport or open_transport(endpoint, notes.append)
    probe = _Probe(endpoint, carrier, Secret.of(endpoint))
    checks = [Check("proxy", "yes", text) for text in notes]
    context: int | None = None
    try:
        if has_routes(endpoint) and transport is None:
            listed, context = await _models(endpoint, probe.secret.cut)
            checks.append(listed)
        checks.append(await _answer(probe))
        # A server that is down would fail every check, each after its full time-out.
        if checks[-1].works != "no":
            if endpoint.scores:
                checks.append(await _scores(probe))
            else:
                checks.append(await _logprobs(probe))
                if endpoint.api == "completions":
                    checks.append(await _logprobs_of_prompt(probe))
                checks += await _constraints(probe)
            checks.append(await _together(probe))
            if transport is None and api_key(endpoint) and has_routes(endpoint):
                checks.append(await _keyless(probe))
            if not endpoint.scores:
                checks += await _room(probe, context)
    finally:
        await probe.transport.aclose()
    return checks


def _plain(endpoint: Endpoint, *, probable: bool = False) -> Request:
    """Return the request of a one-word judge, of one that reads probabilities, or of a reranker."""
    if endpoint.scores:
        return _pair(endpoint, _FACT)
    params: dict[str, Any] = {"logprobs": True, "top_logprobs": _ALTERNATIVES} if probable else {}
    asker = Asker(endpoint, load_prompt("binary"), params)
    return asker.request({"question": _QUESTION, "passages": _PASSAGE})


def _pair(endpoint: Endpoint, passage: str) -> Request:
    """Return the request for the score of a passage."""
    body = scored_body(endpoint.api, endpoint.model, _QUESTION, passage, endpoint.params)
    return Request(endpoint, canonical(body))


async def _models(endpoint: Endpoint, clean: Callable[[str], str]) -> tuple[Check, int | None]:
    """Look for the model in the server's list; return its context, too, if listed."""
    name = "list of models"
    try:
        async with open_server(endpoint) as server:
            status, body = await server("/models")
        names = [str(model["id"]) for model in body["data"]]
    except OSError as problem:
        return Check(name, "no", clean(str(problem) or "no answer"), _MODELS_ARE_FOR), None
    except (KeyError, TypeError):
        return Check(name, "no", clean(f"{status}: {json.dumps(body):.300}"), _MODELS_ARE_FOR), None
    context = context_of(body, endpoint.model)
    if endpoint.model in names:
        return Check(name, "yes", f"{endpoint.model} is one of {len(names)}"), context
    shown = ", ".join(names[:8])
    if len(names) > 8:
        shown += ", …"
    detail = f"{endpoint.model} is not among them: {shown}.{nearest(endpoint.model, names)}"
    return Check(name, "partly", detail), context


async def _answer(probe: _Probe) -> Check:
    """Ask as a one-word judge does; a base model whose reply begins with a stop says nothing."""
    name, request = _NAMES[probe.endpoint.api], _plain(probe.endpoint)
    begun = time.perf_counter()
    reply = await probe.ask(request.body)
    seconds = time.perf_counter() - begun
    if isinstance(reply, _Refusal):
        return Check(name, "no", reply.said)
    remarks: list[str] = []
    for old, new in probe.quirks.swapped.items():
        remarks.append(f"{old} is sent as {new}")
    for param in sorted(probe.quirks.dropped):
        remarks.append(f"{param} is left out")
    if reply.usage is None or reply.usage.total is None:
        remarks.append("it reports no tokens, so costs are estimated")
    if proves_thinking(reply, parse_json(reply.raw)):
        remarks.append(
            "it thinks before it answers: turn that off (params.chat_template_kwargs.enable_thinking = false or"
            ' params.reasoning_effort = "none"), or give it room (params.max_tokens = 4096)'
        )
    fields = parse_json(request.body)
    if not reply.text and fields.pop("stop", None):
        unstopped = await probe.ask(canonical(fields))
        if isinstance(unstopped, Reply) and unstopped.text:
            shown = unstopped.text[:20]
            remarks.append(
                f"without a stop it says {shown!r}: set params.stop to a text with which its replies do not begin"
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
    """Ask for as many alternatives as a judge that reads probabilities."""
    name, request = "log-probabilities", _plain(probe.endpoint, probable=True)
    asked = {key: value for key, value in parse_json(request.body).items() if key in ("logprobs", "top_logprobs")}
    reply = await probe.ask(request.body, asked)
    if isinstance(reply, _Refusal):
        return Check(name, "no", reply.said, _LOGPROBS_ARE_FOR)
    if not reply.logprobs:
        what = "accepted, but the reply has none" if reply.text else "the reply is empty, so there are none"
        return Check(name, "no", what, _LOGPROBS_ARE_FOR)
    # Some servers return only the chosen token, without the probability of another verdict.
    most = max(len(at(token, "top_logprobs") or ()) for token in reply.logprobs)
    if most < 2:
        return Check(name, "partly", "only those of the tokens, not of alternatives", _LOGPROBS_ARE_FOR)
    detail = f"with up to {most} alternatives a token"
    if probe.quirks.alternatives is not None:
        detail += ", the most that it allows; fewer are asked for"
    return Check(name, "yes", detail, _LOGPROBS_ARE_FOR)


async def _logprobs_of_prompt(probe: _Probe) -> Check:
    """Append an answer to the prompt, and look for the log-probabilities of its tokens."""
    body = echoing(_plain(probe.endpoint).body, _SAID_YES)
    reply = await probe.ask(body, {"echo": True})
    if isinstance(reply, _Refusal):
        return Check(_OF_PROMPTS, "no", reply.said, _OF_PROMPTS_ARE_FOR)
    try:
        logprob = of_prompt(reply, _SAID_YES)
    except ValueError as problem:
        return Check(_OF_PROMPTS, "no", f"accepted, but {problem}", _OF_PROMPTS_ARE_FOR)
    detail = f"{_SAID_YES!r} behind the prompt has {logprob:.3g} a token"
    return Check(_OF_PROMPTS, "yes", detail, _OF_PROMPTS_ARE_FOR)


async def _scores(probe: _Probe) -> Check:
    """Score a passage that answers and one that does not, and tell the scale."""
    replies = [await probe.ask(_pair(probe.endpoint, passage).body) for passage in (_FACT, _BESIDE)]
    scores: list[float] = []
    for reply in replies:
        if isinstance(reply, _Refusal):
            return Check(_SCALE, "no", reply.said, _SCORES_ARE_FOR)
        scores.append(float(reply.text))
    answers, beside = scores
    seen = f"{answers:.4g} for a passage that answers, {beside:.4g} for one that does not"
    # Some servers also serve models that are not rerankers: llama-server then gives all pairs one score.
    if not answers > beside:
        return Check(_SCALE, "no", f"{seen}: it does not tell them apart. Is this model a reranker?", _SCORES_ARE_FOR)
    if all(0 <= score <= 1 for score in scores):
        return Check(_SCALE, "yes", f"{seen}: probabilities, as far as two pairs show", _SCORES_ARE_FOR)
    return Check(_SCALE, "partly", f"{seen}: {_LOGITS}, so set scores=logit", _SCORES_ARE_FOR)


async def _constraints(probe: _Probe) -> list[Check]:
    """Try the constraints to a few words and to a JSON object, until one holds."""
    checks: list[Check] = []
    words = ReplyFormat(options=tuple((word, value) for value, word in enumerate(_UNHEARD)))
    values = ReplyFormat(options=(("7", 7), ("8", 8)), keys=(_KEY,))
    for form, what in ((words, "words"), (values, "an object")):
        for way in ways(form.constraint()):
            check = Check(f"{what} by {way.name}", *(await _held(probe, way.fields)), needed_for=_FORM_IS_FOR)
            checks.append(check)
            if check.works == "held":
                break
    return checks


async def _held(probe: _Probe, fields: Mapping[str, Any]) -> tuple[CheckOutcome, str]:
    """Return whether a constraint makes a model say what it would not say by itself."""
    reply = await probe.ask(_plain(probe.endpoint).body, fields)
    if isinstance(reply, _Refusal):
        return ("refused" if reply.refused else "not tried"), reply.said
    held = any(word in reply.text for word in (*_UNHEARD, f'"{_KEY}"'))
    return ("held" if held else "ignored"), _said(reply)


async def _together(probe: _Probe) -> Check:
    """Ask twice at once."""
    name, begun = "two requests at once", time.perf_counter()
    body = _plain(probe.endpoint).body
    replies = await asyncio.gather(probe.ask(body), probe.ask(body))
    refused = next((reply.said for reply in replies if isinstance(reply, _Refusal)), None)
    if refused is not None:
        return Check(name, "partly", refused, "a concurrency above 1")
    return Check(name, "yes", f"both answered in {time.perf_counter() - begun:.2f} s")


async def _keyless(probe: _Probe) -> Check:
    """Ask without the key, to tell a wrong key from a missing one."""
    name = "no key"
    bare = replace(probe.endpoint, api_key_env=None)
    other = _Probe(bare, open_transport(bare), probe.secret, probe.sent, probe.quirks)
    try:
        reply = await other.ask(_plain(bare).body)
    finally:
        probe.sent = other.sent
        await other.transport.aclose()
    if isinstance(reply, Reply):
        return Check(name, "partly", "it answers without the key, too", _KEY_IS_FOR)
    return Check(name, "refused", reply.said, _KEY_IS_FOR)


async def _room(probe: _Probe, context: int | None) -> list[Check]:
    """Exceed the model's context, which a server refuses at once, or cuts silently."""
    endpoint = probe.endpoint
    if context is not None and context < _LARGEST:
        name = f"a prompt beyond {context:,} tokens"
        passage = "<passage>\n" + "word " * int(1.2 * context) + "\n</passage>"
        asker = Asker(endpoint, load_prompt("binary"))
        reply = await probe.ask(asker.request({"question": _QUESTION, "passages": passage}).body)
        if isinstance(reply, Reply):
            taken = "" if reply.usage is None else f", and counted {reply.usage.prompt:,} tokens"
            return [Check(name, "ignored", f"answered{taken}: it cuts prompts without saying so", _CONTEXT_IS_FOR)]
        return [Check(name, "refused", reply.said, _CONTEXT_IS_FOR)]
    # Elsewhere such a reply might be paid for.
    if not is_local(endpoint.base_url):
        return []
    request = Asker(endpoint, load_prompt("binary"), {"max_tokens": _BEYOND})
    reply = await probe.ask(request.request({"question": _QUESTION, "passages": _PASSAGE}).body)
    name = f"{_BEYOND:,} tokens for a reply"
    if isinstance(reply, Reply):
        lowered = probe.quirks.room
        detail = "answered" if lowered is None else f"at most {lowered:,} are allowed, and are asked for"
        return [Check(name, "ignored" if lowered is None else "refused", detail, _CONTEXT_IS_FOR)]
    return [Check(name, "refused", reply.said, _CONTEXT_IS_FOR)]


def lines_for(endpoint: Endpoint, checks: list[Check]) -> Iterator[str]:
    """Yield the lines of an experiment file for an endpoint as tested."""
    found = {check.name: check for check in checks}
    yield f"[endpoints.{json.dumps(endpoint.name) if not endpoint.name.isidentifier() else endpoint.name}]"
    yield f"base_url = {json.dumps(endpoint.base_url)}"
    yield f"model = {json.dumps(endpoint.model)}"
    if endpoint.api != "chat":
        yield f"api = {json.dumps(endpoint.api)}"
    if endpoint.api_key_env:
        yield f"api_key_env = {json.dumps(endpoint.api_key_env)}"
    together = found.get("two requests at once")
    if together is not None and together.works != "yes":
        yield "concurrency = 1"
    answer = found.get(_NAMES[endpoint.api])
    if answer is not None and "thinks before it answers" in answer.detail:
        yield "params = { chat_template_kwargs = { enable_thinking = false } }"
    if endpoint.scores:
        scale = found.get(_SCALE)
        if scale is None or scale.works == "no":
            yield "# its scores are no labels: see above"
            return
        scores = ', scores = "logit"' if _LOGITS in scale.detail else ""
        yield f'# its labels: kind = "rerank"{scores}'
        return
    held = [check.name for check in checks if check.works == "held"]
    yield f"# held to a form: {', '.join(held) or 'no; judges read replies as they come'}"
    logprobs = found.get("log-probabilities")
    if logprobs is not None and logprobs.works == "yes":
        yield '# judges can read probabilities: kind = "judge", read = "logprobs"'
    of_prompts = found.get(_OF_PROMPTS)
    if of_prompts is not None and of_prompts.works == "yes":
        yield '# labels can read them of answers: kind = "utility", read = "logprobs"'
