"""``topics``: TREC's topics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judgekit.data.records import DataRecord
from judgekit.data.streams import text_of
from judgekit.errors import DataError
from judgekit.registry import DataForm

_TOPIC: Final = re.compile(r"<top>(?P<fields>(?:(?!</?top>).)*)</top>|\S[^\n]*", re.I | re.S)
"""A topic, or what stands where one was expected."""
_FIELD: Final = re.compile(r"^\s*<([a-z]+)>\s*(.*?)(?:</\1>\s*)?(?=^\s*</?[a-z]+>|\Z)", re.I | re.M | re.S)
_SAYS: Final = re.compile(r"(?:Number|Topic|Description|Narrative)\s*:\s*", re.I)


def _topics(path: Path) -> Iterator[DataRecord]:
    """Read TREC topics: ``<top>``, the tags ``<num>``, ``<title>``, … with their texts, ``</top>``."""
    text = text_of(path)
    line, counted = 1, 0
    for topic in _TOPIC.finditer(text):
        line, counted, tags = line + text.count("\n", counted, topic.start()), topic.start(), topic["fields"]
        if tags is None or _FIELD.sub("", tags).strip():
            lacks_end = tags is None and topic[0].lower().startswith("<top>")
            outside = f"stands outside a topic (<top> ... </top>): {topic[0][:40]!r}"
            reason = "this topic has no end (</top>): the file was cut off" if lacks_end else outside
            raise DataError(reason, path, line)
        fields = {
            tag.lower(): " ".join(_SAYS.sub("", said.strip(), count=1).split()) for tag, said in _FIELD.findall(tags)
        }
        asked = fields.get("title") or fields.get("desc") or ""
        yield DataRecord(line, {**fields, "query_id": fields.get("num"), "text": asked})


TOPICS: Final = DataForm(
    "topics",
    _topics,
    begins=(b"<",),
    marks=lambda beginning: beginning.row.lower().startswith("<top>"),
    example="<top>\n<num> Number: q1\n<title> Who?\n</top>\n",
)
