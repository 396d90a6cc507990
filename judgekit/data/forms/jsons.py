"""``jsonl``: one object per line.

``json``: an array of objects, or an object whose members are records of one field.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from judgekit.data.records import (
    DECODER,
    DataRecord,
    json_object,
    json_problem,
    kind_of,
    parse_object,
    without_trailing_blanks,
)
from judgekit.data.streams import Beginning, lines, text_of
from judgekit.errors import DataError
from judgekit.registry import DataForm


def _is_lines(beginning: Beginning) -> bool:
    # An object that goes on in the next line is not a line of JSON lines.
    return b"\n" not in beginning.start or beginning.row.endswith("}")


def _jsonl(path: Path) -> Iterator[DataRecord]:
    for line in without_trailing_blanks(lines(path)):
        yield DataRecord(line.number, parse_object(line, path))


def _json(path: Path) -> Iterator[DataRecord]:
    """Read an array of objects, or an object's members, one by one, so that an error has its line."""
    text = text_of(path)
    ends = [match.start() for match in re.finditer("\n", text)]
    position, what = 0, "array"

    def token(expected: str) -> str:
        """Move to the next character, and past it if it must be one of ``expected``."""
        nonlocal position
        position = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # no blanks match as well
        mark = text[position : position + 1]
        if not mark:
            raise DataError(f"the JSON {what} ends early: the file was cut off", path, line())
        if expected and mark not in expected:
            raise DataError(f"is not valid JSON: expected {' or '.join(expected)}, found {mark!r}", path, line())
        position += bool(expected)
        return mark

    def line() -> int:
        return bisect_left(ends, position) + 1

    def value() -> tuple[int, Any]:
        nonlocal position
        token("")
        start = line()
        try:
            decoded, position = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise DataError(json_problem(error), path, getattr(error, "lineno", start)) from error
        return start, decoded

    end, keys = "]", set[str]()
    # A dictionary by query can be as large as an array: its members are read one by one as well.
    if token("[{") == "{":
        end, what = "}", "object"
    more = token("") != end
    position += not more
    while more:
        start, member = value()
        if end == "]":
            yield DataRecord(start, json_object(member, path, start))
        else:
            if not isinstance(member, str) or member in keys:
                raise DataError(f"is not valid JSON: {kind_of(member)} as a key, or a key twice", path, start)
            keys.add(member)
            token(":")
            yield DataRecord(start, {member: value()[1]})
        more = token("," + end) == ","
    if rest := text[position:].lstrip():
        position = len(text) - len(rest)
        raise DataError(f"goes on after the end of the JSON {what}: {rest[:20]!r}", path, line())


_BLANK: Final = re.compile(r"[ \t\r\n]*")


JSONL: Final = DataForm(
    "jsonl",
    _jsonl,
    begins=(b"{",),
    marks=_is_lines,
    options=("rows",),
    example='{"query_id": "q1", "text": "Who?"}\n',
)
JSON: Final = DataForm(
    "json",
    _json,
    begins=(b"{", b"["),
    marks=lambda _: True,
    options=("rows",),
    example='[\n{"query_id": "q1", "text": "Who?"}\n]\n',
)
