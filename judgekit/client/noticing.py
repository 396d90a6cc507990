"""What replies say about their server, beside what they answer: that the model thinks, that prompts are cut silently.

Neither changes a label or a number: the user is told once, with the setting that mends it.

*Thinking.* A model that thinks first may use up its tokens before it says anything. Such a reply is cut off, says
nothing but reasoning, and is asked for again with more room, so that each label is paid for twice. One such reply is
proof where it holds reasoning or reports tokens of reasoning; where it is merely empty, three are.

*Prompts cut silently.* A server whose context is too short may drop what does not fit and answer all the same, as
Ollama does beyond ``num_ctx``. Then prompts of any length report the very same number of tokens, the most there is.
Texts may share a number by chance, and passages that were cut to a number of tokens do so on purpose; so what counts is
that they have more bytes than their tokens can hold: `_BYTES` each, or fewer where shorter prompts of the same run show
that fewer are usual. Five prompts of different lengths, the longest a quarter longer than the shortest, have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Reply

__all__ = ["Cuts", "Thinking"]

_CUT_OFF: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_EMPTY: Final = 3

_BYTES: Final = 6.0
"""More bytes of text than a token of a language model holds on average, in any language."""

_FACTOR: Final = 1.25
_ALIKE: Final = 5
_LEAST: Final = 256
_SHORTER: Final = 0.9
_ENOUGH: Final = 20
_KEPT: Final = 256


@dataclass(slots=True)
class Thinking:
    """Watches for replies that are used up by thinking."""

    empty: int = 0
    told: bool = False

    def uses_up(self, reply: Reply, body: Mapping[str, Any]) -> bool:
        """Say once that replies are: with the reply that proves it. ``body`` is the parsed reply."""
        if self.told or reply.finish_reason not in _CUT_OFF or reply.refusal is not None:
            return False
        if without_reasoning(reply.text).strip():
            return False
        self.empty += 1
        self.told = bool(reply.text.strip()) or _reasons(body) or self.empty >= _EMPTY
        return self.told


def _reasons(body: Mapping[str, Any]) -> bool:
    """Whether a reply holds reasoning beside its text, or counts tokens of it."""
    usage, choices = body.get("usage"), body.get("choices")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    if isinstance(details, dict) and details.get("reasoning_tokens"):
        return True
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return isinstance(message, dict) and bool(message.get("reasoning_content") or message.get("reasoning"))


@dataclass(slots=True)
class Cuts:
    """Watches for prompts that are cut silently.

    Attributes:
        tokens: the most that a prompt was reported to have.
        lengths: the lengths in bytes of the prompts that were.
        done: whether nothing is to be watched any more: it was told, or proven wrong.
    """

    tokens: int = 0
    lengths: set[int] = field(default_factory=set)
    done: bool = False
    _seen: list[tuple[int, float]] = field(default_factory=list)
    _usual: float | None = None

    def suspects(self, size: int, tokens: int, exact: Callable[[], int] | None = None) -> bool:
        """Note a prompt of ``size`` bytes that was reported to have ``tokens``; say whether prompts seem to be cut."""
        if self.done:
            return False
        if len(self._seen) < _KEPT and tokens:
            self._seen.append((tokens, size / tokens))
            self._usual = None
        if tokens < max(_LEAST, self.tokens):
            return False
        if tokens > self.tokens:
            self.tokens, self.lengths, self._usual = tokens, set(), None
        if self._usual is None:
            self._usual = self._density()
        least = self._usual * tokens
        if size <= least or (exact and (size := exact()) <= least):
            return False
        self.lengths.add(size)
        long = [one for one in self.lengths if one > least]
        return len(long) >= _ALIKE and max(long) >= _FACTOR * min(long)

    def _density(self) -> float:
        """Return more bytes for a token than a prompt has that is not cut."""
        shorter = [density for tokens, density in self._seen if tokens <= _SHORTER * self.tokens]
        return min(_BYTES, _FACTOR * max(shorter)) if len(shorter) >= _ENOUGH else _BYTES
