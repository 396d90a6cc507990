"""What is known of one model at one endpoint: the parameters it refuses, and that it answers at all.

Negotiation keeps no list of models. A 400 or 422 that names a parameter of the body swaps ``max_tokens`` and
``max_completion_tokens``, or ``response_format`` and ``structured_outputs`` where both can say the same (a JSON
schema), or drops the parameter; that is remembered for the endpoint and model, told once and stored with each reply
(the body really sent). The identity of a request does not change by it.

A server may also take a constraint and ignore it, which a reply shows that is none of the choices. Then the choices are
told in other words, SGLang's ``regex`` and ``ebnf`` and llama.cpp's ``grammar``, and if these are ignored, too, as they
were.

What holds a model to its form is added here to what was asked for, so that it is no part of a request's identity: a
server that does not take it is sent what was asked for alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from judgekit.client.noticing import Cuts, Thinking
from judgekit.wire.jsontext import canonical
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import CONSTRAINTS

__all__ = ["WORDS", "Negotiated", "in_words"]

_SWAP = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "response_format": "structured_outputs",
}
WORDS = ("structured_outputs", "regex", "ebnf", "grammar")
"""The fields that say which words a reply may be: vLLM's, SGLang's two, and llama.cpp's."""

_TOGETHER = {"logprobs": ("logprobs", "top_logprobs")}


def in_words(form: str, words: list[str]) -> Any:
    """Return the value of one of `WORDS` that allows these words alone."""
    if form == "regex":
        return f"({'|'.join(map(re.escape, words))})"
    if form in ("ebnf", "grammar"):
        return f"root ::= {' | '.join(json.dumps(word, ensure_ascii=False) for word in words)}"
    return {"choice": words}


@dataclass
class Negotiated:
    """What an endpoint turned out to refuse, for one model.

    Attributes:
        swapped: parameters that it takes under another name.
        dropped: parameters that it does not take.
        replies: how many of its replies were seen, replayed ones included; with one, it is proven to answer.
        held: whether it ever answered where a constraint was added.
        silent: whether it was told that the model's tokens are not reported.
        thinking, cuts: what its replies say about its server.
    """

    swapped: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    replies: int = 0
    held: bool = False
    silent: bool = False
    thinking: Thinking = field(default_factory=Thinking)
    cuts: Cuts = field(default_factory=Cuts)
    _ignored: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.swapped or self.dropped)

    def apply(self, body: bytes, constraint: Mapping[str, Any] = MappingProxyType({})) -> bytes:
        """Return the body as this endpoint takes it, with a constraint beside what was asked for."""
        if not (self or constraint):
            return body
        fields = (self._field(*item) for item in {**constraint, **orjson.loads(body)}.items())
        return canonical({name: value for name, value in fields if name not in self.dropped})

    def _field(self, name: str, value: Any) -> tuple[str, Any]:
        swapped = self.swapped.get(name, name)
        if name == "structured_outputs":
            words = value.get("choice") if isinstance(value, dict) else None
            return (swapped, in_words(swapped, words)) if words else (name, value)
        if swapped != "structured_outputs" or name == swapped:
            return swapped, value
        schema = value.get("json_schema", {}).get("schema") if isinstance(value, dict) else None
        return (swapped, {"json": schema}) if schema else (name, value)

    def note(self, sent: bytes, constraint: Mapping[str, Any]) -> None:
        """Note that a body was answered, whether or not a constraint was in it."""
        self.held = self.held or any(f'"{self.swapped.get(name, name)}":'.encode() in sent for name in constraint)

    def release(self, constraint: Mapping[str, Any]) -> bool:
        """Leave a constraint out from now on, if that may be why a server rejects what it never answered with it."""
        if self.held or not constraint:
            return False
        self.dropped.update(self.swapped.get(name, name) for name in constraint)
        return True

    def hold(self, constraint: Mapping[str, Any]) -> None:
        """Add a constraint again that was left out for nothing."""
        self.dropped.difference_update(self.swapped.get(name, name) for name in constraint)

    def ignored(
        self, asked: bytes, sent: bytes, said: str, constraint: Mapping[str, Any] = MappingProxyType({})
    ) -> str | None:
        """Note a reply that is none of the words that the body allows; return what is done about it, if anything."""
        form = self.swapped.get("structured_outputs", "structured_outputs")
        own = constraint.get("structured_outputs")
        if (own is None and b'"structured_outputs":' not in asked) or form in self._ignored or form in self.dropped:
            return None
        held = own or orjson.loads(asked).get("structured_outputs")
        words = held.get("choice") if isinstance(held, dict) else None
        text = without_reasoning(said).strip()
        if not (words and text) or text in words or form not in orjson.loads(sent):
            return None
        self._ignored.add(form)
        then = next((other for other in WORDS if other not in self._ignored | self.dropped), None)
        self.swapped["structured_outputs"] = then or "structured_outputs"
        return f"the choices are sent as {then}" if then else "replies are read as they come"

    def learn(self, param: str) -> str | None:
        """Note that a parameter is refused; return what is done about it, or None if nothing can be."""
        if param in self.swapped.values() and param not in CONSTRAINTS:
            return None
        if param in _SWAP and param not in self.swapped:
            self.swapped[param] = _SWAP[param]
            return f"{param} is sent as {_SWAP[param]}"
        self.dropped.update(_TOGETHER.get(param, (param,)))
        return f"{param} is left out"
