"""Utility labels (eRAG): the downstream LLM answers from one document alone, and the answer's quality is the label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from judgekit.answers.answerer import Answerer
from judgekit.answers.quality import Metric, metric
from judgekit.data.documents import Doc, Fields, Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.labelers.base import Context, Label, Needs, Unit, read_fields, spell_fields
from judgekit.llm.prompts import find_prompt
from judgekit.llm.types import Outcome, Request
from judgekit.options import Options, spelling
from judgekit.spec import Spec

__all__ = ["Utility"]


@dataclass(frozen=True)
class Utility:
    """The quality of the answer that the downstream LLM gives from this document alone.

    Requests are made by the same code as those of answering end to end, so those of the answers from one document
    are the same, and are had once.

    Attributes:
        answerer: the downstream LLM with its prompt.
        quality: the answer metric.
        fields: how documents are rendered.
    """

    kind: ClassVar[str] = "utility"
    answerer: Answerer
    quality: Metric
    endpoint_name: str | None = None
    prompt_name: str = "answer-short"
    default_fields: Fields = field(default="title+text", compare=False, repr=False)

    @classmethod
    def make(cls, spec: Spec, context: Context) -> Self:
        """Build it from its spelling."""
        options = Options(spec, ("endpoint", "prompt", "quality", "context_tokens", "fields"))
        name, prompt_name = options.text("endpoint"), options.text("prompt", "answer-short")
        tokens = options.whole("context_tokens", 0, 1) if "context_tokens" in options else None
        answerer = Answerer(
            context.endpoint(name),
            find_prompt(prompt_name, context.path),
            read_fields(options, context),
            context_tokens=tokens,
        )
        quality = metric(options.text("quality", "em"), context)
        return cls(answerer, quality, name, prompt_name, context.fields)

    @property
    def spec(self) -> Spec:
        """The canonical spelling."""
        return spelling(
            self.kind,
            {
                "endpoint": (self.endpoint_name, None),
                "prompt": (self.prompt_name, "answer-short"),
                "quality": (self.quality.name, "em"),
                "context_tokens": (self.answerer.context_tokens, None),
                **spell_fields(self.answerer.fields, self.default_fields),
            },
        )

    @property
    def scale(self) -> Scale:
        """The metric's: ``binary`` for exact match and accuracy, ``unit`` otherwise."""
        return self.quality.scale

    @property
    def needs(self) -> Needs:
        """The outcome's LLM, prompt and metric, and the metric's references."""
        return Needs(
            references=self.quality.needs_references,
            endpoint=self.answerer.endpoint,
            outcome_metric=self.quality.name,
            outcome_prompt=self.answerer.prompt.name,
        )

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Return one unit per doc."""
        return [Unit(query, (doc,)) for doc in docs]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return what answering from the one document asks; nothing where the metric lacks its references."""
        if self.quality.needs_references and not unit.query.answers:
            return []
        return self.answerer.requests(unit, replies)

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc; ``extra["answer"]`` is the answer that it rates."""
        query, doc = unit.query, unit.docs[0]
        if self.quality.needs_references and not query.answers:
            reason = "the query has no reference answer"
            return [Label(query.query_id, doc.doc_id, None, Status.NOT_APPLICABLE, "", reason)]
        answer = self.answerer.answer(unit, replies)
        score = self.quality.score(answer, query)
        extra: dict[str, float | str] = {"answer": answer.text}
        return [Label(query.query_id, doc.doc_id, score.value, score.status, answer.raw, score.reason, extra)]


LABELER = Utility
