"""What is stored about one request, as JSON text."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import identity

__all__ = ["RECORD_VERSION", "Record", "looked_up", "member"]

RECORD_VERSION: Final = 1
"""Of the stored text. It is not a version of a table: a new column makes no stored reply unreadable."""


def looked_up(text: bytes) -> dict[str, Any]:
    """Return what a look-up needs of a stored text: ``key``, ``crc``, ``time``, ``seconds``, ``reply`` among others.

    Raises:
        ValueError: it is not JSON in UTF-8.
    """
    end = text.find(b"\n")
    row: dict[str, Any] = orjson.loads(text if end < 0 else text[: end - 1] + b"}")
    return row


def member(text: str, name: str) -> Any:
    """Return a member of a JSON object; None if it has none, or if the text is not a JSON object."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that is stored about one request.

    Attributes:
        key: the identity.
        endpoint: the endpoint's part of the identity.
        sample: the sample index.
        body: the canonical body, as the labeler made it.
        sent: the body really sent, if negotiation changed it.
        reply: the raw reply, as it came; None while the request waits in a batch file.
        usage: (prompt, completion) tokens, if the server reported them.
        time: when it was stored, seconds since 1970.
        seconds: from sending the request to having the reply; None where that is not known (a batch file, a reply
            stored by judgekit 0.1).
    """

    key: str
    endpoint: str
    sample: int
    body: str
    sent: str | None
    reply: str | None
    usage: tuple[int, int] | None
    time: float
    seconds: float | None = None

    def text(self) -> str:
        """Return the JSON text that is stored: the attributes, the version and the reply's CRC-32.

        What a look-up needs stands in a line of its own, the first, so that the rest need not be parsed.
        """
        looked_up = {
            "version": RECORD_VERSION,
            "key": self.key,
            "crc": zlib.crc32((self.reply or "").encode()),
            "usage": self.usage,
            "time": self.time,
            "seconds": self.seconds,
            "reply": self.reply,
        }
        rest = {"endpoint": self.endpoint, "sample": self.sample, "body": self.body, "sent": self.sent}
        return (orjson.dumps(looked_up)[:-1] + b",\n" + orjson.dumps(rest)[1:]).decode()

    @classmethod
    def parse(cls, text: str | bytes) -> Record:
        """Read a stored text.

        Raises:
            ValueError: it is not a record of this version, or damaged: the key is not the identity of the
                request, or the checksum is not that of the reply.
        """
        try:
            row = orjson.loads(text)
            version, crc, usage = row.pop("version"), row.pop("crc"), row.pop("usage")
            record = cls(**row, usage=None if usage is None else (int(usage[0]), int(usage[1])))
            key = identity(record.endpoint, record.sample, record.body.encode())
            found = zlib.crc32((record.reply or "").encode())
            if not (record.seconds is None or record.seconds >= 0):
                raise TypeError(f"{record.seconds} seconds")
        except KeyError as lacking:
            raise ValueError(f"it is not a stored reply of judgekit: it lacks {lacking}") from None
        except (AttributeError, IndexError, TypeError, orjson.JSONDecodeError) as problem:
            raise ValueError(f"it is not a stored reply of judgekit: {problem}") from None
        if version != RECORD_VERSION:
            raise ValueError(f"its version is {version}; this judgekit reads {RECORD_VERSION}")
        if key != record.key:
            raise ValueError("its key is not the identity of its request")
        if found != crc:
            raise ValueError("its checksum is not that of its reply")
        return record
