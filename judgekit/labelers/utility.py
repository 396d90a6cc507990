"""Utility labels: the downstream LLM answers from one document alone, and the label rates the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.quality import Answered, AnswerMetric, metric
from judgekit.answers.reading import Answer
from judgekit.context import Context
from judgekit.data.documents import Doc, Fields, Query, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.alone import AnswersAlone
from judgekit.labelers.base import Label, Labeler, Needs, build
from judgekit.labelers.likelihood import Confidence, LikelihoodGain
from judgekit.labelers.usefulness import QUALITY, answering, canonical_quality, harm, labelled, quality, rated
from judgekit.reading import ANSWER_PROMPT
from judgekit.settings import setting
from judgekit.wire.types import Outcome, Request, most_requests

Variant = Literal["quality", "gain", "signed-gain", "reads", "distraction", "confidence"]
Reference = Literal["given", "own"]
Reading = Literal["text", "logprobs"]

_GAINS: Final = ("gain", "signed-gain")
_UNRATED: Final = ("reads", "distraction", "confidence")
"""Variants about whether there is an answer, or how sure it is, not how good."""


@dataclass(frozen=True)
class Utility(Labeler):
    """The downstream LLM's answer from this document alone: its quality (eRAG), or whether there is one.

    The requests are the same as for answering end to end from one document, and are paid for once for all variants.

    Variants:

    * ``quality``: the quality of the answer, as in eRAG (Salemi and Zamani, SIGIR 2024);
    * ``gain``: the quality minus that of the answer without any document, not below 0; ``signed-gain`` as it is;
    * ``reads``: 1 if the LLM answers at all, 0 if it abstains; needs no reference answers;
    * ``distraction``: u if the document is relevant, else -u/3, where u is 1 if the LLM answers and 0 if it abstains:
      an answer from an irrelevant document does harm. The measure UDCG@k (Trappolini et al. 2025, arXiv 2510.21440)
      is made for these labels. The paper's u is 1 minus the probability of abstaining;
    * ``confidence``: the probability of the LLM's own answer: the geometric mean of its tokens' probabilities, 0 if it
    abstains. ``extra["logprob"]`` is the mean log-probability. Needs no reference answers.

    With ``reference=own`` the answer is compared with the LLM's answer from the first ``top`` documents of the fused
    runs, so it needs no reference answers either (Zhang et al. 2025, arXiv 2504.05220). If the LLM abstains there, all
    labels of the question are 0. Another run may change that list, and so the labels.

    With ``read=logprobs`` nothing is generated: the label is the gain in the answer's probability from the document, as
    the geometric mean over its tokens (SePer, Dai et al. 2025, arXiv 2503.01478, estimates such probabilities by
    sampling). ``extra["logprob_gain"]`` is the gain in mean log-probability, which orders a query's documents in the
    same way and has no bounds. Needs an endpoint with api = "completions" that echoes log-probabilities of the prompt
    (vLLM).

    Scale: binary for em, accuracy and reads; signed for signed-gain, distraction and read=logprobs; else unit

    Needs: the outcome's LLM and prompt; quality and gains its metric and reference answers, unless reference=own

    Costs: 1 request, that of answering at k = 1; gains, reference=own: 1 more per query; read=logprobs: 1 per reference

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        prompt: an answer prompt (answer-short), or the path of your own
        quality: an answer metric (em)
        variant: quality, gain or signed-gain (minus the closed-book quality), reads, distraction or confidence
        reference: given, the reference answers; or own, the LLM's own answer from the list
        top: number of documents behind the own answer (5)
        relevant: the labeler that says which documents are relevant, for distraction (containment)
        read: text, or logprobs: the gain in the answer's probability over closed book
        context_tokens: largest number of tokens of the document, and of the list
        fields: use fields=text to leave out the title
    """

    kind = "utility"
    endpoint: str | None = None
    prompt: str = ANSWER_PROMPT
    quality: str | None = None
    variant: Variant = "quality"
    reference: Reference = "given"
    top: int = setting(5, least=1)
    relevant: str = "containment"
    read: Reading = "text"
    context_tokens: int | None = setting(None, least=1)
    fields: Fields | None = None

    def bound(self, context: Context | None) -> Self:
        """Return a copy that is ready for use, with the canonical spellings of the metric and of the other labeler."""
        utility = replace(self, quality=canonical_quality(self.quality, context))
        return super(Utility, utility).bound(context)

    def prepare(self) -> None:
        """Look up the endpoint, the prompt and the metric, and check what goes together.

        Raises:
            UsageError: an option does not go with the variant.
        """
        if self.variant in _UNRATED and (self.quality is not None or self.reference == "own"):
            option = "quality" if self.quality is not None else "reference"
            raise UsageError(f"{self.spec}: {self.variant} rates no answer: leave out {option}")
        if self.read == "logprobs" and (self.quality is not None or self.variant != "quality"):
            option = "quality" if self.quality is not None else "variant"
            raise UsageError(f"{self.spec}: read=logprobs reads the probability of an answer: leave out {option}")
        if self.variant != "distraction" and self.relevant != "containment":
            raise UsageError(f"{self.spec}: the option relevant needs variant=distraction")
        if self.reference != "own" and self.top != 5:
            raise UsageError(f"{self.spec}: the option top needs reference=own")
        self._answerer  # noqa: B018 - looks its endpoint up
        if self._probable is not None:
            self._probable.check(str(self.spec))
        self._metric  # noqa: B018 - and so does this
        if self.variant == "distraction" and self._relevant.scale.min_rel is None:
            raise UsageError(
                f"{self.spec}: the labels of {self.relevant} do not say which documents are relevant: name a labeler"
                " that gives yes or no, or grades"
            )

    @cached_property
    def _answerer(self) -> Answerer:
        """The downstream LLM with its prompt."""
        llm = self.context.endpoint(self.endpoint)
        answerer = make_answerer(llm, self.prompt, self.context, context_tokens=self.context_tokens)
        return replace(answerer, fields=self.rendering, logprobs=self.variant == "confidence")

    @cached_property
    def _probable(self) -> LikelihoodGain | Confidence | None:
        """Reads log-probabilities; None if texts are read."""
        if self.read == "logprobs":
            return LikelihoodGain(self._answerer, self.top if self.reference == "own" else None)
        return Confidence(self._answerer) if self.variant == "confidence" else None

    @cached_property
    def _answers(self) -> AnswersAlone:
        """The answers about a unit."""
        top = self.top if self.reference == "own" else None
        return AnswersAlone(self._answerer, top, closed_book=self.variant in _GAINS)

    @cached_property
    def _metric(self) -> AnswerMetric:
        return metric(self.quality or QUALITY, self.context)

    @cached_property
    def _relevant(self) -> Labeler:
        return build(self.relevant, self.context)

    @property
    def _referenced(self) -> bool:
        """Whether a question without reference answers has no labels."""
        if self.reference == "own" or self.variant in _UNRATED:
            return False
        return self.read == "logprobs" or self._metric.needs_references

    @property
    def scale(self) -> Scale:
        """``binary`` for exact match, accuracy or reads, ``signed`` if labels may be negative, else ``unit``."""
        if self.variant == "reads":
            return Scale("binary")
        if self.read == "logprobs" or self.variant in ("signed-gain", "distraction"):
            return Scale("signed")
        return Scale("unit") if self.variant in ("gain", "confidence") else self._metric.scale

    @property
    def needs(self) -> Needs:
        """The outcome's LLM and prompt, and where answers are rated its metric and the metric's references."""
        prompt = self._answerer.prompt.name
        needs = Needs(endpoints=(self._answerer.endpoint,), prompt=prompt, outcome_prompt=prompt)
        if self.read == "logprobs":
            return replace(needs, references=self.reference == "given", own_answers=self.reference == "own")
        if self.variant in ("reads", "confidence"):
            return replace(needs, own_answers=True)
        if self.variant == "distraction":
            other = self._relevant.needs
            return replace(needs, references=other.references, raters=other.asked, people=other.people)
        rater = self._metric.endpoint
        needs = replace(needs, raters=() if rater is None else (rater,))
        if self.reference == "own":
            return replace(needs, own_answers=True)
        return replace(needs, references=self._metric.needs_references, outcome_metric=self._metric.name)

    @property
    def by_pair(self) -> bool:
        """With ``reference=own`` the documents of a question share the own answer."""
        return self.reference == "given"

    @property
    def ranked(self) -> bool:
        """With ``reference=own`` the list is that of all runs together."""
        return not self.by_pair

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Return one unit per doc; with ``reference=own`` all of them together, as they share the own answer."""
        return super().units(query, docs) if self.by_pair else [Unit(query, tuple(docs))]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return what answering from the document asks; nothing where the metric lacks its references."""
        # Nothing could rate the answer, so it is not paid for.
        if self._referenced and not unit.query.answers:
            return []
        if self._probable is not None:
            return self._probable.requests(unit, replies)
        wave = self._answers.requests(unit, replies)
        if wave:
            return wave
        read, rest = self._answers.read(unit, replies)
        if self.variant == "distraction":
            return self._relevant.requests(unit, rest)
        if self.variant in _UNRATED or self._metric.endpoint is None:
            return []
        return rated(self._metric, unit, read, rest)[0]

    def most(self, unit: Unit, /) -> int | None:
        """Return the most requests that a unit takes, None where the metric does not say how often it asks."""
        if self._probable is not None:
            return self._probable.most(unit)
        units = self._answers.units(unit)
        if self.variant == "distraction":
            other = most_requests(self._relevant, unit) if self._relevant._asks else 0
            return None if other is None else 2 * len(units) + other
        ratings: int | None = 0
        if self._metric.endpoint is not None and self.variant not in _UNRATED:
            ratings = self._metric.most(Answered(unit.query, Answer("")))
        if ratings is None:
            return None
        return (2 + ratings) * len(units)

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return a label for each doc of the unit."""
        query = unit.query
        if self._referenced and not query.answers:
            reason = "the query has no reference answer"
            return [Label.missing(query.query_id, doc.doc_id, Status.NOT_APPLICABLE, reason) for doc in unit.docs]
        if self._probable is not None:
            return self._probable.label(unit, replies)
        read, rest = self._answers.read(unit, replies)
        if self.variant == "distraction":
            return harm(unit, read, self._relevant.label(unit, rest), self._relevant.scale)
        if self.variant == "reads":
            return labelled(unit, read, [answering(answer) for answer in read.alone])
        return quality(unit, read, self._metric, rest, clipped=self.variant == "gain")
