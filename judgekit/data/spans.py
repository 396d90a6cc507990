"""The spans of documents on their pages, and the spans of evidence in them, as columns of labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from judgekit.data.documents import Doc
from judgekit.errors import DataError

_TITLE: Final = (-1, 0)
"""The span of evidence in a page's title, which all its documents show."""


def evidence_of(text: str) -> list[tuple[int, int]]:
    """Return the spans that a label's column ``evidence`` names: ``title 120-127 340-347``."""
    spans = []
    for word in text.split():
        match = re.fullmatch(r"title|(\d+)-(\d+)", word)
        if match is None:
            reason = f"evidence must be named like 'title 120-127 340-347', in characters of the page, not {word!r}"
            raise DataError(reason)
        spans.append(_TITLE if word == "title" else (int(match[1]), int(match[2])))
    return spans


def where(doc: Doc) -> dict[str, str | float]:
    """Return the columns of a document's span; none if it has no span."""
    if doc.page_id is None or doc.start is None or doc.end is None:
        return {}
    return {"page_id": doc.page_id, "start": doc.start, "end": doc.end}


def evidence_in(doc: Doc, holds: Callable[[str], bool], words: int) -> set[str]:
    """Return the shortest stretches of a document's page that hold something, or nothing."""
    # A text that was cleaned after cutting no longer matches its offsets.
    if doc.start is None or doc.end is None or len(doc.text) != doc.end - doc.start:
        return set()
    spans: list[tuple[int, int]] = []
    places = [match.span() for match in re.finditer(r"\S+", doc.text)]
    for length in range(words):
        for (start, _), (_, end) in zip(places, places[length:], strict=False):
            # Only the shortest stretch is evidence; a long one would overlap everything.
            longer = any(start <= a and b <= end for a, b in spans)
            if not longer and holds(doc.text[start:end]):
                spans.append((start, end))
    evidence = {f"{doc.start + start}-{doc.start + end}" for start, end in spans}
    if doc.title and holds(doc.title):
        evidence.add("title")
    return evidence
