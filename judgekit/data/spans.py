"""The spans of documents on their pages, the spans of evidence in them, and which documents share evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from judgekit.data.columns import Ints
from judgekit.data.documents import Doc, Docs
from judgekit.data.labelings import Labeling
from judgekit.errors import DataError

_TITLE: Final = (-1, 0)
"""The span of evidence in a page's title, which all its documents show."""


class Spans(NamedTuple):
    """Stretches of pages; a row has several if its evidence is in several places."""

    row: Ints
    """The owner of each stretch, as numbers."""
    page: Ints
    """A number for the page."""
    start: Ints
    """Its first character on the page, from 0."""
    end: Ints
    """The position after its last character."""


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


def spans_of(labeling: Labeling, rows: Ints, docs: Docs | None = None) -> Spans:
    """Return the stretches of evidence of some rows of a labeling; none for unknown ones."""
    pages: dict[str, int] = {}
    spans: list[tuple[int, int, int, int]] = []
    columns = labeling.columns(rows, "page_id", "start", "end", "evidence")
    lacking: dict[int, Doc] = {}
    if docs is not None:
        numbers = [number for number, page in enumerate(columns[0]) if not page]
        found = docs.get([labeling.row_docs[row].as_py() for row in rows[numbers].tolist()])
        lacking = dict(zip(numbers, found, strict=True))
    for number, (page, start, end, evidence) in enumerate(zip(*columns, strict=True)):
        if number in lacking:
            doc = lacking[number]
            page, start, end = doc.page_id, doc.start, doc.end
        if page and start is not None and end is not None and start == start:
            place = pages.setdefault(page, len(pages))
            for first, behind in evidence_of(evidence or "") or [(start, end)]:
                spans.append((number, place, int(first), int(behind)))
    return Spans(*np.array(spans, np.int64).reshape(-1, 4).T)


def sharing(spans: Spans, group: Ints, overlap: float) -> Ints:
    """Return the smallest row of each row's connected group of shared evidence, shape (N,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Two rows share evidence if their spans on a page overlap by this share of the shorter one.
    place = group[spans.row] * (int(spans.page.max(initial=0)) + 1) + spans.page
    order = np.lexsort((spans.start, place))
    row, start, end, place = spans.row[order], spans.start[order], spans.end[order], place[order]
    length = end - start
    rows, others = [np.arange(0)], [np.arange(0)]
    first, step = np.arange(len(row)), 0
    while len(first):
        # What begins behind a span's end does not overlap it, nor does anything that begins later.
        step += 1
        first = first[first + step < len(row)]
        near = (place[first + step] == place[first]) & (start[first + step] < end[first])
        first = first[near]
        second = first + step
        common = np.minimum(end[first], end[second]) - start[second]
        enough = common >= overlap * np.minimum(length[first], length[second])
        rows.append(row[first[enough]])
        others.append(row[second[enough]])
    row, other = np.concatenate(rows), np.concatenate(others)
    linked = coo_array((np.ones(len(row)), (row, other)), (len(group), len(group)))
    _, first, component = np.unique(connected_components(linked)[1], return_index=True, return_inverse=True)
    return np.asarray(first[component], np.int64)
