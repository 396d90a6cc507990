"""What an LLM answers from each document alone; beside that from the list together, or from no document at all."""

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
    """Return the next wave of answering units: each once, then once more what cannot be read; then []."""
    wave: list[Request] = []
    if len(replies) <= len(units):
        for place, unit in enumerate(units):
            wave += answerer.requests(unit, replies[place : place + 1])
    return wave


def answers_of(
    answerer: Answerer, units: Sequence[Unit], replies: Sequence[Outcome]
) -> tuple[list[Answer], Sequence[Outcome]]:
    """Return the answers to units that were asked by `ask`, and the replies that follow theirs."""
    outcomes, rest = merge_waves(replies, [answerer.asker(unit.docs) for unit in units])
    answers = []
    for unit, outcome in zip(units, outcomes, strict=True):
        answers.append(answerer.answer(unit, [outcome]))
    return answers, rest


@dataclass(frozen=True)
class AnswersAlone:
    """Asks for these answers, by the very requests of answering end to end.

    Attributes:
        answerer: the LLM with its prompt.
        top: how many documents of the list are answered from together; None for no such answer.
        closed_book: whether it is answered without any document, too.
    """

    answerer: Answerer
    top: int | None = None
    closed_book: bool = False

    def units(self, unit: Unit) -> list[Unit]:
        """Return what is answered: from each document, then from the list, then without any."""
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
        """Return the answers, and the replies that follow theirs."""
        answers, rest = answers_of(self.answerer, self.units(unit), replies)
        closed_book = answers.pop() if self.closed_book else None
        own = answers.pop() if self.top is not None else None
        return Read(answers, own, closed_book), rest
