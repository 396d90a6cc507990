"""Signs in replies of problems with their server: observers of attempts, which change no label or number.

The user is told once, with the setting that helps: that the model thinks, that prompts are cut silently, that tokens
are not counted. Only missing log-probabilities stop the run, if they are read, since none of the replies could be used.

*Thinking.* A model that thinks first may use up its tokens before it says anything. Such a reply is cut off, holds
nothing but reasoning, and is requested again with more room, so each label is paid for twice. One such reply is proof
if it holds reasoning or reports tokens of reasoning; merely empty ones need three.

*Prompts cut silently.* A server whose context is too short may drop the rest of a prompt and answer anyway, as Ollama
does beyond ``num_ctx``. Then prompts of any length report exactly the same, largest number of tokens. Texts may share a
number by chance, and passages that were cut to a number of tokens do so on purpose; so the proof is that they have more
bytes than their tokens can hold: `_BYTES` each, or fewer if shorter prompts of the run show that fewer are usual. Five
prompts of different lengths, the longest a quarter longer than the shortest, have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from judgekit.errors import EndpointError
from judgekit.wire.jsontext import at
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Endpoint, Reply, Request, shown_text

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


def proves_thinking(reply: Reply, body: Mapping[str, Any]) -> bool | None:
    """Whether thinking used up a reply; None if it is not used up. ``body`` is the parsed reply."""
    if reply.finish_reason not in _CUT_OFF or reply.refusal is not None or without_reasoning(reply.text).strip():
        return None
    counted = at(body, "usage", "completion_tokens_details", "reasoning_tokens")
    beside = [at(body, "choices", 0, "message", name) for name in ("reasoning_content", "reasoning")]
    return bool(reply.text.strip() or counted or any(beside))


@dataclass(slots=True)
class Cuts:
    """Watches for prompts that are cut silently.

    Attributes:
        tokens: the largest reported number of tokens of a prompt.
        lengths: the lengths in bytes of the prompts with that number.
        done: whether watching has ended, since the user knows.
    """

    tokens: int = 0
    lengths: set[int] = field(default_factory=set)
    done: bool = False
    _seen: list[tuple[int, float]] = field(default_factory=list)
    _usual: float | None = None

    def suspects(self, size: int, tokens: int, exact: Callable[[], int] | None = None) -> bool:
        """Note a prompt of ``size`` bytes with ``tokens`` reported; return whether prompts seem to be cut."""
        if self.done:
            return False
        if len(self._seen) < _KEPT and tokens:
            self._seen.append((tokens, size / tokens))
            self._usual = None
        # A cut shows only at the largest number of tokens; short prompts are never cut.
        if tokens < max(_LEAST, self.tokens):
            return False
        if tokens > self.tokens:
            self.tokens, self.lengths, self._usual = tokens, set(), None
        if self._usual is None:  # more bytes for a token than a prompt has that is not cut
            shorter = [density for count, density in self._seen if count <= _SHORTER * self.tokens]
            self._usual = min(_BYTES, _FACTOR * max(shorter)) if len(shorter) >= _ENOUGH else _BYTES
        least = self._usual * tokens
        if size <= least or (exact and (size := exact()) <= least):
            return False
        self.lengths.add(size)
        long = [length for length in self.lengths if length > least]
        return len(long) >= _ALIKE and max(long) >= _FACTOR * min(long)


_FIRST_ALIKE: Final = 8


class ServerWarnings:
    """Watches the replies of one model at one endpoint, and warns the user about its server."""

    def __init__(self, endpoint: Endpoint, note: Callable[..., None]) -> None:
        """Warn by ``note``."""
        self._endpoint = endpoint
        self._note = note
        self._whom = f"{endpoint.name}: the model {endpoint.model!r}"
        self._empty, self._cuts = 0, Cuts()
        self._marks = b'"logprobs":' if endpoint.api == "completions" else b'"top_logprobs":'
        self._without: int | None = 0
        self._told: set[str] = set()

    def tell(self, what: str, text: str) -> None:
        """Warn the user, once for each ``what``."""
        if what not in self._told:
            self._told.add(what)
            self._note(f"{self._whom} {text}")

    def look(self, request: Request, sent: bytes, reply: Reply, body: Mapping[str, Any]) -> None:
        """Look at the reply to a request; ``body`` is the parsed reply.

        Raises:
            EndpointError: the requested log-probabilities are missing.
        """
        # Checked for each reply, since a model may think only about long passages.
        thinks = proves_thinking(reply, body)
        self._empty += thinks is False
        if thinks or self._empty >= _EMPTY:
            self.tell(
                "thinking",
                "thinks before it answers, and a reply had no room left after that. It is asked for again with more"
                " room, so you pay twice. Turn thinking off: params = {chat_template_kwargs = {enable_thinking ="
                ' false}} (vLLM, SGLang, llama.cpp) or params = {reasoning_effort = "none"} (Ollama; elsewhere "low");'
                " or give it room at once: params = {max_tokens = 4096}",
            )
        if self._without is not None and self._marks in request.body:
            self._look_for_logprobs(reply)
        tokens = None if reply.usage is None else reply.usage.prompt
        if tokens is not None and not self._endpoint.application:
            cuts = self._cuts
            if cuts.suspects(len(sent), tokens, lambda: len(shown_text(orjson.loads(sent)).encode("utf-8", "replace"))):
                cuts.done = True
                self._note(
                    f"{self._whom} seems to see only a part of long prompts: prompts of different lengths, up to"
                    f" {max(cuts.lengths):,} bytes, all count as {tokens:,} tokens. Its replies may rest on half of"
                    " the text. Give the server a longer context (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx of the"
                    " model), or show fewer documents",
                    doubt=True,
                )

    def _look_for_logprobs(self, reply: Reply) -> None:
        """Stop a run whose first replies all lack the requested log-probabilities: they cannot be used."""
        if reply.refusal is not None or not reply.text:
            return
        tops = [at(entry, "top_logprobs") for entry in reply.logprobs or ()]
        if any(isinstance(top, list) and len(top) > 1 for top in tops):
            self._without = None  # it can: one reply without them says nothing about the server
            return
        assert self._without is not None
        self._without += 1
        if self._without >= _FIRST_ALIKE:
            raise EndpointError(
                f"endpoint {self._endpoint.name!r} (model {self._endpoint.model!r}) gives no log-probabilities"
                + (" of alternative tokens" if reply.logprobs else "")
                + ", which read=logprobs needs; use read=text or another endpoint"
            )
