"""Reads a server's refusal: the parameter that it names, the number that it allows, or a fault of the settings.

Everything is read from words, since servers agree on no codes. Nothing here knows model names. Each rule names the case
that taught it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from judgekit.wire.jsontext import at
from judgekit.wire.types import ASKED, CONSTRAINTS, SHOWN

ROOMS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names of the limit on a reply's tokens."""

NUMBERS: Final = frozenset({"logprobs", "top_logprobs", *ROOMS})
"""Parameters whose number can be lowered to a server's limit without changing the question."""

# One prompt is too long. OpenAI and vLLM: "maximum context length is 9 tokens"; llama.cpp: "exceeds the available
# context size", and of what it reranks "input (702 tokens) is too large to process"; TGI: "Input validation error:
# `inputs` tokens"; LiteLLM says it with 500: "prompt is too long".
_CONTEXT: Final = re.compile(
    r"context[ _](length|window|size|limit)|maximum context"
    r"|(prompt|input|message|request)s? (is |are )?too (long|large)"
    r"|too many (input )?tokens|reduce the length|input validation error: .inputs. tokens"
    r"|exceeds? .{0,40}(token|context) limit|input \(\d+ tokens\) is too large",
    re.IGNORECASE,
)

# The limit on prompt and reply together. vLLM: "maximum context length is 2048 tokens"; llama.cpp: "available context
# size (4096 tokens)"; TGI: "`max_new_tokens` must be <= 2048"; Anthropic: "188240 + 21333 > 200000".
_CONTEXT_IS: Final = re.compile(
    r"(?:context[ _](?:length|window|size)|maximum context)[^\d.;]{0,30}?\(?(\d[\d,]*)"
    r"|`max_new_tokens` must be <= (\d+)|exceed context limit: \d+ \+ \d+ > (\d+)"
    r"|prompt is too long: \d+ tokens > (\d+)",
    re.IGNORECASE,
)
# The tokens of the prompt, if counted. vLLM's "at least 24577 input tokens" is no count: it stops counting where the
# room for the reply is used up.
_PROMPT_IS: Final = re.compile(
    r"(?:request has|prompt has) (\d[\d,]*) (?:input )?tokens|\((\d[\d,]*) (?:in (?:the|your) (?:messages|prompt))"
    r"|request \((\d[\d,]*) tokens\)|(\d[\d,]*) tokens from the input|given: (\d[\d,]*) `inputs`"
    r"|context limit: (\d[\d,]*) \+|prompt is too long: (\d[\d,]*) tokens|input \((\d[\d,]*) tokens\)",
    re.IGNORECASE,
)

# The largest number of a parameter. vLLM: "greater than max allowed: 5", "cannot be greater than max_model_len=8192";
# OpenAI: "supports at most 4096 completion tokens"; DeepSeek: "the valid range of max_tokens is [1, 8192]"; Together:
# "greater than the maximum of 1".
_AT_MOST: Final = re.compile(
    r"max(?:imum)? allowed(?: value)?(?: is|:)? ?(\d[\d,]*)|(?:at most|less than or equal to|<=) ?(\d[\d,]*)"
    r"|\[ ?\d+ ?, ?(\d[\d,]*) ?\]|between \d+ and (\d[\d,]*)|> (\d[\d,]*), which is the maximum"
    r"|maximum (?:of|is) (\d[\d,]*)|greater than max_model_len=(\d+)",
    re.IGNORECASE,
)

# A single prompt is refused. Azure: code ``content_filter`` with 400; OpenRouter: "flagged" with 403.
_MODERATED: Final = re.compile(r"content[ _](filter|policy|management)|moderation|safety system|flagged", re.IGNORECASE)

# A 429 for which waiting is useless. OpenAI: "check your plan and billing details"; gateways: "credit balance".
_UNPAID: Final = re.compile(r"insufficient[ _]quota|billing|exceeded your current quota|credit balance", re.IGNORECASE)

# The key. LiteLLM's proxy without a database says "No connected db." of each key that is not its own.
_KEY: Final = re.compile(
    r"(invalid|incorrect|missing|wrong|expired|revoked|no|valid) (\w+ )?api[ _-]?key|invalid_api_key"
    r"|api[ _-]?key (\w+ )?(not|is|invalid|incorrect|missing|expired|required)\b|no_db_connection|no connected db"
    r"|db not connected|not connected to db|auth_error|authentication|unauthori[sz]ed|invalid (bearer )?token",
    re.IGNORECASE,
)
# The model, although the server answered before: it was unloaded, or the server accepts only its own.
_MODEL: Final = re.compile(
    r"model_not_found|(unknown|invalid|no such) model\b|\bis pinned to\b|model_group_not_found"
    r"|model \S{1,80} (is )?(not found|not loaded|does not exist|doesn't exist)|no healthy deployments",
    re.IGNORECASE,
)

_WRONG_CODE: Final = re.compile(r"invalid_(value|type)|_(above|below)_(max|min)")
_ONE_VALUE: Final = r"(set to|strictly|positive|> ?0|1\b|null|none|unset|omitted|absent|false|empty|the default)"
# A wrong value does not speak against the parameter, since another request's value may be right. But if a server
# accepts a single value, or no zero (TGI: "temperature must be strictly positive"), leaving the parameter out helps.
_WRONG_VALUE: Final = re.compile(
    r"too (large|big|high|long|small|low)|(less|greater|more|smaller|larger|lower|higher) than|at (most|least)\b"
    rf"|valid range|in range|out of range|exceeds|must be (?!{_ONE_VALUE})|should be (an? |at |in |between)",
    re.IGNORECASE,
)

# Several quoted words come from the request, so the error is not about what they mention: control characters "near 'the
# temperature of'" are not about the temperature.
_ECHO: Final = re.compile(r"(?<!\w)(['\"`])([^'\"`]*\w\s+\w[^'\"`]*)\1(?!\w)")

_LOCATION: Final = re.compile(r"""['"]loc['"]: [\[(]['"]body['"], ['"](\w+)""")
# A Python client behind a gateway. LiteLLM 1.106: "create() got an unexpected keyword argument 'response_format'".
_KEYWORD: Final = re.compile(r"unexpected keyword argument ['\"](\w+)")
# FastAPI's detail, which vLLM sends in Python's syntax: the parameter, and the message without the input.
_SAID: Final = re.compile(r"""['"]msg['"]: (['"])(.*?)\1[,}]""")

# A missing field of the body. TEI: "missing field `texts` at line 1".
_LACKING: Final = re.compile(r"missing field ['\"`]?(\w+)", re.IGNORECASE)

_NO_PARAM: Final = frozenset({"", "none", "null", "body"})
# Parameters that are also words ("please stop asking, dear user"): they count only in quotes.
_AMBIGUOUS: Final = frozenset({"n", "stop", "user", "seed", "tools", "store"})

_FIXED: Final = frozenset({"model", "n", "stream", *ASKED, *SHOWN.values()})
"""Fields that every request needs."""

_EMPTY: Final = "(an empty response)"
_NO_REASON: Final = frozenset({_EMPTY, "internal server error"})
_SHOWN: Final = 300
_DIGITS: Final = 12
"""No number of tokens has so many digits."""


Setting = Literal["key", "model", "address"]

CURES: Final[Mapping[Setting, str]] = {
    "key": "check the key that the variable named by api_key_env holds",
    "model": "check the model id: `judgekit check-endpoint` shows those that the server lists",
    "address": "is the model id right, does base_url end as the server wants, usually in /v1, and is this its api?",
}
NO_KEY: Final = "no key was sent: name the variable that holds it with api_key_env"


@dataclass(frozen=True, slots=True)
class Said:
    """An error: its message, code and parameter, and the message's own words.

    Attributes:
        message: the text to show.
        code: its code and type.
        param: the parameter in a separate field, or in FastAPI's location.
        words: the message without repetitions of the request.
        counts: numbers of tokens in separate fields, such as llama.cpp's ``n_ctx``.
    """

    message: str
    code: str = ""
    param: str = ""
    words: str = ""
    counts: tuple[int | None, int | None] = field(default=(None, None))

    @classmethod
    def read(cls, body: Any, text: str) -> Said:
        """Read the shapes in use: OpenAI's, a bare message, FastAPI's detail, anything else as text."""
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, str):
            return cls._plain(error)
        if isinstance(error, dict):
            code = f"{error.get('code') or ''} {error.get('type') or ''}"
            counts = _whole(error.get("n_ctx")), _whole(error.get("n_prompt_tokens"))
            detail = error.get("message") or error.get("detail")
            if isinstance(detail, str):
                upstream = at(error, "metadata", "raw")  # OpenRouter's "Provider returned error", and what it returned
                if isinstance(upstream, str):
                    detail = f"{detail}: {upstream}"
                return cls._plain(detail, code, error.get("param"), counts)
            if isinstance(detail, list):
                return cls._listed(detail, code)
        return cls._plain(text)

    @classmethod
    def _plain(
        cls, text: str, code: str = "", param: Any = None, counts: tuple[int | None, int | None] = (None, None)
    ) -> Said:
        named = re.split(r"[.\[]", str(param or ""))[0]
        if named.casefold() in _NO_PARAM:
            named = ""
        if place := _LOCATION.search(text):  # FastAPI's detail, written as Python would
            messages = " ".join(message for _, message in _SAID.findall(text))
            return cls(shortened(text), code, named or place[1], messages)
        if keyword := _KEYWORD.search(text):
            named = named or keyword[1]
        words = _ECHO.sub(" ", shortened(text))
        return cls(shortened(text) or _EMPTY, code, named, words, counts)

    @classmethod
    def _listed(cls, detail: list[Any], code: str) -> Said:
        """Read FastAPI's detail, without the input that it repeats."""
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
        return cls(shortened("; ".join(sentences) or str(detail)), code, param, " ".join(messages))

    @property
    def everything(self) -> str:
        """Code, type and message."""
        return f"{self.code} {self.message}"

    @property
    def nothing(self) -> bool:
        """Whether it gives no reason, like a web framework whose server code failed."""
        return self.message.casefold().strip(".") in _NO_REASON

    @property
    def too_long(self) -> bool:
        """Whether the prompt, with or without the room for the reply, exceeds the model's context."""
        return _CONTEXT.search(self.everything) is not None

    @property
    def context(self) -> int | None:
        """The limit on the tokens of prompt and reply together, if given."""
        return self.counts[0] or _number(_CONTEXT_IS, self.message)

    @property
    def prompt(self) -> int | None:
        """The tokens of the prompt, if counted."""
        return self.counts[1] or _number(_PROMPT_IS, self.message)

    @property
    def moderated(self) -> bool:
        """Whether it is about this prompt's content."""
        return _MODERATED.search(self.everything) is not None

    @property
    def lacking(self) -> str | None:
        """The missing field of the body, if named."""
        missing = _LACKING.search(self.words)
        return missing[1] if missing else None

    @property
    def unsupported(self) -> bool:
        """Whether the server says that it does not support this at all."""
        return "not_supported" in self.code

    @property
    def unpaid(self) -> bool:
        """Whether an account is empty, for which waiting is useless."""
        return _UNPAID.search(self.everything) is not None

    @property
    def setting(self) -> Setting | None:
        """The setting at fault, whatever the request."""
        if _KEY.search(self.everything):
            return "key"
        if self.param == "model" or _MODEL.search(self.everything):
            return "model"
        return None

    def named(self, params: Collection[str]) -> str | None:
        """Return the parameter at fault; a parameter in a separate field wins over words."""
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

    def wrong_value(self, param: str) -> bool:
        """Whether only the parameter's value is refused."""
        # A constraint that a server cannot enforce is left out, like an unknown one.
        return param not in CONSTRAINTS and bool(_WRONG_CODE.search(self.code) or _WRONG_VALUE.search(self.words))

    def at_most(self, param: str, sent: Mapping[str, Any]) -> int | None:
        """Return the largest number that the server allows, if given and below the one sent."""
        if param not in NUMBERS:
            return None
        # A chat names the number of alternatives ``top_logprobs``, but vLLM's refusal says ``logprobs``.
        names = ("logprobs", "top_logprobs") if param in ("logprobs", "top_logprobs") else (param,)
        numbers = [sent.get(name) for name in names]
        most = _number(_AT_MOST, self.words)
        if most is None or not any(type(number) is int and number > most for number in numbers):
            return None
        return most


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the first number that a pattern finds."""
    match = pattern.search(text)
    if match is None:
        return None
    digits = next(group for group in match.groups() if group is not None).replace(",", "")
    return int(digits) if len(digits) < _DIGITS else None


def shortened(text: str) -> str:
    """Return a text on one line, shortened and without tags."""
    if text.lstrip().startswith("<"):
        text = re.sub(r"<[^>]*>", " ", text)
    plain = " ".join(text.split())
    if len(plain) > _SHOWN:
        return plain[:_SHOWN] + "…"
    return plain
