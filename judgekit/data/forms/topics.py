"""``topics``: TREC's topics, tagged as SGML (``<top>``) or as XML (``<topic number="1">``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Final

from judgekit.data.records import DataRecord
from judgekit.data.streams import Beginning, text_of
from judgekit.errors import DataError
from judgekit.registry import DataForm

_FIRST: Final = re.compile(
    rb"(?:<\?xml[^>]*>|<!DOCTYPE[^>]*>|<!--.*?-->|\s)*(?:<[\w-]+(?:\s[^>]*)?>\s*){0,2}?<top(?:ic)?[\s>]", re.I | re.S
)
"""The first topic of a file, below a root of any name."""
_TOPIC: Final = re.compile(r"<(top|topic)(\s[^>]*)?>(.*?)(?:</\1\s*>|(?=<\1[\s>])|\Z)", re.I | re.S)
_FIELD: Final = re.compile(r"<([A-Za-z][\w-]*)\b[^>]*>")
_END: Final = re.compile(r"</[A-Za-z][\w-]*\s*>")
_NUMBER: Final = re.compile(r"\b(?:number|num|id|qid)\s*=\s*[\"']([^\"']+)[\"']", re.I)
_NAMES: Final = {
    **dict.fromkeys(("num", "number", "id", "qid"), "query_id"),
    **{"desc": "description", "narr": "narrative"},
}
_ONCE: Final = ("query_id", "title", "query", "question")
_LABELS: Final = {
    "query_id": "Number",
    "title": "Topic",
    "description": "Description",
    "narrative": "Narrative",
}
"""Labels that old topics repeat before a field, whose tag they do not close."""


def _topics(path: Path) -> Iterator[DataRecord]:
    text = text_of(path)
    for found in _TOPIC.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        fields = {}
        if number := _NUMBER.search(found[2] or ""):
            fields["query_id"] = number[1].strip()
        untagged, *parts = _FIELD.split(found[3])
        for tag, content in zip(parts[::2], parts[1::2], strict=True):
            name = _NAMES.get(tag.lower(), tag.lower())
            if name in _LABELS:
                content = re.sub(rf"\A\s*{_LABELS[name]}\s*:", "", content)
            field = _one_line(content)
            if name in fields and name in _ONCE:
                raise DataError(f"this topic has two fields <{tag}>: keep one of them", path, line)
            # Topics of diversity tasks have a field for each subtopic.
            fields[name] = f"{fields[name]}\n{field}" if name in fields else field
        # Under other names (query and question) a topic may have two texts; the user decides which one is asked.
        text_of_topic = fields.get("title") if parts else _one_line(untagged)
        if text_of_topic:
            fields["text"] = text_of_topic
        if not fields.get("query_id"):
            raise DataError('this topic has no number: expected <num>, or <topic number="…">', path, line)
        yield DataRecord(line, fields)


def _one_line(content: str) -> str:
    return " ".join(unescape(_END.sub(" ", content)).split())


def _is_topics(beginning: Beginning) -> bool:
    return _FIRST.match(beginning.start) is not None


TOPICS: Final = DataForm(
    "topics",
    _topics,
    ("query",),
    begins=(b"<",),
    marks=_is_topics,
    example="<top>\n<num> Number: 1\n<title> Who?\n</top>\n",
)
