"""What a server's response means: one pure function, so that every fault has a test without a server.

Nothing here knows model names. The order of the questions matters: a 400 about the length of one prompt may also
mention ``max_tokens``, and a 429 about an empty account will not heal by waiting.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from judgekit.data.tables import Status
from judgekit.llm.types import parse_json, tokens_used

__all__ = [
    "Accepted",
    "Again",
    "Complaint",
    "Rejected",
    "Stop",
    "Unsupported",
    "Verdict",
    "read_response",
    "retry_after",
]

_CONTEXT = re.compile(
    r"context[ _](length|window|size)|maximum context|(prompt|input|message|request)s? (is |are )?too (long|large)"
    r"|too many (input )?tokens|reduce the length|input validation error: .inputs. tokens"
    r"|exceeds? .{0,40}(token|context) limit",
    re.IGNORECASE,
)
_MODERATED = re.compile(r"content[ _](filter|policy|management)|moderation|safety system|flagged", re.IGNORECASE)
_UNPAID = re.compile(r"insufficient[ _]quota|billing|exceeded your current quota|credit balance", re.IGNORECASE)
_WRONG_VALUE = re.compile(r"invalid_(value|type)|_(above|below)_(max|min)")
_AMBIGUOUS = frozenset({"n", "stop", "user", "seed", "tools", "store"})
_FIXED = frozenset({"model", "messages", "n", "stream"})
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Accepted:
    """A chat completion: a JSON object with choices. Whether it says anything useful is the labeler's question."""

    raw: str
    json: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Again:
    """It may work the next time.

    Attributes:
        reason: what was said.
        throttled: whether too much was asked at once.
        after: the wait that was asked for, seconds.
        usage: (prompt, completion) tokens that were taken all the same.
    """

    reason: str
    throttled: bool = False
    after: float | None = None
    usage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will never work for this request; others may."""

    reason: str
    status: Status = Status.FAILED


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The server does not take this parameter of the body."""

    param: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """It will never work for any request."""

    reason: str


Complaint = Again | Rejected | Unsupported | Stop
Verdict = Accepted | Complaint


def read_response(
    status: int, headers: Mapping[str, str], data: bytes, params: Collection[str] = (), proven: bool = False
) -> Verdict:
    """Say what a response means.

    Args:
        status: the HTTP status.
        headers: with lower-case names.
        data: the response body.
        params: the top-level keys of the request body.
        proven: whether the endpoint has completed other requests, so that a complaint that is not understood is
            about this one.
    """
    body = _json(data)
    if 200 <= status < 300:
        return _completion(body, data)
    text = data.decode("utf-8", "replace")
    error = _Error.read(body, text)
    said = f"{status}: {error.message}"
    if 300 <= status < 400:
        return Stop(f"{status}: it redirects to {headers.get('location', 'nowhere')}; give that address as base_url")
    if status == 429 or status in (503, 529):
        if status == 429 and _UNPAID.search(error.everything):
            return Stop(said)
        return Again(said, throttled=True, after=retry_after(headers))
    if _CONTEXT.search(error.everything) or status == 413:
        return Rejected(said)
    if status in (400, 403, 422, 451) and _MODERATED.search(error.everything):
        return Rejected(said, Status.REFUSED)
    if status in (408, 409, 425) or status >= 500:
        return Again(said, after=retry_after(headers))
    if status in (400, 422):
        param = None if _WRONG_VALUE.search(error.code) else error.named(params)
        if param is not None:
            return Unsupported(param, said)
        return Rejected(said) if proven else Stop(said)
    if status == 404:
        said += " (is the model id right, and does base_url end as the server wants, usually in /v1?)"
    return Stop(said)


def _json(data: bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        return None


def _completion(body: Any, data: bytes) -> Verdict:
    choices = body.get("choices") if isinstance(body, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        try:
            return Accepted(data.decode(), body)
        except UnicodeDecodeError:
            return Again("200 with a body that is not UTF-8")
    text = data.decode("utf-8", "replace")
    if not isinstance(body, dict):
        kind = "HTML" if text.lstrip()[:1] == "<" else "no whole JSON object"
        return Again(f"200 with {kind} where a chat completion should be: {_short(text)}")
    if "error" in body:
        return Again(f"200 with an error in it: {_Error.read(body, text).message}", usage=tokens_used(body))
    return Again(f"200 with a JSON object without choices: {_short(text)}", usage=tokens_used(body))


@dataclass(frozen=True, slots=True)
class _Error:
    message: str
    code: str
    param: str

    @classmethod
    def read(cls, body: Any, text: str) -> _Error:
        """Read the shapes in use: OpenAI's, a bare message, FastAPI's detail, anything else as text."""
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, str):
            return cls(_short(error), "", "")
        if isinstance(error, dict):
            code = f"{error.get('code') or ''} {error.get('type') or ''}"
            detail = error.get("message") or error.get("detail")
            if isinstance(detail, str):
                return cls(_short(detail), code, str(error.get("param") or ""))
            if isinstance(detail, list):
                places = [d.get("loc") for d in detail if isinstance(d, dict)]
                param = next((str(p) for place in places if isinstance(place, list) for p in place if p != "body"), "")
                return cls(_short(str(detail)), code, param)
        return cls(_short(text) or "(an empty response)", "", "")

    @property
    def everything(self) -> str:
        return f"{self.code} {self.message}"

    def named(self, params: Collection[str]) -> str | None:
        """Return the parameter of the body that the error is about."""
        candidates = [p for p in params if p not in _FIXED]
        if self.param in candidates:
            return self.param
        places = sorted((place, p) for p in candidates for place in self._places(p))
        return places[0][1] if places else None

    def _places(self, param: str) -> Iterator[int]:
        quote = "['\"`]" if param in _AMBIGUOUS else r"\b"
        found = re.search(f"{quote}{re.escape(param)}{quote}", self.message)
        if found:
            yield found.start()


def _short(text: str) -> str:
    plain = " ".join(re.sub(r"<[^>]*>", " ", text).split() if text.lstrip()[:1] == "<" else text.split())
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait: ``retry-after-ms``, ``retry-after`` as seconds or a date."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
