"""A transport that says what a test tells it to.

    transport = ScriptedTransport("Yes")                                   # always
    transport = ScriptedTransport(["Yes", error(500, "busy"), "No"])       # in turn, then the last one for ever
    transport = ScriptedTransport(lambda body: "Yes" if "Paris" in body["messages"][-1]["content"] else "No")
    session = Session(None, transports=lambda endpoint: transport)

Everything above the transport (retry, negotiation, limits, store, usage) is the real thing.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import Endpoint


@dataclass(frozen=True, slots=True)
class Scripted:
    """One answer of a scripted server, after a delay; header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


Step = str | Scripted | Exception
"""A step of a script: the text of a completion, a whole answer, or what `send` raises."""


def completion(text: str | None, *, finish_reason: str = "stop", delay_s: float = 0.0, **choice: Any) -> Scripted:
    """Return a 200 with one choice, whose fields ``choice`` adds or replaces, and a completion token for each word."""
    message = {"role": "assistant", "content": text, "refusal": None}
    words = len((text or "").split())
    body = {
        "id": "scripted",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None, **choice}],
        "usage": {"prompt_tokens": 1, "completion_tokens": words, "total_tokens": 1 + words},
    }
    return Scripted(200, json.dumps(body).encode(), delay_s=delay_s)


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **fields: str) -> Scripted:
    """Return an error in OpenAI's shape."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": None, **fields}}
    return Scripted(status, json.dumps(body).encode(), headers or {})


class ScriptedTransport:
    """A transport that answers from a script and remembers the bodies that it was sent, and how often it was closed."""

    def __init__(self, script: Step | Sequence[Step] | Callable[[dict[str, Any]], Step]) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed = 0
        self._script = script

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return the next step of the script, or raise it."""
        parsed: dict[str, Any] = parse_json(body)
        self.sent.append(parsed)
        step = self._step(parsed)
        if isinstance(step, str):
            step = completion(step)
        if isinstance(step, Exception):
            raise step
        await asyncio.sleep(step.delay_s)
        return step.status, step.headers, step.body

    def _step(self, body: dict[str, Any]) -> Step:
        if callable(self._script):
            return self._script(body)
        if isinstance(self._script, (str, Scripted, Exception)):
            return self._script
        return self._script[min(len(self.sent), len(self._script)) - 1]

    async def aclose(self) -> None:
        """Count the closing."""
        self.closed += 1
