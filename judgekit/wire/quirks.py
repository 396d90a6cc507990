"""The meaning of responses, and what is learned about odd servers.

`read_response` interprets a response: one pure function, so that every fault can be tested without a server. The order
of the questions matters: a 400 about the length of one prompt may also mention ``max_tokens``, and a 429 about an empty
account will not heal by waiting.

`ServerQuirks` holds what was learned about one model at one endpoint. A refusal that names a parameter of the body
swaps ``max_tokens`` and ``max_completion_tokens``, lowers its number to the server's limit, or drops the parameter; one
that names the model's context limits the room for replies. This is remembered for the endpoint and model, reported once
and stored with each reply (the body really sent). It does not change the identity of a request.

Constraints are added here, so that they are not part of a request's identity. They are stated in the first way that the
server neither refuses nor ignores (`judgekit.wire.constraints`), or not at all. Replies from a server that ignores them
are read as they come.
"""

from __future__ import annotations

import json
import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final

import orjson
from zstandard import ZstdDecompressor, ZstdError

from judgekit.data.tables import Status
from judgekit.wire.constraints import Kind, Way, kind_of, ways
from judgekit.wire.jsontext import canonical, parse_json
from judgekit.wire.refusals import CURES, NO_KEY, ROOMS, Said, Setting, shortened
from judgekit.wire.scores import with_choices
from judgekit.wire.streams import completion_of
from judgekit.wire.types import TooLargeError, chosen
from judgekit.wire.usage import Tokens, tokens_used

_FEW: Final = 16
"""The number of first bytes that decide whether data are text."""

# First bytes of gzip or zlib data; neither JSON nor a web page begins like this, whatever the headers say.
_PACKED: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

_ZSTD: Final = b"\x28\xb5\x2f\xfd"

_BINARY: Final = re.compile(rb"\s*[^\s -~]")

# OpenAI's newer models refuse ``max_tokens``, most servers know nothing else. TEI's rerankers take ``texts``.
_SWAP: Final = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "documents": "texts",
}

# Requested again, such replies would be paid for again.
_BROTLI: Final = (
    "the reply is packed with brotli, which was not asked for and cannot be read; have the server, or the proxy in"
    " front of it, send gzip or plain text"
)
_EPOCH: Final = 1e9
"""Seconds since 1970 in 2001: no server asks for such a long wait."""
_FEWEST: Final = 2
"""A verdict's probability needs at least one alternative to the chosen token."""

# Without the first the second is an error of its own.
_TOGETHER: Final = {"logprobs": ("logprobs", "top_logprobs")}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A chat completion: a JSON object with choices. Whether it says anything useful is the labeler's question."""

    raw: str
    json: dict[str, Any]


SETTINGS: Final = "the key, the model or the address was refused"
THROTTLED: Final = "the server asked to slow down"
DOWN: Final = "no connection, or no answer in time"
OVERSIZED: Final = "the reply was too large"
MALFORMED: Final = "the server's HTTP headers break the rules"
UNEXPLAINED: Final = "the server reported an error without a reason"
UNUSABLE: Final = "the server reported an error, or sent no usable reply"


@dataclass(frozen=True, slots=True)
class Retry:
    """A temporary failure.

    Attributes:
        reason: the server's words.
        kind: the kind of reason, for counting.
        after: the requested wait in seconds.
        usage: the tokens that were used anyway.
    """

    reason: str
    kind: str = UNUSABLE
    after: float | None = None
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A permanent failure of this request; others may work.

    Attributes:
        reason: the server's words.
        status: the status of the request's unit.
        plain: whether the server blamed this request (its length, its content); otherwise this only follows from the
            success of other requests.
        too_long: whether the prompt, or the prompt with the room for its reply, is too long.
        value: whether a parameter's value is refused, which all requests of a labeler share.
        context: the limit on the tokens of prompt and reply together, if the server gives it.
        prompt: the tokens of the prompt, if the server counted them.
    """

    reason: str
    status: Status = Status.FAILED
    plain: bool = True
    too_long: bool = False
    value: bool = False
    context: int | None = None
    prompt: int | None = None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The server refuses this parameter of the body, or numbers above ``most``."""

    param: str
    reason: str
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Fatal:
    """A permanent failure of all requests.

    Attributes:
        reason: the server's words.
        setting: the setting at fault, if known.
    """

    reason: str
    setting: Setting | None = None

    def cured(self, keyless: bool) -> str:
        """Return the reason with its cure; ``keyless`` if no key was sent."""
        if self.setting is None:
            return self.reason
        return f"{self.reason} ({NO_KEY if keyless and self.setting == 'key' else CURES[self.setting]})"


Complaint = Retry | Refused | Unsupported | Fatal
Response = Accepted | Complaint


def read_response(
    status: int,
    headers: Mapping[str, str],
    data: bytes,
    params: Mapping[str, Any] = MappingProxyType({}),
    proven: bool = False,
) -> Response:
    """Return the meaning of a response to a body with the fields ``params``."""
    body = _json(data)
    if body is None:
        body = _json(data.decode("utf-8-sig", "replace"))
    if 200 <= status < 300:
        read = _completion(status, body, data)
        codings = re.split(r"[\s,]+", headers.get("content-encoding", "").casefold())
        if body is None and "br" in codings and isinstance(read, Retry):
            return Fatal(f"{status}: {_BROTLI}")
        return read
    text = data.decode("utf-8", "replace")
    said = Said.read(body, text)
    reason = f"{status}: {said.message}"
    if 300 <= status < 400:
        return Fatal(f"{status}: it redirects to {headers.get('location', 'nowhere')}; give that address as base_url")
    # 529 is Anthropic's "overloaded"; waiting does not help with a 429 about an unpaid account.
    if status == 429 or status in (503, 529):
        if status == 429 and said.unpaid:
            return Fatal(reason)
        return Retry(reason, THROTTLED, after=retry_after(headers))
    # Such a complaint often also names max_tokens, which the server does not refuse.
    if said.too_long or status == 413:
        return Refused(reason, too_long=True, context=said.context, prompt=said.prompt)
    if status in (400, 403, 422, 451) and said.moderated:
        return Refused(reason, Status.REFUSED)
    if status in (400, 422, 500, 501):
        # The missing field is in the body under another name.
        for sent, wanted in _SWAP.items():
            if wanted == said.lacking and sent in params:
                return Unsupported(sent, reason)
        # llama-cpp-python refuses parameters with 500; but a 500 that merely mentions one may be about anything.
        param = said.named(params) if status < 500 or said.param else None
        most = None if param is None else said.at_most(param, params)
        if param is not None and (most is not None or not said.wrong_value(param)):
            return Unsupported(param, reason, most)
    # llama-server says so about a route for which it was not started.
    if status == 501 and said.unsupported and not proven:
        return Fatal(reason, "address")
    if status in (408, 409, 425) or status >= 500:
        if said.setting == "key":
            return Fatal(reason, said.setting)
        return Retry(reason, UNEXPLAINED if said.nothing else UNUSABLE, after=retry_after(headers))
    if status in (400, 422):
        if said.setting is not None or not proven:
            return Fatal(reason, said.setting)
        return Refused(reason, plain=False, value=said.named(params) is not None)
    if status == 404 and said.setting == "model":
        return Fatal(reason, "model")
    settings: Mapping[int, Setting] = {401: "key", 403: "key", 404: "address"}
    return Fatal(reason, settings.get(status))


def decoded(data: bytes, most: int, coding: str = "") -> bytes:
    """Return a response body unpacked according to its bytes, since headers may be wrong and the body was paid for.

    ``coding`` is the headers' name, needed only for bare deflate, which has no typical beginning.

    Raises:
        TooLargeError: it has more bytes, unpacked, than a reply may have.
    """
    # At most a byte beyond the limit is unpacked: a few kilobytes may hold gigabytes.
    try:
        if data.startswith(_PACKED):
            unpacked = _inflated(data, zlib.MAX_WBITS | 32, most)  # gzip or zlib: the data say which
        elif data.startswith(_ZSTD):
            unpacked = ZstdDecompressor().stream_reader(data, read_across_frames=True).read(most + 1)
        elif "deflate" in coding.casefold() and _json(data) is None:
            unpacked = _inflated(data, -zlib.MAX_WBITS, most)
        else:
            return data
    except (zlib.error, ZstdError):
        return data
    if len(unpacked) > most:
        raise TooLargeError(most)
    return unpacked


def _inflated(data: bytes, window: int, most: int) -> bytes:
    """Return the unpacked zlib data, including all consecutive members of gzip."""
    unpacked = b""
    while data and len(unpacked) <= most:
        unpacking = zlib.decompressobj(window)
        unpacked += unpacking.decompress(data, most + 1 - len(unpacked))
        data = unpacking.unused_data
        if data and not data.startswith(_PACKED):
            break  # padding
    return unpacked


def _json(data: str | bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        return None


def unusable(body: Any) -> str | None:
    """Return what is wrong with the body of a successful response without a completion; None if it has one."""
    body = with_choices(body)
    if not isinstance(body, dict):
        return "no JSON object"
    if body.get("error"):
        return f"an error in it: {Said.read(body, str(body)).message}"
    choices = body.get("choices")
    choice = chosen(body) if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return "a JSON object without choices"
    if choice.get("error"):
        return f"an error in its choice: {Said.read(choice, str(choice)).message}"
    if not isinstance(choice.get("message"), dict) and choice.get("finish_reason") != "content_filter":
        return "a choice without a message"
    return None


def _completion(status: int, body: Any, data: bytes) -> Response:
    text = data.decode("utf-8", "replace")
    raw = text.removeprefix("\ufeff")
    if body is None and (streamed := completion_of(text)) is not None:
        body, raw = streamed, json.dumps(streamed)
    problem = unusable(body)
    if problem is None:
        return Accepted(raw, with_choices(body))
    if body is None and len(data) >= _FEW and _BINARY.match(data):
        # Asking again would cost the same bytes again.
        return Refused(f"{status} with {len(data):,} bytes that are no text (they begin with {data[:8].hex(' ')})")
    if isinstance(body, dict):
        if "error" not in problem:
            problem += f": {shortened(text)}"
        return Retry(f"{status} with {problem}", usage=tokens_used(body))
    if not text.strip():
        return Retry(f"{status} with nothing where a chat completion should be")
    kind = "no whole JSON object"
    if text.lstrip().startswith("<"):
        kind = "an HTML page (login?)"
    return Retry(f"{status} with {kind} where a chat completion should be: {shortened(text)}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds: ``retry-after-ms``, or ``retry-after`` as seconds or a date."""
    # OpenAI and Azure send both; the finer one counts.
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * scale
            if seconds > _EPOCH:  # a moment, which some gateways send instead of a duration
                seconds -= _now(headers)
            if math.isfinite(seconds):
                return max(0.0, seconds)
    until = _date(headers.get("retry-after", ""))
    if until is None:
        return None
    return max(0.0, until - _now(headers))


def _now(headers: Mapping[str, str]) -> float:
    """Return the time by the server's clock, which may be wrong, or else by ours."""
    now = _date(headers.get("date", ""))
    return time.time() if now is None else now


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


@dataclass
class ServerQuirks:
    """What an endpoint refuses for one model: the one place that knows what a server accepts.

    Attributes:
        swapped: parameters that it knows under another name.
        dropped: parameters that it refuses.
        alternatives: the largest number of alternatives with log-probabilities that it returns.
        room: the largest number of tokens that it allows for a reply.
        context: the largest number of tokens of prompt and reply together.
        replies: number of its replies seen, including replayed ones; one proves that it answers.
    """

    swapped: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    alternatives: int | None = None
    room: int | None = None
    context: int | None = None
    replies: int = 0
    _tried: Counter[Kind] = field(default_factory=Counter)
    _taken: set[tuple[Kind, str]] = field(default_factory=set)
    _faults: dict[Kind, list[str]] = field(default_factory=dict)
    _told: set[Kind] = field(default_factory=set)

    def apply(
        self, body: bytes, constraint: Mapping[str, Any] = MappingProxyType({}), room: int | None = None
    ) -> bytes:
        """Return the body as this endpoint accepts it, with an added constraint.

        ``room`` is the number of tokens that the model's context leaves for the reply, if known.
        """
        if not (self.swapped or self.dropped or self.alternatives or self.room or room):
            # The long body is not parsed: quotes in texts have a backslash, so none looks like a name.
            for name in sorted(constraint):
                if f'"{name}":'.encode() not in body:
                    body = b"".join((body[:-1], b",", canonical({name: constraint[name]})[1:]))
            return body
        most = {"top_logprobs": self.alternatives, "logprobs": self.alternatives}
        most |= dict.fromkeys(ROOMS, min(filter(None, (self.room, room)), default=None))
        fields: dict[str, Any] = {}
        for name, value in {**constraint, **orjson.loads(body)}.items():
            taken = self.swapped.get(name, name)
            limit = most.get(taken)
            if limit is not None and type(value) is int:
                value = min(value, limit)
            if taken not in self.dropped:
                fields[taken] = value
        return canonical(fields)

    def way(self, constraint: Mapping[str, Any]) -> Way | None:
        """Return the present way to state a constraint to the endpoint; None if no way is left."""
        if not constraint:
            return None
        left = ways(constraint)[self._tried[kind_of(constraint)] :]
        return next((way for way in left if not self.dropped.issuperset(way.fields)), None)

    def took(self, constraint: Mapping[str, Any], way: Way) -> None:
        """Note a reply to a constraint stated in this way: a later refusal is about something else."""
        self._taken.add((kind_of(constraint), way.name))

    def takes(self, constraint: Mapping[str, Any], way: Way) -> bool:
        """Whether a reply ever came to a constraint stated in this way."""
        return (kind_of(constraint), way.name) in self._taken

    def rule_out(self, constraint: Mapping[str, Any], way: Way, fault: str) -> None:
        """Go on to the next way, unless another request did so already."""
        if self.way(constraint) == way:
            kind = kind_of(constraint)
            self._tried[kind] = 1 + ways(constraint).index(way)
            self._faults.setdefault(kind, []).append(f"{way.name} ({fault})")

    def news(self, constraint: Mapping[str, Any], way: Way | None) -> str | None:
        """Return a sentence on ways that failed: the first time, and once replies come by what is left.

        ``way`` is how the constraint was stated where a reply came just now, None where it was not.
        """
        if not self._faults:  # nearly always, and every reply asks
            return None
        kind, following = kind_of(constraint), self.way(constraint)
        if not self._faults.get(kind) or (kind in self._told and following != way):
            return None
        self._told.add(kind)
        faults = self._faults.pop(kind)
        instead = "judgekit asks for free text" if following is None else f"{following.name} is sent"
        return f"does not hold replies to their form by {' or '.join(faults)}: {instead} from now on"

    def learn(self, param: str, most: int | None = None) -> str | None:
        """Note that a parameter, or a number above ``most``, is refused; return the consequence, or None."""
        if most is not None:
            return self._lower(param, most)
        if param in self.swapped.values():
            return None
        if param in _SWAP and param not in self.swapped:
            self.swapped[param] = _SWAP[param]
        else:
            self.dropped.update(_TOGETHER.get(param, (param,)))
        if param in self.swapped:
            return f"{param} is sent as {self.swapped[param]}"
        return f"{param} is left out"

    def _lower(self, param: str, most: int) -> str | None:
        """Note the largest allowed number of a parameter."""
        if param in ROOMS:
            self.room = min(most, self.room or most)
            return f"at most {self.room:,} are sent"
        if most < _FEWEST:
            return None
        self.alternatives = min(most, self.alternatives or most)
        return f"log-probabilities of {self.alternatives} alternatives are asked for"

    def learn_context(self, context: int) -> str:
        """Note the limit on the tokens of prompt and reply together; return the consequence."""
        self.context = min(context, self.context or context)
        return f"has a context of {self.context:,} tokens: a reply gets no more room than the prompt leaves"
