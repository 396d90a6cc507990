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


@dataclass(frozen=True)
class Answers:
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
        """Return the next wave: each answer, then once more those that cannot be read; [] when there are no more."""
        units = self.units(unit)
        wave: list[Request] = []
        if len(replies) <= len(units):
            for place, answered in enumerate(units):
                wave += self.answerer.requests(answered, replies[place : place + 1])
        return wave

    def read(self, unit: Unit, replies: Sequence[Outcome]) -> tuple[Read, Sequence[Outcome]]:
        """Return the answers, and the replies that follow theirs."""
        units = self.units(unit)
        outcomes, rest = merge_waves(replies, [self.answerer.asker(answered.docs) for answered in units])
        answers = []
        for answered, outcome in zip(units, outcomes, strict=True):
            answers.append(self.answerer.answer(answered, [outcome]))
        closed_book = answers.pop() if self.closed_book else None
        own = answers.pop() if self.top is not None else None
        return Read(answers, own, closed_book), rest
