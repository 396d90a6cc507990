"""The usefulness of a document, judged by the answer from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from judgekit.answers.quality import Answered, AnswerMetric, Score, metric
from judgekit.answers.reading import Answer
from judgekit.context import Context
from judgekit.data.documents import Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.labelers.alone import Read
from judgekit.labelers.base import Label
from judgekit.reading.asker import play
from judgekit.spec import split_file
from judgekit.wire.types import Outcome, Request

QUALITY: Final = "em"
"""The default metric for rating answers."""
_HARM: Final = 1 / 3
"""The harm of an answer from an irrelevant document, as a share of the worth of one from a relevant document."""


def canonical_quality(quality: str | None, context: Context | None) -> str | None:
    """Return the canonical spelling of a metric; None for the default; a file's stays as it is."""
    if quality is None or split_file(quality)[0] is not None:
        return quality
    name = metric(quality, context).name
    return None if name == QUALITY else name


def answering(answer: Answer) -> Score:
    """Return 1 for an answer, 0 for an abstention."""
    if answer.status is not Status.OK:
        return Score(None, answer.status, answer.reason)
    return Score(float(not answer.abstained))


def rated(
    metric: AnswerMetric, unit: Unit, read: Read, replies: Sequence[Outcome]
) -> tuple[list[Request], list[Score]]:
    """Return the next wave of rating the answers, or, if it is [], their qualities, the closed-book one last.

    They are compared with the LLM's own answer from the list, if used, else with the references; without that answer
    there are no qualities.
    """
    query = unit.query
    if read.own is not None:
        if read.own.status is not Status.OK or read.own.abstained:
            return [], []
        query = replace(query, answers=(read.own.text,))
    answers = read.alone if read.closed_book is None else [*read.alone, read.closed_book]
    answered = []
    for place, answer in enumerate(answers):
        shown = unit.docs[place : place + 1] if metric.needs_docs else ()
        answered.append(Answered(query, answer, shown))
    return rate(metric, answered, replies)


def rate(
    metric: AnswerMetric, answers: Iterable[Answered], replies: Sequence[Outcome]
) -> tuple[list[Request], list[Score]]:
    """Return the next wave of rating answers, or, if it is [], the quality of each."""
    scores: list[Score] = []
    for answered in answers:
        wave, used = play(metric, answered, replies)
        if wave:
            return wave, scores
        scores.append(metric.read(answered, replies[:used]))
        replies = replies[used:]
    return [], scores


def _signed(answered: Score, relevant: Label, scale: Scale) -> Score:
    """Return the worth of an answer from a relevant document, or the harm of one from an irrelevant document."""
    if answered.value is None:
        return answered
    if relevant.relevance is None:
        return Score(None, relevant.status, f"whether it is relevant: {relevant.reason}")
    is_relevant = scale.min_rel is not None and relevant.relevance >= scale.min_rel
    return Score(answered.value if is_relevant else -_HARM * answered.value)


def gain_over(score: Score, without: Score, *, clipped: bool) -> Score:
    """Return the gain of an answer over the closed-book one; not below 0 if ``clipped``."""
    if score.value is None:
        return score
    if without.value is None:
        return without._replace(reason=f"without a document: {without.reason}")
    gain = score.value - without.value
    return Score(max(0.0, gain) if clipped else gain)


def without_own(own: Answer) -> Score | None:
    """Return the labels of all documents if there is no answer from the list; else None."""
    if own.status is not Status.OK:
        return Score(None, own.status, f"from the list together: {own.reason}")
    if own.abstained:
        return Score(0.0, reason="the LLM gives no answer from the list together")
    return None


def labelled(unit: Unit, read: Read, scores: Sequence[Score], closed_book: Score | None = None) -> list[Label]:
    """Return the labels of a unit, each with the answers behind it."""
    labels = []
    for doc, answer, score in zip(unit.docs, read.alone, scores, strict=True):
        extra: dict[str, float | str] = {"answer": answer.text}
        if read.own is not None:
            extra["own_answer"] = read.own.text
        if read.closed_book is not None:
            extra["closed_book_answer"] = read.closed_book.text
        if closed_book is not None and closed_book.value is not None:
            extra["closed_book"] = closed_book.value
        labels.append(
            Label(unit.query.query_id, doc.doc_id, score.value, score.status, answer.raw, score.reason, extra)
        )
    return labels


def quality(unit: Unit, read: Read, metric: AnswerMetric, replies: Sequence[Outcome], *, clipped: bool) -> list[Label]:
    """Return the answers' qualities as labels, or their gains over a closed-book answer, if there is one."""
    lost = None if read.own is None else without_own(read.own)
    if lost is not None:
        return labelled(unit, read, [lost] * len(unit.docs))
    scores = rated(metric, unit, read, replies)[1]
    if read.closed_book is None:
        return labelled(unit, read, scores)
    *scores, without = scores
    return labelled(unit, read, [gain_over(score, without, clipped=clipped) for score in scores], without)


def harm(unit: Unit, read: Read, relevant: Sequence[Label], scale: Scale) -> list[Label]:
    """Return the worth of answers from relevant documents, and the harm of others, as labels."""
    scores = [_signed(answering(answer), label, scale) for answer, label in zip(read.alone, relevant, strict=True)]
    return labelled(unit, read, scores)
