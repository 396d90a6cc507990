"""Where documents stand on their pages, found from the texts; and labels carried from one cut of them to another."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from judgekit.data.documents import Doc, Docs
from judgekit.data.files import read_table
from judgekit.data.frames import AsDocs, as_docs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.spans import TITLE, evidence_of, where
from judgekit.data.tables import SPAN, Status, Table
from judgekit.errors import DataError, UsageError
from judgekit.spec import user_code

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SPANS", "Carried", "Placed", "carry", "chunks"]

SPANS: Final = Table(
    "labelled spans",
    {"query_id": "id", "page_id": "str", "start": "float", "end": "float", "relevance": "float"},
    {"doc_id": "str", "status": "str", "evidence": "str"},
)
"""Labels of stretches of pages; a labels table holds them where its documents say where they stand."""

_SHINGLE: Final = 4
_CANDIDATES: Final = 3
_JUDGED: Final = 0.9
"""How much of a document others have to have judged not relevant for it to be not relevant."""


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


def chunks(pages: AsDocs, docs: AsDocs, *, least: float = 90, tokenizer: str | Path | None = None) -> Placed:
    """Find where documents stand on their pages: exactly, but for white space, else where the text is alike.

    A document that names its page is looked for there, any other on the pages that share most runs of four words with
    it. Where its text stands more than once, the first place is taken.

    Args:
        pages: the pages, as documents: ``doc_id`` is the page's id.
        docs: the documents. Spans that they have are checked.
        least: how alike a text has to be, from 0 to 100 (`rapidfuzz.fuzz.partial_ratio`).
        tokenizer: a file of Hugging Face's tokenizers (``tokenizer.json``): the spans that documents have are then
            offsets of its tokens, and converted.

    Raises:
        DataError: a span ends behind its page, or the text at it is another one.
        UsageError: tokenizers is not installed, or the file does not hold a tokenizer.
    """
    known = {page.doc_id: page for page in _each(as_docs(pages))}
    offsets = None if tokenizer is None else _tokens(tokenizer)
    found: list[Doc] = []
    unplaced: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    shingles: dict[str, list[str]] | None = None
    for doc in _each(as_docs(docs)):
        if doc.page_id is not None and doc.page_id not in known:
            if doc.start is not None:
                raise DataError(f"doc {doc.doc_id!r} stands on page {doc.page_id!r}, which is missing from the pages")
            unplaced[doc.doc_id] = f"its page {doc.page_id!r} is missing from the pages"
        elif doc.page_id is not None and doc.start is not None:
            kinds["exact"] += 1
            doc = _checked(doc, known[doc.page_id].text, least, offsets)
        else:
            if doc.page_id is None and shingles is None:
                shingles = _index(known.values())
            names = [doc.page_id] if doc.page_id is not None else _likely(doc.text, shingles or {})
            span = _find(doc.text, [(name, known[name].text) for name in names], least)
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


def _tokens(path: str | Path):  # type: ignore[no-untyped-def]  # a tokenizer of a package that need not be installed
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UsageError("token offsets need the package tokenizers: pip install 'judgekit[tokenizers]'") from None
    with user_code(lambda: f"{path} does not hold a tokenizer", str(path)):  # its errors have no kind of their own
        return Tokenizer.from_file(str(path))


def _checked(doc: Doc, page: str, least: float, tokenizer) -> Doc:  # type: ignore[no-untyped-def]  # see _tokens
    """Return a document with a span of characters that is on its page and holds its text."""
    from rapidfuzz import fuzz

    start, end = doc.start or 0, doc.end or 0
    unit, length = "characters", len(page)
    if tokenizer is not None:
        offsets = tokenizer.encode(page, add_special_tokens=False).offsets
        unit, length = "tokens", len(offsets)
    if end > length:
        raise DataError(f"doc {doc.doc_id!r} ends at {end:,} on page {doc.page_id!r}, which has {length:,} {unit}")
    if tokenizer is not None:
        start, end = offsets[start][0], offsets[end - 1][1]
    if fuzz.ratio(" ".join(page[start:end].split()), " ".join(doc.text.split())) < least:
        hint = "" if tokenizer is not None else " (if these are offsets of tokens, give the tokenizer's file)"
        raise DataError(f"doc {doc.doc_id!r}: page {doc.page_id!r} holds another text at {start:,} to {end:,}{hint}")
    return replace(doc, start=start, end=end)


def _index(pages: Iterable[Doc]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        for shingle in _shingles(page.text):
            found[shingle].append(page.doc_id)
    return found


def _shingles(text: str) -> set[str]:
    words = text.casefold().split()
    return {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))} - {""}


def _likely(text: str, index: Mapping[str, Sequence[str]]) -> list[str]:
    votes = Counter(page for shingle in sorted(_shingles(text)) for page in index.get(shingle, ()))
    return [page for page, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))[:_CANDIDATES]]


def _find(text: str, pages: Sequence[tuple[str, str]], least: float) -> tuple[str, str, int, int] | None:
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
        found = fuzz.partial_ratio_alignment(text, page, score_cutoff=least) if page else None
        if found is not None and len(text) <= 2 * len(page) and (best is None or found.score > best[0]):
            best = found.score, name, found.dest_start, found.dest_end
    return None if best is None else ("alike", *best[1:])


@dataclass(frozen=True)
class Carried:
    """Labels carried to another cut of the same pages.

    Attributes:
        labeling: what was carried.
        lost: relevant labels that no document covers enough of.
        unjudged: documents on stretches that were labelled only in part: not judged, by query.
        unplaced: labels that do not say where they stand, and were left behind.
    """

    labeling: Labeling
    lost: int
    unjudged: int
    unplaced: int


class _Old(NamedTuple):
    start: float
    end: float
    relevance: float
    status: str
    evidence: tuple[tuple[int, int], ...]
    stated: str


def carry(
    labels: Labeling | pd.DataFrame | str | Path, docs: AsDocs, *, cover: float = 0.5, scale: str | Scale | None = None,
    name: str = "carried",
) -> Carried:  # fmt: skip
    """Carry labels to other documents of the same pages, so that they survive a new cut.

    A document on the very span of a label takes it as it is. Any other is as relevant as the most relevant label of
    whose span it covers at least ``cover``, or all of one place where the evidence stands, where the label says that.
    It is not relevant where labels of not relevant spans cover nine tenths of it, and else *not judged*.

    Args:
        labels: a labeling whose documents said where they stand, or a table ``query_id, page_id, start, end,
            relevance`` (or its file) and, where known, ``status, evidence``.
        docs: the new documents, with ``page_id, start, end``.
        cover: the share of a relevant span.
        scale: what the numbers mean; that of a labeling by default, else whole numbers are grades up to the largest.
        name: of what is carried.

    Raises:
        DataError: the table lacks a column; fractions without a scale.
        UsageError: no label or no document says where it stands; a cover that is not a share.
    """
    import pandas as pd

    if not 0 < cover <= 1:
        raise UsageError(
            f"cover, the share of a relevant span that a document must hold, must be above 0, not {cover:g}"
        )
    if isinstance(labels, str | Path):
        labels = read_table(SPANS, labels)
    if isinstance(labels, Labeling):
        scale = scale or labels.scale
        labels = labels.table
        if not set(SPAN) <= set(labels.columns):
            labels = labels.assign(page_id="", start=np.nan, end=np.nan)
    table = SPANS.check(labels)
    old: dict[tuple[str, str], list[_Old]] = defaultdict(list)
    unplaced = 0
    for row in table.to_dict("records"):
        if not row["page_id"] or not row["start"] < row["end"]:
            unplaced += 1
            continue
        stated = str(row.get("evidence", ""))
        status = str(row.get("status") or Status.OK.value)
        span = _Old(row["start"], row["end"], row["relevance"], status, tuple(evidence_of(stated)), stated)
        old[str(row["query_id"]), str(row["page_id"])].append(span)
    if not old:
        raise UsageError(
            "the labels lack their place on a page: give labels with page_id, start and end, or the old documents"
        )
    by_page: dict[str, list[Doc]] = defaultdict(list)
    for doc in _each(as_docs(docs)):
        if where(doc):
            by_page[doc.page_id or ""].append(doc)
    if not by_page:
        raise UsageError(
            "the documents lack their place on a page: give page_id, start and end (judgekit chunks finds them)"
        )
    rows: list[dict[str, object]] = []
    lost = unjudged = 0
    for (query, page), spans in old.items():
        used: set[int] = set()
        for doc in by_page.get(page, ()):
            taken, by = _label(doc, spans, cover)
            used |= by
            rows += [{"query_id": query, "doc_id": doc.doc_id, **taken, **where(doc)}] if taken else []
            unjudged += taken is None and any(_common(doc, s.start, s.end) > 0 for s in spans)
        lost += sum(span.relevance > 0 and i not in used for i, span in enumerate(spans))
    columns = ["query_id", "doc_id", "relevance", "status", *SPAN, "evidence"]
    frame = pd.DataFrame(rows, columns=columns).astype({"relevance": "float64", "start": "float64", "end": "float64"})
    if scale is None:
        made = Scale.of_grades(table["relevance"].dropna().to_numpy())
    else:
        made = Scale.parse(scale) if isinstance(scale, str) else scale
    return Carried(Labeling(name, made, frame, declared=scale is not None), lost, unjudged, unplaced)


def _common(doc: Doc, start: float, end: float) -> float:
    return min(end, doc.end or 0) - max(start, doc.start or 0)


def _label(doc: Doc, spans: Sequence[_Old], cover: float) -> tuple[dict[str, object] | None, set[int]]:
    """Return the label of a document, None where nobody judged it, and the relevant spans that it was taken from."""
    same = [i for i, span in enumerate(spans) if (span.start, span.end) == (doc.start, doc.end)]
    if same:
        one = spans[same[0]]
        return {"relevance": one.relevance, "status": one.status, "evidence": one.stated}, set(same)
    taken: set[int] = set()
    evidence: set[str] = set()
    for i, span in enumerate(spans):
        if span.relevance > 0:
            held = [at for at in span.evidence if at == TITLE or _common(doc, *at) == at[1] - at[0]]
            enough = (
                bool(held) if span.evidence else _common(doc, span.start, span.end) >= cover * (span.end - span.start)
            )
            taken |= {i} if enough else set()
            evidence |= {"title" if at == TITLE else f"{at[0]}-{at[1]}" for at in held}
    label = {"status": Status.OK.value, "evidence": " ".join(sorted(evidence))}
    if taken:
        return {"relevance": max(spans[i].relevance for i in taken), **label}, taken
    # What holds evidence holds nothing else that is relevant.
    empty = [s for s in spans if s.relevance <= 0 or (s.relevance > 0 and s.evidence)]
    judged, behind = 0.0, float(doc.start or 0)
    for span in sorted(empty, key=lambda s: (s.start, s.end)):
        judged += max(0.0, _common(doc, max(span.start, behind), span.end))
        behind = max(behind, span.end)
    if judged < _JUDGED * ((doc.end or 0) - (doc.start or 0)):
        return None, taken
    return {"relevance": max([s.relevance for s in empty if s.relevance <= 0], default=0.0), **label}, taken
