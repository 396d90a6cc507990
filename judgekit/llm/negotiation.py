"""What is known of one model at one endpoint: the parameters it refuses, and that it answers at all.

Negotiation keeps no list of models. A 400 or 422 that names a parameter of the body swaps ``max_tokens`` and
``max_completion_tokens``, or drops the parameter; that is remembered for the endpoint and model, told once and stored
with each reply (the body really sent). The identity of a request does not change by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from judgekit.llm.types import canonical

__all__ = ["Negotiated"]

_SWAP = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_TOGETHER = {"logprobs": ("logprobs", "top_logprobs")}


@dataclass
class Negotiated:
    """What an endpoint turned out to refuse, for one model.

    Attributes:
        swapped: parameters that it takes under another name.
        dropped: parameters that it does not take.
        replies: how many of its replies were seen, replayed ones included; with one, it is proven to answer.
        silent: whether it was told that the model's tokens are not reported.
    """

    swapped: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    replies: int = 0
    silent: bool = False

    def __bool__(self) -> bool:
        return bool(self.swapped or self.dropped)

    def apply(self, body: bytes) -> bytes:
        """Return the body as this endpoint takes it."""
        if not self:
            return body
        values = orjson.loads(body)
        return canonical({self.swapped.get(k, k): v for k, v in values.items() if k not in self.dropped})

    def learn(self, param: str) -> str | None:
        """Note that a parameter is refused; return what is done about it, or None if nothing can be."""
        if param in self.swapped.values():
            return None
        if param in _SWAP:
            self.swapped[param] = _SWAP[param]
            return f"{param} is sent as {_SWAP[param]}"
        self.dropped.update(_TOGETHER.get(param, (param,)))
        return f"{param} is left out"
