"""Every finding is a number with its interval and what it does to the verdict; a labeling's card holds all of its."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.intervals import within_query_interval
from judgekit.labelers.human import wilson

Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

_GROUPS: Final = 20


class Estimated(NamedTuple):
    """A value and the two ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Number:
    """One finding about one labeling.

    Attributes:
        check: which of the checks.
        subject: what it is about: a probe, a look of passages, how many runs re-rank.
        statistic: what is measured of it.
        value, low, high: the number and its interval; NaN where there is none.
        n: how many pairs, queries or runs it is of.
        verdict: what it does to the verdict, or why it is missing; "" where another number of the subject says it.
        flag: a word or two for what a reader must not miss, "" where nothing is wrong.
    """

    check: str
    subject: str
    statistic: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    verdict: str = ""
    flag: str = ""

    @property
    def finding(self) -> str:
        """The flag and the verdict."""
        if self.flag:
            return f"{self.flag.upper()}: {self.verdict}"
        return self.verdict

    def __str__(self) -> str:
        """Return the value with its interval."""
        if math.isnan(self.value):
            return "–"
        if math.isnan(self.low):
            return f"{self.value:.3g}"
        digits = 4 if 0 < abs(self.value) < 0.01 else 3
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def unknown(check: str, subject: str, statistic: str, why: str, n: int = 0) -> Number:
    """Return a number that is not there, with the reason."""
    return Number(check, subject, statistic, math.nan, n=n, verdict=f"unknown: {why}")


def groups_of(units: Ints, seed: int) -> Ints:
    """Return which of at most 20 random groups each query is in, shape (n,); queries of one unit stay together."""
    count = int(units.max(initial=-1)) + 1
    # Drawn, since queries in the file's order often come in blocks of one kind, and a block would be a group.
    of_unit = np.random.default_rng([seed, 2]).permutation(np.arange(count) % min(_GROUPS, count))
    return np.asarray(of_unit[units])


def jackknife(statistic: Callable[[Bools], float], groups: Ints, confidence: float, floor: float) -> Estimated:
    """Return a statistic with its interval: Student's t on a jackknife over groups of queries.

    ``floor`` is what unseen queries add to the variance, see `judgekit.analysis.resampling.unseen`.
    """
    # Without the floor labels that depart from the reference on few queries have an interval of zero width, or one that
    # covers a third of the time.
    from scipy.special import stdtrit

    used = np.unique(groups)
    count = len(used)
    value = statistic(np.ones(len(groups), np.bool_))
    without = np.array([statistic(groups != left_out) for left_out in used])
    spread = math.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum() + floor)
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * spread
    return Estimated(value, value - reach, value + reach)


def _together(values: Floats, units: Ints) -> float:
    """Return how many independent values so many values of few units are worth."""
    _, unit = np.unique(units, return_inverse=True)
    apart = values - values.mean()
    alone = float((apart**2).sum())
    count = int(unit.max()) + 1
    # Where all values are alike nothing shows how those of a unit go together: as if they were one.
    if alone == 0 or count == len(values):
        return float(count)
    # Kish's design effect: how far the values of a unit go together, beyond their own spread.
    together = float((np.bincount(unit, apart) ** 2).sum())
    return len(values) / max(together / alone, 1.0)


def share_change(before: Bools, after: Bools, units: Ints, confidence: float) -> Estimated:
    """Return by how much a share grew on the same cases, from Wilson's intervals of what came and what went."""
    # Joined as Zou and Donner (2008) do. Newcombe's interval of the two shares (1998, no. 10) holds .89 of the truths
    # where few cases change and half of the others are hits.
    value = float(after.mean()) - float(before.mean())
    worth = _together(after.astype(np.float64) - before, units)
    come, gone = float((after & ~before).mean()), float((before & ~after).mean())
    least_come, most_come = wilson(come * worth, worth, confidence)
    least_gone, most_gone = wilson(gone * worth, worth, confidence)
    low = value - math.hypot(come - least_come, most_gone - gone)
    high = value + math.hypot(most_come - come, gone - least_gone)
    return Estimated(value, max(low, -1.0), min(high, 1.0))


def mean_change(change: Floats, units: Ints, reach: float, confidence: float) -> Estimated:
    """Return a mean of changes that lie between -reach and reach, with an interval that is never of zero width."""
    low, high = within_query_interval((change / reach + 1) / 2, confidence, units)
    return Estimated(float(change.mean()), (2 * low - 1) * reach, (2 * high - 1) * reach)
