"""Utility labels (eRAG): the downstream LLM answers from one document alone, and the answer's quality is the label."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self

from judgekit.answers.answerer import Answerer, Options, make_answerer
from judgekit.answers.quality import Answered, AnswerMetric, Score, metric
from judgekit.answers.reading import Answer
from judgekit.data.documents import Fields
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Context, Label, Labeler, Needs, Unit
from judgekit.plugins import option
from judgekit.reading.asker import merge_waves, play
from judgekit.reading.logprobs import MalformedLogprobsError, begins
from judgekit.reading.prompts import Prompt, find_prompt
from judgekit.spec import split_file
from judgekit.wire.types import Outcome, Reply, Request

__all__ = ["Utility"]

Variant = Literal["quality", "gain", "signed-gain", "abstention", "attempt"]
Reading = Literal["text", "logprobs"]

_GAINS: Final = ("gain", "signed-gain")
_RATED: Final = ("quality", *_GAINS)
_QUALITY: Final = "em"
_TOP_LOGPROBS: Final = 20
_LEAST_WORD: Final = 3


@dataclass(frozen=True)
class Utility(Labeler):
    """The quality of the answer that the downstream LLM gives from this document alone (eRAG).

    Requests are made by the same code as those of answering end to end, so those of the answers from one document
    are the same, and are paid for once.

    Variants:

    * ``quality``: the quality of the answer, as in eRAG;
    * ``gain``: the quality minus that of the answer without any document, not below 0; ``signed-gain`` as it is;
    * ``abstention``: the probability that the model abstains on this document, the distraction signal of UDCG turned
      round: a document about the wrong thing on which the model does not abstain is a distractor. ``attempt`` is 1
      minus it, so that more is better. Neither needs references. They are read from the text, 0 or 1 (or, with
      samples, a share), or from the log-probabilities of the reply's first token.

    Samples are of the same request, so the endpoint's temperature should be above 0. A label exists if more than half
    of them do.

    Scale: the metric's (binary for em and accuracy, else unit); signed for signed gains

    Needs: the outcome's LLM, prompt and metric, and its reference answers; abstention and attempt need no references

    Costs: 1 request, the one of answering at k = 1; gains 1 more per query; samples=n: n

    Attributes:
        endpoint: which LLM; left out where there is one
        prompt: an answer prompt (answer-short) or the path of your own
        quality: an answer metric (em)
        variant: quality, gain or signed-gain (minus the closed-book quality), abstention or attempt
        read: for abstention and attempt: text or logprobs
        samples: answers that the label is the mean of (1)
        context_tokens: the most tokens that the document may take
        fields: text leaves the title out
    """

    kind = "utility"
    endpoint: str | None = None
    prompt: str = "answer-short"
    quality: str | None = None
    variant: Variant = "quality"
    read: Reading = "text"
    samples: int = option(1, least=1)
    context_tokens: int | None = option(None, least=1)
    fields: Fields | None = None

    def bound(self, context: Context | None) -> Self:
        """Return it ready for use, with the metric's canonical spelling."""
        made = self
        if self.quality is not None and self.variant in _RATED and split_file(self.quality)[0] is None:
            name = metric(self.quality, context).name
            made = replace(self, quality=None if name == _QUALITY else name)
        return super(Utility, made).bound(context)

    def prepare(self) -> None:
        """Look up the endpoint, the prompt and the metric, and check what goes together."""
        rated = self.variant in _RATED
        abstain = self._prompt.output.abstain
        if not rated and self.quality is not None:
            reason = f"the variant {self.variant} rates no answer, so quality cannot be given with it"
            raise UsageError(f"{self.spec}: {reason}")
        if self.read == "logprobs" and rated:
            raise UsageError(f"{self.spec}: read=logprobs is for the variants abstention and attempt")
        if self.read == "logprobs" and len(abstain.split()[0]) < _LEAST_WORD:
            raise UsageError(f"{self.spec}: the abstention {abstain!r} of the prompt cannot be told by its first token")
        self._answerer  # noqa: B018 - looks its endpoint up
        self._metric  # noqa: B018 - and so does this

    @cached_property
    def _prompt(self) -> Prompt:
        return find_prompt(self.prompt, self.context.path, self.context.prompts)

    @cached_property
    def _answerer(self) -> Answerer:
        """The downstream LLM with its prompt."""
        endpoint = self.context.endpoint(self.endpoint)
        if endpoint.application and self.read == "text":
            given = {} if self.context_tokens is None else {"context_tokens": self.context_tokens}
            return make_answerer(endpoint, self.prompt, self.context, given)
        params = {"logprobs": True, "top_logprobs": _TOP_LOGPROBS} if self.read == "logprobs" else {}
        options = Options(context_tokens=self.context_tokens)
        return Answerer(endpoint.llm, self._prompt, self.rendering, options, params=params)

    @cached_property
    def _metric(self) -> AnswerMetric | None:
        """The answer metric; None for abstention and attempt."""
        return metric(self.quality or _QUALITY, self.context) if self.variant in _RATED else None

    @property
    def scale(self) -> Scale:
        """``binary`` for one exact match, accuracy or abstention, ``signed`` for signed gains, else ``unit``."""
        if self.variant == "signed-gain":
            return Scale("signed")
        if self.variant == "gain" or self.samples > 1 or self.read == "logprobs":
            return Scale("unit")
        return self._metric.scale if self._metric else Scale("binary")

    @property
    def needs(self) -> Needs:
        """The outcome's LLM and prompt, and where answers are rated its metric and the metric's references."""
        rater = self._metric.endpoint if self._metric else None
        return Needs(
            references=self._needs_references,
            endpoints=(self._answerer.endpoint,),
            raters=() if rater is None else (rater,),
            prompt=self._answerer.prompt.name,
            outcome_metric=self._metric.name if self._metric else None,
            outcome_prompt=self._answerer.prompt.name,
        )

    @property
    def _needs_references(self) -> bool:
        return self._metric is not None and self._metric.needs_references

    def _asked(self, unit: Unit) -> list[tuple[Unit, int]]:
        """Return what is answered, as (unit, sample): from the document, then for gains without any."""
        units = [unit, Unit(unit.query, ())] if self.variant in _GAINS else [unit]
        return [(u, sample) for u in units for sample in range(self.samples)]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return what answering from the one document asks; nothing where the metric lacks its references.

        A metric that asks an LLM follows, one answer after the other.
        """
        if self._needs_references and not unit.query.answers:
            return []
        asked = self._asked(unit)
        if len(replies) <= len(asked):
            so_far = [[reply] for reply in replies] or [[]] * len(asked)
            wave = [
                replace(request, sample=sample) if sample else request
                for (u, sample), said in zip(asked, so_far, strict=True)
                for request in self._answerer.requests(u, said)
            ]
            if wave:
                return wave
        if self._metric is None or self._metric.endpoint is None:
            return []
        return self._rated(self._metric, unit, replies)[0]

    def most(self, unit: Unit, /) -> int:
        """Return the most requests that a unit takes; a metric that asks an LLM asks at most twice about an answer."""
        rated = 0 if self._metric is None or self._metric.endpoint is None else 1
        return 2 * (1 + rated) * len(self._asked(unit))

    def _answered(
        self, unit: Unit, replies: Sequence[Outcome]
    ) -> tuple[list[tuple[Unit, Answer, Outcome]], Sequence[Outcome]]:
        """Return each answer that was asked for with what became of its request, and the metric's replies behind."""
        asked = [unit for unit, _ in self._asked(unit)]
        outcomes, later = merge_waves(replies, [self._answerer.asker(unit) for unit in asked])
        found = [(u, self._answerer.answer(u, [outcome]), outcome) for u, outcome in zip(asked, outcomes, strict=True)]
        return found, later

    def _rated(self, rate: AnswerMetric, unit: Unit, replies: Sequence[Outcome]) -> tuple[list[Request], list[Score]]:
        """Return the next wave of rating the answers, or, if it is [], their qualities."""
        answers, replies = self._answered(unit, replies)
        scores: list[Score] = []
        for asked, answer, _ in answers:
            answered = Answered(unit.query, answer, asked.docs if rate.needs_docs else ())
            wave, count = play(rate, answered, replies)
            if wave:
                return wave, scores
            scores.append(rate.read(answered, replies[:count]))
            replies = replies[count:]
        return [], scores

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc.

        ``extra["answer"]`` is the first answer that it rates; ``seems_abstained`` counts those that a variant about
        abstention takes for answers although they read like abstentions.
        """
        query, doc = unit.query, unit.docs[0]
        if self._needs_references and not query.answers:
            reason = "the query has no reference answer"
            return [Label(query.query_id, doc.doc_id, None, Status.NOT_APPLICABLE, "", reason)]
        found, _ = self._answered(unit, replies)
        answers = [answer for _, answer, _ in found]
        extra: dict[str, float | str] = {"answer": answers[0].text}
        if self._metric is None:
            scores = [self._abstention(answer, outcome) for _, answer, outcome in found]
            extra["seems_abstained"] = sum(answer.seems_abstained for answer in answers)
        elif self._metric.endpoint is None:
            scores = [self._metric.score(answer, query) for answer in answers]
        else:
            scores = self._rated(self._metric, unit, replies)[1]
        score = _mean(scores[: self.samples])
        if self.variant in _GAINS:
            without = _mean(scores[self.samples :])
            extra["closed_book_answer"] = answers[self.samples].text
            if without.value is not None:
                extra["closed_book"] = without.value
            score = _gain(score, without, clipped=self.variant == "gain")
        said = [answer.raw for answer in answers[: self.samples]]
        raw = json.dumps(said, ensure_ascii=False) if self.samples > 1 else answers[0].raw
        return [Label(query.query_id, doc.doc_id, score.value, score.status, raw, score.reason, extra)]

    def _abstention(self, answer: Answer, outcome: Outcome) -> Score:
        """Return how probable it is that the model abstains, or for ``attempt`` that it does not."""
        if answer.status is not Status.OK:
            return Score(None, answer.status, answer.reason)
        chance = float(answer.abstained)
        if self.read == "logprobs" and isinstance(outcome, Reply):
            try:
                chance = begins(outcome, self._answerer.prompt.output.abstain)
            except MalformedLogprobsError as problem:
                return Score(None, Status.UNPARSED, str(problem))
        return Score(chance if self.variant == "abstention" else 1.0 - chance)


def _mean(scores: Sequence[Score]) -> Score:
    """Return the mean of those that are there, if they are more than half; else why the first other one is not."""
    values = [score.value for score in scores if score.value is not None]
    if 2 * len(values) > len(scores):
        return Score(math.fsum(values) / len(values))
    missing = next(score for score in scores if score.value is None)
    if len(scores) == 1:
        return missing
    return missing._replace(reason=f"only {len(values)} of {len(scores)} answers are there: {missing.reason}")


def _gain(score: Score, without: Score, *, clipped: bool) -> Score:
    if score.value is None:
        return score
    if without.value is None:
        return without._replace(reason=f"without a document: {without.reason}")
    gain = score.value - without.value
    return Score(max(0.0, gain) if clipped else gain)
