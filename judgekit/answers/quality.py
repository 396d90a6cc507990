"""Answer quality: the interface of answer metrics, and how to find one by its spelling.

A metric gives an answer a value on its declared scale, or a reason for having none. Most only compare its text with the
query's references; one that asks an LLM is also a program (`AnswerMetric.requests`), over units that hold the query and
the answer. Judgekit's own are in `judgekit.answers.metrics`; see `judgekit.catalog` for where others are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from judgekit.answers.reading import Answer
from judgekit.catalog import Catalog, Spelled
from judgekit.context import Context
from judgekit.data.documents import Doc, Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.spec import Spec, user_code
from judgekit.wire.types import Endpoint, Outcome, Request


@dataclass(frozen=True, slots=True)
class Answered:
    """A query and an answer to it, which answer metrics rate.

    ``docs`` are the documents behind the answer, for metrics that need them (`AnswerMetric.needs_docs`).
    """

    query: Query
    answer: Answer
    docs: tuple[Doc, ...] = ()


class Occurrence(NamedTuple):
    """The origin of an answer: its run, its number of documents, and the model named in the reply.

    ``run`` and ``depth`` are None if a table of imported answers lacks them; ``sample`` is its number among several
    answers, None for a single one.
    """

    run: Any
    depth: Any
    reply_model: str = ""
    fingerprint: str = ""
    sample: int | None = None


class Score(NamedTuple):
    """The quality of an answer; ``value`` is None unless the status is ok."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""


@dataclass(frozen=True)
class AnswerMetric(Spelled):
    """Base of all answer metrics: a frozen dataclass whose fields are the options of its spelling.

    A metric has a ``kind``, the name in its spelling, a ``scale``, ``binary`` or ``unit``, and compares::

        @dataclass(frozen=True)
        class Brief(judgekit.AnswerMetric):
            \"\"\"The answer is not much longer than the longest reference.\"\"\"
            kind = "brief"
            scale = "binary"
            times: float = 2.0

            def compare(self, text, references):
                return len(text) <= self.times * max(map(len, references))

    A metric without references sets ``needs_references = False`` and overrides `score`. A metric that asks an LLM
    overrides `endpoint`, `requests` and `read`. `score` and `read` return a `Score`.
    """

    needs_references: ClassVar[bool] = True
    needs_docs: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The canonical spelling; the quality table holds it in the column ``metric``."""
        return str(self.spec)

    @property
    def scale(self) -> Scale:
        """``binary`` or ``unit``; a class may give it as a text."""
        raise UsageError(f'{type(self).__name__} declares no scale for its values; add e.g. scale = "unit"')

    @property
    def endpoint(self) -> Endpoint | None:
        """The LLM that is asked, if any."""
        return None

    @property
    def published(self) -> AnswerMetric | None:
        """The variant that compares as published scripts do; None if this one does."""
        return None

    def prepare(self) -> None:
        """Check the options together and look up what they name in `context`.

        Raises:
            UsageError: the class declares no scale.
        """
        self.scale  # noqa: B018 - raises where there is none

    def requests(self, unit: Answered, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of requests; [] for a metric that asks no LLM."""
        return []

    def most(self, unit: Answered, /) -> int | None:
        """Return the largest number of requests about an answer (two by default); None if unknown.

        ``unit`` holds an empty answer until there is one.
        """
        # A question, and once more if its reply cannot be read.
        return 2

    def read(self, unit: Answered, replies: Sequence[Outcome], /) -> Score:
        """Return the quality once `requests` has returned []."""
        return self.score(unit.answer, unit.query)

    def score(self, answer: Answer, query: Query) -> Score:
        """Return the quality without an LLM. Abstentions are compared like any answer; missing ones have none."""
        references = tuple(filter(self.leaves, query.answers))
        if query.answers and not references:
            reason = f"the reference answers of query {query.query_id!r} have no text left to compare"
            return Score(None, Status.NOT_APPLICABLE, reason)
        missing = self.unscored(answer, query)
        if missing:
            return missing
        if type(self).__module__.startswith("judgekit."):  # our own need no hint about where it went wrong
            return Score(self.compare(answer.text, references))
        with user_code(lambda: f"{self.name}, query {query.query_id!r}", type(self).compare.__code__.co_filename):
            value = float(self.compare(answer.text, references))
        # A user's metric that returns 5 on a scale to 1 would silently shift every mean.
        problem = self.scale.problem(value)
        if problem:
            raise UsageError(f"{self.name}, query {query.query_id!r}: {problem}")
        return Score(value)

    def unscored(self, answer: Answer, query: Query) -> Score | None:
        """Return why the answer has no value (no reference, or no answer); None if it has one."""
        if self.needs_references and not query.answers:
            return Score(None, Status.NOT_APPLICABLE, f"query {query.query_id!r} has no reference answer")
        if answer.status is Status.OK:
            return None
        return Score(None, answer.status, answer.reason)

    def leaves(self, reference: str) -> bool:
        """Return whether a reference has text to compare with."""
        return True

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the quality of ``text`` against its best reference, on the scale; there is at least one reference."""
        raise UsageError(f"{type(self).__name__} rates nothing: define compare(self, text, references) or score")


METRICS = Catalog(AnswerMetric, "answer metric", "judgekit.answers.metrics")
catalog = METRICS.catalog


def metric(spec: AnswerMetric | Spec | str, context: Context | None = None) -> AnswerMetric:
    """Build the answer metric of a spelling such as ``em``, ``rouge-l`` or ``correct(endpoint=judge)``."""
    return METRICS.build(spec, context)
