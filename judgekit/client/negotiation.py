"""What is known of one model at one endpoint: the parameters it refuses, and that it answers at all.

Negotiation keeps no list of models. A 400 or 422 that names a parameter of the body swaps ``max_tokens`` and
``max_completion_tokens``, or ``response_format`` and ``structured_outputs`` where both can say the same (a JSON
schema), or drops the parameter; that is remembered for the endpoint and model, told once and stored with each reply
(the body really sent). The identity of a request does not change by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from judgekit.wire.jsontext import canonical
from judgekit.wire.types import CONSTRAINTS

__all__ = ["Negotiated"]

_SWAP = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "response_format": "structured_outputs",
}
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
        fields = (self._field(*item) for item in orjson.loads(body).items())
        return canonical({name: value for name, value in fields if name not in self.dropped})

    def _field(self, name: str, value: Any) -> tuple[str, Any]:
        swapped = self.swapped.get(name, name)
        if swapped != "structured_outputs" or name == swapped:
            return swapped, value
        schema = value.get("json_schema", {}).get("schema") if isinstance(value, dict) else None
        return (swapped, {"json": schema}) if schema else (name, value)

    def learn(self, param: str) -> str | None:
        """Note that a parameter is refused; return what is done about it, or None if nothing can be."""
        if param in self.swapped.values() and param not in CONSTRAINTS:
            return None
        if param in _SWAP and param not in self.swapped:
            self.swapped[param] = _SWAP[param]
            return f"{param} is sent as {_SWAP[param]}"
        self.dropped.update(_TOGETHER.get(param, (param,)))
        return f"{param} is left out"
