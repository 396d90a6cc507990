"""Answer metrics for long answers: the stated nuggets, and whether citations hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, Literal

from judgekit import AnswerMetric, Endpoint, Query, Scale, Status
from judgekit.answers.citations import marks, unread_marks, without_marks
from judgekit.answers.nuggets import Nugget, Nuggets, read_nuggets
from judgekit.answers.sentences import sentences
from judgekit.extend import (
    Answer,
    Answered,
    ListAsker,
    Question,
    Request,
    Response,
    Score,
    Unread,
    UsageError,
    find_prompt,
    neutral,
    passages,
    setting,
)
from judgekit.extensions.nuggets.support import (
    AT_ONCE,
    WEIGHTS,
    Support,
    nugget_questions,
    support_question,
)

_MARK: Final = re.compile(r"\s*\[\s*\d+(?:\s*[,;]\s*\d+)*\s*\]")
"""Marks removed from an answer before asking about nuggets; stored requests depend on it."""


@dataclass(frozen=True)
class _AskedMetric(AnswerMetric):
    """Base of the metrics that ask for lists."""

    prompt_name: ClassVar[str]
    needs_references = False
    scale = Scale("unit")
    endpoint_name: str | None = setting(None, name="endpoint")

    def prepare(self) -> None:
        """Look up the endpoint and the prompt."""
        self._asked  # noqa: B018 - looks them up

    @cached_property
    def _asked(self) -> ListAsker:
        prompt = find_prompt(self.prompt_name, self.context.path)
        return ListAsker(self.context.endpoint(self.endpoint_name).llm, prompt)

    @property
    def endpoint(self) -> Endpoint:
        """The LLM that is asked."""
        return self._asked.endpoint

    def requests(self, unit: Answered, replies: Sequence[Response], /) -> list[Request]:
        """Return the next wave of requests; none if the value is already known."""
        if self.known(unit):
            return []
        return self._asked.requests(self.questions(unit), replies)

    def read(self, unit: Answered, replies: Sequence[Response], /) -> Score:
        """Return the value, or why there is none."""
        known = self.known(unit)
        if known:
            return known
        supports = self._asked.read(self.questions(unit), replies)
        if isinstance(supports, Unread):
            return Score(None, supports.status, supports.reason)
        return Score(self.value(unit, supports))

    def score(self, answer: Answer, query: Query) -> Score:
        """Refuse: this metric asks an LLM."""
        raise UsageError(f"{self.name} asks an LLM: resolve its requests and read the replies")

    def known(self, unit: Answered) -> Score | None:
        """Return the result known without the LLM: why there is no value, or 0 for an abstention."""
        # An abstention states no fact, so its 0 is known without paying.
        return self.unscored(unit.answer, unit.query) or (Score(0.0) if unit.answer.abstained else None)

    def questions(self, unit: Answered) -> list[Question[Support]]:
        """Return what is asked about an answer."""
        raise NotImplementedError

    def value(self, unit: Answered, supports: Sequence[Support]) -> float:
        """Return the value of an answer from the replies on all items."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _ByNuggets(_AskedMetric):
    """Base of the metrics that need nuggets."""

    prompt_name = "nugget-support"
    file: str = setting()

    def prepare(self) -> None:
        """Read the nuggets, and look up the endpoint and the prompt."""
        self._nuggets  # noqa: B018 - reads the file
        super().prepare()

    @cached_property
    def _nuggets(self) -> Nuggets:
        return read_nuggets(self.context.path(self.file))

    def nuggets(self, query: Query) -> Sequence[Nugget]:
        """Return the nuggets to ask about for answers to a query."""
        return self._nuggets.get(query.query_id, ())

    def known(self, unit: Answered) -> Score | None:
        """Return the result known without the LLM; nothing is asked if the file has no nuggets for the query."""
        if not any(nugget.vital for nugget in self.nuggets(unit.query)):
            which = "no vital nugget" if self.nuggets(unit.query) else "no nuggets"
            return Score(None, Status.NOT_APPLICABLE, f"{self.file} has {which} for query {unit.query.query_id!r}")
        return super().known(unit)

    def questions(self, unit: Answered) -> list[Question[Support]]:
        """Return what is asked about an answer: ten nuggets at a time."""
        # The marks are not words of the answer.
        text = _MARK.sub("", unit.answer.text)
        return nugget_questions(self._asked.prompt, unit.query, self.nuggets(unit.query), text)

    def most(self, unit: Answered, /) -> int:
        """Return the largest number of requests about an answer."""
        return 2 * -(-len(self.nuggets(unit.query)) // AT_ONCE)


@dataclass(frozen=True)
class NuggetRecall(_ByNuggets):
    """The share of a question's nuggets that the answer states, as in TREC RAG (AutoNuggetizer).

    By default the share of vital nuggets that it states in whole (V_strict). ``count=all`` takes all nuggets alike
    (A), ``count=weighted`` gives an okay one half the weight of a vital one (W); ``strict=false`` gives half a point to
    a nugget that is stated in part. Definitions: Pradeep et al., arXiv 2411.09607 and 2504.15068. A reply that does
    not list a word for each nugget leaves the answer without a value. An abstention is 0, and nothing is asked.

    Scale: unit

    Needs: nuggets (judgekit nuggets), an LLM

    Costs: 1 request per answer and 10 nuggets, 1 more if a reply cannot be read; none for abstentions

    Attributes:
        endpoint_name: endpoint name; optional if only one is defined
        file: file of nuggets, JSON lines
        count: vital, all or weighted (an okay nugget counts half)
        strict: whether a nugget that is stated in part counts nothing (true) or half
    """

    kind = "nugget_recall"
    count: Literal["vital", "all", "weighted"] = "vital"
    strict: bool = True

    def value(self, unit: Answered, supports: Sequence[Support]) -> float:
        """Return the weighted share of nuggets that are stated."""
        okay_weight = {"vital": 0.0, "all": 1.0, "weighted": 0.5}[self.count]
        stated = total = 0.0
        for nugget, support in zip(self.nuggets(unit.query), supports, strict=True):
            weight = 1.0 if nugget.vital else okay_weight
            total += weight
            if support == "support" or not self.strict:
                stated += weight * WEIGHTS[support]
        return stated / total


@dataclass(frozen=True)
class _Citations(_AskedMetric):
    """Base of the metrics of citations."""

    prompt_name = "citation-support"
    needs_docs = True

    def most(self, unit: Answered, /) -> None:
        """Return None, since an answer's number of sentences is unknown."""
        return

    def known(self, unit: Answered) -> Score | None:
        """Return the result known without the LLM: without documents there is no value, without marks it is 0."""
        known = super().known(unit)
        if known:
            return known
        if not unit.docs:
            return Score(None, Status.NOT_APPLICABLE, "the answer was made without documents")
        unread = unread_marks(unit.answer.text)
        if unread:
            # A citing sentence that counts as uncited would silently lower the value.
            number = f"{len(unread)} citation marks" if len(unread) > 1 else "a citation mark"
            reason = f"the answer has {number} without the number of a passage: {unread[0]}"
            return Score(None, Status.UNPARSED, reason)
        if self.questions(unit):
            return None
        return Score(0.0)

    def questions(self, unit: Answered) -> list[Question[Support]]:
        """Return the questions about an answer: for each sentence, the passages that it cites."""
        questions: list[Question[Support]] = []
        for sentence in cited_sentences(unit.answer.text):
            shown = [unit.docs[number - 1] for number in sentence.cited if number <= len(unit.docs)]
            if shown:
                values = self._asked.prompt.values(unit.query)
                values |= {"passages": passages(shown), "text": neutral(sentence.text)}
                questions.append(support_question(values, len(shown)))
        return questions

    def weights(self, unit: Answered, supports: Sequence[Support]) -> list[list[float]]:
        """Return for each sentence the weight of each of its citations; a number without a passage has 0."""
        words = iter(supports)
        weights = []
        for sentence in cited_sentences(unit.answer.text):
            known = [number <= len(unit.docs) for number in sentence.cited]
            weights.append([WEIGHTS[next(words)] if there else 0.0 for there in known])
        return weights


@dataclass(frozen=True)
class CitationPrecision(_Citations):
    """The mean support of an answer's citations, [1]-style marks: 1 in whole, half in part, else 0.

    The weighted precision of TREC RAG's support task (Thakur et al., arXiv 2504.15205), over all citations of a
    sentence where TREC assesses the first. A mark without a passage supports nothing; an answer without marks is 0. An
    answer with marks that name no passage by its number, such as [Smith 2020] or a link, has no value.

    Scale: unit

    Needs: an LLM

    Costs: 1 request per sentence with citations, 1 more if a reply cannot be read; none for abstentions

    Attributes:
        endpoint_name: endpoint name; optional if only one is defined
    """

    kind = "citation_precision"

    def value(self, unit: Answered, supports: Sequence[Support]) -> float:
        """Return the mean over citations."""
        weights = [weight for sentence in self.weights(unit, supports) for weight in sentence]
        return sum(weights) / len(weights)


@dataclass(frozen=True)
class CitationRecall(_Citations):
    """The mean over an answer's sentences of their best supported citation: 1 in whole, half in part, else 0.

    The weighted recall of TREC RAG's support task (Thakur et al., arXiv 2504.15205), where TREC assesses the first
    citation of a sentence. A sentence without a mark is 0. An item of a list is a sentence, a heading is none. An
    answer with marks that name no passage by its number has no value.

    Scale: unit

    Needs: an LLM

    Costs: the same requests as citation_precision

    Attributes:
        endpoint_name: endpoint name; optional if only one is defined
    """

    kind = "citation_recall"

    def value(self, unit: Answered, supports: Sequence[Support]) -> float:
        """Return the mean over sentences."""
        best = [max(sentence, default=0.0) for sentence in self.weights(unit, supports)]
        return sum(best) / len(best)


@dataclass(frozen=True)
class CitedSentence:
    """A sentence without its marks, and the numbers of the passages that they name, each once."""

    text: str
    cited: tuple[int, ...]


def cited_sentences(text: str) -> list[CitedSentence]:
    """Return the sentences of an answer; marks behind a full stop belong to the sentence before it."""
    cited = []
    for sentence in sentences(text):
        numbers = dict.fromkeys(number for mark in marks(sentence) for number in mark.numbers)
        plain = without_marks(sentence)
        if plain:
            cited.append(CitedSentence(plain, tuple(numbers)))
    return cited
