"""Need in the list: what the answer loses without one document of the list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.quality import Answered, AnswerMetric, metric
from judgekit.answers.reading import Answer
from judgekit.context import Context
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.labelers.alone import answers_of, ask
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.labelers.usefulness import QUALITY, canonical_quality, gain_over, rate
from judgekit.reading import ANSWER_PROMPT
from judgekit.settings import setting
from judgekit.wire.types import Outcome, Request


@dataclass(frozen=True)
class Needed(Labeler):
    """What the answer from a list loses without this document.

    The label is E(answer from the first ``top`` documents) - E(answer from the same without this one): above 0 for a
    document that the answer needs, below 0 for one that breaks it. Further documents have no label. The list fuses all
    runs; with a single run it is that run's own, and the labels contain its outcome. Two documents with the same answer
    are not needed, since either replaces the other (arXiv 2507.04480, 2509.21359).

    Scale: signed

    Needs: the outcome's LLM, prompt and metric, and reference answers

    Costs: top + 1 requests per query; the first is the same as for answering from the list

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        prompt: an answer prompt (answer-short), or the path of your own
        quality: an answer metric (em)
        top: documents of the list (5)
        context_tokens: largest number of tokens of the list
        fields: use fields=text to leave out the title
    """

    kind = "needed"
    scale = Scale("signed")
    endpoint: str | None = None
    prompt: str = ANSWER_PROMPT
    quality: str | None = None
    top: int = setting(5, least=1)
    context_tokens: int | None = setting(None, least=1)
    fields: Fields | None = None

    def bound(self, context: Context | None) -> Self:
        """Return a copy that is ready for use, with the canonical spelling of the metric."""
        needed = replace(self, quality=canonical_quality(self.quality, context))
        return super(Needed, needed).bound(context)

    def prepare(self) -> None:
        """Look up the endpoint, the prompt and the metric."""
        self._answerer, self._metric  # noqa: B018 - both look theirs up

    @cached_property
    def _answerer(self) -> Answerer:
        llm = self.context.endpoint(self.endpoint)
        answerer = make_answerer(llm, self.prompt, self.context, context_tokens=self.context_tokens)
        return replace(answerer, fields=self.rendering)

    @cached_property
    def _metric(self) -> AnswerMetric:
        return metric(self.quality or QUALITY, self.context)

    @property
    def needs(self) -> Needs:
        """The outcome's LLM and prompt, the raters of answers, and the references if the metric uses them."""
        prompt, rater = self._answerer.prompt.name, self._metric.endpoint
        # The outcome's metric is not named, because these labels, unlike eRAG's, are not the outcome at depth 1.
        return Needs(
            references=self._metric.needs_references,
            endpoints=(self._answerer.endpoint,),
            raters=() if rater is None else (rater,),
            prompt=prompt,
            outcome_prompt=prompt,
            outcome_list=self.top,
        )

    @property
    def ranked(self) -> bool:
        """Documents come in the order of all runs together."""
        return True

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Return all documents of a query as one unit: they share the answer from the whole list."""
        return [Unit(query, tuple(docs))]

    def _lists(self, unit: Unit) -> list[Unit]:
        """Return the lists to answer from: the whole one, then each without one document."""
        top = unit.docs[: self.top]
        without = [Unit(unit.query, top[:place] + top[place + 1 :]) for place in range(len(top))]
        return [Unit(unit.query, top), *without]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the requests for answers from the lists, then those for rating them."""
        # Nothing could rate these answers, so they are not paid for.
        if self._metric.needs_references and not unit.query.answers:
            return []
        wave = ask(self._answerer, self._lists(unit), replies)
        if wave:
            return wave
        answered, rest = self._answered(unit, replies)
        return rate(self._metric, answered, rest)[0]

    def _answered(self, unit: Unit, replies: Sequence[Outcome]) -> tuple[list[Answered], Sequence[Outcome]]:
        lists = self._lists(unit)
        answers, rest = answers_of(self._answerer, lists, replies)
        shown = [one.docs if self._metric.needs_docs else () for one in lists]
        return [Answered(unit.query, answer, docs) for answer, docs in zip(answers, shown, strict=True)], rest

    def most(self, unit: Unit, /) -> int | None:
        """Return the largest number of requests of a unit; None if the metric does not say."""
        ratings: int | None = 0
        if self._metric.endpoint is not None:
            ratings = self._metric.most(Answered(unit.query, Answer("")))
        return None if ratings is None else (2 + ratings) * len(self._lists(unit))

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return a label for each doc of the unit."""
        query_id = unit.query.query_id
        if self._metric.needs_references and not unit.query.answers:
            reason = "the query has no reference answer"
            return [Label.missing(query_id, doc.doc_id, Status.NOT_APPLICABLE, reason) for doc in unit.docs]
        answered, rest = self._answered(unit, replies)
        whole, *without = rate(self._metric, answered, rest)[1]
        labels = []
        for doc, score, other in zip(unit.docs, without, answered[1:], strict=False):
            need = gain_over(whole, score, clipped=False)
            extra = {"answer": answered[0].answer.text, "answer_without": other.answer.text}
            labels.append(Label(query_id, doc.doc_id, need.value, need.status, other.answer.raw, need.reason, extra))
        for doc in unit.docs[self.top :]:
            reason = f"not among the first {self.top} documents of the list"
            labels.append(Label.missing(query_id, doc.doc_id, Status.UNASKED, reason))
        return labels
