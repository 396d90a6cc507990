"""The requirements for a new version to pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from judgekit.errors import UsageError
from judgekit.settings import check_settings, setting

Unjudged = Literal["bounds", "nonrelevant"]


@dataclass(frozen=True, slots=True)
class Gate:
    """What to measure in two versions, and how much the new one may lose.

    Attributes:
        measure: the measure by which the versions are scored; by default nDCG@10.
        max_drop: the largest acceptable mean loss, in hundredths of the measure's range.
        suite: decide about these questions only.
        groups: column of the queries with their groups: a group (paraphrases) counts once, by its mean. So do rows with
            the same conversation, text and language, unless this is ``none``.
        unjudged: how documents without a label count: ``bounds`` (any label on the scale) or ``nonrelevant`` (0).
        reverse: the metric of rated answers, if lower is better.
        as_given: the metric of rated answers, if higher is better although tools disagree (hallucination, toxicity).

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    measure: str | None = setting(None, short="-m")
    max_drop: float = setting(1.0, least=0, most=100)
    suite: bool = False
    groups: str | None = None
    unjudged: Unjudged = "bounds"
    reverse: str | None = None
    as_given: str | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        if self.max_drop == 0 and not self.suite:
            raise UsageError("max_drop must be above 0, since a loss of 0 cannot be shown; 0 is possible with suite")
