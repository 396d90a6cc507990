"""Which documents share evidence: those whose spans, or whose evidence, overlap on a page."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judgekit.data.columns import Ints
from judgekit.data.documents import Doc, Docs
from judgekit.data.labelings import Labeling
from judgekit.data.spans import evidence_of


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
