"""Labels from a file, and provenance: existing qrels, such as the source pages of a benchmark's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from judgekit.data.documents import Doc, Unit
from judgekit.data.labelings import Scale
from judgekit.data.sources import opened
from judgekit.data.tables import Status
from judgekit.data.trec import read_qrels
from judgekit.errors import UsageError
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.settings import setting
from judgekit.wire.types import Outcome

Expand = Literal["none", "page", "title"]
Unlisted = Literal["judged", "zero", "missing"]
Pair = tuple[str, str]
"""A query id and a doc id."""

JUDGED: Final = {"judged": 1.0}
"""The column that marks labels listed in the file."""


@dataclass(frozen=True, kw_only=True)
class _Filed(Labeler):
    """Base of the labelers of existing labels.

    A pooled document that the file does not list is 0 if the file judges the query, and otherwise not applicable. With
    ``unlisted=zero`` it is 0 in every query, for files that list relevant documents only and so omit queries without
    any; with ``missing`` it is missing instead of 0, which leaves the query's scores undefined.

    Attributes:
        declared: scale of the file's values, e.g. grades:3, means:5:2 or unit
        unlisted: how unlisted documents count: judged (0 in queries that the file judges), zero or missing
    """

    declared: str = setting("", name="scale")
    unlisted: Unlisted = "judged"

    def prepare(self) -> None:
        """Read the file."""
        self._file  # noqa: B018 - reads it

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Label]]:
        """The scale of the file's values, and its labels."""
        raise NotImplementedError

    @cached_property
    def _queries(self) -> frozenset[str]:
        """The queries that the file judges."""
        labels = self._file[1]
        return frozenset(
            query_id for (query_id, _), label in labels.items() if label.status is not Status.NOT_APPLICABLE
        )

    @property
    def scale(self) -> Scale:
        """The scale of the file's values."""
        return self._file[0]

    @property
    def imported(self) -> Mapping[Pair, float | None]:
        """The file's relevance per (query id, doc id), or None."""
        return {pair: label.relevance for pair, label in self._file[1].items()}

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc."""
        query_id = unit.query.query_id
        return [self._listed(query_id, doc) or self._not_listed(query_id, doc.doc_id) for doc in unit.docs]

    def _listed(self, query_id: str, doc: Doc) -> Label | None:
        return self._file[1].get((query_id, doc.doc_id))

    def _not_listed(self, query_id: str, doc_id: str) -> Label:
        label = Label(query_id, doc_id, 0.0)
        if self.unlisted != "zero" and query_id not in self._queries:
            reason = "the file does not judge this query"
            label = Label.missing(query_id, doc_id, Status.NOT_APPLICABLE, reason)
        elif self.unlisted == "missing":
            label = Label.missing(query_id, doc_id, Status.UNASKED, "nobody was asked about this document")
        label.extra = {"judged": 0.0}
        return label

    def _grades(self, file: str, declared: str) -> tuple[Scale, dict[Pair, Label]]:
        """Return the scale and the labels of qrels; binary if undeclared and all values are 0 or 1."""
        labeling = read_qrels(self.context.path(file), scale=Scale.parse(declared) if declared else None)
        columns = (labeling.table[name] for name in ("query_id", "doc_id", "relevance", "status"))
        labels = {}
        for query_id, doc_id, relevance, status in zip(*columns, strict=True):
            if status == Status.OK.value:
                label = Label(query_id, doc_id, float(relevance))
            else:
                label = Label.missing(query_id, doc_id, Status(status), "missing in the file as well")
            label.extra = JUDGED
            labels[query_id, doc_id] = label
        scale = labeling.scale
        # Undeclared grades go up to the largest, which for 0 and 1 means yes or no.
        if not labeling.declared and (scale.low, scale.high) == (0, 1):
            scale = Scale("binary")
        return scale, labels


@dataclass(frozen=True)
class Provenance(_Filed):
    """Reads the labels of existing qrels, for a document or for its page.

    A pooled document that the file does not list is 0 if the file judges the query. Queries without any judgment are
    not applicable. With ``expand`` a judgment counts for all documents of the same page, as in KILT, where every
    passage of a positive page is positive: the page gets the largest relevance of its documents. Ids that are no
    documents of the collection are taken as page ids (or titles, with ``_`` for spaces).

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

    @property
    def judgments(self) -> str | None:
        """The file, unless it judges pages."""
        return str(self.context.path(self.qrels)) if self.expand == "none" else None

    def prepare(self) -> None:
        """Read the file, and look up the pages of its documents."""
        self._pages  # noqa: B018 - reads the file

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Label]]:
        return self._grades(self.qrels, self.declared)

    def _listed(self, query_id: str, doc: Doc) -> Label | None:
        label = super()._listed(query_id, doc)
        # A passage judged not relevant becomes positive if another one of its page is, as in KILT.
        page = self._pages.get((query_id, self._page(doc)))
        # A missing label may be relevant, so an irrelevant page says nothing about it.
        if page is not None and (label is None or page > (label.relevance or 0.0)):
            return Label(query_id, doc.doc_id, page, extra=JUDGED)
        return label

    def _page(self, doc: Doc) -> str:
        if self.expand == "page":
            return doc.page_id or ""
        return "_".join(doc.title.split())

    @property
    def _titles(self) -> dict[str, str]:
        """Page titles by page id, for files that name both, as KILT's does."""
        titles = {}
        for record in opened(self.context.path(self.qrels), "qrels")[1]:
            doc_id, title = record.fields.get("doc_id"), record.fields.get("title")
            if doc_id and isinstance(title, str) and title:
                titles[str(doc_id)] = "_".join(title.split())
        return titles

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
        titles = self._titles if self.expand == "title" else {}
        page_of = {doc.doc_id: self._page(doc) for doc in docs.get(listed)}
        if listed and not any(page_of.values()) and len(listed) == len(named):
            what = "page_id" if self.expand == "page" else "title"
            raise UsageError(f"{self.spec}: no document in the file has a {what}, so there is nothing to expand")
        pages: dict[Pair, float] = {}
        for (query_id, doc_id), label in judged.items():
            page = page_of.get(doc_id) or titles.get(doc_id, doc_id)
            if page and label.relevance is not None:
                pages[query_id, page] = max(label.relevance, pages.get((query_id, page), label.relevance))
        return pages
