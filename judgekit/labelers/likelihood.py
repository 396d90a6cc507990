"""The probability of answers under the downstream LLM: of a given answer after each document, or of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judgekit.answers.answerer import Answerer
from judgekit.answers.quality import Score
from judgekit.answers.reading import Answer
from judgekit.data.documents import Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.alone import answers_of, ask
from judgekit.labelers.base import Label
from judgekit.labelers.usefulness import gain_over, without_own
from judgekit.reading.asker import merge_waves
from judgekit.reading.likelihood import NoPromptError, echoing, of_prompt, of_reply
from judgekit.wire.types import Endpoint, Failure, Outcome, Request


class Belief(NamedTuple):
    """The probability of the most probable answer, as the geometric mean over its tokens, and its logarithm."""

    score: Score
    answer: str = ""
    logprob: float | None = None


def _llm(answerer: Answerer, spec: str) -> Endpoint:
    endpoint = answerer.endpoint
    if endpoint.application:
        raise UsageError(f"{spec}: the application {endpoint.name!r} gives no log-probabilities")
    return endpoint


@dataclass(frozen=True)
class LikelihoodGain:
    """The gain in an answer's probability from a document.

    The answer follows the prompt that asks for it, and the server returns the log-probabilities of the tokens it was
    sent (``echo``). Of several reference answers, the most probable one counts.

    Attributes:
        answerer: the LLM with its prompt, by completions.
        top: number of documents behind the LLM's own answer; None for reference answers.
    """

    answerer: Answerer
    top: int | None = None

    def check(self, spec: str) -> None:
        """Refuse an endpoint with chat completions, which do not echo the prompt.

        Raises:
            UsageError: it is one, or an application.
        """
        endpoint = _llm(self.answerer, spec)
        if endpoint.api != "completions":
            raise UsageError(
                f"{spec} reads log-probabilities of the prompt, which chat completions do not give: if the server has"
                f' them (vLLM; check-endpoint tells), give endpoint {endpoint.name!r} api = "completions"; else use'
                " variant=confidence, the probability of the model's own answer"
            )

    def requests(self, unit: Unit, replies: Sequence[Outcome]) -> list[Request]:
        """Return the requests for the own answer, if used; then one for each document and answer."""
        wave = ask(self.answerer, self._listed(unit), replies)
        if wave:
            return wave
        own, rest = self._own(unit, replies)
        if own is not None and without_own(own) is not None:
            return []
        answers = self._answers(unit, own)
        if rest:
            # Checked at the first reply, so that a server without this feature is not asked further.
            self._beliefs(answers, rest)
            return []
        return [self._request(shown, answer) for shown in self._shown(unit) for answer in answers]

    def most(self, unit: Unit) -> int:
        """Return the most requests that a unit takes."""
        answers = 1 if self.top is not None else len(self._answers(unit, None))
        return 2 * len(self._listed(unit)) + answers * len(self._shown(unit))

    def label(self, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
        """Return a label for each doc of the unit."""
        query_id = unit.query.query_id
        own, rest = self._own(unit, replies)
        lost = None if own is None else without_own(own)
        if lost is not None:
            return [Label(query_id, doc.doc_id, lost.value, lost.status, reason=lost.reason) for doc in unit.docs]
        *beliefs, without = self._beliefs(self._answers(unit, own), rest)
        labels = []
        for doc, belief in zip(unit.docs, beliefs, strict=True):
            gain = gain_over(belief.score, without.score, clipped=False)
            extra: dict[str, float | str] = {}
            if belief.logprob is not None and without.logprob is not None:
                extra = {
                    "answer": belief.answer,
                    "logprob": belief.logprob,
                    "closed_book_logprob": without.logprob,
                    "logprob_gain": belief.logprob - without.logprob,
                }
            labels.append(Label(query_id, doc.doc_id, gain.value, gain.status, reason=gain.reason, extra=extra))
        return labels

    def _listed(self, unit: Unit) -> list[Unit]:
        return [] if self.top is None else [Unit(unit.query, unit.docs[: self.top])]

    def _shown(self, unit: Unit) -> list[Unit]:
        """Return the contexts before the answers: each document, then none."""
        return [*(Unit(unit.query, (doc,)) for doc in unit.docs), Unit(unit.query, ())]

    def _own(self, unit: Unit, replies: Sequence[Outcome]) -> tuple[Answer | None, Sequence[Outcome]]:
        if self.top is None:
            return None, replies
        answers, rest = answers_of(self.answerer, self._listed(unit), replies)
        return answers[0], rest

    def _answers(self, unit: Unit, own: Answer | None) -> list[str]:
        return list(dict.fromkeys(unit.query.answers)) if own is None else [own.text]

    def _request(self, shown: Unit, answer: str) -> Request:
        (request,) = self.answerer.requests(shown, [])
        return Request(request.endpoint, echoing(request.body, answer))

    def _beliefs(self, answers: Sequence[str], replies: Sequence[Outcome]) -> list[Belief]:
        """Return the probability of the most probable answer after each document, and after none."""
        beliefs = []
        for start in range(0, len(replies), len(answers)):
            outcomes = replies[start : start + len(answers)]
            best: Belief | None = None
            for belief in map(self._belief, answers, outcomes):
                # A lost one might have been the most probable.
                if belief.logprob is None:
                    best = belief
                    break
                if best is None or best.logprob is None or belief.logprob > best.logprob:
                    best = belief
            if best is not None:
                beliefs.append(best)
        return beliefs

    def _belief(self, answer: str, outcome: Outcome) -> Belief:
        if isinstance(outcome, Failure):
            return Belief(Score(None, outcome.status, outcome.reason))
        try:
            logprob = of_prompt(outcome, answer)
        except NoPromptError as problem:
            endpoint = self.answerer.endpoint.name
            raise UsageError(
                f"endpoint {endpoint!r} gives no log-probabilities of the prompt ({problem}), which read=logprobs"
                " needs: vLLM does. check-endpoint says what a server gives; variant=confidence needs only those of"
                " replies"
            ) from None
        except ValueError as problem:
            return Belief(Score(None, Status.UNPARSED, str(problem)))
        return Belief(Score(math.exp(logprob)), answer, logprob)


@dataclass(frozen=True)
class Confidence:
    """The probability of the LLM's own answer from a document, as the geometric mean over its tokens.

    Attributes:
        answerer: the LLM with its prompt, asked for log-probabilities.
    """

    answerer: Answerer

    def check(self, spec: str) -> None:
        """Refuse an application.

        Raises:
            UsageError: the endpoint is one.
        """
        _llm(self.answerer, spec)

    def requests(self, unit: Unit, replies: Sequence[Outcome]) -> list[Request]:
        """Return the next wave of answering from the document."""
        return self.answerer.requests(unit, replies)

    def most(self, unit: Unit) -> int:
        """Return the most requests that a unit takes."""
        return self.answerer.most(unit)

    def label(self, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
        """Return the label of the unit's doc; 0 if the LLM abstains, however surely."""
        query_id, doc_id = unit.query.query_id, unit.docs[0].doc_id
        (outcome,), _ = merge_waves(replies, [self.answerer.asker(unit.docs)])
        answer = self.answerer.answer(unit, [outcome])
        if answer.status is not Status.OK or isinstance(outcome, Failure):
            return [Label(query_id, doc_id, None, answer.status, answer.raw, answer.reason)]
        try:
            logprob = of_reply(outcome)
        except ValueError as problem:
            return [Label(query_id, doc_id, None, Status.UNPARSED, answer.raw, str(problem))]
        value = 0.0 if answer.abstained else math.exp(logprob)
        extra: dict[str, float | str] = {"answer": answer.text, "logprob": logprob}
        return [Label(query_id, doc_id, value, raw=answer.raw, extra=extra)]
