"""The tokens that a reply reports: one reading of servers' counts, in which unknown stays unknown.

Servers agree on ``prompt_tokens`` and ``completion_tokens`` alone. Thinking is counted in the completion (OpenAI,
DeepSeek), or beside it and in the total only (Gemini and xAI behind this API), and is paid as completion in both cases.
A server that counts nothing sends zeros or leaves the field out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from judgekit.wire.jsontext import at

_MANY: Final = 2**53
_SAID: Final = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls")


class Tokens(NamedTuple):
    """The tokens of a request. None is unknown, never 0.

    Attributes:
        prompt: tokens of the prompt, including those from the server's cache.
        completion: generated tokens, including thinking.
        cached: the prompt's tokens from the server's cache, which may cost less.
        thinking: the completion's tokens of thinking.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    thinking: int | None = None

    @property
    def total(self) -> int | None:
        """All of them."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion

    @property
    def pair(self) -> tuple[int, int] | None:
        """The tokens of prompt and completion, if both are known."""
        return None if self.prompt is None or self.completion is None else (self.prompt, self.completion)

    def filled(self, prompt: int, completion: int) -> Tokens:
        """Return a copy with estimates for unknown numbers of prompt and completion."""
        return self._replace(
            prompt=prompt if self.prompt is None else self.prompt,
            completion=completion if self.completion is None else self.completion,
        )


def tokens_used(body: Any) -> Tokens | None:
    """Return the tokens that a response body reports; None without a sensible report."""
    usage = at(body, "usage")
    if not isinstance(usage, dict):
        return None
    prompt = _count(usage.get("prompt_tokens"))
    if not prompt:  # no request has an empty prompt
        return None
    completion, total = _count(usage.get("completion_tokens")), _count(usage.get("total_tokens"))
    cached = _share(usage, "prompt_tokens_details", "cached_tokens", "prompt_cache_hit_tokens")
    thinking = _share(usage, "completion_tokens_details", "reasoning_tokens", "reasoning_tokens")
    beyond = 0 if total is None else total - prompt - (completion or 0)
    if cached and beyond == cached:
        prompt += cached  # counted beside the prompt
    elif beyond > 0:
        completion = (completion or 0) + beyond
        thinking = thinking or beyond
    elif thinking and completion is not None and thinking > completion:
        completion += thinking  # counted beside the completion, and in no total
    if not completion and _says(body):
        completion = None
    return Tokens(prompt, completion, None if cached is None else min(cached, prompt), thinking)


def _count(value: Any) -> int | None:
    """Return a number of tokens; None of what is none."""
    if type(value) is int and 0 <= value < _MANY:  # nearly all are, and a stage of a million pairs reads as many
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _MANY:
        return None
    return int(value)


def _share(usage: Mapping[str, Any], details: str, name: str, beside: str) -> int | None:
    """Return a part of the tokens, which some servers state in a field of details and some beside it; never 0."""
    parts = usage.get(details)  # null where a server counts none, as many do
    if parts:
        stated = _count(at(parts, name))
        if stated:
            return stated
    alone = usage.get(beside)
    return (_count(alone) or None) if alone else None


def _says(body: Any) -> bool:
    """Whether a response holds anything that was generated, which has tokens."""
    choices = at(body, "choices")
    for choice in choices if isinstance(choices, list) else ():
        message = at(choice, "message")
        parts: Iterable[Any] = (at(choice, "text"), *(at(message, name) for name in _SAID))
        if any(parts):
            return True
    return False
