"""Recorded replies: ``base_url = "recorded:"`` replays what a real model said to the requests of the bundled sample.

The file is JSON lines, compressed: first what the server said of itself (``model``, ``system_fingerprint``), then one
reply a line, ``[key, text, finish reason, prompt tokens, completion tokens]``. A key is the first eight bytes (hex) of
the request's identity, so that a reply answers the very request it was recorded for, and no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from judgekit.data.streams import read_bytes
from judgekit.errors import EndpointError
from judgekit.wire.types import Endpoint, identity

RECORDING: Final = Path(__file__).resolve().parent.parent / "sample" / "replies.jsonl.gz"
"""The replies of the bundled sample."""

KEY: Final = 16

Line = tuple[str, str, str, int, int]


def recorded(path: Path = RECORDING) -> tuple[Mapping[str, Any], dict[str, Line]]:
    """Return what each reply says of its server, and the replies by key; an absent file holds nothing."""
    if not path.is_file():
        return {}, {}
    server, *lines = map(json.loads, read_bytes(path).splitlines())
    return server, {line[0]: tuple(line) for line in lines}


class RecordedTransport:
    """Answers what was recorded, and stops the run at what was not."""

    def __init__(self, path: Path = RECORDING) -> None:
        self._server, self._lines = recorded(path)

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return the reply that was recorded for this very body."""
        key = identity(endpoint.identity, 0, body)[:KEY]
        line = self._lines.get(key)
        if line is None:
            raise EndpointError(
                f"endpoint {endpoint.name!r} ({endpoint.base_url}): no reply is recorded for this request."
                " Only the unchanged bundled sample has recorded replies; for other data, prompts or"
                " settings set base_url to the address of a server"
            )
        _, text, finish_reason, prompt_tokens, completion_tokens = line
        reply = {
            **self._server,
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
