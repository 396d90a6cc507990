"""What several answers to each question are worth beside further questions, before they are paid for.

With the share w of a difference of two runs that is chance between answers to the same question, m answers to each of n
questions tell as much as n / (1 - w (1 - 1/m)) questions with one. With what a further question takes apart from its
answers (labels, a reference) and what one more answer of all runs takes, that says which of both is cheaper. The
optimum is that of samples in two stages (W. G. Cochran, Sampling Techniques, 1977, chapter 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from judgekit.analysis.claims import Claim
from judgekit.analysis.samples import LEAST, narrowing, worth
from judgekit.analysis.wording import UNKNOWN, Ranged, counted

_SHARES: Final = (0.1, 0.3, 0.5)
"""Shares of chance for which a plan says what answers are worth, as long as the share is not known."""
_MOST: Final = 10
"""More answers to a question than these are not proposed."""
_TO_NARROW: Final = 5
"""So many answers are looked at where there are no further questions."""


@dataclass(frozen=True)
class MoreAnswers:
    """What several answers to each question are worth.

    Attributes:
        answers: how many each run gives to a question, in this experiment.
        share: of the variance of a difference of two runs what is chance between answers to the same question, with its
            interval, from 0 to 1, as an earlier run measured it; NaN where that is not known.
        question: what a further question takes apart from its answers.
        answer: what one more answer of every run to a question takes, in the same unit; NaN where it is not known.
        left: how many further questions with different lists there are beyond the pilot.
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
        """The number of answers to each question that is weighed against one."""
        if self.answers > 1:
            return self.answers
        return 2 if self.left else _TO_NARROW

    @property
    def taken(self) -> float:
        """What so many answers take, as a share of what the questions take with one answer each; NaN if not known."""
        whole = self.question + self.answer
        return (self.looked_at - 1) * self.answer / whole if whole > 0 else math.nan

    @property
    def cheapest(self) -> int:
        """The number of answers to each question with which limits of the same width take least."""

        def price(answers: int) -> float:
            taken = narrowing(self.share.value, answers) * (self.question + answers * self.answer)
            # Of numbers that take the same the smallest is named, whatever their last digits are.
            return round(taken / (self.question + self.answer), 9)

        return min(range(1, _MOST + 1), key=price)

    @property
    def pays_from(self) -> float:
        """The share of chance from which on so many answers are cheaper than further questions."""
        several = self.looked_at * self.answer
        return several / (self.question + several)

    def __str__(self) -> str:
        if math.isnan(self.share.value):
            return f"{self._unknown()} {self._by_share()}"
        share, low, high = (f"{100 * number:.0f}" for number in self.share)
        about = f"{share} % ({low} to {high}) of the differences between runs is chance between answers to the same"
        return f"{about} question. {self._known()}"

    def _unknown(self) -> str:
        """Return that the share is not known, and how it is measured."""
        line = "How much of the differences between runs is chance between answers to the same question is not known"
        if self.numbered:
            return f"{line}: have {LEAST} questions answered twice, and number the answers in a column `sample`."
        if self.answers > 1:
            return f"{line} before the run."
        return f"{line}: answer {LEAST} questions twice (`samples = 2` under [answers])."

    def _by_share(self) -> str:
        """Return what answers are worth at several shares, and from which on they pay."""
        *shares, last = [f"{100 * share:.0f}" for share in _SHARES]
        *worths, most = [f"{100 * worth(share, self.looked_at):.0f}" for share in _SHARES]
        if_so = f"If it is {', '.join(shares)} or {last} %, {self._several()} worth {', '.join(worths)} or {most} %"
        return f"{if_so} more questions{self._price()}"

    def _price(self) -> str:
        """Return what the answers take beside further questions, to end a sentence about what they are worth."""
        if not self.left or math.isnan(self.taken):
            return "."
        taken = f", and {self._verb()} as much as {100 * self.taken:.0f} % more questions."
        if self.pays_from >= 1:
            return f"{taken} Further questions are cheaper in any case."
        return f"{taken} Further questions are cheaper, unless more than {100 * self.pays_from:.0f} % is chance."

    def _known(self) -> str:
        """Return what answers are worth at the share that is known, and what is cheaper."""
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
    """Return the share of chance that an earlier decision found; NaN where it says nothing of it."""
    for claim in claims:
        if claim.kind == "samples" and not math.isnan(claim.value):
            return Ranged(claim.value / 100, claim.low / 100, claim.high / 100)
    return UNKNOWN
