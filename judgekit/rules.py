"""The subject of a decision and the rules for claims, fixed before looking at data.

Whatever "a good answer" means to the user is declared once, as `DeclaredOutcome`, with its scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

from judgekit.errors import UsageError, nearest
from judgekit.settings import check_settings, setting


@dataclass(frozen=True, slots=True)
class Rules:
    """What the labels are for, what the decision is about, when something is claimed, and the resampling.

    Attributes:
        use: what the labels are for: by default ``choose-runs`` with two or more runs, else ``find-questions``.
        primary: the measure that the decision is about; by default nDCG with the largest cutoff, else the first.
        margin_points: smallest gain that is worth paying for labels, in points of quality (hundredths of its scale).
        confidence: confidence of all intervals and claims.
        by: column with the kind of each question: findings are repeated for each kind.
        groups: column with the group of each question (paraphrases, questions about one document); groups are resampled
            as a whole. Rows with the same conversation, text and language are one question, unless this is ``none``.
        resamples: number of bootstrap resamples of the questions.
        seed: seed of the resamples.
        accept_mixed_models: allow a decision from replies of several models under one name.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    use: Literal["choose-runs", "find-questions"] | None = None
    primary: str | None = None
    margin_points: float = setting(2.0, least=0)
    confidence: float = setting(0.95, least=0.5, most=0.999)
    by: str | None = None
    groups: str | None = None
    resamples: int = setting(1000, least=100, most=100_000)
    seed: int = setting(1, least=0, option=False)
    accept_mixed_models: bool = setting(False, option=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def of(self, several: int = 2) -> float:
        """Return the confidence that each of several statements needs for all to hold together."""
        # Half of the error is kept in reserve: without it, up to .08 of the simulated claims were false.
        return 1 - (1 - self.confidence) / max(several, 2)


Source = Literal["", "people", "references", "llm", "grounded", "trusted"]
"""Where an outcome comes from: ratings, a comparison with reference answers, an LLM that knows the references, an LLM
that only knows the passages, trusted labels in place of answers; "" where nobody says."""

_NAMED: Final[Mapping[str, tuple[float, float]]] = {
    "thumbs": (0.0, 1.0),
    "stars": (1.0, 5.0),
    "points": (0.0, 100.0),
    "unit": (0.0, 1.0),
}
_BETWEEN: Final = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)")
_SCALES: Final = "thumbs (up or down), stars (1 to 5), points (0 to 100), unit (0 to 1), or its ends, such as 1..7"


@dataclass(frozen=True)
class OutcomeScale:
    """The scale of an outcome.

    Attributes:
        name: its spelling: ``thumbs``, ``stars``, ``points``, ``unit``, or its ends, ``1..7``.
        low, high: the worst and the best value.
    """

    name: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a spelling.

        Raises:
            UsageError: there is no such scale, or its ends are not in order.
        """
        if text in _NAMED:
            return cls(text, *_NAMED[text])
        ends = _BETWEEN.fullmatch(text)
        if ends is None:
            raise UsageError(f"scale {text!r} is unknown: use {_SCALES}.{nearest(text, _NAMED)}")
        low, high = float(ends[1]), float(ends[2])
        # Swapped ends would silently reverse every answer.
        if low >= high:
            raise UsageError(f"scale {text!r}: the first end must be below the second")
        return cls(text, low, high)

    @property
    def point(self) -> str:
        """The size of one point on this scale, as a sentence; "" if it is a point anyway."""
        if self.name in ("points", "unit"):
            return ""
        if self.name == "thumbs":
            return "1 point = 1 thumb up in 100 ratings"
        # On a scale from 1 to 5 a point is .04 stars, which few would guess.
        size = f"{(self.high - self.low) / 100:.3g}".removeprefix("0")
        if self.name == "stars":
            return f"1 point = {size} stars"
        return f"1 point = {size} on the scale {self.name}"


@dataclass(frozen=True)
class DeclaredOutcome:
    """The outcome, which measures how good an answer is, and its scale: thumbs, stars, a metric or trusted labels.

    Attributes:
        outcome: the metric, rating or column of imported answers that the decision is about; by default the ratings,
            else the first metric. Without answers: a labeler with existing labels that you trust; the order of the runs
            under its labels is then the outcome.
        scale: scale of the ratings: ``stars`` (1 to 5), ``points`` (0 to 100), or its ends, ``1..7``; not needed for
            words such as up and down or for values from 0 to 1.
        assigned: ``random`` if each rating is about one run that was drawn at random for it: runs are then compared by
            their means.
        cluster: column of the ratings with the user or session that gave them; ratings of one user are resampled
            together.
        drawn: ``random`` if the rated questions were drawn at random from all: a labeling that also scores the other
            answers then counts, corrected by the ratings.

    Raises:
        UsageError: the scale is unknown.
    """

    outcome: str | None = None
    scale: str | None = None
    assigned: Literal["random"] | None = None
    cluster: str | None = None
    drawn: Literal["random"] | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        self.on  # noqa: B018 - raises where there is no such scale

    @property
    def on(self) -> OutcomeScale | None:
        """The declared scale."""
        return None if self.scale is None else OutcomeScale.parse(self.scale)

    @property
    def several(self) -> bool:
        """Whether several users may rate one answer."""
        # With neither, a second rating of an answer is a mistake of the file, and refused.
        return self.assigned is not None or self.cluster is not None

    @property
    def point(self) -> str:
        """A sentence on the size of a point; "" if none is needed."""
        return "" if self.on is None else self.on.point

    @property
    def caution(self) -> str:
        """A sentence of caution about the outcome, to be shown first; "" if none is needed."""
        return ""


@dataclass(frozen=True)
class SourcedOutcome(DeclaredOutcome):
    """An outcome of which is known where it comes from.

    Attributes:
        source: where the outcome comes from.
        rater: model that rated the answers, "" if none did.
    """

    source: Source = ""
    rater: str = ""

    @property
    def caution(self) -> str:
        """A sentence of caution about the outcome, to be shown first; "" if none is needed."""
        if self.source == "grounded":
            return f"The outcome, {self.outcome}, says that answers rest on their passages, not that they are correct."
        if self.source == "llm":
            who = f"by {self.rater}" if self.rater else "by an LLM"
            return f"Answers are rated {who}, not checked by people."
        return ""
