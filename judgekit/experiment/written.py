"""The experiment file that `judgekit init` writes: each choice with its reason, the alternatives as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgekit.experiment.templates import filled


@dataclass
class KnownOutcome:
    """What is known of answers.

    Attributes:
        files: of ratings or of answers, as the experiment names them.
        metrics: what files of ratings rate.
        depths: from how many documents the answers were made.
        columns: the columns of the answers that say where they belong.
        rated: people's ratings by metric, each with the scale to declare.
        cluster: the column of the ratings with the users that gave them, "" if there is none.
    """

    files: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    rated: dict[str, str | None] = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True)
class Planned:
    """What an experiment is made of; paths as the experiment names them.

    Attributes:
        queries: the questions.
        docs: the passages.
        depth: how many documents of each run are labelled, and answered from.
        runs: the runs by name.
        qrels: existing judgments by name, each with how they name passages (``page``, ``title`` or "").
        referenced: whether questions have reference answers.
        outcome: what is known of answers.
    """

    queries: str
    docs: Sequence[str]
    depth: int
    runs: Mapping[str, str]
    qrels: Mapping[str, tuple[str, str]]
    referenced: bool
    outcome: KnownOutcome

    @property
    def asks(self) -> bool:
        """Whether it asks a server."""
        free = self.referenced or bool(self.qrels)
        return not free or not (self.outcome.rated or (self.outcome.files and self.referenced))

    @property
    def trusted(self) -> str:
        """The judgments that stand in the place of answers; "" where there are answers or references."""
        if self.outcome.files or self.referenced:
            return ""
        return next(iter(self.qrels), "")

    def toml(self) -> str:
        """Return the experiment file."""
        return filled("experiment.toml", plan=self, known=self.outcome)
