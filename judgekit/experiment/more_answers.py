"""Compares several answers to each question with further questions, before they are paid for.

If w is the share of a difference's variance that is chance between answers to the same question, m answers to each of n
questions tell as much as n / (1 - w (1 - 1/m)) questions with one. The cost of a further question without its answers
(labels, a reference) and of one more answer of all runs then tells which is cheaper. The optimum is that of samples in
two stages (W. G. Cochran, Sampling Techniques, 1977, chapter 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from judgekit.analysis.claims import Claim
from judgekit.analysis.samples import LEAST, narrowing, worth
from judgekit.analysis.wording import UNKNOWN, Ranged, counted

_SHARES: Final = (0.1, 0.3, 0.5)
"""The shares of chance that a plan assumes while the share is unknown."""
_MOST: Final = 10
"""The largest number of answers to a question that is proposed."""
_TO_NARROW: Final = 5
"""The number of answers to consider if there are no further questions."""


@dataclass(frozen=True)
class MoreAnswers:
    """The worth of several answers to each question.

    Attributes:
        answers: number of each run's answers to a question in this experiment.
        share: the share of a difference's variance that is chance between answers to the same question, with its
            interval, from 0 to 1, as measured by an earlier run; NaN if unknown.
        question: the cost of a further question without its answers.
        answer: the cost of one more answer of every run to a question, in the same unit; NaN if unknown.
        left: number of further questions with different lists beyond the pilot.
        numbered: whether answers are made elsewhere, and numbered in a column ``sample``.
    """

    answers: int = 1
    share: Ranged = UNKNOWN
    question: float = math.nan
    answer: float = math.nan
    left: int = 0
    numbered: bool = False

    @property
    def looked_at(self) -> int:
        """The number of answers to each question to compare with one."""
        if self.answers > 1:
            return self.answers
        return 2 if self.left else _TO_NARROW

    @property
    def taken(self) -> float:
        """The cost of this many answers, as a share of the questions' cost with one answer each; NaN if unknown."""
        whole = self.question + self.answer
        return (self.looked_at - 1) * self.answer / whole if whole > 0 else math.nan

    @property
    def cheapest(self) -> int:
        """The cheapest number of answers to each question for limits of the same width."""

        def price(answers: int) -> float:
            taken = narrowing(self.share.value, answers) * (self.question + answers * self.answer)
            # Among equally cheap numbers the smallest counts, ignoring rounding.
            return round(taken / (self.question + self.answer), 9)

        return min(range(1, _MOST + 1), key=price)

    @property
    def pays_from(self) -> float:
        """The share of chance from which on this many answers are cheaper than further questions."""
        several = self.looked_at * self.answer
        return several / (self.question + several)

    def __str__(self) -> str:
        if math.isnan(self.share.value):
            return f"{self._unknown()} {self._by_share()}"
        share, low, high = (f"{100 * number:.0f}" for number in self.share)
        about = f"{share} % ({low} to {high}) of the differences between runs is chance between answers to the same"
        return f"{about} question. {self._known()}"

    def _unknown(self) -> str:
        """Return a sentence that the share is unknown, and how to measure it."""
        line = "How much of the differences between runs is chance between answers to the same question is not known"
        if self.numbered:
            return f"{line}: have {LEAST} questions answered twice, and number the answers in a column `sample`."
        if self.answers > 1:
            return f"{line} before the run."
        return f"{line}: answer {LEAST} questions twice (`samples = 2` under [answers])."

    def _by_share(self) -> str:
        """Return the worth of answers at several shares, and from which share on they pay."""
        *shares, last = [f"{100 * share:.0f}" for share in _SHARES]
        *worths, most = [f"{100 * worth(share, self.looked_at):.0f}" for share in _SHARES]
        if_so = f"If it is {', '.join(shares)} or {last} %, {self._several()} worth {', '.join(worths)} or {most} %"
        return f"{if_so} more questions{self._price()}"

    def _price(self) -> str:
        """Return the cost of the answers beside further questions, to end a sentence about their worth."""
        if not self.left or math.isnan(self.taken):
            return "."
        taken = f", and {self._verb()} as much as {100 * self.taken:.0f} % more questions."
        if self.pays_from >= 1:
            return f"{taken} Further questions are cheaper in any case."
        return f"{taken} Further questions are cheaper, unless more than {100 * self.pays_from:.0f} % is chance."

    def _known(self) -> str:
        """Return the worth of answers at the known share, and what is cheaper."""
        many = self.looked_at
        if not self.left:
            narrower = 1 - math.sqrt(narrowing(self.share.value, many))
            return (
                f"No further questions with different lists are left: {counted(many)} answers to each narrow the limits"
                f" by {100 * narrower:.0f} %."
            )
        gain = f"{self._several().capitalize()} worth {100 * worth(self.share.value, many):.0f} % more questions"
        if math.isnan(self.taken):
            return f"{gain}."
        gain += f", and {self._verb()} as much as {100 * self.taken:.0f} % more questions"
        if self.cheapest == 1:
            return f"{gain}: further questions are cheaper."
        return f"{gain}. For limits of the same width {counted(self.cheapest)} answers to each question take least."

    def _several(self) -> str:
        many = self.looked_at
        return "a second answer to each question is" if many == 2 else f"{counted(many)} answers to each question are"

    def _verb(self) -> str:
        return "takes" if self.looked_at == 2 else "take"


def share_in(claims: tuple[Claim, ...]) -> Ranged:
    """Return the share of chance found by an earlier decision, or NaN."""
    for claim in claims:
        if claim.kind == "samples" and not math.isnan(claim.value):
            return Ranged(claim.value / 100, claim.low / 100, claim.high / 100)
    return UNKNOWN
