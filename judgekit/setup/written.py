"""The experiment file that `judgekit init` writes: each choice with its reason, the alternatives as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from judgekit.experiment.templates import filled
from judgekit.setup.inputs import Input
from judgekit.setup.telling import SHORT, Told

_STANDS: Final = 10
"""Words above which containment skips a reference."""


@dataclass(frozen=True)
class KnownOutcome:
    """What is known of answers; nothing where no file holds ratings or answers.

    Attributes:
        files: of ratings or of answers.
        beside: of answers, where others hold ratings.
        metrics: what files of ratings rate.
        depths: from how many documents the answers were made.
        rated: people's ratings by metric, each with the scale to declare.
        cluster: the column of the ratings with the users that gave them, "" if there is none.
        few: how many answers are rated, where that is less than half of them; "" otherwise.
        told: what the free metrics say of the answers.
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
    """What an experiment is made of.

    Attributes:
        queries: the questions.
        docs: the passages.
        depth: how many documents of each run are labelled, and answered from.
        runs: the runs by name.
        qrels: existing judgments by name, each with how they name passages (``page``, ``title`` or "").
        reference_words: how many words a reference answer has, by the median; 0 where no question has one.
        outcome: what is known of answers.
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
        """How answers are compared with the references: word by word where these are short and answers meet them."""
        # Whole sentences are never met word by word: exact match would call every answer wrong.
        usual = "f1" if self.reference_words > SHORT else "em"
        return next(iter(self.outcome.told.order(self.reference_words)), usual)

    @property
    def metrics(self) -> list[str]:
        """What answers are rated by."""
        if not self.referenced:
            return ["grounded"]
        if self.outcome.told.constant:
            return ["correct"]
        return [self.metric] if self.metric == "f1" else [self.metric, "f1"]

    @property
    def others(self) -> list[str]:
        """The other free metrics that tell imported answers apart."""
        return self.outcome.told.order(self.reference_words)[1:]

    @property
    def contained(self) -> bool:
        """Whether references are short enough to stand in a passage."""
        # No passage holds a long reference as it is: containment would label everything irrelevant.
        return 0 < self.reference_words <= _STANDS

    @property
    def asks(self) -> bool:
        """Whether it asks a server."""
        # A server is asked for only where labels or answers need one: a first look should cost nothing.
        free = self.contained or bool(self.qrels)
        known = bool(self.outcome.imported) and self.referenced and not self.outcome.told.constant
        return not free or not (self.outcome.rated or known)

    @property
    def trusted(self) -> str:
        """The judgments that stand in the place of answers; "" where there are answers or references."""
        if self.outcome.files or self.referenced:
            return ""
        return next(iter(self.qrels), "")

    def toml(self) -> str:
        """Return the experiment file."""
        return filled("experiment.toml", plan=self, known=self.outcome)
