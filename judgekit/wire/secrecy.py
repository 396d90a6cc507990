"""Keeping an endpoint's key out of everything that is stored or shown."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from judgekit.wire.types import parse_json

__all__ = ["Secret"]

_LEAST: Final = 12
"""A shorter key guards nothing ("EMPTY", "none", "sk-1234"), and stands in texts by chance."""

_CUT: Final = "***"


class Secret:
    """A key that is cut out of what a server says. It has no readable `repr`."""

    def __init__(self, key: str | None) -> None:
        """Guard ``key``, unless it is None or too short to be a secret."""
        self._key = key if key is not None and len(key) >= _LEAST else ""
        self._bytes = self._key.encode()
        self._escaped = re.compile("".join(map(_spellings, self._key)).encode())

    def __repr__(self) -> str:
        return "Secret()"

    def cut(self, text: str) -> str:
        """Return a text without the key."""
        return text.replace(self._key, _CUT) if self._key else text

    def cut_response(self, data: bytes) -> bytes:
        """Return a response body without the key, in whatever way JSON writes it; what was JSON stays JSON.

        Done before anything is read of the body, so that what is live is what is stored.
        """
        if not self._key or not (self._bytes in data or (b"\\" in data and self._escaped.search(data))):
            return data
        try:
            body = parse_json(data)
        except ValueError:
            return self._escaped.sub(_CUT.encode(), data)
        return json.dumps(self._without(body)).encode()

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.cut(value)
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, dict):
            return {self.cut(key): self._without(item) for key, item in value.items()}
        return value


def _spellings(character: str) -> str:
    """Return a pattern of the ways in which JSON may write a character of a key."""
    return rf"(?:{re.escape(character)}|\\{re.escape(character)}|(?i:\\u{ord(character):04x}))"
