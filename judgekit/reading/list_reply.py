"""Reads a reply that is a list, as JSON or in another unambiguous shape.

* a JSON list, or nearly JSON: single quotes, a comma at the end; in a code fence, behind a line that announces it; * an
object with one list, ``{"verdicts": […]}``, or with numbered keys, ``{"1": "support"}``; * numbered lines, ``1.
support``, from 1 up without a gap.
"""

from __future__ import annotations

import re
from typing import Any, Final

from judgekit.reading.json_object import parse_value
from judgekit.reading.verdict import unfenced
from judgekit.wire.reasoning import plain_reply

_ANNOUNCED: Final = re.compile(r"\s*[^\n\[\]{}`]{1,120}:[ \t]*\n+(?=\s*(?:```|\[|\{|\d))")
_LINE: Final = re.compile(
    r"[-*•]?\s*\**(?:(?:fact|nugget|item|passage)\s+)?(\d{1,3})\**\s*[.):\-–—]\**\s*(\S.*)", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?:(?:fact|nugget|item|passage)[ _]?)?(\d{1,3})", re.IGNORECASE)


def read_list(text: str, thinks: bool = False) -> list[Any] | None:
    """Return the items of a reply that is a list; None for any other reply."""
    said = plain_reply(text, thinks)
    if said is None:
        return None
    body = unfenced(_ANNOUNCED.sub("", said, count=1))
    value = parse_value(body)
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return _of_object(value)
    return _of_lines(body)


def _of_object(entries: dict[str, Any]) -> list[Any] | None:
    """Return the only list in an object, or the values of its numbered keys."""
    lists = [entry for entry in entries.values() if isinstance(entry, list)]
    if lists:
        return lists[0] if len(lists) == 1 and len(entries) == 1 else None
    numbers = [_NUMBER.fullmatch(name) for name in entries]
    return _in_order(
        [(number[1], entry) for number, entry in zip(numbers, entries.values(), strict=True) if number], len(entries)
    )


def _of_lines(text: str) -> list[Any] | None:
    """Return the texts of numbered lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = [_LINE.fullmatch(line) for line in lines]
    return _in_order([(line[1], line[2].strip(" *.\"'")) for line in numbered if line], len(lines))


def _in_order(numbered: list[tuple[str, Any]], count: int) -> list[Any] | None:
    """Return items that are numbered from 1 up, if all of them are."""
    if not numbered or [int(number) for number, _ in numbered] != list(range(1, count + 1)):
        return None
    return [item for _, item in numbered]
