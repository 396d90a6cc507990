"""Each finding is a number with its interval and its effect on the verdict; a card holds all numbers of a labeling."""

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
        check: the check.
        subject: its subject: a probe, a look of passages, a number of re-ranking runs.
        statistic: the statistic of the subject.
        value, low, high: the number and its interval; NaN if absent.
        n: the number of pairs, queries or runs behind it.
        verdict: its effect on the verdict, or why it is missing; "" if another number of the subject tells it.
        flag: a word or two that a reader must not miss; "" if nothing is wrong.
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
    """Return a missing number, with the reason."""
    return Number(check, subject, statistic, math.nan, n=n, verdict=f"unknown: {why}")


def groups_of(units: Ints, seed: int) -> Ints:
    """Return each query's group out of at most 20 random ones, shape (n,); queries of a unit stay together."""
    count = int(units.max(initial=-1)) + 1
    # Random, since a file's queries often come in blocks of one kind, and a block would become a group.
    of_unit = np.random.default_rng([seed, 2]).permutation(np.arange(count) % min(_GROUPS, count))
    return np.asarray(of_unit[units])


def jackknife(statistic: Callable[[Bools], float], groups: Ints, confidence: float, floor: float) -> Estimated:
    """Return a statistic with its interval: Student's t on a jackknife over groups of queries.

    ``floor`` is the unseen queries' share of the variance, see `judgekit.analysis.resampling.unseen`.
    """
    # Without the floor, labels that differ from the reference on few queries would have an interval of zero width, or
    # with a coverage of a third.
    from scipy.special import stdtrit

    used = np.unique(groups)
    count = len(used)
    value = statistic(np.ones(len(groups), np.bool_))
    without = np.array([statistic(groups != left_out) for left_out in used])
    spread = math.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum() + floor)
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * spread
    return Estimated(value, value - reach, value + reach)


def _together(values: Floats, units: Ints) -> float:
    """Return the effective number of independent values."""
    _, unit = np.unique(units, return_inverse=True)
    apart = values - values.mean()
    alone = float((apart**2).sum())
    count = int(unit.max()) + 1
    # If all values are alike, their correlation within units is unknown: each unit counts as one value.
    if alone == 0 or count == len(values):
        return float(count)
    # Kish's design effect: the correlation of a unit's values.
    together = float((np.bincount(unit, apart) ** 2).sum())
    return len(values) / max(together / alone, 1.0)


def share_change(before: Bools, after: Bools, units: Ints, confidence: float) -> Estimated:
    """Return the growth of a share on the same cases, from Wilson's intervals of gains and losses."""
    # Joined as by Zou and Donner (2008). Newcombe's interval (1998, no. 10) covers .89 if few cases change and half of
    # the others are hits.
    value = float(after.mean()) - float(before.mean())
    worth = _together(after.astype(np.float64) - before, units)
    come, gone = float((after & ~before).mean()), float((before & ~after).mean())
    least_come, most_come = wilson(come * worth, worth, confidence)
    least_gone, most_gone = wilson(gone * worth, worth, confidence)
    low = value - math.hypot(come - least_come, most_gone - gone)
    high = value + math.hypot(most_come - come, gone - least_gone)
    return Estimated(value, max(low, -1.0), min(high, 1.0))


def mean_change(change: Floats, units: Ints, reach: float, confidence: float) -> Estimated:
    """Return a mean of changes between -reach and reach, with an interval that always has a width."""
    low, high = within_query_interval((change / reach + 1) / 2, confidence, units)
    return Estimated(float(change.mean()), (2 * low - 1) * reach, (2 * high - 1) * reach)
