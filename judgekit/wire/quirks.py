"""What is known of odd servers: one file of rules, each with the case that taught it.

`read_response` says what a response means: one pure function, so that every fault has a test without a server. Nothing
here knows model names. The order of the questions matters: a 400 about the length of one prompt may also mention
``max_tokens``, and a 429 about an empty account will not heal by waiting.

`ServerQuirks` holds what was learned of one model at one endpoint. A 400 or 422 that names a parameter of the body
swaps ``max_tokens`` and ``max_completion_tokens``, or drops the parameter; that is remembered for the endpoint and
model, told once and stored with each reply (the body really sent). The identity of a request does not change by it.

A constraint is added here to what was asked for, so that it is no part of a request's identity: a server that does not
take it is sent what was asked for alone. What a server that ignores it replies is read as it comes.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final

import orjson

from judgekit.data.tables import Status
from judgekit.wire.jsontext import at, canonical, parse_json
from judgekit.wire.types import CONSTRAINTS, SHOWN, TooLargeError, chosen, tokens_used

# One prompt is too long. OpenAI and vLLM: "maximum context length is 9 tokens"; llama.cpp: "exceeds the available
# context size"; TGI: "Input validation error: `inputs` tokens"; LiteLLM says it with 500: "prompt is too long".
_CONTEXT: Final = re.compile(
    r"context[ _](length|window|size)|maximum context|(prompt|input|message|request)s? (is |are )?too (long|large)"
    r"|too many (input )?tokens|reduce the length|input validation error: .inputs. tokens"
    r"|exceeds? .{0,40}(token|context) limit",
    re.IGNORECASE,
)

# One prompt is not answered. Azure: code ``content_filter`` with 400; OpenRouter: "flagged" with 403.
_MODERATED: Final = re.compile(r"content[ _](filter|policy|management)|moderation|safety system|flagged", re.IGNORECASE)

# A 429 that waiting does not heal. OpenAI: "check your plan and billing details"; gateways: "credit balance".
_UNPAID: Final = re.compile(r"insufficient[ _]quota|billing|exceeded your current quota|credit balance", re.IGNORECASE)

# A 400 about the settings, though the server answered before: a key that expired, a model that was unloaded.
_MISCONFIGURED: Final = re.compile(
    r"(invalid|incorrect|missing|wrong|expired|revoked|no|valid) (\w+ )?api[ _-]?key|invalid_api_key|model_not_found"
    r"|api[ _-]?key (\w+ )?(not|is|invalid|incorrect|missing|expired|required)\b|(unknown|invalid|no such) model\b"
    r"|model \S{1,80} (is )?(not found|not loaded|does not exist|doesn't exist)",
    re.IGNORECASE,
)

_WRONG_CODE: Final = re.compile(r"invalid_(value|type)|_(above|below)_(max|min)")
_ONE_VALUE: Final = r"(set to|strictly|positive|> ?0|1\b|null|none|unset|omitted|absent|false|empty|the default)"
# A wrong value says nothing against the parameter, since another request's value may be right. But where a server takes
# a single value, or none that is zero (TGI: "temperature must be strictly positive"), leaving the parameter out heals.
_WRONG_VALUE: Final = re.compile(
    r"too (large|big|high|long|small|low)|(less|greater|more|smaller|larger|lower|higher) than|at (most|least)\b"
    rf"|valid range|out of range|exceeds|must be (?!{_ONE_VALUE})|should be (an? |at |in |between)",
    re.IGNORECASE,
)

# Several words in quotes are taken from the request, so the error is not about what they mention: a prompt with
# control characters "near 'the temperature of'" says nothing of the temperature.
_ECHO: Final = re.compile(r"(?<!\w)(['\"`])([^'\"`]*\w\s+\w[^'\"`]*)\1(?!\w)")

_LOCATION: Final = re.compile(r"""['"]loc['"]: [\[(]['"]body['"], ['"](\w+)""")
# FastAPI's detail, which vLLM sends as Python writes it: the parameter, and what is said without the input.
_SAID: Final = re.compile(r"""['"]msg['"]: (['"])(.*?)\1[,}]""")

_NO_PARAM: Final = frozenset({"", "none", "null", "body"})
# Parameters that are words as well ("please stop asking, dear user"): only quoted they are meant.
_AMBIGUOUS: Final = frozenset({"n", "stop", "user", "seed", "tools", "store"})

_FIXED: Final = frozenset({"model", "n", "stream", *SHOWN.values()})
"""What no request can do without."""

_SHOWN: Final = 300
_FEW: Final = 16
# How bytes begin that gzip or zlib packed; no JSON and no page begins so, whatever the headers say.
_PACKED: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

_BINARY: Final = re.compile(rb"\s*[^\s -~]")

# OpenAI's newer models take no ``max_tokens``, most servers know nothing else.
_SWAP: Final = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}

# Without the first the second is an error of its own.
_TOGETHER: Final = {"logprobs": ("logprobs", "top_logprobs")}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A chat completion: a JSON object with choices. Whether it says anything useful is the labeler's question."""

    raw: str
    json: dict[str, Any]


THROTTLED: Final = "the server asked to slow down"
DOWN: Final = "no connection, or no answer in time"
OVERSIZED: Final = "the reply was too large"
MALFORMED: Final = "the server's HTTP headers break the rules"
UNUSABLE: Final = "the server reported an error, or sent no usable reply"


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work the next time.

    Attributes:
        reason: what was said.
        kind: the reason in general, to be counted by.
        after: the wait that was asked for, seconds.
        usage: (prompt, completion) tokens that were taken all the same.
    """

    reason: str
    kind: str = UNUSABLE
    after: float | None = None
    usage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It will never work for this request; others may.

    Attributes:
        reason: what was said.
        status: what the request's unit gets.
        plain: whether the server said that it is about this request (its length, its content); otherwise that is
            only concluded from other requests having worked.
    """

    reason: str
    status: Status = Status.FAILED
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The server does not take this parameter of the body."""

    param: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fatal:
    """It will never work for any request."""

    reason: str


Complaint = Retry | Refused | Unsupported | Fatal
Response = Accepted | Complaint


def read_response(
    status: int, headers: Mapping[str, str], data: bytes, params: Collection[str] = (), proven: bool = False
) -> Response:
    """Say what a response means."""
    body = _json(data)
    if body is None:
        body = _json(data.decode("utf-8-sig", "replace"))
    if 200 <= status < 300:
        return _completion(status, body, data)
    text = data.decode("utf-8", "replace")
    error = _Error.read(body, text)
    reason = f"{status}: {error.message}"
    if 300 <= status < 400:
        return Fatal(f"{status}: it redirects to {headers.get('location', 'nowhere')}; give that address as base_url")
    # 529 is Anthropic's "overloaded"; a 429 about an unpaid account comes back however long one waits.
    if status == 429 or status in (503, 529):
        if status == 429 and _UNPAID.search(error.everything):
            return Fatal(reason)
        return Retry(reason, THROTTLED, after=retry_after(headers))
    # Such a complaint often names max_tokens as well, which the server does not refuse.
    if _CONTEXT.search(error.everything) or status == 413:
        return Refused(reason)
    if status in (400, 403, 422, 451) and _MODERATED.search(error.everything):
        return Refused(reason, Status.REFUSED)
    if status in (408, 409, 425) or status >= 500:
        return Retry(reason, after=retry_after(headers))
    if status in (400, 422):
        param = error.named(params)
        # A constraint that a server cannot hold to is left out, as one that it does not know.
        blamed = _WRONG_CODE.search(error.code) or _WRONG_VALUE.search(error.words)
        wrong_value = param is not None and param not in CONSTRAINTS and blamed is not None
        if param is not None and not wrong_value:
            return Unsupported(param, reason)
        if not proven or error.param == "model" or _MISCONFIGURED.search(error.everything):
            return Fatal(reason)
        return Refused(reason, plain=wrong_value)
    if status == 404:
        reason += (
            " (is the model id right, does base_url end as the server wants, usually in /v1, and is this its api?)"
        )
    return Fatal(reason)


def decoded(data: bytes, most: int) -> bytes:
    """Return a response body unpacked by what its bytes are: headers are wrong about that, and it was paid.

    Raises:
        TooLargeError: it has more bytes, unpacked, than a reply may have.
    """
    if not data.startswith(_PACKED):
        return data
    # At most a byte beyond the limit is unpacked: a few kilobytes may hold gigabytes.
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # which of the two, the data say
    try:
        unpacked = unpacking.decompress(data, most + 1)
    except zlib.error:
        return data
    if len(unpacked) > most:
        raise TooLargeError(most)
    return unpacked


def _json(data: str | bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        return None


def unusable(body: Any) -> str | None:
    """Say what is wrong with a response body that holds no completion, although the status says so; None if it does."""
    if not isinstance(body, dict):
        return "no JSON object"
    if body.get("error"):
        return f"an error in it: {_Error.read(body, str(body)).message}"
    choices = body.get("choices")
    choice = chosen(body) if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return "a JSON object without choices"
    if choice.get("error"):
        return f"an error in its choice: {_Error.read(choice, str(choice)).message}"
    if not isinstance(choice.get("message"), dict) and choice.get("finish_reason") != "content_filter":
        return "a choice without a message"
    return None


def _completion(status: int, body: Any, data: bytes) -> Response:
    problem = unusable(body)
    if problem is None:
        return Accepted(data.decode("utf-8", "replace").removeprefix("\ufeff"), body)
    text = data.decode("utf-8", "replace")
    if body is None and len(data) >= _FEW and _BINARY.match(data):
        # To ask again would pay for the same bytes again.
        return Refused(f"{status} with {len(data):,} bytes that are no text (they begin with {data[:8].hex(' ')})")
    if isinstance(body, dict):
        if "error" not in problem:
            problem += f": {_short(text)}"
        return Retry(f"{status} with {problem}", usage=tokens_used(body))
    if not text.strip():
        return Retry(f"{status} with nothing where a chat completion should be")
    kind = "no whole JSON object"
    if text.lstrip().startswith("<"):
        kind = "an HTML page (login?)"
    return Retry(f"{status} with {kind} where a chat completion should be: {_short(text)}")


@dataclass(frozen=True, slots=True)
class _Error:
    """What an error says: its message, code and parameter, and of the message the words that are its own."""

    message: str
    code: str = ""
    param: str = ""
    words: str = ""

    @classmethod
    def read(cls, body: Any, text: str) -> _Error:
        """Read the shapes in use: OpenAI's, a bare message, FastAPI's detail, anything else as text."""
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, str):
            return cls._plain(error)
        if isinstance(error, dict):
            code = f"{error.get('code') or ''} {error.get('type') or ''}"
            detail = error.get("message") or error.get("detail")
            if isinstance(detail, str):
                return cls._plain(detail, code, error.get("param"))
            if isinstance(detail, list):
                return cls._listed(detail, code)
        return cls._plain(text)

    @classmethod
    def _plain(cls, text: str, code: str = "", param: Any = None) -> _Error:
        named = re.split(r"[.\[]", str(param or ""))[0]
        if named.casefold() in _NO_PARAM:
            named = ""
        if place := _LOCATION.search(text):  # FastAPI's detail, written as Python would
            messages = " ".join(message for _, message in _SAID.findall(text))
            return cls(_short(text), code, named or place[1], messages)
        return cls(_short(text) or "(an empty response)", code, named, _ECHO.sub(" ", _short(text)))

    @classmethod
    def _listed(cls, detail: list[Any], code: str) -> _Error:
        """Read FastAPI's detail: what it says, not the input that it repeats."""
        param = ""
        messages: list[str] = []
        sentences: list[str] = []
        for entry in detail:
            message, location = at(entry, "msg"), at(entry, "loc")
            if not isinstance(message, str):
                continue
            messages.append(message)
            path: list[str] = []
            if isinstance(location, list):
                path = [str(step) for step in location if step != "body"]
            if path:
                param = param or path[0]
                message = f"{'.'.join(path)}: {message}"
            sentences.append(message)
        return cls(_short("; ".join(sentences) or str(detail)), code, param, " ".join(messages))

    @property
    def everything(self) -> str:
        return f"{self.code} {self.message}"

    def named(self, params: Collection[str]) -> str | None:
        """Return the parameter of the body that the error is about; what it names itself goes before what it says."""
        candidates = set(params) - _FIXED
        if self.param in candidates:
            return self.param
        places: list[tuple[int, str]] = []
        for param in () if self.param else candidates:
            edge = "['\"`]" if param in _AMBIGUOUS else r"\b"
            place = re.search(f"{edge}{re.escape(param)}{edge}", self.words)
            if place is not None:
                places.append((place.start(), param))
        return min(places)[1] if places else None


def _short(text: str) -> str:
    if text.lstrip().startswith("<"):
        text = re.sub(r"<[^>]*>", " ", text)
    plain = " ".join(text.split())
    if len(plain) > _SHOWN:
        return plain[:_SHOWN] + "…"
    return plain


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait: ``retry-after-ms``, ``retry-after`` as seconds or a date."""
    # OpenAI and Azure send both; the finer one counts.
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * scale
            if math.isfinite(seconds):
                return max(0.0, seconds)
    until = _date(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _date(headers.get("date", ""))  # by the server's own clock, which may be wrong
    if now is None:
        now = time.time()
    return max(0.0, until - now)


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
        replies: how many of its replies were seen, replayed ones included; with one, it is proven to answer.
        constrained: whether it ever answered where a constraint was added.
    """

    swapped: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    replies: int = 0
    constrained: bool = False

    def apply(self, body: bytes, constraint: Mapping[str, Any] = MappingProxyType({})) -> bytes:
        """Return the body as this endpoint takes it, with a constraint beside what was asked for."""
        if not (self.swapped or self.dropped):
            # The body is long, and is not read: a quote in a text has a backslash, so that none is taken for a name.
            for name in sorted(constraint):
                if f'"{name}":'.encode() not in body:
                    body = b"".join((body[:-1], b",", canonical({name: constraint[name]})[1:]))
            return body
        fields: dict[str, Any] = {}
        for name, value in {**constraint, **orjson.loads(body)}.items():
            taken = self.swapped.get(name, name)
            if taken not in self.dropped:
                fields[taken] = value
        return canonical(fields)

    def adds(self, constraint: Mapping[str, Any]) -> bool:
        """Whether anything of a constraint is sent."""
        return not self.dropped.issuperset(constraint)

    def refuse(self, constraint: Mapping[str, Any]) -> bool:
        """Leave a constraint out, since a body was answered without it only; return whether that is new."""
        if self.constrained or not self.adds(constraint):
            return False
        self.dropped.update(constraint)
        return True

    def learn(self, param: str) -> str | None:
        """Note that a parameter is refused; return what is done about it, or None if nothing can be."""
        if param in self.swapped.values():
            return None
        if param in _SWAP and param not in self.swapped:
            self.swapped[param] = _SWAP[param]
        else:
            self.dropped.update(_TOGETHER.get(param, (param,)))
        if param in self.swapped:
            return f"{param} is sent as {self.swapped[param]}"
        return f"{param} is left out"
