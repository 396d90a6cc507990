"""The record of one request: its reply as it came, and its compressed body; and the same as JSON text.

A stored record begins with a line of JSON for look-ups, with the length of the reply. The reply follows, and then the
rest, compressed (zstd: half of the bytes in two thirds of the time of zlib, which compressed earlier rows). Replies of
1 kB or more, with reasons or thinking, are compressed, too, to a third; shorter ones are not worth the time of
unpacking. judgekit 0.1 stored JSON text, which is still exported, and read wherever it is found.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass
from threading import local
from typing import Any, Final, NamedTuple

import orjson
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from judgekit.wire.jsontext import at, parse_json
from judgekit.wire.types import identity

_TEXT_VERSION: Final = 1
_VERSION: Final = 2
_TEXT: Final = b'{"version":1,'
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The beginning of zstd data."""
_LONG: Final = 1024
"""Replies of this many bytes or more are compressed."""


class StoredReply(NamedTuple):
    """The parts of a record for a look-up: the reply as it came, its seconds, and when it was stored."""

    raw: bytes
    seconds: float | None
    time: float


def looked_up(value: bytes, key: str) -> StoredReply:
    """Return the stored reply to a request."""
    if value.startswith(_TEXT):
        record = Record.parse(value)
        if record.key != key or record.reply is None:
            raise ValueError("it is stored under another key, or is no reply")
        return StoredReply(record.reply.encode(), record.seconds, float(record.time))
    start = value.find(b"\n") + 1
    row = orjson.loads(value[:start])
    reply = _reply(value[start : start + row["reply"]])
    if zlib.crc32(reply, zlib.crc32(key.encode())) != row["crc"]:
        raise ValueError("its checksum is not that of its reply")
    seconds = row["seconds"]
    if not (seconds is None or seconds >= 0):
        raise ValueError("its seconds are negative or not a number")
    return StoredReply(reply, seconds, float(row["time"]))


def member(text: str, name: str) -> Any:
    """Return a member of a JSON object; None if it has none, or if the text is not a JSON object."""
    with suppress(ValueError):
        return at(parse_json(text), name)
    return None


# Not frozen, as `Request` is not.
@dataclass(slots=True)
class Record:
    """Everything that is stored about one request. Never modified.

    Attributes:
        key: the identity.
        endpoint: the endpoint's part of the identity.
        sample: the sample index.
        body: the canonical body, as the labeler made it.
        sent: the body really sent, if negotiation changed it.
        reply: the raw reply, as it came; None while the request waits in a batch file.
        usage: (prompt, completion) tokens, if the server reported them.
        time: when it was stored, seconds since 1970.
        seconds: from sending the request to having the reply; None if unknown (a batch file, or a reply stored by
            judgekit 0.1).
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
        """Return the record as a line of JSON: the attributes, a version and the reply's CRC-32."""
        row = {
            "version": _TEXT_VERSION,
            "key": self.key,
            "crc": zlib.crc32((self.reply or "").encode()),
            "usage": self.usage,
            "time": self.time,
            "seconds": self.seconds,
            "reply": self.reply,
            "endpoint": self.endpoint,
            "sample": self.sample,
            "body": self.body,
            "sent": self.sent,
        }
        return orjson.dumps(row).decode()

    def stored(self) -> bytes:
        """Return the record as stored; see the module's docstring. The checksum covers the key and the reply."""
        reply = (self.reply or "").encode()
        first = {
            "version": _VERSION,
            "crc": zlib.crc32(reply, zlib.crc32(self.key.encode())),
            "usage": self.usage,
            "time": self.time,
            "seconds": self.seconds,
        }
        kept = _zstd.compress(reply) if len(reply) >= _LONG else reply
        first["reply"] = None if self.reply is None else len(kept)
        rest = orjson.dumps([self.endpoint, self.sample, self.body, self.sent])
        return b"".join((orjson.dumps(first), b"\n", kept, _zstd.compress(rest)))

    @classmethod
    def parse(cls, value: str | bytes) -> Record:
        """Read a stored record, or JSON text."""
        try:
            if isinstance(value, str) or value.startswith(_TEXT):
                row, mark, known = orjson.loads(value), 0, _TEXT_VERSION
            else:
                (row, mark), known = _unpacked(value), _VERSION
            version, crc, usage = row.pop("version"), row.pop("crc"), row.pop("usage")
            record = cls(**row, usage=None if usage is None else (int(usage[0]), int(usage[1])))
            key = identity(record.endpoint, record.sample, record.body.encode())
            computed = zlib.crc32((record.reply or "").encode(), mark)
            if not (record.seconds is None or record.seconds >= 0):
                raise TypeError(f"{record.seconds} seconds")
        except KeyError as lacking:
            raise ValueError(f"it is not a stored reply of judgekit: it lacks {lacking}") from None
        except (AttributeError, IndexError, TypeError, ValueError, zlib.error, ZstdError) as problem:
            raise ValueError(f"it is not a stored reply of judgekit: {problem}") from None
        if version != known:
            raise ValueError(f"its version is {version}; this judgekit reads {_TEXT_VERSION} and {_VERSION}")
        if key != record.key:
            raise ValueError("its key is not the identity of its request")
        if computed != crc:
            raise ValueError("its checksum is not that of its reply")
        return record


class _Zstd(local):
    """Compresses and unpacks in one thread; higher levels take longer and save little."""

    def __init__(self) -> None:
        self.compress = ZstdCompressor(level=1).compress
        self.unpacking = ZstdDecompressor().decompressobj


_zstd = _Zstd()


def _decompressed(data: bytes) -> bytes:
    return _zstd.unpacking().decompress(data) if data.startswith(_ZSTD) else zlib.decompress(data)


def _reply(kept: bytes) -> bytes:
    """Return a reply as it came. UTF-8 text never begins like zstd data."""
    if not kept.startswith(_ZSTD):
        return kept
    try:
        return _zstd.unpacking().decompress(kept)
    except ZstdError as problem:
        raise ValueError(f"its reply cannot be unpacked: {problem}") from None


def _unpacked(value: bytes) -> tuple[dict[str, Any], int]:
    """Return the attributes of a stored record, with version and checksum, and the checksum's initial value."""
    end = value.find(b"\n") + 1
    row = orjson.loads(value[:end])
    stop = end + (row["reply"] or 0)
    row["endpoint"], row["sample"], row["body"], row["sent"] = orjson.loads(_decompressed(value[stop:]))
    row["key"] = identity(row["endpoint"], row["sample"], row["body"].encode())
    row["reply"] = None if row["reply"] is None else _reply(value[end:stop]).decode()
    return row, zlib.crc32(row["key"].encode())
