"""Provenance: existing qrels as a labeling, such as the pages that a benchmark's questions were written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from judgekit.data.documents import Doc, Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.data.trec import read_qrels
from judgekit.labelers.base import Context, Label, Needs, Unit
from judgekit.llm.types import Outcome, Request
from judgekit.options import Options, spelling
from judgekit.spec import Spec

__all__ = ["Provenance"]

Judged = Mapping[tuple[str, str], tuple[float | None, Status]]
"""(query id, doc id) to relevance and status."""


@dataclass(frozen=True)
class Provenance:
    """The relevance that a qrels file gives a document; 0 for a pooled document that it does not list.

    Attributes:
        qrels: the file, as spelled.
        judged: its labels.
        declared: their scale.
    """

    kind: ClassVar[str] = "provenance"
    qrels: str
    judged: Judged = field(repr=False)
    declared: Scale

    @classmethod
    def make(cls, spec: Spec, context: Context) -> Self:
        """Build it from its spelling; reads the file."""
        options = Options(spec, ("qrels",))
        name = options.required("qrels", "the file of existing judgments")
        labeling = read_qrels(context.path(name))
        binary = not labeling.declared and (labeling.scale.low, labeling.scale.high) == (0, 1)
        judged = {
            (q, d): (None if s != Status.OK.value else float(r), Status(s))
            for q, d, r, s in zip(
                labeling.query_ids, labeling.doc_ids, labeling.relevance, labeling.status, strict=True
            )
        }
        return cls(name, judged, Scale("binary") if binary else labeling.scale)

    @property
    def spec(self) -> Spec:
        """The canonical spelling."""
        return spelling(self.kind, {"qrels": (self.qrels, None)})

    @property
    def scale(self) -> Scale:
        """Binary where the file holds only 0 and 1, else its grades."""
        return self.declared

    @property
    def needs(self) -> Needs:
        """Nothing but the file."""
        return Needs()

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Return all docs of the query as one unit."""
        return [Unit(query, tuple(docs))]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return []: nothing is asked."""
        return []

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc."""
        query_id = unit.query.query_id
        labels = []
        for doc in unit.docs:
            relevance, status = self.judged.get((query_id, doc.doc_id), (0.0, Status.OK))
            labels.append(Label(query_id, doc.doc_id, relevance, status))
        return labels


LABELER = Provenance
