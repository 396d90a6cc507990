"""Utility labels (eRAG): the downstream LLM answers from one document alone, and the answer's quality is the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.quality import Answered, AnswerMetric, Score, metric
from judgekit.answers.reading import Answer
from judgekit.context import Context
from judgekit.data.documents import Fields, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.reading.asker import merge_waves, play
from judgekit.settings import setting
from judgekit.spec import split_file
from judgekit.wire.types import Outcome, Request

Variant = Literal["quality", "gain", "signed-gain"]

_GAINS: Final = ("gain", "signed-gain")
_QUALITY: Final = "em"


@dataclass(frozen=True)
class Utility(Labeler):
    """The quality of the answer that the downstream LLM gives from this document alone (eRAG).

    Requests are made by the same code as those of answering end to end, so those of the answers from one document
    are the same, and are paid for once.

    Variants:

    * ``quality``: the quality of the answer, as in eRAG;
    * ``gain``: the quality minus that of the answer without any document, not below 0; ``signed-gain`` as it is.

    Scale: the metric's (binary for em and accuracy, else unit); signed for signed gains

    Needs: the outcome's LLM, prompt and metric, and its reference answers

    Costs: 1 request, the one of answering at k = 1; gains 1 more per query

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        prompt: an answer prompt (answer-short), or the path of your own
        quality: an answer metric (em)
        variant: quality, gain or signed-gain (minus the closed-book quality)
        context_tokens: largest number of tokens of the document
        fields: use fields=text to leave out the title
    """

    kind = "utility"
    endpoint: str | None = None
    prompt: str = "answer-short"
    quality: str | None = None
    variant: Variant = "quality"
    context_tokens: int | None = setting(None, least=1)
    fields: Fields | None = None

    def bound(self, context: Context | None) -> Self:
        """Return it ready for use, with the metric's canonical spelling."""
        utility = self
        if self.quality is not None and split_file(self.quality)[0] is None:
            name = metric(self.quality, context).name
            utility = replace(self, quality=None if name == _QUALITY else name)
        return super(Utility, utility).bound(context)

    def prepare(self) -> None:
        """Look up the endpoint, the prompt and the metric, and check what goes together."""
        self._answerer  # noqa: B018 - looks its endpoint up
        self._metric  # noqa: B018 - and so does this

    @cached_property
    def _answerer(self) -> Answerer:
        """The downstream LLM with its prompt."""
        llm = self.context.endpoint(self.endpoint)
        answerer = make_answerer(llm, self.prompt, self.context, context_tokens=self.context_tokens)
        return replace(answerer, fields=self.rendering)

    @cached_property
    def _metric(self) -> AnswerMetric:
        return metric(self.quality or _QUALITY, self.context)

    @property
    def scale(self) -> Scale:
        """``binary`` for one exact match or accuracy, ``signed`` for signed gains, else ``unit``."""
        if self.variant == "signed-gain":
            return Scale("signed")
        if self.variant == "gain":
            return Scale("unit")
        return self._metric.scale

    @property
    def needs(self) -> Needs:
        """The outcome's LLM, prompt and metric, and the metric's references."""
        rater = self._metric.endpoint
        return Needs(
            references=self._metric.needs_references,
            endpoints=(self._answerer.endpoint,),
            raters=() if rater is None else (rater,),
            prompt=self._answerer.prompt.name,
            outcome_metric=self._metric.name,
            outcome_prompt=self._answerer.prompt.name,
        )

    def _answered(self, unit: Unit) -> list[Unit]:
        """Return what is answered: from the document, then for gains without any."""
        if self.variant in _GAINS:
            return [unit, Unit(unit.query, ())]
        return [unit]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return what answering from the one document asks; nothing where the metric lacks its references."""
        # Nothing could rate the answer, so it is not paid for.
        if self._metric.needs_references and not unit.query.answers:
            return []
        units = self._answered(unit)
        if len(replies) <= len(units):
            wave: list[Request] = []
            for place, answered in enumerate(units):
                wave += self._answerer.requests(answered, replies[place : place + 1])
            if wave:
                return wave
        if self._metric.endpoint is None:
            return []
        return self._rated(unit, replies)[0]

    def most(self, unit: Unit, /) -> int | None:
        """Return the most requests that a unit takes, None where the metric does not say how often it asks."""
        ratings: int | None = 0
        if self._metric.endpoint is not None:
            ratings = self._metric.most(Answered(unit.query, Answer("")))
        if ratings is None:
            return None
        return (2 + ratings) * len(self._answered(unit))

    def _rated(self, unit: Unit, replies: Sequence[Outcome]) -> tuple[list[Request], list[tuple[Answer, Score]]]:
        """Return the next wave of rating the answers, or, if it is [], the answers with their qualities."""
        metric, units = self._metric, self._answered(unit)
        outcomes, replies = merge_waves(replies, [self._answerer.asker(answered.docs) for answered in units])
        rated: list[tuple[Answer, Score]] = []
        for answered, outcome in zip(units, outcomes, strict=True):
            answer = self._answerer.answer(answered, [outcome])
            to_rate = Answered(unit.query, answer, answered.docs if metric.needs_docs else ())
            wave, used = play(metric, to_rate, replies)
            if wave:
                return wave, rated
            rated.append((answer, metric.read(to_rate, replies[:used])))
            replies = replies[used:]
        return [], rated

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc."""
        query, doc = unit.query, unit.docs[0]
        if self._metric.needs_references and not query.answers:
            reason = "the query has no reference answer"
            return [Label.missing(query.query_id, doc.doc_id, Status.NOT_APPLICABLE, reason)]
        (answer, score), *closed_book = self._rated(unit, replies)[1]
        extra: dict[str, float | str] = {"answer": answer.text}
        for other, without in closed_book:
            extra["closed_book_answer"] = other.text
            if without.value is not None:
                extra["closed_book"] = without.value
            score = _gain(score, without, clipped=self.variant == "gain")
        return [
            Label(
                query.query_id,
                doc.doc_id,
                score.value,
                score.status,
                raw=answer.raw,
                reason=score.reason,
                extra=extra,
            )
        ]


def _gain(score: Score, without: Score, *, clipped: bool) -> Score:
    if score.value is None:
        return score
    if without.value is None:
        return without._replace(reason=f"without a document: {without.reason}")
    gain = score.value - without.value
    return Score(max(0.0, gain) if clipped else gain)
