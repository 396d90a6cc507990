"""Judgekit's answer metrics: those of SQuAD, KILT and eRAG, ROUGE, and an LLM's verdict."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Literal

import regex
from rapidfuzz.distance import LCSseq

from judgekit.answers.numbers import UNIT
from judgekit.answers.quality import Answered, AnswerMetric, Score
from judgekit.answers.reading import Answer, abstains
from judgekit.answers.text import Norm, apart, fold, is_foreign, same, same_units, squad, typographic, written
from judgekit.data.documents import Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.reading.asker import Asker, merge_waves, next_wave
from judgekit.reading.prompts import find_prompt, neutral
from judgekit.reading.verdict import Unread
from judgekit.settings import setting
from judgekit.wire.types import Endpoint, Outcome, Request

_ASCII: Final = re.compile(r"[a-z0-9]+")
_UNICODE: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+")


@dataclass(frozen=True)
class _Normalised(AnswerMetric):
    """A metric that normalises texts.

    Attributes:
        norm: whole (typographic marks folded, numbers whole) or squad (as the scripts of SQuAD and KILT)
    """

    norm: Norm = "whole"

    @property
    def published(self) -> AnswerMetric | None:
        """The variant that normalises like the published scripts, if this one does not."""
        if self.norm == "squad":
            return None
        return replace(self, norm="squad")


@dataclass(frozen=True)
class ExactMatch(_Normalised):
    """1 if the answer is a reference, else 0.

    Case, punctuation, English articles and white space do not matter, typographic marks are those of a keyboard, and
    numbers are compared by their value. Where that leaves nothing of a reference (``A``, ``-``), the texts as they are
    must be the same. ``norm=squad`` compares as the scripts of SQuAD and KILT do, which remove all punctuation: 1.5 and
    15 are the same there.

    Scale: binary

    Needs: reference answers

    Costs: nothing
    """

    kind = "em"
    scale = Scale("binary")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        if self.norm == "squad":
            said = squad(text)
            return float(any(said == squad(reference) for reference in references))
        return float(any(same(text, reference) for reference in references))


@dataclass(frozen=True)
class TokenF1(_Normalised):
    """Common tokens with the best reference, as an F-measure.

    The texts are normalised as for exact match, and repeated tokens are counted. Where answer or reference has no token
    left it is exact match; with ``norm=squad`` it is 0, as in the scripts of SQuAD 1.1 and KILT.

    Scale: unit

    Needs: reference answers

    Costs: nothing
    """

    kind = "f1"
    scale = Scale("unit")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the F1 beside the best reference."""
        if self.norm == "squad":
            said = squad(text)
            return max(_f1(said, squad(reference)) for reference in references)
        return max(self._best_reading(text, reference) for reference in references)

    @staticmethod
    def _best_reading(text: str, reference: str) -> float:
        best = 0.0
        for said in written(text):
            for right in written(reference):
                # A reference such as ? or A has no tokens left, so F1 would be 0 for any answer.
                if not said or not right:
                    return float(same(text, reference))
                # A unit belongs to its number: two sums in dollars have nothing in common.
                said_whole, right_whole = (one.replace(f" {UNIT}", UNIT) for one in same_units(said, right))
                best = max(best, _f1(said_whole, right_whole))
        return best


def _f1(text: str, reference: str) -> float:
    said, right = text.split(), reference.split()
    common = sum((Counter(said) & Counter(right)).values())
    if common == 0:
        return 0.0
    return 2 * common / (len(said) + len(right))


@dataclass(frozen=True)
class Accuracy(AnswerMetric):
    """1 if the answer is the class of a reference, else 0.

    Case, white space and punctuation around it do not matter.

    Scale: binary

    Needs: reference answers

    Costs: nothing
    """

    kind = "accuracy"
    scale = Scale("binary")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        said = self._class(text)
        return float(any(said == self._class(reference) for reference in references))

    @staticmethod
    def _class(text: str) -> str:
        return " ".join(typographic(text).casefold().split()).strip(" .,;:!?\"'`()[]*")


@dataclass(frozen=True)
class Contains(_Normalised):
    """1 if a reference occurs in the answer, else 0.

    Lenient towards models that answer in a sentence. Whole words, one behind the other, so that ``5`` is not in ``25``.
    The texts are normalised as for exact match; where that leaves nothing of any reference, the metric does not apply.

    Scale: binary

    Needs: reference answers

    Costs: nothing
    """

    kind = "contains"
    scale = Scale("binary")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        said = self._readings(text)
        return float(
            any(_holds(one, right) for reference in references for right in self._readings(reference) for one in said)
        )

    def leaves(self, reference: str) -> bool:
        """Return whether there is a word to look for."""
        return self._readings(reference) != ("",)

    def _readings(self, text: str) -> tuple[str, ...]:
        if self.norm == "squad":
            return (squad(text),)
        return written(text, whole=True)


def _holds(text: str, reference: str) -> bool:
    """Return whether a reference's words occur in a text, both normalised."""
    said, right = same_units(text, reference)
    # Blanks around both, so that only whole words are found.
    return f" {right} " in f" {said} "


@dataclass(frozen=True)
class _Rouge(AnswerMetric):
    """ROUGE as Google's ``rouge_score`` defines it, and in other scripts on their own words.

    Lower case, no stemming. The best reference counts. An answer without tokens scores 0; where no reference has any,
    the metric does not apply.

    Tokens: ``ascii`` splits at everything but a-z and 0-9; ``unicode`` takes the words of all scripts, single
    characters where no spaces part words; ``script`` is ``unicode`` where the answer or a reference holds another
    script than Latin, and ``ascii`` elsewhere.

    Scale: unit

    Needs: reference answers

    Costs: nothing

    Attributes:
        tokens: ascii (as Google's rouge_score), unicode (words of all scripts) or script (as the text needs it)
    """

    scale = Scale("unit")
    tokens: Literal["script", "ascii", "unicode"] = "script"

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the F-measure beside the best reference."""
        split = self._splitter(text, *references)
        said = split(text)
        return max(self._f_measure(said, split(reference)) for reference in references)

    def leaves(self, reference: str) -> bool:
        """Return whether a reference has a token."""
        return bool(self._splitter(reference)(reference))

    def _splitter(self, *texts: str) -> Callable[[str], list[str]]:
        # Google's rouge_score drops Cyrillic and Chinese, so every answer would score 0.
        foreign = self.tokens == "unicode" or (self.tokens == "script" and any(map(is_foreign, texts)))
        if foreign:
            return _words
        return _ascii_words

    def _f_measure(self, said: list[str], reference: list[str]) -> float:
        if self.kind == "rouge-l":
            common, total = LCSseq.similarity(said, reference), len(said) + len(reference)
        else:
            n = int(self.kind[-1])
            grams = [Counter(zip(*(tokens[i:] for i in range(n)), strict=False)) for tokens in (said, reference)]
            common, total = (grams[0] & grams[1]).total(), grams[0].total() + grams[1].total()
        if common:
            return 2 * common / total
        return 0.0


class Rouge1(_Rouge):
    """Common words with the best reference, as an F-measure."""

    kind = "rouge-1"


class Rouge2(_Rouge):
    """Common word pairs with the best reference, as an F-measure."""

    kind = "rouge-2"


class RougeL(_Rouge):
    """The longest common sequence of words with the best reference, as an F-measure."""

    kind = "rouge-l"


def _ascii_words(text: str) -> list[str]:
    return _ASCII.findall(text.lower())


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", fold(text).casefold())
    words: list[str] = _UNICODE.findall(apart(folded))
    return words


@dataclass(frozen=True)
class _ByLLM(AnswerMetric):
    """A metric that asks an LLM for a verdict about an answer."""

    prompts: ClassVar[str]
    """The kind of its prompts."""
    prompt: str
    endpoint_name: str | None = setting(None, name="endpoint")

    def prepare(self) -> None:
        """Look up the endpoint and the prompt."""
        prompt = self._asker.prompt
        if prompt.kind != self.prompts:
            raise UsageError(f"{self.name}: the prompt {prompt.name!r} is of kind {prompt.kind}, not {self.prompts}")

    @cached_property
    def _asker(self) -> Asker:
        prompt = find_prompt(self.prompt, self.context.path)
        return Asker(self.context.endpoint(self.endpoint_name).llm, prompt)

    @property
    def scale(self) -> Scale:
        """``binary`` for a yes/no prompt, ``unit`` for grades."""
        return Scale("binary" if self._asker.prompt.output.form.ends == (0, 1) else "unit")

    @property
    def endpoint(self) -> Endpoint:
        """The LLM that is asked."""
        return self._asker.endpoint

    def requests(self, unit: Answered, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the question about the answer; once more if the reply cannot be used."""
        if self.known(unit):
            return []
        return next_wave([(self._asker, 0)], lambda: [self._values(unit)], replies)

    def _values(self, unit: Answered) -> dict[str, str]:
        values = self._asker.prompt.values(unit.query, unit.docs) | {"answer": neutral(unit.answer.text)}
        if self.needs_references:
            # On one line each and without tags, so that no reference ends the list.
            values["references"] = "\n".join(neutral(" ".join(text.split())) for text in unit.query.answers)
        return values

    def read(self, unit: Answered, replies: Sequence[Outcome], /) -> Score:
        """Return the verdict, or why there is none."""
        known = self.known(unit)
        if known:
            return known
        outcomes, _ = merge_waves(replies, [self._asker], lambda: [self._values(unit)])
        verdict = self._asker.stated(outcomes[0], lambda: self._values(unit))
        if isinstance(verdict, Unread):
            return Score(None, verdict.status, verdict.reason)
        # A point is a hundredth of the scale, whatever grades a prompt has.
        low, high = self._asker.prompt.output.form.ends
        return Score((verdict.value - low) / (high - low))

    def known(self, unit: Answered) -> Score | None:
        """Return the result known without the LLM: why there is no value, or 0 for an abstention."""
        answer, references = unit.answer, unit.query.answers if self.needs_references else ()
        missing = self.unscored(answer, unit.query)
        if missing:
            return missing
        # Groundedness does not apply to an answer from memory: 0 would punish the closed-book control.
        if self.needs_docs and not unit.docs:
            return Score(None, Status.NOT_APPLICABLE, "the answer was made without documents")
        # For a question that nothing answers, an abstention is right, as its reference says.
        gave_up = answer.abstained and not any(abstains(reference, answer.text) for reference in references)
        if gave_up:
            return Score(0.0)
        return None

    def score(self, answer: Answer, query: Query) -> Score:
        """Refuse: this metric asks an LLM."""
        raise UsageError(f"{self.name} asks an LLM: resolve its requests and read the replies")


@dataclass(frozen=True)
class Correctness(_ByLLM):
    """An LLM says whether the answer says the same as a reference.

    A prompt with grades gives the grade's share of the largest one. An abstention is not correct, and nothing is
    asked about it, unless a reference is one as well: then it may be what is right.

    Scale: binary; unit for graded prompts

    Needs: reference answers, an LLM

    Costs: 1 request per answer, 1 more if a reply cannot be read; none for abstentions

    Attributes:
        endpoint_name: endpoint name; optional if only one is defined
        prompt: a correctness prompt (correctness), or the path of your own
    """

    kind = "correct"
    prompts = "correctness"
    prompt: str = "correctness"


@dataclass(frozen=True)
class Grounded(_ByLLM):
    """An LLM says whether the answer rests on the passages that it was made from; no reference answer is needed.

    It says nothing of whether the passages are right: hold it against answers that people compared before you rely on
    it. An abstention rests on nothing and is 0; an answer without documents has no value.

    Scale: binary; unit for graded prompts

    Needs: an LLM

    Costs: 1 request per answer and list of documents, 1 more if a reply cannot be read; none for abstentions

    Attributes:
        endpoint_name: endpoint name; optional if only one is defined
        prompt: a grounded prompt (grounded), or the path of your own
    """

    kind = "grounded"
    prompts = "grounded"
    needs_references = False
    needs_docs = True
    prompt: str = "grounded"
