"""What every script has its tool evaluate: eight questions, and the lists and answers of two retrievers.

The judge fails on the question of `FAILS`. Ids are texts with zeros in front, which numbers would lose.
"""

from __future__ import annotations

from typing import NamedTuple

RUNS = ("bm25", "dense")
FAILS = "005"
_KEPT = ("Ada Brandt", "1412", "Lisbon", "blue valve")


class Passage(NamedTuple):
    """A passage of the collection."""

    id: str
    text: str


class Question(NamedTuple):
    """A question with its reference answer and the passages of its hall, the second of which may answer it."""

    id: str
    text: str
    reference: str
    passages: tuple[Passage, ...]

    @property
    def gold(self) -> Passage:
        """The passage that holds the reference."""
        return next(passage for passage in self.passages if self.reference in passage.text)

    def found(self, run: str) -> list[Passage]:
        """Return what a retriever finds, the best first."""
        return [*self.passages] if run == "dense" else [*reversed(self.passages)]

    def answer(self, run: str) -> str:
        """Return what the application answers from that."""
        number = int(self.id)
        right = number % 3 != 1 if run == "dense" else number % 2 == 0
        return self.reference if right else "I don't know."

    @property
    def asked(self) -> str:
        """The question, marked where the judge has to fail."""
        return f"FAILME {self.text}" if self.id == FAILS else self.text


def _question(number: int) -> Question:
    kept = _KEPT[number % 4]
    passages = []
    for place in range(3):
        text = f'Hall {number} was built in 19{10 + place}, note "{place}", page 2.'
        if place == number % 3:
            text = f"Hall {number} keeps {kept}."
        passages.append(Passage(f"d{number}-{place}", text))
    return Question(f"{number:03}", f"What is kept in hall {number}?", kept, tuple(passages))


QUESTIONS = [_question(number) for number in range(8)]
