"""The experiment file of `judgekit init`: each choice with its reason, and alternatives as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from judgekit.experiment.templates import filled
from judgekit.setup.inputs import Input
from judgekit.setup.telling import SHORT, Told

_STANDS: Final = 10
"""Containment skips references with more words."""


@dataclass(frozen=True)
class KnownOutcome:
    """Facts about answers; empty if no file has ratings or answers.

    Attributes:
        files: files of ratings or answers.
        beside: files of answers, if others have ratings.
        metrics: the metrics in files of ratings.
        depths: the numbers of documents behind the answers.
        rated: people's ratings by metric, each with the scale to declare.
        cluster: the column of the ratings with the users who gave them, or "".
        few: the number of rated answers if below half, else "".
        told: the free metrics' results on the answers.
    """

    files: Sequence[Input] = ()
    beside: Sequence[Input] = ()
    metrics: Sequence[str] = ()
    depths: Sequence[int] = ()
    rated: Mapping[str, str | None] = field(default_factory=dict)
    cluster: str = ""
    few: str = ""
    told: Told = field(default_factory=Told)

    @property
    def ratings(self) -> Sequence[Input]:
        """The files of ratings."""
        return self.files if self.metrics else ()

    @property
    def imported(self) -> Sequence[Input]:
        """The files of answers."""
        return self.beside if self.metrics else self.files


@dataclass(frozen=True)
class Planned:
    """The parts of an experiment.

    Attributes:
        queries: the questions.
        docs: the passages.
        depth: number of documents of each run to label and to answer from.
        runs: the runs by name.
        qrels: existing judgments by name, with their names for passages (``page``, ``title`` or "").
        reference_words: the median number of words in a reference answer; 0 without any.
        outcome: the facts about answers.
        measure: the measure that compares the runs.
        drop_self: whether runs find the question itself, as a document of the collection.
        place: how files are named: ``written`` as the experiment does, or as they are ``given``.
    """

    queries: Input
    docs: Sequence[Input]
    depth: int
    runs: Mapping[str, Input]
    qrels: Mapping[str, tuple[Input, str]]
    reference_words: int
    outcome: KnownOutcome
    measure: str = "nDCG"
    drop_self: bool = False
    place: str = "written"

    @property
    def referenced(self) -> bool:
        """Whether questions have reference answers."""
        return self.reference_words > 0

    @property
    def metric(self) -> str:
        """How answers are compared with references: word by word if these are short and answers match them."""
        # Whole sentences never match word by word, so exact match would reject every answer.
        usual = "f1" if self.reference_words > SHORT else "em"
        return next(iter(self.outcome.told.order(self.reference_words)), usual)

    @property
    def metrics(self) -> list[str]:
        """The metrics that rate answers."""
        if not self.referenced:
            return ["grounded"]
        if self.outcome.told.constant:
            return ["correct"]
        return [self.metric] if self.metric == "f1" else [self.metric, "f1"]

    @property
    def others(self) -> list[str]:
        """The other free metrics that distinguish imported answers."""
        return self.outcome.told.order(self.reference_words)[1:]

    @property
    def contained(self) -> bool:
        """Whether references are short enough to occur in a passage."""
        # No passage contains a long reference, so containment would label everything irrelevant.
        return 0 < self.reference_words <= _STANDS

    @property
    def asks(self) -> bool:
        """Whether it asks a server."""
        # A server is only required if labels or answers need one, since a first look should cost nothing.
        free = self.contained or bool(self.qrels)
        known = bool(self.outcome.imported) and self.referenced and not self.outcome.told.constant
        return not free or not (self.outcome.rated or known)

    @property
    def trusted(self) -> str:
        """The judgments that replace answers; "" if there are answers or references."""
        if self.outcome.files or self.referenced:
            return ""
        return next(iter(self.qrels), "")

    def toml(self) -> str:
        """Return the experiment file."""
        return filled("experiment.toml", plan=self, known=self.outcome)
