"""Provenance: existing qrels as a labeling, such as the pages that a benchmark's questions were written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from judgekit.data.documents import Doc
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.data.trec import read_qrels
from judgekit.errors import UsageError
from judgekit.labelers.base import Context, Label, Labeler, Needs, Unit
from judgekit.plugins import option
from judgekit.spec import Spec
from judgekit.wire.types import Outcome

__all__ = ["Provenance", "Unlisted", "as_declared", "judged_queries", "judgments", "not_listed"]

Expand = Literal["none", "page", "title"]
Unlisted = Literal["judged", "zero", "missing"]
Judged = Mapping[tuple[str, str], tuple[float | None, Status]]
"""(query id, doc id) to relevance and status."""


@dataclass(frozen=True)
class Provenance(Labeler):
    """What existing qrels say of the document, or of its page.

    A pooled document that the file does not list is 0 where it judges the query at all. A query without any judgment
    is not judged by this labeling, and not applicable.

    With ``expand`` a judgment counts for all documents of the same page, as in KILT, where every passage of a
    positive page is positive: the page has the largest relevance of its documents. An id in the file that is no
    document of the collection is taken for a page id (or a title) itself.

    Scale: the file's grades; binary with a threshold

    Needs: a qrels file

    Costs: nothing

    Attributes:
        qrels: the file of existing judgments
        expand: page or title: a judgment counts for all documents of the same page
        threshold: the least grade that is 1
        declared: of the file's values, e.g. grades:3 or means:5:2
        unlisted: a document that the file does not list: judged (0 in queries that the file judges), zero or missing
    """

    kind = "provenance"
    needs = Needs()
    qrels: str
    expand: Expand = "none"
    threshold: int | None = option(None, least=1)
    declared: str = option("", name="scale")
    unlisted: Unlisted = "judged"

    def prepare(self) -> None:
        """Read the file, and look up the pages of its documents."""
        self._pages  # noqa: B018 - reads the file

    @cached_property
    def _file(self) -> tuple[Scale, Judged]:
        """The scale of the file's values, and its labels."""
        declared = Scale.parse(self.declared) if self.declared else None
        labeling = read_qrels(self.context.path(self.qrels), scale=declared)
        return as_declared(labeling), judgments(labeling)

    @cached_property
    def _pages(self) -> Mapping[tuple[str, str], float]:
        """The relevance per (query id, page), where judgments are expanded."""
        judged = self._file[1]
        return {} if self.expand == "none" else _pages(judged, self.expand, self.context, self.spec)

    @property
    def scale(self) -> Scale:
        """Binary where the file holds only 0 and 1 or there is a threshold, else the file's grades."""
        return Scale("binary") if self.threshold else self._file[0]

    @property
    def imported(self) -> Mapping[tuple[str, str], float | None]:
        """The file's relevance per (query id, doc id), as far as there is one; 1 or 0 where there is a threshold."""
        return {pair: self._thresholded(relevance) for pair, (relevance, _) in self._file[1].items()}

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc."""
        return [self._label(unit.query.query_id, doc) for doc in unit.docs]

    @cached_property
    def _queries(self) -> frozenset[str]:
        return judged_queries((query_id, status) for (query_id, _), (_, status) in self._file[1].items())

    def _label(self, query_id: str, doc: Doc) -> Label:
        said = self._file[1].get((query_id, doc.doc_id))
        page = self._pages.get((query_id, _page(doc, self.expand))) if self._pages else None
        if said is None and page is None:
            return not_listed(query_id, doc.doc_id, self.unlisted, self._queries)
        relevance, status = said or (0.0, Status.OK)
        # What is missing may be relevant, so that a page which is not says nothing about it.
        if page is not None and page > (relevance or 0.0):
            relevance, status = page, Status.OK
        reason = "" if status is Status.OK else "missing in the qrels as well"
        return Label(query_id, doc.doc_id, self._thresholded(relevance), status, "", reason, {"judged": 1.0})

    def _thresholded(self, relevance: float | None) -> float | None:
        return relevance if relevance is None or not self.threshold else float(relevance >= self.threshold)


def judgments(labeling: Labeling) -> dict[tuple[str, str], tuple[float | None, Status]]:
    """Return a labeling's relevance and status per (query id, doc id)."""
    columns = (labeling.query_ids, labeling.doc_ids, labeling.relevance, labeling.status)
    return {
        (q, d): (float(r) if s == Status.OK.value else None, Status(s)) for q, d, r, s in zip(*columns, strict=True)
    }


def judged_queries(listed: Iterable[tuple[str, Status]]) -> frozenset[str]:
    """Return the queries that imported labels judge, of the query and status of each label."""
    return frozenset(query_id for query_id, status in listed if status is not Status.NOT_APPLICABLE)


def not_listed(query_id: str, doc_id: str, unlisted: Unlisted, judged: frozenset[str]) -> Label:
    """Return the label of a document that imported labels do not list.

    Args:
        query_id: the query.
        doc_id: the document.
        unlisted: ``judged``: 0 in a query that is judged, else not applicable; ``zero``: 0 in every query, for files
            that list relevant documents only, and so no query without any; ``missing``: as ``judged``, but missing
            instead of 0, which leaves the query's scores undefined.
        judged: the queries that are judged.
    """
    extra = {"judged": 0.0}
    if unlisted != "zero" and query_id not in judged:
        reason = "the file does not judge this query"
        return Label(query_id, doc_id, None, Status.NOT_APPLICABLE, "", reason, extra)
    if unlisted == "missing":
        return Label(query_id, doc_id, None, Status.UNASKED, "", "nobody was asked about this document", extra)
    return Label(query_id, doc_id, 0.0, extra=extra)


def as_declared(labeling: Labeling) -> Scale:
    """Return a labeling's scale; binary where nobody declared one and all values are 0 or 1."""
    scale = labeling.scale
    return scale if labeling.declared or (scale.low, scale.high) != (0, 1) else Scale("binary")


def _page(doc: Doc, expand: Expand) -> str:
    return (doc.page_id or "") if expand == "page" else doc.title


def _pages(judged: Judged, expand: Expand, context: Context, spec: Spec) -> dict[tuple[str, str], float]:
    """Return the largest relevance per (query id, page) over the file's documents; "" is not a page."""
    if context.docs is None:
        raise UsageError(f"{spec}: expand={expand} looks up the pages of documents: give the collection")
    listed = sorted({doc_id for _, doc_id in judged if doc_id in context.docs})
    page_of = {doc.doc_id: _page(doc, expand) for doc in context.docs.get(listed)}
    if listed and not any(page_of.values()) and len(listed) == len({d for _, d in judged}):
        what = "page_id" if expand == "page" else "title"
        raise UsageError(f"{spec}: none of the documents in the file has a {what}, so nothing can be expanded")
    pages: dict[tuple[str, str], float] = {}
    for (query_id, doc_id), (relevance, _) in judged.items():
        page = page_of.get(doc_id, doc_id)
        if page and relevance is not None:
            pages[query_id, page] = max(relevance, pages.get((query_id, page), relevance))
    return pages
