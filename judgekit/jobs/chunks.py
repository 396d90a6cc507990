"""Locates documents on their pages by their texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from judgekit.data.documents import Doc
from judgekit.data.frames import AsDocs, as_docs, one_by_one
from judgekit.errors import DataError

_LEAST: Final = 90
"""The required similarity, from 0 to 100 (`rapidfuzz.fuzz.partial_ratio`)."""


@dataclass(frozen=True)
class Placed:
    """Documents with their spans, as far as found.

    Attributes:
        docs: all documents, in order.
        exact: number of documents located exactly, ignoring white space.
        alike: number of documents located by similar text.
        unplaced: why the others could not be located, by id.
    """

    docs: tuple[Doc, ...]
    exact: int
    alike: int
    unplaced: Mapping[str, str]


def chunks(pages: AsDocs, docs: AsDocs) -> Placed:
    """Locate documents on their pages: exactly, ignoring white space, else by similar text.

    If a document's text occurs more than once on its page, the first place is taken.

    Args:
        pages: the pages, as documents: ``doc_id`` is the page's id.
        docs: the documents, each with its ``page_id``. Spans that they have are checked; they count characters.

    Returns:
        The documents with their spans in characters, the numbers of exact and similar matches, and why the others could
        not be located.

    Raises:
        DataError: a span ends after its page, or holds other text.
    """
    known = {page.doc_id: page.text for page in one_by_one(as_docs(pages))}
    placed: list[Doc] = []
    unplaced: dict[str, str] = {}
    exact = alike = 0
    for doc in one_by_one(as_docs(docs)):
        if doc.page_id is None:
            unplaced[doc.doc_id] = "it names no page (page_id)"
        elif doc.page_id not in known:
            if doc.start is not None:
                raise DataError(f"doc {doc.doc_id!r} names page {doc.page_id!r}, which is missing from the pages")
            unplaced[doc.doc_id] = f"its page {doc.page_id!r} is missing from the pages"
        elif doc.start is not None:
            exact += 1
            _check(doc, known[doc.page_id])
        else:
            page = known[doc.page_id]
            span = _exact(doc.text, page)
            exact += span is not None
            if span is None:
                span = _alike(doc.text, page)
                alike += span is not None
            if span is None:
                unplaced[doc.doc_id] = "its text was not found on its page"
            else:
                doc = replace(doc, start=span[0], end=span[1])
        placed.append(doc)
    return Placed(tuple(placed), exact, alike, unplaced)


def _check(doc: Doc, page: str) -> None:
    """Check that a document's span is on its page and holds its text."""
    from rapidfuzz import fuzz

    start, end = doc.start or 0, doc.end or 0
    if end > len(page):
        raise DataError(
            f"doc {doc.doc_id!r} ends at {end:,} on page {doc.page_id!r}, which has {len(page):,} characters"
        )
    if fuzz.ratio(" ".join(page[start:end].split()), " ".join(doc.text.split())) < _LEAST:
        raise DataError(f"doc {doc.doc_id!r}: page {doc.page_id!r} holds another text at {start:,} to {end:,}")


def _exact(text: str, page: str) -> tuple[int, int] | None:
    """Return a text's place on a page: exact, else ignoring white space."""
    # Exact search first: most chunkers keep white space, and searching a whole book for a pattern is slow.
    start = page.find(text)
    if text.strip() and start >= 0:
        return start, start + len(text)
    words = text.split()
    match = re.search(r"\s+".join(map(re.escape, words)), page) if words else None
    if match is None:
        return None
    return match.span()


def _alike(text: str, page: str) -> tuple[int, int] | None:
    """Return the part of a page most similar to a text, if it is similar enough."""
    from rapidfuzz import fuzz

    # The shorter text is searched for in the longer, so a text longer than its page matches all of the page.
    if not text.strip() or not page or len(text) > 2 * len(page):
        return None
    best = fuzz.partial_ratio_alignment(text, page, score_cutoff=_LEAST)
    if best is None:
        return None
    return (best.dest_start, best.dest_end)
