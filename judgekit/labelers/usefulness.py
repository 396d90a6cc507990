"""What an answer from one document says of the document's usefulness."""

from __future__ import annotations

from typing import Final

from judgekit.answers.quality import Score
from judgekit.answers.reading import Answer
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.labelers.base import Label

_HARM: Final = 1 / 3
"""What an answer from an irrelevant document costs, as a share of what one from a relevant document is worth."""


def answering(answer: Answer) -> Score:
    """Return 1 for an answer, 0 for an abstention."""
    if answer.status is not Status.OK:
        return Score(None, answer.status, answer.reason)
    return Score(float(not answer.abstained))


def signed(answered: Score, relevant: Label, scale: Scale) -> Score:
    """Return what an answer from a relevant document is worth, or what one from an irrelevant document costs."""
    if answered.value is None:
        return answered
    if relevant.relevance is None:
        return Score(None, relevant.status, f"whether it is relevant: {relevant.reason}")
    is_relevant = scale.min_rel is not None and relevant.relevance >= scale.min_rel
    return Score(answered.value if is_relevant else -_HARM * answered.value)


def gain_over(score: Score, without: Score, *, clipped: bool) -> Score:
    """Return how much better an answer is than the one without any document; not below 0 if ``clipped``."""
    if score.value is None:
        return score
    if without.value is None:
        return without._replace(reason=f"without a document: {without.reason}")
    gain = score.value - without.value
    return Score(max(0.0, gain) if clipped else gain)
