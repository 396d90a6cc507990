"""The base of all labelers.

A labeler is two pure functions over *units* (a query with one or more docs)::

    requests(unit, replies) -> list[Request]     called again with the outcomes, until it returns [] label(unit,
    replies)    -> list[Label]

A labeler without an LLM has ``relevance(query, doc)`` instead. It holds its options and no state, and reads its files
when it is built. A labeler of existing labels may have a property ``imported``, (query id, doc id) -> relevance or
None: the report then counts the relevant documents that no run retrieved.

Judgekit's own are the files of this package; see `judgekit.catalog` for where others are found.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from judgekit.catalog import Catalog, Spelled
from judgekit.context import Context
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.spec import user_code
from judgekit.wire.types import Endpoint, Outcome, Request


@dataclass(slots=True)
class Label:
    """The label of one pair. ``relevance`` is None unless the status is ok. Never modified.

    Attributes:
        raw: the text from which the label was read, if any.
        reason: why the label is missing, or why it may be wrong.
        extra: further columns of the labels table, numbers or texts, such as the share of voices that agree or the
            answer that a utility label rates.
    """

    query_id: str
    doc_id: str
    relevance: float | None
    status: Status = Status.OK
    raw: str = ""
    reason: str = ""
    extra: Mapping[str, float | str] = field(default_factory=dict)

    @classmethod
    def missing(cls, query_id: str, doc_id: str, status: Status, reason: str) -> Label:
        """Return the label of a pair that has none, and why."""
        return cls(query_id, doc_id, None, status, reason=reason)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a labeling needs and sees; the report shows it beside every number.

    Attributes:
        references: whether it needs reference answers.
        endpoints: the LLMs that give the verdicts or answers behind the labels: none, one, or a jury.
        raters: LLMs that rate those answers.
        prompt: the name of their prompt.
        outcome_metric: the answer metric that it shares with the outcome (utility), if any.
        outcome_prompt: the answer prompt that it shares with the outcome, if any.
        people: whether the labels were made by people.
        existing: whether the labels exist already and cannot be made for a new pair.
        own_answers: whether the model's own answers replace reference answers.
        outcome_list: for labels made from the quality of a list's answer: the length of the list.
    """

    references: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    raters: tuple[Endpoint, ...] = ()
    prompt: str = ""
    outcome_metric: str | None = None
    outcome_prompt: str | None = None
    people: bool = False
    existing: bool = False
    own_answers: bool = False
    outcome_list: int | None = None

    @property
    def asked(self) -> tuple[Endpoint, ...]:
        """Every LLM that is asked for a label."""
        return (*self.endpoints, *self.raters)


@dataclass(frozen=True)
class Labeler(Spelled):
    """Base of all labelers: a frozen dataclass whose fields are the options of its spelling.

    A labeler has a ``kind``, the name in its spelling, a ``scale``, and says how relevant a document is::

        @dataclass(frozen=True)
        class Longest(judgekit.Labeler):
            \"\"\"A document is relevant if it has at least so many characters.\"\"\"
            kind = "longest"
            scale = "binary"
            least: int = 10

            def relevance(self, query, doc):
                return len(doc.text) >= self.least

    A labeler that asks an LLM overrides `requests` and `label`. An option ``fields`` of type `Fields` or None sets how
    documents are rendered.
    """

    @property
    def judgments(self) -> str | None:
        """The file of existing judgments for `judgekit build --people`; None if there is none."""
        return None

    @property
    def scale(self) -> Scale:
        """The declared scale of the labels; a class may give it as a text, ``scale = "grades:3"``."""
        raise UsageError(f'{type(self).__name__} declares no scale for its labels; add e.g. scale = "binary"')

    @property
    def needs(self) -> Needs:
        """What the labeling needs and sees; by default only the LLM that the option ``endpoint`` names."""
        name: str | None = getattr(self, "endpoint", None)
        if not self._asks:
            return Needs()
        return Needs(endpoints=(self.context.endpoint(name),))

    @property
    def rendering(self) -> Fields:
        """How documents are rendered."""
        fields: Fields | None = getattr(self, "fields", None)
        return fields or "title+text"

    @property
    def by_pair(self) -> bool:
        """Whether each document is labelled alone, independently of others."""
        return type(self).units is Labeler.units

    @property
    def ranked(self) -> bool:
        """Whether `units` gets a query's documents in the fused order of all runs; otherwise by id."""
        return False

    @property
    def _asks(self) -> bool:
        return type(self).requests is not Labeler.requests

    @property
    def published_variant(self) -> str:
        """The spelling of the variant that labels as published scripts do; "" if this one does, or none does."""
        return ""

    def counted_otherwise(self, unit: Unit, labels: Sequence[Label], /) -> int:
        """Return for how many labels of a unit the `published_variant` differs."""
        return 0

    def bound(self, context: Context | None) -> Self:
        """Return a copy that is ready for use.

        Its spelling leaves out ``fields`` only if title and text are rendered, by default too: a labeling's name says
        what its labels were made from.
        """
        labeler = self
        if context is not None and hasattr(self, "fields"):
            fields = self.fields or context.fields
            is_default = fields == context.fields == "title+text"
            labeler = replace(self, **{"fields": None if is_default else fields})
        return super(Labeler, labeler).bound(context)

    def prepare(self) -> None:
        """Check the options together and look up what they name in `context`.

        Raises:
            UsageError: the class defines neither ``relevance`` nor ``label``.
        """
        if type(self).relevance is Labeler.relevance and type(self).label is Labeler.label:
            raise UsageError(f"{type(self).__name__} labels nothing: define relevance(self, query, doc)")
        self.scale  # noqa: B018 - raises where there is none

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Cut a query's pooled docs into units: one per doc for an LLM, else one for all."""
        if self._asks:
            return [Unit(query, (doc,)) for doc in docs]
        return [Unit(query, tuple(docs))]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of requests, given all outcomes so far in order; [] when done, as by default."""
        return []

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc of the unit; by default its `relevance`."""
        return [self._of(unit.query, doc) for doc in unit.docs]

    def relevance(self, query: Query, doc: Doc) -> float | None:
        """Return a document's relevance on the labeler's scale; None if the labeler does not apply."""
        raise NotImplementedError

    def _of(self, query: Query, doc: Doc) -> Label:
        file = type(self).relevance.__code__.co_filename
        with user_code(lambda: f"{self.spec}, query {query.query_id!r}, doc {doc.doc_id!r}", file):
            value = self.relevance(query, doc)
        if value is None:
            reason = "does not apply to this document"
            return Label.missing(query.query_id, doc.doc_id, Status.NOT_APPLICABLE, reason)
        # Labelers that compare arrays return numpy's True, which is no number for Python.
        if not isinstance(value, numbers.Real) and type(value).__module__ != "numpy":
            raise UsageError(f"{self.spec}, query {query.query_id!r}, doc {doc.doc_id!r}: {value!r} is not a number")
        return Label(query.query_id, doc.doc_id, float(value))


LABELERS = Catalog(Labeler, "labeler", "judgekit.labelers")
build, catalog, kinds = LABELERS.build, LABELERS.catalog, LABELERS.kinds
