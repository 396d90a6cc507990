"""An LLM's answers from each document alone and, for comparison, from the whole list or without documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judgekit.answers.answerer import Answerer
from judgekit.answers.reading import Answer
from judgekit.data.documents import Unit
from judgekit.reading.asker import merge_waves
from judgekit.wire.types import Outcome, Request


class Read(NamedTuple):
    """The answers about a unit: from each document alone, from the list together, and from none."""

    alone: list[Answer]
    own: Answer | None
    closed_book: Answer | None


def ask(answerer: Answerer, units: Sequence[Unit], replies: Sequence[Outcome]) -> list[Request]:
    """Return the next wave of answering units: each once, then unreadable ones again, then []."""
    wave: list[Request] = []
    if len(replies) <= len(units):
        for place, unit in enumerate(units):
            wave += answerer.requests(unit, replies[place : place + 1])
    return wave


def answers_of(
    answerer: Answerer, units: Sequence[Unit], replies: Sequence[Outcome]
) -> tuple[list[Answer], Sequence[Outcome]]:
    """Return the answers to units asked by `ask`, and the remaining replies."""
    outcomes, rest = merge_waves(replies, [answerer.asker(unit.docs) for unit in units])
    answers = []
    for unit, outcome in zip(units, outcomes, strict=True):
        answers.append(answerer.answer(unit, [outcome]))
    return answers, rest


@dataclass(frozen=True)
class AnswersAlone:
    """Asks for these answers, with exactly the requests of answering end to end.

    Attributes:
        answerer: the LLM with its prompt.
        top: number of documents for the answer from the list; None for no such answer.
        closed_book: whether to answer without documents, too.
    """

    answerer: Answerer
    top: int | None = None
    closed_book: bool = False

    def units(self, unit: Unit) -> list[Unit]:
        """Return the units to answer: each document, then the list, then none."""
        units = [Unit(unit.query, (doc,)) for doc in unit.docs]
        if self.top is not None:
            units.append(Unit(unit.query, unit.docs[: self.top]))
        if self.closed_book:
            units.append(Unit(unit.query, ()))
        return units

    def requests(self, unit: Unit, replies: Sequence[Outcome]) -> list[Request]:
        """Return the next wave; [] when there are no more."""
        return ask(self.answerer, self.units(unit), replies)

    def read(self, unit: Unit, replies: Sequence[Outcome]) -> tuple[Read, Sequence[Outcome]]:
        """Return the answers, and the remaining replies."""
        answers, rest = answers_of(self.answerer, self.units(unit), replies)
        closed_book = answers.pop() if self.closed_book else None
        own = answers.pop() if self.top is not None else None
        return Read(answers, own, closed_book), rest
