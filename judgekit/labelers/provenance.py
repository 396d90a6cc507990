"""Labels that a file holds, and provenance: existing qrels, such as the pages that a benchmark's questions are from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from judgekit.data.documents import Doc, Unit
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.data.trec import read_qrels
from judgekit.errors import UsageError
from judgekit.kinds import option
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.wire.types import Outcome

Expand = Literal["none", "page", "title"]
Unlisted = Literal["judged", "zero", "missing"]
Pair = tuple[str, str]
"""A query id and a doc id."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a file says of a pair."""

    relevance: float | None
    status: Status = Status.OK
    extra: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Filed(Labeler):
    """Base of the labelers that hand on what a file says.

    A pooled document that the file does not list is 0 where the file judges the query at all, and else not applicable.
    With ``unlisted=zero`` it is 0 in every query, for files that list relevant documents only, and so no query without
    any; with ``missing`` it is missing instead of 0, which leaves the query's scores undefined.

    Attributes:
        declared: scale of the file's values, e.g. grades:3, means:5:2 or unit
        unlisted: how unlisted documents count: judged (0 in queries that the file judges), zero or missing
    """

    declared: str = option("", name="scale")
    unlisted: Unlisted = "judged"

    def prepare(self) -> None:
        """Read the file."""
        self._file  # noqa: B018 - reads it

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Said]]:
        """The scale of the file's values, and what it says."""
        raise NotImplementedError

    @cached_property
    def _queries(self) -> frozenset[str]:
        """The queries that the file judges."""
        return frozenset(q for (q, _), said in self._file[1].items() if said.status is not Status.NOT_APPLICABLE)

    @property
    def scale(self) -> Scale:
        """The scale of the file's values."""
        return self._file[0]

    @property
    def imported(self) -> Mapping[Pair, float | None]:
        """The file's relevance per (query id, doc id), as far as there is one."""
        return {pair: said.relevance for pair, said in self._file[1].items()}

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc."""
        return [self._label(unit.query.query_id, doc) for doc in unit.docs]

    def _said(self, query_id: str, doc: Doc) -> Said | None:
        return self._file[1].get((query_id, doc.doc_id))

    def _label(self, query_id: str, doc: Doc) -> Label:
        said = self._said(query_id, doc)
        if said is None:
            return self._not_listed(query_id, doc.doc_id)
        reason = "" if said.status is Status.OK else "missing in the file as well"
        return Label(query_id, doc.doc_id, said.relevance, said.status, "", reason, {"judged": 1.0, **said.extra})

    def _not_listed(self, query_id: str, doc_id: str) -> Label:
        extra = {"judged": 0.0}
        if self.unlisted != "zero" and query_id not in self._queries:
            reason = "the file does not judge this query"
            return Label(query_id, doc_id, None, Status.NOT_APPLICABLE, "", reason, extra)
        if self.unlisted == "missing":
            return Label(query_id, doc_id, None, Status.UNASKED, "", "nobody was asked about this document", extra)
        return Label(query_id, doc_id, 0.0, extra=extra)


def judgments(labeling: Labeling) -> dict[Pair, Said]:
    """Return what a labeling says per (query id, doc id)."""
    rows = zip(*(labeling.table[name] for name in ("query_id", "doc_id", "relevance", "status")), strict=True)
    return {(q, d): Said(float(r) if s == Status.OK.value else None, Status(s)) for q, d, r, s in rows}


def as_declared(labeling: Labeling) -> Scale:
    """Return a labeling's scale; binary where nobody declared one and all values are 0 or 1."""
    scale = labeling.scale
    return scale if labeling.declared or (scale.low, scale.high) != (0, 1) else Scale("binary")


@dataclass(frozen=True)
class Provenance(_Filed):
    """Reads the labels of existing qrels, for a document or for its page.

    A pooled document that the file does not list is 0 where it judges the query at all. A query without any judgment
    is not judged by this labeling, and not applicable.

    With ``expand`` a judgment counts for all documents of the same page, as in KILT, where every passage of a
    positive page is positive: the page has the largest relevance of its documents. An id in the file that is no
    document of the collection is taken for a page id (or a title, with ``_`` for spaces) itself.

    Scale: the file's grades

    Needs: a qrels file

    Costs: nothing; it cannot label a new pair

    Attributes:
        qrels: file of existing judgments
        expand: page or title: a judgment counts for all documents of the same page
    """

    kind = "provenance"
    needs = Needs(existing=True)
    qrels: str
    expand: Expand = "none"

    def prepare(self) -> None:
        """Read the file, and look up the pages of its documents."""
        self._pages  # noqa: B018 - reads the file

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Said]]:
        declared = Scale.parse(self.declared) if self.declared else None
        labeling = read_qrels(self.context.path(self.qrels), scale=declared)
        return as_declared(labeling), judgments(labeling)

    def _said(self, query_id: str, doc: Doc) -> Said | None:
        said = super()._said(query_id, doc)
        page = self._pages.get((query_id, self._page(doc)))
        # What is missing may be relevant, so that a page which is not says nothing about it.
        if page is not None and (said is None or page > (said.relevance or 0.0)):
            said = Said(page)
        return said

    def _page(self, doc: Doc) -> str:
        return (doc.page_id or "") if self.expand == "page" else "_".join(doc.title.split())

    @cached_property
    def _pages(self) -> Mapping[Pair, float]:
        """The largest relevance per (query id, page) over the file's documents; "" is not a page."""
        judged, docs = self._file[1], self.context.docs
        if self.expand == "none":
            return {}
        if docs is None:
            raise UsageError(f"{self.spec}: expand={self.expand} needs the pages of documents: give the collection")
        named = {doc_id for _, doc_id in judged}
        listed = sorted(doc_id for doc_id in named if doc_id in docs)
        page_of = {doc.doc_id: self._page(doc) for doc in docs.get(listed)}
        if listed and not any(page_of.values()) and len(listed) == len(named):
            what = "page_id" if self.expand == "page" else "title"
            raise UsageError(f"{self.spec}: no document in the file has a {what}, so there is nothing to expand")
        pages: dict[Pair, float] = {}
        for (query_id, doc_id), said in judged.items():
            page = page_of.get(doc_id, doc_id)
            if page and said.relevance is not None:
                pages[query_id, page] = max(said.relevance, pages.get((query_id, page), said.relevance))
        return pages
