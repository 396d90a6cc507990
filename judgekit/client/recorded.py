"""Recorded replies: ``base_url = "recorded:"`` replays what a real model said to the requests of the bundled sample.

The file is JSON lines, compressed: first what the server said of itself (``model``, ``system_fingerprint``), then one
reply a line, ``[key, text, finish reason, prompt tokens, completion tokens]``. A key is the first eight bytes (hex) of
the request's identity, so that a reply answers the very request it was recorded for, and no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from judgekit.data.streams import read_bytes, write_atomic
from judgekit.errors import EndpointError
from judgekit.wire.types import Endpoint, Reply, identity

__all__ = ["RECORDING", "RecordedTransport", "Recording"]

RECORDING: Final = Path(__file__).resolve().parent.parent / "sample" / "replies.jsonl.gz"
"""The replies of the bundled sample."""

_KEY: Final = 16

Line = tuple[str, str, str, int, int]


@dataclass(frozen=True, slots=True)
class Recording:
    """Replies of one model.

    Attributes:
        server: what each reply says of the server: its ``model`` and ``system_fingerprint``.
        lines: the replies by key.
    """

    server: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, Line] = field(default_factory=dict)

    def with_replies(self, replies: Iterable[Reply]) -> Recording:
        """Return a recording that also holds what a server answered.

        Raises:
            EndpointError: the replies are not of one model, or lack their tokens.
        """
        server, lines = dict(self.server), dict(self.lines)
        for reply in replies:
            said = {name: reply.json.get(name) for name in ("model", "system_fingerprint")}
            server = server or said
            if said != server:
                raise EndpointError(f"the replies are of two models, {server} and {said}: record from one")
            if reply.usage is None:
                raise EndpointError("the server reports no tokens: record from one that does")
            key = reply.key[:_KEY]
            lines[key] = (key, reply.text, reply.finish_reason or "stop", *reply.usage)
        return Recording(server, lines)

    @classmethod
    def read(cls, path: Path = RECORDING) -> Recording:
        """Read a recording; an absent one holds nothing."""
        if not path.is_file():
            return cls()
        server, *lines = map(json.loads, read_bytes(path).splitlines())
        return cls(server, {line[0]: tuple(line) for line in lines})

    def write(self, path: Path = RECORDING) -> None:
        """Write it: the same replies give the same bytes."""
        lines = sorted(self.lines.values(), key=lambda line: (line[1:], line[0]))  # like beside like packs well
        write_atomic(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [self.server, *lines]))


class RecordedTransport:
    """Answers what was recorded, and stops the run at what was not."""

    def __init__(self, path: Path = RECORDING) -> None:
        self._recording = Recording.read(path)

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return the reply that was recorded for this very body.

        Raises:
            EndpointError: there is none.
        """
        key = identity(endpoint.identity, 0, body)[:_KEY]
        line = self._recording.lines.get(key)
        if line is None:
            raise EndpointError(
                f"endpoint {endpoint.name!r} ({endpoint.base_url}): no reply is recorded for this request. Replies are"
                " recorded for the bundled sample as it is; for other data, prompts or settings give base_url the"
                ' address of a server, or try them with base_url = "mock:", which is not an LLM'
            )
        _, text, finish_reason, prompt_tokens, completion_tokens = line
        reply = {
            **self._recording.server,
            "id": f"recorded-{key}",
            "object": "chat.completion",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
        return 200, {}, json.dumps(reply, ensure_ascii=False).encode()

    async def aclose(self) -> None:
        """Nothing is open."""
