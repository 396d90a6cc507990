"""Correctness in the eyes of an LLM, which compares an answer with the references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from judgekit.answers.abstention import abstains
from judgekit.answers.quality import Answered, Endpoints, Score, unscored
from judgekit.answers.reading import Answer
from judgekit.data.documents import Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.options import About, Options, spelling
from judgekit.reading.asking import Asker, settled
from judgekit.reading.prompts import Prompt, find_prompt, neutral
from judgekit.reading.verdict import Unread
from judgekit.spec import Spec
from judgekit.wire.types import Endpoint, Outcome, Request

__all__ = ["Correctness"]


@dataclass(frozen=True)
class Correctness:
    """The verdict of an LLM on whether an answer says the same as a reference, in the form that the prompt declares.

    A prompt with grades gives the grade's share of the largest one. An abstention is not correct, and nothing is
    asked about it, unless a reference is one as well: then it may be what is right.

    Attributes:
        asked: the LLM that compares.
        prompt: a correctness prompt.
    """

    names: ClassVar[tuple[str, ...]] = ("correct",)
    about: ClassVar[About] = About(
        "an LLM says whether the answer says the same as a reference",
        "binary; unit for graded prompts",
        "reference answers, an LLM",
        "1 request per answer, 1 more where a reply cannot be read; none for abstentions",
        {
            "endpoint": "which LLM; left out where there is one",
            "prompt": "a correctness prompt (correctness) or the path of your own",
        },
    )
    needs_references: ClassVar[bool] = True
    asked: Endpoint
    prompt: Prompt
    endpoint_name: str | None = None
    prompt_name: str = "correctness"

    def __post_init__(self) -> None:
        if self.prompt.kind != "correctness":
            raise UsageError(f"{self.name}: the prompt {self.prompt.name!r} compares no answers ({self.prompt.kind})")

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling."""
        options = Options(spec, cls.about.options)
        if endpoints is None:
            raise UsageError(f"{spec} asks an LLM, and there is no endpoint here")
        name, prompt = options.text("endpoint"), options.text("prompt", "correctness")
        return cls(endpoints.endpoint(name), find_prompt(prompt, endpoints.path), name, prompt)

    @property
    def name(self) -> str:
        """The canonical spelling."""
        options = {"endpoint": (self.endpoint_name, None), "prompt": (self.prompt_name, "correctness")}
        return str(spelling("correct", options))

    @property
    def scale(self) -> Scale:
        """``binary`` for a yes/no prompt, ``unit`` for grades."""
        return Scale("binary" if set(self.prompt.output.relevance.values()) == {0, 1} else "unit")

    @property
    def endpoint(self) -> Endpoint:
        """The LLM that compares."""
        return self.asked

    def requests(self, unit: Answered, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the question whether the answer is correct; again, once, if the reply cannot be used."""
        if unscored(unit.answer, unit.query) or _gave_up(unit) or len(replies) > 1:
            return []
        if replies and not self._asker.unsettled(replies[0]):
            return []
        references = "\n".join(neutral(" ".join(text.split())) for text in unit.query.answers)
        values = {
            "question": neutral(unit.query.text),
            "references": references,
            "answer": neutral(unit.answer.text),
        }
        return [self._asker.again(values, replies[0]) if replies else self._asker.request(values)]

    @cached_property
    def _asker(self) -> Asker:
        return Asker(self.asked, self.prompt)

    def read(self, unit: Answered, replies: Sequence[Outcome], /) -> Score:
        """Return the verdict, or why there is none."""
        missing = unscored(unit.answer, unit.query)
        if missing:
            return missing
        if _gave_up(unit):
            return Score(0.0)
        verdict = self._asker.read(settled(replies, [self._asker])[0][0])
        if isinstance(verdict, Unread):
            return Score(None, verdict.status, verdict.reason)
        relevance = self.prompt.output.relevance
        low, high = min(relevance.values()), max(relevance.values())
        return Score((relevance[verdict.value] - low) / (high - low), Status.OK)

    def score(self, answer: Answer, query: Query) -> Score:
        """Refuse: this metric asks an LLM.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{self.name} asks an LLM: resolve its requests and read the replies")


def _gave_up(unit: Answered) -> bool:
    answer = unit.answer
    return answer.abstained and not any(abstains(reference, answer.text) for reference in unit.query.answers)


METRIC = Correctness
