"""What responses mean, and what is learned of odd servers.

`read_response` says what a response means: one pure function, so that every fault has a test without a server. The
order of the questions matters: a 400 about the length of one prompt may also mention ``max_tokens``, and a 429 about an
empty account will not heal by waiting.

`ServerQuirks` holds what was learned of one model at one endpoint. A refusal that names a parameter of the body swaps
``max_tokens`` and ``max_completion_tokens``, lowers its number to what the server allows, or drops the parameter; one
that names the model's context limits the room for replies. That is remembered for the endpoint and model, told once and
stored with each reply (the body really sent). The identity of a request does not change by it.

A constraint is added here to what was asked for, so that it is no part of a request's identity. It is stated in the
first way that the server neither refuses nor ignores (`judgekit.wire.constraints`); where there is none, what was asked
for is sent alone. What a server that ignores it replies is read as it comes.
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
"""Bytes that are no text by their first ones, if they are so many."""

# How bytes begin that gzip or zlib packed; no JSON and no page begins so, whatever the headers say.
_PACKED: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

_ZSTD: Final = b"\x28\xb5\x2f\xfd"

_BINARY: Final = re.compile(rb"\s*[^\s -~]")

# OpenAI's newer models take no ``max_tokens``, most servers know nothing else. TEI's rerankers take ``texts``.
_SWAP: Final = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "documents": "texts",
}

# Asked again, such replies would be paid for again.
_BROTLI: Final = (
    "the reply is packed with brotli, which was not asked for and cannot be read; have the server, or the proxy in"
    " front of it, send gzip or plain text"
)
_EPOCH: Final = 1e9
"""Seconds since 1970 in 2001: no server asks to wait so long."""
_FEWEST: Final = 2
"""A verdict's probability needs at least one alternative beside the token that was taken."""

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
    """It may work the next time.

    Attributes:
        reason: what was said.
        kind: the reason in general, to be counted by.
        after: the wait that was asked for, seconds.
        usage: the tokens that were taken all the same.
    """

    reason: str
    kind: str = UNUSABLE
    after: float | None = None
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It will never work for this request; others may.

    Attributes:
        reason: what was said.
        status: what the request's unit gets.
        plain: whether the server said that it is about this request (its length, its content); otherwise that is
            only concluded from other requests having worked.
        too_long: whether the prompt, or the prompt and the room for its reply, is too long.
        value: whether a parameter's value is refused, as all requests of a labeler have it.
        context: the tokens that prompt and reply may have together, where the server says so.
        prompt: the tokens of the prompt, where the server counted them.
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
    """The server does not take this parameter of the body, or only numbers up to ``most``."""

    param: str
    reason: str
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Fatal:
    """It will never work for any request.

    Attributes:
        reason: what was said.
        setting: the setting that it is about, where that is known.
    """

    reason: str
    setting: Setting | None = None

    def cured(self, keyless: bool) -> str:
        """Return the reason with what mends it; ``keyless`` where no key was sent."""
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
    """Say what a response means to a body with the fields ``params``."""
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
    # 529 is Anthropic's "overloaded"; a 429 about an unpaid account comes back however long one waits.
    if status == 429 or status in (503, 529):
        if status == 429 and said.unpaid:
            return Fatal(reason)
        return Retry(reason, THROTTLED, after=retry_after(headers))
    # Such a complaint often names max_tokens as well, which the server does not refuse.
    if said.too_long or status == 413:
        return Refused(reason, too_long=True, context=said.context, prompt=said.prompt)
    if status in (400, 403, 422, 451) and said.moderated:
        return Refused(reason, Status.REFUSED)
    if status in (400, 422, 500, 501):
        # What is missing stands in the body under another name.
        for sent, wanted in _SWAP.items():
            if wanted == said.lacking and sent in params:
                return Unsupported(sent, reason)
        # llama-cpp-python refuses parameters with 500; but a 500 that merely mentions one may be about anything.
        param = said.named(params) if status < 500 or said.param else None
        most = None if param is None else said.at_most(param, params)
        if param is not None and (most is not None or not said.wrong_value(param)):
            return Unsupported(param, reason, most)
    # llama-server says so of a route that it was not started for.
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
    """Return a response body unpacked by what its bytes are: headers are wrong about that, and it was paid.

    ``coding`` is what the headers call it, which alone tells bare deflate, whose bytes begin in any way.

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
    """Return what zlib packed, of all members that follow each other in gzip."""
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
    """Say what is wrong with a response body that holds no completion, although the status says so; None if it does."""
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
        # To ask again would pay for the same bytes again.
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
    """Return the seconds that a response asks to wait: ``retry-after-ms``, ``retry-after`` as seconds or a date."""
    # OpenAI and Azure send both; the finer one counts.
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * scale
            if seconds > _EPOCH:  # a moment, which some gateways send in place of a length of time
                seconds -= _now(headers)
            if math.isfinite(seconds):
                return max(0.0, seconds)
    until = _date(headers.get("retry-after", ""))
    if until is None:
        return None
    return max(0.0, until - _now(headers))


def _now(headers: Mapping[str, str]) -> float:
    """Return the time by the server's own clock, which may be wrong; by ours where it does not say."""
    now = _date(headers.get("date", ""))
    return time.time() if now is None else now


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


@dataclass
class ServerQuirks:
    """What an endpoint turned out to refuse, for one model: the one place that knows what a server takes.

    Attributes:
        swapped: parameters that it takes under another name.
        dropped: parameters that it does not take.
        alternatives: the most log-probabilities of alternative tokens that it gives.
        room: the most tokens that it allows for a reply.
        context: the tokens that prompt and reply may have together.
        replies: how many of its replies were seen, replayed ones included; with one, it is proven to answer.
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
        """Return the body as this endpoint takes it, with a constraint beside what was asked for.

        ``room`` is the most tokens that the model's context leaves for the reply, where it is known.
        """
        if not (self.swapped or self.dropped or self.alternatives or self.room or room):
            # The body is long, and is not read: a quote in a text has a backslash, so that none is taken for a name.
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
        """Return the way by which the endpoint is asked to hold to a constraint now; None where no way is left."""
        if not constraint:
            return None
        left = ways(constraint)[self._tried[kind_of(constraint)] :]
        return next((way for way in left if not self.dropped.issuperset(way.fields)), None)

    def took(self, constraint: Mapping[str, Any], way: Way) -> None:
        """Note that a reply came where a constraint was stated in this way: a later refusal is about something else."""
        self._taken.add((kind_of(constraint), way.name))

    def takes(self, constraint: Mapping[str, Any], way: Way) -> bool:
        """Whether a reply ever came where a constraint was stated in this way."""
        return (kind_of(constraint), way.name) in self._taken

    def rule_out(self, constraint: Mapping[str, Any], way: Way, fault: str) -> None:
        """Go on to the next way, unless another request did so already."""
        if self.way(constraint) == way:
            kind = kind_of(constraint)
            self._tried[kind] = 1 + ways(constraint).index(way)
            self._faults.setdefault(kind, []).append(f"{way.name} ({fault})")

    def news(self, constraint: Mapping[str, Any], *, settled: bool) -> str | None:
        """Return what became of ways that were tried in vain: the first time, and once it is ``settled`` what holds."""
        kind, following = kind_of(constraint), self.way(constraint)
        if not self._faults.get(kind) or (kind in self._told and not settled):
            return None
        self._told.add(kind)
        faults = self._faults.pop(kind)
        instead = "judgekit asks for free text" if following is None else f"{following.name} is sent"
        return f"does not hold replies to their form by {' or '.join(faults)}: {instead} from now on"

    def learn(self, param: str, most: int | None = None) -> str | None:
        """Note that a parameter, or a number above ``most``, is refused; return what is done, or None if nothing is."""
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
        """Note the largest number that is allowed of a parameter."""
        if param in ROOMS:
            self.room = min(most, self.room or most)
            return f"at most {self.room:,} are sent"
        if most < _FEWEST:
            return None
        self.alternatives = min(most, self.alternatives or most)
        return f"log-probabilities of {self.alternatives} alternatives are asked for"

    def learn_context(self, context: int) -> str:
        """Note the tokens that prompt and reply may have together; return what is done about it."""
        self.context = min(context, self.context or context)
        return f"has a context of {self.context:,} tokens: a reply gets no more room than the prompt leaves"
