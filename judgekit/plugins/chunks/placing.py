"""Where documents stand on their pages, found from the texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from judgekit.data.documents import Doc, Docs
from judgekit.data.frames import AsDocs, as_docs
from judgekit.errors import DataError, UsageError

_SHINGLE: Final = 4
_CANDIDATES: Final = 3
_LEAST: Final = 90
"""How alike a text has to be, from 0 to 100 (`rapidfuzz.fuzz.partial_ratio`)."""


@dataclass(frozen=True)
class Placed:
    """Documents, with their spans where one was found.

    Attributes:
        docs: all of them, in their order.
        exact: how many stand on their page letter by letter, but for white space.
        alike: how many nearly do.
        unplaced: why the others could not be placed, by id.
    """

    docs: tuple[Doc, ...]
    exact: int
    alike: int
    unplaced: Mapping[str, str]


def chunks(pages: AsDocs, docs: AsDocs) -> Placed:
    """Find where documents stand on their pages: exactly, but for white space, else where the text is alike.

    A document that names its page is looked for there, any other on the pages that share most runs of four words with
    it. Where its text stands more than once, the first place is taken.

    Args:
        pages: the pages, as documents: ``doc_id`` is the page's id.
        docs: the documents. Spans that they have are checked; they count characters.

    Raises:
        DataError: a span ends behind its page, or the text at it is another one.
    """
    known = {page.doc_id: page for page in _each(as_docs(pages))}
    found: list[Doc] = []
    unplaced: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    shingles: dict[str, list[str]] | None = None
    for doc in _each(as_docs(docs)):
        if doc.page_id is not None and doc.page_id not in known:
            if doc.start is not None:
                raise DataError(f"doc {doc.doc_id!r} names page {doc.page_id!r}, which is missing from the pages")
            unplaced[doc.doc_id] = f"its page {doc.page_id!r} is missing from the pages"
        elif doc.page_id is not None and doc.start is not None:
            kinds["exact"] += 1
            _check(doc, known[doc.page_id].text)
        else:
            if doc.page_id is not None:
                names = [doc.page_id]
            else:
                shingles = shingles or _index(known.values())
                votes = Counter(page for one in sorted(_shingles(doc.text)) for page in shingles.get(one, ()))
                names = [page for page, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))[:_CANDIDATES]]
            span = _find(doc.text, [(name, known[name].text) for name in names])
            if span is None:
                short = doc.page_id is None and len(doc.text.split()) < _SHINGLE
                lacking = f"it has fewer than {_SHINGLE} words: name its page (page_id)"
                unplaced[doc.doc_id] = lacking if short else "its text was not found on its likely pages"
            else:
                kind, page, start, end = span
                kinds[kind] += 1
                doc = replace(doc, page_id=page, start=start, end=end)
        found.append(doc)
    return Placed(tuple(found), kinds["exact"], kinds["alike"], unplaced)


def _each(docs: Docs) -> Iterator[Doc]:
    if not isinstance(docs, Iterable):
        raise UsageError("the documents must be a file, a table or a list, to be read one by one")
    return iter(docs)


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


def _index(pages: Iterable[Doc]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        for shingle in _shingles(page.text):
            found[shingle].append(page.doc_id)
    return found


def _shingles(text: str) -> set[str]:
    words = text.casefold().split()
    return {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))} - {""}


def _find(text: str, pages: Sequence[tuple[str, str]]) -> tuple[str, str, int, int] | None:
    """Return how a text was found, the page, and where on it it begins and ends; None if it is on none of them."""
    from rapidfuzz import fuzz

    words = text.split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    for name, page in pages:
        if (at := page.find(text)) >= 0:
            return "exact", name, at, at + len(text)
    for name, page in pages:
        match = pattern.search(page)
        if match:
            return "exact", name, *match.span()
    best = None
    for name, page in pages:
        # The shorter is looked for in the longer, so that a text longer than its page is alike on all of it.
        found = fuzz.partial_ratio_alignment(text, page, score_cutoff=_LEAST) if page else None
        if found is not None and len(text) <= 2 * len(page) and (best is None or found.score > best[0]):
            best = found.score, name, found.dest_start, found.dest_end
    return None if best is None else ("alike", *best[1:])
