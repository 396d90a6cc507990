"""What a decision is about, and when something is claimed: fixed before anything is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from judgekit.settings import check_settings, setting


@dataclass(frozen=True, slots=True)
class Rules:
    """The use of the labels, the subject of the decision, when something is claimed, and the resampling.

    Attributes:
        use: the use that the decision is about: by default ``choose-runs`` with two or more runs, else
            ``find-questions``.
        primary: the measure that the decision is about; by default nDCG with the largest cutoff, else the first.
        primary_metric: the answer metric that the decision is about; by default the ratings', else the first.
        margin_points: smallest gain, in points of quality (hundredths of its scale), that is worth labels.
        confidence: confidence of all intervals and claims.
        by: column with the kind of each question: findings are repeated for each kind.
        groups: column with the group of each question (paraphrases, questions about one document): a group is resampled
            together.
        resamples: number of bootstrap resamples of the questions.
        seed: seed of the resamples.
        accept_mixed_models: allow a decision from replies of several models under one name.

    Raises:
        UsageError: a value is of another type or out of its range.
    """

    use: Literal["choose-runs", "find-questions"] | None = None
    primary: str | None = None
    primary_metric: str | None = None
    margin_points: float = setting(2.0, least=0)
    confidence: float = setting(0.95, least=0.5, below=1)
    by: str | None = None
    groups: str | None = None
    resamples: int = setting(1000, least=100, most=100_000)
    seed: int = setting(1, least=0)
    accept_mixed_models: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def of(self, several: int = 2) -> float:
        """Return the confidence of each of several statements that hold together."""
        # Half of the error is held back: with all of it up to .08 of the simulated claims were false.
        return 1 - (1 - self.confidence) / max(several, 2)
